"""What the daemon publishes of the switches of an A3 node, whatever happens to it, to the library, or to its hosts."""

import contextlib
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kit.daemon import (
    Daemon,
    children,
    compile_library,
    daemon_on,
    daemon_settings,
    driver_hosts,
    node_file,
    run_command,
    switch_hosts,
    wait_until,
)
from kit.switch_library import INIT, PARTS, QUERY, SUBSCRIBE, library_text, without

from nodeagent.core.errors import ReadBackError
from nodeagent.mock.client import MockControl
from nodeagent.mock.launch import MockServer, library_dir
from nodeagent.render.reading import parse_device_info

X = "80E18005"
B1 = '{"FaultCode":[],"FaultLevel":"","UpdateTime":0,"NodeStatus":"Healthy","FaultTimeAndLevelMap":{}}'
ZERO = '{"FaultCode":null,"FaultLevel":"","UpdateTime":0,"NodeStatus":"","FaultTimeAndLevelMap":null}'
B3 = (
    r'{"FaultCode":["{\"EventType\":139591683,\"AssembledFaultCode\":\"[0x08520003,na,npu,na]\",\"PeerPortDevice\":1,'
    r"\"PeerPortId\":5,\"SwitchChipId\":2,\"SwitchPortId\":11,\"Severity\":2,\"Assertion\":1,"
    r'\"AlarmRaisedTime\":1759999990123}"],"FaultLevel":"Separate","UpdateTime":0,"NodeStatus":"UnHealthy",'
    r'"FaultTimeAndLevelMap":{"[0x08520003,na,npu,na]_2_11":{"fault_time":1759999990123,"fault_level":"Separate"}}}'
)
"""Texts of lingqu-switch-faults 11 with `UpdateTime` 0, which is the only part that no example can know."""
PORT_DOWN, LANES, NOTICE = "0x08520003,na,npu", "0x00f10509,132332,npu", "0x00f1ff06,155911"
PORT_DOWN_KEY = "[0x08520003,na,npu,na]_2_11"


@pytest.fixture
def server() -> Iterator[MockServer]:
    with MockServer.start("a3") as server:
        yield server


@pytest.fixture
def control(server: MockServer) -> Iterator[MockControl]:
    with server.control() as control:
        yield control


def raise_b3(control: MockControl) -> None:
    control.raise_switch_fault(2, PORT_DOWN, port=11, peer_id=5, severity="major", time_ms=1759999990123)


def info(daemon: Daemon) -> dict[str, Any]:
    """`SwitchInfoCfg` as published; empty while there is none."""
    found: dict[str, Any] = json.loads(daemon.data().get("SwitchInfoCfg", "{}"))
    return found


def timeless(daemon: Daemon) -> str:
    """The text of `SwitchInfoCfg` with `UpdateTime` 0."""
    text = daemon.data().get("SwitchInfoCfg", "")
    return text.replace(f'"UpdateTime":{info(daemon)["UpdateTime"]}', '"UpdateTime":0') if text else ""


def keys(daemon: Daemon) -> set[str]:
    """Keys of the faults that are published."""
    return set(info(daemon).get("FaultTimeAndLevelMap") or {})


def lines(daemon: Daemon, *words: str) -> list[str]:
    """Lines of the log that have all these words."""
    return [line for line in daemon.words().splitlines() if all(word in line for word in words)]


def wait_for(daemon: Daemon, text: str) -> None:
    """Wait for an exact `SwitchInfoCfg`, `UpdateTime` apart."""
    try:
        wait_until(lambda: timeless(daemon) == text, "SwitchInfoCfg")
    except AssertionError:
        assert timeless(daemon) == text
        raise


