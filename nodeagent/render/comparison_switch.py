"""The switch part of two device-info objects compared: `SwitchInfoCfg` of the A3 and the 950. Pure.

Records are told apart by code, switch chip and port, as in the map of times (lingqu 7); their driver times may differ.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from nodeagent.render.device_info import SWITCH_KEY
from nodeagent.render.difference import ABSENT, Difference, Kind

_NOT_READABLE = "not readable"
_LISTED = "listed"
_PLACE = ("AssembledFaultCode", "SwitchChipId", "SwitchPortId")


def compare_switches(theirs: object, ours: object, tolerance_ms: int) -> Iterable[Difference]:
    """Texts of the key on both sides; what is no text is a missing key and told elsewhere."""
    if not isinstance(theirs, str) or not isinstance(ours, str):
        return
    one, other = _parsed(theirs), _parsed(ours)
    if one is None or other is None:
        words = [_NOT_READABLE if side is None else "readable" for side in (one, other)]
        if words[0] != words[1]:
            yield Difference(Kind.SWITCH, SWITCH_KEY, *words)
        return
    for name in ("FaultLevel", "NodeStatus"):
        if one.get(name) != other.get(name):
            yield Difference(Kind.SWITCH, f"{SWITCH_KEY} {name}", _text(one.get(name)), _text(other.get(name)))
    if (one.get("FaultCode") is None) is not (other.get("FaultCode") is None):
        # The zero value: no library, so nothing is known (device-info 2).
        words = ["known" if side.get("FaultCode") is not None else "not known" for side in (one, other)]
        yield Difference(Kind.SWITCH, f"{SWITCH_KEY} FaultCode", *words)
    there, here = _records(one), _records(other)
    for name in sorted(there ^ here):
        words = [_LISTED, ABSENT] if name in there else [ABSENT, _LISTED]
        yield Difference(Kind.SWITCH, f"{SWITCH_KEY} {name}", *words)
    yield from _times(one, other, tolerance_ms)
    if one.get("UpdateTime") != other.get("UpdateTime"):
        yield Difference(
            Kind.VOLATILE, f"{SWITCH_KEY} UpdateTime", _text(one.get("UpdateTime")), _text(other.get("UpdateTime"))
        )


def _times(one: Mapping[str, Any], other: Mapping[str, Any], tolerance_ms: int) -> Iterable[Difference]:
    """Level and time of the records that both sides have."""
    there, here = _moments(one), _moments(other)
    for name in sorted(there.keys() & here.keys()):
        level, time_ms = there[name]
        our_level, our_time_ms = here[name]
        if level != our_level:
            yield Difference(Kind.SWITCH, f"{SWITCH_KEY} {name} level", level, our_level)
        if time_ms != our_time_ms:
            kind = Kind.VOLATILE if abs(time_ms - our_time_ms) <= tolerance_ms else Kind.SWITCH
            yield Difference(kind, f"{SWITCH_KEY} {name} fault_time", str(time_ms), str(our_time_ms))


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _records(switch: Mapping[str, Any]) -> set[str]:
    listed = switch.get("FaultCode")
    return {_record(each) for each in listed} if isinstance(listed, list) else set()


def _record(text: object) -> str:
    """`<code>_<chip>_<port>` of a record; what is none is taken as it is."""
    record = _parsed(text) if isinstance(text, str) else None
    return str(text) if record is None else "_".join(str(record.get(name)) for name in _PLACE)


def _moments(switch: Mapping[str, Any]) -> dict[str, tuple[str, int]]:
    listed = switch.get("FaultTimeAndLevelMap")
    found = {}
    for name, entry in listed.items() if isinstance(listed, dict) else []:
        if isinstance(entry, dict) and type(entry.get("fault_time")) is int:
            found[name] = (_text(entry.get("fault_level")), entry["fault_time"])
    return found


def _text(value: object) -> str:
    return ABSENT if value is None else str(value) or "empty"
