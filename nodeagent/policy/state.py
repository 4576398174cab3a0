"""What the engine remembers.

A step never changes the state that it was given: the first touch of a chip copies it, further events of the
same step work on that copy. So the cost of a step grows with its events and the chips they touch.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from nodeagent.core.instant import Instant
from nodeagent.core.levels import Level, Severity
from nodeagent.core.model import ChipId, ChipView, Inventory, NodeView
from nodeagent.core.observation import CarriedFault

NOTICE_LIMIT_MS = 300_000
"""A notice that no target acknowledged is dropped and counted after this time (decision 3)."""
LEAVING_LIMIT_MS = 10_000
"""A fault that came and went before a report showed it stays for one report, this long at most (R1)."""

TOUCHED_LIMIT_MS = 60_000
"""No driver call runs longer than this, so older event times need not be remembered."""


@dataclass(frozen=True, slots=True)
class ActiveFault:
    """A code that is active on a chip.

    since: of the earliest report while active. entered: generation of the first view that shows it.
    carried: level of our last published object while the chip has not answered for itself, else None.
    """

    code: int
    since: Instant
    severity: Severity | None
    entered: int
    carried: Level | None = None


@dataclass(frozen=True, slots=True)
class Notice:
    """A code that is shown until one write that contains it is acknowledged (decision 3).

    entered: generation of the first view that shows it. until_mono_ms: dropped then, acknowledged or not.
    once: a once-only code; False for a fault that recovered before any report showed it.
    """

    code: int
    since: Instant
    severity: Severity | None
    entered: int
    until_mono_ms: int
    once: bool


@dataclass(slots=True)
class ChipState:
    """One chip. Only the step that made a copy writes to it.

    touched: code -> mono_ms of its last event, so that an older query answer does not contradict it.
    answered: a full query of this process run has succeeded. silent_since: no usable answer since then.
    """

    chip: ChipId
    faults: dict[int, ActiveFault] = field(default_factory=dict)
    notices: dict[int, Notice] = field(default_factory=dict)
    touched: dict[int, int] = field(default_factory=dict)
    answered: bool = False
    silent_since: Instant | None = None
    silent_why: str = ""

    def copy(self, now_mono_ms: int) -> "ChipState":
        """A copy to work on, without event times that no query can be older than any more."""
        oldest = now_mono_ms - TOUCHED_LIMIT_MS
        return ChipState(
            self.chip,
            dict(self.faults),
            dict(self.notices),
            {code: at for code, at in self.touched.items() if at > oldest},
            self.answered,
            self.silent_since,
            self.silent_why,
        )


@dataclass(frozen=True, slots=True)
class NodeState:
    """Everything the engine knows. `NodeState()` is the start."""

    inventory: Inventory | None = None
    chips: Mapping[int, ChipState] = field(default_factory=dict)
    views: Mapping[int, ChipView] = field(default_factory=dict)
    carried: tuple[CarriedFault, ...] = ()
    in_use: frozenset[int] = frozenset()
    complete: bool = False
    generation: int = 0
    acknowledged: int = 0
    view: NodeView | None = None


class ChangeKind(Enum):
    """What a step found worth telling (log, Events, metrics)."""

    OCCURRED = "occurred"
    RECOVERED = "recovered"
    NOTICED = "noticed"
    NOTICE_DROPPED = "notice dropped"
    SILENT = "silent"
    ANSWERS = "answers"
    UNATTRIBUTED = "unattributed"
    DISCARDED = "discarded"
    CARRIED = "carried over"
    VANISHED = "vanished"
    INVENTORY = "inventory"
    COMPLETE = "complete"


@dataclass(frozen=True, slots=True)
class Change:
    """One line of what happened. level and known describe the code by itself; detail is for people."""

    kind: ChangeKind
    at: Instant
    chip: ChipId | None = None
    code: int | None = None
    level: Level | None = None
    known: bool = True
    detail: str = ""