def test_a_fault_that_somebody_else_injects_comes_and_goes(server: MockServer, tmp_path: Path) -> None:
    with daemon_on(server, tmp_path) as daemon:
        wait_for(daemon, B1)
        environ = {"NODEAGENT_MOCK_SOCKET": server.socket}
        place = ("--chip", "2", "--code", PORT_DOWN, "--port", "11", "--peer-id", "5")
        more = ("--severity", "major", "--time-ms", "1759999990123")
        assert run_command("mock", "switch", "raise", *place, *more, environ=environ).returncode == 0
        wait_for(daemon, B3)
        assert run_command("mock", "switch", "clear", *place, environ=environ).returncode == 0
        wait_for(daemon, B1)
        assert daemon.published().faults == ()  # type: ignore[union-attr]


@pytest.mark.parametrize("victim", ["nobody", "switches", "chips"])
def test_a_host_that_is_killed_changes_nothing(
    server: MockServer, control: MockControl, tmp_path: Path, victim: str
) -> None:
    """The same story each time, and the killing comes right before the second fault of each kind."""
    hosts: dict[str, Callable[[int], list[int]]] = {"switches": switch_hosts, "chips": driver_hosts}
    with daemon_on(server, tmp_path) as daemon:
        wait_for(daemon, B1)
        raise_b3(control)
        control.raise_fault(3, X)
        wait_for(daemon, B3)
        daemon.wait_for_faults({("Ascend910-3", X): "RestartNPU"})
        before = {name: find(daemon.process.pid) for name, find in hosts.items()}
        if victim in hosts:
            os.kill(before[victim][0], signal.SIGKILL)
        control.raise_switch_fault(0, LANES, port=8, peer_id=3, time_ms=1759999991123)
        control.raise_fault(4, X)
        daemon.wait_for_faults({(f"Ascend910-{chip}", X): "RestartNPU" for chip in (3, 4)})
        wait_until(lambda: keys(daemon) == {PORT_DOWN_KEY, "[0x00f10509,132332,npu,na]_0_8"})
        assert (info(daemon)["FaultLevel"], info(daemon)["NodeStatus"]) == ("Separate", "UnHealthy")
        control.clear_switch_fault(0, LANES, port=8, peer_id=3)
        control.clear_fault(4, X)
        wait_for(daemon, B3)
        daemon.wait_for_faults({("Ascend910-3", X): "RestartNPU"})
        for name, find in hosts.items():
            now = wait_until(lambda find=find: find(daemon.process.pid))
            assert (now == before[name]) is (name != victim), name
    assert "unforeseen" not in daemon.words()


@pytest.mark.parametrize("memory", ["state file", "object"])
def test_kill_9_and_a_restart_publish_the_same(
    server: MockServer, control: MockControl, tmp_path: Path, memory: str
) -> None:
    raise_b3(control)
    control.raise_switch_fault(0, LANES, port=8, time_ms=0)  # no time, so the first one that we gave it must stay
    control.raise_switch_fault(6, PORT_DOWN, port=2)
    lasting = {PORT_DOWN_KEY, "[0x00f10509,132332,npu,na]_0_8"}
    with daemon_on(server, tmp_path) as daemon:
        wait_until(lambda: len(keys(daemon)) == 3)
        before, known, updated_s = timeless(daemon), info(daemon), daemon.wait(lambda _: True).update_time_s
        daemon.kill()
        if memory == "object":
            shutil.rmtree(daemon.out / ".state")
        control.clear_switch_fault(6, PORT_DOWN, port=2)
        control.hang(QUERY, 600)  # what is published first comes from memory alone
        daemon.start()
        daemon.wait(lambda p: p.update_time_s > updated_s)
        assert timeless(daemon) == before
        control.hang(QUERY, 0)
        wait_until(lambda: keys(daemon) == lasting)
        kept = {key: told for key, told in known["FaultTimeAndLevelMap"].items() if key in lasting}
        assert info(daemon)["FaultTimeAndLevelMap"] == kept


