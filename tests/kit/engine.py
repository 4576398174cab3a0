"""Drive the pure engine by hand: one `step` a row, as in the worked examples of chip-faults 13."""

from collections.abc import Sequence
from functools import cache

from nodeagent.core.files import SHIPPED_TABLES, read_shipped
from nodeagent.core.instant import Instant
from nodeagent.core.levels import Severity
from nodeagent.core.model import ChipId, ChipView, Family, Inventory, Product
from nodeagent.core.observation import (
    Acknowledged,
    ChipCodes,
    ChipsInUse,
    FaultNoticed,
    FaultOccurred,
    FaultRecovered,
    InventorySeen,
    Observation,
    SourceComplete,
)
from nodeagent.policy.engine import Step, step
from nodeagent.policy.state import NodeState
from nodeagent.policy.table import FaultTable, load_table

EPOCH_MS = 1_760_000_000_000


@cache
def shipped_table() -> FaultTable:
    """The shipped fault tables, loaded once a process."""
    return load_table([read_shipped(name) for name in SHIPPED_TABLES])[0]


def at(seconds: float) -> Instant:
    """The moment `seconds` after the epoch of the examples."""
    ms = round(seconds * 1000)
    return Instant(ms, EPOCH_MS + ms)


class Bench:
    """An engine with some chips, complete from the start. Logic and physical ids are equal."""

    def __init__(self, chips: int = 1, family: Family = Family.A2, table: FaultTable | None = None) -> None:
        self.table = table or shipped_table()
        self.state = NodeState()
        self.last: Step | None = None
        ids = tuple(ChipId(i, i, i, 0) for i in range(chips))
        begin = at(-1000)
        self.step(-1000, InventorySeen(Inventory(Product(family, "chip"), ids), begin), SourceComplete(begin))

    def step(self, seconds: float, *observations: Observation) -> Step:
        """One step at a moment."""
        self.last = step(self.state, observations, at(seconds), self.table)
        self.state = self.last.state
        return self.last

    def ack(self, seconds: float) -> Step:
        """A target takes the present view."""
        return self.step(seconds, Acknowledged(self.state.generation, at(seconds)))

    def chip(self, logic_id: int = 0) -> ChipView:
        """The chip as it would be published now."""
        assert self.state.view is not None
        return next(c for c in self.state.view.chips if c.chip.logic_id == logic_id)

    def shown(self, logic_id: int = 0) -> dict[str, tuple[str, float]]:
        """Code text -> (level, seconds of its time) of the chip's faults."""
        return {f.text: (f.level.text, (f.since_ms - EPOCH_MS) / 1000) for f in self.chip(logic_id).faults}


def occur(code: int, seconds: float, severity: Severity | None = Severity.MAJOR, chip: int = 0) -> FaultOccurred:
    """An occurrence."""
    return FaultOccurred(chip, code, severity, at(seconds))


def recover(code: int, seconds: float, chip: int = 0) -> FaultRecovered:
    """A confirmed recovery."""
    return FaultRecovered(chip, code, at(seconds))


def once(code: int, seconds: float, severity: Severity | None = Severity.MAJOR, chip: int = 0) -> FaultNoticed:
    """A once-only code."""
    return FaultNoticed(chip, code, severity, at(seconds))


def listed(codes: Sequence[int], seconds: float, chip: int = 0) -> ChipCodes:
    """The answer of a full query."""
    return ChipCodes(chip, tuple(codes), at(seconds))


def used(physical_ids: set[int] | None, seconds: float) -> ChipsInUse:
    """What pods use."""
    return ChipsInUse(None if physical_ids is None else frozenset(physical_ids), at(seconds))
