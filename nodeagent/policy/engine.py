"""The engine: (state, observations, now, levels) -> (state, changes, view). Pure.

Order inside one step (chip-faults 12.3 with R1): all observations by their time; then ends of notices; then
the level of every code on its own (R3), chip and network level, health; then the view.
Duration rules (12.3 step 5), frequency rules (step 7) and manual handling (step 10) have their place between
the applied facts and the judgement: they need nothing else than the applied facts and `now`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from nodeagent.core import codes
from nodeagent.core.instant import Instant
from nodeagent.core.levels import Severity
from nodeagent.core.model import ChipId, ChipView, Family, NodeView
from nodeagent.core.observation import (
    Acknowledged,
    CarriedOver,
    ChipAnswers,
    ChipCodes,
    ChipFact,
    ChipSilent,
    ChipsInUse,
    FaultNoticed,
    FaultOccurred,
    FaultRecovered,
    InventorySeen,
    Observation,
    SourceComplete,
    Unattributed,
)
from nodeagent.policy import faults
from nodeagent.policy.judge import Levels, judge_chip
from nodeagent.policy.state import Change, ChangeKind, ChipState, NodeState


@dataclass(frozen=True, slots=True)
class Step:
    """Result of one step.

    view: the new view when it differs from the last one and may be published, else None.
    wake_at_mono_ms: the engine wants another step then even if nothing is observed, None = it does not.
    """

    state: NodeState
    changes: tuple[Change, ...]
    view: NodeView | None
    wake_at_mono_ms: int | None


def step(state: NodeState, observations: Sequence[Observation], now: Instant, levels: Levels) -> Step:
    """Apply the observations in the order of their time and say what is to be published.

    The sort is stable: observations of the same millisecond stay in the order in which they came.
    Nothing is published before the first complete query (decision 4): `view` stays None until then.
    """
    work = _Work(state, now, levels)
    for observation in sorted(observations, key=_time):
        work.apply(observation)
    work.end_notices()
    return work.finish()


def relevel(state: NodeState, now: Instant, levels: Levels) -> Step:
    """Judge every chip again, after a change of the fault table."""
    work = _Work(state, now, levels)
    work.dirty.update(state.chips)
    return work.finish()


def _time(observation: Observation) -> int:
    return observation.at.mono_ms


class _Work:
    """One step in progress: copies of what the step touches, nothing that outlives it."""

    def __init__(self, state: NodeState, now: Instant, levels: Levels) -> None:
        self.before = state
        self.now = now
        self.levels = levels
        self.chips = dict(state.chips)
        self.inventory = state.inventory
        self.carried = state.carried
        self.in_use = state.in_use
        self.complete = state.complete
        self.acknowledged = state.acknowledged
        self.entering = state.generation + 1
        self.dirty: set[int] = set()
        self.copied: set[int] = set()
        self.changes: list[Change] = []

    def apply(self, observation: Observation) -> None:
        """Take one observation in; the order of the calls is the order of their time."""
        if isinstance(observation, InventorySeen):
            self._inventory(observation)
        elif isinstance(observation, CarriedOver):
            self._carried_over(observation)
        elif isinstance(observation, SourceComplete):
            self._complete(observation)
        elif isinstance(observation, Acknowledged):
            self._acknowledged(observation)
        elif isinstance(observation, ChipsInUse):
            self._pods(observation)
        elif isinstance(observation, Unattributed):
            self._unattributed(observation.logic_id, observation.code, observation.at)
        else:
            self._chip_fact(observation)

    # -- facts about the node -------------------------------------------------

    def _inventory(self, seen: InventorySeen) -> None:
        self.inventory = seen.inventory
        for chip in seen.inventory.chips:
            logic_id = chip.logic_id
            if logic_id in self.chips:
                self._writable(logic_id).chip = chip
                continue
            mine = tuple(c for c in self.carried if c.physical_id == chip.physical_id)
            self.chips[logic_id] = faults.from_carried(chip, mine, seen.at, self.entering)
            self.copied.add(logic_id)
            self.dirty.add(logic_id)
            for carried in mine:
                self._tell(ChangeKind.CARRIED, seen.at, logic_id, carried.code, "from our last published object")
        self.carried = ()
        product = seen.inventory.product
        text = (
            f"{len(seen.inventory.chips)} chips, {product.family.value}, chip name {product.chip_name},"
            f" driver {product.driver_version or 'unknown'}, library generation {product.generation}"
        )
        self.changes.append(Change(ChangeKind.INVENTORY, seen.at, detail=text))

    def _carried_over(self, fact: CarriedOver) -> None:
        """What our last object said counts for chips that are yet to come, or have not answered so far."""
        self.carried = () if self.inventory else fact.faults
        for logic_id, chip in list(self.chips.items()):
            mine = tuple(c for c in fact.faults if c.physical_id == chip.chip.physical_id)
            if mine and not chip.answered and not chip.faults:
                self._writable(logic_id).faults = faults.from_carried(chip.chip, mine, fact.at, self.entering).faults

    def _complete(self, done: SourceComplete) -> None:
        if not self.complete:
            self.complete = True
            self.changes.append(Change(ChangeKind.COMPLETE, done.at, detail="first complete query done"))

    def _acknowledged(self, ack: Acknowledged) -> None:
        if ack.generation <= self.acknowledged:
            return
        self.acknowledged = ack.generation
        for logic_id, chip in list(self.chips.items()):
            for note in [n for n in chip.notices.values() if n.entered <= ack.generation]:
                del self._writable(logic_id).notices[note.code]

    def _pods(self, pods: ChipsInUse) -> None:
        if pods.physical_ids is None:
            return
        changed = pods.physical_ids ^ self.in_use
        self.in_use = pods.physical_ids
        self.dirty.update(i for i, c in self.chips.items() if c.chip.physical_id in changed)

    def _unattributed(self, logic_id: int, code: int, at: Instant) -> None:
        text = f"event for logic id {logic_id}, which is no chip of this node"
        self.changes.append(Change(ChangeKind.UNATTRIBUTED, at, code=code, detail=text))

    # -- facts about one chip -------------------------------------------------

    def _chip_fact(self, fact: ChipFact) -> None:
        if fact.logic_id not in self.chips:
            code = fact.code if isinstance(fact, FaultOccurred | FaultRecovered | FaultNoticed) else 0
            self._unattributed(fact.logic_id, code, fact.at)
        elif isinstance(fact, ChipCodes):
            self._codes(fact)
        elif isinstance(fact, ChipSilent):
            self._silent(fact)
        elif isinstance(fact, ChipAnswers):
            self._answers(fact.logic_id, fact.at)
        elif self._ignores(fact.code):
            self._tell(ChangeKind.DISCARDED, fact.at, fact.logic_id, fact.code, "UB code on a product without UB")
        elif isinstance(fact, FaultOccurred):
            self._occurred(fact)
        elif isinstance(fact, FaultRecovered):
            self._writable(fact.logic_id).touched[fact.code] = fact.at.mono_ms
            self._recovered(fact.logic_id, fact.code, fact.at, ChangeKind.RECOVERED)
        else:
            faults.notice(self._writable(fact.logic_id), fact, self.entering)
            self._tell(ChangeKind.NOTICED, fact.at, fact.logic_id, fact.code, severity=fact.severity)

    def _ignores(self, code: int) -> bool:
        """UB (hyper-plane) codes exist on the 950 only and are discarded elsewhere (chip-faults 2.6)."""
        family = self.inventory.product.family if self.inventory else None
        return code in codes.HYPERPLANE_CODES and family is not Family.A5

    def _occurred(self, fact: FaultOccurred) -> None:
        if faults.occur(self._writable(fact.logic_id), fact, self.entering):
            self._tell(ChangeKind.OCCURRED, fact.at, fact.logic_id, fact.code, severity=fact.severity)

    def _recovered(self, logic_id: int, code: int, at: Instant, kind: ChangeKind) -> None:
        was = faults.recover(self._writable(logic_id), code, at, self.acknowledged)
        if was is not None:
            self._tell(kind, at, logic_id, code, severity=was.severity)

    def _codes(self, answer: ChipCodes) -> None:
        """Both directions of a full query: missed faults appear, missed recoveries clear (R10)."""
        self._answers(answer.logic_id, answer.at)
        chip = self._writable(answer.logic_id)
        listed = {c for c in answer.codes if c not in (0, codes.RESET_FINISHED) and not self._ignores(c)}
        for code in faults.missing_from(chip, listed, answer.at.mono_ms):
            kind = ChangeKind.RECOVERED if chip.faults[code].carried is None else ChangeKind.VANISHED
            self._recovered(answer.logic_id, code, answer.at, kind)
        for code in answer.codes:
            if code in listed and code not in chip.faults and not faults.is_newer(chip, code, answer.at.mono_ms):
                self._occurred(FaultOccurred(answer.logic_id, code, None, answer.at))
        faults.settle(chip)

    def _silent(self, fact: ChipSilent) -> None:
        chip = self._writable(fact.logic_id)
        if chip.silent_since is None:
            chip.silent_since = fact.at
            self._tell(ChangeKind.SILENT, fact.at, fact.logic_id, None, fact.why)
        chip.silent_why = fact.why

    def _answers(self, logic_id: int, at: Instant) -> None:
        if self.chips[logic_id].silent_since is not None:
            chip = self._writable(logic_id)
            chip.silent_since, chip.silent_why = None, ""
            self._tell(ChangeKind.ANSWERS, at, logic_id, None, "answers again")

    # -- the end of a step ----------------------------------------------------

    def end_notices(self) -> None:
        """Drop notices whose time is over; a once-only code that nobody took is told (decision 3)."""
        for logic_id, chip in list(self.chips.items()):
            for note in [n for n in chip.notices.values() if n.until_mono_ms <= self.now.mono_ms]:
                del self._writable(logic_id).notices[note.code]
                if note.once:
                    self._tell(ChangeKind.NOTICE_DROPPED, self.now, logic_id, note.code, "never acknowledged")

    def finish(self) -> Step:
        """Judge the touched chips and make the view."""
        before = self.before
        views = self._judge()
        view, generation = before.view, before.generation
        if self.complete and self.inventory is not None:
            chips = tuple(views[c.logic_id] for c in self._ordered())
            product = self.inventory.product
            if view is None or view.chips != chips or view.product != product:
                generation += 1
                view = NodeView(generation, product, chips)
        state = NodeState(
            inventory=self.inventory,
            chips=self.chips,
            views=views,
            carried=self.carried,
            in_use=self.in_use,
            complete=self.complete,
            generation=generation,
            acknowledged=self.acknowledged,
            view=view,
        )
        ends = [n.until_mono_ms for c in self.chips.values() for n in c.notices.values()]
        fresh = view if generation != before.generation else None
        return Step(state, tuple(self.changes), fresh, min(ends, default=None))

    def _ordered(self) -> list[ChipId]:
        """Chips in the driver's order; chips that a later enumeration left out keep their place at the end."""
        listed = list(self.inventory.chips) if self.inventory else []
        present = {c.logic_id for c in listed}
        return listed + [c.chip for i, c in self.chips.items() if i not in present]

    def _judge(self) -> dict[int, ChipView]:
        if self.inventory is None or not self.dirty:
            return dict(self.before.views)
        views = dict(self.before.views)
        family = self.inventory.product.family
        for logic_id in self.dirty:
            chip = self.chips[logic_id]
            views[logic_id] = judge_chip(chip, family, chip.chip.physical_id in self.in_use, self.levels)
        return views

    def _writable(self, logic_id: int) -> ChipState:
        """The step's own copy of a chip; the chip is judged again at the end."""
        self.dirty.add(logic_id)
        if logic_id not in self.copied:
            self.chips[logic_id] = self.chips[logic_id].copy(self.now.mono_ms)
            self.copied.add(logic_id)
        return self.chips[logic_id]

    def _tell(
        self,
        kind: ChangeKind,
        at: Instant,
        logic_id: int,
        code: int | None,
        detail: str = "",
        severity: Severity | None = None,
    ) -> None:
        chip = self.chips[logic_id].chip
        if code is None:
            self.changes.append(Change(kind, at, chip, detail=detail))
        else:
            decision = self.levels.level_of(code, severity)
            self.changes.append(Change(kind, at, chip, code, decision.level, decision.known, detail))
