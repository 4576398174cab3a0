"""The log file for FaultDiag: the form that it reads (node-faults 18.2), when lines are written, what goes wrong."""

import errno
import logging
import os
import re
import stat
import threading
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from kit.board import CPU_1D, CPU_1F, PORT_17, BoardBench, seen, table_of
from kit.clock import FakeClock
from kit.daemon import wait_until

from nodeagent.core.alarms import Alarm
from nodeagent.core.instant import Instant
from nodeagent.daemon.fault_diag import KEPT_BACKUPS, REPEAT_MS, FaultDiagLog, line_of

LIMIT_S = 10.0
SAMPLE = (
    "[INFO]     2025/06/01 10:00:00.123456 305     ipmi:206    get fault event,"
    " [device type: CPU]-[device id: 1]-[error code: 0000001D]"
)
"""The line that FaultDiag accepts, from the sheet."""
TIME = re.compile(r"\d{4}/\d{2}/\d{2} \d{2}:\d{2}:\d{2}\.\d{6}")
CODE = re.compile(r"error code: ([0-9A-F]{8})\]")
KEY = re.compile(r"device type: ([^\]]+)\]")


class Bench:
    """A log, and a board whose polls it takes in the thread of the test."""

    def __init__(self, path: Path, max_bytes: int = 20 * 1024 * 1024) -> None:
        self.path = path
        self.clock = FakeClock()
        self.log = FaultDiagLog(path, self.clock, max_bytes)
        self.board = BoardBench(table_of())

    def poll(self, minutes: float, *alarms: Alarm) -> None:
        self.clock.advance_ms(round(minutes * 60_000))
        self.board.take(seen(0, *alarms))
        self.log._take(self.board.state)

    def codes(self) -> list[str]:
        return CODE.findall(self.path.read_text()) if self.path.exists() else []


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "noded" / "noded.log")


class TestForm:
    def test_it_is_the_line_of_the_sheet(self) -> None:
        local = datetime(2025, 6, 1, 10, 0, 0, 123456)
        at = Instant(0, int(local.timestamp() * 1000))
        assert line_of(CPU_1D, at, 305) == SAMPLE.replace("123456", "123000"), "we know milliseconds"

    @pytest.mark.parametrize("alarm", [CPU_1D, PORT_17, Alarm(0x62000006, 0, 2, 0x62, 4)])
    def test_what_faultdiag_needs_is_there(self, alarm: Alarm) -> None:
        line = line_of(alarm, Instant(0, 1_760_000_000_000), 1)
        assert "error" in line
        assert "code" in line
        assert len(TIME.findall(line)) == 1
        assert CODE.findall(line) == [alarm.text]
        assert KEY.findall(line) == [alarm.device_type]
        assert "\n" not in line


class TestWhen:
    def test_new_alarms_at_once_and_all_every_half_hour(self, bench: Bench) -> None:
        bench.poll(0, CPU_1D, PORT_17)
        assert bench.codes() == ["0000001D", "29000017"], "unlisted ones too"
        bench.poll(1, CPU_1D, PORT_17)
        assert len(bench.codes()) == 2
        bench.poll(1, CPU_1D, CPU_1F, PORT_17)
        assert bench.codes()[2:] == ["0000001F"]
        bench.poll(REPEAT_MS / 60_000 - 2, CPU_1D, CPU_1F, PORT_17)
        assert bench.codes()[3:] == ["0000001D", "29000017"]
        bench.poll(2, CPU_1D, CPU_1F, PORT_17)
        assert bench.codes()[5:] == ["0000001F"]

    def test_one_that_comes_back_is_new(self, bench: Bench) -> None:
        bench.poll(0, CPU_1D)
        bench.poll(1)
        bench.poll(1, CPU_1D)
        assert bench.codes() == ["0000001D"] * 2

    def test_a_healthy_board_makes_no_file(self, bench: Bench) -> None:
        bench.poll(0)
        assert not bench.path.parent.exists()


