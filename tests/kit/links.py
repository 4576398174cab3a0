"""Bricks of the link tests: nodes, chips and moments, and what the engine would hold after a list of observations."""

from collections.abc import Iterable

from nodeagent.core.instant import Instant
from nodeagent.core.levels import Severity
from nodeagent.core.model import ChipId, Family, Inventory, Product
from nodeagent.core.observation import ChipCodes, FaultOccurred, FaultRecovered, InventorySeen, Observation
from nodeagent.sources.link_plan import LinkPlan, LinkTimes

UBOE_BOARD, POD_BOARD = 0x25, 0x03


def at(seconds: float) -> Instant:
    """A moment, with a wall clock that cannot be taken for the other."""
    ms = round(seconds * 1000)
    return Instant(ms, 1_760_000_000_000 + ms)


def node(family: Family = Family.A2, chips: int = 1, board: int = 0) -> Inventory:
    """Chips whose physical ids are their logic ids plus 10."""
    return Inventory(Product(family, "chip", mainboard_id=board), tuple(ChipId(i, i + 10, i, 0) for i in range(chips)))


def planned(family: Family = Family.A2, chips: int = 1, *, board: int = 0, tool: bool = False) -> LinkPlan:
    """A plan that has seen its node at time 0."""
    plan = LinkPlan(LinkTimes(), tool=tool)
    inventory = node(family, chips, board)
    assert plan.take([InventorySeen(inventory, at(0))], at(0)) == [InventorySeen(inventory, at(0))]
    return plan


def occurred(code: int, seconds: float, chip: int = 0, severity: Severity | None = Severity.MAJOR) -> FaultOccurred:
    """An occurrence."""
    return FaultOccurred(chip, code, severity, at(seconds))


def recovered(code: int, seconds: float, chip: int = 0) -> FaultRecovered:
    """A recovery."""
    return FaultRecovered(chip, code, at(seconds))


def listed(seconds: float, *codes: int, chip: int = 0) -> ChipCodes:
    """The answer of a full query that began at `seconds`."""
    return ChipCodes(chip, codes, at(seconds))


def believed(observations: Iterable[Observation], code: int, chip: int = 0, before: bool = False) -> bool:
    """Whether the engine holds a code after these observations, taken in one by one."""
    active, touched = before, -1
    for o in observations:
        if isinstance(o, FaultOccurred | FaultRecovered) and (o.code, o.logic_id) == (code, chip):
            active, touched = isinstance(o, FaultOccurred), o.at.mono_ms
        elif isinstance(o, ChipCodes) and o.logic_id == chip and touched <= o.at.mono_ms:
            active = code in o.codes
    return active
