"""Self-check of an object before it is sent: would its consumers read what we mean (device-info 11, 15)?

It shares no code with the renderer: it parses the finished text, writes it again by its own rules and
compares, so that a mistake of the renderer does not hide here as well.
"""

import hashlib
import re
from collections.abc import Collection, Mapping

from nodeagent.core.levels import Level
from nodeagent.render.contract_faults import check_fault_list
from nodeagent.render.contract_text import (
    INT32,
    INT64,
    ContractBreach,
    canonical,
    canonical_text,
    integer,
    members,
    sorted_map,
    struct,
    text_of,
)

MAX_BYTES = 1024 * 1024
"""Bytes of keys and values that the API server takes for one ConfigMap (device-info 12)."""

_DEVICE = "DeviceInfoCfg"
_SWITCH = "SwitchInfoCfg"
_MANUAL = "ManuallySeparateNPU"
_REASONS = "UpgradeFaultReason"
_ALWAYS = (_DEVICE, _MANUAL, _REASONS, "Description")

_NETWORK_LISTS = ("-NetworkUnhealthy", "-Recovering")
_SUFFIXES: Mapping[str, tuple[str, ...]] = {
    "Ascend310": (),
    "Ascend310P": (),
    "Ascend910": _NETWORK_LISTS,
    "npu": _NETWORK_LISTS,
}
_NODE_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_REASON_CODE = re.compile(r"[0-9a-f]{1,10}|AutofillFaultCode")
_UPGRADE_TYPES = ("FaultDuration", "FaultFrequency", "FaultAutofill")
_UNSIGNED = range(2**63)
_SWITCH_LEVELS = ("", "NotHandle", "SubHealthFault", "RestartRequest", "PreSeparate", "Separate")
_SWITCH_STATUSES = ("", "Healthy", "SubHealthy", "PreSeparate", "UnHealthy")


def check_object(
    obj: Mapping[str, object], newer_than_s: int = 0, keep_keys: Collection[str] = (), shadow: bool = False
) -> None:
    """Check a complete ConfigMap: identity, then its data as `check_device_info` does.

    shadow: it is the one that no consumer may see.

    Raises ContractBreach (a ContractError) that names the data key and the rule of device-info 15.
    """
    metadata = members("metadata", obj.get("metadata"), "metadata")
    name = text_of("metadata", metadata.get("name"), "the name")
    node_name = name.removeprefix("mindx-dl-deviceinfo-")
    if shadow:
        if not node_name.endswith("-shadow"):
            raise ContractBreach("metadata", 1, f"{name!r} is not the name of a shadow")
        node_name = node_name.removesuffix("-shadow")
    if obj.get("apiVersion") != "v1" or obj.get("kind") != "ConfigMap" or set(obj) - _OBJECT_MEMBERS:
        raise ContractBreach("metadata", 1, "it is not a v1 ConfigMap with nothing but data")
    if metadata.get("namespace") != "kube-system":
        raise ContractBreach("metadata", 1, "the namespace is not kube-system")
    if not name.startswith("mindx-dl-deviceinfo-") or len(node_name) > 230 or not _NODE_NAME.fullmatch(node_name):
        raise ContractBreach("metadata", 1, f"{name!r} is not the prefix followed by a node name")
    labels = metadata.get("labels")
    if shadow:
        if not isinstance(labels, dict) or "mx-consumer-cim" in labels:
            raise ContractBreach("metadata", 1, "a shadow has the label of consumers")
    elif labels != {"mx-consumer-cim": "true"}:
        raise ContractBreach("metadata", 1, "the labels are not exactly the one of consumers")
    data = members("data", obj.get("data"), "data")
    texts = {key: text_of(key, value, "the value") for key, value in data.items()}
    check_device_info(texts, newer_than_s, keep_keys)


_OBJECT_MEMBERS = {"apiVersion", "kind", "metadata", "data"}


