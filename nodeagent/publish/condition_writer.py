"""The edge of node conditions: one thread that patches the status of the node when something has changed.

What the node has is read with the right that writing needs anyway: an empty patch changes nothing and is answered with
the node. Trouble is told in the log and in metrics.
"""

import logging
import random
import threading
from collections.abc import Callable, Mapping

from nodeagent.cluster.backoff import Backoff
from nodeagent.cluster.calls import STRATEGIC_PATCH, Call, NoAnswerError, RefusalError
from nodeagent.cluster.client import ApiClient
from nodeagent.core.clock import Clock
from nodeagent.core.model import NodeView
from nodeagent.core.telemetry import Event, Metrics
from nodeagent.publish.conditions import (
    Condition,
    ConditionType,
    DriverState,
    conditions_of,
    known_conditions,
    patch_of,
)

log = logging.getLogger("nodeagent.conditions")

MIN_DISTANCE_S = 10.0
"""Least time between two patches: the node object is watched by many."""


class ConditionWriter:
    """Keeps the conditions of one node. clock: real time. draw: a random number from [0, 1) for the back-off."""

    def __init__(
        self,
        client: ApiClient,
        node_name: str,
        clock: Clock,
        metrics: Metrics,
        min_distance_s: float = MIN_DISTANCE_S,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._client = client
        self._call = Call(
            "patch", "nodes", "node_status", name=node_name, subresource="status", content_type=STRATEGIC_PATCH
        )
        self._clock = clock
        self._metrics = metrics
        self._min_distance_ms = int(min_distance_s * 1000)
        self._backoff = Backoff(draw)
        self._view: NodeView | None = None
        self._driver = DriverState()
        self._open = False
        self._known: dict[ConditionType, Condition] | None = None
        self._not_before_ms = 0
        self._wake = threading.Event()
        self._stopping = False

    def emit(self, event: Event) -> None:
        """Hear what is said of the driver; from any thread, never blocks."""
        driver = self._driver.after(event)
        if driver is not self._driver:
            self._driver = driver
            self._wake.set()

    def submit(self, view: NodeView) -> None:
        """The node as it is now; from any thread, never blocks."""
        self._view = view
        self._wake.set()

    def begin(self) -> None:
        """Views are complete from now on: what the last run published is taken in."""
        self._open = True
        self._wake.set()

    def run(self) -> None:
        """Patch on change, until `stop`."""
        while not self._stopping:
            wait_s = self._round()
            self._wake.wait(wait_s)
            self._wake.clear()

    def stop(self) -> None:
        """Make `run` return after the request that is under way, if any. Conditions stay as they are."""
        self._stopping = True
        self._wake.set()

    def _round(self) -> float | None:
        """Write if something differs and it is time; returns the seconds to wait, None = until something changes."""
        view, now = self._view, self._clock.now()
        if view is None or not self._open:
            return None
        if now.mono_ms < self._not_before_ms:
            return (self._not_before_ms - now.mono_ms) / 1000
        wanted = conditions_of(view, self._driver)
        try:
            if self._known is None:
                self._known = known_conditions(self._send({}))
            patch = patch_of(wanted, self._known, now.wall_ms)
            if patch is None:
                return None
            self._known = known_conditions(self._send(patch))
        except RefusalError as refusal:
            return self._failed(refusal, refusal.status, refusal.retry_after_s)
        except NoAnswerError as error:
            return self._failed(error, 0, 0.0)
        if self._backoff.failures:
            log.info("event=conditions_written_again failures=%d", self._backoff.failures)
        self._backoff.succeeded()
        self._not_before_ms = self._clock.now().mono_ms + self._min_distance_ms
        # Whatever the server made of it counts as known; asking for the same again would not end differently.
        self._known |= {each.kind: each for each in wanted}
        return 0.0

    def _send(self, patch: Mapping[str, object]) -> dict[str, object]:
        answer = self._client.send(self._call, patch)
        self._metrics.count("conditions_written_total", result="ok" if patch else "read")
        return answer

    def _failed(self, error: RefusalError | NoAnswerError, status: int, retry_after_s: float) -> float:
        """Back off; what the node has is read again before the next patch, as this one may have arrived."""
        self._known = None
        pause_s = self._backoff.failed(status, retry_after_s)
        self._not_before_ms = self._clock.now().mono_ms + int(pause_s * 1000)
        self._metrics.count("conditions_written_total", result="failed")
        if self._backoff.failures == 1:
            log.warning("event=conditions_not_written problem=%r hint=%r", error.sentence, error.hint)
        return pause_s
