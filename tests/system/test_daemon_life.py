"""Start, hang, kill, restart and end of the daemon, and targets that do not take what it writes."""

import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kit.daemon import (
    NODE,
    PROGRAM,
    Daemon,
    alive,
    children,
    clean_environment,
    command_line,
    daemon_on,
    daemon_settings,
    driver_hosts,
    hangs,
    node_file,
    wait_until,
)

from nodeagent.mock.client import MockControl
from nodeagent.mock.launch import MockServer

STOP_LIMIT_S = 10.0
"""Five times the two seconds that stopping may take."""
X = "80E18005"


def ends_cleanly(daemon: Daemon, number: signal.Signals = signal.SIGTERM) -> None:
    """Exit code 0 within the bound, and no process left."""
    family = children(daemon.process.pid)
    assert family
    daemon.process.send_signal(number)
    assert daemon.process.wait(STOP_LIMIT_S) == 0
    wait_until(lambda: not any(alive(pid, zombie=False) for pid in family), "no driver host is left")
    assert "Traceback" not in daemon.words()


class TestProducts:
    @pytest.mark.parametrize(
        ("profile", "device"),
        [
            ("310", "Ascend310-3"),
            ("310p", "Ascend310P-3"),
            ("910a", "Ascend910-7"),
            ("a3", "Ascend910-15"),
            ("950", "npu-7"),
        ],
    )
    def test_a_fault_reaches_the_object_on_every_product(self, tmp_path: Path, profile: str, device: str) -> None:
        with MockServer.start(profile) as server, server.control() as control, daemon_on(server, tmp_path) as daemon:
            first = daemon.wait(lambda p: p.faults == ())
            assert device in first.available
            control.raise_fault(int(device.rpartition("-")[2]), X)
            assert daemon.wait_for_faults({(device, X): "RestartNPU"}).unhealthy == (device,)
            ends_cleanly(daemon)


class TestStart:
    def test_nothing_is_written_before_the_first_complete_query(
        self, server: MockServer, control: MockControl, tmp_path: Path
    ) -> None:
        control.hang("dcmi_get_device_errorcode_v2", 1.5, chip=7, times=1)
        with daemon_on(server, tmp_path, driver__call_deadline_s=60) as daemon:
            wait_until(lambda: hangs(control), "chip 7 is being asked, after all others")
            assert not daemon.object_file.exists()
            parsed = daemon.wait(lambda _: True)
        assert len(parsed.available) == 8

    def test_a_chip_that_misses_its_deadline_does_not_delay_the_first_object_for_ever(
        self, server: MockServer, control: MockControl, tmp_path: Path
    ) -> None:
        control.hang("dcmi_get_device_errorcode_v2", 10_000, chip=2)
        control.raise_fault(5, X)
        with daemon_on(server, tmp_path, driver__call_deadline_s=0.3) as daemon:
            parsed = daemon.wait_for_faults({("Ascend910-5", X): "RestartNPU"})
            assert "Ascend910-2" in parsed.available  # never heard of: in no unhealthy list
            wait_until(lambda: "ChipDoesNotAnswer chip 2 (phy 2, card 2/0)" in daemon.words())
            ends_cleanly(daemon)

    def test_a_driver_that_is_not_ready_yet_is_waited_for_and_told_once(
        self, server: MockServer, control: MockControl, tmp_path: Path
    ) -> None:
        control.fail("dcmi_init", -8005, times=2)
        with daemon_on(server, tmp_path) as daemon:
            daemon.wait(lambda p: len(p.available) == 8)
            assert daemon.words().count("DriverHostLost") == 1
            assert "dcmi_init returned -8005" in daemon.words()
            assert "DriverReady 8 chips" in daemon.words()

    def test_a_slow_init_delays_the_first_object_and_not_the_end(self, tmp_path: Path) -> None:
        with (
            MockServer.start(node_file(tmp_path, profile="a2", init_delay_s=1000)) as slow,
            daemon_on(slow, tmp_path) as daemon,
        ):
            wait_until(lambda: driver_hosts(daemon.process.pid))
            wait_until(lambda: "starting node=test-node" in daemon.words())
            assert not daemon.object_file.exists()
            ends_cleanly(daemon)

    def test_the_library_is_missing_the_daemon_says_so_once_and_waits(self, server: MockServer, tmp_path: Path) -> None:
        library = tmp_path / "libdcmi.so"
        with daemon_on(server, tmp_path, driver__library=library) as daemon:
            wait_until(lambda: f"{library} does not exist" in daemon.words())
            shutil.copy(Path(str(daemon_settings(server, tmp_path)["driver.library"])), library)
            daemon.wait(lambda p: len(p.available) == 8)
            assert daemon.words().count("does not exist") == 1


