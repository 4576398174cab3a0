"""The labels and annotations of the node object: patched when they differ, and looked at once an hour.

A merge patch of what differs and nothing else (device-info 10); answers are asked for without status and spec, as a
node object is large. What others wrote on the node is never touched.
"""

import logging
import random
import threading
from collections.abc import Callable, Collection, Mapping
from typing import Any

from nodeagent.cluster.backoff import Backoff
from nodeagent.cluster.calls import MERGE_PATCH, METADATA, NOT_FOUND, Call, NoAnswerError, RefusalError
from nodeagent.cluster.client import USER_AGENT, ApiClient
from nodeagent.core.clock import monotonic_s
from nodeagent.core.node_facts import NodeFacts
from nodeagent.core.telemetry import Event, EventReason, EventSink, Metrics
from nodeagent.render.node_object import NodeMarks, node_marks, patch_of, with_serial_number

log = logging.getLogger("nodeagent.node_object")

CHECK_S = 3600.0
"""How often the marks are compared with the live node although nothing changed; a tenth is added at random."""


class NodeWriter:
    """Keeps the marks of one node; a supervised loop. skip: names that the site does not want written."""

    def __init__(
        self,
        client: ApiClient,
        node_name: str,
        skip: Collection[str],
        events: EventSink,
        metrics: Metrics,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._client = client
        self._node_name = node_name
        self._skip = skip
        self._events = events
        self._metrics = metrics
        self._draw = draw
        self._backoff = Backoff(draw)
        self._lock = threading.Lock()
        self._slot: NodeFacts | None = None
        self._serial_number = ""
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._live: tuple[Mapping[str, str], Mapping[str, str]] | None = None
        self._look_s = 0.0
        self._left_out: tuple[str, ...] = ()
        self._problem = ""

    def submit(self, facts: NodeFacts) -> None:
        """What the driver says of the node; the latest wins. From any thread, never blocks."""
        with self._lock:
            self._slot = facts
        self._wake.set()

    def submit_serial_number(self, serial_number: str) -> None:
        """What the BMC says of the product; empty = it does not say. From any thread, never blocks."""
        with self._lock:
            self._serial_number = serial_number or self._serial_number
        self._wake.set()

    def run(self) -> None:
        """Work until `stop`."""
        while not self._stopping.is_set():
            with self._lock:
                facts, serial_number = self._slot, self._serial_number
            wait_s = self._keep(facts, serial_number) if facts is not None or serial_number else None
            self._wake.wait(wait_s)
            self._wake.clear()

    def stop(self) -> None:
        """Make `run` return; a request that hangs ends with its own time-out."""
        self._stopping.set()
        self._wake.set()

    def _keep(self, facts: NodeFacts | None, serial_number: str) -> float:
        """Compare and patch; the seconds until that is due again."""
        try:
            if self._live is None or monotonic_s() >= self._look_s:
                self._learn(self._client.send(self._call("get")))
                self._look_s = monotonic_s() + CHECK_S * (1 + self._draw() / 10)
            self._patch(facts, serial_number)
        except RefusalError as refusal:
            hint = "is NODE_NAME the name of a node?" if refusal.status == NOT_FOUND else refusal.hint
            return self._failed(refusal.sentence, hint, refusal.status, refusal.retry_after_s)
        except NoAnswerError as error:
            return self._failed(error.sentence, error.hint, 0, 0.0)
        self._succeeded()
        return max(0.0, self._look_s - monotonic_s())

    def _patch(self, facts: NodeFacts | None, serial_number: str) -> None:
        assert self._live is not None
        labels, annotations = self._live
        known: NodeMarks | None = None if facts is None else node_marks(facts, annotations)
        marks = with_serial_number(known, serial_number)
        if marks.left_out and marks.left_out != self._left_out:
            log.warning("labels are left out, the API server would refuse their values names=%s", marks.left_out)
        self._left_out = marks.left_out
        patch = patch_of(marks, labels, annotations, self._skip)
        if patch is None:
            return
        log.info("node object is patched names=%s", ", ".join(_names(patch)))
        self._learn(self._client.send(self._call("patch"), patch))
        if patch_of(marks, *self._live, self._skip) is not None:
            raise NoAnswerError(
                "the patch of the node was answered with success, but its marks are not there",
                "does an admission webhook change them?",
            )

    def _learn(self, node: Mapping[str, Any]) -> None:
        metadata = node.get("metadata")
        if not isinstance(metadata, dict):
            raise NoAnswerError("the node object has no metadata")
        self._live = metadata.get("labels") or {}, metadata.get("annotations") or {}

    def _call(self, verb: str) -> Call:
        query = {"fieldManager": USER_AGENT} if verb == "patch" else {}
        return Call(verb, "nodes", "node", name=self._node_name, query=query, content_type=MERGE_PATCH, accept=METADATA)

    def _failed(self, problem: str, hint: str, status: int, retry_after_s: float) -> float:
        self._live = None
        self._metrics.set("node_object_synced", 0)
        if problem != self._problem:
            self._problem = problem
            log.warning("node object cannot be written problem=%r hint=%r", problem, hint)
            message = f"labels and annotations of the node: {problem}" + (f" ({hint})" if hint else "")
            self._events.emit(Event(EventReason.NODE_OBJECT_FAILED, message, warning=True))
        return self._backoff.failed(status, retry_after_s)

    def _succeeded(self) -> None:
        self._backoff.succeeded()
        self._metrics.set("node_object_synced", 1)
        if self._problem:
            self._problem = ""
            log.info("node object is written again")
            self._events.emit(
                Event(EventReason.NODE_OBJECT_RECOVERED, "labels and annotations of the node are written")
            )


def _names(patch: Mapping[str, Any]) -> list[str]:
    return sorted(name for part in patch["metadata"].values() for name in part)
