"""Two device-info objects of one node, the device plugin's and ours, compared field by field. Pure.

What counts is what consumers read (device-info 11): lists are compared as sets and codes by their number. `UpdateTime`,
`CheckCode`, `Description`, the order of lists and times within the tolerance are volatile. Differences with a known
cause carry it (nodeagent.render.comparison_causes).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from nodeagent.render.comparison_causes import with_causes
from nodeagent.render.comparison_side import NOT_READABLE, Fault, Side, side_of
from nodeagent.render.comparison_switch import compare_switches
from nodeagent.render.device_info import DESCRIPTION_KEY, DEVICE_KEY, MANUAL_KEY, REASON_KEY, SWITCH_KEY
from nodeagent.render.difference import ABSENT, Comparison, Difference, Kind

TIME_TOLERANCE_MS = 10_000
"""Upstream notices what it polls for within 5 s and takes the time of detection (device-info 4.3, 7)."""
STALE_S = 600
"""Both sides write every 300 s; an object that is older than the other by two of these has no writer any more."""
MAX_DIFFERENCES = 500
MAX_TEXT = 200
"""Bounds of what is told, in differences and in characters of one value."""

_LISTED = "listed"
_LISTS = (
    (Kind.AVAILABLE, ""),
    (Kind.UNHEALTHY, "-Unhealthy"),
    (Kind.NETWORK_UNHEALTHY, "-NetworkUnhealthy"),
    (Kind.RECOVERING, "-Recovering"),
)


def compare(
    theirs: Mapping[str, object] | None, ours: Mapping[str, object] | None, tolerance_ms: int = TIME_TOLERANCE_MS
) -> Comparison:
    """How two ConfigMaps differ; None = there surely is none.

    tolerance_ms: two times of one fault that lie no further apart count as equal. Of an object that ClusterD would
    refuse only what surrounds `DeviceInfoCfg` is compared further. Never raises, whatever the objects hold.
    """
    if theirs is None or ours is None:
        if theirs is ours:
            return Comparison(())
        there = [ABSENT if obj is None else "there" for obj in (theirs, ours)]
        return Comparison((Difference(Kind.OBJECT, "ConfigMap", *there),))
    one, other = side_of(theirs), side_of(ours)
    found = [
        *_unacceptable(one, other),
        *_entries(Kind.LABEL, "label ", one.labels, other.labels),
        *_keys("", one.data, other.data),
        *_manual(one, other),
        *_reasons(one, other, tolerance_ms),
        *compare_switches(one.data.get(SWITCH_KEY), other.data.get(SWITCH_KEY), tolerance_ms),
        *_plain(Kind.VOLATILE, DESCRIPTION_KEY, one.data.get(DESCRIPTION_KEY), other.data.get(DESCRIPTION_KEY)),
    ]
    if one.parsed is not None and other.parsed is not None:
        found += _device_info(one, other, tolerance_ms)
    found.sort(key=lambda each: (_ORDER[each.kind], each.field))
    differences = [each for each in found if each.kind is not Kind.VOLATILE]
    volatile = tuple(_bounded(each) for each in found if each.kind is Kind.VOLATILE)[:MAX_DIFFERENCES]
    explained = with_causes(differences, one, other)[:MAX_DIFFERENCES]
    return Comparison(tuple(_bounded(each) for each in explained), volatile, len(differences) - len(explained))


def _bounded(difference: Difference) -> Difference:
    """Values that a line can hold: an object may have a megabyte of anything in it."""
    field, theirs, ours = (_cut(text) for text in (difference.field, difference.theirs, difference.ours))
    return replace(difference, field=field, theirs=theirs, ours=ours)


def _cut(text: str) -> str:
    text = text.encode("utf-8", "backslashreplace").decode()  # half a surrogate pair cannot be printed
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"


_ORDER = {kind: number for number, kind in enumerate(Kind)}


def _unacceptable(one: Side, other: Side) -> Iterable[Difference]:
    if one.problem != other.problem:
        yield Difference(Kind.UNACCEPTABLE, DEVICE_KEY, one.problem or "accepted", other.problem or "accepted")


def _device_info(one: Side, other: Side, tolerance_ms: int) -> Iterable[Difference]:
    """What is inside `DeviceInfoCfg` of two acceptable objects."""
    assert one.parsed is not None
    assert other.parsed is not None
    apart_s = abs(one.update_time_s - other.update_time_s)
    times = str(one.update_time_s), str(other.update_time_s)
    if apart_s:
        yield Difference(Kind.STALE if apart_s > STALE_S else Kind.VOLATILE, "UpdateTime", *times)
    yield from _plain(Kind.VOLATILE, "CheckCode", one.check_code, other.check_code)
    if one.product != other.product:
        yield Difference(Kind.PRODUCT, "DeviceList", one.product, other.product)
        return
    yield from _keys("DeviceList ", one.lists, other.lists)
    for name, get in _IDENTITIES:
        yield from _plain(Kind.IDENTITY, name, get(one), get(other))
    for kind, suffix in _LISTS:
        key = f"huawei.com/{one.product}{suffix}"
        yield from _names(kind, key, one.lists.get(key, ""), other.lists.get(key, ""))
    yield from _faults(one, other, tolerance_ms)
    if [f.device for f in one.parsed.faults] != [f.device for f in other.parsed.faults] and one.faults == other.faults:
        yield Difference(Kind.VOLATILE, "order of the fault list", "another", "another")


_IDENTITIES: tuple[tuple[str, Callable[[Side], object]], ...] = (
    ("SuperPodID", lambda side: side.parsed and side.parsed.super_pod_id),
    ("ServerIndex", lambda side: side.parsed and side.parsed.server_index),
    ("RackID", lambda side: side.parsed and side.parsed.rack_id),
)


def _names(kind: Kind, key: str, theirs: str, ours: str) -> Iterable[Difference]:
    """One difference for each name that only one side lists."""
    there, here = {*theirs.split(",")} - {""}, {*ours.split(",")} - {""}
    for name in sorted(there ^ here):
        words = (_LISTED, ABSENT) if name in there else (ABSENT, _LISTED)
        yield Difference(kind, f"{key} {name}", *words, device=name)
    if theirs != ours and there == here:
        yield Difference(Kind.VOLATILE, f"order of {key}", theirs, ours)


def _faults(one: Side, other: Side, tolerance_ms: int) -> Iterable[Difference]:
    for key in sorted({**one.faults, **other.faults}, key=str):
        there, here = one.faults.get(key), other.faults.get(key)
        known = there or here
        assert known is not None
        name = f"{known.device} {known.text or '(no code)'}"
        if there is None or here is None:
            words = (there.level.text, ABSENT) if there else (ABSENT, known.level.text)
            kind = Kind.FAULT_MISSING if there else Kind.FAULT_EXTRA
            yield Difference(kind, name, *words, device=known.device, code=known.text)
        else:
            yield from _fault(name, there, here, tolerance_ms)
    for device, fault_type in sorted({*one.handling} & {*other.handling}):
        words = one.handling[device, fault_type], other.handling[device, fault_type]
        yield from _plain(Kind.FAULT_LEVEL, f"{device} {fault_type}", *words, device=device)


def _fault(name: str, there: Fault, here: Fault, tolerance_ms: int) -> Iterable[Difference]:
    """One code that both sides have."""
    about = there.device, there.text
    yield from _plain(Kind.FAULT_LEVEL, name, there.level.text, here.level.text, *about)
    yield from _plain(Kind.FAULT_TYPE, name, "+".join(sorted(there.types)), "+".join(sorted(here.types)), *about)
    yield from _plain(Kind.FAULT_SPELLING, name, there.text, here.text, *about)
    close = abs(there.since_ms - here.since_ms) <= tolerance_ms
    kind = Kind.VOLATILE if close else Kind.FAULT_TIME
    yield from _plain(kind, f"{name} fault_time", there.since_ms, here.since_ms, *about)


def _manual(one: Side, other: Side) -> Iterable[Difference]:
    if one.manual is None or other.manual is None:
        return  # that the key is missing is told already
    prefix = _prefix(one, other)
    for physical_id in sorted(one.manual ^ other.manual):
        words = (_LISTED, ABSENT) if physical_id in one.manual else (ABSENT, _LISTED)
        name = f"{prefix}-{physical_id}"
        yield Difference(Kind.MANUAL, f"{MANUAL_KEY} {name}", *words, device=name)


def _reasons(one: Side, other: Side, tolerance_ms: int) -> Iterable[Difference]:
    if one.reasons is None or other.reasons is None:
        words = [NOT_READABLE if side.reasons is None else "readable" for side in (one, other)]
        yield from _plain(Kind.REASON, REASON_KEY, *words)
        return
    prefix = _prefix(one, other)
    for key in sorted({**one.reasons, **other.reasons}):
        physical_id, code, level, upgrade_type = key
        there, here = one.reasons.get(key), other.reasons.get(key)
        close = there is not None and here is not None and abs(there - here) <= tolerance_ms
        device = f"{prefix}-{physical_id}"
        field = f"{REASON_KEY} {device} {code} {level} {upgrade_type}"
        yield from _plain(Kind.VOLATILE if close else Kind.REASON, field, there, here, device=device, code=code)


def _prefix(one: Side, other: Side) -> str:
    """First part of the names of chips that are known by number."""
    products = {one.product, other.product} - {""}
    return products.pop() if len(products) == 1 else "chip"


def _keys(where: str, theirs: Mapping[str, object], ours: Mapping[str, object]) -> Iterable[Difference]:
    for name in sorted(theirs.keys() ^ ours.keys()):
        words = ("there", ABSENT) if name in theirs else (ABSENT, "there")
        yield Difference(Kind.KEY, f"{where}{name}", *words)


def _entries(kind: Kind, where: str, theirs: Mapping[str, str], ours: Mapping[str, str]) -> Iterable[Difference]:
    for name in sorted({**theirs, **ours}):
        yield from _plain(kind, f"{where}{name}", theirs.get(name), ours.get(name))


def _plain(kind: Kind, field: str, theirs: object, ours: object, device: str = "", code: str = "") -> list[Difference]:
    """One difference if two values differ; None = not there."""
    if theirs == ours:
        return []
    there, here = (ABSENT if value is None else str(value) for value in (theirs, ours))
    return [Difference(kind, field, there, here, device, code)]
