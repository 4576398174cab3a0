"""What the chip source remembers of each chip: when to ask, what is in doubt, why it is left alone. No I/O."""

from dataclasses import dataclass, field

from nodeagent.core.instant import Instant
from nodeagent.core.model import ChipId

RECHECK_MS = (0, 1000, 2000)
"""A recovery is checked against the driver's list at once and, while still listed, after 1 s and 2 s (decision 5)."""
LIST_LAG_MS = 2500
"""The driver's list may still show a code this long after its recovery; it does not count as a new fault then."""
QUARANTINE_S = (30, 60, 120, 300)
"""Pauses before a chip whose call hung is tried again, in a host of its own."""
RETRY_S = (1, 2, 5, 10, 30, 60)
"""Pauses before a failed query of a chip, a failed subscription or a failed start is tried again."""
CRASHES_TO_QUARANTINE = 2
"""A chip whose call ended the driver host so often in a row is left alone like one that hangs."""
SETTLED_MS = 30_000
"""A session that lived so long was a good one: the next is opened without a pause."""


@dataclass(slots=True)
class Recheck:
    """A recovery that waits to be confirmed. came: time of the event. done: checks made so far."""

    came: Instant
    done: int = 0

    @property
    def due_ms(self) -> int:
        """Monotonic time of the next check."""
        return self.came.mono_ms + RECHECK_MS[min(self.done, len(RECHECK_MS) - 1)]


@dataclass(slots=True)
class Track:
    """One chip as the source sees it. Times are mono_ms.

    wanted: a full query was asked for since the last one was handed out.
    answered: has answered or missed its deadline once. listed: the present session enumerates it.
    probe_due_ms: set while the chip is in quarantine, because its last call hung: only probes ask it.
    """

    chip: ChipId
    codes_due_ms: int
    health_due_ms: int
    wanted: bool = False
    answered: bool = False
    listed: bool = True
    dropped: bool = False
    silent: bool = False
    failures: int = 0
    crashes: int = 0
    quarantines: int = 0
    probe_due_ms: int | None = None
    rechecks: dict[int, Recheck] = field(default_factory=dict)
    recovered_ms: dict[int, int] = field(default_factory=dict)

    @property
    def askable(self) -> bool:
        """May be asked in the main session."""
        return self.listed and self.probe_due_ms is None

    def want_codes(self, now_ms: int) -> None:
        """A full query that begins after this is due: the list of one under way may be older than what was missed."""
        self.codes_due_ms, self.wanted = min(self.codes_due_ms, now_ms), True

    def next_codes_ms(self) -> int:
        """When the code list is wanted next: a recovery to confirm, or a full query."""
        return min([self.codes_due_ms, *(r.due_ms for r in self.rechecks.values())])

    def doubt_recovery(self, code: int, at: Instant) -> None:
        """A recovery waits to be confirmed by the list; one that waits already keeps its time and its checks."""
        self.rechecks.setdefault(code, Recheck(at))

    def confirmed(self, listed: tuple[int, ...], asked: Instant) -> dict[int, Instant]:
        """Recoveries that the list of a query confirms, with their times; they wait no longer.

        Only those whose check was due before the query: gone from the list = true; listed to the end = another
        module's, and forgotten.
        """
        found: dict[int, Instant] = {}
        for code, recheck in list(self.rechecks.items()):
            if recheck.due_ms > asked.mono_ms:
                continue
            if code not in listed:
                found[code] = recheck.came
            elif recheck.done + 1 < len(RECHECK_MS):
                recheck.done += 1
                continue
            del self.rechecks[code]
        return found

    def unchecked(self, asked: Instant) -> dict[int, Instant]:
        """Recoveries that a failed query should have checked, with their times; they wait no longer."""
        found = {code: r.came for code, r in self.rechecks.items() if r.came <= asked}
        for code in found:
            del self.rechecks[code]
        return found

    def remember_recovery(self, code: int, at: Instant, now_ms: int) -> None:
        """A recovery was passed on; forget those that the list cannot lag behind any more."""
        self.recovered_ms = {c: t for c, t in self.recovered_ms.items() if now_ms - t < LIST_LAG_MS}
        self.recovered_ms[code] = at.mono_ms

    def lagging(self, code: int, asked_ms: int) -> bool:
        """The list shows a code whose recovery is so fresh that the list may be behind."""
        came = self.recovered_ms.get(code)
        return came is not None and asked_ms - came < LIST_LAG_MS
