"""What the engine remembers.

A step never changes the state that it was given: the first touch of a chip copies it, further events of the
same step work on that copy. So the cost of a step grows with its events and the chips they touch.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple

from nodeagent.core.instant import Instant
from nodeagent.core.levels import Level, Severity
from nodeagent.core.model import ChipId, ChipView, Inventory, NodeView, UpgradeType
from nodeagent.core.observation import CarriedOver, FaultNoticed, FaultOccurred, FaultRecovered
from nodeagent.core.switch_codes import SwitchLevel
from nodeagent.policy.duration import DurationState
from nodeagent.policy.frequency import FrequencyState
from nodeagent.policy.switch_state import SwitchState

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


CodeFact = FaultOccurred | FaultRecovered | FaultNoticed
"""A fact about one code of one chip."""


class Why(NamedTuple):
    """Identity of an upgrade reason on its chip. code None: autofilled, the code is not known any more."""

    code: int | None
    level: Level
    upgrade_type: UpgradeType


UNNAMED = 2**63


@dataclass(frozen=True, slots=True)
class Manual:
    """A chip is manually separated.

    entered: generation of the first view that names it; an operator can only have lifted what a write that
    contained the name has made known (R8). 0 = the published object named it before we started. UNNAMED = no view
    names it now, because its code is suppressed; nobody can lift it meanwhile.
    """

    entered: int


@dataclass(slots=True)
class ChipState:
    """One chip. Only the step that made a copy writes to it.

    touched: code -> mono_ms of its last event, so that an older query answer does not contradict it.
    answered: when the first full query of this process run began that succeeded, None = not yet.
    silent_since: no usable answer since then. silent_why: the last reason, one sentence.
    recalled: began with what the state file remembered.
    held: facts that an association rule keeps back. associated: codes that such a rule dropped and the driver may
    still list. triggers: last occurrence of the code that others are associated with. bonding_down, ub_down: number
    of ports that are down, None = not known. due_mono_ms: when something of this chip ends by itself next.
    """

    chip: ChipId
    faults: dict[int, ActiveFault] = field(default_factory=dict)
    notices: dict[int, Notice] = field(default_factory=dict)
    touched: dict[int, int] = field(default_factory=dict)
    answered: Instant | None = None
    recalled: bool = False
    silent_since: Instant | None = None
    silent_why: str = ""
    reasons: dict[Why, Instant] = field(default_factory=dict)
    frequency: dict[int, FrequencyState] = field(default_factory=dict)
    duration: dict[int, DurationState] = field(default_factory=dict)
    manual: Manual | None = None
    held: list[CodeFact] = field(default_factory=list)
    associated: set[int] = field(default_factory=set)
    triggers: dict[int, Instant] = field(default_factory=dict)
    bonding_down: int | None = None
    ub_down: int | None = None
    due_mono_ms: int | None = None

    def copy(self, now_mono_ms: int) -> "ChipState":
        """A copy to work on, without event times that no query can be older than any more."""
        oldest = now_mono_ms - TOUCHED_LIMIT_MS
        return replace(
            self,
            faults=dict(self.faults),
            notices=dict(self.notices),
            touched={code: at for code, at in self.touched.items() if at > oldest},
            reasons=dict(self.reasons),
            frequency=dict(self.frequency),
            duration=dict(self.duration),
            held=list(self.held),
            associated=set(self.associated),
            triggers=dict(self.triggers),
        )


@dataclass(frozen=True, slots=True)
class NodeState:
    """Everything the engine knows. `NodeState()` is the start. judged_wall_ms: Unix ms of the last step."""

    inventory: Inventory | None = None
    chips: Mapping[int, ChipState] = field(default_factory=dict)
    views: Mapping[int, ChipView] = field(default_factory=dict)
    restored: CarriedOver | None = None
    in_use: frozenset[int] = frozenset()
    complete: bool = False
    generation: int = 0
    acknowledged: int = 0
    judged_wall_ms: int = 0
    view: NodeView | None = None
    switches: SwitchState = field(default_factory=SwitchState)


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
    RAISED = "raised"
    RELEASED = "released"
    LIFTED = "lifted"
    HELD = "held back"
    SWITCHES_WITHDRAWN = "switch faults withdrawn"
    SWITCHES_CROWDED = "too many switch faults"
    SWITCH_ODD = "odd switch record"


@dataclass(frozen=True, slots=True)
class SwitchTold:
    """What a change of switches is about. place: e.g. `switch 2 port 11`, `switches` for all. text: the code, empty for
    none. peer: what is at the other end, e.g. `npu 5`. name, level, known: of the code by itself."""

    place: str
    text: str = ""
    name: str = ""
    level: SwitchLevel = SwitchLevel.NOT_HANDLE
    known: bool = True
    peer: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """One line of what happened. level and known describe the code by itself; detail is for people. switch: what it is
    about when it is about a switch; then there is no chip and no code."""

    kind: ChangeKind
    at: Instant
    chip: ChipId | None = None
    code: int | None = None
    level: Level | None = None
    known: bool = True
    detail: str = ""
    switch: SwitchTold | None = None
