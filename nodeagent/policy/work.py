"""One engine step in progress: how each observation changes the copies that the step works on.

Nothing here outlives the step. The chips' own rules are in nodeagent.policy.faults (active codes),
nodeagent.policy.raises (frequency, duration, manual separation) and nodeagent.policy.special (association, ports).
"""

from dataclasses import replace

from nodeagent.core import codes
from nodeagent.core.instant import Instant
from nodeagent.core.levels import Severity
from nodeagent.core.model import Family
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
    ManualField,
    Observation,
    PortsDown,
    SourceComplete,
    SwitchFact,
    Unattributed,
)
from nodeagent.policy import faults, raises, special
from nodeagent.policy.raises import Told
from nodeagent.policy.restore import merge, restore
from nodeagent.policy.rules import Configuration
from nodeagent.policy.state import Change, ChangeKind, ChipState, CodeFact, NodeState


class Work:
    """Copies of what the step touches, and what it found worth telling."""

    def __init__(self, state: NodeState, now: Instant, config: Configuration) -> None:
        self.before = state
        self.now = now
        self.config = config
        self.chips = dict(state.chips)
        self.inventory = state.inventory
        self.restored = state.restored
        self.in_use = state.in_use
        self.complete = state.complete
        self.acknowledged = state.acknowledged
        self.entering = state.generation + 1
        self.dirty: set[int] = set()
        self.changes: list[Change] = []
        self._copied: set[int] = set()

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
        elif isinstance(observation, ManualField):
            self._manual_field(observation)
        elif isinstance(observation, Unattributed):
            self._unattributed(observation.logic_id, observation.code, observation.at)
        elif isinstance(observation, SwitchFact):
            return  # no policy of switches yet
        else:
            self._chip_fact(observation)

    # -- facts about the node -------------------------------------------------

    def _inventory(self, seen: InventorySeen) -> None:
        self.inventory = seen.inventory
        for chip in seen.inventory.chips:
            logic_id = chip.logic_id
            if logic_id in self.chips:
                state = self.writable(logic_id)
                state.chip = chip
                continue
            self.chips[logic_id] = ChipState(chip)
            self._copied.add(logic_id)
            self.dirty.add(logic_id)
            if self.restored is not None:
                self._restore(logic_id, self.restored)
        product = seen.inventory.product
        text = (
            f"{len(seen.inventory.chips)} chips, {product.family.value}, chip name {product.chip_name},"
            f" driver {product.driver_version or 'unknown'}, library generation {product.generation}"
        )
        self.changes.append(Change(ChangeKind.INVENTORY, seen.at, detail=text))

    def _carried_over(self, carried: CarriedOver) -> None:
        """Counts for chips that are yet to come, and for those that have not answered so far."""
        self.restored = carried
        for logic_id in list(self.chips):
            self._restore(logic_id, carried)

    def _restore(self, logic_id: int, carried: CarriedOver) -> None:
        """The chip's past, under what was seen of it since the start."""
        chip, rules = self.writable(logic_id), self.config.rules
        past = ChipState(chip.chip)
        told = restore(past, carried, self.entering)
        told += raises.reconcile(past, rules, carried.at)
        answered = chip.answered
        vanished = [] if answered is None else faults.missing_from(past, set(chip.faults), answered.mono_ms)
        for code in past.faults:
            if code not in chip.faults and code not in vanished:
                self._tell(ChangeKind.CARRIED, carried.at, logic_id, code, "from before the start")
        merge(past, chip)
        self.tell_raises(logic_id, told)
        if answered is not None:
            for code in vanished:
                self._recovered(logic_id, code, answered, ChangeKind.VANISHED)
            self._first_answer(chip, set(), answered)

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
                mine = self.writable(logic_id)
                del mine.notices[note.code]
                if note.once:
                    raises.left(mine, note.code, ack.at, self.config.rules)

    def _pods(self, pods: ChipsInUse) -> None:
        if pods.physical_ids is None:
            return
        changed = pods.physical_ids ^ self.in_use
        self.in_use = pods.physical_ids
        self.dirty.update(i for i, c in self.chips.items() if c.chip.physical_id in changed)

    def _manual_field(self, field: ManualField) -> None:
        """Whoever was named by an acknowledged write and is not any more was lifted by an operator (R8)."""
        for logic_id, chip in list(self.chips.items()):
            if chip.manual is None or chip.manual.entered > field.generation:
                continue
            if chip.chip.physical_id not in field.physical_ids:
                self.tell_raises(logic_id, raises.lift(self.writable(logic_id), field.at))

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
        elif isinstance(fact, PortsDown):
            special.ports(self.writable(fact.logic_id), fact)
        else:
            self._code_fact(fact)

    def _code_fact(self, fact: CodeFact) -> None:
        if self._ignores(fact.code):
            self._tell(ChangeKind.DISCARDED, fact.at, fact.logic_id, fact.code, "UB code on a product without UB")
            return
        chip = self.writable(fact.logic_id)
        special.note_trigger(chip, fact, self.config.rules)
        if special.holds_back(fact.code, self.config.rules):
            chip.held.append(fact)
            self._tell(ChangeKind.HELD, fact.at, fact.logic_id, fact.code, "until its cause is known")
            return
        self._apply_code(fact)

    def _apply_code(self, fact: CodeFact) -> None:
        if isinstance(fact, FaultOccurred):
            self._occurred(fact)
        elif isinstance(fact, FaultRecovered):
            self.writable(fact.logic_id).touched[fact.code] = fact.at.mono_ms
            self._recovered(fact.logic_id, fact.code, fact.at, ChangeKind.RECOVERED)
        else:
            chip = self.writable(fact.logic_id)
            if faults.notice(chip, fact, self.entering):
                raises.noticed(chip, fact.code, fact.at, self.config.rules)
            self._tell(ChangeKind.NOTICED, fact.at, fact.logic_id, fact.code, severity=fact.severity)

    def _ignores(self, code: int) -> bool:
        """UB (hyper-plane) codes exist on the 950 only and are discarded elsewhere (chip-faults 2.6)."""
        family = self.inventory.product.family if self.inventory else None
        return code in codes.HYPERPLANE_CODES and family is not Family.A5

    def _occurred(self, fact: FaultOccurred) -> None:
        chip = self.writable(fact.logic_id)
        for extra in special.refined(chip, fact, self.config.rules):
            self._occurred(extra)
        fresh = faults.occur(chip, fact, self.entering)
        raises.occurred(chip, fact.code, fact.at, self.config.rules, fresh=fresh)
        if fresh:
            self._tell(ChangeKind.OCCURRED, fact.at, fact.logic_id, fact.code, severity=fact.severity)

    def _recovered(self, logic_id: int, code: int, at: Instant, kind: ChangeKind) -> None:
        chip = self.writable(logic_id)
        again = special.still_down(chip, code, at, self.config.rules)
        was = faults.recover(chip, code, at, self.acknowledged)
        if kind is ChangeKind.VANISHED:
            raises.absent(chip, code, at, self.config.rules)
        else:
            raises.recovered(chip, code, at, self.config.rules, removed=was is not None)
        for derived in special.derived(code, self.config.rules):
            if derived in chip.faults:
                self._recovered(logic_id, derived, at, kind)
        if was is not None:
            self._tell(kind, at, logic_id, code, severity=was.severity)
        if again is not None:
            self._occurred(replace(again, logic_id=logic_id))

    def _codes(self, answer: ChipCodes) -> None:
        """Both directions of a full query: missed faults appear, missed recoveries clear (R10)."""
        self._answers(answer.logic_id, answer.at)
        chip = self.writable(answer.logic_id)
        listed = {c for c in answer.codes if c not in (0, codes.RESET_FINISHED) and not self._ignores(c)}
        for code in faults.missing_from(chip, listed, answer.at.mono_ms):
            kind = ChangeKind.RECOVERED if chip.faults[code].carried is None else ChangeKind.VANISHED
            self._recovered(answer.logic_id, code, answer.at, kind)
        chip.associated &= listed
        for code in answer.codes:
            if code not in listed or code in chip.faults or special.is_explained(chip, code):
                continue
            if not faults.is_newer(chip, code, answer.at.mono_ms):
                self._code_fact(FaultOccurred(answer.logic_id, code, None, answer.at))
        if chip.answered is None:
            self._first_answer(chip, listed, answer.at)

    def _first_answer(self, chip: ChipState, listed: set[int], at: Instant) -> None:
        """Settle what came back from an earlier run. at: when the first query began that was answered."""
        if not chip.recalled:
            # Reasons that came back from the object alone: the answer says whether their code is still there.
            for code in {w.code for w in chip.reasons if w.code is not None} - listed - set(chip.faults):
                if code not in faults.DRIVER_CANNOT_KNOW:
                    raises.absent(chip, code, at, self.config.rules)
        for code in chip.faults:
            raises.resume(chip, code, at, self.config.rules)
        faults.settle(chip, at)

    def _silent(self, fact: ChipSilent) -> None:
        chip = self.writable(fact.logic_id)
        chip.silent_why = fact.why
        if chip.silent_since is None:
            chip.silent_since = fact.at
            self._tell(ChangeKind.SILENT, fact.at, fact.logic_id, None, fact.why)

    def _answers(self, logic_id: int, at: Instant) -> None:
        if self.chips[logic_id].silent_since is not None:
            chip = self.writable(logic_id)
            chip.silent_since = None
            self._tell(ChangeKind.ANSWERS, at, logic_id, None, "answers again")

    # -- after the facts ------------------------------------------------------

    def release_held(self) -> None:
        """Codes that waited long enough for their cause are applied with their own time; explained ones are dropped."""
        for logic_id, chip in list(self.chips.items()):
            if chip.held:
                for fact in special.judge_held(self.writable(logic_id), self.config.rules, self.now):
                    self._apply_code(fact)

    def run_rules(self) -> None:
        """Duration rules, the correction over all chips, frequency rules."""
        rules, now_ms = self.config.rules, self.now.mono_ms
        # Only chips that were touched, or of which something is due: the others cannot have changed.
        due = {i for i, c in self.chips.items() if c.due_mono_ms is not None and c.due_mono_ms <= now_ms}
        for logic_id in sorted(self.dirty | due):
            chip = self.chips[logic_id]
            if any(s.edges for s in chip.duration.values()):
                self.tell_raises(logic_id, raises.run_duration(self.writable(logic_id), rules, self.now))
        for logic_id, code, instead in special.correction(self.chips, rules):
            chip = self.writable(logic_id)
            since = chip.faults.pop(code).since
            self._occurred(FaultOccurred(logic_id, instead, None, since))
        for logic_id in sorted(self.dirty | due):
            chip = self.chips[logic_id]
            if chip.frequency or chip.reasons:
                told = raises.run_frequency(self.writable(logic_id), rules, self.now, self.entering)
                self.tell_raises(logic_id, told)

    def end_notices(self) -> None:
        """Drop notices whose time is over; a once-only code that nobody took is told (decision 3)."""
        for logic_id, chip in list(self.chips.items()):
            for note in [n for n in chip.notices.values() if n.until_mono_ms <= self.now.mono_ms]:
                mine = self.writable(logic_id)
                del mine.notices[note.code]
                if note.once:
                    raises.left(mine, note.code, self.now, self.config.rules)
                    self._tell(ChangeKind.NOTICE_DROPPED, self.now, logic_id, note.code, "never acknowledged")

    def end_suppressions(self) -> None:
        """A suppression that ended since the last step: its chips are judged again (decision 13)."""
        began_ms, ended_ms = self.before.judged_wall_ms, self.now.wall_ms
        if any(began_ms < s.until_ms <= ended_ms for s in self.config.table.suppressions):
            self.dirty.update(self.chips)

    def wake_mono_ms(self) -> int | None:
        """When something ends by itself next: a notice, a wait for a cause, a rule."""
        ends = (s.until_ms - self.now.wall_ms for s in self.config.table.suppressions)
        times = [self.now.mono_ms + left_ms for left_ms in ends if left_ms > 0]
        for logic_id in list(self.dirty):
            chip = self.writable(logic_id)
            chip.due_mono_ms = self._due_mono_ms(chip)
        times += [chip.due_mono_ms for chip in self.chips.values() if chip.due_mono_ms is not None]
        return min(times, default=None)

    def _due_mono_ms(self, chip: ChipState) -> int | None:
        rules = self.config.rules
        times = [n.until_mono_ms for n in chip.notices.values()]
        times += special.held_until(chip, rules)
        if (due := raises.wake_mono_ms(chip, rules, self.now)) is not None:
            times.append(due)
        return min(times, default=None)

    def writable(self, logic_id: int) -> ChipState:
        """The step's own copy of a chip; the chip is judged again at the end."""
        self.dirty.add(logic_id)
        if logic_id not in self._copied:
            self.chips[logic_id] = self.chips[logic_id].copy(self.now.mono_ms)
            self._copied.add(logic_id)
        return self.chips[logic_id]

    # -- what is worth telling ------------------------------------------------

    def tell_raises(self, logic_id: int, told: list[Told]) -> None:
        """Reasons that began and ended."""
        chip = self.chips[logic_id].chip
        for each in told:
            kind = ChangeKind.RAISED if each.began else ChangeKind.LIFTED if each.lifted else ChangeKind.RELEASED
            text = each.why.upgrade_type.value
            self.changes.append(Change(kind, each.at, chip, each.why.code, each.why.level, detail=text))

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
            decision = self.config.table.level_of(code, severity)
            self.changes.append(Change(kind, at, chip, code, decision.level, decision.known, detail))