def test_a_library_that_is_gone_at_the_next_start_is_the_zero_value_and_one_warning(
    server: MockServer, control: MockControl, tmp_path: Path
) -> None:
    library = Path(shutil.copy(library_dir() / "liblingqu-dcmi.so", tmp_path))
    with daemon_on(server, tmp_path, switches__library=library) as daemon:
        raise_b3(control)
        wait_for(daemon, B3)
        assert daemon.stop() == 0
        library.unlink()
        daemon.log.write_text("")
        daemon.start()
        wait_for(daemon, ZERO)
        control.raise_fault(0, X)
        daemon.wait_for_faults({("Ascend910-0", X): "RestartNPU"})
        assert len(lines(daemon, str(library))) == len(lines(daemon, "SwitchLibraryMissing")) == 1
        assert len(lines(daemon, "SwitchFaultsWithdrawn")) == 1, "and the fault is not just forgotten"


@pytest.mark.parametrize("name", [INIT, SUBSCRIBE, QUERY])
def test_a_library_that_lacks_a_function_is_none(
    server: MockServer, control: MockControl, tmp_path: Path, name: str
) -> None:
    library = compile_library(tmp_path, library_text(without(name)), "liblingqu-dcmi.so")
    with daemon_on(server, tmp_path, switches__library=library) as daemon:
        wait_until(lambda: lines(daemon, "SwitchLibraryMissing", f"has no {name}"))
        wait_for(daemon, ZERO)
        control.raise_fault(0, X)
        daemon.wait_for_faults({("Ascend910-0", X): "RestartNPU"})
        assert len(lines(daemon, "SwitchLibraryMissing")) == 1
        wait_until(lambda: switch_hosts(daemon.process.pid) == [])


def test_a_library_that_refuses_to_begin_is_none(server: MockServer, control: MockControl, tmp_path: Path) -> None:
    """D14: the start goes on."""
    refuses = {**PARTS, INIT: PARTS[INIT].replace("return 0", "return 1")}
    library = compile_library(tmp_path, library_text(refuses), "liblingqu-dcmi.so")
    with daemon_on(server, tmp_path, switches__library=library) as daemon:
        wait_until(lambda: lines(daemon, "SwitchLibraryMissing", "lq_dcmi_init returned 1"))
        wait_for(daemon, ZERO)
        control.raise_fault(0, X)
        daemon.wait_for_faults({("Ascend910-0", X): "RestartNPU"})
        assert len(lines(daemon, "SwitchLibraryMissing")) == 1


@pytest.mark.parametrize("count", [None, 129, -1], ids=["error", "129 of 128", "below zero"])
def test_an_answer_that_is_none_changes_nothing(
    server: MockServer, control: MockControl, tmp_path: Path, count: int | None
) -> None:
    """D6 and D7, with events that go on meanwhile."""
    with daemon_on(server, tmp_path, switches__query_period_s=1) as daemon:
        wait_for(daemon, B1)
        raise_b3(control)
        wait_for(daemon, B3)
        if count is None:
            control.fail(QUERY, -8005)
        else:
            control.claim_switch_count(count)
        wait_until(lambda: lines(daemon, "SwitchesDoNotAnswer"))
        control.raise_fault(0, X)
        daemon.wait_for_faults({("Ascend910-0", X): "RestartNPU"})
        assert timeless(daemon) == B3
        control.clear_switch_fault(2, PORT_DOWN, port=11, peer_id=5)
        wait_for(daemon, B1)


def test_without_a_subscription_the_list_is_polled(tmp_path: Path) -> None:
    """D15, and a failed query in that state clears nothing."""
    path = node_file(tmp_path, profile="a3", switch_subscribe_failures=1000)
    with (
        MockServer.start(path) as server,
        server.control() as control,
        daemon_on(server, tmp_path, switches__poll_period_s=0.5) as daemon,
    ):
        wait_until(lambda: lines(daemon, "SwitchesNotSubscribed"))
        raise_b3(control)
        wait_for(daemon, B3)
        control.fail(QUERY, -8005)
        wait_until(lambda: lines(daemon, "SwitchesDoNotAnswer"))
        assert timeless(daemon) == B3
        control.fail(QUERY, 0)
        control.clear_switch_fault(2, PORT_DOWN, port=11, peer_id=5)
        wait_for(daemon, B1)


