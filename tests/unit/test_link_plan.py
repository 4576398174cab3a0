"""The merged link state against chip-faults 4.3-4.6, R15 and R23, without any I/O."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.engine import Bench
from kit.links import POD_BOARD, UBOE_BOARD, at, believed, listed, node, occurred, planned, recovered
from kit.rules import DEFAULTS

from nodeagent.core.codes import LINK_DOWN, UB_PORT_DOWN, UBOE_PORT_DOWN
from nodeagent.core.errors import SettingsError
from nodeagent.core.levels import Severity
from nodeagent.core.model import Family
from nodeagent.core.observation import ChipSilent, FaultNoticed, FaultOccurred, InventorySeen, Observation, PortsDown
from nodeagent.drivers.gateway import gateway_is_bad
from nodeagent.drivers.hccn import PortCount
from nodeagent.sources.link_plan import LinkPlan, LinkTimes, parse_boards

X = 0x80E18005
BAD, GOOD = True, False


class TestGateway:
    def test_w34(self) -> None:
        plan, found = planned(), []
        for seconds, value in ((0, 0), (5, 2), (10, 3), (26, 2), (31, 0), (92, 0)):
            found += plan.on_gateway(0, gateway_is_bad(value), at(seconds))
        assert found == [occurred(LINK_DOWN, 5, severity=None), recovered(LINK_DOWN, 31)]

    def test_w34_to_the_published_level(self) -> None:
        plan, bench = planned(), Bench(rules=DEFAULTS)
        shown = []
        for seconds, value in ((0, 0), (5, 2), (10, 3), (26, 2), (31, 0), (92, 0)):
            bench.step(seconds, *plan.on_gateway(0, gateway_is_bad(value), at(seconds)))
            bench.ack(seconds)
            shown.append((seconds, bench.entry().get("81078603"), bench.chip().network_healthy))
        assert shown == [
            (0, None, True),
            (5, ("NotHandleFault", 5), True),
            (10, ("NotHandleFault", 5), True),
            (26, ("PreSeparateNPU", 25), False),
            (31, ("PreSeparateNPU", 25), False),
            (92, None, True),
        ]

    @pytest.mark.parametrize(
        ("value", "bad"), [*((v, False) for v in (0, 6)), *((v, True) for v in (1, 2, 3, 4, 5, 7, 8))]
    )
    def test_values(self, value: int, bad: bool) -> None:
        assert gateway_is_bad(value) is bad

    @pytest.mark.parametrize("value", [9, 100, 127])
    def test_a_value_that_no_sheet_names_is_no_state(self, value: int) -> None:
        assert gateway_is_bad(value) is None

    @pytest.mark.parametrize("before", [GOOD, BAD])
    def test_an_error_changes_nothing(self, before: bool) -> None:
        plan = planned()
        plan.on_gateway(0, before, at(0))
        assert plan.on_gateway(0, None, at(5)) == []
        assert plan.on_gateway(0, before, at(10)) == []

    def test_an_unknown_chip_is_no_error(self) -> None:
        assert planned().on_gateway(7, BAD, at(0)) == []

    @pytest.mark.parametrize(
        ("family", "board", "asked"),
        [
            (Family.A310, 0, False),
            (Family.A310B, 0, False),
            (Family.A310P, 0, False),
            (Family.A910, 0, True),
            (Family.A2, 0, True),
            (Family.A3, 0, True),
            (Family.A5, POD_BOARD, False),
            (Family.A5, UBOE_BOARD, True),
        ],
    )
    def test_only_chips_with_a_parameter_plane_are_asked(self, family: Family, board: int, asked: bool) -> None:
        plan = planned(family, 2, board=board)
        assert plan.gateway_chips() == (node(family, 2).chips if asked else ())


class TestMerging:
    def test_any_of_three_is_bad_and_all_three_must_be_good(self) -> None:
        plan = planned(tool=True)
        found = [
            *plan.on_gateway(0, BAD, at(1)),
            *plan.take([occurred(LINK_DOWN, 2)], at(2)),
            *plan.on_link(0, False, at(3)),
            *plan.on_gateway(0, GOOD, at(4)),
            *plan.take([recovered(LINK_DOWN, 5)], at(5)),
        ]
        assert found == [occurred(LINK_DOWN, 1, severity=None)]
        assert plan.bad_links == 1
        assert plan.on_link(0, True, at(6)) == [recovered(LINK_DOWN, 6)]
        assert plan.bad_links == 0

    def test_a_repeated_event_is_no_transition(self) -> None:
        plan = planned()
        events = [occurred(LINK_DOWN, 1), occurred(LINK_DOWN, 2), recovered(LINK_DOWN, 3), recovered(LINK_DOWN, 4)]
        assert plan.take(events, at(4)) == [events[0], events[2]]

    def test_the_severity_of_an_event_is_kept(self) -> None:
        (found,) = planned().take([occurred(LINK_DOWN, 1, severity=Severity.CRITICAL)], at(1))
        assert isinstance(found, FaultOccurred)
        assert found.severity is Severity.CRITICAL

    def test_everything_else_passes_unchanged_in_its_order(self) -> None:
        plan = planned(chips=2)
        stream: list[Observation] = [
            occurred(X, 1),
            occurred(LINK_DOWN, 1, chip=1),
            FaultNoticed(0, LINK_DOWN, None, at(1)),
            ChipSilent(1, "why", at(1)),
            recovered(X, 2),
            occurred(LINK_DOWN, 2, chip=9),
            listed(3, X),
            recovered(LINK_DOWN, 3, chip=1),
        ]
        assert plan.take(stream, at(3)) == stream

    def test_products_without_a_port_are_left_alone(self) -> None:
        plan = planned(Family.A310P)
        stream: list[Observation] = [occurred(LINK_DOWN, 1), occurred(LINK_DOWN, 2), listed(3, LINK_DOWN)]
        assert plan.take(stream, at(3)) == stream
        assert plan.next_due_ms() is None

    def test_times_of_a_link_never_run_backwards(self) -> None:
        plan = planned()
        assert plan.take([occurred(LINK_DOWN, 5), recovered(LINK_DOWN, 5.3)], at(5.3))
        assert plan.on_gateway(0, BAD, at(5)) == [occurred(LINK_DOWN, 5.3, severity=None)]


class TestLists:
    def test_a_list_with_the_code_sets_the_event_state_and_one_without_clears_it(self) -> None:
        plan = planned()
        assert plan.take([listed(1, X, LINK_DOWN)], at(1)) == [
            occurred(LINK_DOWN, 1, severity=None),
            listed(1, X, LINK_DOWN),
        ]
        assert plan.take([listed(2, X)], at(2)) == [recovered(LINK_DOWN, 2), listed(2, X)]

    def test_a_list_does_not_know_what_gateway_and_tool_know(self) -> None:
        plan = planned(tool=True)
        plan.on_gateway(0, BAD, at(1))
        assert plan.take([listed(2, X)], at(2)) == [listed(2, X, LINK_DOWN)]
        plan.on_link(0, False, at(3))
        plan.on_gateway(0, GOOD, at(4))
        assert plan.take([listed(5)], at(5)) == [listed(5, LINK_DOWN)]
        plan.on_link(0, True, at(6))
        assert plan.take([listed(7)], at(7)) == [listed(7)]

    def test_an_event_outranks_a_list_that_was_asked_for_before_it(self) -> None:
        plan = planned()
        plan.take([occurred(LINK_DOWN, 2)], at(2))
        assert plan.take([listed(1.9)], at(2.1)) == [listed(1.9)]
        assert plan.take([recovered(LINK_DOWN, 3)], at(3)) == [recovered(LINK_DOWN, 3)]
        assert plan.take([listed(2.9, LINK_DOWN)], at(3.1)) == [listed(2.9, LINK_DOWN)]
        assert plan.on_gateway(0, GOOD, at(4)) == []

    @pytest.mark.parametrize("first", [BAD, GOOD])
    def test_a_list_shows_the_merged_state_of_its_own_moment(self, first: bool) -> None:
        """So that, sorted by time into one step with a newer transition, it moves no time of it."""
        plan = planned()
        plan.on_gateway(0, first, at(1))
        plan.on_gateway(0, not first, at(5))
        late = plan.take([listed(4.9)], at(5.1))
        assert late == [listed(4.9, LINK_DOWN) if first else listed(4.9)]

    def test_a_new_chip_of_a_later_session_is_merged_too(self) -> None:
        plan = planned(chips=1)
        plan.on_gateway(0, BAD, at(1))
        plan.take([InventorySeen(node(chips=2), at(2))], at(2))
        assert plan.take([listed(3), listed(3, chip=1)], at(3)) == [listed(3, LINK_DOWN), listed(3, chip=1)]


class TestQueries:
    def test_every_300_s_and_every_30_s_while_the_port_is_believed_down(self) -> None:  # 4.3
        plan = planned(tool=True)
        assert plan.next_query(0) == node().chips[0]
        plan.on_link(0, True, at(0))
        assert plan.next_due_ms() == 300_000
        assert plan.next_query(299_999) is None
        plan.on_link(0, False, at(300))
        assert plan.next_due_ms() == 330_000
        plan.on_link(0, None, at(330))
        assert plan.next_due_ms() == 360_000
        plan.on_link(0, True, at(360))
        assert plan.next_due_ms() == 660_000

    def test_a_link_that_turned_bad_is_asked_about_sooner(self) -> None:
        plan = planned(tool=True)
        plan.on_link(0, True, at(0))
        plan.take([occurred(LINK_DOWN, 10)], at(10))
        assert plan.next_due_ms() == 40_000

    def test_a_recovery_makes_an_older_word_of_the_tool_due_but_not_in_a_storm(self) -> None:
        plan = planned(tool=True)
        plan.on_link(0, False, at(10))
        assert plan.take([occurred(LINK_DOWN, 11), recovered(LINK_DOWN, 20)], at(20)) == []
        assert plan.next_due_ms() == 20_000
        plan.on_link(0, False, at(20))
        plan.take([occurred(LINK_DOWN, 21), recovered(LINK_DOWN, 22)], at(22))
        assert plan.next_due_ms() == 25_000

    @pytest.mark.parametrize("before", [True, False])
    def test_a_recovery_that_comes_while_the_tool_is_asked_makes_its_answer_an_older_word(self, before: bool) -> None:
        plan = planned(tool=True)
        plan.on_link(0, before, at(10))
        plan.take([occurred(LINK_DOWN, 11)], at(11))
        plan.take([recovered(LINK_DOWN, 42)], at(42))
        plan.on_link(0, False, at(41))
        assert plan.next_due_ms() == 46_000
        assert plan.on_link(0, True, at(46)) == [recovered(LINK_DOWN, 46)]
        assert plan.next_due_ms() == 346_000

    def test_an_error_is_neither_up_nor_down(self) -> None:  # R15
        plan = planned(tool=True)
        assert plan.on_link(0, None, at(0)) == []
        assert plan.on_link(0, False, at(30)) == [occurred(LINK_DOWN, 30, severity=None)]
        assert plan.on_link(0, None, at(60)) == []

    def test_without_the_tool_nothing_is_asked(self) -> None:
        assert planned().next_query(10**9) is None
        assert planned().next_due_ms() is None

    def test_the_longest_overdue_chip_is_asked_first(self) -> None:
        plan = planned(chips=3, tool=True)
        order = []
        for second in range(3):
            chip = plan.next_query(second * 1000)
            assert chip is not None
            order.append(chip.logic_id)
            plan.on_link(chip.logic_id, True, at(second))
        assert order == [0, 1, 2]


class TestPorts:
    def bonded(self) -> LinkPlan:
        plan = planned(Family.A5, board=UBOE_BOARD, tool=True)
        assert plan.counting
        assert plan.on_ports(0, PortCount(0, 0), at(0)) == []
        return plan

    def test_an_event_waits_for_the_count_and_other_codes_do_not(self) -> None:
        plan = self.bonded()
        assert plan.take([occurred(UBOE_PORT_DOWN, 2), occurred(X, 2)], at(2)) == [occurred(X, 2)]
        assert plan.next_query(2000) == node(Family.A5).chips[0]
        assert plan.on_ports(0, PortCount(2, 0), at(2)) == [PortsDown(0, 2, 0, at(2)), occurred(UBOE_PORT_DOWN, 2)]

    def test_a_count_that_was_asked_for_before_the_event_does_not_release_it(self) -> None:
        plan = self.bonded()
        plan.take([occurred(UBOE_PORT_DOWN, 2)], at(2))
        assert plan.on_ports(0, PortCount(0, 0), at(1.9)) == []
        assert plan.next_query(2899) is None
        assert plan.next_query(2900) is not None
        assert plan.on_ports(0, PortCount(1, 0), at(2.9))[-1] == occurred(UBOE_PORT_DOWN, 2)

    def test_w28_two_down_one_back_both_back(self) -> None:
        plan = self.bonded()
        plan.take([occurred(UBOE_PORT_DOWN, 2)], at(2))
        plan.on_ports(0, PortCount(2, 0), at(2))
        plan.take([recovered(UBOE_PORT_DOWN, 9)], at(9))
        assert plan.on_ports(0, PortCount(1, 0), at(9)) == [PortsDown(0, 1, 0, at(9)), recovered(UBOE_PORT_DOWN, 9)]
        assert plan.bad_links == 1
        plan.take([recovered(UBOE_PORT_DOWN, 19)], at(19))
        assert plan.on_ports(0, PortCount(0, 0), at(19)) == [PortsDown(0, 0, 0, at(19)), recovered(UBOE_PORT_DOWN, 19)]
        assert plan.bad_links == 0

    def test_w28_to_the_published_level(self) -> None:
        plan, bench = self.bonded(), Bench(family=Family.A5, rules=DEFAULTS)
        shown = []
        story = (
            (2, occurred(UBOE_PORT_DOWN, 2), 2),
            (9, recovered(UBOE_PORT_DOWN, 9), 1),
            (19, recovered(UBOE_PORT_DOWN, 19), 0),
        )
        for seconds, event, down in story:
            assert plan.take([event], at(seconds)) == []
            bench.step(seconds, *plan.on_ports(0, PortCount(down, 0), at(seconds)))
            bench.ack(seconds)
            shown.append({code: level for code, (level, _) in bench.shown().items()})
        assert shown == [
            {"110001024": "PreSeparateNPU", "81078607": "NotHandleFault"},
            {"110000002": "SubHealthFault", "81078607": "NotHandleFault"},
            {},
        ]

    def test_a_second_port_is_another_occurrence(self) -> None:
        plan = self.bonded()
        for seconds, down in ((2, 1), (4, 2)):
            plan.take([occurred(UBOE_PORT_DOWN, seconds)], at(seconds))
            assert plan.on_ports(0, PortCount(down, 0), at(seconds)) == [
                PortsDown(0, down, 0, at(seconds)),
                occurred(UBOE_PORT_DOWN, seconds),
            ]

    def test_an_occurrence_without_a_port_that_is_down_is_skipped_and_it_alone(self) -> None:  # 4.5
        plan = self.bonded()
        plan.take([occurred(UBOE_PORT_DOWN, 2), occurred(X, 2)], at(2))
        assert plan.on_ports(0, PortCount(0, 0), at(2)) == []
        assert plan.take([listed(3, X, UBOE_PORT_DOWN)], at(3)) == [listed(3, X)]

    def test_when_the_tool_fails_the_event_counts_as_it_is(self) -> None:  # R15
        plan = self.bonded()
        plan.take([occurred(UBOE_PORT_DOWN, 2)], at(2))
        found = plan.on_ports(0, None, at(2))
        assert found == [PortsDown(0, None, 0, at(2)), occurred(UBOE_PORT_DOWN, 2)]
        plan.take([recovered(UBOE_PORT_DOWN, 9)], at(9))
        assert plan.on_ports(0, None, at(9))[-1] == recovered(UBOE_PORT_DOWN, 9)

    def test_a_recovery_whose_count_fails_keeps_the_count_and_is_asked_about_again(self) -> None:  # R15
        plan = self.bonded()
        plan.take([occurred(UBOE_PORT_DOWN, 2)], at(2))
        plan.on_ports(0, PortCount(2, 0), at(2))
        plan.take([recovered(UBOE_PORT_DOWN, 9)], at(9))
        assert plan.on_ports(0, None, at(9)) == []
        assert plan.next_due_ms() == 39_000
        assert plan.on_ports(0, PortCount(0, 0), at(39))[-1] == recovered(UBOE_PORT_DOWN, 39)

    def test_a_count_finds_what_no_event_told(self) -> None:  # 4.4
        plan = self.bonded()
        assert plan.on_ports(0, PortCount(1, 2), at(300)) == [
            PortsDown(0, 1, 2, at(300)),
            occurred(UB_PORT_DOWN, 300, severity=None),
            PortsDown(0, 1, 2, at(300)),
            occurred(UBOE_PORT_DOWN, 300, severity=None),
        ]
        assert plan.take([listed(301)], at(301)) == [listed(301, UB_PORT_DOWN, UBOE_PORT_DOWN)]

    def test_a_list_that_differs_from_the_last_word_asks_for_a_count(self) -> None:
        plan = self.bonded()
        plan.take([listed(10, X)], at(10))
        assert plan.next_due_ms() == 300_000
        plan.take([listed(20, X, UBOE_PORT_DOWN)], at(20))
        assert plan.next_due_ms() == 20_000

    def test_a_list_that_differs_while_ports_are_counted_asks_for_another_count(self) -> None:
        """The list may be younger than the count, although its query began before."""
        plan = self.bonded()
        plan.take([recovered(UB_PORT_DOWN, 19)], at(19))
        plan.take([listed(19.9, X, UBOE_PORT_DOWN)], at(21))
        assert plan.on_ports(0, PortCount(0, 0), at(20)) == []
        assert plan.next_due_ms() == 25_000
        assert plan.on_ports(0, PortCount(1, 0), at(25))[-1] == occurred(UBOE_PORT_DOWN, 25, severity=None)
        assert plan.next_due_ms() == 55_000

    def test_a_bad_gateway_keeps_the_bare_code_when_the_ports_are_back(self) -> None:
        plan = self.bonded()
        plan.on_gateway(0, BAD, at(1))
        plan.on_ports(0, PortCount(2, 0), at(2))
        assert plan.on_ports(0, PortCount(0, 0), at(32)) == [
            PortsDown(0, 0, 0, at(32)),
            recovered(UBOE_PORT_DOWN, 32),
            occurred(UBOE_PORT_DOWN, 32, severity=None),
        ]
        assert plan.on_gateway(0, GOOD, at(40)) == [PortsDown(0, 0, 0, at(40)), recovered(UBOE_PORT_DOWN, 40)]

    def test_ub_ports_occur_at_once_and_recover_with_the_count(self) -> None:  # 4.5
        plan = self.bonded()
        assert plan.take([occurred(UB_PORT_DOWN, 2)], at(2))[-1] == occurred(UB_PORT_DOWN, 2)
        assert plan.take([recovered(UB_PORT_DOWN, 9)], at(9)) == []
        assert plan.on_ports(0, PortCount(0, 3), at(9)) == []
        plan.take([recovered(UB_PORT_DOWN, 12)], at(12))
        assert plan.on_ports(0, PortCount(0, 0), at(12)) == [PortsDown(0, 0, 0, at(12)), recovered(UB_PORT_DOWN, 12)]

    def test_link_events_of_a_chip_keep_their_order_while_one_waits(self) -> None:
        plan = self.bonded()
        stream = [recovered(UB_PORT_DOWN, 2), occurred(UB_PORT_DOWN, 2.1)]
        plan.take([occurred(UB_PORT_DOWN, 1)], at(1))
        assert plan.take(stream, at(2.1)) == []
        assert [o for o in plan.on_ports(0, PortCount(0, 0), at(2.2)) if not isinstance(o, PortsDown)] == stream

    def test_without_the_tool_events_pass_and_no_ports_are_told(self) -> None:
        plan = planned(Family.A5, board=UBOE_BOARD)
        stream = [occurred(UBOE_PORT_DOWN, 1), recovered(UBOE_PORT_DOWN, 2), occurred(UB_PORT_DOWN, 3)]
        assert plan.take(stream, at(3)) == stream

    def test_a_board_without_uboe_ports_has_ub_ports_only(self) -> None:
        plan = planned(Family.A5, board=POD_BOARD, tool=True)
        stream = [occurred(UBOE_PORT_DOWN, 1), occurred(UBOE_PORT_DOWN, 2)]
        assert plan.take(stream, at(2)) == stream
        assert plan.on_ports(0, PortCount(2, 1), at(3)) == [
            PortsDown(0, None, 1, at(3)),
            occurred(UB_PORT_DOWN, 3, severity=None),
        ]

    def test_boards_are_a_setting(self) -> None:
        assert parse_boards("0x23, 2B") == {0x23, 0x2B}
        assert parse_boards("") == frozenset()
        with pytest.raises(SettingsError, match="uboe_boards"):
            parse_boards("0x23;0x25")
        plan = LinkPlan(LinkTimes(), tool=False, uboe_boards=parse_boards("0x2b"))
        plan.take([InventorySeen(node(Family.A5, board=0x2B), at(0))], at(0))
        assert plan.gateway_chips() == node(Family.A5, board=0x2B).chips


samples = st.one_of(
    st.tuples(st.just("gateway"), st.sampled_from([True, False, None])),
    st.tuples(st.just("query"), st.sampled_from([True, False, None])),
    st.tuples(st.just("event"), st.booleans()),
    st.tuples(st.just("list"), st.booleans()),
)


@given(st.lists(st.tuples(samples, st.integers(0, 3000)), max_size=40))
def test_the_engine_always_holds_any_of_the_three_and_errors_change_nothing(
    story: list[tuple[tuple[str, bool | None], int]],
) -> None:
    plan, state, now, active, told = planned(tool=True), {}, 0.0, False, -1
    for (kind, down), pause_ms in story:
        now += (pause_ms + 1) / 1000
        if kind == "gateway":
            found = plan.on_gateway(0, down, at(now))
        elif kind == "query":
            found = plan.on_link(0, None if down is None else not down, at(now))
        elif kind == "event":
            found = plan.take([occurred(LINK_DOWN, now) if down else recovered(LINK_DOWN, now)], at(now))
        else:
            found = plan.take([listed(now, LINK_DOWN) if down else listed(now)], at(now))
        if down is None:
            assert found == []
        else:
            state["event" if kind == "list" else kind] = down
        moments = [o.at.mono_ms for o in found]
        assert moments == sorted(moments)
        assert not moments or moments[0] >= told
        told = max([told, *moments])
        active = believed(found, LINK_DOWN, before=active)
        assert active is any(state.values())
        assert plan.bad_links == int(active)


class TestRelease:
    def test_the_tool_is_asked_of_nothing_until_the_return_and_then_of_every_chip(self) -> None:
        plan = planned(chips=2, tool=True)
        for chip in (0, 1):
            plan.on_link(chip, True, at(0))
        assert plan.release(at(10)) == []
        assert (plan.next_query(10**9), plan.next_due_ms()) == (None, None)
        plan.resume(at(12))
        assert plan.next_due_ms() == 12_000
        assert plan.next_query(12_000) == node(chips=2).chips[0]

    def test_an_event_that_waits_for_a_count_goes_on_as_it_is(self) -> None:
        plan = planned(Family.A5, board=UBOE_BOARD, tool=True)
        event = occurred(UBOE_PORT_DOWN, 1)
        assert plan.take([event], at(1)) == []
        assert plan.release(at(2)) == [event]
        assert plan.take([recovered(UBOE_PORT_DOWN, 3)], at(3)) == [recovered(UBOE_PORT_DOWN, 3)]

    def test_a_bad_link_stays_bad(self) -> None:
        plan = planned(tool=True)
        plan.on_gateway(0, True, at(1))
        assert plan.release(at(2)) == []
        plan.resume(at(90))
        assert plan.bad_links == 1
        assert plan.on_gateway(0, False, at(91)) == [recovered(LINK_DOWN, 91)]


@given(
    st.lists(
        st.tuples(st.sampled_from(["occur", "recover", "count", "fail", "gateway"]), st.integers(0, 2)), max_size=30
    )
)
def test_ports_end_in_what_is_known_last(story: list[tuple[str, int]]) -> None:
    plan, bench, now = planned(Family.A5, board=UBOE_BOARD, tool=True), Bench(family=Family.A5, rules=DEFAULTS), 1.0
    for kind, number in story:
        now += 6
        if kind == "gateway":
            found = plan.on_gateway(0, number == 2, at(now))
        elif kind in ("occur", "recover"):
            event = occurred(UBOE_PORT_DOWN, now) if kind == "occur" else recovered(UBOE_PORT_DOWN, now)
            found = plan.take([event], at(now))
        else:
            found = plan.on_ports(0, PortCount(number, 0) if kind == "count" else None, at(now))
        bench.step(now, *found)
        bench.ack(now)
        bench.step(now + 5, *plan.take([listed(now + 5)], at(now + 5)))
        bench.ack(now + 5)
    now += 10
    for bad, count in ((True, 0), (False, 2), (False, 0)):
        bench.step(now, *plan.on_gateway(0, bad, at(now)), *plan.on_ports(0, PortCount(count, 0), at(now)))
        bench.ack(now)
        codes = set(bench.shown())
        assert codes == {(True, 0): {"81078607"}, (False, 2): {"110001024", "81078607"}, (False, 0): set()}[bad, count]
        now += 100
