"""What stays behind of us in a cluster when the daemons are gone, told by `managedFields`. Pure.

Only what nodeagent wrote, and nobody after it, counts as ours. The rest is kept, with the reason.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from enum import Enum
from typing import Any

from nodeagent.core.storage import StorageClient
from nodeagent.publish.conditions import ConditionType
from nodeagent.publish.managed_fields import Manager, is_recorded, names_below, owners
from nodeagent.publish.other_writer import OURS
from nodeagent.publish.public_fault_leftover import PUBLIC_FAULT_KEY, PUBLIC_FAULT_PREFIX
from nodeagent.render import device_info, node_info
from nodeagent.render.device_info import DEVICE_KEY, SHADOW_SUFFIX
from nodeagent.render.node_info import INFO_KEY
from nodeagent.render.node_object import ANNOTATIONS, LABELS

RECENT_MS = 330 * 1000
"""A daemon that runs has written its device-info object within its refresh period of 300 s."""
_MARKS = ("f:metadata",)
_CONDITIONS = ("f:status", "f:conditions")


class What(Enum):
    """Kinds of things that stay."""

    CONFIG_MAP = "configmap"
    LABEL = "label"
    ANNOTATION = "annotation"
    CONDITION = "condition"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class Kind:
    """ConfigMaps of one sort. label: in metrics of requests. prefix: what the name of the node follows. key: the data
    key by which is told who wrote the object."""

    label: str
    namespace: str
    prefix: str
    key: str

    def names(self, node_name: str) -> tuple[str, str]:
        """Name of the object of a node, and of its shadow."""
        return self.prefix + node_name, self.prefix + node_name + SHADOW_SUFFIX


KINDS = (
    Kind("device_info", device_info.NAMESPACE, device_info.NAME_PREFIX, DEVICE_KEY),
    Kind("node_info", node_info.NAMESPACE, node_info.NAME_PREFIX, INFO_KEY),
    *(
        Kind("public_fault", node_info.NAMESPACE, f"{PUBLIC_FAULT_PREFIX}{client.value}-", PUBLIC_FAULT_KEY)
        for client in StorageClient
    ),
)
NAMESPACES = tuple(dict.fromkeys(kind.namespace for kind in KINDS))
"""Where ConfigMaps of ours may lie."""


@dataclass(frozen=True, slots=True)
class Leftover:
    """One thing that is there.

    place: `<namespace>/<name>` of a ConfigMap, the node of a mark, the path of a file. name: of the mark; empty for
    others. kept: why it is not ours to remove; empty = it is. note: worth knowing before removing it. uid, version: of
    the object when it was looked at.
    """

    what: What
    place: str
    name: str = ""
    kept: str = ""
    note: str = ""
    uid: str = ""
    version: str = ""


def kind_of(metadata: Mapping[str, Any]) -> Kind | None:
    """By its namespace and name this is an object of ours, or a shadow; None = it is none."""
    namespace, name = metadata.get("namespace"), str(metadata.get("name", ""))
    return next((kind for kind in KINDS if kind.namespace == namespace and name.startswith(kind.prefix)), None)


def nodes_of(metadata: Mapping[str, Any]) -> set[str]:
    """Names of the nodes that an object of ours may belong to: a node may be called `<other>-shadow`."""
    kind = kind_of(metadata)
    name = str(metadata.get("name", "")).removeprefix("" if kind is None else kind.prefix)
    return {name, name.removesuffix(SHADOW_SUFFIX)}


def config_map_leftover(metadata: Mapping[str, Any], kind: Kind, now_ms: int) -> Leftover:
    """Judge a ConfigMap of a kind by its metadata. now_ms: Unix milliseconds."""
    place = f"{metadata.get('namespace', kind.namespace)}/{metadata.get('name', '')}"
    writers = owners(metadata, "f:data", f"f:{kind.key}")
    others = [writer for writer in writers if writer.name != OURS]
    kept = note = ""
    if not writers:
        kept = f"the API server has no record of who wrote {kind.key}"
    elif others:
        kept = f"{kind.key} is written by {_said(others[0])}, last at {_time(others[0].at_ms)}"
    elif 0 <= now_ms - writers[0].at_ms <= RECENT_MS:
        note = f"written {(now_ms - writers[0].at_ms) // 1000} s ago: a daemon that still runs writes it again"
    elif kind.key == PUBLIC_FAULT_KEY:
        note = "a fault that stands in it is told as recovered first"
    return Leftover(What.CONFIG_MAP, place, kept=kept, note=note, uid=_uid(metadata), version=_version(metadata))


def node_leftovers(metadata: Mapping[str, Any]) -> list[Leftover]:
    """The labels, annotations and conditions that nodeagent set on a node, by the node's metadata."""
    node = str(metadata.get("name", ""))
    found = []
    for what, part, known in ((What.LABEL, "f:labels", LABELS), (What.ANNOTATION, "f:annotations", ANNOTATIONS)):
        there = metadata.get(part.removeprefix("f:")) or {}
        if not is_recorded(metadata):
            found += [(what, name, "the API server has no record of who set it") for name in known if name in there]
        for spelled in sorted(names_below(metadata, OURS, *_MARKS, part)):
            name = spelled.removeprefix("f:")
            if name not in there:
                continue
            kept = "" if name in known else "not a name that nodeagent writes"
            found.append((what, name, kept or _shared(metadata, *_MARKS, part, spelled)))
    for spelled in sorted(names_below(metadata, OURS, *_CONDITIONS)):
        name = _type_of(spelled)
        if name in {kind.value for kind in ConditionType}:
            found.append((What.CONDITION, name, _shared(metadata, *_CONDITIONS, spelled)))
    uid, version = _uid(metadata), _version(metadata)
    return [Leftover(what, node, name, kept, uid=uid, version=version) for what, name, kept in found]


def marks_patch(leftovers: list[Leftover]) -> dict[str, Any] | None:
    """JSON merge patch that removes labels and annotations of one node, from exactly the version that was looked at;
    None when there are none."""
    metadata: dict[str, Any] = {}
    for each in leftovers:
        if each.what in (What.LABEL, What.ANNOTATION):
            metadata.setdefault("labels" if each.what is What.LABEL else "annotations", {})[each.name] = None
    return {"metadata": {**metadata, "resourceVersion": leftovers[0].version}} if metadata else None


def conditions_patch(leftovers: list[Leftover]) -> dict[str, Any] | None:
    """Strategic merge patch of the node's status that removes conditions; None when there are none."""
    gone = [{"$patch": "delete", "type": each.name} for each in leftovers if each.what is What.CONDITION]
    return {"status": {"conditions": gone}} if gone else None


def _shared(metadata: Mapping[str, Any], *path: str) -> str:
    others = [writer for writer in owners(metadata, *path) if writer.name != OURS]
    return f"also set by {_said(others[0])}" if others else ""


def _said(writer: Manager) -> str:
    return writer.name or "a program without a name"


def _type_of(spelled: str) -> str:
    """The type in a key such as `k:{"type":"Ready"}`."""
    try:
        key = json.loads(spelled.removeprefix("k:"))
    except ValueError:
        return ""
    return str(key.get("type", "")) if isinstance(key, dict) else ""


def _uid(metadata: Mapping[str, Any]) -> str:
    return str(metadata.get("uid", ""))


def _version(metadata: Mapping[str, Any]) -> str:
    return str(metadata.get("resourceVersion", ""))


def _time(unix_ms: int) -> str:
    return datetime.fromtimestamp(unix_ms / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
