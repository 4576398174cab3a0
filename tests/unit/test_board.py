"""From polls to the view of the board: timelines of node-faults 19, and properties that must hold for any history."""

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.board import (
    BMC_23,
    CPU_1D,
    CPU_1F,
    LCNE,
    LEVELS,
    PORT_17,
    PSU_9,
    SYSTEM_31,
    UNNAMED,
    BoardBench,
    at,
    seen,
    silent,
    table_of,
)

from nodeagent.core.alarms import Alarm, NodeLevel
from nodeagent.core.board import AlarmsSeen, AlarmsSilent, BoardDevice, BoardFact, BoardView
from nodeagent.policy.board import AlarmKey, BoardChange, BoardChangeKind, BoardState, board_step

KIND = BoardChangeKind
PRE, NOT_HANDLE, SEPARATE = NodeLevel.PRE_SEPARATE, NodeLevel.NOT_HANDLE, NodeLevel.SEPARATE
FIRST = "found by the first poll"


@pytest.fixture
def bench() -> BoardBench:
    return BoardBench(table_of())


def told(bench: BoardBench) -> list[tuple[BoardChangeKind, str]]:
    return [(change.kind, change.key.code if change.key else "") for change in bench.changes]


class TestTimelines:
    def test_t1_healthy_node(self, bench: BoardBench) -> None:
        assert bench.take(seen(0)) == BoardView(1)
        assert bench.views[0].status == "Healthy"
        assert bench.take(seen(60)) is None, "nothing new to publish"

    def test_t2_alarm_unchanged(self, bench: BoardBench) -> None:
        bench.take(seen(0))
        view = bench.take(seen(120, CPU_1D))
        assert view == BoardView(2, (BoardDevice("CPU", 1, ("0000001D",), PRE),))
        assert view.status == "PreSeparate"
        assert bench.changes == (BoardChange(KIND.OCCURRED, at(120), AlarmKey("CPU", 1, "0000001D"), PRE),)
        for second in range(180, 1980, 60):
            assert bench.take(seen(second, CPU_1D)) is None
            assert bench.changes == ()
        assert bench.state.sightings[AlarmKey("CPU", 1, "0000001D")].since == at(120)
        assert bench.state.answered == at(1920)

    def test_t3_recovery(self, bench: BoardBench) -> None:
        bench.take(seen(120, CPU_1D))
        view = bench.take(seen(240))
        assert view == BoardView(2)
        assert bench.changes == (BoardChange(KIND.RECOVERED, at(240), AlarmKey("CPU", 1, "0000001D"), PRE),)

    def test_t4_worst_level_wins(self, bench: BoardBench) -> None:
        view = bench.take(seen(0, SYSTEM_31, PSU_9, CPU_1D))
        assert view is not None
        assert view.devices == (
            BoardDevice("CPU", 1, ("0000001D",), PRE),
            BoardDevice("PSU", 2, ("03000009",), NOT_HANDLE),
            BoardDevice("System", 255, ("2C000031",), SEPARATE),
        )
        assert view.status == "UnHealthy"
        view = bench.take(seen(60, PSU_9, CPU_1D))
        assert view is not None
        assert view.status == "PreSeparate"

    def test_t5_unknown_codes_only(self, bench: BoardBench) -> None:
        view = bench.take(seen(0, PORT_17, PORT_17, BMC_23, PORT_17))
        assert view == BoardView(1, (), (BMC_23, PORT_17))
        assert view.status == "Healthy"
        assert told(bench) == [(KIND.OCCURRED, "1A000023"), (KIND.OCCURRED, "29000017")]
        assert {change.level for change in bench.changes} == {None}

    def test_t6_not_handle_only(self, bench: BoardBench) -> None:
        view = bench.take(seen(0, PSU_9))
        assert view == BoardView(1, (BoardDevice("PSU", 2, ("03000009",), NOT_HANDLE),))
        assert view.status == "Healthy"

    def test_t7_duplicates_and_two_codes_on_a_device(self, bench: BoardBench) -> None:
        view = bench.take(seen(0, CPU_1D, CPU_1F, CPU_1D))
        assert view == BoardView(1, (BoardDevice("CPU", 1, ("0000001D", "0000001F"), PRE),))
        assert bench.take(seen(60, CPU_1D, CPU_1F, CPU_1F)) is None
        assert bench.take(seen(120, CPU_1F, CPU_1D)) is None
        assert bench.changes == ()

    def test_t8_level_change_at_run_time(self, bench: BoardBench) -> None:
        bench.take(seen(0, CPU_1D))
        view = bench.reconfigure(70, table_of(LEVELS | {"0000001D": SEPARATE}))
        assert view == BoardView(2, (BoardDevice("CPU", 1, ("0000001D",), SEPARATE),))
        assert view.status == "UnHealthy"
        key = AlarmKey("CPU", 1, "0000001D")
        assert bench.changes == (BoardChange(KIND.RELEVELLED, at(70), key, SEPARATE, PRE),)
        assert bench.take(seen(120, CPU_1D)) is None
        assert bench.reconfigure(130, table_of({})) == BoardView(3, (), (CPU_1D,))
        assert bench.changes == (BoardChange(KIND.RELEVELLED, at(130), key, None, SEPARATE),)
        assert bench.reconfigure(131, table_of({"03000009": PRE})) is None, "another table, the same verdict"

    def test_t12_ibmc_lost(self, bench: BoardBench) -> None:
        bench.take(seen(120, CPU_1D))
        for number, second in enumerate(range(180, 900, 60), 1):
            assert bench.take(silent(second, f"error {number}")) is None
            assert bench.state.stale is (number >= 3)
            assert told(bench) == ([(KIND.STALE, "")] if number == 3 else [])
            if number == 3:
                assert bench.changes[0].detail == "error 3"
        silence = bench.state.silence
        assert silence is not None
        assert (silence.since, silence.tried, silence.why, silence.tries) == (at(180), at(840), "error 12", 12)
        assert bench.state.view == bench.views[-1], "the last state stays"
        assert bench.take(seen(900)) == BoardView(2)
        assert told(bench) == [(KIND.FRESH, ""), (KIND.RECOVERED, "0000001D")]
        assert not bench.state.stale

    def test_t13_driver_missing_at_start(self, bench: BoardBench) -> None:
        for second in range(0, 360, 60):
            assert bench.take(silent(second, "/dev/ipmi0 does not exist")) is None
        assert bench.state.view is None
        assert bench.take(seen(360)) == BoardView(1)

    def test_t15_restart_with_a_fault_present(self) -> None:
        """Neither a poll without levels nor levels without a poll say that the node is healthy."""
        bench = BoardBench(None)
        assert bench.take(seen(0, CPU_1D)) is None
        assert bench.changes == ()
        view = bench.reconfigure(1, table_of())
        assert view == BoardView(1, (BoardDevice("CPU", 1, ("0000001D",), PRE),))
        assert bench.changes[0].detail == FIRST
        bench = BoardBench(table_of())
        assert bench.reconfigure(1, table_of()) is None
        assert bench.take(silent(2)) is None
        assert bench.state.view is None


