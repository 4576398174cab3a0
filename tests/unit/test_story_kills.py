"""A kill at any point of the story ends in the same ConfigMap (decision 17)."""

import random

import pytest
from kit.story import END_S, LIFT_S, PERIOD_S, Run, happenings

from nodeagent.render.operator_fields import manual_ids

UNINTERRUPTED = Run().play()
POINTS = [round(END_S * (n + 0.5) / 50, 3) for n in range(50)]


def test_the_story_itself() -> None:
    before_lift = Run()
    before_lift.play()
    assert manual_ids(before_lift.published) == frozenset()
    assert any(h.at_s == LIFT_S for h in happenings())
    assert "80C98008" in before_lift.published["DeviceInfoCfg"]


def test_the_fifth_outage_isolates() -> None:
    run = Run()
    seen = []
    step = run._step

    def spy(moment, batch, write=True):  # type: ignore[no-untyped-def]
        step(moment, batch, write)
        seen.append((moment, manual_ids(run.published)))

    run._step = spy  # type: ignore[method-assign]
    run.play()
    isolated = [moment for moment, ids in seen if ids == {0}]
    assert isolated[0] == 4 * PERIOD_S + 30.001
    assert isolated[-1] < LIFT_S


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("late_write", [False, True], ids=["written", "not written"])
def test_a_kill_at_any_of_50_points(point: float, late_write: bool) -> None:
    assert Run([point], late_write).play() == UNINTERRUPTED


@pytest.mark.parametrize("seed", range(10))
def test_several_kills(seed: int) -> None:
    draw = random.Random(seed)
    kills = [round(draw.uniform(1, END_S - 10), 3) for _ in range(12)]
    assert Run(kills, bool(seed % 2)).play() == UNINTERRUPTED


@pytest.mark.parametrize("offset_s", [-0.5, 0.0, 0.001, 0.5])
def test_kills_around_everything_that_happens(offset_s: float) -> None:
    """The edges are the dangerous moments: just before, at and just after each event and each limit."""
    edges = [h.at_s for h in happenings()] + [h.at_s + limit for h in happenings() for limit in (20, 60)]
    for edge in edges:
        assert Run([max(0.5, edge + offset_s)]).play() == UNINTERRUPTED, edge
