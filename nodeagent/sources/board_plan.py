"""When the BMC is asked: polls, and the serial number once. Pure; times are monotonic milliseconds.

A poll that fails is tried again at the next period; only where asking often is of no use, or does harm, the pauses are
longer (node-faults 3.6, 4).
"""

from dataclasses import dataclass
from enum import Enum

from nodeagent.core.pauses import backoff_s
from nodeagent.policy.board import STALE_AFTER

REFUSED_PAUSES_S = (60.0, 120.0, 300.0, 600.0)
"""Pauses after logins that the BMC refuses, so that the account is not locked."""
SLOW_S = 600.0
"""Pause where the BMC does not know the command (3.6), and between tries to read the serial number."""


@dataclass(frozen=True, slots=True)
class BoardTimes:
    """poll_s: distance of the begins of two polls. hang_s: real seconds after which a call that has not come back is
    told as no answer; longer than any call may take that keeps its deadlines."""

    poll_s: float = 60.0
    hang_s: float = 120.0


class Outcome(Enum):
    """How a poll ended; the values are labels of `ipmi_polls_total`."""

    GOOD = "ok"
    FAILED = "error"
    NO_ACCESS = "no_access"
    REFUSED = "refused"
    NOT_SUPPORTED = "not_supported"
    HUNG = "hung"


class BoardPlan:
    """Follows polls; one call at a time is its caller's matter.

    failures: polls failed in a row. good_ever: a poll of this run was good.
    """

    def __init__(self, times: BoardTimes) -> None:
        self._period_ms = round(times.poll_s * 1000)
        self._due_ms: int | None = None
        self._refused = 0
        self._serial_due_ms: int | None = None
        self._serial_known = False
        self.failures = 0
        self.good_ever = False

    def poll_due_ms(self, now_ms: int) -> int:
        """When the next poll begins; the first one at once."""
        return now_ms if self._due_ms is None else self._due_ms

    def on_poll(self, outcome: Outcome, begun_ms: int, now_ms: int) -> None:
        """A poll that began at `begun_ms` has ended, or HUNG: it has not come back, or still not."""
        self.good_ever |= outcome is Outcome.GOOD
        self.failures = 0 if outcome is Outcome.GOOD else self.failures + 1
        self._refused = self._refused + 1 if outcome is Outcome.REFUSED else 0
        if outcome is Outcome.GOOD and self._serial_due_ms is None:
            self._serial_due_ms = now_ms
        # Polls keep to their grid: a slow one costs those it ran into, it is not made up for by polls without a pause.
        self._due_ms = begun_ms + ((now_ms - begun_ms) // self._period_ms + 1) * self._period_ms
        pause_s = 0.0
        if outcome is Outcome.REFUSED:
            pause_s = backoff_s(REFUSED_PAUSES_S, self._refused)
        elif outcome is Outcome.NOT_SUPPORTED and self.settled:
            pause_s = SLOW_S
        self._due_ms = max(self._due_ms, now_ms + round(pause_s * 1000))

    @property
    def settled(self) -> bool:
        """A refusal of the command is to be believed: a BMC that answered before may be in the middle of an update."""
        return not self.good_ever or self.failures >= STALE_AFTER

    def serial_due_ms(self) -> int | None:
        """When the serial number is read; None = not before a good poll, or never again."""
        return self._serial_due_ms if not self._serial_known and self.failures == 0 else None

    def on_serial(self, *, known: bool, now_ms: int) -> None:
        """The serial number was read, or that failed and is tried again."""
        self._serial_known = known
        self._serial_due_ms = now_ms + round(SLOW_S * 1000)
