"""The chip source's plan against the rules of chip-faults 2 and decisions 4 and 5, without any I/O."""

import pytest

from nodeagent.core.codes import CARD_DROPPED, LINK_DOWN, RESET_FINISHED
from nodeagent.core.instant import Instant
from nodeagent.core.levels import Severity
from nodeagent.core.model import ChipId, Family, Inventory, Product
from nodeagent.core.observation import (
    ChipCodes,
    ChipSilent,
    FaultNoticed,
    FaultOccurred,
    FaultRecovered,
    InventorySeen,
    SourceComplete,
    Unattributed,
)
from nodeagent.drivers.chips import CodesAnswer, DriverEvent
from nodeagent.sources.plan import ChipPlan, ChipTimes, Job, JobKind, Outcome

X, Y = 0x80E18005, 0x80C98008


def at(ms: int) -> Instant:
    return Instant(ms, 1_760_000_000_000 + ms)


def node(chips: int = 2, family: Family = Family.A2) -> Inventory:
    return Inventory(Product(family, "910B4"), tuple(ChipId(i, i + 10, i, 0) for i in range(chips)))


def opened(chips: int = 2, family: Family = Family.A2) -> ChipPlan:
    """A plan at time 0 whose session is open and, where possible, subscribed, with every chip asked once."""
    plan = ChipPlan(ChipTimes())
    plan.on_opened(node(chips, family), at(0))
    if family.subscribes:
        assert plan.next_job(0) == Job(JobKind.SUBSCRIBE)
        plan.on_subscribed(at(0))
    for chip in range(chips):
        assert plan.next_job(0) == Job(JobKind.CODES, chip)
        plan.on_codes(chip, CodesAnswer((), False), at(0), at(0))
    assert plan.next_job(0) is None
    return plan


def event(code: int, assertion: int, chip: int = 0, severity: int = 2) -> DriverEvent:
    return DriverEvent(code, chip, assertion, severity, 0)


def feed(plan: ChipPlan, ms: int, *events: DriverEvent) -> list[object]:
    return list(plan.on_events([(e, at(ms)) for e in events]))


def answer(plan: ChipPlan, ms: int, *codes: int, chip: int = 0) -> list[object]:
    assert plan.next_job(ms) == Job(JobKind.CODES, chip)
    return list(plan.on_codes(chip, CodesAnswer(codes, False), at(ms), at(ms + 1)))


class TestStart:
    def test_first_the_session_then_the_subscription_then_every_chip(self) -> None:
        plan = ChipPlan(ChipTimes())
        assert plan.next_job(0) == Job(JobKind.OPEN)
        assert plan.on_opened(node(), at(0)) == [InventorySeen(node(), at(0))]
        assert plan.next_job(0) == Job(JobKind.SUBSCRIBE)
        plan.on_subscribed(at(0))
        assert plan.next_job(0) == Job(JobKind.CODES, 0)

    def test_complete_when_every_chip_answered_or_missed_its_deadline_once(self) -> None:
        plan = ChipPlan(ChipTimes())
        plan.on_opened(node(), at(0))
        plan.on_subscribed(at(0))
        first = plan.on_codes(0, CodesAnswer((X,), False), at(0), at(1))
        assert first == [ChipCodes(0, (X,), at(0))]
        second = plan.on_failed(Job(JobKind.CODES, 1), Outcome.HUNG, "hangs", at(1), at(5001))
        assert second == [ChipSilent(1, "hangs", at(5001)), SourceComplete(at(5001))]

    def test_a_310_is_polled_and_never_subscribed(self) -> None:
        plan = opened(family=Family.A310)
        assert plan.next_job(4999) is None
        assert plan.next_job(5000) == Job(JobKind.CODES, 0)

    def test_a_start_that_fails_is_tried_again_with_growing_pauses(self) -> None:
        plan = ChipPlan(ChipTimes())
        moment, pauses = 0, []
        for _ in range(7):
            plan.on_open_failed(at(moment))
            pauses.append(plan.next_due_ms() - moment)
            moment = plan.next_due_ms()
            assert plan.next_job(moment - 1) is None
            assert plan.next_job(moment) == Job(JobKind.OPEN)
        assert pauses == [1000, 2000, 5000, 10000, 30000, 60000, 60000]


