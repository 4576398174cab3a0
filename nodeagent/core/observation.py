"""What sources tell the core loop: frozen facts with their time. Nothing else enters policy.

Three-valued knowledge: a failed query is `ChipSilent`, never an empty `ChipCodes`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from nodeagent.core.instant import Instant
from nodeagent.core.levels import Level, Severity
from nodeagent.core.model import Inventory, Reason
from nodeagent.core.switch import SwitchRecord
from nodeagent.core.switch_codes import SwitchLevel


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
class PortsDown:
    """How many ports of a 950 chip are down, just before the event that this refines (4.5). None = unknown."""

    logic_id: int
    bonding: int | None
    ub: int | None
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
class CarriedSwitches:
    """Switch faults from before the start, kept until the library answers.

    faults: with their published level where only our object knows them, None = by the table. floor: node level of the
    object where its single faults do not explain it.
    """

    faults: tuple[tuple[SwitchRecord, SwitchLevel | None], ...] = ()
    floor: SwitchLevel | None = None


@dataclass(frozen=True, slots=True)
class CarriedOver:
    """What our last published object and our state file said (decisions 4 and 17). Normally before the inventory.

    manual: physical ids that the object names as manually separated, None when there was no such object.
    reasons: (physical id, upgrade reason) of the object. memory: what the state file holds of each chip, by physical
    id (nodeagent.policy.memory reads it); empty when there is none or it is stale. same_boot: its monotonic times
    are of this boot. object_newer: the object was written after the memory was saved, so what it adds counts too.
    switches: None = nothing was known of switches.
    """

    faults: tuple[CarriedFault, ...]
    at: Instant
    manual: frozenset[int] | None = None
    reasons: tuple[tuple[int, Reason], ...] = ()
    memory: Mapping[int, Mapping[str, object]] = field(default_factory=dict)
    same_boot: bool = False
    object_newer: bool = False
    switches: CarriedSwitches | None = None


@dataclass(frozen=True, slots=True)
class ManualField:
    """`ManuallySeparateNPU` of the live object, read after `generation` was acknowledged (R8).

    physical_ids: the chips that it names. A failed read makes no such observation.
    """

    physical_ids: frozenset[int]
    generation: int
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


@dataclass(frozen=True, slots=True)
class SwitchLibraryFound:
    """Whether the LingQu library serves this node; while it does not, nothing is known of switches."""

    present: bool
    at: Instant


@dataclass(frozen=True, slots=True)
class SwitchEventSeen:
    """One event of a switch, in the order in which they came."""

    record: SwitchRecord
    at: Instant


@dataclass(frozen=True, slots=True)
class SwitchListSeen:
    """Complete answer of a query: exactly these faults are present.

    at: the moment before the query began, so that an event that came while it ran outranks it.
    """

    records: tuple[SwitchRecord, ...]
    at: Instant


@dataclass(frozen=True, slots=True)
class SwitchSilent:
    """A query failed: the list stays as it is. why: one sentence; empty = it answers again."""

    why: str
    at: Instant


SwitchFact = SwitchLibraryFound | SwitchEventSeen | SwitchListSeen | SwitchSilent
ChipFact = FaultOccurred | FaultRecovered | FaultNoticed | ChipCodes | ChipSilent | ChipAnswers | PortsDown
Observation = (
    InventorySeen
    | ChipFact
    | SwitchFact
    | SourceComplete
    | CarriedOver
    | Acknowledged
    | ChipsInUse
    | Unattributed
    | ManualField
)
