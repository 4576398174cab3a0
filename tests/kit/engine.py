"""Drive the pure engine by hand: one `step` a row, as in the worked examples of chip-faults 13."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from nodeagent.core.files import SHIPPED_SWITCHES, SHIPPED_TABLES, read_shipped
from nodeagent.core.instant import Instant
from nodeagent.core.levels import Severity
from nodeagent.core.model import ChipId, ChipView, Family, Inventory, NodeView, Product
from nodeagent.core.observation import (
    Acknowledged,
    CarriedOver,
    ChipCodes,
    ChipsInUse,
    FaultNoticed,
    FaultOccurred,
    FaultRecovered,
    InventorySeen,
    Observation,
    SourceComplete,
    SwitchEventSeen,
    SwitchListSeen,
)
from nodeagent.core.switch import SwitchRecord
from nodeagent.policy.engine import Step, reconfigure, step
from nodeagent.policy.rules import Configuration, RuleSet
from nodeagent.policy.state import NodeState
from nodeagent.policy.switch_document import overlaid_switches, read_switch_section
from nodeagent.policy.switch_table import SwitchTable
from nodeagent.policy.table import FaultTable, load_table
from nodeagent.render.device_info import render_device_info
from nodeagent.render.reading import parse_device_info

EPOCH_MS = 1_760_000_000_000


@cache
def shipped_table() -> FaultTable:
    """The shipped fault tables, loaded once a process."""
    return load_table([read_shipped(name) for name in SHIPPED_TABLES])[0]


@cache
def shipped_switches() -> SwitchTable:
    """The shipped table of switch faults."""
    return overlaid_switches(SwitchTable(), read_switch_section(*read_shipped(SHIPPED_SWITCHES)))[0]


def at(seconds: float) -> Instant:
    """The moment `seconds` after the epoch of the examples."""
    ms = round(seconds * 1000)
    return Instant(ms, EPOCH_MS + ms)


def config_of(
    table: FaultTable | None = None, rules: RuleSet | None = None, switches: SwitchTable | None = None
) -> Configuration:
    """A configuration of the shipped tables, without rules unless given."""
    return Configuration(table or shipped_table(), rules or RuleSet(), "test", switches=switches or shipped_switches())


class Bench:
    """An engine with some chips, complete from the start. Logic and physical ids are equal.

    restored: enters before the chips are known, as after a restart; the chips have then not answered yet.
    """

    def __init__(
        self,
        chips: int = 1,
        family: Family = Family.A2,
        rules: RuleSet | None = None,
        restored: CarriedOver | None = None,
        begin_s: float = -1000,
        switches: SwitchTable | None = None,
    ) -> None:
        self.config = config_of(None, rules, switches)
        self.state = NodeState()
        self.last: Step | None = None
        ids = tuple(ChipId(i, i, i, 0) for i in range(chips))
        begin = at(begin_s)
        first: list[Observation] = [] if restored is None else [restored]
        first += [InventorySeen(Inventory(Product(family, "chip"), ids), begin)]
        self.step(begin_s, *first, SourceComplete(begin))

    @property
    def table(self) -> FaultTable:
        """The table in force."""
        return self.config.table

    def step(self, seconds: float, *observations: Observation) -> Step:
        """One step at a moment."""
        self.last = step(self.state, observations, at(seconds), self.config)
        self.state = self.last.state
        return self.last

    def reconfigure(self, seconds: float, rules: RuleSet) -> Step:
        """Other rules from now on."""
        self.config = config_of(None, rules)
        self.last = reconfigure(self.state, at(seconds), self.config)
        self.state = self.last.state
        return self.last

    def reasons(self, logic_id: int = 0) -> set[tuple[str, str, str, float]]:
        """(code, level, type, seconds) of the chip's upgrade reasons."""
        return {
            (r.code_text, r.level.text, r.upgrade_type.value, (r.upgrade_time_ms - EPOCH_MS) / 1000)
            for r in self.chip(logic_id).reasons
        }

    def entry(self, logic_id: int = 0) -> dict[str, tuple[str, float]]:
        """Code text -> (level, seconds) of the chip's published time-and-level maps, both planes together."""
        data = render_device_info(replace(self.view, chips=(self.chip(logic_id),)), 1)
        faults = parse_device_info(data).faults
        return {f.code_text: (f.level.text, (f.since_ms - EPOCH_MS) / 1000) for f in faults}

    @property
    def view(self) -> NodeView:
        """The view as it would be published now."""
        assert self.state.view is not None
        return self.state.view

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


def switch_event(record: SwitchRecord, seconds: float) -> SwitchEventSeen:
    """An event of a switch."""
    return SwitchEventSeen(record, at(seconds))


def switch_list(seconds: float, *records: SwitchRecord) -> SwitchListSeen:
    """A complete answer of the LingQu library."""
    return SwitchListSeen(records, at(seconds))
