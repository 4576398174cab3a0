"""What two device-info objects of one node can differ in: a closed list of kinds, and one record per difference."""

from dataclasses import dataclass
from enum import Enum

ABSENT = "-"
"""Stands for what one side does not have."""


class Kind(Enum):
    """Closed list. "Missing" and "extra" are meant from our side: what only theirs has, what only ours has."""

    OBJECT = "object"
    UNACCEPTABLE = "unacceptable"
    STALE = "stale"
    LABEL = "label"
    KEY = "key"
    PRODUCT = "product"
    IDENTITY = "identity"
    AVAILABLE = "available"
    UNHEALTHY = "unhealthy"
    NETWORK_UNHEALTHY = "network_unhealthy"
    RECOVERING = "recovering"
    FAULT_MISSING = "fault_missing"
    FAULT_EXTRA = "fault_extra"
    FAULT_LEVEL = "fault_level"
    FAULT_TYPE = "fault_type"
    FAULT_TIME = "fault_time"
    FAULT_SPELLING = "fault_spelling"
    SWITCH = "switch"
    MANUAL = "manual"
    REASON = "reason"
    VOLATILE = "volatile"


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference. Kind and field say which one it is; the same one can have other values later.

    field: where, e.g. `huawei.com/Ascend910-Unhealthy Ascend910-3`. theirs, ours: the values, ABSENT for none.
    device, code: what it is about, where it is about one. explanation: the cause if it is a known one, else empty.
    """

    kind: Kind
    field: str
    theirs: str
    ours: str
    device: str = ""
    code: str = ""
    explanation: str = ""

    @property
    def key(self) -> str:
        """The same text for the same difference, now and later."""
        return f"{self.kind.value} {self.field}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """differences: by kind and field. volatile: what may differ at any time and means nothing. left_out: how many
    differences there are besides, when they are too many."""

    differences: tuple[Difference, ...]
    volatile: tuple[Difference, ...] = ()
    left_out: int = 0

    @property
    def same(self) -> bool:
        """The objects say the same."""
        return not self.differences

    @property
    def unexplained(self) -> tuple[Difference, ...]:
        """Differences without a known cause."""
        return tuple(each for each in self.differences if not each.explanation)
