"""Reading a device-info object as ClusterD reads it (device-info 11.1).

Used on our own last object at start. The content may be anybody's: whatever it is, the answer is either what
the consumers would take from it or a `ReadBackError`.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from nodeagent.core.codes import parse_code
from nodeagent.core.errors import ReadBackError
from nodeagent.core.levels import Level, Plane, plane_of
from nodeagent.core.observation import CarriedFault
from nodeagent.render.gojson import go_json, go_map

INT32 = range(-(2**31), 2**31)
INT64 = range(-(2**63), 2**63)

_PRODUCTS = ("npu", "Ascend910", "Ascend310P", "Ascend310")
_PLANES = {"CardUnhealthy": Plane.CHIP, "CardNetworkUnhealthy": Plane.NETWORK}
_WHOLE = re.compile(r"[A-Za-z0-9]+-([0-9]{1,9})")
_VNPU = re.compile(r"[A-Za-z0-9]+-[A-Za-z0-9._]+-[0-9]{1,9}-([0-9]{1,9})")


@dataclass(frozen=True, slots=True)
class ParsedFault:
    """One code of one device as ClusterD splits it from its element.

    code: None where the element has no code or one that is not hexadecimal. since_ms: Unix ms, 0 = unknown.
    """

    device: str
    physical_id: int
    plane: Plane
    code_text: str
    code: int | None
    level: Level
    since_ms: int


@dataclass(frozen=True, slots=True)
class ParsedDeviceInfo:
    """What one object says. product: e.g. `Ascend910`; update_time_s: Unix seconds; rack_id: None = not said."""

    product: str
    available: tuple[str, ...]
    unhealthy: tuple[str, ...]
    network_unhealthy: tuple[str, ...]
    recovering: tuple[str, ...]
    faults: tuple[ParsedFault, ...]
    update_time_s: int
    super_pod_id: int
    server_index: int
    rack_id: int | None

    def carried(self) -> tuple[CarriedFault, ...]:
        """The faults to keep until the chips answer for themselves; vNPUs of one chip count once."""
        found: dict[tuple[int, int], CarriedFault] = {}
        for fault in self.faults:
            if fault.code is not None:
                carried = CarriedFault(fault.physical_id, fault.code, fault.level, fault.since_ms)
                found.setdefault((fault.physical_id, fault.code), carried)
        return tuple(found.values())


def parse_device_info(data: Mapping[str, object]) -> ParsedDeviceInfo:
    """`data` of a device-info ConfigMap as ClusterD accepts it: types, digest, one product (device-info 11.1).

    Stricter than ClusterD in one point: a fault list that cannot be read is an error here, not "no faults".
    Raises ReadBackError, and nothing else, for all content that is not acceptable.
    """
    document = _document(data)
    info = _member(document, "DeviceInfo")
    members = _member(info, "DeviceList")
    lists = {key: value for key, value in members.items() if isinstance(value, str)}
    if len(lists) != len(members):
        raise ReadBackError("a value of DeviceList is not a string")
    update_time_s = _integer(info, "UpdateTime", INT64)
    if document.get("CheckCode") != _digest(lists, update_time_s):
        raise ReadBackError("the CheckCode of DeviceInfoCfg does not fit its content")
    product = _product(lists)
    key = f"huawei.com/{product}"
    fault_text = lists.get(f"{key}-Fault")
    if fault_text is None and product == "Ascend310":
        # Upstream writes the list of a 310 under the key of the 310P (device-info 4.1).
        fault_text = lists.get("huawei.com/Ascend310P-Fault")
    return ParsedDeviceInfo(
        product=product,
        available=_names(lists.get(key, "")),
        unhealthy=_names(lists.get(f"{key}-Unhealthy", "")),
        network_unhealthy=_names(lists.get(f"{key}-NetworkUnhealthy", "")),
        recovering=_names(lists.get(f"{key}-Recovering", "")),
        faults=_faults(fault_text or "[]"),
        update_time_s=update_time_s,
        super_pod_id=_integer(document, "SuperPodID", INT32, 0),
        server_index=_integer(document, "ServerIndex", INT32, 0),
        rack_id=_integer(document, "RackID", INT32) if "RackID" in document else None,
    )


def published_update_time(data: Mapping[str, object]) -> int:
    """`UpdateTime` in Unix seconds even of an object that is not acceptable otherwise; 0 when there is none.

    Volcano checks no digest, so it may have used this value: our next one must exceed it (device-info 11.2).
    A value that leaves no room for a greater one counts as none.
    """
    try:
        update_time_s = _integer(_member(_document(data), "DeviceInfo"), "UpdateTime", INT64)
    except ReadBackError:
        return 0
    return update_time_s if 0 <= update_time_s < INT64.stop - 1 else 0


def _document(data: Mapping[str, object]) -> dict[str, object]:
    text = data.get("DeviceInfoCfg")
    if not isinstance(text, str):
        raise ReadBackError("there is no DeviceInfoCfg")
    document = _json(text, "DeviceInfoCfg")
    if not isinstance(document, dict):
        raise ReadBackError("DeviceInfoCfg is not a JSON object")
    return document


def _json(text: str, what: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise ReadBackError(f"{what} is not JSON") from None


def _digest(lists: Mapping[str, object], update_time_s: int) -> str:
    try:
        canonical = go_json({"DeviceList": go_map(lists), "UpdateTime": update_time_s})
        return hashlib.sha256(canonical.encode()).hexdigest()
    except UnicodeEncodeError:
        raise ReadBackError("DeviceInfoCfg holds half a surrogate pair") from None


def _member(mapping: Mapping[str, object], name: str) -> dict[str, object]:
    value = mapping.get(name)
    if not isinstance(value, dict):
        raise ReadBackError(f"{name} is missing or not a JSON object")
    return value


def _integer(mapping: Mapping[str, object], name: str, allowed: range, default: int | None = None) -> int:
    value = mapping.get(name, default)
    if type(value) is not int or value not in allowed:  # bool is an int to Python, not to Go
        raise ReadBackError(f"{name} is missing or not an integer of its range")
    return value


def _product(lists: Mapping[str, str]) -> str:
    found = [product for product in _PRODUCTS if f"huawei.com/{product}" in lists]
    if len(found) != 1:
        raise ReadBackError("DeviceList does not have the keys of exactly one product")
    return found[0]


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()


def _physical_id_of(device: str) -> int:
    match = _WHOLE.fullmatch(device) or _VNPU.fullmatch(device)
    if match is None:
        raise ReadBackError("the fault list has a device name of unknown form")
    return int(match.group(1))


def _faults(text: str) -> tuple[ParsedFault, ...]:
    elements = _json(text, "the fault list")
    if not isinstance(elements, list):
        raise ReadBackError("the fault list is not a JSON array")
    return tuple(fault for element in elements for fault in _split(element))


def _split(element: object) -> list[ParsedFault]:
    if not isinstance(element, dict):
        raise ReadBackError("a member of the fault list is not a JSON object")
    device = element.get("npu_name")
    codes = element.get("fault_code")
    plane = _PLANES.get(str(element.get("fault_type")))
    times = element.get("fault_time_and_level_map") or {}
    if not isinstance(device, str) or not isinstance(codes, str) or not isinstance(times, dict) or plane is None:
        raise ReadBackError("a member of the fault list lacks name, codes, type or times")
    physical_id = _physical_id_of(device)
    faults = []
    for code_text in codes.replace(" ", "").split(","):
        # A code without an entry has the level of its element and no time (device-info 11.1).
        entry = times.get(code_text, {"fault_level": element.get("fault_level"), "fault_time": 0})
        if not isinstance(entry, dict):
            raise ReadBackError("a member of fault_time_and_level_map is not a JSON object")
        code, own_plane = _code(code_text, plane)
        since_ms = _integer(entry, "fault_time", INT64)
        faults.append(ParsedFault(device, physical_id, own_plane, code_text, code, _level(entry), since_ms))
    return faults


def _code(code_text: str, plane: Plane) -> tuple[int | None, Plane]:
    try:
        code = parse_code(code_text)
    except ValueError:
        return None, plane
    # Codes of the hyper-plane are published among the chip faults.
    hyperplane = plane is Plane.CHIP and plane_of(code) is Plane.HYPERPLANE
    return code, Plane.HYPERPLANE if hyperplane else plane


def _level(entry: Mapping[str, object]) -> Level:
    try:
        return Level.parse(str(entry.get("fault_level")))
    except ValueError:
        raise ReadBackError("the fault list has a level that does not exist") from None
