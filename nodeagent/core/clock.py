"""The only module that reads a clock.

Intervals are measured on the monotonic clock; wall time appears only in published text (lessons section 8).
"""

import time
from typing import Protocol

from nodeagent.core.instant import Instant


class Clock(Protocol):
    """What loops need of time. Tests use `tests/kit/clock.py`."""

    def now(self) -> Instant:
        """The present moment."""

    def at_mono_ns(self, mono_ns: int) -> Instant:
        """The moment of a stamp that the C shim took of the machine's monotonic clock."""

    def real_s(self, clock_s: float) -> float:
        """How many real seconds `clock_s` seconds of this clock take; never negative."""


class SystemClock:
    """The machine's clocks."""

    def now(self) -> Instant:
        """Monotonic and wall clock of this machine."""
        return Instant(time.monotonic_ns() // 1_000_000, time.time_ns() // 1_000_000)

    def at_mono_ns(self, mono_ns: int) -> Instant:
        """The stamp itself, and the wall time that lies as far back."""
        now_ns = time.monotonic_ns()
        return Instant(mono_ns // 1_000_000, (time.time_ns() - (now_ns - mono_ns)) // 1_000_000)

    def real_s(self, clock_s: float) -> float:
        """One second is one second."""
        return max(0.0, clock_s)


class AcceleratedClock:
    """A policy clock that runs `factor` times as fast as the machine's, for demonstrations.

    Only policy time is ever accelerated (decision 20); call deadlines and the publisher stay on real time.
    anchor_mono_ms: the real monotonic moment at which both run equal; two processes with the same anchor agree.
    """

    def __init__(self, factor: float, base: Clock | None = None, anchor_mono_ms: int | None = None) -> None:
        if factor <= 0:
            raise ValueError("the factor of an accelerated clock must be positive")
        self._factor = factor
        self._base = base or SystemClock()
        now = self._base.now()
        self._start = now if anchor_mono_ms is None else now.plus_ms(anchor_mono_ms - now.mono_ms)

    def now(self) -> Instant:
        """Start plus the elapsed time multiplied by the factor, on both clocks."""
        elapsed_ms = self._base.now().mono_ms - self._start.mono_ms
        return self._start.plus_ms(int(elapsed_ms * self._factor))

    def at_mono_ns(self, mono_ns: int) -> Instant:
        """The accelerated moment of a real stamp."""
        elapsed_ms = self._base.at_mono_ns(mono_ns).mono_ms - self._start.mono_ms
        return self._start.plus_ms(int(elapsed_ms * self._factor))

    def real_s(self, clock_s: float) -> float:
        """Accelerated time passes faster by the factor."""
        return max(0.0, clock_s / self._factor)


def monotonic_s() -> float:
    """Seconds of the monotonic clock, for deadlines of blocking calls at the edges."""
    return time.monotonic()


def monotonic_ns() -> int:
    """Nanoseconds of the monotonic clock, comparable with the stamps of the C shim."""
    return time.monotonic_ns()


def pause_s(seconds: float) -> None:
    """Sleep in a worker that nobody needs to wake (the hang of a pretended chip, a poll of a child's exit)."""
    time.sleep(seconds)