class TestEvents:
    def test_occurrence_and_notice_pass_at_once(self) -> None:
        plan = opened()
        assert feed(plan, 100, event(X, 1), event(Y, 2, severity=0)) == [
            FaultOccurred(0, X, Severity.MAJOR, at(100)),
            FaultNoticed(0, Y, Severity.NOTICE, at(100)),
        ]

    @pytest.mark.parametrize(
        "odd", [event(X, 1, chip=9), event(0, 1), event(X, 3)], ids=["unknown chip", "code 0", "assertion 3"]
    )
    def test_what_belongs_nowhere_is_counted_not_applied(self, odd: DriverEvent) -> None:
        assert feed(opened(), 100, odd) == [Unattributed(odd.logic_id, odd.code, at(100))]

    def test_a_severity_out_of_range_is_unknown_not_an_error(self) -> None:
        assert feed(opened(), 100, event(X, 1, severity=9)) == [FaultOccurred(0, X, None, at(100))]

    def test_reset_finished_is_no_fault_but_asks_for_a_full_query(self) -> None:  # W32
        plan = opened()
        assert feed(plan, 100, event(RESET_FINISHED, 1, chip=1)) == []
        assert plan.next_job(100) == Job(JobKind.CODES, 1)
        assert answer(plan, 100, X, chip=1) == [ChipCodes(1, (X,), at(100))]

    def test_the_recovery_form_of_a_black_box_code_recovers_its_twin(self) -> None:  # fault-catalogue 3.5
        plan = opened(1)
        assert feed(plan, 100, event(0x9607FFFF, 1)) == []
        assert answer(plan, 100)[0] == FaultRecovered(0, 0xA607FFFF, at(100))

    def test_lost_events_make_every_chip_due(self) -> None:
        plan = opened()
        plan.query_all(at(100))
        assert plan.next_job(100) == Job(JobKind.CODES, 0)
        plan.on_codes(0, CodesAnswer((), False), at(100), at(100))
        assert plan.next_job(100) == Job(JobKind.CODES, 1)

    @pytest.mark.parametrize("asker", ["overflow", "reset"])
    def test_a_full_query_that_is_asked_for_while_one_runs_is_made_after_it(self, asker: str) -> None:
        """The driver may have made its list before the event that was lost, or before the reset ended."""
        plan = opened()
        plan.query_all(at(100))
        assert plan.next_job(100) == Job(JobKind.CODES, 0)
        if asker == "overflow":
            plan.query_all(at(100))  # in the same millisecond, too
        else:
            feed(plan, 100, event(RESET_FINISHED, 1))
        plan.on_codes(0, CodesAnswer((), False), at(100), at(102))
        answer(plan, 102, chip=1)  # waits longer
        assert plan.next_due_ms() == 102
        assert answer(plan, 103, X) == [ChipCodes(0, (X,), at(103))]
        later = plan.next_due_ms()
        assert later is not None
        assert later > 103


