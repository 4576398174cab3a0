"""A driver upgrade as an operator does it: `nodeagent release` and a running daemon on the mock library."""

import json
import subprocess
import time
from pathlib import Path

from kit.daemon import Daemon, children, command_line, daemon_on, driver_hosts, run_command, wait_until

from nodeagent.mock.client import MockControl
from nodeagent.mock.launch import MockServer

X, Y = "80E18005", "80C98008"
CODES = "dcmi_get_device_errorcode_v2"


def release(daemon: Daemon, *words: str) -> subprocess.CompletedProcess[str]:
    return run_command("release", "--set", f"daemon.socket={daemon.settings['daemon.socket']}", *words)


def mapping(daemon: Daemon) -> list[int]:
    """Processes of the daemon that have the library mapped."""
    found = []
    for pid in (daemon.process.pid, *children(daemon.process.pid)):
        try:
            text = Path(f"/proc/{pid}/maps").read_text()
        except OSError:
            continue  # it ended meanwhile
        if "libdcmi.so" in text:
            found.append(pid)
    return found


def answering(daemon: Daemon) -> None:
    """Wait until the daemon can be asked."""
    wait_until(lambda: release(daemon, "--status").returncode == 0, "the daemon answers")


def test_an_upgrade_from_release_to_return(server: MockServer, control: MockControl, tmp_path: Path) -> None:
    control.raise_fault(1, X)
    with daemon_on(server, tmp_path, publish__refresh_period_s=10) as daemon:
        held = daemon.wait_for_faults({("Ascend910-1", X): "RestartNPU"})
        wait_until(lambda: mapping(daemon))
        done = release(daemon, "--for", "30m")
        assert (done.returncode, done.stderr) == (0, "")
        assert "29 min 5" in done.stdout
        assert mapping(daemon) == []
        assert [c for c in children(daemon.process.pid) if "nodeagent-dcmi" in command_line(c)] == []

        # The driver goes and comes back, and with it everything that one might take for a fault.
        control.clear_fault(1, X)
        control.raise_fault(2, Y)
        control.drop_card(5)
        control.reset(6)
        why = run_command("why", "1", "--set", f"daemon.socket={daemon.settings['daemon.socket']}")
        assert why.returncode == 1
        assert "the driver is released until" in why.stdout
        written = daemon.wait(lambda p: p.update_time_s > held.update_time_s, "a refresh shows a live writer")
        assert (written.faults, written.unhealthy, written.available) == (held.faults, held.unhealthy, held.available)
        control.return_card(5)

        assert release(daemon, "--for", "1h").stdout.startswith("The driver is released until")
        status = json.loads(release(daemon, "--status", "--output", "json").stdout)
        assert 3500 < status["left_s"] <= 3600
        done = release(daemon, "--end")
        assert done.returncode == 0
        assert "opens the driver again" in done.stdout
        daemon.wait_for_faults({("Ascend910-2", Y): "RestartRequest"})
        assert "nothing to end" in release(daemon, "--end").stdout
        words = daemon.words()
        assert (words.count("DriverReleased"), words.count("DriverReturned")) == (2, 1)
        for never in ("ChipDoesNotAnswer", "DriverHostLost", "40F84E00", "Traceback", "GatewayUnknown"):
            assert never not in words
        control.raise_fault(7, X)  # events flow again
        daemon.wait_for_faults({("Ascend910-2", Y): "RestartRequest", ("Ascend910-7", X): "RestartNPU"})


def test_a_daemon_that_is_killed_meanwhile_stays_released(
    server: MockServer, control: MockControl, tmp_path: Path
) -> None:
    control.raise_fault(1, X)
    with daemon_on(server, tmp_path) as daemon:
        daemon.wait_for_faults({("Ascend910-1", X): "RestartNPU"})
        assert release(daemon).returncode == 0
        daemon.kill()
        control.clear_fault(1, X)
        before = daemon.object_file.read_bytes()
        control.log_calls(True)
        daemon.start()
        answering(daemon)
        status = json.loads(release(daemon, "--status", "--output", "json").stdout)
        assert (status["released"], status["open"]) == (True, [])
        why = run_command("why", "1", "--set", f"daemon.socket={daemon.settings['daemon.socket']}")
        assert why.returncode == 2
        assert "no chip was seen yet, the driver is released until" in why.stderr
        time.sleep(1.0)  # twice the period of health queries
        # Node faults go on: the BMC has nothing to do with the driver.
        assert [call for call in control.calls() if not call["function"].startswith("ipmi")] == []
        assert driver_hosts(daemon.process.pid) == []
        assert daemon.object_file.read_bytes() == before
        assert release(daemon, "--end").returncode == 0
        daemon.wait_for_faults({})


def test_it_returns_by_itself(server: MockServer, tmp_path: Path) -> None:
    state = tmp_path / "out" / ".state"
    state.mkdir(parents=True)
    until_s = int(time.time()) + 4
    (state / "release.json").write_text(json.dumps({"version": 1, "until_s": until_s}))
    with daemon_on(server, tmp_path) as daemon:
        wait_until(lambda: "DriverReleased as before this start, until" in daemon.words())
        daemon.wait(lambda p: len(p.available) == 8)
        assert time.time() >= until_s
        assert "DriverReturned its time is over" in daemon.words()
        assert not (state / "release.json").exists()


def test_a_call_that_hangs_does_not_delay_it(server: MockServer, control: MockControl, tmp_path: Path) -> None:
    with daemon_on(server, tmp_path, driver__call_deadline_s=60) as daemon:
        daemon.wait(lambda p: len(p.available) == 8)
        control.hang("dcmi_get_device_health", 100_000, times=1)
        wait_until(lambda: not any(rule["kind"] == "hang" for rule in control.state()["rules"]), "a call hangs")
        done = release(daemon)
        assert done.returncode == 0, done.stdout
        assert mapping(daemon) == []
        control.raise_fault(3, X)
        assert release(daemon, "--end").returncode == 0
        daemon.wait_for_faults({("Ascend910-3", X): "RestartNPU"})
        assert "ChipDoesNotAnswer" not in daemon.words()


def test_a_chip_left_alone_is_no_obstacle(server: MockServer, control: MockControl, tmp_path: Path) -> None:
    control.hang(CODES, 100_000, chip=4)
    with daemon_on(server, tmp_path, driver__call_deadline_s=0.3) as daemon:
        wait_until(lambda: "ChipDoesNotAnswer chip 4" in daemon.words())
        daemon.wait(lambda p: len(p.available) == 8)
        assert release(daemon).returncode == 0
        assert mapping(daemon) == []
        control.hang(CODES, 0, chip=4)
        control.raise_fault(4, X)
        assert release(daemon, "--end").returncode == 0
        daemon.wait_for_faults({("Ascend910-4", X): "RestartNPU"})  # at once, not after 30 s of quarantine


def test_a_damaged_file_releases_nothing(server: MockServer, tmp_path: Path) -> None:
    state = tmp_path / "out" / ".state"
    state.mkdir(parents=True)
    (state / "release.json").write_bytes(b"\x00{")
    with daemon_on(server, tmp_path) as daemon:
        daemon.wait(lambda p: len(p.available) == 8)
        assert "release file is not usable, the driver is not released" in daemon.words()
        assert "The driver is not released." in release(daemon, "--status").stdout
