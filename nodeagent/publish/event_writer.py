"""The edge of Events: one thread that brings letters to the API server.

What is sent when is decided by the book. Trouble of this thread is told in the log and in metrics, never by Events,
which would feed themselves.
"""

import logging
import random
import secrets
import threading
from collections.abc import Callable

from nodeagent.cluster.backoff import Backoff
from nodeagent.cluster.calls import CONFLICT, TOO_MANY, UNAUTHORIZED, Call, NoAnswerError, RefusalError
from nodeagent.cluster.client import ApiClient
from nodeagent.core.clock import Clock
from nodeagent.core.telemetry import Event, Metrics
from nodeagent.publish.event_book import EventBook, EventLimits, Letter
from nodeagent.publish.event_object import event_object

log = logging.getLogger("nodeagent.events.api")


class EventWriter:
    """Sends Events about one node. clock: real time. draw: a random number from [0, 1) for the back-off."""

    def __init__(
        self,
        client: ApiClient,
        node_name: str,
        namespace: str,
        limits: EventLimits,
        clock: Clock,
        metrics: Metrics,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._client = client
        self._node_name = node_name
        self._call = Call("create", "events", "events", namespace)
        self._clock = clock
        self._metrics = metrics
        self._run_id = secrets.token_hex(4)
        self._lock = threading.Lock()
        self._book = EventBook(limits)  # guarded by the lock
        self._backoff = Backoff(draw)
        self._said = ""
        self._wake = threading.Event()
        self._stopping = False

    @property
    def waiting(self) -> int:
        """Events that have not ended yet; from any thread."""
        with self._lock:
            return self._book.waiting

    def emit(self, event: Event) -> None:
        """Take an Event; from any thread, never blocks, never raises."""
        with self._lock:
            self._book.add(event, self._clock.now())
        self._wake.set()

    def run(self) -> None:
        """Send what may be sent, until `stop`."""
        while not self._stopping:
            wait_s = self._round()
            self._wake.wait(wait_s)
            self._wake.clear()
        if left := self.waiting:
            log.info("event=events_not_sent left=%d reason=stopped", left)

    def stop(self) -> None:
        """Make `run` return after the request that is under way, if any."""
        self._stopping = True
        self._wake.set()

    def _round(self) -> float | None:
        """One attempt, if one is due; returns the seconds to wait."""
        now = self._clock.now()
        with self._lock:
            expired = self._book.expire(now)
            letter = self._book.take(now)
        for stale in expired:
            self._dropped(stale, "expired")
        if letter is not None:
            self._send(letter)
        with self._lock:
            wait_ms = self._book.wait_ms(self._clock.now())
        return None if wait_ms is None else wait_ms / 1000

    def _send(self, letter: Letter) -> None:
        body = event_object(letter, self._node_name, self._call.namespace, self._run_id)
        try:
            self._client.send(self._call, body)
        except RefusalError as refusal:
            if refusal.status == CONFLICT:
                self._taken(letter)  # by an earlier attempt whose answer got lost: nobody else has our names
            elif refusal.status in (UNAUTHORIZED, TOO_MANY) or refusal.status >= 500:
                self._failed(refusal, refusal.status, refusal.retry_after_s)
            else:
                self._refused(letter, refusal)
        except NoAnswerError as error:
            self._failed(error, 0, 0.0)
        else:
            self._taken(letter)

    def _taken(self, letter: Letter) -> None:
        self._end()
        self._metrics.count("events_sent_total", result="ok")
        if letter.count > 1:
            self._metrics.count("events_merged_total", letter.count - 1, reason=letter.reason.value)
        if self._said:
            log.info("event=events_are_taken_again")
        self._said = ""

    def _refused(self, letter: Letter, refusal: RefusalError) -> None:
        self._end()
        self._dropped(letter, "refused")
        self._say(f"refused {refusal.status}", "the Events are dropped", refusal)

    def _failed(self, error: RefusalError | NoAnswerError, status: int, retry_after_s: float) -> None:
        pause_s = self._backoff.failed(status, retry_after_s)
        self._metrics.count("events_sent_total", result="failed")
        with self._lock:
            self._book.failed(self._clock.now(), int(pause_s * 1000))
        self._say("failed", "they are tried again for 10 minutes each", error)

    def _end(self) -> None:
        self._backoff.succeeded()
        with self._lock:
            self._book.ended(self._clock.now())

    def _dropped(self, letter: Letter, result: str) -> None:
        self._metrics.count("events_sent_total", result=result)
        self._metrics.count("events_dropped_total", letter.count, reason=letter.reason.value)

    def _say(self, what: str, consequence: str, error: RefusalError | NoAnswerError) -> None:
        """One line for each kind of trouble until Events are taken again."""
        if what != self._said:
            self._said = what
            log.warning(
                "event=events_not_taken consequence=%r problem=%r hint=%r", consequence, error.sentence, error.hint
            )
