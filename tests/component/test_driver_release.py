"""The sources let go of the real mock library in real driver hosts, and take it back."""

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from kit.daemon import children, wait_until

from nodeagent.core.clock import SystemClock
from nodeagent.core.observation import ChipCodes, ChipSilent, FaultOccurred, FaultRecovered, Observation, SourceComplete
from nodeagent.core.telemetry import Event, EventReason
from nodeagent.daemon.metrics import Registry
from nodeagent.daemon.release import DriverRelease
from nodeagent.drivers.chips import DcmiSettings, HostedChips
from nodeagent.drivers.gateway import HostedGateway
from nodeagent.drivers.hccn import HccnTool
from nodeagent.drivers.host import Reaper
from nodeagent.mock.client import MockControl
from nodeagent.mock.launch import MockServer, library_dir
from nodeagent.sources.chips import ChipSource
from nodeagent.sources.link_plan import LinkTimes
from nodeagent.sources.links import LinkSource
from nodeagent.sources.plan import ChipTimes

X, X_TEXT, Y_TEXT = 0x80E18005, "80E18005", "80C98008"
CODES, NETWORK = "dcmi_get_device_errorcode_v2", "dcmi_get_device_network_health"


class Node:
    """Both sources on a served node with the owner of a release, and what came out."""

    def __init__(self, server: MockServer, tool: Path) -> None:
        self.control: MockControl = server.control()
        self.out: list[Observation] = []
        self.events: list[Event] = []
        self.metrics, self.reaper, self.gateway_reaper = Registry(), Reaper(), Reaper()
        library = str(library_dir() / "libdcmi.so")
        dcmi = DcmiSettings(library, trust=True, environment={"NODEAGENT_MOCK_SOCKET": server.socket})
        clock = SystemClock()
        self.tool = HccnTool(str(tool), 20.0, {}, trust=True)
        self.links = LinkSource(
            lambda: HostedGateway(dcmi, 20.0, self.gateway_reaper),
            self.tool,
            clock,
            LinkTimes(gateway_s=0.2),
            self.take,
            self,
            self.metrics,
        )
        self.chips = ChipSource(
            lambda on_news: HostedChips("dcmi", dcmi, self.reaper, on_news),
            clock,
            ChipTimes(health_s=0.5),
            self.links.observe,
            self,
            self.metrics,
            self.reaper.alive,
        )
        self.owner = DriverRelease(None, (self.chips, self.links), self.still_open, clock, self, self.metrics)
        self.threads = [threading.Thread(target=s.run, daemon=True) for s in (self.links, self.chips)]
        for thread in self.threads:
            thread.start()
        wait_until(lambda: any(isinstance(o, SourceComplete) for o in self.out))
        wait_until(lambda: self.metrics.value("driver_subscribed") == 1)

    def take(self, observations: Sequence[Observation]) -> None:
        self.out += observations

    def emit(self, event: Event) -> None:
        self.events.append(event)

    def still_open(self) -> list[str]:
        return [str(pid) for pid in (*self.reaper.pids(), *self.gateway_reaper.pids(), *self.tool.pids())]

    def released(self) -> None:
        """Release, until the owner says that nothing is open."""
        self.owner.begin(600)
        wait_until(lambda: not self.owner.status()["open"], "everything is closed")

    def returned(self) -> None:
        """Return, until every chip was queried."""
        asked = len(self.of(ChipCodes))
        assert self.owner.finish("the test says so")
        wait_until(lambda: {o.logic_id for o in self.of(ChipCodes)[asked:]} == set(range(8)))

    def of(self, *kinds: type) -> list[Observation]:
        return [o for o in self.out if isinstance(o, kinds)]

    def stop(self) -> None:
        self.chips.stop()
        self.links.stop()
        for thread in self.threads:
            thread.join(20)
            assert not thread.is_alive()
        self.control.close()


def mapping(library: str = "libdcmi.so") -> list[int]:
    """Processes of this test, itself included, that have the library mapped."""
    found = []
    for pid in (os.getpid(), *children(os.getpid())):
        try:
            text = Path(f"/proc/{pid}/maps").read_text()
        except OSError:
            continue  # it ended meanwhile
        if library in text:
            found.append(pid)
    return found


