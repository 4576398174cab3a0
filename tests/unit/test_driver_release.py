"""The owner of a driver release: its end in the file and while running, on a clock that only the test moves."""

import argparse
import json
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kit.clock import FakeClock, PacedClock
from kit.daemon import wait_until

from nodeagent.cli.release import duration_s
from nodeagent.core.errors import NodeAgentError
from nodeagent.core.instant import Instant
from nodeagent.core.telemetry import Event, EventReason
from nodeagent.daemon.metrics import Registry
from nodeagent.daemon.release import FILE_NAME, DriverRelease, end_in_file, end_of

HOUR_S = 3600
NOW = Instant(5_000_000, 1_760_000_000_000)
NOW_S = NOW.wall_ms // 1000


class TestDecisions:
    def test_the_end_is_kept_on_both_clocks(self) -> None:
        end = end_of(1800, NOW)
        assert (end.wall_s, end.mono_ms) == (NOW_S + 1800, NOW.mono_ms + 1_800_000)
        assert end.left_ms(NOW) == 1_800_000

    def test_a_stepped_wall_clock_moves_nothing_while_we_run(self) -> None:
        end = end_of(1800, NOW)
        for step_ms in (6 * HOUR_S * 1000, -6 * HOUR_S * 1000):
            assert end.left_ms(Instant(NOW.mono_ms + 1_799_999, NOW.wall_ms + step_ms)) == 1
            assert end.left_ms(Instant(NOW.mono_ms + 1_800_000, NOW.wall_ms + step_ms)) == 0

    @pytest.mark.parametrize(
        ("ahead_s", "left_s"),
        [(1, 1), (60, 60), (4 * HOUR_S, 4 * HOUR_S), (4 * HOUR_S + 1, 4 * HOUR_S), (10**12, 4 * HOUR_S)],
    )
    def test_an_end_in_the_file_counts_for_four_hours_at_most(self, ahead_s: int, left_s: int) -> None:
        end = end_in_file({"version": 1, "until_s": NOW_S + ahead_s}, NOW)
        assert end is not None
        assert (end.wall_s, end.left_ms(NOW)) == (NOW_S + left_s, left_s * 1000)

    @pytest.mark.parametrize("ahead_s", [0, -1, -(10**12)])
    def test_an_end_that_has_passed(self, ahead_s: int) -> None:
        assert end_in_file({"version": 1, "until_s": NOW_S + ahead_s}, NOW) is None

    @pytest.mark.parametrize(
        "body",
        [None, [], "x", {}, {"version": 2, "until_s": NOW_S + 9}, {"version": 1}, {"version": 1, "until_s": True}]
        + [{"version": 1, "until_s": value} for value in ("soon", 1.5, None, [1])],
    )
    def test_content_that_is_not_ours(self, body: object) -> None:
        with pytest.raises(NodeAgentError):
            end_in_file(body, NOW)


class TestDuration:
    @pytest.mark.parametrize(
        ("text", "seconds"), [("60s", 60), ("90s", 90), ("30m", 1800), ("2h", 7200), ("4h", 14400), ("240m", 14400)]
    )
    def test_good(self, text: str, seconds: int) -> None:
        assert duration_s(text) == seconds

    @pytest.mark.parametrize(
        "text", ["", "30", "m", "1.5h", "-30m", "30M", "30 m", "59s", "0m", "5h", "241m", "9999999s", "١m", "30m\n"]
    )
    def test_bad(self, text: str) -> None:
        with pytest.raises(argparse.ArgumentTypeError):
            duration_s(text)


class Part:
    """Notes what it is told, and says whether it has let go."""

    def __init__(self, name: str, said: list[str]) -> None:
        self.name, self.said = name, said
        self.holds_driver = False

    def release(self) -> None:
        self.said.append(f"release {self.name}")

    def resume(self) -> None:
        self.said.append(f"resume {self.name}")


