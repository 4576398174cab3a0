"""A clock that moves only when a test says so."""

import threading

from nodeagent.core.instant import Instant


class FakeClock:
    """`nodeagent.core.clock.Clock` for tests; safe to read from other threads.

    Monotonic and wall time start at recognisable, different values, so that a mix-up of the two shows.
    """

    def __init__(self, mono_ms: int = 1_000_000, wall_ms: int = 1_760_000_000_000) -> None:
        self._lock = threading.Lock()
        self._mono_ms = mono_ms
        self._wall_ms = wall_ms

    def now(self) -> Instant:
        """The present moment of this clock."""
        with self._lock:
            return Instant(self._mono_ms, self._wall_ms)

    def at_mono_ns(self, mono_ns: int) -> Instant:
        """A stamp of this clock (`now().mono_ms` in nanoseconds), and the wall time that lies as far back."""
        now = self.now()
        return now.plus_ms(mono_ns // 1_000_000 - now.mono_ms)

    def real_s(self, clock_s: float) -> float:
        """The same number: a thread that waits by this clock must be woken by its test, not by time."""
        return max(0.0, clock_s)

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


class PacedClock(FakeClock):
    """A thread that waits by this clock looks again every few milliseconds, so the test need not wake it."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []

    def real_s(self, clock_s: float) -> float:
        self.waits.append(clock_s)
        return min(max(0.0, clock_s), 0.003)
