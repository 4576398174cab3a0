"""Desired against acknowledged: when an object is written, and what its `UpdateTime` is.

Pure book-keeping of one object; time and chance come in as arguments. Publishing writes state, not messages: there
is one slot, the latest content wins, and it is tried until a target took exactly that content. That there is to be no
object is a content like any other. The default intervals are those of device-info 7: at most one write per second, a
refresh every 5 minutes.
"""

from collections.abc import Callable
from dataclasses import dataclass

from nodeagent.cluster.backoff import Backoff
from nodeagent.core.instant import Instant

_TWICE_DISTANCE_MS = 1001
"""More than 1 s between the two writes that make ClusterD take over from a bad object (device-info 11.1)."""


@dataclass(frozen=True, slots=True)
class BookParameters:
    """Intervals in milliseconds.

    min_distance_ms: from the end of one attempt to the next (device-info 7; benchmarks use 20).
    refresh_ms: age at which unchanged content is written again. retry_base_ms, retry_cap_ms: bound of the delay after
    the first failure, doubled by each further one up to the cap; the delay is drawn evenly below the bound.
    """

    min_distance_ms: int = 1000
    refresh_ms: int = 300_000
    retry_base_ms: int = 1000
    retry_cap_ms: int = 30_000


DEFAULT_PARAMETERS = BookParameters()


@dataclass(frozen=True, slots=True)
class _Content:
    """What identifies a content: the view it came from, and its fingerprint."""

    generation: int
    fingerprint: str