class TestRecoveries:
    def test_believed_when_the_list_does_not_have_it(self) -> None:
        plan = opened()
        assert feed(plan, 100, event(X, 0)) == []
        assert answer(plan, 100) == [FaultRecovered(0, X, at(100)), ChipCodes(0, (), at(100))]

    def test_checked_after_1_and_2_s_while_listed_then_ignored(self) -> None:  # decision 5, W09
        plan = opened()
        feed(plan, 100, event(X, 0))
        assert answer(plan, 100, X) == [ChipCodes(0, (X,), at(100))]
        assert plan.next_job(1099) is None
        assert answer(plan, 1100, X) == [ChipCodes(0, (X,), at(1100))]
        assert plan.next_job(2099) is None
        assert answer(plan, 2100, X) == [ChipCodes(0, (X,), at(2100))]
        assert plan.next_job(4999) is None

    def test_believed_at_the_second_check(self) -> None:
        plan = opened()
        feed(plan, 100, event(X, 0))
        answer(plan, 100, X)
        assert answer(plan, 1100)[0] == FaultRecovered(0, X, at(100))

    def test_an_occurrence_of_the_same_code_cancels_the_check(self) -> None:
        plan = opened()
        feed(plan, 100, event(X, 0))
        assert feed(plan, 150, event(X, 1)) == [FaultOccurred(0, X, Severity.MAJOR, at(150))]
        assert plan.next_job(4000) is None

    def test_other_codes_do_not_wait(self) -> None:
        plan = opened()
        feed(plan, 100, event(X, 0))
        assert feed(plan, 101, event(Y, 1)) == [FaultOccurred(0, Y, Severity.MAJOR, at(101))]

    def test_a_failed_check_honours_the_recovery_and_asks_again(self) -> None:  # W09
        plan = opened()
        feed(plan, 100, event(X, 0))
        found = plan.on_failed(Job(JobKind.CODES, 0), Outcome.REFUSED, "-8005", at(100), at(101))
        assert found == [FaultRecovered(0, X, at(100)), ChipSilent(0, "-8005", at(101))]
        assert plan.next_job(1101) == Job(JobKind.CODES, 0)

    def test_a_link_recovery_is_believed_unchecked_and_a_lagging_list_does_not_bring_it_back(self) -> None:
        plan = opened(1)
        assert feed(plan, 100, event(LINK_DOWN, 0)) == [FaultRecovered(0, LINK_DOWN, at(100))]
        plan.query_all(at(200))
        assert answer(plan, 200, LINK_DOWN) == [ChipCodes(0, (), at(200))]
        assert answer(plan, 2701, LINK_DOWN) == [ChipCodes(0, (LINK_DOWN,), at(2701))]


class TestPeriods:
    def test_full_query_of_every_chip_at_300_s_at_the_latest(self) -> None:  # R10
        plan = opened(1)
        for second in range(5, 300, 5):
            assert plan.next_job(second * 1000) == Job(JobKind.HEALTH, 0), second
            plan.on_health(0, False, at(second * 1000))
        assert plan.next_job(300_000) == Job(JobKind.CODES, 0)

    def test_without_a_subscription_lists_are_polled_and_the_subscription_is_retried_for_ever(self) -> None:
        plan = ChipPlan(ChipTimes())
        plan.on_opened(node(1), at(0))
        moment = 0
        for _ in range(20):
            assert plan.next_job(moment) == Job(JobKind.SUBSCRIBE)
            plan.on_subscribe_failed(at(moment), new_process=False)
            moment += 60_000
        plan.on_codes(0, CodesAnswer((), False), at(0), at(0))
        assert plan.tracks[0].codes_due_ms == 5000
        plan.on_subscribed(at(moment))
        assert plan.next_job(moment) == Job(JobKind.CODES, 0)
        plan.on_codes(0, CodesAnswer((), False), at(moment), at(moment))
        assert plan.tracks[0].codes_due_ms == moment + 300_000

    def test_an_occupied_subscription_needs_another_process(self) -> None:  # native-abi 7.4
        plan = opened(1)
        plan.on_subscribe_failed(at(0), new_process=True)
        assert plan.next_job(1000) == Job(JobKind.OPEN)


