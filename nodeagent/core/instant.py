"""A moment on both clocks, so that pure code never converts between them and never reads one."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Instant:
    """One moment on both clocks.

    mono_ms: milliseconds of the monotonic clock, for every interval.
    wall_ms: Unix milliseconds, for published text only.
    """

    mono_ms: int
    wall_ms: int

    def plus_ms(self, delta_ms: int) -> "Instant":
        """The moment `delta_ms` later (may be negative) on both clocks."""
        return Instant(self.mono_ms + delta_ms, self.wall_ms + delta_ms)
