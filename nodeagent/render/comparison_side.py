"""One of two device-info objects that are compared, taken apart: what its consumers read, and what is around it.

Whatever the object holds, this never raises: what cannot be read is a problem of that object, in words.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from nodeagent.core.errors import ReadBackError
from nodeagent.core.levels import Level, Plane
from nodeagent.core.model import Reason
from nodeagent.render.device_info import DEVICE_KEY, LABELS, REASON_KEY, SHADOW_LABELS
from nodeagent.render.faults import CHIP_FAULT, NETWORK_FAULT
from nodeagent.render.operator_fields import manual_ids, upgrade_reasons
from nodeagent.render.reading import ParsedDeviceInfo, ParsedFault, parse_device_info, published_update_time

NOT_READABLE = "not readable"
_NO_REASONS = ("", "{}")


@dataclass(frozen=True, slots=True)
class Fault:
    """One code of one device, its elements taken together.

    types: fault types it is listed under. level: the most serious. since_ms: Unix ms of the first element, 0 = unknown.
    """

    device: str
    text: str
    types: frozenset[str]
    level: Level
    since_ms: int


@dataclass(frozen=True, slots=True)
class Side:
    """One object. parsed: None when ClusterD would refuse it, for the reason in `problem`.

    lists: the members of DeviceList as they are. faults: by device and code (its number, or the text of what is no
    code). handling: the level words of each element by device and fault type, one word when all three agree.
    manual: physical ids, None = the field is missing. reasons: by physical id, code, level and type, with the latest
    moment in Unix ms; None = not readable.
    """

    labels: Mapping[str, str]
    data: Mapping[str, object]
    parsed: ParsedDeviceInfo | None
    problem: str
    update_time_s: int
    lists: Mapping[str, str] = field(default_factory=dict)
    faults: Mapping[tuple[str, int | str], Fault] = field(default_factory=dict)
    handling: Mapping[tuple[str, str], str] = field(default_factory=dict)
    manual: frozenset[int] | None = None
    reasons: Mapping[tuple[int, str, str, str], int] | None = None

    @property
    def check_code(self) -> str:
        """The digest of an acceptable object."""
        return str(json.loads(str(self.data[DEVICE_KEY]))["CheckCode"])

    @property
    def product(self) -> str:
        """E.g. `Ascend910`; empty when the object is not acceptable."""
        return "" if self.parsed is None else self.parsed.product

    def reasons_of(self, physical_id: int) -> list[tuple[str, str, str]]:
        """Code, level and type of the upgrade reasons of one chip."""
        return [key[1:] for key in self.reasons or {} if key[0] == physical_id]


def side_of(obj: Mapping[str, object]) -> Side:
    """Take a ConfigMap apart. A shadow has the labels of a live object here: that it differs is its purpose."""
    found = obj.get("data")
    data = {str(key): value for key, value in found.items()} if isinstance(found, dict) else {}
    labels = _labels(obj)
    manual, reasons = manual_ids(data), _reasons(data)
    update_time_s = published_update_time(data)
    try:
        parsed = parse_device_info(data)
    except ReadBackError as error:
        return Side(labels, data, None, error.sentence, update_time_s, manual=manual, reasons=reasons)
    lists = _lists(data)
    text = lists.get(f"huawei.com/{parsed.product}-Fault")
    if text is None and parsed.product == "Ascend310":
        text = lists.get("huawei.com/Ascend310P-Fault")
    return Side(
        labels, data, parsed, "", update_time_s, lists, _faults(parsed.faults), _handling(text or "[]"), manual, reasons
    )


def _labels(obj: Mapping[str, object]) -> dict[str, str]:
    metadata = obj.get("metadata")
    found = metadata.get("labels") if isinstance(metadata, dict) else None
    labels = {str(name): str(value) for name, value in found.items()} if isinstance(found, dict) else {}
    return dict(LABELS) if labels == SHADOW_LABELS else labels


def _lists(data: Mapping[str, object]) -> dict[str, str]:
    """The members of DeviceList of an object that was parsed before."""
    lists: dict[str, str] = json.loads(str(data[DEVICE_KEY]))["DeviceInfo"]["DeviceList"]
    return lists


def _faults(parsed: Iterable[ParsedFault]) -> dict[tuple[str, int | str], Fault]:
    found: dict[tuple[str, int | str], Fault] = {}
    for each in parsed:
        key: tuple[str, int | str] = (each.device, each.code_text if each.code is None else each.code)
        kind = NETWORK_FAULT if each.plane is Plane.NETWORK else CHIP_FAULT
        before = found.get(key)
        if before is None:
            found[key] = Fault(each.device, each.code_text, frozenset({kind}), each.level, each.since_ms)
        else:
            types, level = before.types | {kind}, max(before.level, each.level)
            found[key] = Fault(each.device, before.text, types, level, before.since_ms)
    return found


def _handling(text: str) -> dict[tuple[str, str], str]:
    """Volcano reads the words of the element, ClusterD those of each code (device-info 11)."""
    words: dict[tuple[str, str], str] = {}
    for element in json.loads(text):
        three = [str(element.get(f"{name}")) for name in ("fault_handling", "fault_level", "large_model_fault_level")]
        key = (element["npu_name"], element["fault_type"])
        words[key] = three[0] if len(set(three)) == 1 else " / ".join(three)
    return words


def _reasons(data: Mapping[str, object]) -> dict[tuple[int, str, str, str], int] | None:
    text = data.get(REASON_KEY)
    found = upgrade_reasons(data)
    if not found and isinstance(text, str) and text.strip() not in _NO_REASONS:
        return None
    latest: dict[tuple[int, str, str, str], int] = {}
    for physical_id, reason in found:
        key = _reason_key(physical_id, reason)
        latest[key] = max(reason.upgrade_time_ms, latest.get(key, reason.upgrade_time_ms))
    return latest


def _reason_key(physical_id: int, reason: Reason) -> tuple[int, str, str, str]:
    return physical_id, reason.code_text.lower(), reason.level.text, reason.upgrade_type.value
