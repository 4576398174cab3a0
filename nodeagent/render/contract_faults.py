"""Contract check of the fault list and its agreement with the unhealthy lists (device-info 4.3, 15.5, 15.6)."""

import re
from collections.abc import Collection

from nodeagent.core.levels import Level
from nodeagent.render.contract_text import (
    INT64,
    ContractBreach,
    canonical_text,
    integer,
    sorted_map,
    struct,
    text_of,
)

_KEY = "DeviceInfoCfg"
_MEMBERS = (
    "fault_type",
    "npu_name",
    "large_model_fault_level",
    "fault_level",
    "fault_handling",
    "fault_code",
    "fault_time_and_level_map",
)
_CHIP = "CardUnhealthy"
_NETWORK = "CardNetworkUnhealthy"
_CODE = re.compile(r"[0-9A-F]{1,10}")
_HARMLESS = {
    _CHIP: {Level.NORMAL, Level.NOT_HANDLE, Level.SUB_HEALTH, Level.PRE_SEPARATE},
    _NETWORK: {Level.NORMAL, Level.NOT_HANDLE},
}
"""Levels that do not by themselves demand a place in the unhealthy list (device-info 4.4)."""


def check_fault_list(
    text: str, prefix: str, unhealthy: Collection[str], network_unhealthy: Collection[str] | None
) -> None:
    """Check the `-Fault` text against itself and against the unhealthy lists.

    prefix: of the device names. network_unhealthy: None where the product has no such list. Raises ContractBreach.
    """
    elements = canonical_text(_KEY, text)
    if not isinstance(elements, list):
        raise ContractBreach(_KEY, 2, "the fault list is not an array")
    isolated: dict[str, Collection[str]] = {_CHIP: unhealthy, _NETWORK: network_unhealthy or ()}
    seen: dict[tuple[str, str], Level] = {}
    for element in elements:
        fault_type, name, level = _check_element(element, prefix)
        if (fault_type, name) in seen:
            raise ContractBreach(_KEY, 9, f"{name} has two elements of type {fault_type}")
        if fault_type == _NETWORK and (_CHIP, name) in seen:
            raise ContractBreach(_KEY, 9, f"the network element of {name} comes after its chip element")
        seen[fault_type, name] = level
        in_list = _parent(name, prefix) in isolated[fault_type]
        judged = fault_type == _CHIP or network_unhealthy is not None
        if judged and not in_list and level not in _HARMLESS[fault_type]:
            raise ContractBreach(_KEY, 5, f"{name} has level {level.text} but is in no unhealthy list")
    for fault_type, names in isolated.items():
        listed = {_parent(name, prefix) for kind, name in seen if kind == fault_type}
        for name in names:
            if name not in listed:
                raise ContractBreach(_KEY, 5, f"{name} is unhealthy but has no element of type {fault_type}")


def _parent(name: str, prefix: str) -> str:
    """The whole chip of a device name: a vNPU's name ends with the id of its chip."""
    return f"{prefix}-{name.rsplit('-', 1)[1]}"


def _check_element(element: object, prefix: str) -> tuple[str, str, Level]:
    parsed = struct(_KEY, element, "a member of the fault list", _MEMBERS)
    fault_type = text_of(_KEY, parsed["fault_type"], "fault_type")
    if fault_type not in (_CHIP, _NETWORK):
        raise ContractBreach(_KEY, 5, f"there is no fault type {fault_type!r}")
    name = text_of(_KEY, parsed["npu_name"], "npu_name")
    whole, vnpu = rf"{prefix}-\d+", rf"{prefix}-[0-9a-z._]+-\d+-\d+"
    if not re.fullmatch(rf"{whole}|{vnpu}", name, re.ASCII):
        raise ContractBreach(_KEY, 4, f"{name!r} is not the name of a {prefix} device")
    level = _level(parsed["fault_level"])
    if {parsed["large_model_fault_level"], parsed["fault_handling"]} != {level.text}:
        raise ContractBreach(_KEY, 5, f"the three levels of {name} differ")
    _check_codes(parsed, name, level)
    return fault_type, name, level


def _check_codes(parsed: dict[str, object], name: str, level: Level) -> None:
    code_text = text_of(_KEY, parsed["fault_code"], "fault_code")
    codes = code_text.split(",") if code_text else []
    times = sorted_map(_KEY, parsed["fault_time_and_level_map"], "fault_time_and_level_map")
    if len(set(codes)) != len(codes):
        raise ContractBreach(_KEY, 9, f"a code of {name} is there twice")
    # The consumer looks the codes up by their exact text: a code without its entry has a wrong level and no time.
    if set(codes) != set(times):
        raise ContractBreach(_KEY, 6, f"the codes of {name} and the keys of its map differ")
    for code, entry in times.items():
        if not _CODE.fullmatch(code):
            raise ContractBreach(_KEY, 6, f"{code!r} of {name} is not an upper-case hexadecimal code")
        moment = struct(_KEY, entry, f"the map entry of {code}", ("fault_time", "fault_level"))
        integer(_KEY, moment["fault_time"], "fault_time", INT64)
        if _level(moment["fault_level"]) > level:
            raise ContractBreach(_KEY, 6, f"{code} of {name} is more serious than its element")


def _level(value: object) -> Level:
    text = text_of(_KEY, value, "fault_level")
    try:
        return Level.parse(text)
    except ValueError:
        raise ContractBreach(_KEY, 6, f"there is no level {text!r}") from None
