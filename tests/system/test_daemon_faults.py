"""The daemon as a process on a mock node: what happens to the hardware is what a consumer reads."""

import os
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml
from kit.daemon import Daemon, alive, daemon_on, driver_hosts, node_file, wait_until

from nodeagent.mock.client import MockControl
from nodeagent.mock.launch import MockServer
from nodeagent.render.reading import ParsedDeviceInfo, parse_device_info

STANDING = {
    ("Ascend910-1", "80E01801"): "RestartBusiness",
    # In no table and met without an event, so that its severity is not known (decision 1).
    ("Ascend910-2", "8ABCDE01"): "NotHandleFault",
}
ALL = tuple(f"Ascend910-{i}" for i in range(8))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MockServer]:
    faults = [{"chip": 1, "code": "80E01801"}, {"chip": 2, "code": "8ABCDE01", "severity": "critical"}]
    with MockServer.start(node_file(tmp_path_factory.mktemp("node"), profile="a2", faults=faults)) as server:
        yield server


@pytest.fixture(scope="module")
def daemon(server: MockServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One daemon for all tests here; each test leaves the node as it found it. Rules have tests of their own."""
    folder = tmp_path_factory.mktemp("daemon")
    (folder / "site.yaml").write_text("replace: [rules]\n")
    with daemon_on(server, folder, faults__site_file=folder / "site.yaml") as daemon:
        daemon.wait(lambda _: True)
        yield daemon
        assert daemon.stop() == 0
        assert "Traceback" not in daemon.words()
        assert "stopped cleanly" in daemon.words()


def faults(daemon: Daemon, more: Mapping[tuple[str, str], str]) -> ParsedDeviceInfo:
    return daemon.wait_for_faults({**STANDING, **more})


def test_the_first_object_has_the_faults_that_were_there_before_us(daemon: Daemon) -> None:
    parsed = faults(daemon, {})
    assert parsed.product == "Ascend910"
    assert parsed.unhealthy == ("Ascend910-1",)
    assert parsed.available == tuple(name for name in ALL if name != "Ascend910-1")
    assert parsed.network_unhealthy == ()


@pytest.mark.parametrize(
    ("code", "severity", "level", "healthy"),
    [
        ("80E18005", "critical", "RestartNPU", False),
        ("80C98008", "minor", "RestartRequest", False),
        ("80E21007", "critical", "NotHandleFault", True),
        ("8ABCDE02", "critical", "SeparateNPU", False),
        ("8ABCDE03", "hint", "NotHandleFault", True),
    ],
    ids=["listed", "listed, mild event", "harmless", "unknown, critical", "unknown, hint"],
)
def test_a_fault_comes_and_goes(
    daemon: Daemon, control: MockControl, code: str, severity: str, level: str, healthy: bool
) -> None:
    control.raise_fault(4, code, severity=severity)
    parsed = faults(daemon, {("Ascend910-4", code): level})
    assert ("Ascend910-4" in parsed.available) is healthy
    assert ("Ascend910-4" in parsed.unhealthy) is not healthy
    control.clear_fault(4, code)
    assert "Ascend910-4" in faults(daemon, {}).available


def test_an_unknown_code_is_told_to_people_with_what_to_do(daemon: Daemon, control: MockControl) -> None:
    control.raise_fault(4, "8ABCDE0F", severity="major")
    faults(daemon, {("Ascend910-4", "8ABCDE0F"): "SeparateNPU"})
    wait_until(lambda: "code 8ABCDE0F is in no fault table" in daemon.words())
    control.clear_fault(4, "8ABCDE0F")
    faults(daemon, {})


def test_a_link_goes_down_and_up(daemon: Daemon, control: MockControl) -> None:
    control.set_link(1, up=False)
    parsed = faults(daemon, {("Ascend910-1", "81078603"): "NotHandleFault"})
    assert [f.plane.value for f in parsed.faults if f.code_text == "81078603"] == ["parameter_plane"]
    control.set_link(1, up=True)
    faults(daemon, {})


def test_a_card_drops_and_returns_with_the_faults_it_has(daemon: Daemon, control: MockControl) -> None:
    control.drop_card(2)
    parsed = faults(daemon, {("Ascend910-2", "40F84E00"): "RestartNPU"})
    assert "Ascend910-2" in parsed.unhealthy
    control.return_card(2)
    assert "Ascend910-2" in faults(daemon, {}).available


def test_events_for_nobody_change_nothing(daemon: Daemon, control: MockControl) -> None:
    before = daemon.data()
    control.raise_fault(77, "80E18005")
    control.raise_fault(4, "0")
    wait_until(lambda: daemon.words().count("event ignored") == 2)
    assert "logic id 77" in daemon.words()
    control.raise_fault(5, "80E18005")
    faults(daemon, {("Ascend910-5", "80E18005"): "RestartNPU"})
    control.clear_fault(5, "80E18005")
    faults(daemon, {})
    assert daemon.data()["DeviceInfoCfg"] != before["DeviceInfoCfg"]  # only its time


def test_several_faults_of_one_chip_give_its_most_serious_level(daemon: Daemon, control: MockControl) -> None:
    codes = {"80C98008": "RestartRequest", "80E18402": "SeparateNPU", "80E21007": "NotHandleFault"}
    for code in codes:
        control.raise_fault(6, code)
    faults(daemon, {("Ascend910-6", code): level for code, level in codes.items()})
    control.clear_fault(6, "80E18402")
    left = {code: level for code, level in codes.items() if code != "80E18402"}
    faults(daemon, {("Ascend910-6", code): level for code, level in left.items()})
    for code in left:
        control.clear_fault(6, code)
    faults(daemon, {})


def test_the_state_after_a_storm_is_right(daemon: Daemon, control: MockControl) -> None:
    control.storm(5000, 0.5, codes=["80E18005"], leave_raised=True)
    wait_until(lambda: all(s["sent"] == s["total"] for s in control.state()["storms"]), "the storm is over")
    faults(daemon, {(name, "80E18005"): "RestartNPU" for name in ALL})
    for chip in range(8):
        control.clear_fault(chip, "80E18005")
    faults(daemon, {})


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL])
def test_the_daemon_outlives_its_driver_host_and_finds_what_happened_meanwhile(
    daemon: Daemon, control: MockControl, number: signal.Signals
) -> None:
    (host,) = driver_hosts(daemon.process.pid)
    control.raise_fault(0, "80E18005")
    faults(daemon, {("Ascend910-0", "80E18005"): "RestartNPU"})
    os.kill(host, number)
    # Nobody listens just now: one fault comes, one goes.
    control.raise_fault(7, "80E18005", wait_s=0)
    control.clear_fault(0, "80E18005", wait_s=0)
    faults(daemon, {("Ascend910-7", "80E18005"): "RestartNPU"})
    wait_until(lambda: f"driver host dcmi was killed by {number.name}" in daemon.words())
    (successor,) = wait_until(lambda: driver_hosts(daemon.process.pid))
    assert successor != host
    assert not alive(host)
    wait_until(lambda: control.state()["subscribers"])
    control.clear_fault(7, "80E18005")
    faults(daemon, {})


def test_the_time_of_a_fault_is_when_it_came_and_stays(daemon: Daemon, control: MockControl) -> None:
    (made,) = control.raise_fault(3, "80C98008")
    parsed = faults(daemon, {("Ascend910-3", "80C98008"): "RestartRequest"})
    (first,) = (f.since_ms for f in parsed.faults if f.device == "Ascend910-3")
    assert abs(first - made.callbacks[0].wall_ns // 1_000_000) < 1000
    control.raise_fault(3, "80E21007")
    parsed = faults(
        daemon, {("Ascend910-3", "80C98008"): "RestartRequest", ("Ascend910-3", "80E21007"): "NotHandleFault"}
    )
    assert first in {f.since_ms for f in parsed.faults if f.code_text == "80C98008"}
    for code in ("80C98008", "80E21007"):
        control.clear_fault(3, code)
    faults(daemon, {})


def test_a_notice_is_in_one_object_and_gone_from_the_next(server: MockServer, tmp_path: Path) -> None:
    """Printed instead of written, so that no object can be missed."""
    printed = tmp_path / "printed"
    with printed.open("wb") as stream, server.control() as control:
        with daemon_on(server, tmp_path) as first:
            first.stop()
        settings = {**first.settings, "publish.target": "stdout", "publish.directory": ""}
        daemon = Daemon(settings, tmp_path / "out", tmp_path / "stdout.log").start(stdout=stream)
        try:
            wait_until(lambda: printed.read_text().count("---\n") >= 1 and " Subscribed " in daemon.words())
            before = printed.read_text().count("---\n")
            control.notice(0, "80C98006", severity="minor")
            wait_until(lambda: printed.read_text().count("---\n") >= before + 2)
        finally:
            daemon.stop()
    objects = [parse_device_info(o["data"]) for o in yaml.safe_load_all(printed.read_text())]
    shown = [any(f.code_text == "80C98006" for f in parsed.faults) for parsed in objects]
    assert shown.count(True) == 1
    assert shown[-1] is False
    times = [parsed.update_time_s for parsed in objects]
    assert times == sorted(set(times))
