"""When which chip is asked for its gateway (chip-faults 4.6), without any I/O."""

from kit.links import at, node

from nodeagent.sources.gateway_plan import GatewayPlan

CHIPS = node(chips=3).chips


def opened(*chips: int, seconds: float = 0) -> GatewayPlan:
    plan = GatewayPlan(5.0)
    plan.set_chips([CHIPS[i] for i in chips or (0,)], at(seconds))
    assert plan.next_chip(round(seconds * 1000)) is not None
    plan.on_opened(at(seconds))
    return plan


class TestPeriod:
    def test_nothing_is_opened_before_there_is_a_chip_to_ask(self) -> None:
        plan = GatewayPlan(5.0)
        assert (plan.next_chip(10**9), plan.next_due_ms(), plan.wants_session) == (None, None, False)

    def test_every_chip_once_a_period_in_turn(self) -> None:
        plan, asked = opened(0, 1, 2), []
        for ms in (0, 1, 2):
            chip = plan.next_chip(ms)
            assert chip is not None
            asked.append(chip.logic_id)
            plan.on_answer(chip.logic_id, at(ms / 1000))
        assert asked == [0, 1, 2]
        assert plan.next_chip(4999) is None
        assert plan.next_due_ms() == 5000
        assert plan.next_chip(5000) == CHIPS[0]

    def test_a_session_that_cannot_be_opened_is_tried_with_growing_pauses(self) -> None:
        plan = GatewayPlan(5.0)
        plan.set_chips(CHIPS, at(0))
        pauses, moment = [], 0
        for _ in range(7):
            plan.on_open_failed(at(moment / 1000))
            due = plan.next_due_ms()
            assert due is not None
            assert plan.next_chip(due - 1) is None
            pauses.append(due - moment)
            moment = due
        assert pauses == [1000, 2000, 5000, 10_000, 30_000, 60_000, 60_000]


class TestHangs:
    def test_the_chip_is_left_alone_and_the_others_go_on_in_the_next_session(self) -> None:
        plan = opened(0, 1)
        plan.on_session_lost(at(1))
        assert plan.on_no_answer(0, at(1), hung=True)
        assert plan.next_chip(1999) is None
        assert plan.next_chip(2000) == CHIPS[1]
        plan.on_opened(at(2))
        plan.on_answer(1, at(2))
        plan.on_released(0)
        assert plan.next_due_ms() == 7000
        plan.on_answer(1, at(100))
        assert plan.next_chip(30_999) is None
        assert plan.next_chip(31_000) == CHIPS[0]

    def test_never_while_the_child_of_the_call_lives(self) -> None:
        plan = opened(0)
        plan.on_session_lost(at(1))
        plan.on_no_answer(0, at(1), hung=True)
        assert (plan.next_chip(10**7), plan.next_due_ms()) == (None, None)
        plan.on_released(0)
        assert plan.next_chip(10**7) == CHIPS[0]

    def test_pauses_grow_until_it_answers(self) -> None:
        plan, seconds, pauses = opened(0), 0, []
        for _ in range(5):
            plan.on_session_lost(at(seconds))
            plan.on_no_answer(0, at(seconds), hung=True)
            plan.on_released(0)
            due = plan.next_due_ms()
            assert due is not None
            pauses.append(due // 1000 - seconds)
            seconds = due // 1000
            plan.on_opened(at(seconds))
        assert pauses == [30, 60, 120, 300, 300]
        plan.on_answer(0, at(seconds))
        plan.on_no_answer(0, at(seconds), hung=True)
        plan.on_released(0)
        plan.on_opened(at(seconds))
        assert plan.next_due_ms() == (seconds + 30) * 1000

    def test_one_end_of_the_process_is_nobody_s_fault_two_are_the_chip_s(self) -> None:
        plan = opened(0)
        assert not plan.on_no_answer(0, at(1), hung=False)
        assert plan.next_chip(1000) == CHIPS[0]
        assert plan.on_no_answer(0, at(2), hung=False)
        assert plan.next_chip(10_000) is None

    def test_a_session_that_lived_long_is_replaced_soon(self) -> None:
        plan = opened(0, 1)
        for seconds in (1, 3, 8):
            plan.on_session_lost(at(seconds))
            plan.on_opened(at(seconds))
        plan.on_session_lost(at(100))
        assert plan.next_chip(101_000) is not None


class TestNotSupported:
    def test_skipped_and_to_be_named_once(self) -> None:
        plan = opened(0, 1)
        assert plan.on_unsupported(0)
        assert plan.unsupported == 1
        assert plan.next_chip(10**7) == CHIPS[1]
        plan.on_opened(at(20))
        assert plan.next_chip(10**7) == CHIPS[0], "a new session is a new try"
        assert not plan.on_unsupported(0), "but no news"

    def test_no_session_is_wanted_when_no_chip_has_it(self) -> None:
        plan = opened(0, 1)
        for chip in (0, 1):
            plan.on_unsupported(chip)
        assert not plan.wants_session
        assert plan.next_due_ms() is None

    def test_another_driver_session_is_another_try(self) -> None:
        plan = opened(0)
        plan.on_unsupported(0)
        plan.set_chips(CHIPS[:1], at(60))
        assert plan.next_chip(60_000) == CHIPS[0]

    def test_a_chip_that_is_gone_is_no_error(self) -> None:
        plan = opened(0, 1)
        plan.set_chips(CHIPS[:1], at(1))
        plan.on_answer(1, at(1))
        plan.on_released(1)
        assert not plan.on_unsupported(1)
        assert not plan.on_no_answer(1, at(1), hung=True)


class TestRelease:
    def test_nothing_is_asked_until_the_return_and_then_everything_at_once(self) -> None:
        plan = opened(0, 1)
        plan.on_answer(0, at(0))
        plan.on_unsupported(1)
        plan.release()
        assert (plan.next_chip(10**9), plan.next_due_ms()) == (None, None)
        plan.resume(at(90))
        assert plan.next_due_ms() == 90_000
        assert plan.next_chip(90_000) == CHIPS[0]
        plan.on_opened(at(90))
        plan.on_answer(0, at(90))
        assert plan.next_chip(90_000) == CHIPS[1]  # another driver may have the function

    def test_a_chip_whose_call_still_hangs_stays_alone(self) -> None:
        plan = opened(0, 1)
        assert plan.on_no_answer(0, at(1), hung=True)
        plan.on_session_lost(at(1))
        plan.release()
        plan.resume(at(90))
        assert plan.next_chip(90_000) == CHIPS[1]
        plan.on_answer(1, at(90))
        assert plan.next_chip(90_000) is None
        plan.on_released(0)
        assert plan.next_chip(90_000) == CHIPS[0]
