"""Faults of switches in the engine: events and lists, notices, bad input, storms (lingqu-switch-faults 3 and 13)."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.engine import EPOCH_MS, at, switch_event, switch_list
from kit.switches import B3, B4, B5, B8, B9, B11, SwitchBench, recovery, storm

from nodeagent.core.observation import Acknowledged, Observation, SwitchLibraryFound, SwitchSilent
from nodeagent.core.switch import SwitchRecord
from nodeagent.policy.engine import Step, reconfigure
from nodeagent.policy.state import NOTICE_LIMIT_MS, ChangeKind
from nodeagent.policy.switch_records import moment_ms
from nodeagent.policy.switch_state import MAX_FAULTS

NOTICE_S = NOTICE_LIMIT_MS / 1000


def told(step: Step | None) -> list[tuple[ChangeKind, str]]:
    """Kinds and places of the changes of switches."""
    assert step is not None
    return [(change.kind, change.switch.place) for change in step.changes if change.switch is not None]


class TestEventsAgainstLists:
    """Section 3.2: the remedy for the races of upstream."""

    def test_an_occurrence_while_the_query_ran_outranks_its_answer(self) -> None:
        bench = SwitchBench()
        bench.events(10.5, B3)
        bench.answer(10)  # asked before the event, taken in after it
        assert len(bench.faults) == 1
        bench.answer(20)
        assert bench.faults == set()

    def test_a_recovery_while_the_query_ran_outranks_its_answer(self) -> None:
        bench = SwitchBench()
        bench.events(1, B3)
        bench.events(10.5, recovery(B3))
        bench.answer(10, B3)
        assert bench.faults == set()

    def test_an_event_outranks_the_answer_for_its_own_fault_only(self) -> None:
        bench = SwitchBench()
        bench.events(1, B4)
        bench.events(10.5, B3)
        bench.answer(10, B5)
        assert {chip for _, chip, _ in bench.faults} == {B3.chip_id, B5.chip_id}

    def test_an_event_that_is_older_than_the_list_says_nothing_new(self) -> None:
        bench = SwitchBench()
        bench.answer(10)
        bench.events(9, B3)
        assert bench.faults == set()
        bench.answer(20, B3)
        bench.events(19, recovery(B3))
        assert len(bench.faults) == 1

    def test_an_older_answer_after_a_newer_one_is_passed_over(self) -> None:
        bench = SwitchBench()
        bench.answer(20, B3)
        bench.answer(10)
        assert len(bench.faults) == 1

    def test_at_the_same_moment_the_order_of_arrival_decides(self) -> None:
        bench = SwitchBench()
        bench.answer(10)
        bench.events(10, B3)
        assert len(bench.faults) == 1
        bench.answer(10)
        assert bench.faults == set()

    def test_a_missed_occurrence_is_found_and_a_missed_recovery_too(self) -> None:
        bench = SwitchBench()
        bench.answer(300, B3)
        assert told(bench.last) == [(ChangeKind.OCCURRED, "switch 2 port 11")]
        bench.answer(600)
        assert told(bench.last) == [(ChangeKind.VANISHED, "switch 2 port 11")]


RECORDS = (B3, B4, B5, replace(B3, port_id=12), replace(B3, peer_id=6))
FACTS = st.lists(
    st.tuples(st.booleans(), st.sampled_from(RECORDS), st.booleans(), st.sets(st.sampled_from(RECORDS))),
    min_size=1,
    max_size=12,
)


def _model(observations: list[Observation]) -> set[SwitchRecord]:
    """What must be present after facts in the order of their time: nothing but last words count."""
    present: set[SwitchRecord] = set()
    for fact in sorted(observations, key=lambda each: each.at.mono_ms):
        if isinstance(fact, type(switch_list(0))):
            present = set(fact.records)
        elif isinstance(fact, type(switch_event(B3, 0))):
            plain = replace(fact.record, assertion=1)
            present = present - {plain} if fact.record.assertion == 0 else present | {plain}
    return present


def _observations(facts: list[tuple[bool, SwitchRecord, bool, set[SwitchRecord]]]) -> list[Observation]:
    found: list[Observation] = []
    for number, (is_list, record, recovers, listed) in enumerate(facts, 1):
        if is_list:
            found.append(switch_list(number, *sorted(listed, key=lambda r: r.identity)))
        else:
            found.append(switch_event(recovery(record) if recovers else record, number))
    return found


@given(FACTS, st.randoms(use_true_random=False))
def test_only_moments_count_not_the_order_of_arrival(
    facts: list[tuple[bool, SwitchRecord, bool, set[SwitchRecord]]], shuffle: object
) -> None:
    """Lists may come late, and each fact twice; one step or many make no difference."""
    observations = _observations(facts)
    expected = {(r.identity, r.raised_ms) for r in _model(observations)}
    arrived = observations * 2
    shuffle.shuffle(arrived)  # type: ignore[attr-defined]
    one, many = SwitchBench(), SwitchBench()
    one.step(20, *arrived)
    assert {(f.record.identity, f.record.raised_ms) for f in one.view.switch.faults} == expected
    for fact in sorted(arrived, key=lambda each: each.at.mono_ms):
        many.step(20, fact)
    assert {(f.record.identity, f.record.raised_ms) for f in many.view.switch.faults} == expected
    assert many.node == one.node


@given(FACTS, st.data())
def test_a_list_that_comes_after_later_events_changes_nothing_about_them(
    facts: list[tuple[bool, SwitchRecord, bool, set[SwitchRecord]]], data: st.DataObject
) -> None:
    """Events keep their order, as the library's one thread gives them; each answer may be late by any number."""
    observations = _observations(facts)
    lists = [fact for fact in observations if isinstance(fact, type(switch_list(0)))]
    arrived = [fact for fact in observations if fact not in lists]
    for each in lists:
        earliest = sum(1 for fact in arrived if fact.at.mono_ms <= each.at.mono_ms)
        arrived.insert(data.draw(st.integers(earliest, len(arrived))), each)
    bench = SwitchBench()
    for fact in arrived:
        bench.step(20, fact)
    assert {f.record.identity for f in bench.view.switch.faults} == {r.identity for r in _model(observations)}