def test_a_storm_over_all_ports_ends_in_the_truth(server: MockServer, control: MockControl, tmp_path: Path) -> None:
    with daemon_on(server, tmp_path) as daemon:
        wait_for(daemon, B1)
        raised = control.switch_storm(leave_raised=True)
        assert len(raised) == 7 * 48 * 3
        wait_until(lambda: len(info(daemon)["FaultCode"]) == len(raised))
        assert {key.split("_", 1)[1] for key in keys(daemon)} == {f"{c}_{p}" for c in range(7) for p in range(48)}
        assert (info(daemon)["FaultLevel"], info(daemon)["NodeStatus"]) == ("Separate", "UnHealthy")
        occurred = lines(daemon, " Occur ")
        assert 0 < len(occurred) < 100, "one line for each code of a moment, not one for each port"
        control.switch_storm(leave_raised=False)  # all are there, so it only takes them back
        wait_for(daemon, B1)


def test_a_notice_is_in_exactly_one_report(server: MockServer, control: MockControl, tmp_path: Path) -> None:
    """Standard output shows every report; a folder would only show the last."""
    printed = tmp_path / "reports.yaml"

    def reports() -> list[dict[str, str]]:
        found = []
        for text in printed.read_text(errors="ignore").split("---\n")[1:]:
            with contextlib.suppress(yaml.YAMLError, TypeError, KeyError, ReadBackError):  # the last may not be whole
                data = yaml.safe_load(text)["data"]
                parse_device_info(data)
                found.append(data)
        return found

    def with_notice() -> int:
        return sum("155911" in data["SwitchInfoCfg"] for data in reports())

    def faults() -> int:
        """Chip faults in the last report."""
        return len(parse_device_info(reports()[-1]).faults)

    settings = {**daemon_settings(server, tmp_path / "out"), "publish.target": "stdout"}
    daemon = Daemon(settings, tmp_path / "out", tmp_path / "daemon.log")
    with printed.open("wb") as stream:
        daemon.start(stdout=stream)
    try:
        wait_until(lambda: control.state()["switch_rings"])
        control.switch_notice(4, NOTICE)
        wait_until(with_notice)
        for chip in range(3):
            control.raise_fault(chip, X)
            wait_until(lambda count=chip + 1: faults() == count)
        assert with_notice() == 1
        assert len(lines(daemon, " Notice ", "155911")) == 1
    finally:
        daemon.stop()


def test_a_code_that_no_table_has_counts_as_not_handle_and_is_told(
    server: MockServer, control: MockControl, tmp_path: Path
) -> None:
    with daemon_on(server, tmp_path) as daemon:
        wait_for(daemon, B1)
        control.raise_switch_fault(1, "0x00f1fef5,155999,cpu", port=4)
        wait_for(daemon, B1.replace('"FaultLevel":""', '"FaultLevel":"NotHandle"'))
        (line,) = wait_until(lambda: lines(daemon, "UnknownFaultCode"))
        assert "[0x00f1fef5,155999,cpu,na]" in line


def test_a_release_holds_what_is_known_and_closes_both_hosts(
    server: MockServer, control: MockControl, tmp_path: Path
) -> None:
    with daemon_on(server, tmp_path) as daemon:
        wait_for(daemon, B1)
        raise_b3(control)
        wait_for(daemon, B3)
        flag = ("--set", f"daemon.socket={daemon.settings['daemon.socket']}")
        assert run_command("release", "--for", "30m", *flag).returncode == 0
        wait_until(lambda: children(daemon.process.pid) == [])
        assert control.state()["switch_rings"] == []
        control.clear_switch_fault(2, PORT_DOWN, port=11, peer_id=5)
        assert timeless(daemon) == B3
        assert run_command("release", "--end", *flag).returncode == 0
        wait_for(daemon, B1)