class TestDetails:
    def test_two_failures_are_not_told(self, bench: BoardBench) -> None:
        bench.take(seen(0))
        bench.take(silent(60), silent(120))
        assert bench.changes == ()
        bench.take(seen(180))
        assert bench.changes == ()
        bench.take(silent(240))
        assert bench.state.silence is not None
        assert bench.state.silence.tries == 1, "only those in a row count"

    def test_severity_and_time_are_no_change(self, bench: BoardBench) -> None:
        bench.take(seen(0, CPU_1D, PORT_17))
        other = replace(CPU_1D, severity=1, raised_s=5), replace(PORT_17, severity=3, raised_s=0)
        assert bench.take(seen(60, *other)) is None
        assert bench.changes == ()
        assert bench.state.sightings[AlarmKey("CPU", 1, "0000001D")].alarm.severity == 1, "but it is shown"

    def test_subjects_that_share_a_name_share_a_device(self, bench: BoardBench) -> None:
        lcne = Alarm(0x62000006, 0, 2, LCNE, 4)
        view = bench.take(seen(0, lcne, replace(CPU_1D, subject=UNNAMED, device_id=4)))
        assert view is not None
        assert view.devices == (BoardDevice("UNKNOWN", 4, ("0000001D", "62000006"), PRE),)
        assert bench.take(seen(60, replace(lcne, subject=0xEE), replace(CPU_1D, subject=0x0C, device_id=4))) is None

    def test_devices_are_sorted_by_type_and_number(self, bench: BoardBench) -> None:
        view = bench.take(seen(0, *(replace(CPU_1D, device_id=number) for number in (10, 9, 2, 255))))
        assert view is not None
        assert [device.device_id for device in view.devices] == [2, 9, 10, 255]

    def test_a_device_shows_listed_codes_only(self, bench: BoardBench) -> None:
        view = bench.take(seen(0, CPU_1D, replace(CPU_1D, code=0x00ABCDEF)))
        assert view is not None
        assert view.devices == (BoardDevice("CPU", 1, ("0000001D",), PRE),)
        assert [alarm.text for alarm in view.unlisted] == ["00ABCDEF"]

    def test_an_alarm_that_came_and_went_between_two_steps_is_told(self, bench: BoardBench) -> None:
        bench.take(seen(0))
        assert bench.take(seen(60, CPU_1D), seen(120)) is not None
        assert told(bench) == [(KIND.OCCURRED, "0000001D"), (KIND.RECOVERED, "0000001D")]
        bench.take(seen(180, CPU_1D))
        assert bench.state.sightings[AlarmKey("CPU", 1, "0000001D")].since == at(180), "it came anew"

    def test_three_hundred_alarms(self, bench: BoardBench) -> None:
        alarms = [replace(CPU_1D, code=0x100 + number % 10, device_id=number % 30) for number in range(300)]
        bench.table = table_of({f"{0x100 + number:08X}": PRE for number in range(9)})
        view = bench.take(seen(0, *alarms))
        assert view is not None
        assert len(view.devices) == 27, "three devices have only the code that is in no table"
        assert sum(len(device.codes) for device in view.devices) + len(view.unlisted) == len(set(alarms)) == 30


