"""When the BMC is asked."""

from itertools import pairwise

import pytest

from nodeagent.sources.board_plan import BoardPlan, BoardTimes, Outcome


class Played:
    """A plan whose polls take no time and end as told."""

    def __init__(self) -> None:
        self.plan = BoardPlan(BoardTimes())
        self.now_ms = 0

    def poll(self, outcome: Outcome, took_s: float = 0) -> float:
        """Wait for the next poll and let it end so; second at which it began."""
        self.now_ms = begun_ms = max(self.now_ms, self.plan.poll_due_ms(self.now_ms))
        self.now_ms += round(took_s * 1000)
        self.plan.on_poll(outcome, begun_ms, self.now_ms)
        return begun_ms / 1000


@pytest.fixture
def played() -> Played:
    return Played()


def test_the_period_counts_from_begin_to_begin(played: Played) -> None:
    assert [played.poll(Outcome.GOOD, 12), played.poll(Outcome.GOOD, 40), played.poll(Outcome.GOOD)] == [0, 60, 120]


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.NO_ACCESS, Outcome.HUNG])
def test_a_failure_is_tried_again_at_the_next_period(played: Played, outcome: Outcome) -> None:
    assert [played.poll(outcome) for _ in range(6)] == [0, 60, 120, 180, 240, 300]


def test_a_poll_longer_than_the_period_costs_those_it_ran_into(played: Played) -> None:
    assert [played.poll(Outcome.GOOD, 130), played.poll(Outcome.GOOD, 60), played.poll(Outcome.GOOD)] == [0, 180, 300]


def test_t13_driver_missing_at_start(played: Played) -> None:
    """The device appears at 300: the first good poll begins by 360."""
    begun = [played.poll(Outcome.NO_ACCESS) for _ in range(5)]
    assert begun[-1] < 300 <= played.poll(Outcome.GOOD) <= 360


def test_refused_logins_come_in_growing_pauses(played: Played) -> None:
    begun = [played.poll(Outcome.REFUSED, 1) for _ in range(7)]
    assert [after - before for before, after in pairwise(begun)] == [61, 121, 301, 601, 601, 601]
    played.poll(Outcome.GOOD)
    begun = [played.poll(Outcome.REFUSED), played.poll(Outcome.REFUSED)]
    assert begun[1] - begun[0] == 60, "after a good login the pauses are short again"


def test_what_is_not_supported_is_asked_every_ten_minutes(played: Played) -> None:
    assert [played.poll(Outcome.NOT_SUPPORTED) for _ in range(3)] == [0, 600, 1200]


def test_a_bmc_that_once_answered_is_not_believed_at_once(played: Played) -> None:
    """It may be in the middle of an update."""
    played.poll(Outcome.GOOD)
    assert [played.poll(Outcome.NOT_SUPPORTED) for _ in range(4)] == [60, 120, 180, 780]


def test_the_serial_number_comes_after_the_first_good_poll(played: Played) -> None:
    plan = played.plan
    played.poll(Outcome.FAILED)
    assert plan.serial_due_ms() is None
    played.poll(Outcome.GOOD)
    assert plan.serial_due_ms() == 60_000
    plan.on_serial(known=False, now_ms=61_000)
    assert plan.serial_due_ms() == 661_000
    played.poll(Outcome.FAILED)
    assert plan.serial_due_ms() is None, "not while the BMC is silent"
    played.poll(Outcome.GOOD)
    assert plan.serial_due_ms() == 661_000
    plan.on_serial(known=True, now_ms=661_000)
    assert plan.serial_due_ms() is None
