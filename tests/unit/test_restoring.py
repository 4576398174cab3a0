"""What a start goes on from: the published object and the state file together."""

import threading
from collections.abc import Sequence
from typing import cast

import pytest
from kit.clock import FakeClock

from nodeagent.core.errors import ReadBackError
from nodeagent.core.instant import Instant
from nodeagent.core.observation import CarriedOver, Observation
from nodeagent.core.telemetry import NullTelemetry
from nodeagent.daemon import restoring
from nodeagent.daemon.health import Conditions
from nodeagent.daemon.restoring import Restoring, carried_over
from nodeagent.daemon.state_file import STALE_S, Memory, StateFile
from nodeagent.publish.read_back import ReadBack
from nodeagent.sources.configuration import ConfigSource

NOW = Instant(5_000, 1_760_000_000_000)
SAVED_S = 1_759_999_000
CHIPS = {3: {"anything": 1}}
NOTHING = ReadBack(CarriedOver((), NOW), 0, None, "")


def written(update_time_s: int) -> ReadBack:
    return ReadBack(CarriedOver((), NOW), update_time_s, {"ManuallySeparateNPU": "Ascend910-2"}, "")


@pytest.mark.parametrize(
    ("after_s", "newer", "chips"),
    [(-1, False, CHIPS), (0, False, CHIPS), (1, True, CHIPS), (STALE_S, True, CHIPS), (STALE_S + 1, False, {})],
)
def test_an_object_of_an_earlier_or_later_time_than_the_file(
    after_s: int, newer: bool, chips: dict[int, object]
) -> None:
    found = carried_over(written(SAVED_S + after_s), Memory(CHIPS, True, SAVED_S), NOW)
    assert (found.object_newer, found.memory, found.same_boot) == (newer, chips, bool(chips))
    assert found.manual == {2}


def test_no_object_is_not_one_that_names_nobody() -> None:
    assert carried_over(NOTHING, None, NOW).manual is None


class Layers:
    """Stands for the source of the configuration, which has read everything."""

    def wait_first(self, timeout_s: float) -> bool:
        return True

    wait_known = wait_first


class Rig:
    """Restoring from a target that gives one answer after the other."""

    def __init__(self, *answers: ReadBack | Exception) -> None:
        self.answers = list(answers)
        self.submitted: list[Observation] = []
        self.held: list[dict[str, str]] = []
        self.conditions = Conditions()
        self.stopping = threading.Event()
        self.restoring = Restoring(
            self.read,
            self.submit,
            StateFile(None, NullTelemetry()),
            cast(ConfigSource, Layers()),
            None,
            self.conditions,
            FakeClock(),
            NullTelemetry(),
        )

    def read(self) -> ReadBack:
        self.held.append(dict(self.conditions.all()))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def submit(self, observations: Sequence[Observation]) -> None:
        self.submitted += observations


def test_it_reads_until_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restoring, "FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(restoring, "UNFORESEEN_S", 0.01)
    away = ReadBackError("the server is away")
    rig = Rig(away, RuntimeError("nobody foresaw it"), away, away, away, written(7))
    rig.restoring.run(rig.stopping)
    (found,) = rig.submitted
    assert isinstance(found, CarriedOver)
    assert found.manual == {2}
    assert rig.held[-1] == {"restore": "the last published object cannot be read: the server is away"}
    assert not rig.conditions.all()


def test_a_stop_ends_it_with_nothing_submitted() -> None:
    rig = Rig()

    def refuse() -> ReadBack:
        rig.stopping.set()
        raise ReadBackError("the server is away")

    rig.restoring._read_back = refuse
    rig.restoring.run(rig.stopping)
    assert rig.submitted == []
