"""A clock that moves only when a test says so."""

import threading

from nodeagent.core.clock import Instant


class FakeClock:
    """`nodeagent.core.clock.Clock` for tests.

    Monotonic and wall time start at recognisable, different values, so that a mix-up of the two shows.
    `waits_s` records every timeout that was waited for, in order.
    """

    def __init__(self, mono_ms: int = 1_000_000, wall_ms: int = 1_760_000_000_000) -> None:
        self._lock = threading.Lock()
        self._mono_ms = mono_ms
        self._wall_ms = wall_ms
        self.waits_s: list[float | None] = []

    def now(self) -> Instant:
        """The present moment of this clock."""
        with self._lock:
            return Instant(self._mono_ms, self._wall_ms)

    def advance_ms(self, delta_ms: int) -> None:
        """Let `delta_ms` milliseconds (not negative) pass on both clocks."""
        if delta_ms < 0:
            raise ValueError("time does not run backwards; step_wall_ms moves the wall clock alone")
        with self._lock:
            self._mono_ms += delta_ms
            self._wall_ms += delta_ms

    def step_wall_ms(self, delta_ms: int) -> None:
        """Step the wall clock alone, in either direction, as a time service does."""
        with self._lock:
            self._wall_ms += delta_ms

    def wait(self, event: threading.Event, timeout_s: float | None) -> bool:
        """Return at once: true when `event` is set, else after advancing by `timeout_s`.

        Without a timeout it blocks on the event for real, at most 10 s, and raises TimeoutError then: a test
        that waits for ever shall fail, not hang.
        """
        self.waits_s.append(timeout_s)
        if event.is_set():
            return True
        if timeout_s is None:
            if not event.wait(10):
                raise TimeoutError("nobody set the event")
            return True
        self.advance_ms(round(timeout_s * 1000))
        return event.is_set()