class TestCardDrop:
    def test_dropped_and_back(self) -> None:  # W33
        plan = opened()
        assert plan.on_health(0, True, at(5000)) == [FaultOccurred(0, CARD_DROPPED, None, at(5000))]
        assert plan.on_health(0, True, at(10_000)) == []
        assert plan.on_health(0, False, at(15_000)) == [FaultRecovered(0, CARD_DROPPED, at(15_000))]
        assert plan.next_job(15_000) == Job(JobKind.CODES, 0)

    def test_a_dropped_card_that_lists_nothing_leaves_its_other_codes_alone(self) -> None:
        plan = opened()
        plan.query_all(at(100))
        assert plan.on_codes(0, CodesAnswer(None, True), at(100), at(101)) == [
            FaultOccurred(0, CARD_DROPPED, None, at(101))
        ]

    def test_an_error_is_neither_drop_nor_return(self) -> None:
        plan = opened()
        plan.on_health(0, True, at(5000))
        found = plan.on_failed(Job(JobKind.HEALTH, 0), Outcome.REFUSED, "-8005", at(10_000), at(10_000))
        assert found == [ChipSilent(0, "-8005", at(10_000))]
        assert plan.tracks[0].dropped


class TestHangs:
    def test_a_chip_that_hangs_is_left_alone_and_probed_later(self) -> None:
        plan = opened()
        plan.query_all(at(100))
        plan.on_failed(Job(JobKind.CODES, 0), Outcome.HUNG, "hangs", at(100), at(5100))
        plan.on_session_lost(at(5100))
        assert plan.next_job(5100) == Job(JobKind.OPEN)
        assert plan.avoid == {0}
        plan.on_opened(node(), at(5200))
        plan.on_subscribed(at(5200))
        assert plan.next_job(5200) == Job(JobKind.CODES, 1)
        plan.on_codes(1, CodesAnswer((), False), at(5200), at(5201))
        assert plan.next_job(35_099) == Job(JobKind.HEALTH, 1)
        assert plan.next_probe(35_099) is None
        assert plan.next_probe(35_100) == 0

    def test_probes_back_off_and_a_good_one_ends_the_quarantine(self) -> None:
        plan = opened(1)
        plan.on_failed(Job(JobKind.CODES, 0), Outcome.HUNG, "hangs", at(0), at(0))
        due = []
        for _ in range(4):
            moment = plan.tracks[0].probe_due_ms
            assert moment is not None
            due.append(moment)
            plan.on_probed(0, False, at(moment))
        assert due == [30_000, 90_000, 210_000, 510_000]
        plan.on_probed(0, True, at(600_000))
        assert plan.next_job(600_000) == Job(JobKind.CODES, 0)

    def test_a_chip_whose_calls_end_the_host_twice_is_left_alone_too(self) -> None:
        plan = opened(1)
        for moment in (0, 2000):
            assert plan.tracks[0].askable
            plan.on_failed(Job(JobKind.CODES, 0), Outcome.GONE, "SIGSEGV", at(moment), at(moment))
        assert not plan.tracks[0].askable

    def test_a_session_that_dies_again_and_again_is_not_restarted_in_a_hot_loop(self) -> None:
        plan = opened(1)
        pauses, moment = [], 1000
        for _ in range(4):
            plan.on_session_lost(at(moment))
            pauses.append(plan.next_due_ms() - moment)
            moment = plan.next_due_ms()
            plan.on_opened(node(1), at(moment))
            moment += 1000
        assert pauses == [0, 1000, 2000, 5000]
        plan.on_session_lost(at(moment + 60_000))
        assert plan.next_due_ms() == moment + 60_000

    def test_a_chip_that_a_later_session_does_not_list_keeps_its_state_and_is_looked_for(self) -> None:
        plan = opened(2)
        plan.on_session_lost(at(1000))
        found = plan.on_opened(node(1), at(2000))
        assert ChipSilent(1, "the driver does not list it any more", at(2000)) in found
        assert 1 in plan.tracks
        plan.on_subscribed(at(2000))
        answer(plan, 2000)
        assert plan.next_job(31_999) == Job(JobKind.HEALTH, 0)
        assert plan.next_job(32_000) == Job(JobKind.OPEN)


