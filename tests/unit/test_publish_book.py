"""When an object is written (device-info 7, 14 C1 to C12): the book, with time as an argument."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from nodeagent.core.instant import Instant
from nodeagent.publish.book import Book, BookParameters

START = Instant(5_000_000, 1_760_000_000_000)
REFRESH_MS = 300_000
any_pace = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def book(draw: float = 0.5) -> Book:
    return Book(BookParameters(), lambda: draw)


def written(ledger: Book, now: Instant = START) -> Book:
    """The book after content "a" of generation 1 was taken at `now`."""
    assert ledger.desire(1, "a") is None
    ledger.begin(now)
    assert ledger.taken(now) == 1
    return ledger


def test_nothing_desired_nothing_due() -> None:
    assert book().wait_ms(START) is None


def test_first_content_is_written_at_once() -> None:
    ledger = book()
    ledger.desire(1, "a")
    assert ledger.wait_ms(START) == 0


def test_first_change_after_quiet_is_written_at_once() -> None:
    ledger = written(book())
    ledger.desire(2, "b")
    assert ledger.wait_ms(START.plus_ms(1000)) == 0


def test_c1_unchanged_content_of_4_min_59_s_is_not_written() -> None:
    assert written(book()).wait_ms(START.plus_ms(REFRESH_MS - 1000)) == 1000


def test_c2_unchanged_content_of_5_min_is_refreshed() -> None:
    ledger = written(book())
    later = START.plus_ms(REFRESH_MS)
    assert ledger.wait_ms(later) == 0
    assert ledger.begin(later) == 1760000300
    assert ledger.taken(later) == 1
    assert ledger.wait_ms(later) == REFRESH_MS


def test_c3_equal_fingerprint_is_acknowledged_without_a_write() -> None:
    ledger = written(book())
    assert ledger.desire(2, "a") == 2
    assert ledger.wait_ms(START.plus_ms(2000)) == REFRESH_MS - 2000


def test_c4_second_change_waits_for_the_rest_of_the_second() -> None:
    ledger = written(book())
    ledger.desire(2, "b")
    assert ledger.wait_ms(START.plus_ms(300)) == 700
    assert ledger.begin(START.plus_ms(1000)) > 1760000000


def test_c6_failed_content_is_not_remembered_and_is_tried_again() -> None:
    ledger = book()
    ledger.desire(1, "a")
    ledger.begin(START)
    delay_ms = ledger.failed(START)
    assert ledger.pending
    assert ledger.wait_ms(START) == delay_ms
    assert ledger.wait_ms(START.plus_ms(delay_ms)) == 0


def test_c10_update_time_goes_on_after_a_restart() -> None:
    ledger = book()
    ledger.resume(1760000500, acceptable=True)
    ledger.desire(1, "a")
    assert ledger.begin(START) == 1760000501


def test_c11_bad_object_in_the_cluster_is_written_over_twice() -> None:
    ledger = book()
    ledger.resume(1760000000, acceptable=False)
    ledger.desire(1, "a")
    first = ledger.begin(START)
    assert ledger.taken(START) is None, "ClusterD drops this write, so nothing is acknowledged"
    assert ledger.wait_ms(START) == 1001
    second = ledger.begin(START.plus_ms(1001))
    assert second > first
    assert ledger.taken(START.plus_ms(1001)) == 1
    assert ledger.wait_ms(START.plus_ms(1001)) == REFRESH_MS


def test_c11_bad_object_found_later_is_written_over_twice() -> None:
    ledger = written(book())
    ledger.resume(0, acceptable=False)
    later = START.plus_ms(10_000)
    ledger.begin(later)
    assert ledger.taken(later) is None
    assert ledger.wait_ms(later) == 1001


def test_more_attempts_may_be_owed_than_two() -> None:
    ledger = written(book())
    ledger.owe(3)
    ledger.owe(2)
    for owed in (3, 2, 1):
        assert ledger.owed == owed
        assert ledger.pending
        later = START.plus_ms(10_000 * (4 - owed))
        ledger.begin(later)
        assert (ledger.taken(later) is None) == (owed > 1)
    assert not ledger.pending


def test_a_content_may_have_a_refresh_of_its_own() -> None:
    ledger = book()
    ledger.desire(1, "a")
    ledger.begin(START)
    assert ledger.taken(START, 7000) == 1
    assert ledger.wait_ms(START) == 7000
    assert ledger.refresh_at_ms == START.mono_ms + 7000


def test_c12_an_attempt_under_way_makes_nothing_else_due() -> None:
    ledger = book()
    ledger.desire(1, "a")
    ledger.begin(START)
    ledger.desire(2, "b")
    assert ledger.wait_ms(START) is None


def test_latest_content_wins_while_an_attempt_is_under_way() -> None:
    ledger = book()
    ledger.desire(1, "a")
    ledger.begin(START)
    assert ledger.desire(2, "b") is None
    assert ledger.desire(3, "a") is None
    assert ledger.taken(START) == 3, "what was written is what generation 3 says"
    assert ledger.wait_ms(START) == REFRESH_MS


def test_old_content_is_not_acknowledged_while_another_is_on_its_way() -> None:
    ledger = written(book())
    ledger.desire(2, "b")
    ledger.begin(START.plus_ms(1000))
    assert ledger.desire(3, "a") is None
    assert ledger.taken(START.plus_ms(1000)) == 2
    assert ledger.pending


def test_acknowledges_only_what_was_written() -> None:
    ledger = book()
    ledger.desire(1, "a")
    ledger.begin(START)
    ledger.desire(2, "b")
    assert ledger.taken(START) == 1
    assert ledger.pending


def test_after_a_failure_the_old_content_is_not_taken_for_acknowledged() -> None:
    ledger = written(book())
    ledger.desire(2, "b")
    ledger.begin(START.plus_ms(1000))
    ledger.failed(START.plus_ms(1000))
    assert ledger.desire(3, "a") is None, "the server may have taken b"
    assert ledger.pending


def test_new_content_does_not_cut_the_back_off_short() -> None:
    ledger = book(draw=0.999)
    now = START
    ledger.desire(1, "a")
    for _ in range(5):
        ledger.begin(now)
        delay_ms = ledger.failed(now)
        now = now.plus_ms(delay_ms)
    ledger.desire(2, "b")
    assert ledger.wait_ms(now.plus_ms(-1000)) == 1000


@pytest.mark.parametrize("draw", [0.0, 0.5, 0.999])
def test_back_off_is_drawn_below_a_doubling_bound(draw: float) -> None:
    ledger = book(draw)
    now = START
    delays = []
    ledger.desire(1, "a")
    for _ in range(8):
        ledger.begin(now)
        delays.append(ledger.failed(now))
        now = now.plus_ms(delays[-1])
    bounds = [1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000]
    assert delays == [max(1000, int(draw * bound)) for bound in bounds]


def test_a_success_ends_the_row_of_failures() -> None:
    ledger = book(0.999)
    ledger.desire(1, "a")
    now = START
    for _ in range(5):
        ledger.begin(now)
        now = now.plus_ms(ledger.failed(now))
    ledger.begin(now)
    ledger.taken(now)
    assert ledger.failures == 0
    ledger.desire(2, "b")
    now = now.plus_ms(1000)
    ledger.begin(now)
    assert ledger.failed(now) == 1000


def test_refused_content_waits_for_the_next_view() -> None:
    ledger = written(book())
    ledger.desire(2, "b")
    ledger.begin(START.plus_ms(1000))
    ledger.refused()
    assert ledger.wait_ms(START.plus_ms(10**9)) is None
    ledger.desire(3, "b")
    assert ledger.wait_ms(START.plus_ms(1000)) == 0


def test_refused_content_leaves_the_acknowledged_one_acknowledged() -> None:
    ledger = written(book())
    ledger.desire(2, "b")
    ledger.begin(START.plus_ms(1000))
    ledger.refused()
    assert ledger.desire(3, "a") == 3


def test_attempts_come_one_at_a_time() -> None:
    ledger = book()
    with pytest.raises(ValueError, match="no attempt"):
        ledger.taken(START)
    ledger.desire(1, "a")
    ledger.begin(START)
    with pytest.raises(ValueError, match="no write is due"):
        ledger.begin(START)


@any_pace
@given(st.lists(st.integers(-(10**9), 10**9), min_size=1), st.integers(0, 2**40))
def test_update_time_increases_whatever_the_wall_clock_does(steps_ms: list[int], last_s: int) -> None:
    ledger = Book(BookParameters(min_distance_ms=20, refresh_ms=100), lambda: 0.0)
    ledger.resume(last_s, acceptable=True)
    ledger.desire(1, "a")
    now = START
    for step_ms in steps_ms:
        now = Instant(now.mono_ms + 100, now.wall_ms + step_ms)
        update_time_s = ledger.begin(now)
        assert update_time_s > last_s
        assert update_time_s >= now.wall_ms // 1000
        last_s = update_time_s
        ledger.taken(now)


class BookMachine(RuleBasedStateMachine):
    """Any order of views, time, successes and failures.

    Kept beside the book: `target`, the content the target surely has (None = not known), and every attempt's moment.
    """

    def __init__(self) -> None:
        super().__init__()
        self.book = Book(BookParameters(min_distance_ms=1000), lambda: 0.7)
        self.now = START
        self.generation = 0
        self.contents: dict[int, str] = {}
        self.target: str | None = None
        self.attempt: str | None = None
        self.last_end_ms: int | None = None

    @rule(content=st.sampled_from("abc"))
    def view(self, content: str) -> None:
        self.generation += 1
        self.contents[self.generation] = content
        self.acknowledged(self.book.desire(self.generation, content))

    @rule(milliseconds=st.integers(0, 5000))
    def time(self, milliseconds: int) -> None:
        self.now = self.now.plus_ms(milliseconds)

    @precondition(lambda self: self.attempt is None and self.book.wait_ms(self.now) == 0)
    @rule()
    def begin(self) -> None:
        assert self.last_end_ms is None or self.now.mono_ms - self.last_end_ms >= 1000
        self.book.begin(self.now)
        self.attempt = self.contents[self.generation]

    @precondition(lambda self: self.attempt is not None)
    @rule()
    def success(self) -> None:
        self.target, self.attempt = self.attempt, None
        self.last_end_ms = self.now.mono_ms
        self.acknowledged(self.book.taken(self.now))

    @precondition(lambda self: self.attempt is not None)
    @rule()
    def failure(self) -> None:
        self.target = self.attempt = None
        self.last_end_ms = self.now.mono_ms
        self.book.failed(self.now)

    def acknowledged(self, generation: int | None) -> None:
        if generation is not None:
            assert self.attempt is None, "acknowledged while something else may be on its way"
            assert self.contents[generation] == self.target, "acknowledged what the target does not have"

    @invariant()
    def latest_content_is_there_or_on_its_way(self) -> None:
        if self.generation and self.attempt is None:
            wait_ms = self.book.wait_ms(self.now)
            assert wait_ms is not None
            if self.contents[self.generation] != self.target:
                assert wait_ms <= 30_000


TestBookMachine = BookMachine.TestCase
TestBookMachine.settings = any_pace


def test_a_target_that_wants_to_be_left_alone_is_and_a_tenth_longer_at_random() -> None:
    ledger = book()
    ledger.desire(1, "a")
    ledger.begin(START)
    delay_ms = ledger.failed(START, 60_000)
    assert 60_000 <= delay_ms <= 66_000
    assert ledger.wait_ms(START) == delay_ms


def test_after_an_outage_one_refresh_comes_early_at_random_so_that_a_fleet_spreads_again() -> None:
    due = []
    for chance in (0.0, 0.5, 0.999):
        ledger = Book(BookParameters(), lambda chance=chance: chance)  # type: ignore[misc]
        ledger.desire(1, "a")
        ledger.begin(START)
        later = START.plus_ms(ledger.failed(START))
        ledger.begin(later)
        ledger.taken(later)
        wait_ms = ledger.wait_ms(later)
        assert wait_ms is not None
        due.append(wait_ms)
        refreshed = later.plus_ms(wait_ms)
        ledger.begin(refreshed)
        ledger.taken(refreshed)
        assert ledger.wait_ms(refreshed) == REFRESH_MS, "only once"
    assert due == [REFRESH_MS, REFRESH_MS * 3 // 4, int(REFRESH_MS * (1 - 0.999 / 2))]
