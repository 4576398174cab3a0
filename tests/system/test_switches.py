"""The daemon on an A3 node with switches: two libraries in two processes, neither of which disturbs the other."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from kit.daemon import Daemon, children, daemon_on, driver_hosts, run_command, switch_hosts, wait_until

from nodeagent.mock.client import MockControl
from nodeagent.mock.launch import MockServer

X = "80E18005"
PORT_DOWN = "0x08520003,na,npu"


@pytest.fixture
def mock_node() -> str:
    return "a3"


def the_only(hosts: Callable[[int], list[int]], daemon: Daemon) -> int:
    """The one process of its kind."""
    found = wait_until(lambda: hosts(daemon.process.pid))
    assert len(found) == 1
    return int(found[0])


def delivered(control: MockControl) -> int:
    """Switch events that reached the handler of the daemon's present host."""
    return sum(ring["delivered"] for ring in control.state()["switch_rings"])


def subscribed(control: MockControl) -> None:
    """Wait until the daemon hears of switches: a notice reaches a handler."""
    wait_until(lambda: any(e.callbacks for e in control.switch_notice(4, "0x00f1ff06,155911")))


def test_each_library_may_die_without_the_other(server: MockServer, control: MockControl, tmp_path: Path) -> None:
    with daemon_on(server, tmp_path) as daemon:
        daemon.wait_for_faults({})
        subscribed(control)
        chips, switches = the_only(driver_hosts, daemon), the_only(switch_hosts, daemon)
        control.crash("lq_dcmi_get_fault_info")
        os.kill(switches, signal.SIGSEGV)  # its successor crashes in its first query
        control.raise_fault(15, X)
        daemon.wait_for_faults({("Ascend910-15", X): "RestartNPU"})
        assert driver_hosts(daemon.process.pid) == [chips]
        wait_until(lambda: switch_hosts(daemon.process.pid) not in ([], [switches]))
        subscribed(control)

        switches = the_only(switch_hosts, daemon)
        os.kill(chips, signal.SIGSEGV)
        wait_until(lambda: driver_hosts(daemon.process.pid) not in ([], [chips]))
        before = delivered(control)
        control.raise_switch_fault(2, PORT_DOWN, port=11)
        assert delivered(control) == before + 1
        control.clear_fault(15, X)
        daemon.wait_for_faults({})
        assert switch_hosts(daemon.process.pid) == [switches]
    assert "unforeseen" not in daemon.words()


def test_a_missing_library_is_one_warning_and_nothing_else(
    server: MockServer, control: MockControl, tmp_path: Path
) -> None:
    with daemon_on(server, tmp_path, switches__library=tmp_path / "liblingqu-dcmi.so") as daemon:
        control.raise_fault(0, X)
        daemon.wait_for_faults({("Ascend910-0", X): "RestartNPU"})
        wait_until(lambda: "SwitchLibraryMissing" in daemon.words())
        control.clear_fault(0, X)
        daemon.wait_for_faults({})
        wait_until(lambda: switch_hosts(daemon.process.pid) == [])
        warnings = [line for line in daemon.words().splitlines() if "liblingqu" in line]
        assert len(warnings) == 1
        assert "does not exist or is no file" in warnings[0]


def test_without_an_a3_no_process_is_spent_on_it(tmp_path: Path) -> None:
    with MockServer.start("a2") as server, daemon_on(server, tmp_path, http__port=0) as daemon:
        daemon.wait_for_faults({})
        assert switch_hosts(daemon.process.pid) == []
        assert "liblingqu" not in daemon.words()


def test_a_release_lets_go_of_the_switch_library_too(server: MockServer, control: MockControl, tmp_path: Path) -> None:
    with daemon_on(server, tmp_path) as daemon:
        daemon.wait_for_faults({})
        subscribed(control)
        flag = ("--set", f"daemon.socket={daemon.settings['daemon.socket']}")
        assert run_command("release", "--for", "30m", *flag).returncode == 0
        wait_until(lambda: children(daemon.process.pid) == [])
        assert control.state()["switch_rings"] == []
        assert run_command("release", "--end", *flag).returncode == 0
        subscribed(control)
        the_only(switch_hosts, daemon)


def test_a_dry_run_finds_the_pretended_library(tmp_path: Path, server: MockServer, control: MockControl) -> None:
    with daemon_on(server, tmp_path, dry_run=True, switches__library="") as daemon:
        daemon.wait_for_faults({})
        subscribed(control)
        assert "switch library is open" in daemon.words()