class TestHang:
    def test_a_chip_that_hangs_for_ever_disturbs_nobody_and_keeps_its_faults(
        self, server: MockServer, control: MockControl, tmp_path: Path
    ) -> None:
        control.raise_fault(3, X)
        with daemon_on(server, tmp_path, driver__call_deadline_s=0.3) as daemon:
            daemon.wait_for_faults({("Ascend910-3", X): "RestartNPU"})
            control.hang("dcmi_get_device_health", 100_000, chip=3)
            wait_until(lambda: "ChipDoesNotAnswer chip 3" in daemon.words())
            control.raise_fault(6, "80C98008")
            expected = {("Ascend910-3", X): "RestartNPU", ("Ascend910-6", "80C98008"): "RestartRequest"}
            daemon.wait_for_faults(expected)
            control.clear_fault(6, "80C98008")
            daemon.wait_for_faults({("Ascend910-3", X): "RestartNPU"})
            assert daemon.words().count("ChipDoesNotAnswer") == 1
            wait_until(lambda: len(driver_hosts(daemon.process.pid)) == 1, "the host that hung is gone")
            ends_cleanly(daemon)

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_it_ends_while_a_call_hangs(
        self, server: MockServer, control: MockControl, tmp_path: Path, number: signal.Signals
    ) -> None:
        with daemon_on(server, tmp_path, driver__call_deadline_s=60) as daemon:
            daemon.wait(lambda _: True)
            control.hang("dcmi_get_device_health", 100_000, times=1)
            wait_until(lambda: hangs(control), "a call hangs")
            before = daemon.data()
            ends_cleanly(daemon, number)
            assert daemon.data() == before  # nothing is written or deleted at the end

    def test_it_ends_while_everything_is_quiet(self, server: MockServer, tmp_path: Path) -> None:
        with daemon_on(server, tmp_path) as daemon:
            daemon.wait(lambda _: True)
            ends_cleanly(daemon)
            assert "stopped cleanly" in daemon.words()


