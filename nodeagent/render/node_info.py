"""The node-info ConfigMap of a node, from the view of its board (node-faults 8).

Pure: the same view and the same second give the same bytes. The object exists only while there is a fault; the content
for a node without one is only written to repair an object that ClusterD refuses (9.1).
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone

from nodeagent.core.board import BoardDevice, BoardView
from nodeagent.render.device_info import LABELS, SHADOW_LABELS, SHADOW_SUFFIX
from nodeagent.render.gojson import go_json

NAMESPACE = "mindx-dl"
NAME_PREFIX = "mindx-dl-nodeinfo-"
INFO_KEY = "NodeInfo"
TIME_KEY = "updateTime"
KEYS = frozenset({INFO_KEY, TIME_KEY})
"""Every data key that there can be (8.1)."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The DaemonSet that owns the object: with it the object goes (8.3). uid: of the DaemonSet as it exists now."""

    name: str
    uid: str

    def reference(self) -> dict[str, object]:
        """A plain owner reference, without the flag of a controller (8.3)."""
        return {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": self.name, "uid": self.uid}


def object_name(node_name: str, shadow: bool = False) -> str:
    """Name of the object of a node (8.1), or of its shadow."""
    return NAME_PREFIX + node_name + (SHADOW_SUFFIX if shadow else "")


def config_map(
    node_name: str, data: Mapping[str, str], shadow: bool = False, owner: Owner | None = None
) -> dict[str, object]:
    """The complete object as the API server takes it (8.1), or its shadow. owner: None = it belongs to nobody."""
    metadata: dict[str, object] = {
        "name": object_name(node_name, shadow),
        "namespace": NAMESPACE,
        "labels": dict(SHADOW_LABELS if shadow else LABELS),
    }
    if owner is not None:
        metadata["ownerReferences"] = [owner.reference()]
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(data)}


def render_node_info(view: BoardView, update_time_s: int) -> dict[str, str]:
    """`data` of the ConfigMap (8.1). update_time_s: Unix seconds, another than in the last write."""
    return {INFO_KEY: node_info_text(view), TIME_KEY: time_text(update_time_s)}


def node_info_text(view: BoardView) -> str:
    """The value of `NodeInfo`: the inner object and the digest over its text (8.1, 8.2).

    It is also the fingerprint of the content: the time of the write is not in it.
    """
    inner = {"FaultDevList": [_device(device) for device in view.devices], "NodeStatus": view.status}
    digest = hashlib.sha256(go_json(inner).encode()).hexdigest()
    return go_json({"NodeInfo": inner, "CheckCode": digest})


def time_text(unix_s: int) -> str:
    """`updateTime`: RFC 3339 with seconds, always in UTC (8.1).

    Upstream writes the zone of its container. The moment is the same, and a text that does not depend on a file of the
    image or the host can be compared across nodes.
    """
    return datetime.fromtimestamp(unix_s, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _device(device: BoardDevice) -> dict[str, object]:
    """One member of `FaultDevList`. Nothing may be added: ClusterD hashes the fields that it knows (8.2)."""
    return {
        "DeviceType": device.device_type,
        "DeviceId": device.device_id,
        "FaultCode": list(device.codes),
        "FaultLevel": device.level.text,
    }
