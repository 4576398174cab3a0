"""Would ClusterD take a node-info object (node-faults 9.1), and is it what we mean? Pure.

It shares no code with the renderer: it parses the finished text and writes it again by its own rules, so that a mistake
of the renderer does not hide here as well.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import datetime

from nodeagent.core.alarms import HEALTHY, NodeLevel
from nodeagent.core.errors import ContractError
from nodeagent.render.contract_text import INT64, canonical

MAX_BYTES = 1024 * 1024
"""Bytes of keys and values that the API server takes for one ConfigMap. 300 alarms are about 40 KiB."""

_NODE_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_CODE = re.compile(r"[0-9A-Z]{8}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_INNER = {"FaultDevList": list, "NodeStatus": str}
_DEVICE = {"DeviceType": str, "DeviceId": int, "FaultCode": list, "FaultLevel": str}
_OBJECT_MEMBERS = {"apiVersion", "kind", "metadata", "data"}


class NodeInfoBreach(ContractError):
    """An object breaks a rule of its consumers (node-faults 8, 9)."""

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"the node-info object breaks the contract: {problem}",
            "it was not sent; please report this with the object's text",
        )
        self.problem = problem


def judge_node_info(obj: Mapping[str, object]) -> str:
    """Why ClusterD would ignore this object (9.1); empty when it would take it.

    Go's decoder leaves a member that is missing or null at its zero value and passes over one that it does not know;
    the digest is over what it then writes.
    """
    try:
        _parsed(obj)
    except _Refused as refusal:
        return str(refusal)
    return ""


def published_time_s(obj: Mapping[str, object]) -> int:
    """`updateTime` in Unix seconds; 0 when there is none that is RFC 3339."""
    data = obj.get("data")
    text = data.get("updateTime") if isinstance(data, dict) else None
    if not isinstance(text, str) or _TIME.fullmatch(text) is None:
        return 0
    try:
        # A fraction has any number of digits in RFC 3339, and three or six to Python 3.10.
        return int(datetime.fromisoformat(re.sub(r"\.\d+", "", text).replace("Z", "+00:00")).timestamp())
    except (ValueError, OverflowError):
        return 0


def check_node_info(obj: Mapping[str, object], shadow: bool = False) -> None:
    """Check an object before it is sent: identity (8.1), digest, and levels that agree with the status (9.1).

    shadow: it is the one that no consumer may see. Raises NodeInfoBreach (a ContractError).
    """
    _check_identity(obj, shadow)
    data = obj.get("data")
    if not isinstance(data, dict) or set(data) != {"NodeInfo", "updateTime"}:
        raise NodeInfoBreach("the data keys are not exactly NodeInfo and updateTime")
    if not all(isinstance(text, str) for text in data.values()):
        raise NodeInfoBreach("a value is no text")
    if _size(data) >= MAX_BYTES:
        raise NodeInfoBreach(f"{_size(data)} bytes are more than the API server takes")
    try:
        inner = _parsed(obj)
    except _Refused as refusal:
        raise NodeInfoBreach(str(refusal)) from None
    if canonical({"NodeInfo": inner, "CheckCode": _digest(inner)}) != data["NodeInfo"]:
        raise NodeInfoBreach("NodeInfo is not in the form in which Go writes it, or has members that it does not know")
    if not published_time_s(obj):
        raise NodeInfoBreach(f"updateTime is not RFC 3339: {data['updateTime']!r}")
    _check_levels(inner)


class _Refused(Exception):
    """Why ClusterD ignores an object."""


def _parsed(obj: Mapping[str, object]) -> dict[str, object]:
    """The inner object as ClusterD has it after decoding. Raises _Refused."""
    data = obj.get("data")
    text = data.get("NodeInfo") if isinstance(data, dict) else None
    if not isinstance(text, str):
        raise _Refused("there is no NodeInfo")
    try:
        outer = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise _Refused("NodeInfo is not JSON") from None
    if not isinstance(outer, dict):
        raise _Refused("NodeInfo is not a JSON object")
    inner = _struct(outer.get("NodeInfo"), _INNER, "NodeInfo")
    devices = inner["FaultDevList"]
    if isinstance(devices, list):
        inner["FaultDevList"] = [_device(device) for device in devices]
    check_code = outer.get("CheckCode")
    if not isinstance(check_code, str) or not check_code:
        raise _Refused("there is no CheckCode")
    try:
        digest = _digest(inner)
    except UnicodeEncodeError:
        raise _Refused("NodeInfo holds half a surrogate pair") from None
    if check_code != digest:
        raise _Refused("the CheckCode does not fit the content")
    return inner


def _device(value: object) -> dict[str, object]:
    device = _struct(value, _DEVICE, "a device")
    codes = device["FaultCode"]
    if isinstance(codes, list):
        if not all(code is None or isinstance(code, str) for code in codes):
            raise _Refused("a FaultCode is no text")
        device["FaultCode"] = ["" if code is None else code for code in codes]
    return device


def _struct(value: object, kinds: Mapping[str, type], what: str) -> dict[str, object]:
    """The members that Go knows in their order, absent ones as its zero value (a list: null)."""
    value = {} if value is None else value
    if not isinstance(value, dict):
        raise _Refused(f"{what} is not a JSON object")
    found: dict[str, object] = {}
    for name, kind in kinds.items():
        member = value.get(name)
        if member is None:
            found[name] = None if kind is list else kind()
        elif type(member) is not kind or (kind is int and member not in INT64):
            raise _Refused(f"{name} of {what} has the wrong type")
        else:
            found[name] = member
    return found


def _no_constant(name: str) -> object:
    """NaN and the infinities, which Python takes and Go does not."""
    raise ValueError(name)


def _digest(inner: Mapping[str, object]) -> str:
    return hashlib.sha256(canonical(dict(inner)).encode()).hexdigest()


def _size(data: Mapping[str, str]) -> int:
    return sum(len(key.encode()) + len(text.encode("utf-8", "replace")) for key, text in data.items())


def _check_identity(obj: Mapping[str, object], shadow: bool) -> None:
    if obj.get("apiVersion") != "v1" or obj.get("kind") != "ConfigMap" or set(obj) - _OBJECT_MEMBERS:
        raise NodeInfoBreach("it is not a v1 ConfigMap with nothing but data")
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("namespace") != "mindx-dl":
        raise NodeInfoBreach("the namespace is not mindx-dl")
    name = str(metadata.get("name"))
    node_name = name.removeprefix("mindx-dl-nodeinfo-")
    if shadow:
        if not node_name.endswith("-shadow"):
            raise NodeInfoBreach(f"{name!r} is not the name of a shadow")
        node_name = node_name.removesuffix("-shadow")
    if name == node_name or len(node_name) > 230 or not _NODE_NAME.fullmatch(node_name):
        raise NodeInfoBreach(f"{name!r} is not the prefix followed by a node name")
    labels = metadata.get("labels")
    if shadow:
        if not isinstance(labels, dict) or "mx-consumer-cim" in labels:
            raise NodeInfoBreach("a shadow has the label of consumers")
    elif labels != {"mx-consumer-cim": "true"}:
        raise NodeInfoBreach("the labels are not exactly the one of consumers")


def _check_levels(inner: Mapping[str, object]) -> None:
    """ClusterD judges by the levels, Volcano by the status: they must agree (9.1)."""
    devices = inner["FaultDevList"]
    if not isinstance(devices, list):
        raise NodeInfoBreach("FaultDevList is null")
    worst: NodeLevel | None = None
    places = []
    for device in devices:
        try:
            level = NodeLevel.parse(device["FaultLevel"])
        except ValueError:
            raise NodeInfoBreach(f"there is no level {device['FaultLevel']!r}") from None
        codes = device["FaultCode"]
        if not codes or len(set(codes)) != len(codes) or not all(map(_CODE.fullmatch, codes)):
            raise NodeInfoBreach(f"{codes!r} are not different codes of eight characters")
        if not device["DeviceType"] or device["DeviceId"] not in range(256):
            raise NodeInfoBreach("a device has no type, or a number that is no byte")
        places.append((device["DeviceType"], device["DeviceId"]))
        worst = level if worst is None else max(worst, level)
    if len(set(places)) != len(places):
        raise NodeInfoBreach("a device is there twice")
    if inner["NodeStatus"] != (HEALTHY if worst is None else worst.status):
        raise NodeInfoBreach(f"NodeStatus {inner['NodeStatus']!r} does not fit the levels")
