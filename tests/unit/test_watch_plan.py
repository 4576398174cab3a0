"""What a watch does next (decision 26)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeagent.cluster.watch_plan import Action, Next, WatchPlan

LONG_MS, SHORT_MS = 60_000, 100


def plan(chance: float = 1.0) -> WatchPlan:
    return WatchPlan(lambda: chance)


def listed(version: str = "7") -> WatchPlan:
    made = plan()
    made.listed(version)
    return made


def test_it_begins_with_a_list_and_watches_from_its_version() -> None:
    made = plan()
    assert made.next() == Next(Action.LIST, 0)
    made.listed("7")
    assert made.next() == Next(Action.WATCH, 0, "7")


def test_a_proper_end_goes_on_from_the_last_version_without_a_list() -> None:
    made = listed()
    made.event("9")
    made.event("")
    made.ended(LONG_MS)
    assert made.next() == Next(Action.WATCH, 0, "9")


@pytest.mark.parametrize("how", ["broke", "gone"])
def test_only_a_broken_stream_and_410_list_anew(how: str) -> None:
    made = listed()
    getattr(made, how)(LONG_MS)
    assert made.next().action is Action.LIST
    assert 0 < made.next().delay_ms <= 2000, "a fleet does not come back in one moment"


def test_ends_in_quick_succession_are_no_hot_loop() -> None:
    """Lesson 27."""
    made = listed()
    delays = []
    for _ in range(9):
        made.ended(SHORT_MS)
        delays.append(made.next().delay_ms)
    assert delays == [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000, 30_000]
    made.ended(LONG_MS)
    assert made.next().delay_ms == 0


def test_410_again_and_again_is_no_hot_loop() -> None:
    made = plan()
    for _ in range(8):
        made.listed("7")
        made.gone(0)
    assert made.next().delay_ms == 30_000


def test_a_watch_that_breaks_at_once_after_each_list_backs_off() -> None:
    made = plan()
    for _ in range(8):
        made.listed("7")
        made.broke(SHORT_MS)
    assert made.next() == Next(Action.LIST, 30_000)


def test_a_refused_watch_is_tried_again_from_where_it_was() -> None:
    made = listed()
    made.failed(500, 0)
    assert made.next() == Next(Action.WATCH, 1000, "7")


def test_a_missing_right_is_asked_for_rarely_and_retry_after_is_obeyed() -> None:
    made = plan()
    for _ in range(20):
        made.failed(403, 0)
    assert made.next().delay_ms == 300_000
    made = plan(0.0)
    made.failed(429, 7)
    assert made.next().delay_ms == 7000
    made = plan(0.5)
    made.failed(429, 100)
    assert made.next().delay_ms == 105_000, "a tenth at random: the server told every node the same"


@given(
    st.lists(st.sampled_from(["ended", "broke", "gone", "failed"]), max_size=30),
    st.floats(0, 0.999),
    st.sampled_from([0, SHORT_MS, LONG_MS]),
)
def test_pauses_are_never_longer_than_the_bound(steps: list[str], chance: float, lived_ms: int) -> None:
    made = WatchPlan(lambda: chance)
    for step in steps:
        if step == "failed":
            made.failed(503, 0)
        else:
            made.listed("1")
            getattr(made, step)(lived_ms)
        assert 0 <= made.next().delay_ms <= 30_000
        assert (made.next().action is Action.LIST) == (made.next().version == "")
