"""A public fault message, the ConfigMap that carries it, and reading one back (node-faults 11.4, 12, 13). Pure."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nodeagent.core.errors import ContractError
from nodeagent.core.storage import StorageClient, StorageFault
from nodeagent.policy.public_fault import LAST_CHIP_ID, MOST_CHIPS, Due, usable_ids
from nodeagent.policy.public_fault_memory import Told
from nodeagent.render.gojson import go_json

NAMESPACE = "mindx-dl"
DATA_KEY = "PublicFault"
LABELS: Mapping[str, str] = {"mc-consumer-publicfault": "true"}
SHADOW_LABELS: Mapping[str, str] = {"app.kubernetes.io/managed-by": "nodeagent"}
"""A shadow object lacks the label that ClusterD selects on, so nobody acts on it."""
FAULT_TYPE = "Node"
"""Both clients are parts of a node (node-faults 11.4)."""
EARLIEST_MS, LATEST_MS = 1_735_689_600_000, 9_999_999_999_999
"""Bounds of time stamps: 2025-01-01, and 13 digits (node-faults 13.1)."""

_VERSION = "1.0"
_INFLUENCE = {"nodeName": str, "nodeSN": str, "deviceIds": [int]}
_FAULT = {
    "faultId": str,
    "faultType": str,
    "faultCode": str,
    "faultTime": int,
    "assertion": str,
    "faultLocation": {},
    "influence": [_INFLUENCE],
    "description": str,
}
_MESSAGE = {"id": str, "timestamp": int, "version": str, "resource": str, "faults": [_FAULT]}
"""Members and their types (node-faults 13.1): Go's decoder takes a text of exactly these types, or without some."""
_LONGEST_NAME = 253
_ID = re.compile(r"[a-zA-Z0-9\-_.]{8,128}", re.ASCII)
_CODE = re.compile(r"[0-9]{9}", re.ASCII)
_NODE_NAME = re.compile(r"[a-z0-9]([a-z0-9\-.]{0,251}[a-z0-9])?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Message:
    """One message. document: the members in the order of node-faults 13.4."""

    client: StorageClient
    document: Mapping[str, Any]

    @property
    def id(self) -> str:
        """The id, another one for each message."""
        return str(self.document["id"])

    @property
    def text(self) -> str:
        """The JSON text."""
        return go_json(self.document)


@dataclass(frozen=True, slots=True)
class LastWord:
    """What our last object says. parsed: ClusterD can read it, so that it takes the next update (node-faults 13.4)."""

    parsed: bool
    message_id: str
    told: Mapping[StorageFault, Told]


def message_of(due: Due, node_name: str, message_id: str, now_wall_ms: int) -> Message:
    """The message with this content. now_wall_ms: Unix milliseconds.

    A node whose clock stands before 2025 would be refused entirely, so its time stamps are lifted to the bound.
    Raises ContractError when ClusterD would not take the message, or not all of it.
    """
    faults: list[dict[str, Any]] = [
        {
            "faultId": telling.fault.fault_id(node_name),
            "faultType": FAULT_TYPE,
            "faultCode": telling.fault.code,
            "faultTime": _stamp(telling.fault_time_ms),
            "assertion": telling.assertion.value,
            "faultLocation": {},
            "influence": [{"nodeName": node_name, "nodeSN": "", "deviceIds": list(telling.device_ids)}],
            "description": "",
        }
        for telling in due.tellings
    ]
    document = {
        "id": message_id,
        "timestamp": _stamp(now_wall_ms),
        "version": _VERSION,
        "resource": due.client.resource,
        "faults": faults,
    }
    check_message(document)
    return Message(due.client, document)


def with_id(message: Message, message_id: str) -> Message:
    """The same content as another message."""
    return Message(message.client, {**message.document, "id": message_id})


def object_name(client: StorageClient, node_name: str, shadow: bool = False) -> str:
    """Name of the ConfigMap of a client (decision 28), or of its shadow.

    The API server takes 253 characters; the end of a longer name gives way to a digest of the node name.
    """
    suffix = "-shadow" if shadow else ""
    name = f"nodeagent-publicfault-{client.value}-{node_name}"
    if len(name) + len(suffix) > _LONGEST_NAME:
        digest = hashlib.sha256(node_name.encode()).hexdigest()[:16]
        name = name[: _LONGEST_NAME - len(suffix) - len(digest) - 1].rstrip("-.") + "-" + digest
    return name + suffix


def config_map(message: Message, node_name: str, shadow: bool = False) -> dict[str, object]:
    """The complete ConfigMap that tells this message (node-faults 13.4), or its shadow."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": object_name(message.client, node_name, shadow),
            "namespace": NAMESPACE,
            "labels": dict(SHADOW_LABELS if shadow else LABELS),
        },
        "data": {DATA_KEY: message.text},
    }


def last_word(obj: Mapping[str, object], client: StorageClient, node_name: str) -> LastWord:
    """What our object says, whoever wrote it. Faults that are not ours or make no sense are not told of."""
    data = obj.get("data")
    text = data.get(DATA_KEY) if isinstance(data, dict) else None
    try:
        document = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or not _fits(document, _MESSAGE):
        return LastWord(False, "", {})
    faults, stamp, message_id = document.get("faults"), document.get("timestamp"), document.get("id")
    told: dict[StorageFault, Told] = {}
    # A refused message changed nothing; what breaks a rule here was not written by us.
    if (
        isinstance(stamp, int)
        and _is_stamp(stamp)
        and document.get("resource") == client.resource
        and isinstance(faults, list)
    ):
        by_id = {fault.fault_id(node_name): fault for fault in client.faults}
        for entry in faults:
            found = _told(entry, by_id, stamp)
            if found is not None:
                told[found.fault] = found
    return LastWord(True, message_id if isinstance(message_id, str) else "", told)


def check_message(document: Mapping[str, Any]) -> None:
    """Refuse what ClusterD would refuse in whole or in part (node-faults 13.1). Raises ContractError."""
    _want(_ID.fullmatch(document["id"]), "the id")
    _want(_is_stamp(document["timestamp"]), "the time stamp")
    _want(document["resource"] in {client.resource for client in StorageClient}, "the resource")
    _want(1 <= len(document["faults"]) <= len(StorageFault), "the number of faults")
    for fault in document["faults"]:
        _want(_ID.fullmatch(fault["faultId"]), "a fault id")
        _want(_CODE.fullmatch(fault["faultCode"]), "a fault code")
        _want(_is_stamp(fault["faultTime"]), "the time of a fault")
        _want(fault["assertion"] in ("occur", "recover"), "an assertion")
        for influence in fault["influence"]:
            _want(_NODE_NAME.fullmatch(influence["nodeName"]), f"the node name {influence['nodeName']!r}")
            ids = influence["deviceIds"]
            _want(1 <= len(ids) <= MOST_CHIPS and len(set(ids)) == len(ids), "the number of chips")
            _want(all(0 <= number <= LAST_CHIP_ID for number in ids), "a chip id")


def _want(holds: object, what: str) -> None:
    if not holds:
        raise ContractError(
            f"{what} of a public fault message breaks a rule of node-faults 13.1",
            "the message was not sent; please report this",
        )


def _stamp(wall_ms: int) -> int:
    return min(max(wall_ms, EARLIEST_MS), LATEST_MS)


def _is_stamp(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and EARLIEST_MS <= value <= LATEST_MS


def _fits(value: object, shape: Any) -> bool:
    """Whether Go's decoder takes the value for the shape; null leaves what is there."""
    if value is None:
        return True
    if isinstance(shape, dict):
        return isinstance(value, dict) and all(
            _fits(value[name], kind) for name, kind in shape.items() if name in value
        )
    if isinstance(shape, list):
        return isinstance(value, list) and all(_fits(each, shape[0]) for each in value)
    return isinstance(value, shape) and not isinstance(value, bool)


def _told(entry: Mapping[str, Any] | None, by_id: Mapping[str, StorageFault], stamp: int) -> Told | None:
    if entry is None:
        return None
    fault, assertion = by_id.get(entry.get("faultId") or ""), entry.get("assertion")
    if fault is None or assertion not in ("occur", "recover") or not _is_stamp(entry.get("faultTime")):
        return None
    try:
        ids = usable_ids(entry["influence"][0]["deviceIds"])
    except (KeyError, IndexError, TypeError):
        return None
    return Told(fault, assertion == "occur", entry["faultTime"], stamp, ids)