alarm_sets = st.lists(
    st.builds(
        Alarm,
        code=st.sampled_from([0x1D, 0x1F, 0x03000009, 0x2C000031, 0xABCDEF, 0xFFFFFFFF]),
        raised_s=st.integers(0, 3),
        severity=st.integers(0, 4),
        subject=st.sampled_from([0, 3, 0x07, 0x0C, 0x2C, 0xEE]),
        device_id=st.sampled_from([0, 1, 255]),
    ),
    max_size=12,
)
histories = st.lists(st.one_of(alarm_sets, st.none()), max_size=12)


def facts_of(history: list[list[Alarm] | None]) -> list[BoardFact]:
    return [
        AlarmsSilent("no answer", at(60 * number)) if alarms is None else AlarmsSeen(tuple(alarms), at(60 * number))
        for number, alarms in enumerate(history)
    ]


class TestProperties:
    @given(alarm_sets, st.randoms(use_true_random=False))
    def test_order_and_duplicates_do_not_matter(self, alarms: list[Alarm], chance: random.Random) -> None:
        shuffled = alarms + [chance.choice(alarms) for _ in range(3) if alarms]
        chance.shuffle(shuffled)
        one, two = BoardBench(table_of()), BoardBench(table_of())
        one.take(seen(0, *alarms))
        two.take(seen(0, *shuffled))
        assert one.state == two.state
        assert one.changes == two.changes
        assert one.take(seen(60, *shuffled)) is None

    @given(alarm_sets)
    def test_no_alarm_is_lost(self, alarms: list[Alarm]) -> None:
        bench = BoardBench(table_of())
        view = bench.take(seen(0, *alarms))
        assert view is not None
        listed = {(device.device_type, device.device_id, code) for device in view.devices for code in device.codes}
        unlisted = [(alarm.device_type, alarm.device_id, alarm.text) for alarm in view.unlisted]
        assert len(unlisted) == len(set(unlisted))
        assert not listed & set(unlisted)
        assert listed | set(unlisted) == {(alarm.device_type, alarm.device_id, alarm.text) for alarm in alarms}
        assert {code for _, _, code in listed} <= LEVELS.keys()
        for device in view.devices:
            assert device.codes == tuple(sorted(set(device.codes)))
            assert device.level == max(LEVELS[code] for code in device.codes)
        assert list(view.devices) == sorted(view.devices)

    @given(histories)
    def test_silence_changes_nothing(self, history: list[list[Alarm] | None]) -> None:
        bench, quiet = BoardBench(table_of()), BoardBench(table_of())
        for fact in facts_of(history):
            bench.take(fact)
            if isinstance(fact, AlarmsSeen):
                quiet.take(fact)
                assert [c for c in bench.changes if c.key] == list(quiet.changes)
        assert bench.views == quiet.views
        assert bench.state.sightings == quiet.state.sightings
        assert bench.state.view == quiet.state.view

    @given(histories, alarm_sets)
    def test_after_a_restart_the_view_is_the_same(self, history: list[list[Alarm] | None], last: list[Alarm]) -> None:
        old, new = BoardBench(table_of()), BoardBench(table_of())
        for fact in facts_of([*history, last]):
            old.take(fact)
        new.take(seen(0, *last))
        assert old.state.view is not None
        assert new.state.view is not None
        assert old.state.view.devices == new.state.view.devices
        assert {a.text for a in old.state.view.unlisted} == {a.text for a in new.state.view.unlisted}

    @given(histories)
    def test_occurrences_and_recoveries_add_up_to_what_is_present(self, history: list[list[Alarm] | None]) -> None:
        bench, present = BoardBench(table_of()), set[AlarmKey]()
        for fact in facts_of(history):
            bench.take(fact)
            for change in bench.changes:
                if change.kind is KIND.OCCURRED:
                    assert change.key not in present
                    assert change.key is not None
                    present.add(change.key)
                elif change.kind is KIND.RECOVERED:
                    assert change.key is not None
                    present.remove(change.key)
            assert present == bench.state.sightings.keys()

    @given(histories, st.integers(1, 5))
    def test_it_does_not_matter_how_facts_are_handed_over(self, history: list[list[Alarm] | None], size: int) -> None:
        facts, table = facts_of(history), table_of()
        one = board_step(BoardState(), facts, at(0), table)
        state, changes = BoardState(), list[BoardChange]()
        for start in range(0, len(facts), size):
            step = board_step(state, facts[start : start + size], at(0), table)
            state = step.state
            changes += step.changes
        assert one.state == state
        assert list(one.changes) == changes

    @given(histories)
    def test_generations_grow_and_views_differ(self, history: list[list[Alarm] | None]) -> None:
        bench = BoardBench(table_of())
        for fact in facts_of(history):
            bench.take(fact)
        assert [view.generation for view in bench.views] == list(range(1, len(bench.views) + 1))
        for one, two in zip(bench.views, bench.views[1:], strict=False):
            assert (one.devices, {a.text for a in one.unlisted}) != (two.devices, {a.text for a in two.unlisted}) or (
                one.unlisted != two.unlisted
            )
