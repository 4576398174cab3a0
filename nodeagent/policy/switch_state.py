"""What the engine remembers of the LingQu switches of an A3 node (lingqu-switch-faults 3). Pure values."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from nodeagent.core.instant import Instant
from nodeagent.core.switch import SwitchRecord
from nodeagent.core.switch_codes import SwitchCode, SwitchLevel

MAX_FAULTS = 1024
"""Distinct faults that are kept (10); 7 chips x 48 ports x 3 codes are 1008."""
MAX_TOUCHED = 4096
"""Identities whose last event is remembered; of more, the oldest are forgotten."""

Identity = tuple[int, int, int, int, int, int]
"""`SwitchRecord.identity`."""


@dataclass(frozen=True, slots=True)
class SwitchFault:
    """One fault, or one notice, that is shown.

    record: with the time that is published. made_up: that time is ours, the library told none. carried: level of our
    last published object while nobody has confirmed the fault, else None. entered, until_mono_ms: of a notice, the
    generation of the first view that shows it, and when it is dropped, acknowledged or not (decision 3).
    """

    record: SwitchRecord
    code: SwitchCode
    made_up: bool = False
    carried: SwitchLevel | None = None
    entered: int = 0
    until_mono_ms: int | None = None

    @property
    def is_notice(self) -> bool:
        """It leaves after one acknowledged report."""
        return self.until_mono_ms is not None


@dataclass(frozen=True, slots=True)
class SwitchState:
    """Everything known of the switches. `SwitchState()` is the start.

    present: whether the library serves this node, None = not told yet. faults: in the order in which they came.
    touched: mono_ms of the last event of an identity, so that an older answer does not contradict it. reported: time of
    notices that left and that the library may still list. answered: when the query began that was answered last.
    restored: our last published object or the state file knew the switches. floor: node level of that object where
    its single faults do not explain it, until somebody says something newer. silent_since: queries fail since then.
    """

    present: bool | None = None
    faults: Mapping[Identity, SwitchFault] = field(default_factory=dict)
    touched: Mapping[Identity, int] = field(default_factory=dict)
    reported: Mapping[Identity, int] = field(default_factory=dict)
    answered: Instant | None = None
    restored: bool = False
    floor: SwitchLevel | None = None
    silent_since: Instant | None = None
    silent_why: str = ""

    @property
    def known(self) -> bool:
        """Something may be said of the switches: by the library, or until it answers by what was published last."""
        return self.present is not False and (self.answered is not None or self.restored or bool(self.faults))