class Rig:
    """An owner with two parts, and everything it said. A second rig on the same folder is a restarted daemon."""

    def __init__(self, folder: Path | None, clock: FakeClock) -> None:
        self.said: list[str] = []
        self.events: list[Event] = []
        self.open: list[str] = []
        self.metrics = Registry()
        self.parts = [Part("chips", self.said), Part("links", self.said)]
        self.owner = DriverRelease(folder, self.parts, lambda: self.open, clock, self, self.metrics)

    def emit(self, event: Event) -> None:
        self.events.append(event)

    def reasons(self) -> list[EventReason]:
        return [e.reason for e in self.events]

    def gauges(self) -> tuple[float, float]:
        value = self.metrics.value
        return value("driver_released"), value("driver_release_end_timestamp_seconds")


RELEASED, RETURNED = ["release chips", "release links"], ["resume chips", "resume links"]


@contextmanager
def running(rig: Rig) -> Iterator[Rig]:
    thread = threading.Thread(target=rig.owner.run, daemon=True)
    thread.start()
    try:
        yield rig
    finally:
        rig.owner.stop()
        thread.join(10)
        assert not thread.is_alive()


@pytest.fixture
def clock() -> PacedClock:
    return PacedClock()


class TestOwner:
    def test_it_ends_by_itself(self, tmp_path: Path, clock: PacedClock) -> None:
        with running(Rig(tmp_path, clock)) as rig:
            rig.owner.begin(60)
            assert rig.said == RELEASED
            until_s = clock.now().wall_ms // 1000 + 60
            assert rig.gauges() == (1, until_s)
            assert rig.owner.until_s == until_s
            clock.advance_ms(59_999)
            clock.step_wall_ms(HOUR_S * 1000)
            for _ in range(3):
                rig.owner._wake.set()
            assert rig.owner.status()["released"]
            clock.advance_ms(1)
            wait_until(lambda: rig.said == RELEASED + RETURNED)
            wait_until(lambda: rig.reasons() == [EventReason.DRIVER_RELEASED, EventReason.DRIVER_RETURNED])
        assert [e.warning for e in rig.events] == [True, False]
        assert "until 2025-10-09 08:54:20 UTC" in rig.events[0].message
        assert rig.gauges() == (0, 0)
        assert not (tmp_path / FILE_NAME).exists()

    def test_a_second_release_moves_the_end_in_both_directions(self, tmp_path: Path, clock: PacedClock) -> None:
        with running(Rig(tmp_path, clock)) as rig:
            rig.owner.begin(600)
            clock.advance_ms(300_000)
            rig.owner.begin(600)
            clock.advance_ms(599_000)
            assert rig.owner.status()["left_s"] == 1
            rig.owner.begin(60)
            clock.advance_ms(60_000)
            wait_until(lambda: rig.said[-1:] == RETURNED[-1:])

    def test_an_operator_ends_it(self, tmp_path: Path, clock: PacedClock) -> None:
        rig = Rig(tmp_path, clock)
        assert rig.owner.answer({"do": "end"})["ended"] is False
        assert (rig.said, rig.events) == ([], [])
        rig.owner.answer({"do": "begin", "duration_s": 60})
        answer = rig.owner.answer({"do": "end"})
        assert answer == {
            "released": False, "until_s": None, "left_s": None, "open": [], "kept": False, "ended": True
        }  # fmt: skip
        assert rig.said == RELEASED + RETURNED
        assert "an operator ended the release" in rig.events[-1].message

    def test_what_is_still_open_is_named(self, tmp_path: Path, clock: PacedClock) -> None:
        rig = Rig(tmp_path, clock)
        rig.open.append("driver host with pid 77")
        assert rig.owner.status()["open"] == []  # nothing was asked to close
        rig.parts[1].holds_driver = True
        answer = rig.owner.answer({"do": "begin", "duration_s": 60})
        assert answer["open"] == ["a driver session that is being closed", "driver host with pid 77"]
        rig.parts[1].holds_driver = False
        rig.open.clear()
        assert rig.owner.status() == {
            "released": True, "until_s": clock.now().wall_ms // 1000 + 60, "left_s": 60, "open": [], "kept": True
        }  # fmt: skip

    @pytest.mark.parametrize("duration", [None, "60", 59, 4 * HOUR_S + 1, 1e9, -60, [60]])
    def test_a_wrong_duration_changes_nothing(self, tmp_path: Path, clock: PacedClock, duration: object) -> None:
        rig = Rig(tmp_path, clock)
        assert "60 to 14400 seconds" in rig.owner.answer({"do": "begin", "duration_s": duration})["refused"]
        assert (rig.said, rig.owner.until_s, list(tmp_path.iterdir())) == ([], None, [])