class TestDuplicatesAndTimes:
    """Section 3.1 and 13.5, 13.6."""

    def test_port_and_peer_are_part_of_the_identity(self) -> None:
        bench = SwitchBench()
        bench.events(1, B3, replace(B3, port_id=12), replace(B3, peer_id=6), replace(B3, severity=1), B3)
        assert len(bench.view.switch.faults) == 3

    def test_the_first_of_two_times_stays_and_a_list_knows_better(self) -> None:
        bench = SwitchBench()
        later = replace(B3, raised_ms=B3.raised_ms + 5000)
        bench.events(1, B3, later)
        assert [f.record.raised_ms for f in bench.view.switch.faults] == [B3.raised_ms]
        bench.answer(300, later)
        assert [f.record.raised_ms for f in bench.view.switch.faults] == [later.raised_ms]

    def test_a_time_of_the_library_replaces_ours(self) -> None:
        bench = SwitchBench()
        bench.events(1, replace(B3, raised_ms=0))
        bench.events(2, B3)
        assert [f.record.raised_ms for f in bench.view.switch.faults] == [B3.raised_ms]

    def test_a_fault_that_went_and_came_again_has_a_new_first_time(self) -> None:
        bench = SwitchBench()
        without = replace(B3, raised_ms=0)
        bench.events(1, without)
        bench.events(2, recovery(without))
        bench.events(3, without)
        assert [f.record.raised_ms for f in bench.view.switch.faults] == [EPOCH_MS + 3000]

    def test_an_unchanged_list_makes_no_new_view(self) -> None:
        bench = SwitchBench()
        bench.answer(1, B3, replace(B4, raised_ms=0))
        before = bench.state.generation
        bench.answer(300, replace(B4, raised_ms=0), B3)
        assert bench.state.generation == before
        assert told(bench.last) == []