class TestFile:
    @pytest.mark.parametrize("umask", [0o000, 0o077])
    def test_modes(self, bench: Bench, umask: int) -> None:
        old = os.umask(umask)
        try:
            bench.poll(0, CPU_1D)
        finally:
            os.umask(old)
        assert stat.S_IMODE(bench.path.stat().st_mode) == 0o640
        assert stat.S_IMODE(bench.path.parent.stat().st_mode) == 0o750 & ~umask

    def test_it_is_rotated_by_size_under_the_names_of_noded(self, tmp_path: Path) -> None:
        line = len(line_of(CPU_1D, FakeClock().now(), os.getpid())) + 1
        bench = Bench(tmp_path / "noded.log", max_bytes=3 * line)
        (tmp_path / "noded-of-somebody-else.log").write_text("kept")
        for number in range(3 * (KEPT_BACKUPS + 3) + 1):
            bench.poll(31, CPU_1D)
            backups = sorted(tmp_path.glob("noded-2*.log"))
            assert len(backups) == min(KEPT_BACKUPS, number // 3)
        assert bench.codes() == ["0000001D"]
        for backup in backups:
            assert re.fullmatch(r"noded-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}\.log", backup.name)
            assert len(CODE.findall(backup.read_text())) == 3
            assert stat.S_IMODE(backup.stat().st_mode) == 0o400
        assert backups[-1].name > backups[0].name
        assert (tmp_path / "noded-of-somebody-else.log").exists()


class TestTrouble:
    def failing(self, bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
        """Three polls of a file that cannot be written: nothing is raised, one line is logged."""
        caplog.set_level(logging.INFO, "nodeagent.fault_diag")
        for _ in range(3):
            bench.poll(1, CPU_1D)
        assert len(caplog.records) == 1
        assert caplog.records[0].levelname == "WARNING"

    def test_a_bad_path_is_said_once_and_tried_again(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        (tmp_path / "file").write_text("")
        bench = Bench(tmp_path / "file" / "noded.log")
        self.failing(bench, caplog)
        (tmp_path / "file").unlink()
        bench.poll(1, CPU_1D)
        assert bench.codes() == ["0000001D"], "what could not be written is written now"
        assert caplog.records[-1].message.startswith("the file for FaultDiag is written again")

    def test_a_full_disk_leaves_no_half_line(
        self, bench: Bench, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bench.poll(0, PORT_17)
        before = bench.path.read_bytes()
        real, written = os.write, []

        def write(descriptor: int, content: bytes) -> int:
            if written:
                raise OSError(errno.ENOSPC, "No space left on device")
            written.append(real(descriptor, content[:20]))
            return 20

        with monkeypatch.context() as patched:
            patched.setattr(os, "write", write)
            bench.poll(1, CPU_1D, PORT_17)
            written.clear()
            bench.poll(1, CPU_1D, PORT_17)
        assert bench.path.read_bytes() == before
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        assert "No space left on device" in caplog.records[0].message
        bench.poll(1, CPU_1D, PORT_17)
        assert bench.codes() == ["29000017", "0000001D"]

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
    def test_a_device_is_not_written(self, caplog: pytest.LogCaptureFixture) -> None:
        self.failing(Bench(Path("/dev/full")), caplog)
        assert "not a regular file" in caplog.records[0].message

    def test_no_link_is_followed(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        (tmp_path / "target").write_text("precious")
        (tmp_path / "noded.log").symlink_to(tmp_path / "target")
        self.failing(Bench(tmp_path / "noded.log"), caplog)
        assert (tmp_path / "target").read_text() == "precious"

    def test_a_pipe_without_a_reader_does_not_stop_it(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        os.mkfifo(tmp_path / "noded.log")
        self.failing(Bench(tmp_path / "noded.log"), caplog)


class TestThread:
    @pytest.fixture
    def running(self, bench: Bench) -> Iterator[Bench]:
        thread = threading.Thread(target=bench.log.run, daemon=True)
        thread.start()
        yield bench
        bench.log.stop()
        thread.join(LIMIT_S)
        assert not thread.is_alive()

    def test_what_is_submitted_is_written(self, running: Bench) -> None:
        running.board.take(seen(0, CPU_1D))
        running.log.submit(running.board.state)
        wait_until(lambda: running.codes() == ["0000001D"], limit_s=LIMIT_S)

    def test_a_disk_that_hangs_stops_nobody(self, running: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        hangs, gate, real = threading.Event(), threading.Event(), os.write

        def write(descriptor: int, content: bytes) -> Any:
            hangs.set()
            assert gate.wait(LIMIT_S)
            return real(descriptor, content)

        monkeypatch.setattr(os, "write", write)
        running.board.take(seen(0, CPU_1D))
        running.log.submit(running.board.state)
        assert hangs.wait(LIMIT_S)
        for _ in range(100):
            running.log.submit(running.board.state)  # returns although nothing is written
        running.board.take(seen(60, CPU_1D, CPU_1F))
        running.log.submit(running.board.state)
        gate.set()
        wait_until(lambda: running.codes() == ["0000001D", "0000001F"], limit_s=LIMIT_S)