def check_device_info(data: Mapping[str, str], newer_than_s: int = 0, keep_keys: Collection[str] = ()) -> None:
    """Check `data` of a device-info ConfigMap as ClusterD and Volcano would read it (device-info 11.1, 11.2, 15).

    newer_than_s: `UpdateTime` of the previous write in Unix seconds. keep_keys: data keys of the previous write.
    Raises ContractBreach (a ContractError) that names the data key and the rule of device-info 15.
    """
    for key in (*_ALWAYS, *keep_keys):
        if key not in data:
            raise ContractBreach(key, 8, "the key is missing")
    try:
        size = sum(len(key.encode()) + len(text.encode()) for key, text in data.items())
    except UnicodeEncodeError:
        raise ContractBreach("data", 7, "a text holds half a surrogate pair") from None
    if size >= MAX_BYTES:
        raise ContractBreach("data", 12, f"{size} bytes are more than the API server takes")
    prefix = _check_device_info(data[_DEVICE], newer_than_s)
    _check_names(_MANUAL, data[_MANUAL], prefix)
    _check_reasons(data[_REASONS], prefix)
    if _SWITCH in data:
        _check_switch(data[_SWITCH])


def _check_device_info(text: str, newer_than_s: int) -> str:
    """Check `DeviceInfoCfg`; returns the prefix of the node's device names."""
    if text in ("", "null"):
        # Volcano's informer does not survive these two (device-info 11.2).
        raise ContractBreach(_DEVICE, 8, "it is empty or null")
    document = members(_DEVICE, canonical_text(_DEVICE, text), "the text")
    order = ["DeviceInfo", "SuperPodID", "ServerIndex", "CheckCode"]
    struct(_DEVICE, document, "the text", order + (["RackID"] if "RackID" in document else []))
    for name in ("SuperPodID", "ServerIndex"):
        integer(_DEVICE, document[name], name, INT32)
    info = struct(_DEVICE, document["DeviceInfo"], "DeviceInfo", ("DeviceList", "UpdateTime"))
    update_time_s = integer(_DEVICE, info["UpdateTime"], "UpdateTime", INT64)
    if update_time_s <= max(0, newer_than_s):
        # Volcano ignores what is not newer, and 0 always (device-info 11.2).
        raise ContractBreach(_DEVICE, 3, f"UpdateTime {update_time_s} does not exceed the previous {newer_than_s}")
    lists = {
        key: text_of(_DEVICE, value, key)
        for key, value in sorted_map(_DEVICE, info["DeviceList"], "DeviceList").items()
    }
    if document["CheckCode"] != hashlib.sha256(canonical(info).encode()).hexdigest():
        raise ContractBreach(_DEVICE, 7, "CheckCode is not the digest of DeviceInfo")
    product = _check_lists(lists)
    if "RackID" in document:
        integer(_DEVICE, document["RackID"], "RackID", INT32)
        if product != "npu":
            raise ContractBreach(_DEVICE, 4, "only a 950 has a RackID")
    return product


def _check_lists(lists: Mapping[str, str]) -> str:
    """Check the keys and the comma lists; returns the product, which is the prefix of its device names as well."""
    found = [product for product in _SUFFIXES if f"huawei.com/{product}" in lists]
    if len(found) != 1:
        raise ContractBreach(_DEVICE, 4, "the keys are not those of exactly one product")
    product = found[0]
    key = f"huawei.com/{product}"
    if set(lists) != {key, f"{key}-Unhealthy", f"{key}-Fault", *(key + suffix for suffix in _SUFFIXES[product])}:
        raise ContractBreach(_DEVICE, 4, f"the keys of {product} are not complete or there are others")
    found_names = {
        suffix: _check_names(_DEVICE, lists[key + suffix], product, in_order=True)
        for suffix in ("", "-Unhealthy", *_SUFFIXES[product])
    }
    unhealthy = found_names["-Unhealthy"]
    both = set(found_names[""]) & set(unhealthy)
    if both:
        raise ContractBreach(_DEVICE, 5, f"{min(both)} is available and unhealthy")
    check_fault_list(lists[f"{key}-Fault"], product, unhealthy, found_names.get("-NetworkUnhealthy"))
    return product


