"""Which chips the pods of this node use, from their annotations (device-info 4.2, decision 7).

Only metadata is looked at. What cannot be read changes nothing: a pod keeps what was known of it, and the node what
was known of its pods.
"""

import logging
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nodeagent.core.clock import Clock
from nodeagent.core.observation import ChipsInUse, Observation
from nodeagent.core.telemetry import Metrics

log = logging.getLogger("nodeagent.pods")

REAL = "huawei.com/AscendReal"
"""What the device plugin really gave to the pod; where it is missing, what the scheduler wished counts (11.2)."""
WISHED = ("huawei.com/Ascend910", "huawei.com/npu", "huawei.com/Ascend310P", "huawei.com/Ascend310")
MAX_TEXT_BYTES = 1024 * 1024
MAX_NAMES = 100
"""Longer annotations and lists are skipped, as upstream does (device-info 4.2)."""
_NAME = re.compile(r"[A-Za-z0-9]+-(?:[A-Za-z0-9.]+-\d{1,9}-)?(\d{1,9})")
_ENDED = ("Succeeded", "Failed")


def field_selector(node_name: str) -> str:
    """The pods of a node that have not ended, as the API takes it."""
    return f"spec.nodeName={node_name},status.phase!=Succeeded,status.phase!=Failed"


def chips_of(annotations: Mapping[str, object]) -> frozenset[int] | None:
    """Physical ids of the chips that a pod with these annotations uses; of a vNPU its chip. None = cannot be read."""
    text = next((annotations[key] for key in (REAL, *WISHED) if annotations.get(key)), "")
    if not isinstance(text, str) or len(text) > MAX_TEXT_BYTES:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    found = [_NAME.fullmatch(name) for name in names]
    if len(names) > MAX_NAMES or not all(found):
        return None
    return frozenset(int(match.group(1)) for match in found if match)


class PodSource:
    """Follows the pods of this node (a follower of nodeagent.cluster.watch) and tells which chips they use.

    emit: takes observations, from the thread of the watch.
    """

    def __init__(self, clock: Clock, emit: Callable[[Sequence[Observation]], None], metrics: Metrics) -> None:
        self._clock = clock
        self._emit = emit
        self._metrics = metrics
        self._used: dict[str, frozenset[int]] = {}
        self._told: frozenset[int] | None = None
        self._asked = threading.Event()

    def wait_first(self, timeout_s: float) -> bool:
        """Wait until the pods are known, or surely cannot be; false when that took longer than `timeout_s` seconds."""
        return self._asked.wait(timeout_s)

    def listed(self, objects: list[dict[str, Any]]) -> None:
        """These pods and no others are on the node."""
        before, self._used = self._used, {}
        for pod in objects:
            self._take(pod, before)
        self._tell()
        self._asked.set()

    def changed(self, kind: str, obj: dict[str, Any]) -> None:
        """A pod came, changed, ended or was deleted."""
        if kind == "DELETED":
            self._used.pop(_key(obj), None)
        else:
            self._take(obj, self._used)
        self._tell()

    def trouble(self, sentence: str, hint: str, forbidden: bool) -> None:
        """The pods cannot be followed: what is known of them stays."""
        if forbidden:
            self._asked.set()

    def _take(self, pod: dict[str, Any], before: Mapping[str, frozenset[int]]) -> None:
        key = _key(pod)
        status = pod.get("status")
        if isinstance(status, dict) and status.get("phase") in _ENDED:
            self._used.pop(key, None)
            return
        metadata = pod.get("metadata")
        annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
        chips = chips_of(annotations if isinstance(annotations, dict) else {})
        if chips is None:
            log.warning("pod names its chips in a way that cannot be read, what was known stays pod=%s", key)
            chips = before.get(key, frozenset())
        self._used[key] = chips

    def _tell(self) -> None:
        used = frozenset().union(*self._used.values())
        self._metrics.set("chips_in_use", len(used))
        now = self._clock.now()
        self._metrics.set("source_last_success_timestamp_seconds", now.wall_ms / 1000, source="pods")
        if used != self._told:
            self._told = used
            self._emit([ChipsInUse(used, now)])


def _key(pod: Mapping[str, Any]) -> str:
    metadata = pod.get("metadata")
    if not isinstance(metadata, dict):
        return ""
    return f"{metadata.get('namespace')}/{metadata.get('name')}"
