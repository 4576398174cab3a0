"""The link source in its threads, on a pretended node, with a tool of the test."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence

import pytest
from kit.daemon import wait_until
from kit.links import UBOE_BOARD, at, listed, node, occurred, recovered

from nodeagent.core.clock import AcceleratedClock, SystemClock
from nodeagent.core.codes import LINK_DOWN, UBOE_PORT_DOWN
from nodeagent.core.errors import LibraryError
from nodeagent.core.model import ChipId, Family, Inventory
from nodeagent.core.observation import ChipCodes, FaultOccurred, FaultRecovered, InventorySeen, Observation, PortsDown
from nodeagent.core.telemetry import Event, EventReason
from nodeagent.daemon.metrics import Registry
from nodeagent.drivers.fake import FakeGatewayDriver
from nodeagent.drivers.gateway import GatewayDriver
from nodeagent.drivers.hccn import PortCount
from nodeagent.drivers.hccn_text import ToolError
from nodeagent.mock.node import MockNode
from nodeagent.mock.spec import NodeSpec
from nodeagent.sources.link_plan import LinkTimes
from nodeagent.sources.links import LinkSource

X = 0x80E18005
NETWORK = "dcmi_get_device_network_health"
LIMIT_S = 15.0


class Session(FakeGatewayDriver):
    """A fake session that says whether it was closed; one whose call hung lives on until it is let go."""

    def __init__(self, rig: "Rig") -> None:
        super().__init__(rig.pretended)
        self.rig = rig
        self.closed = False

    @property
    def ended(self) -> bool:
        return not self.rig.undying

    def open(self) -> None:
        if self.rig.broken:
            raise LibraryError("libdcmi.so was not found")
        assert self.rig.gate.wait(LIMIT_S)
        super().open()

    def network_health(self, chip: ChipId) -> int:
        with self.rig.lock:
            self.rig.asked.append(chip.logic_id)
            return super().network_health(chip)

    def close(self) -> None:
        self.closed = True
        super().close()


class Tool:
    """hccn_tool with answers of the test."""

    def __init__(self) -> None:
        self.up = True
        self.count = PortCount(0, 0)
        self.broken = False
        self.stopped = False

    def link_up(self, physical_id: int) -> bool:
        if self.broken:
            raise ToolError("hccn_tool is busy")
        return self.up

    def ports_down(self, logic_id: int) -> PortCount:
        self.link_up(logic_id)
        return self.count

    def stop(self) -> None:
        self.stopped = True

    def resume(self) -> None:
        self.stopped = False


class Rig:
    """A running source and what came out of it. Its time runs a hundred times as fast as ours."""

    def __init__(self, chips: int = 2, profile: str = "a2", tool: Tool | None = None, gateway: bool = True) -> None:
        self.clock = AcceleratedClock(100)
        self.pretended = MockNode(NodeSpec(profile, chips=chips), SystemClock())
        self.lock = threading.Lock()
        self.asked: list[int] = []
        self.sessions: list[Session] = []
        self.broken = self.undying = False
        self.gate = threading.Event()
        self.gate.set()
        self.out: list[Observation] = []
        self.events: list[Event] = []
        self.metrics = Registry()
        connect = self.connect if gateway else None
        self.source = LinkSource(connect, tool, self.clock, LinkTimes(), self.emit, self, self.metrics)
        self.thread = threading.Thread(target=self.source.run, daemon=True)
        self.thread.start()

    def connect(self) -> GatewayDriver:
        self.sessions.append(Session(self))
        return self.sessions[-1]

    def emit(self, observations: Sequence[Observation] | Event) -> None:
        if isinstance(observations, Event):
            self.events.append(observations)
        else:
            self.out += observations

    def see(self, inventory: Inventory) -> None:
        self.source.observe([InventorySeen(inventory, self.clock.now())])

    def gateway(self, chip: int, value: int) -> None:
        with self.lock:
            self.pretended.set_gateway(chip, value)

    def links(self) -> list[tuple[type, int]]:
        return [(type(o), o.logic_id) for o in self.out if isinstance(o, FaultOccurred | FaultRecovered)]

    def reasons(self) -> list[EventReason]:
        return [e.reason for e in self.events]

    def stop(self) -> None:
        self.source.stop()
        self.thread.join(LIMIT_S)
        assert not self.thread.is_alive()


@pytest.fixture
def rigs() -> Iterator[Callable[..., Rig]]:
    made: list[Rig] = []

    def make(*args: object, **kwargs: object) -> Rig:
        made.append(Rig(*args, **kwargs))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for rig in made:
        rig.stop()


class TestPassing:
    def test_observations_pass_in_order_and_unchanged(self, rigs: Callable[..., Rig]) -> None:
        rig = rigs(gateway=False)
        stream = [InventorySeen(node(), at(0)), occurred(X, 1), occurred(LINK_DOWN, 1), listed(2, X, LINK_DOWN)]
        for observation in stream:
            rig.source.observe([observation])
        wait_until(lambda: len(rig.out) == len(stream))
        assert rig.out == stream

    def test_a_loop_that_is_started_again_keeps_what_it_knows(self, rigs: Callable[..., Rig]) -> None:
        rig = rigs()
        rig.gateway(0, 2)
        rig.see(node())
        wait_until(lambda: rig.links() == [(FaultOccurred, 0)])
        rig.stop()
        rig.source._stopping.clear()
        rig.thread = threading.Thread(target=rig.source.run, daemon=True)
        rig.thread.start()
        rig.gateway(0, 0)
        wait_until(lambda: rig.links() == [(FaultOccurred, 0), (FaultRecovered, 0)])
        assert rig.sessions[0].closed

    def test_a_session_that_opened_for_an_earlier_run_is_closed(self, rigs: Callable[..., Rig]) -> None:
        rig = rigs()
        rig.gate.clear()
        rig.see(node())
        wait_until(lambda: rig.sessions)
        rig.stop()
        rig.source._stopping.clear()
        rig.thread = threading.Thread(target=rig.source.run, daemon=True)
        rig.thread.start()
        rig.gate.set()
        wait_until(lambda: len(rig.sessions) == 2 and rig.asked.count(0) >= 3)
        assert [s.closed for s in rig.sessions] == [True, False]


class TestGateway:
    def test_bad_and_good_again(self, rigs: Callable[..., Rig]) -> None:
        rig = rigs()
        rig.see(node(chips=2))
        rig.gateway(1, 3)
        wait_until(lambda: rig.links() == [(FaultOccurred, 1)])
        assert rig.metrics.value("links_bad") == 1
        rig.source.observe([ChipCodes(1, (X,), rig.clock.now())])
        wait_until(lambda: any(isinstance(o, ChipCodes) and o.codes == (X, LINK_DOWN) for o in rig.out))
        rig.gateway(1, 6)
        wait_until(lambda: rig.links() == [(FaultOccurred, 1), (FaultRecovered, 1)])
        assert len(rig.sessions) == 1
        assert rig.events == []

    @pytest.mark.parametrize(("family", "board"), [(Family.A310P, 0), (Family.A5, 0x03)])
    def test_products_without_a_parameter_plane_get_no_session(
        self, rigs: Callable[..., Rig], family: Family, board: int
    ) -> None:
        rig = rigs()
        rig.see(node(family, board=board))
        wait_until(lambda: rig.out)
        time.sleep(0.1)
        assert rig.sessions == []

    def test_switched_off(self, rigs: Callable[..., Rig]) -> None:
        rig = rigs(gateway=False)
        rig.gateway(0, 2)
        rig.see(node())
        wait_until(lambda: rig.out)
        time.sleep(0.1)
        assert (rig.sessions, rig.links()) == ([], [])

    def test_an_error_is_told_once_and_changes_nothing(self, rigs: Callable[..., Rig]) -> None:
        rig = rigs()
        rig.gateway(0, 2)
        rig.see(node())
        wait_until(lambda: rig.links() == [(FaultOccurred, 0)])
        with rig.lock:
            rig.pretended.set_gateway(0, 0)
            rig.pretended.fail(NETWORK, 0, -8005)
        before = len(rig.asked)
        wait_until(lambda: len(rig.asked) > before + 3)
        assert rig.links() == [(FaultOccurred, 0)]
        assert rig.reasons() == [EventReason.GATEWAY_UNKNOWN]
        with rig.lock:
            rig.pretended.fail(NETWORK, 0, 0)
        wait_until(lambda: rig.links()[1:] == [(FaultRecovered, 0)])
        assert rig.reasons() == [EventReason.GATEWAY_UNKNOWN, EventReason.GATEWAY_ANSWERS]

    def test_not_supported_is_named_once_per_chip_and_ends_the_session(self, rigs: Callable[..., Rig]) -> None:
        rig = rigs(profile="a2-card")
        rig.see(node(chips=2))
        wait_until(lambda: rig.sessions and rig.sessions[0].closed)
        time.sleep(0.15)
        assert sorted(rig.asked) == [0, 1]
        assert rig.reasons() == [EventReason.GATEWAY_NOT_SUPPORTED] * 2
        assert {e.subject for e in rig.events} == {str(c) for c in node(chips=2).chips}
        assert rig.metrics.value("gateway_unsupported_chips") == 2
        assert len(rig.sessions) == 1

    def test_a_bad_gateway_that_is_no_longer_supported_does_not_stay_for_ever(self, rigs: Callable[..., Rig]) -> None:
        rig = rigs()
        rig.gateway(0, 2)
        rig.see(node())
        wait_until(lambda: rig.links() == [(FaultOccurred, 0)])
        with rig.lock:
            rig.pretended.fail(NETWORK, 0, -8255)
        wait_until(lambda: rig.links()[1:] == [(FaultRecovered, 0)])

    def test_a_hang_costs_the_session_and_the_others_go_on(self, rigs: Callable[..., Rig]) -> None:
        rig = rigs(chips=2)
        rig.undying = True
        with rig.lock:
            rig.pretended.hang(NETWORK, 0, 1000)
        rig.see(node(chips=2))
        wait_until(lambda: len(rig.sessions) == 2)
        rig.gateway(1, 2)
        wait_until(lambda: rig.links() == [(FaultOccurred, 1)])
        assert rig.asked.count(0) == 1, "no second call while the child of the first lives"
        assert rig.sessions[0].closed
        assert rig.reasons() == [EventReason.GATEWAY_UNKNOWN]
        assert rig.events[0].subject == str(node().chips[0])
        assert rig.metrics.value("gateway_sessions_lost_total") == 1
        assert list(rig.source._hung) == [0]
        rig.undying = False
        wait_until(lambda: not rig.source._hung)

    def test_a_library_that_cannot_be_opened_is_told_once_and_tried_again(self, rigs: Callable[..., Rig]) -> None:
        rig = rigs()
        rig.broken = True
        rig.see(node())
        wait_until(lambda: len(rig.sessions) == 2)
        rig.broken = False
        rig.gateway(0, 2)
        wait_until(lambda: rig.links() == [(FaultOccurred, 0)])
        assert rig.reasons() == [EventReason.GATEWAY_UNKNOWN, EventReason.GATEWAY_ANSWERS]
        assert [s.closed for s in rig.sessions] == [True, True, False]

    def test_an_unforeseen_error_of_a_call_does_not_end_the_polling(
        self, rigs: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        rig = rigs()

        def broken(*_: object) -> int:
            raise ZeroDivisionError

        with monkeypatch.context() as patch:
            patch.setattr(Session, "network_health", broken)
            rig.see(node())
            wait_until(lambda: rig.metrics.value("gateway_sessions_lost_total") == 1)
        rig.gateway(0, 2)
        wait_until(lambda: rig.links() == [(FaultOccurred, 0)])
        assert "unforeseen error of a gateway call" in caplog.text


class TestTool:
    def test_link_down_and_up_and_an_error_between(self, rigs: Callable[..., Rig]) -> None:
        tool = Tool()
        rig = rigs(tool=tool, gateway=False)
        rig.see(node())
        tool.up = False
        wait_until(lambda: rig.links() == [(FaultOccurred, 0)])
        tool.broken = True
        wait_until(lambda: rig.reasons() == [EventReason.LINK_QUERY_FAILED])
        asked = rig.metrics.value("link_queries_total", result="failed")
        wait_until(lambda: rig.metrics.value("link_queries_total", result="failed") >= asked + 1)
        assert rig.links() == [(FaultOccurred, 0)]
        tool.broken, tool.up = False, True
        wait_until(lambda: rig.links()[1:] == [(FaultRecovered, 0)])
        assert rig.reasons() == [EventReason.LINK_QUERY_FAILED, EventReason.LINK_QUERY_WORKS]

    def test_ports_of_a_950_refine_its_events(self, rigs: Callable[..., Rig]) -> None:
        tool = Tool()
        rig = rigs(tool=tool, gateway=False)
        rig.see(node(Family.A5, board=UBOE_BOARD))
        wait_until(lambda: rig.metrics.value("link_queries_total", result="ok") >= 1)
        tool.count = PortCount(2, 0)
        event = FaultOccurred(0, UBOE_PORT_DOWN, None, rig.clock.now())
        rig.source.observe([event])
        wait_until(lambda: rig.links())
        ports, fault = rig.out[1:3]
        assert isinstance(ports, PortsDown)
        assert (ports.bonding, type(fault)) == (2, FaultOccurred)
        tool.count = PortCount(0, 0)
        rig.source.observe([FaultRecovered(0, UBOE_PORT_DOWN, rig.clock.now())])
        wait_until(lambda: len(rig.links()) == 2)

    def test_stopping_stops_the_tool(self) -> None:
        tool = Tool()
        rig = Rig(tool=tool)
        rig.stop()
        assert tool.stopped


class TestRelease:
    def test_neither_gateway_nor_tool_is_asked_until_the_return(self, rigs: Callable[..., Rig]) -> None:
        tool = Tool()
        rig = rigs(tool=tool)
        rig.gateway(0, 2)
        rig.see(node())
        wait_until(lambda: rig.links() == [(FaultOccurred, 0)])
        rig.source.release()
        wait_until(lambda: not rig.source.holds_driver)
        assert rig.sessions[0].closed
        assert tool.stopped
        asked, questions = len(rig.asked), rig.metrics.value("link_queries_total", result="ok")
        rig.gateway(0, 0)
        time.sleep(0.2)
        assert (len(rig.sessions), len(rig.asked)) == (1, asked)
        assert rig.metrics.value("link_queries_total", result="ok") == questions
        assert rig.links() == [(FaultOccurred, 0)]
        rig.source.observe([occurred(X, 1)])
        wait_until(lambda: occurred(X, 1) in rig.out)  # what the chip source still has to say passes
        rig.source.resume()
        wait_until(lambda: (FaultRecovered, 0) in rig.links())
        wait_until(lambda: rig.metrics.value("link_queries_total", result="ok") > questions)
        assert not tool.stopped
        assert rig.events == []
        assert rig.metrics.value("gateway_sessions_lost_total") == 0

    def test_a_session_that_is_being_opened_is_ended_at_once(self, rigs: Callable[..., Rig]) -> None:
        rig = rigs()
        rig.gate.clear()
        rig.see(node())
        wait_until(lambda: rig.source._gate._entered)
        rig.source.release()
        assert rig.sessions[0].closed
        wait_until(lambda: not rig.source.holds_driver)
        rig.gate.set()
        rig.source.resume()
        wait_until(lambda: len(rig.asked) >= 3)
        assert [s.closed for s in rig.sessions] == [True, False]
        assert rig.events == []
        assert rig.source._gate._entered == []

    def test_an_answer_of_the_tool_from_before_is_not_believed(self, rigs: Callable[..., Rig]) -> None:
        tool, answering = Tool(), threading.Event()

        def link_up(_: int) -> bool:
            asked.append(len(asked))
            if len(asked) == 1:
                answering.wait(LIMIT_S)
                return False
            return True

        asked: list[int] = []
        tool.link_up = link_up  # type: ignore[method-assign]
        rig = rigs(tool=tool, gateway=False)
        rig.see(node())
        wait_until(lambda: asked)
        rig.source.release()
        wait_until(lambda: not rig.source.holds_driver)
        rig.source.resume()
        answering.set()
        wait_until(lambda: len(asked) >= 2)
        wait_until(lambda: rig.metrics.value("link_queries_total", result="ok") == len(asked) - 1)
        assert rig.links() == []


def test_a_slow_engine_makes_the_chip_source_wait(rigs: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch) -> None:
    """The inbox is bounded: what cannot be taken in stays in the driver's ring and is repaired by a full query."""
    rig, gate, put = rigs(gateway=False), threading.Event(), []
    monkeypatch.setattr(rig.source, "_emit", lambda _: gate.wait(LIMIT_S))

    def feed() -> None:
        for number in range(1000):
            rig.source.observe([recovered(X, number)])
            put.append(number)

    feeder = threading.Thread(target=feed, daemon=True)
    feeder.start()
    wait_until(lambda: len(put) >= 256)
    time.sleep(0.1)
    assert len(put) <= 258
    gate.set()
    feeder.join(LIMIT_S)
    assert len(put) == 1000
