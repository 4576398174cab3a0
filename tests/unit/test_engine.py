"""The engine against the worked examples of chip-faults 13 that need no rule, and decisions 3, 4, 6, 7."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from kit.engine import Bench, at, config_of, listed, occur, once, recover, used

from nodeagent.core.instant import Instant
from nodeagent.core.levels import Level, Severity
from nodeagent.core.model import ChipId, Family, Inventory, Product
from nodeagent.core.observation import (
    CarriedFault,
    CarriedOver,
    ChipSilent,
    FaultOccurred,
    InventorySeen,
    Observation,
    SourceComplete,
)
from nodeagent.policy.engine import reconfigure, step
from nodeagent.policy.state import ChangeKind, NodeState

LINK = 0x81078603


class TestWorkedExamples:
    def test_w07_once(self) -> None:
        bench = Bench()
        bench.step(1.2, once(0x80C98006, 1))
        assert bench.shown() == {"80C98006": ("NotHandleFault", 1)}
        assert bench.chip().healthy
        bench.ack(1.3)
        bench.step(5)
        assert bench.shown() == {}
        bench.step(6.1, once(0x80E18402, 6))
        assert bench.shown() == {"80E18402": ("SeparateNPU", 6)}
        assert not bench.chip().healthy
        bench.ack(6.2)
        bench.step(10)
        assert bench.shown() == {}
        assert bench.chip().healthy

    def test_w08_occurrence_and_recovery_in_one_step(self) -> None:
        bench = Bench()
        bench.step(2, occur(0x80C98008, 1), recover(0x80C98008, 1.5))
        assert bench.shown() == {"80C98008": ("RestartRequest", 1)}
        assert not bench.chip().healthy
        bench.ack(2.1)
        bench.step(7)
        assert bench.shown() == {}
        assert bench.chip().healthy

    def test_w09_several_modules_of_one_code(self) -> None:
        bench = Bench()
        bench.step(1, occur(0x80C98008, 0.5), occur(0x80C98008, 0.7))
        assert bench.shown() == {"80C98008": ("RestartRequest", 0.5)}
        bench.ack(1.1)
        # Module 1 recovers while the driver still lists the code: the source passes nothing on.
        bench.step(3, listed([0x80C98008], 2.9))
        assert bench.shown() == {"80C98008": ("RestartRequest", 0.5)}
        bench.step(5, recover(0x80C98008, 4))
        assert bench.shown() == {}

    def test_w14_many_codes(self) -> None:
        bench = Bench()
        bench.step(1.5, *(occur(c, 1) for c in (0x80C98008, 0x8C0E4E00, 0x80E01801, 0x81A3880C)))
        assert bench.chip().chip_level is Level.FREE_RESTART
        assert not bench.chip().healthy
        assert bench.shown() == {
            "80C98008": ("RestartRequest", 1),
            "8C0E4E00": ("FreeRestartNPU", 1),
            "80E01801": ("RestartBusiness", 1),
            "81A3880C": ("SubHealthFault", 1),
        }
        bench.step(2.5, occur(0x8118043C, 2))
        assert bench.chip().chip_level is Level.PRE_SEPARATE
        assert not bench.chip().healthy
        bench.step(3, used({0}, 3))
        assert bench.chip().healthy
        bench.step(8.5, occur(0x8C03A000, 8))
        assert bench.chip().chip_level is Level.PRE_SEPARATE
        assert bench.chip().healthy
        assert bench.shown()["8C03A000"] == ("RestartNPU", 8)

    def test_w15_unknown_codes(self) -> None:
        bench = Bench()
        bench.step(1, occur(0x8ABCDE01, 1, Severity.MINOR))
        assert bench.shown() == {"8ABCDE01": ("NotHandleFault", 1)}
        assert bench.chip().healthy
        bench.step(2, occur(0x8ABCDE02, 2, Severity.MAJOR))
        assert bench.chip().chip_level is Level.SEPARATE
        bench.step(3, occur(0x80E21007, 3))
        assert bench.chip().chip_level is Level.SEPARATE
        assert not bench.chip().healthy

    def test_w15_unknown_code_found_by_the_start_up_sweep(self) -> None:  # decision 1
        bench = Bench()
        bench.step(1, listed([0x8ABCDE03], 1))
        assert bench.shown() == {"8ABCDE03": ("NotHandleFault", 1)}
        assert not bench.chip().faults[0].known
        # A severity that is told later counts; a query that tells none does not take it back (R2).
        bench.step(2, occur(0x8ABCDE03, 2, Severity.CRITICAL))
        assert bench.shown() == {"8ABCDE03": ("SeparateNPU", 1)}
        bench.step(3, listed([0x8ABCDE03], 3))
        assert bench.shown() == {"8ABCDE03": ("SeparateNPU", 1)}

    def test_w16_lost_recovery_is_found_by_the_next_full_query(self) -> None:
        bench = Bench()
        bench.step(10.2, occur(0x8C03A000, 10), occur(0x80E21007, 10))
        bench.ack(10.3)
        bench.step(310.3, listed([], 310.3))
        assert bench.shown() == {}
        assert bench.chip().healthy

    def test_w17_poll_mode(self) -> None:
        bench = Bench()
        bench.step(5, listed([0x80CB8008], 5))
        assert bench.shown() == {"80CB8008": ("RestartRequest", 5)}
        bench.ack(5.1)
        bench.step(10, listed([0x80CB8008], 10))
        assert bench.shown() == {"80CB8008": ("RestartRequest", 5)}
        bench.step(15, listed([], 15))
        assert bench.chip().healthy

    def test_w30_code_in_two_levels_and_link_code(self) -> None:
        bench = Bench()
        bench.step(1, occur(0xA2301001, 1))
        assert bench.chip().chip_level is Level.SEPARATE

    def test_w31_leading_zero_is_kept(self) -> None:
        bench = Bench(family=Family.A5)
        bench.step(1, occur(0x20001002, 1))
        assert "020001002" in bench.shown()

    def test_w33_card_drop_and_return(self) -> None:
        bench = Bench()
        bench.step(5, occur(0x40F84E00, 5, None))
        assert bench.shown() == {"40F84E00": ("RestartNPU", 5)}
        assert not bench.chip().healthy
        bench.ack(5.1)
        bench.step(10, recover(0x40F84E00, 10))
        assert bench.shown() == {}


class TestPlanes:
    def test_link_down_is_a_network_fault_and_leaves_chip_health_alone(self) -> None:
        bench = Bench()
        bench.step(1, occur(LINK, 1))
        assert bench.chip().network_level is Level.NOT_HANDLE
        assert bench.chip().chip_level is Level.NORMAL
        assert bench.chip().healthy
        assert bench.chip().network_healthy

    def test_ub_codes_count_on_the_950_only(self) -> None:
        a2, a5 = Bench(), Bench(family=Family.A5)
        change = a2.step(1, occur(0x81B18603, 1)).changes[0]
        assert (a2.shown(), change.kind) == ({}, ChangeKind.DISCARDED)
        a5.step(1, occur(0x81B18603, 1))
        assert a5.shown() == {"81B18603": ("NotHandleFault", 1)}


class TestNotices:
    def test_stays_until_a_write_that_contains_it_is_acknowledged(self) -> None:  # decision 3
        bench = Bench()
        bench.ack(0)
        before = bench.state.generation
        bench.step(1, once(0x80C98006, 1))
        bench.step(2, *[])
        assert bench.shown()
        from nodeagent.core.observation import Acknowledged

        bench.step(3, Acknowledged(before, at(3)))
        assert bench.shown(), "the acknowledged write did not contain it"
        bench.ack(4)
        assert bench.shown() == {}

    def test_never_acknowledged_for_300_s_is_dropped_and_told(self) -> None:  # decision 3
        bench = Bench()
        result = bench.step(1, once(0x80C98006, 1))
        assert result.wake_at_mono_ms == 301_000
        assert bench.step(300.999).changes == ()
        assert [c.kind for c in bench.step(301).changes] == [ChangeKind.NOTICE_DROPPED]
        assert bench.shown() == {}

    def test_a_second_notice_during_a_write_gets_a_report_of_its_own(self) -> None:
        from nodeagent.core.observation import Acknowledged

        bench = Bench()
        bench.step(1, once(0x80C98006, 1))
        written = bench.state.generation
        bench.step(1.5, once(0x80C98006, 1.5))
        bench.step(2, Acknowledged(written, at(2)))
        assert bench.shown() == {"80C98006": ("NotHandleFault", 1.5)}

    def test_a_fault_that_nobody_saw_leaves_after_10_s_at_the_latest(self) -> None:
        bench = Bench()
        bench.step(1, occur(0x80E18005, 1))
        bench.step(2, recover(0x80E18005, 2))
        assert bench.shown()
        bench.step(12, *[])
        assert bench.shown() == {}


class TestStart:
    PRODUCT = Product(Family.A2, "910B4")
    CHIPS = (ChipId(0, 0, 0, 0), ChipId(1, 1, 1, 0))

    def test_nothing_is_published_before_the_first_complete_query(self) -> None:  # decision 4
        table = config_of()
        first = step(NodeState(), [InventorySeen(Inventory(self.PRODUCT, self.CHIPS), at(0))], at(0), table)
        second = step(first.state, [listed([0x80E18005], 1)], at(1), table)
        third = step(second.state, [SourceComplete(at(2))], at(2), table)
        assert (first.view, second.view) == (None, None)
        assert third.view is not None
        assert [f.text for f in third.view.chips[0].faults] == ["80E18005"]

    def test_a_silent_chip_keeps_what_our_last_object_said(self) -> None:  # decision 4
        table = config_of()
        carried = CarriedFault(1, 0x80E18005, Level.RESTART_NPU, at(-500).wall_ms)
        result = step(
            NodeState(),
            [
                CarriedOver((carried,), at(0)),
                InventorySeen(Inventory(self.PRODUCT, self.CHIPS), at(0)),
                listed([], 1, chip=0),
                ChipSilent(1, "no answer", at(2)),
                SourceComplete(at(2)),
            ],
            at(2),
            table,
        )
        assert result.view is not None
        healthy, silent = result.view.chips
        assert (healthy.healthy, silent.healthy) == (True, False)
        assert silent.faults[0].since_ms == at(-500).wall_ms
        assert silent.silent_since_ms == at(2).wall_ms

    def test_the_first_answer_settles_what_was_carried_over(self) -> None:
        table = config_of()
        carried = tuple(CarriedFault(0, c, Level.SEPARATE, at(-500).wall_ms) for c in (0x80E18005, 0x80C98008))
        begin = [CarriedOver(carried, at(0)), InventorySeen(Inventory(self.PRODUCT, self.CHIPS[:1]), at(0))]
        result = step(NodeState(), [*begin, listed([0x80E18005], 1), SourceComplete(at(1))], at(1), table)
        assert result.view is not None
        (fault,) = result.view.chips[0].faults
        assert (fault.text, fault.level, fault.since_ms) == ("80E18005", Level.RESTART_NPU, at(-500).wall_ms)
        assert ChangeKind.VANISHED in [c.kind for c in result.changes]

    def test_an_object_that_is_read_late_still_counts_for_silent_chips(self) -> None:
        table = config_of()
        first = step(
            NodeState(),
            [
                InventorySeen(Inventory(self.PRODUCT, self.CHIPS), at(0)),
                listed([], 1, chip=0),
                ChipSilent(1, "no answer", at(2)),
                SourceComplete(at(2)),
            ],
            at(2),
            table,
        )
        carried = tuple(CarriedFault(p, 0x80E18005, Level.RESTART_NPU, at(-9).wall_ms) for p in (0, 1))
        late = step(first.state, [CarriedOver(carried, at(3))], at(3), table)
        assert late.view is not None
        assert [c.healthy for c in late.view.chips] == [True, False]


class TestKnowledge:
    def test_a_silent_chip_neither_gains_nor_loses_faults(self) -> None:
        bench = Bench()
        bench.step(1, occur(0x80E18005, 1))
        bench.ack(1.1)
        bench.step(9, ChipSilent(0, "-8005", at(9)))
        assert bench.shown() == {"80E18005": ("RestartNPU", 1)}

    def test_silence_is_told_once_in_and_once_out(self) -> None:
        bench = Bench()
        kinds = [c.kind for t in (1, 2, 3) for c in bench.step(t, ChipSilent(0, "-8005", at(t))).changes]
        kinds += [c.kind for c in bench.step(4, listed([], 4)).changes]
        assert kinds == [ChangeKind.SILENT, ChangeKind.ANSWERS]

    def test_an_event_that_came_while_the_query_ran_outranks_its_answer(self) -> None:
        bench = Bench()
        bench.step(2, occur(0x80E18005, 1.5))
        bench.step(2.1, listed([], 1.4))
        assert bench.shown() == {"80E18005": ("RestartNPU", 1.5)}
        bench.ack(2.2)
        bench.step(3, recover(0x80E18005, 2.5))
        bench.step(3.1, listed([0x80E18005], 2.4))
        assert bench.shown() == {}

    def test_pod_use_that_cannot_be_read_keeps_the_last_answer(self) -> None:  # decision 7
        bench = Bench()
        bench.step(1, occur(0x8F180220, 1), used({0}, 1))
        assert bench.chip().healthy
        bench.step(2, used(None, 2))
        assert bench.chip().healthy

    def test_an_event_for_no_chip_of_this_node_is_told_and_changes_nothing(self) -> None:
        bench = Bench()
        before = bench.state.generation
        result = bench.step(1, occur(0x80E18005, 1, chip=42))
        assert [c.kind for c in result.changes] == [ChangeKind.UNATTRIBUTED]
        assert bench.state.generation == before

    def test_steps_do_not_touch_the_state_they_were_given(self) -> None:
        bench = Bench()
        bench.step(1, occur(0x80E18005, 1))
        before = bench.state
        seen = dict(before.chips[0].faults), dict(before.chips[0].touched), before.view
        step(before, [recover(0x80E18005, 2), once(0x80C98006, 2)], at(2), bench.config)
        reconfigure(before, at(3), bench.config)
        assert (dict(before.chips[0].faults), dict(before.chips[0].touched), before.view) == seen


CODES = (0x80E18005, 0x80C98008, 0x8C204E00, LINK, 0x80E18402)
ops = st.tuples(st.sampled_from([occur, recover, once]), st.sampled_from(CODES), st.integers(0, 1))


@given(st.lists(ops, max_size=30), st.data())
def test_observations_of_different_chips_and_codes_may_arrive_in_any_order(
    history: list[tuple[object, int, int]], data: st.DataObject
) -> None:
    """Inside one step the result depends on the times, not on the order of arrival."""
    facts: list[Observation] = [make(code, n, chip=chip) for n, (make, code, chip) in enumerate(history)]  # type: ignore[operator]
    shuffled = data.draw(st.permutations(facts))
    one, two = Bench(2), Bench(2)
    one.step(100, *facts)
    two.step(100, *shuffled)
    assert one.state.view is not None
    assert two.state.view is not None
    assert one.state.view.chips == two.state.view.chips


@given(st.lists(ops, max_size=30), st.lists(st.integers(0, 29), max_size=6))
def test_active_codes_do_not_depend_on_how_events_fall_into_steps(
    history: list[tuple[object, int, int]], cuts: list[int]
) -> None:
    facts: list[Observation] = [make(code, n, chip=chip) for n, (make, code, chip) in enumerate(history)]  # type: ignore[operator]
    whole, parts = Bench(2), Bench(2)
    whole.step(50, *facts)
    edges = sorted({0, len(facts), *(c for c in cuts if c < len(facts))})
    for begin, end in pairwise(edges):
        parts.step(50, *facts[begin:end])
    for chip in (0, 1):
        assert set(whole.state.chips[chip].faults) == set(parts.state.chips[chip].faults)


@given(st.sets(st.sampled_from(CODES)), st.sets(st.sampled_from(CODES)))
def test_after_a_full_query_exactly_the_listed_codes_are_active(before: set[int], now: set[int]) -> None:
    """Both directions: missed faults appear, missed recoveries clear (R10)."""
    bench = Bench()
    bench.step(1, *(occur(c, 1) for c in before))
    bench.step(2, listed(sorted(now), 2))
    assert set(bench.state.chips[0].faults) == now


def test_a_clock_step_moves_no_timer() -> None:
    bench = Bench()
    bench.step(1, once(0x80C98006, 1))
    six_hours_later = Instant(2000, at(2).wall_ms + 6 * 3_600_000)
    bench.state = step(bench.state, [], six_hours_later, bench.config).state
    assert bench.shown()


def test_a_changed_table_judges_every_chip_again() -> None:
    bench = Bench()
    bench.step(1, FaultOccurred(0, 0x80E18005, None, at(1)))

    site = 'faults:\n  - code: "80E18005"\n    level: SeparateNPU\n'
    harsh, _ = bench.table.overlaid([("site.yaml", site)])
    result = reconfigure(bench.state, at(2), config_of(harsh))
    assert result.view is not None
    assert result.view.chips[0].chip_level is Level.SEPARATE