def _check_names(data_key: str, text: str, prefix: str, in_order: bool = False) -> list[str]:
    names = text.split(",") if text else []
    for name in names:
        # One name of another form makes the whole list read as empty (device-info 11.2).
        if not re.fullmatch(rf"{prefix}-\d{{1,9}}", name, re.ASCII):
            raise ContractBreach(data_key, 4, f"{name!r} is not {prefix}-<number>")
    if len(set(names)) != len(names) or (in_order and names != sorted(names)):
        raise ContractBreach(data_key, 9, "the names are not sorted or one is there twice")
    return names


def _check_reasons(text: str, prefix: str) -> None:
    devices = sorted_map(_REASONS, canonical_text(_REASONS, text), "the text")
    for device, reasons in devices.items():
        _check_names(_REASONS, device, prefix)
        if not isinstance(reasons, list) or not reasons:
            raise ContractBreach(_REASONS, 2, f"{device} has no list of reasons")
        keys = [_reason_key(reason) for reason in reasons]
        if keys != sorted(set(keys)):
            raise ContractBreach(_REASONS, 9, f"the reasons of {device} are not sorted or one is there twice")


def _reason_key(value: object) -> tuple[str, str, str]:
    reason = struct(_REASONS, value, "a reason", ("upgrade_time", "fault_code", "fault_level", "upgrade_type"))
    integer(_REASONS, reason["upgrade_time"], "upgrade_time", INT64)
    code, level, upgrade_type = (
        text_of(_REASONS, reason[name], name) for name in ("fault_code", "fault_level", "upgrade_type")
    )
    known_level = level in {known.text for known in Level}
    if not _REASON_CODE.fullmatch(code) or not known_level or upgrade_type not in _UPGRADE_TYPES:
        raise ContractBreach(_REASONS, 6, f"the reason {code!r}, {level!r}, {upgrade_type!r} does not exist")
    return code, level, upgrade_type


def _check_switch(text: str) -> None:
    order = ("FaultCode", "FaultLevel", "UpdateTime", "NodeStatus", "FaultTimeAndLevelMap")
    switch = struct(_SWITCH, canonical_text(_SWITCH, text), "the text", order)
    integer(_SWITCH, switch["UpdateTime"], "UpdateTime", INT64)
    if switch["FaultLevel"] not in _SWITCH_LEVELS or switch["NodeStatus"] not in _SWITCH_STATUSES:
        raise ContractBreach(_SWITCH, 6, "the level or the status does not exist")
    codes, times = switch["FaultCode"], switch["FaultTimeAndLevelMap"]
    if codes is None and times is None:
        return
    if not isinstance(codes, list):
        raise ContractBreach(_SWITCH, 2, "FaultCode is not an array")
    for code in codes:
        fault = members(_SWITCH, canonical_text(_SWITCH, text_of(_SWITCH, code, "a FaultCode")), "a FaultCode")
        text_of(_SWITCH, fault.pop("AssembledFaultCode", ""), "AssembledFaultCode")
        for name, value in fault.items():
            # ClusterD reads ids as unsigned and times as int64 (lingqu-switch-faults 9.1).
            integer(_SWITCH, value, name, _UNSIGNED)
    for key, entry in sorted_map(_SWITCH, times, "FaultTimeAndLevelMap").items():
        moment = struct(_SWITCH, entry, f"the entry of {key}", ("fault_time", "fault_level"))
        integer(_SWITCH, moment["fault_time"], "fault_time", INT64)
        if moment["fault_level"] not in _SWITCH_LEVELS:
            raise ContractBreach(_SWITCH, 6, f"the level of {key} does not exist")