class Book:
    """The state of publishing one object.

    One attempt at a time: `begin`, then exactly one of `taken`, `failed` and `refused`. draw: a random number from
    [0, 1) for the back-off.
    """

    def __init__(self, parameters: BookParameters, draw: Callable[[], float]) -> None:
        self._parameters = parameters
        self._draw = draw
        self._desired: _Content | None = None
        self._refused = False
        self._in_flight: _Content | None = None
        self._acknowledged: str | None = None
        self._refresh_at_ms = 0
        self._not_before_ms: int | None = None
        self._backoff = Backoff(draw, parameters.retry_base_ms / 1000, parameters.retry_cap_ms / 1000)
        self._owed = 1
        self._update_time_s = 0

    @property
    def failures(self) -> int:
        """Failed attempts since the last one that was taken."""
        return self._backoff.failures

    @property
    def pending(self) -> bool:
        """Something is desired that the target is not known to have."""
        return self._desired is not None and self._desired.fingerprint != self._acknowledged

    @property
    def attempting(self) -> bool:
        """An attempt was begun and not ended."""
        return self._in_flight is not None

    @property
    def owed(self) -> int:
        """Attempts that must still be taken until consumers have taken over from a bad object."""
        return self._owed

    @property
    def refresh_at_ms(self) -> int:
        """When acknowledged content is due again, on the monotonic clock."""
        return self._refresh_at_ms

    @property
    def update_time_s(self) -> int:
        """`UpdateTime` of the last attempt, in Unix seconds."""
        return self._update_time_s

    def resume(self, update_time_s: int, acceptable: bool) -> None:
        """Go on after what the cluster has (device-info 9, 11.1): its `UpdateTime`, and whether ClusterD takes it.

        ClusterD drops the first good write after a bad object, so then two are owed (device-info 14, C11).
        """
        self._update_time_s = max(self._update_time_s, update_time_s)
        if not acceptable:
            self.owe(2)

    def owe(self, attempts: int) -> None:
        """Acknowledge only after so many attempts were taken: consumers drop the first one after a bad object."""
        self._acknowledged = None
        self._owed = max(self._owed, attempts)

    def desire(self, generation: int, fingerprint: str) -> int | None:
        """Replace the desired content. Returns the generation when that content is acknowledged already."""
        self._desired = _Content(generation, fingerprint)
        self._refused = False
        if self._in_flight is None and fingerprint == self._acknowledged:
            return generation
        return None

    def wait_ms(self, now: Instant) -> int | None:
        """Milliseconds until the next write is due, 0 = now, None = not before something else is desired."""
        if self._desired is None or self._refused or self._in_flight is not None:
            return None
        due_ms = now.mono_ms
        if self._desired.fingerprint == self._acknowledged:
            due_ms = self._refresh_at_ms
        if self._not_before_ms is not None:
            due_ms = max(due_ms, self._not_before_ms)
        return max(0, due_ms - now.mono_ms)

    def next_update_time_s(self, now: Instant) -> int:
        """The `UpdateTime` of a write at this moment: strictly increasing, also when the clock steps back
        (device-info 15.3)."""
        return max(now.wall_ms // 1000, self._update_time_s + 1)

    def begin(self, now: Instant) -> int:
        """An attempt to write the desired content starts; returns its `UpdateTime` in Unix seconds."""
        if self.wait_ms(now) != 0:
            raise ValueError("no write is due")
        self._in_flight = self._desired
        # Counted even if the attempt fails: the server may have taken it all the same.
        self._update_time_s = self.next_update_time_s(now)
        return self._update_time_s

    def taken(self, now: Instant, refresh_ms: int | None = None, *, wrote: bool = True) -> int | None:
        """The target took the content of the attempt. Returns the generation that is acknowledged by it.

        refresh_ms: when this content is due again, None = as the parameters say. wrote: false when the target was found
        to have it already; a write after that need not keep the least distance. None is returned when consumers will
        only take over with a further write, which is then due.
        """
        refresh_ms = self._parameters.refresh_ms if refresh_ms is None else refresh_ms
        content = self._end_attempt()
        # After an outage the whole fleet writes within seconds. One refresh at a moment of its own spreads it again.
        early = self._draw() / 2 if self._backoff.failures else 0.0
        self._backoff.succeeded()
        self._refresh_at_ms = now.mono_ms + int(refresh_ms * (1 - early))
        self._owed = max(0, self._owed - 1)
        if self._owed:
            self._not_before_ms = now.mono_ms + max(self._parameters.min_distance_ms, _TWICE_DISTANCE_MS)
            return None
        self._not_before_ms = now.mono_ms + self._parameters.min_distance_ms if wrote else None
        self._acknowledged = content.fingerprint
        if self._desired is not None and self._desired.fingerprint == content.fingerprint:
            return self._desired.generation
        return content.generation

    def failed(self, now: Instant, at_least_ms: int = 0) -> int:
        """The attempt failed or its outcome is not known. Returns the delay before the next one in milliseconds.

        at_least_ms: the target wants to be left alone for so long; a tenth is added at random, as it tells every
        node the same.
        """
        self._end_attempt()
        # Nobody knows now what the target has. Even content that was acknowledged before must be written again.
        self._acknowledged = None
        pause_s = self._backoff.failed(retry_after_s=at_least_ms / 1000)
        delay_ms = max(self._parameters.min_distance_ms, int(pause_s * 1000))
        self._not_before_ms = now.mono_ms + delay_ms
        return delay_ms

    def postponed(self, now: Instant, delay_ms: int) -> None:
        """The attempt was given up because somebody else changed the object; tried again after `delay_ms`."""
        self._end_attempt()
        self.disturbed(now, delay_ms)

    def disturbed(self, now: Instant, delay_ms: int) -> None:
        """Somebody else changed the object: what the target has is not ours any more and is written again."""
        self._acknowledged = None
        self._not_before_ms = max(now.mono_ms + delay_ms, self._not_before_ms or 0)

    def refused(self) -> None:
        """The content did not pass the self-check: nothing was sent, and nothing will be until it is replaced."""
        self._end_attempt()
        self._refused = True

    def _end_attempt(self) -> _Content:
        content, self._in_flight = self._in_flight, None
        if content is None:
            raise ValueError("no attempt is running")
        return content