class TestNotices:
    """Section 3.4 with decision 3."""

    def test_in_exactly_one_acknowledged_report(self) -> None:
        bench = SwitchBench()
        bench.events(1, B11)
        bench.answer(2)
        assert bench.node == ("SubHealthFault", "SubHealthy"), "a list that lacks it does not end it"
        bench.ack(3)
        assert bench.faults == set()
        assert bench.node == ("", "Healthy")

    def test_an_acknowledgement_of_an_earlier_report_does_not_end_it(self) -> None:
        bench = SwitchBench()
        before = bench.state.generation
        bench.events(1, B11)
        bench.step(2, Acknowledged(before, at(2)))
        assert len(bench.faults) == 1

    def test_never_acknowledged_it_is_dropped_and_told(self) -> None:
        bench = SwitchBench()
        bench.events(1, B11)
        assert bench.last is not None
        assert bench.last.wake_at_mono_ms == at(1 + NOTICE_S).mono_ms
        bench.step(NOTICE_S + 0.999)
        assert len(bench.faults) == 1
        bench.step(1 + NOTICE_S)
        assert bench.faults == set()
        assert told(bench.last) == [(ChangeKind.NOTICE_DROPPED, "switch 4")]

    def test_a_second_notice_is_owed_a_report_of_its_own(self) -> None:
        bench = SwitchBench()
        bench.events(1, B11)
        first = bench.state.generation
        bench.events(2, replace(B11, raised_ms=B11.raised_ms + 1))
        bench.step(3, Acknowledged(first, at(3)))
        assert len(bench.faults) == 1
        bench.ack(4)
        assert bench.faults == set()

    def test_a_library_that_lists_it_does_not_bring_it_back(self) -> None:
        bench = SwitchBench()
        bench.answer(1, B11)
        bench.ack(2)
        for seconds in (300, 600):
            bench.answer(seconds, B11)
            assert bench.faults == set()
        bench.answer(900, replace(B11, raised_ms=B11.raised_ms + 1))
        assert len(bench.faults) == 1, "another one"
        bench.ack(901)
        bench.answer(1200)
        bench.answer(1500, replace(B11, raised_ms=B11.raised_ms + 1))
        assert len(bench.faults) == 1, "it was away in between"

    def test_a_recovery_ends_it_and_an_active_fault_stays_active(self) -> None:
        bench = SwitchBench()
        bench.events(1, B11)
        bench.events(2, recovery(B11))
        assert bench.faults == set()
        bench.events(3, B3)
        bench.events(4, replace(B3, assertion=2))
        bench.ack(5)
        assert len(bench.faults) == 1


class TestSilenceAndLibrary:
    """Section 13.3: unknown is neither fault nor recovery."""

    def test_a_failed_query_keeps_the_list_and_is_told_once(self) -> None:
        bench = SwitchBench()
        bench.events(1, B3)
        bench.step(5, SwitchSilent("returned -8005", at(5)))
        assert told(bench.last) == [(ChangeKind.SILENT, "switches")]
        bench.step(10, SwitchSilent("returned -8005", at(10)))
        assert told(bench.last) == []
        assert bench.view.switch.silent_since_ms == at(5).wall_ms
        assert bench.node == ("Separate", "UnHealthy")
        bench.answer(15, B3)
        assert told(bench.last) == [(ChangeKind.ANSWERS, "switches")]
        assert bench.view.switch.silent_since_ms is None

    def test_a_library_that_goes_away_withdraws_what_was_known(self) -> None:
        bench = SwitchBench()
        bench.events(1, B3)
        bench.step(2, SwitchLibraryFound(False, at(2)))
        assert bench.node == ("", "")
        assert told(bench.last) == [(ChangeKind.SWITCHES_WITHDRAWN, "switches")]
        bench.step(3, SwitchLibraryFound(True, at(3)))
        assert bench.node == ("Separate", "UnHealthy"), "until it has answered anew"
        bench.answer(4)
        assert bench.node == ("", "Healthy")

    def test_an_event_before_the_first_answer_is_shown(self) -> None:
        bench = SwitchBench(listed=False)
        bench.events(1, B3)
        assert bench.node == ("Separate", "UnHealthy")


