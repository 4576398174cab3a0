"""What sources tell the core loop: frozen facts with their time. Nothing else enters policy.

Three-valued knowledge: a failed query is `ChipSilent`, never an empty `ChipCodes`.
"""

from dataclasses import dataclass

from nodeagent.core.instant import Instant
from nodeagent.core.levels import Level, Severity
from nodeagent.core.model import Inventory


@dataclass(frozen=True, slots=True)
class InventorySeen:
    """The library was opened and enumerated; repeated when a new session sees the node again."""

    inventory: Inventory
    at: Instant


@dataclass(frozen=True, slots=True)
class FaultOccurred:
    """A code became active on a chip. severity None = not told (polls, made-up codes; R2)."""

    logic_id: int
    code: int
    severity: Severity | None
    at: Instant


@dataclass(frozen=True, slots=True)
class FaultRecovered:
    """A code is no longer active on a chip, confirmed against the driver's list (decision 5)."""

    logic_id: int
    code: int
    at: Instant


@dataclass(frozen=True, slots=True)
class FaultNoticed:
    """A once-only code: visible in exactly one acknowledged report (decision 3)."""

    logic_id: int
    code: int
    severity: Severity | None
    at: Instant


@dataclass(frozen=True, slots=True)
class ChipCodes:
    """Complete answer of a full query: exactly these codes are active, the card-drop code included.

    at: the moment before the query began, so that an event that came while it ran outranks it.
    """

    logic_id: int
    codes: tuple[int, ...]
    at: Instant


@dataclass(frozen=True, slots=True)
class ChipSilent:
    """A chip gave no usable answer: neither a fault nor a recovery. why: one sentence."""

    logic_id: int
    why: str
    at: Instant


@dataclass(frozen=True, slots=True)
class ChipAnswers:
    """A chip that was silent answers again."""

    logic_id: int
    at: Instant


@dataclass(frozen=True, slots=True)
class SourceComplete:
    """Every chip has answered or missed its deadline once since start (decision 4)."""

    at: Instant


@dataclass(frozen=True, slots=True)
class CarriedFault:
    """A fault of our last published object, kept for a chip until it answers for itself."""

    physical_id: int
    code: int
    level: Level
    since_ms: int


@dataclass(frozen=True, slots=True)
class CarriedOver:
    """What our last published object said (decision 4). Enters before the inventory."""

    faults: tuple[CarriedFault, ...]
    at: Instant


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """A target took the content of view `generation` (decision 18)."""

    generation: int
    at: Instant


@dataclass(frozen=True, slots=True)
class ChipsInUse:
    """Physical ids of the chips that active pods use; None = the read failed, keep the last answer (decision 7)."""

    physical_ids: frozenset[int] | None
    at: Instant


@dataclass(frozen=True, slots=True)
class Unattributed:
    """A driver event that belongs to no known chip, or carries no code: counted and named, never applied."""

    logic_id: int
    code: int
    at: Instant


ChipFact = FaultOccurred | FaultRecovered | FaultNoticed | ChipCodes | ChipSilent | ChipAnswers
Observation = InventorySeen | ChipFact | SourceComplete | CarriedOver | Acknowledged | ChipsInUse | Unattributed