class TestRelease:
    def test_nothing_is_due_until_the_return(self) -> None:
        plan = opened()
        plan.release()
        for ms in (0, 5000, 10**9):
            assert plan.next_job(ms) is None
        assert (plan.next_probe(10**9), plan.next_due_ms(), plan.subscribed) == (None, None, False)

    def test_the_return_is_a_session_a_subscription_and_every_chip_at_once(self) -> None:
        plan = opened()
        plan.release()
        plan.resume(at(90_000))
        assert plan.next_due_ms() == 90_000
        assert plan.next_job(90_000) == Job(JobKind.OPEN)
        assert plan.on_opened(node(), at(90_000)) == []  # the same node, nothing to tell
        assert plan.next_job(90_000) == Job(JobKind.SUBSCRIBE)
        plan.on_subscribed(at(90_000))
        assert answer(plan, 90_000, X, chip=0) == [ChipCodes(0, (X,), at(90_000))]
        assert answer(plan, 90_000, chip=1) == [ChipCodes(1, (), at(90_000))]

    def test_a_recovery_in_doubt_is_left_to_the_query_on_return(self) -> None:
        plan = opened(1)
        assert feed(plan, 100, event(X, 0)) == []
        plan.release()
        plan.resume(at(90_000))
        plan.on_opened(node(1), at(90_000))
        plan.on_subscribed(at(90_000))
        assert answer(plan, 90_000, X) == [ChipCodes(0, (X,), at(90_000))]
        assert plan.next_job(92_100) is None

    def test_a_drop_that_is_over_on_return_and_one_that_is_found_then(self) -> None:
        plan = opened()
        assert plan.next_job(5000) == Job(JobKind.HEALTH, 0)
        assert plan.on_health(0, True, at(5000)) == [FaultOccurred(0, CARD_DROPPED, None, at(5000))]
        plan.release()
        plan.resume(at(90_000))
        plan.on_opened(node(), at(90_000))
        plan.on_subscribed(at(90_000))
        assert answer(plan, 90_000, chip=0) == [ChipCodes(0, (), at(90_000))]
        dropped = plan.on_codes(1, CodesAnswer(None, True), at(90_000), at(90_001))
        assert dropped == [FaultOccurred(1, CARD_DROPPED, None, at(90_001))]

    def test_a_driver_that_is_not_back_is_waited_for_with_the_usual_pauses(self) -> None:
        plan = ChipPlan(ChipTimes())
        for moment in (0, 1000, 3000, 8000):
            plan.on_open_failed(at(moment))
        plan.release()
        plan.resume(at(90_000))
        moment, pauses = 90_000, []
        for _ in range(6):
            assert plan.next_job(moment) == Job(JobKind.OPEN)
            plan.on_open_failed(at(moment))
            due = plan.next_due_ms()
            assert due is not None
            pauses.append(due - moment)
            moment = due
        assert pauses == [1000, 2000, 5000, 10_000, 30_000, 60_000]

    def test_a_chip_in_quarantine_is_probed_at_once_on_return_and_not_asked_in_the_main_session(self) -> None:
        plan = opened()
        plan.on_failed(Job(JobKind.CODES, 1), Outcome.HUNG, "hangs", at(100), at(5100))
        plan.on_session_lost(at(5100))
        plan.release()
        assert plan.next_probe(10**9) is None
        plan.resume(at(90_000))
        plan.on_opened(node(), at(90_000))
        plan.on_subscribed(at(90_000))
        answer(plan, 90_000, chip=0)
        assert plan.next_job(90_000) is None
        assert plan.next_probe(90_000) == 1
        plan.on_probed(1, True, at(90_100))
        assert plan.next_job(90_100) == Job(JobKind.CODES, 1)

    def test_a_release_before_the_first_answer(self) -> None:
        plan = ChipPlan(ChipTimes())
        plan.release()
        assert plan.next_job(10**9) is None
        plan.resume(at(90_000))
        assert plan.next_job(90_000) == Job(JobKind.OPEN)