class TestBadInput:
    """What a torn table or an unknown machine may bring (native-abi 16.6, 21)."""

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"chip_id": 200}, "switch chip 200 is not in 0..6"),
            ({"port_id": 48}, "port 48 is not in 0..47"),
            ({"assertion": 7}, "assertion 7 is not in 0..2, it counts as an occurrence"),
            ({"raised_ms": 1}, "its time 1 is before 2015"),
            ({"raised_ms": EPOCH_MS * 2}, f"its time {EPOCH_MS * 2} is in the future"),
            ({"raised_ms": 2**64 - 1}, f"its time {2**64 - 1} is none, the time of its first report counts"),
        ],
    )
    def test_odd_records_are_used_and_told_once(self, change: dict[str, int], words: str) -> None:
        bench = SwitchBench()
        odd = replace(B3, **change)
        bench.events(1, odd)
        assert bench.last is not None
        odd_changes = [c for c in bench.last.changes if c.kind is ChangeKind.SWITCH_ODD]
        assert [c.detail for c in odd_changes] == [words]
        assert bench.node == ("Separate", "UnHealthy")
        assert bench.text, "the contract check takes it"
        bench.answer(300, odd)
        assert told(bench.last) == []
        bench.events(301, recovery(odd))
        assert bench.faults == set()

    @pytest.mark.parametrize(
        "change", [{"chip_id": -1}, {"port_id": 2**32}, {"peer_id": 2**16}, {"alarm_id": -5}, {"severity": -1}]
    )
    def test_records_that_nobody_could_read_are_counted_and_the_others_taken(self, change: dict[str, int]) -> None:
        bench = SwitchBench()
        bench.answer(1, replace(B3, **change), B4)
        assert bench.last is not None
        assert [c.kind for c in bench.last.changes].count(ChangeKind.UNATTRIBUTED) == 1
        assert len(bench.faults) == 1
        bench.events(2, replace(B3, **change))
        assert len(bench.faults) == 1

    def test_a_time_in_seconds_is_taken_for_seconds(self) -> None:
        assert moment_ms(1_760_000_000) == 1_760_000_000_000
        assert moment_ms(1_760_000_000_123) == 1_760_000_000_123
        assert moment_ms(123_456) == 123_456
        assert moment_ms(0) is None


class TestStorm:
    """Decision 9: 7 chips x 48 ports x 3 codes."""

    def test_nothing_is_lost_as_events_or_as_a_list(self) -> None:
        by_events, by_list = SwitchBench(), SwitchBench()
        by_events.events(1, *storm())
        by_list.answer(1, *storm())
        assert len(by_events.faults) == len(by_list.faults) == 7 * 48 * 3
        assert by_events.text == by_list.text
        assert by_events.view.switch.planes_down == tuple(range(7))
        by_events.events(2, *(recovery(record) for record in storm()))
        assert by_events.node == ("", "Healthy")

    def test_of_too_many_the_mildest_and_oldest_go_and_it_is_said(self) -> None:
        bench = SwitchBench()
        mild = [replace(B5, peer_id=n, raised_ms=B5.raised_ms + n) for n in range(MAX_FAULTS)]
        bench.events(1, *mild)
        bench.events(2, B3)
        assert told(bench.last)[-1] == (ChangeKind.SWITCHES_CROWDED, "switches")
        assert len(bench.view.switch.faults) == MAX_FAULTS
        assert bench.node == ("Separate", "UnHealthy")
        assert min(f.record.peer_id for f in bench.view.switch.faults if f.record.port_id == B5.port_id) == 1


def test_another_table_levels_what_is_there_anew() -> None:
    bench = SwitchBench()
    bench.events(1, B3, B9)
    bench.config = replace(bench.config, switches=bench.config.switches.with_levels([]))
    after = reconfigure(bench.state, at(2), bench.config)
    assert after.view is not None
    assert (after.view.switch.fault_level, [f.known for f in after.view.switch.faults]) == ("NotHandle", [False, False])


def test_planes_are_told_when_they_go_down_and_come_back() -> None:
    bench = SwitchBench()
    bench.events(1, *B8)
    assert (ChangeKind.RAISED, "switch 3") in told(bench.last)
    bench.events(2, recovery(B8[0]))
    assert (ChangeKind.RELEASED, "switch 3") in told(bench.last)
