"""A core/v1 Event about the node, as the API server takes it and `kubectl describe node` shows it. Pure.

Checked against a real API server (1.36) and the source of its validation and of kubectl:
- An Event about an object without namespace may lie in `default`, and in `kube-system` only when `eventTime` is set;
  then `action`, `reportingComponent` and `reportingInstance` (at most 128 bytes) are demanded, and the message is
  limited to 1024 bytes. With `involvedObject.namespace` set it would be taken, but `describe node` would not find it.
- `describe node` looks for Events with the node's uid and for those with its name as uid; the kubelet uses the latter,
  and so do we: nothing has to be read.
"""

from datetime import datetime, timezone

from nodeagent.core.instant import Instant
from nodeagent.publish.event_book import Letter

COMPONENT = "nodeagent"
_MAX_NAME, _MAX_INSTANCE = 200, 128


def event_object(letter: Letter, node_name: str, namespace: str, run_id: str) -> dict[str, object]:
    """The object. run_id: lower-case letters and digits, another one for each start of the daemon.

    The name is the same for each attempt of a letter, so that one whose answer got lost is not stored twice.
    """
    start = node_name[:_MAX_NAME].rstrip("-.")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{start}.{run_id}{letter.serial:06x}", "namespace": namespace},
        "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": node_name, "uid": node_name},
        "type": "Warning" if letter.warning else "Normal",
        "reason": letter.reason.value,
        "action": letter.reason.value,
        "message": letter.message,
        "count": letter.count,
        "eventTime": _time(letter.first, "microseconds"),
        "firstTimestamp": _time(letter.first, "seconds"),
        "lastTimestamp": _time(letter.last, "seconds"),
        "source": {"component": COMPONENT, "host": node_name},
        "reportingComponent": COMPONENT,
        "reportingInstance": node_name[:_MAX_INSTANCE],
    }


def _time(at: Instant, precision: str) -> str:
    text = datetime.fromtimestamp(at.wall_ms / 1000, timezone.utc).isoformat(timespec=precision)
    return text.replace("+00:00", "Z")