class TestRestart:
    def test_what_was_published_survives_a_kill(self, server: MockServer, control: MockControl, tmp_path: Path) -> None:
        for chip, code in ((1, X), (2, "80C98008"), (4, "80E18402")):
            control.raise_fault(chip, code)
        with daemon_on(server, tmp_path) as daemon:
            before = daemon.wait_for_faults(
                {
                    ("Ascend910-1", X): "RestartNPU",
                    ("Ascend910-2", "80C98008"): "RestartRequest",
                    ("Ascend910-4", "80E18402"): "SeparateNPU",
                }
            )
            family = children(daemon.process.pid)
            daemon.kill()
            wait_until(lambda: not any(alive(pid, zombie=False) for pid in family), "its driver host is gone")
            control.clear_fault(4, "80E18402")
            for function in ("dcmi_get_device_errorcode_v2", "dcmi_get_device_health"):
                control.fail(function, -8005, chip=2)
            daemon.start()
            after = daemon.wait(lambda p: p.update_time_s > before.update_time_s)
            # Chip 2 is silent: what was known of it stays. Chip 4 answers: its fault is over.
            assert {(f.device, f.code_text) for f in after.faults} == {("Ascend910-1", X), ("Ascend910-2", "80C98008")}
            times = {f.device: f.since_ms for f in before.faults}
            assert {f.device: f.since_ms for f in after.faults} == {
                name: times[name] for name in ("Ascend910-1", "Ascend910-2")
            }
            assert after.unhealthy == ("Ascend910-1", "Ascend910-2")
            wait_until(lambda: "ChipDoesNotAnswer chip 2" in daemon.words())
            for function in ("dcmi_get_device_errorcode_v2", "dcmi_get_device_health"):
                control.fail(function, 0, chip=2)
            control.clear_fault(2, "80C98008")
            daemon.wait_for_faults({("Ascend910-1", X): "RestartNPU"})

    def test_update_time_grows_over_quick_restarts(self, server: MockServer, tmp_path: Path) -> None:
        with daemon_on(server, tmp_path) as daemon:
            last = daemon.wait(lambda _: True).update_time_s
            for _ in range(3):
                daemon.kill()
                daemon.start()
                seen = last
                last = daemon.wait(lambda p: p.update_time_s > seen).update_time_s  # noqa: B023

    def test_a_damaged_object_is_replaced_and_told(
        self, server: MockServer, control: MockControl, tmp_path: Path
    ) -> None:
        control.raise_fault(1, X)
        path = tmp_path / "out" / "kube-system" / f"mindx-dl-deviceinfo-{NODE}.yaml"
        path.parent.mkdir(parents=True)
        path.write_bytes(b"\x00\xff no object")
        with daemon_on(server, tmp_path) as daemon:
            wait_until(lambda: "damaged_object_found" in daemon.words())
            daemon.wait_for_faults({("Ascend910-1", X): "RestartNPU"})

    def test_a_lost_message_is_repaired_in_both_directions(
        self, server: MockServer, control: MockControl, tmp_path: Path
    ) -> None:
        control.raise_fault(1, X)
        with daemon_on(server, tmp_path, chips__full_query_period_s=1) as daemon:
            daemon.wait_for_faults({("Ascend910-1", X): "RestartNPU"})
            control.raise_fault(2, X, event=False)
            control.clear_fault(1, X, event=False)
            daemon.wait_for_faults({("Ascend910-2", X): "RestartNPU"})


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A file system of 64 KiB of its own."""
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "none", folder], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("this process may not mount a file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


class TestTargetsThatRefuse:
    def test_a_full_disk_is_told_once_and_heals(self, server: MockServer, control: MockControl, tmp_path: Path) -> None:
        with small_disk(tmp_path / "disk") as disk, daemon_on(server, tmp_path, publish__directory=disk) as daemon:
            daemon.out = disk
            old = daemon.wait(lambda p: p.faults == ())
            ballast = disk / "ballast"
            _fill(ballast)
            control.raise_fault(1, X)
            wait_until(lambda: "PublishFailed" in daemon.words())
            assert daemon.published() == old  # the last good object is whole
            control.raise_fault(2, X)
            ballast.unlink()
            daemon.wait_for_faults({("Ascend910-1", X): "RestartNPU", ("Ascend910-2", X): "RestartNPU"})
            wait_until(lambda: "PublishRecovered" in daemon.words())
            words = daemon.words()
            assert words.count("PublishFailed") == words.count("PublishRecovered") == 1
            assert "the disk is full" in words
            assert not list(disk.rglob("*.tmp"))
            ends_cleanly(daemon)

    def test_a_disk_that_turns_read_only_is_told_once_and_heals(
        self, server: MockServer, control: MockControl, tmp_path: Path
    ) -> None:
        with small_disk(tmp_path / "disk") as disk, daemon_on(server, tmp_path, publish__directory=disk) as daemon:
            daemon.out = disk
            daemon.wait(lambda p: p.faults == ())
            subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
            control.raise_fault(1, X)
            wait_until(lambda: "PublishFailed" in daemon.words())
            assert "read-only" in daemon.words()
            subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
            daemon.wait_for_faults({("Ascend910-1", X): "RestartNPU"})
            assert daemon.words().count("PublishFailed") == 1

    def test_a_folder_that_is_a_file_is_told_once_and_heals(self, server: MockServer, tmp_path: Path) -> None:
        out = tmp_path / "out"
        out.write_text("in the way")
        with daemon_on(server, tmp_path) as daemon:
            wait_until(lambda: "PublishFailed" in daemon.words())
            assert "not a directory" in daemon.words().lower()
            out.unlink()
            daemon.wait(lambda p: len(p.available) == 8)
            assert daemon.words().count("PublishFailed") == 1


def _fill(path: Path) -> None:
    with path.open("wb", buffering=0) as stream:
        try:
            while True:
                stream.write(b"\0" * 1024)
        except OSError:
            return  # that was the purpose


class TestDryRun:
    def test_a_node_with_a_switch_publishes_its_zero_value(self, tmp_path: Path) -> None:
        """Golden example A8: an A3 whose switch library is not there, or not to be used."""
        golden = Path(__file__).parents[1] / "contract/data/device_info/A8.SwitchInfoCfg.txt"
        daemon = Daemon({"node.name": "dry-run-node"}, tmp_path / "nodeagent-dry-run", tmp_path / "log")
        with daemon.log.open("wb") as log:
            daemon.process = subprocess.Popen(
                [str(PROGRAM), "run", "--dry-run", "--node", "a3", "--set", "switches.enabled=false"],
                stderr=log,
                cwd=tmp_path,
                env=clean_environment(),
            )
        try:
            parsed = daemon.wait(lambda _: True)
            assert len(parsed.available) == 16
            assert (parsed.super_pod_id, parsed.server_index) == (1, 0)
            assert daemon.data()["SwitchInfoCfg"] == golden.read_text().rstrip("\n")
            family = children(daemon.process.pid)
            hosts = {word for child in family for word in command_line(child).split() if word.startswith("nodeagent-")}
            assert hosts <= {"nodeagent-dcmi", "nodeagent-dcmi-gateway"}
            assert "nodeagent-dcmi" in hosts
            (socket,) = {line.partition("SOCKET=")[2] for line in daemon.words().splitlines() if "SOCKET=" in line}
            with MockControl(socket) as control:
                control.raise_fault(15, X)
            daemon.wait_for_faults({("Ascend910-15", X): "RestartNPU"})
        finally:
            assert daemon.stop() == 0
        wait_until(lambda: not any(alive(pid, zombie=False) for pid in family))
        assert not Path(socket).exists()

    def test_other_nodes_have_no_switch_key(self, server: MockServer, tmp_path: Path) -> None:
        with daemon_on(server, tmp_path) as daemon:
            daemon.wait(lambda _: True)
            assert "SwitchInfoCfg" not in daemon.data()
