"""The book of shadow mode, with a clock that moves only when told."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeagent.core.instant import Instant
from nodeagent.publish.shadow_ledger import (
    DAY_MS,
    MAX_KEYS,
    Day,
    News,
    ShadowLedger,
    day_as_json,
    day_from_json,
)
from nodeagent.render.difference import Comparison, Difference, Kind

SETTLE_MS = 10_000
SAME = Comparison(())


def at(ms: int) -> Instant:
    return Instant(ms, 1_760_000_000_000 + ms)


def differs(*fields: str, kind: Kind = Kind.UNHEALTHY, explanation: str = "") -> Comparison:
    return Comparison(tuple(Difference(kind, field, "listed", "-", explanation=explanation) for field in fields))


@pytest.fixture
def ledger() -> ShadowLedger:
    return ShadowLedger(SETTLE_MS, at(0))


def test_a_young_difference_does_not_count(ledger: ShadowLedger) -> None:
    assert ledger.look(differs("a"), at(0)) == News()
    assert ledger.wait_ms(at(0)) == SETTLE_MS
    assert ledger.look(differs("a"), at(9_999)).new == ()
    assert [each.settled for each in ledger.standing(at(9_999))] == [False]
    assert ledger.look(SAME, at(10_000)) == News(), "gone before it counted: nothing is told"
    assert (ledger.day.compared_ms, ledger.day.agreed_ms, ledger.day.keys) == (10_000, 10_000, set())


def test_it_counts_from_when_it_has_settled(ledger: ShadowLedger) -> None:
    ledger.look(differs("a"), at(0))
    assert [each.field for each in ledger.look(differs("a"), at(10_000)).new] == ["a"]
    assert ledger.look(differs("a"), at(15_000)) == News(spent_ms={Kind.UNHEALTHY: 5_000}), "told once"
    news = ledger.look(SAME, at(25_000))
    ((gone,), day) = (news.gone, ledger.day)
    assert (gone.difference.field, gone.age_ms) == ("a", 25_000)
    assert (day.compared_ms, day.agreed_ms, day.unexplained_ms) == (25_000, 10_000, 15_000)
    assert day.by_kind_ms == {Kind.UNHEALTHY: 15_000}
    assert (day.longest, day.longest_ms) == ("unhealthy a", 25_000)
    assert day.distinct() == {"unhealthy": 1}


def test_one_that_comes_back_settles_anew(ledger: ShadowLedger) -> None:
    ledger.look(differs("a"), at(0))
    ledger.look(SAME, at(9_000))
    ledger.look(differs("a"), at(9_500))
    assert ledger.look(differs("a"), at(19_499)).new == ()
    assert len(ledger.look(differs("a"), at(19_500)).new) == 1


def test_other_values_make_no_other_difference(ledger: ShadowLedger) -> None:
    ledger.look(Comparison((Difference(Kind.FAULT_LEVEL, "x", "SeparateNPU", "RestartNPU"),)), at(0))
    ledger.look(Comparison((Difference(Kind.FAULT_LEVEL, "x", "RestartNPU", "SeparateNPU"),)), at(10_000))
    (standing,) = ledger.standing(at(11_000))
    assert (standing.difference.theirs, standing.age_ms, standing.settled) == ("RestartNPU", 11_000, True)


def test_a_known_cause_is_no_unexplained_time(ledger: ShadowLedger) -> None:
    ledger.look(differs("a", explanation="a quirk"), at(0))
    ledger.look(differs("a", explanation="a quirk"), at(10_000))
    ledger.look(SAME, at(40_000))
    assert (ledger.day.agreed_ms, ledger.day.unexplained_ms) == (10_000, 0)


def test_one_that_loses_its_known_cause_is_told_again(ledger: ShadowLedger) -> None:
    """As a code that is on one side for longer than a once-only notice can be."""
    ledger.look(differs("a", explanation="a notice"), at(0))
    assert len(ledger.look(differs("a", explanation="a notice"), at(10_000)).new) == 1
    assert [each.explanation for each in ledger.look(differs("a"), at(20_000)).new] == [""]
    assert ledger.look(differs("a"), at(30_000)).new == ()
    assert ledger.day.distinct() == {"unhealthy": 1}


def test_unknown_is_neither_agreement_nor_difference(ledger: ShadowLedger) -> None:
    ledger.look(differs("old", "young"), at(0))
    ledger.look(differs("old"), at(10_000))
    ledger.look(differs("old", "young"), at(11_000))
    assert ledger.look(None, at(12_000)) == News(spent_ms={Kind.UNHEALTHY: 1_000})
    assert ledger.look(None, at(50_000)) == News(), "this time is booked nowhere"
    assert ledger.day.compared_ms == 12_000
    news = ledger.look(differs("young"), at(60_000))
    assert [each.difference.field for each in news.gone] == ["old"]
    assert ledger.look(differs("young"), at(69_999)).new == (), "its time began anew"
    assert len(ledger.look(differs("young"), at(70_000)).new) == 1


def test_a_day_ends_with_its_summary(ledger: ShadowLedger) -> None:
    ledger.look(SAME, at(0))
    ledger.look(differs("a"), at(1_000))
    ledger.look(differs("a"), at(11_000))
    assert ledger.wait_ms(at(11_000)) == DAY_MS - 11_000
    assert ledger.look(differs("a"), at(DAY_MS - 1)).summary is None
    summary = ledger.look(differs("a"), at(DAY_MS)).summary
    assert summary is not None
    assert (summary.elapsed_ms, summary.compared_ms, summary.agreed_ms) == (DAY_MS, DAY_MS, 11_000)
    assert ledger.day.keys == {"unhealthy a"}, "what still stands belongs to the new day too"
    assert ledger.day.compared_ms == 0


def test_a_day_survives_a_restart_and_time_goes_on_meanwhile(ledger: ShadowLedger) -> None:
    ledger.look(differs("a"), at(0))
    ledger.look(differs("a"), at(10_000))
    ledger.look(SAME, at(30_000))
    body = json.loads(json.dumps(day_as_json(ledger.day)))
    assert day_from_json(body, 0) == ledger.day
    assert day_from_json(body, 5_000).elapsed_ms == 35_000
    assert day_from_json(body, -5_000).elapsed_ms == 30_000, "a clock that was set back"
    later = ShadowLedger(SETTLE_MS, at(0), day_from_json(body, 10 * DAY_MS))
    summary = later.look(SAME, at(0)).summary
    assert summary is not None
    assert summary.compared_ms == 30_000, "nothing was compared while we did not run"


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {**day_as_json(Day()), "elapsed_ms": -1},
        {**day_as_json(Day()), "compared_ms": True},
        {**day_as_json(Day()), "by_kind_ms": {"nothing": 1}},
        {**day_as_json(Day()), "keys": 3},
    ],
)
def test_a_damaged_day_is_refused(body: dict[str, object]) -> None:
    with pytest.raises((ValueError, KeyError, TypeError, AttributeError)):
        day_from_json(body, 0)


def test_the_memory_of_a_day_is_bounded(ledger: ShadowLedger) -> None:
    for number in range(2 * MAX_KEYS):
        ledger.look(differs(str(number)), at(number * 20_000))
        ledger.look(differs(str(number)), at(number * 20_000 + 10_000))
        if number == MAX_KEYS:
            assert len(ledger.day.keys) == MAX_KEYS
    assert len(ledger.day.keys) <= MAX_KEYS


steps = st.lists(st.tuples(st.integers(0, 30_000), st.none() | st.sets(st.sampled_from("abc"))), max_size=30)


@given(steps)
def test_times_add_up(taken: list[tuple[int, set[str] | None]]) -> None:
    """Agreement and difference share what was compared; what is told as gone was told as new before."""
    ledger, now, standing = ShadowLedger(SETTLE_MS, at(0)), 0, set()
    differing = 0
    for pause_ms, fields in taken:
        now += pause_ms
        news = ledger.look(None if fields is None else differs(*fields), at(now))
        differing += news.spent_ms.get(Kind.UNHEALTHY, 0)
        gone = {each.difference.field for each in news.gone}
        assert gone <= standing
        standing = standing - gone | {each.field for each in news.new}
        assert standing == {each.difference.field for each in ledger.standing(at(now)) if each.settled}
    day = ledger.day
    assert day.elapsed_ms == now
    assert day.agreed_ms + day.unexplained_ms == day.compared_ms <= now
    assert day.unexplained_ms == differing