class TestRestart:
    def test_a_restarted_daemon_stays_released_for_the_rest_of_the_time(
        self, tmp_path: Path, clock: PacedClock
    ) -> None:
        Rig(tmp_path, clock).owner.begin(600)
        clock.advance_ms(500_000)
        rig = Rig(tmp_path, clock)
        rig.owner.restore()
        assert rig.said == RELEASED
        assert rig.owner.status()["left_s"] == 100
        with running(rig):
            clock.advance_ms(100_000)
            wait_until(lambda: rig.said == RELEASED + RETURNED)
        assert not (tmp_path / FILE_NAME).exists()

    def test_its_end_passed_meanwhile(self, tmp_path: Path, clock: PacedClock) -> None:
        Rig(tmp_path, clock).owner.begin(60)
        clock.advance_ms(60_000)
        rig = Rig(tmp_path, clock)
        rig.owner.restore()
        assert (rig.said, rig.events, list(tmp_path.iterdir())) == ([], [], [])

    def test_no_file(self, tmp_path: Path, clock: PacedClock, caplog: pytest.LogCaptureFixture) -> None:
        for folder in (tmp_path, tmp_path / "missing", None):
            rig = Rig(folder, clock)
            rig.owner.restore()
            assert rig.said == []
        assert caplog.records == []

    @pytest.mark.parametrize("content", [b"", b"{", b"[" * 4000, b"\xff\xfe", b"{}", b"x" * 5000, b'{"version": 1}'])
    def test_a_damaged_file_is_said_and_releases_nothing(
        self, tmp_path: Path, clock: PacedClock, caplog: pytest.LogCaptureFixture, content: bytes
    ) -> None:
        (tmp_path / FILE_NAME).write_bytes(content)
        rig = Rig(tmp_path, clock)
        with caplog.at_level(logging.WARNING):
            rig.owner.restore()
        assert rig.said == []
        (record,) = caplog.records
        assert "release file is not usable, the driver is not released" in record.getMessage()
        assert rig.metrics.value("state_file_errors_total") == 1
        rig.owner.begin(60)
        assert json.loads((tmp_path / FILE_NAME).read_text())["version"] == 1

    def test_an_end_too_far_ahead_is_cut_once_and_not_at_each_restart(self, tmp_path: Path, clock: PacedClock) -> None:
        (tmp_path / FILE_NAME).write_text(json.dumps({"version": 1, "until_s": 10**11}))
        Rig(tmp_path, clock).owner.restore()
        clock.advance_ms(HOUR_S * 1000)
        rig = Rig(tmp_path, clock)
        rig.owner.restore()
        assert rig.owner.status()["left_s"] == 3 * HOUR_S

    @pytest.mark.parametrize("name", [None, "a file"])
    def test_an_end_that_cannot_be_kept_is_told(self, tmp_path: Path, clock: PacedClock, name: str | None) -> None:
        (tmp_path / "a file").write_text("")
        rig = Rig(None if name is None else tmp_path / name, clock)
        rig.owner.begin(60)
        assert rig.said == RELEASED
        assert rig.owner.status()["kept"] is False
        assert rig.owner.finish("over")
        assert rig.said == RELEASED + RETURNED
