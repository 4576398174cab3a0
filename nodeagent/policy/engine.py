"""The engine: (state, observations, now, configuration) -> (state, changes, view). Pure.

Order inside one step (chip-faults 12.3 with R1): all observations by their time; codes that an association rule
held back; duration rules; corrections over all chips; frequency rules; ends of notices; then the level of every code
on its own (R3), reasons on top, chip and network level, health; then the view.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from nodeagent.core.instant import Instant
from nodeagent.core.model import ChipId, ChipView, Family, NodeView, SwitchView
from nodeagent.core.observation import Observation
from nodeagent.policy import raises
from nodeagent.policy.judge import judge_chip
from nodeagent.policy.rules import Configuration
from nodeagent.policy.state import UNNAMED, Change, Manual, NodeState
from nodeagent.policy.switch_judge import judge_switches, plane_changes
from nodeagent.policy.switch_state import SwitchState
from nodeagent.policy.work import Work


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


def step(state: NodeState, observations: Sequence[Observation], now: Instant, config: Configuration) -> Step:
    """Apply the observations in the order of their time and say what is to be published.

    The sort is stable: observations of the same millisecond stay in the order in which they came.
    Nothing is published before the first complete query (decision 4): `view` stays None until then.
    """
    work = Work(state, now, config)
    for observation in sorted(observations, key=_time):
        work.apply(observation)
    work.release_held()
    work.run_rules()
    work.end_notices()
    work.end_suppressions()
    return _finish(work)


def reconfigure(state: NodeState, now: Instant, config: Configuration) -> Step:
    """Take over another configuration (7.5): counters and reasons follow their rules, every chip is judged again."""
    work = Work(state, now, config)
    for logic_id in list(work.chips):
        chip = work.writable(logic_id)
        work.tell_raises(logic_id, raises.reconcile(chip, config.rules, now))
        for code, fault in chip.faults.items():
            if fault.carried is None:
                raises.resume(chip, code, fault.since, config.rules)
    work.run_rules()
    work.switches.touched = True
    return _finish(work)


def _time(observation: Observation) -> int:
    return observation.at.mono_ms


def _finish(work: Work) -> Step:
    """Judge the touched chips and make the view."""
    before = work.before
    views = _judge(work)
    switches = work.switches.finish()
    changes = work.changes + work.switches.changes
    view, generation = before.view, before.generation
    if work.complete and work.inventory is not None:
        chips = tuple(views[c.logic_id] for c in _ordered(work))
        product = work.inventory.product
        switch = _judge_switches(work, switches)
        changes += plane_changes(SwitchView() if view is None else view.switch, switch, work.now)
        if view is None or (view.chips, view.product, view.switch) != (chips, product, switch):
            generation += 1
            view = NodeView(generation, product, chips, switch)
    state = NodeState(
        inventory=work.inventory,
        chips=work.chips,
        views=views,
        restored=work.restored,
        in_use=work.in_use,
        complete=work.complete,
        generation=generation,
        acknowledged=work.acknowledged,
        judged_wall_ms=work.now.wall_ms,
        view=view,
        switches=switches,
    )
    fresh = view if generation != before.generation else None
    return Step(state, tuple(changes), fresh, work.wake_mono_ms())


def _ordered(work: Work) -> list[ChipId]:
    """Chips in the driver's order; chips that a later enumeration left out keep their place at the end."""
    listed = list(work.inventory.chips) if work.inventory else []
    present = {c.logic_id for c in listed}
    return listed + [c.chip for i, c in work.chips.items() if i not in present]


def _judge_switches(work: Work, switches: SwitchState) -> SwitchView:
    """Only an A3 has switches that are told of; on a 950 the key has its zero value (lingqu-switch-faults 1)."""
    before = work.before
    if work.inventory is None or work.inventory.product.family is not Family.A3:
        return SwitchView()
    known = before.view is not None and before.inventory == work.inventory
    if known and before.view is not None and not work.switches.touched:
        return before.view.switch
    return judge_switches(switches, work.config.switches)


def _judge(work: Work) -> dict[int, ChipView]:
    views = dict(work.before.views)
    if work.inventory is None:
        return views
    family = work.inventory.product.family
    for logic_id in list(work.dirty):
        chip = work.chips[logic_id]
        used = chip.chip.physical_id in work.in_use
        views[logic_id] = judge_chip(chip, family, used, work.config.table, work.now.wall_ms)
        if chip.manual is not None and (chip.manual.entered == UNNAMED) is views[logic_id].manually_separated:
            entered = work.entering if views[logic_id].manually_separated else UNNAMED
            work.writable(logic_id).manual = Manual(entered)
    return views
