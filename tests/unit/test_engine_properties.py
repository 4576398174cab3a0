"""Properties of the whole engine: timers, memory, provenance, cost (chip-faults 12; decision 17)."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from kit.engine import Bench, at, config_of, listed, occur, once, recover
from kit.rules import DEFAULTS, LINK, duration, frequency, rules

from nodeagent.core.levels import Level, Plane, plane_of
from nodeagent.core.observation import CarriedOver, FaultOccurred, FaultRecovered, Observation
from nodeagent.policy.engine import reconfigure, step
from nodeagent.policy.memory import remember
from nodeagent.policy.state import NodeState
from nodeagent.policy.why import ChipWhy, explain_chip

RULES = rules(
    frequency(0x80C98008, 600, 2, Level.MANUALLY_SEPARATE),
    frequency(0x80CB8002, 120, 2, Level.PRE_SEPARATE, 60),
    frequency(LINK, 900, 2, Level.MANUALLY_SEPARATE, 300),
    duration(LINK, 20, 60, Level.PRE_SEPARATE),
    duration(0x80E01801, 5, 7, Level.SEPARATE),
)
CODES = (0x80C98008, 0x80CB8002, LINK, 0x80E01801, 0x80C98009, 0x8ABCDE01)
facts = st.tuples(st.sampled_from([occur, recover, once]), st.sampled_from(CODES), st.integers(1, 90))
histories = st.lists(facts, max_size=25)


def levels_of(report: ChipWhy) -> tuple[Level, Level]:
    """Chip level and network level recomputed from the report alone."""
    chip, network = Level.NORMAL, Level.NORMAL
    found = [(code.plane, code.level) for code in report.codes]
    found += [(_plane(rule.text), rule.level) for rule in report.rules if rule.raises]
    for plane, level in found:
        if plane is Plane.NETWORK:
            network = max(network, level)
        else:
            chip = max(chip, level)
    return chip, network


def _plane(text: str) -> Plane:
    try:
        return plane_of(int(text, 16))
    except ValueError:
        return Plane.CHIP


def timed(history: list[tuple[object, int, int]]) -> list[tuple[float, Observation]]:
    """The history with every fact some seconds after the one before."""
    now, found = 0.0, []
    for make, code, pause_s in history:
        now += pause_s
        found.append((now, make(code, now)))  # type: ignore[operator]
    return found


def run(bench: Bench, history: list[tuple[float, Observation]], until_s: float) -> None:
    """Feed the history as a daemon would: a step at each fact and when the engine asked for one, all acknowledged."""
    pending = list(history)
    while True:
        wake = bench.last.wake_at_mono_ms if bench.last else None
        next_fact = pending[0][0] if pending else until_s
        if wake is not None and wake / 1000 < next_fact:
            moment, batch = wake / 1000, []
        elif pending:
            moment, fact = pending.pop(0)
            batch = [fact]
        else:
            break
        bench.step(moment, *batch)
        bench.ack(moment)
    bench.step(until_s)
    bench.ack(until_s)


def driver_list(history: list[Observation]) -> list[int]:
    """What the driver lists after a history: codes that occurred and did not recover; once-only codes never."""
    active: dict[int, None] = {}
    for fact in history:
        if isinstance(fact, FaultOccurred):
            active[fact.code] = None
        elif isinstance(fact, FaultRecovered):
            active.pop(fact.code, None)
    return list(active)


def shown(bench: Bench) -> object:
    """What would be published, without the generation."""
    return replace(bench.view, generation=0)


@given(histories)
def test_waking_when_asked_is_as_good_as_stepping_all_the_time(history: list[tuple[object, int, int]]) -> None:
    """No timer is late: a step every 500 ms finds nothing that the asked-for steps did not."""
    facts_of = timed(history)
    end_s = (facts_of[-1][0] if facts_of else 0) + 1000
    lazy, eager = Bench(rules=RULES), Bench(rules=RULES)
    run(lazy, facts_of, end_s)
    pending, moment = list(facts_of), 0.0
    while moment <= end_s:
        batch = []
        while pending and pending[0][0] <= moment:
            batch.append(pending.pop(0)[1])
        eager.step(moment, *batch)
        eager.ack(moment)
        moment += 0.5
    assert shown(lazy) == shown(eager)


@given(histories, st.integers(0, 24), st.integers(0, 40))
def test_a_kill_at_any_point_changes_nothing_that_is_published(
    history: list[tuple[object, int, int]], cut: int, pause_s: int
) -> None:
    """What the state file remembers is enough: the run goes on as if it had not been interrupted (decision 17)."""
    facts_of = timed(history)
    cut = min(cut, len(facts_of))
    killed_s = (facts_of[cut - 1][0] if cut else 0) + 0.25
    rest = [(max(t, killed_s + 0.25), f) for t, f in facts_of[cut:]]
    end_s = (facts_of[-1][0] if facts_of else 0) + 1000 + pause_s
    whole, before = Bench(rules=RULES), Bench(rules=RULES)
    for bench, until_s in ((whole, end_s), (before, killed_s)):
        run(bench, facts_of if bench is whole else facts_of[:cut], until_s)
    memory = {int(p): m for p, m in remember(before.state).items()}
    manual = frozenset(c.chip.physical_id for c in before.view.chips if c.manually_separated)
    active = driver_list([fact for _, fact in facts_of[:cut]])
    carried = CarriedOver((), at(killed_s), manual, (), memory, same_boot=True)
    after = Bench(rules=RULES, restored=carried, begin_s=killed_s)
    after.step(killed_s, listed(active, killed_s))
    after.ack(killed_s)
    run(after, rest, end_s)
    assert shown(after) == shown(whole)


@given(histories)
def test_memory_survives_its_own_round_trip(history: list[tuple[object, int, int]]) -> None:
    bench = Bench(rules=RULES)
    run(bench, timed(history), 3000)
    bench.reconfigure(3000, RULES)  # touches the chip, so that both have forgotten what left its window
    memory = remember(bench.state)
    carried = CarriedOver((), at(3000), None, (), {int(p): m for p, m in memory.items()}, same_boot=True)
    again = Bench(rules=RULES, restored=carried, begin_s=3000)
    assert remember(again.state) == memory


@given(histories, st.integers(0, 2000))
def test_why_recomputes_the_published_level(history: list[tuple[object, int, int]], extra_s: int) -> None:
    bench = Bench(rules=RULES)
    facts_of = timed(history)
    now_s = (facts_of[-1][0] if facts_of else 0) + extra_s
    run(bench, facts_of, now_s)
    report = explain_chip(bench.state, 0, bench.config, at(now_s))
    assert report is not None
    assert levels_of(report) == (bench.chip().chip_level, bench.chip().network_level)


@given(histories)
def test_replaying_a_history_gives_the_same_state(history: list[tuple[object, int, int]]) -> None:
    one, two = Bench(rules=RULES), Bench(rules=RULES)
    for bench in (one, two):
        run(bench, timed(history), 3000)
    assert one.state == two.state


@given(histories)
def test_a_reload_of_the_same_rules_changes_nothing(history: list[tuple[object, int, int]]) -> None:
    bench = Bench(rules=RULES)
    run(bench, timed(history), 3000)
    result = reconfigure(bench.state, at(3000), bench.config)
    assert result.view is None
    assert result.changes == ()


def test_the_cost_of_a_step_grows_with_its_events() -> None:
    """Counted in calls, not in time: the table is asked about as often for the last event as for the first."""
    calls = 0
    inner = config_of().table

    class Counting:
        suppressions = ()

        def level_of(self, code: int, severity: object) -> object:
            nonlocal calls
            calls += 1
            return inner.level_of(code, severity)  # type: ignore[arg-type]

        def text_of(self, code: int) -> str:
            return inner.text_of(code)

    config = replace(config_of(rules=DEFAULTS), table=Counting())  # type: ignore[arg-type]
    costs = []
    for events in (100, 1000, 10_000):
        base = Bench(chips=8, rules=DEFAULTS).state
        batch = [occur(0x80E18005 + n % 50, 1 + n / 1e6, chip=n % 8) for n in range(events)]
        calls = 0
        assert isinstance(step(base, batch, at(10), config).state, NodeState)
        costs.append(calls)
    assert costs[2] - costs[1] <= 10 * (costs[1] - costs[0]) + 1000


def test_a_suppressed_code_is_not_published_and_comes_back_on_its_day() -> None:  # decision 13
    site = (
        'suppress:\n  - code: "80E18005"\n    chips: [0]\n    reason: known and harmless here\n    until: 2025-10-09\n'
    )
    bench = Bench(chips=2)
    table, _ = bench.table.overlaid([("site.yaml", site)])
    bench.config = config_of(table)
    result = bench.step(1, occur(0x80E18005, 1), occur(0x80E18005, 1, chip=1))
    assert (bench.shown(0), bench.chip(0).healthy, bench.chip(1).healthy) == ({}, True, False)
    assert bench.chip(0).suppressed == ("80E18005 until 2025-10-09: known and harmless here",)
    assert result.wake_at_mono_ms is not None
    bench.step(result.wake_at_mono_ms / 1000)
    assert not bench.chip(0).healthy


def test_why_shows_the_most_serious_of_two_reasons_of_a_code() -> None:
    """A separation stands (R9) while the same rule, with another handling by now, trips again."""
    bench = Bench(rules=RULES)
    for moment in (1, 3):
        bench.step(moment, occur(0x80C98008, moment))
        bench.ack(moment)
        bench.step(moment + 1, recover(0x80C98008, moment + 1))
    bench.reconfigure(5, rules(frequency(0x80C98008, 600, 1, Level.PRE_SEPARATE, 60)))
    bench.step(6, occur(0x80C98008, 6))
    assert len(bench.reasons()) == 2
    report = explain_chip(bench.state, 0, bench.config, at(6))
    assert report is not None
    assert levels_of(report) == (bench.chip().chip_level, bench.chip().network_level)
    assert bench.chip().chip_level is Level.MANUALLY_SEPARATE
