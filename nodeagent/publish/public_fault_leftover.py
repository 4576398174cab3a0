"""The public fault object of a daemon that is gone: what ClusterD must be told before it is removed. Pure.

Deleting such an object does nothing at ClusterD (node-faults 13.4): a fault that stands in it would stand for ever.
"""

import json
from collections.abc import Mapping

from nodeagent.render.gojson import go_json

PUBLIC_FAULT_PREFIX = "nodeagent-publicfault-"
"""What the client, a hyphen and the node follow in the name of such an object (decision 28)."""
PUBLIC_FAULT_KEY = "PublicFault"
PUBLIC_FAULT_LABEL = "mc-consumer-publicfault"
"""The label that ClusterD selects on (node-faults 13.4)."""


def recovery_of(obj: Mapping[str, object], message_id: str, now_ms: int) -> dict[str, object] | None:
    """The same object with a message that every fault that stands in it has recovered; None when none stands.

    A shadow, which ClusterD does not see, and an object that it cannot read say nothing that could stand. message_id:
    another one than ever before. now_ms: Unix milliseconds.
    """
    metadata, data = obj.get("metadata"), obj.get("data")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    if not isinstance(labels, dict) or PUBLIC_FAULT_LABEL not in labels or not isinstance(data, dict):
        return None
    try:
        message = json.loads(str(data.get(PUBLIC_FAULT_KEY)))
    except (ValueError, RecursionError):
        return None
    faults = message.get("faults") if isinstance(message, dict) else None
    if not isinstance(faults, list):
        return None
    standing = [fault for fault in faults if isinstance(fault, dict) and fault.get("assertion") == "occur"]
    if not standing:
        return None
    recovered = [{**fault, "assertion": "recover"} for fault in standing]
    text = go_json({**message, "id": message_id, "timestamp": now_ms, "faults": recovered})
    return {**obj, "data": {**data, PUBLIC_FAULT_KEY: text}}