@pytest.fixture
def tool(tmp_path: Path) -> Path:
    """An hccn_tool that says up at once, unless a file beside it makes it hang."""
    path = tmp_path / "hccn_tool"
    path.write_text(f"#!/bin/sh\n[ -e {tmp_path}/hang ] && exec sleep 1000\necho 'link status: UP'\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def node(tool: Path) -> Iterator[Node]:
    with MockServer.start("a2") as server:
        node = Node(server, tool)
        yield node
        node.stop()
    wait_until(lambda: node.still_open() == [])


def test_no_process_has_the_library_and_what_happens_meanwhile_is_found_on_return(node: Node) -> None:
    node.control.raise_fault(1, X_TEXT)
    wait_until(lambda: node.of(FaultOccurred))
    wait_until(lambda: len(mapping()) == 2, "the host for faults and the one for gateways")
    node.released()
    assert mapping() == []
    before, calls = len(node.out), node.metrics.summary()
    node.control.clear_fault(1, X_TEXT)
    node.control.raise_fault(2, Y_TEXT)
    node.control.set_gateway(3, 2)
    node.control.drop_card(5)
    node.control.reset(6)
    time.sleep(1.0)  # twice the period of health queries, five times that of gateway samples
    node.control.return_card(5)
    assert node.out[before:] == []
    assert node.metrics.summary() == calls
    assert mapping() == []
    node.returned()
    answers = {o.logic_id: o.codes for o in node.of(ChipCodes)}
    assert (answers[1], answers[2], answers[5]) == ((), (0x80C98008,), ())
    wait_until(lambda: [o.logic_id for o in node.out[before:] if isinstance(o, FaultOccurred)] == [3])
    assert node.of(ChipSilent, FaultRecovered) == []
    assert [e.reason for e in node.events if e.warning] == [EventReason.DRIVER_RELEASED]
    assert len(mapping()) >= 1


@pytest.mark.parametrize("function", [CODES, "dcmi_get_device_health", NETWORK, "dcmi_init"])
def test_a_call_that_hangs_does_not_delay_the_release(node: Node, function: str) -> None:
    node.control.hang(function, 100_000, times=1)
    if function == CODES:
        node.control.clear_fault(2, X_TEXT, listed=False)  # a recovery is checked against the list
    elif function == "dcmi_init":
        node.released()
        node.owner.finish("so that a session is being opened")
    wait_until(lambda: not any(rule["kind"] == "hang" for rule in node.control.state()["rules"]), "it hangs")
    before = len(node.of(ChipSilent))
    node.released()
    assert mapping() == []
    node.returned()
    assert len(node.of(ChipSilent)) == before == 0
    assert not [e for e in node.events if e.reason in (EventReason.DRIVER_LOST, EventReason.GATEWAY_UNKNOWN)]


def test_a_chip_whose_calls_ended_the_host_is_asked_on_return(node: Node) -> None:
    node.control.crash(CODES, chip=4)
    node.control.crash("dcmi_get_device_health", chip=4)
    wait_until(lambda: node.of(ChipSilent))
    node.released()
    assert mapping() == []
    for function in (CODES, "dcmi_get_device_health"):
        node.control.fail(function, 0, chip=4)
    node.returned()


def test_a_question_to_hccn_tool_is_ended(node: Node, tool: Path) -> None:
    (tool.parent / "hang").touch()
    node.released()
    node.returned()
    wait_until(node.tool.pids, "the tool runs and hangs")
    node.released()
    assert node.tool.pids() == []
    failed = node.metrics.value("link_queries_total", result="failed")
    (tool.parent / "hang").unlink()
    answered = node.metrics.value("link_queries_total", result="ok")
    node.returned()
    wait_until(lambda: node.metrics.value("link_queries_total", result="ok") >= answered + 8)
    assert node.metrics.value("link_queries_total", result="failed") == failed


def test_a_process_that_does_not_end_is_named(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """Like one in an uninterruptible wait of the kernel: it is not seen to end."""
    poll: Callable[[], int | None] = lambda: None  # noqa: E731
    wait_until(lambda: len(mapping()) == 2)
    session = node.chips._sessions.current
    assert session is not None
    host = session.driver._host  # type: ignore[union-attr]
    monkeypatch.setattr(host._process, "poll", poll)
    node.owner.begin(600)
    wait_until(lambda: node.owner.status()["open"] == [str(host.pid)])
    monkeypatch.undo()
    wait_until(lambda: not node.owner.status()["open"])
