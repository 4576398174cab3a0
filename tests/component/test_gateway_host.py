"""The gateway detection through the real mock library in real driver hosts, beside the chip source."""

import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from kit.daemon import wait_until

from nodeagent.core.clock import SystemClock
from nodeagent.core.codes import LINK_DOWN, UBOE_PORT_DOWN
from nodeagent.core.model import ChipId
from nodeagent.core.observation import FaultOccurred, FaultRecovered, Observation, SourceComplete
from nodeagent.core.telemetry import Event, EventReason
from nodeagent.daemon.metrics import Registry
from nodeagent.drivers.answers import AnswerDamaged, AnswerError, AnswerKind
from nodeagent.drivers.chips import DcmiSettings, HostedChips
from nodeagent.drivers.gateway import HostedGateway
from nodeagent.drivers.host import HostGoneError, HostStuckError, Reaper
from nodeagent.mock.client import MockControl
from nodeagent.mock.launch import MockServer, library_dir
from nodeagent.sources.chips import ChipSource
from nodeagent.sources.link_plan import LinkTimes
from nodeagent.sources.links import LinkSource
from nodeagent.sources.plan import ChipTimes

NETWORK = "dcmi_get_device_network_health"
X = 0x80E18005
LIMIT_S = 20.0


def dcmi(server: MockServer) -> DcmiSettings:
    library = str(library_dir() / "libdcmi.so")
    return DcmiSettings(library, trust=True, environment={"NODEAGENT_MOCK_SOCKET": server.socket})


class Node:
    """Both sources on a served node, wired as the daemon wires them, and what came out."""

    def __init__(self, server: MockServer, control: MockControl) -> None:
        self.control = control
        self.out: list[Observation] = []
        self.events: list[Event] = []
        self.metrics, self.reaper, self.gateway_reaper = Registry(), Reaper(), Reaper()
        self.hosts: list[HostedGateway] = []
        self.settings, clock = dcmi(server), SystemClock()
        self.links = LinkSource(self.connect, None, clock, LinkTimes(gateway_s=0.2), self.emit, self, self.metrics)
        self.chips = ChipSource(
            lambda on_news: HostedChips("dcmi", self.settings, self.reaper, on_news),
            clock,
            ChipTimes(health_s=0.5),
            self.links.observe,
            self,
            self.metrics,
            self.reaper.alive,
        )
        self.threads = [threading.Thread(target=s.run, daemon=True) for s in (self.links, self.chips)]
        for thread in self.threads:
            thread.start()
        wait_until(lambda: any(isinstance(o, SourceComplete) for o in self.out))

    def connect(self) -> HostedGateway:
        self.hosts.append(HostedGateway(self.settings, 1.0, self.gateway_reaper))
        return self.hosts[-1]

    def emit(self, observations: Sequence[Observation] | Event) -> None:
        if isinstance(observations, Event):
            self.events.append(observations)
        else:
            self.out += observations

    def facts(self, code: int = LINK_DOWN) -> list[tuple[type, int]]:
        return [
            (type(o), o.logic_id) for o in self.out if isinstance(o, FaultOccurred | FaultRecovered) and o.code == code
        ]

    def told(self, reason: EventReason) -> list[str]:
        return [e.subject for e in self.events if e.reason is reason]

    def stop(self) -> None:
        self.chips.stop()
        self.links.stop()
        for thread in self.threads:
            thread.join(LIMIT_S)
            assert not thread.is_alive()
        wait_until(lambda: self.reaper.alive() + self.gateway_reaper.alive() == 0)


@pytest.fixture
def serve() -> Iterator[Callable[[str | Path], Node]]:
    made: list[tuple[MockServer, Node]] = []

    def make(profile: str | Path) -> Node:
        server = MockServer.start(profile)
        made.append((server, Node(server, server.control())))
        return made[-1][1]

    yield make
    for server, node in made:
        node.stop()
        node.control.close()
        server.stop()


@pytest.fixture
def uboe(tmp_path: Path) -> Path:
    """A 950 with UBoE ports."""
    path = tmp_path / "node.yaml"
    path.write_text("node:\n  profile: '950'\n  chips: 2\n  mainboard_id: 0x25\n")
    return path


class TestHost:
    @pytest.fixture
    def session(self) -> Iterator[tuple[HostedGateway, MockControl, Reaper]]:
        reaper = Reaper()
        with MockServer.start("a2") as server, server.control() as control:
            host = HostedGateway(dcmi(server), 1.0, reaper)
            host.open()
            yield host, control, reaper
            host.close()
        wait_until(lambda: reaper.alive() == 0)

    def test_all_values(self, session: tuple[HostedGateway, MockControl, Reaper]) -> None:
        host, control, _ = session
        for value in range(9):
            control.set_gateway(3, value)
            assert host.network_health(ChipId(3, 3, 3, 0)) == value
            assert host.network_health(ChipId(2, 2, 2, 0)) == 0
        control.set_gateway(3, 255)
        with pytest.raises(AnswerDamaged, match="255"):
            host.network_health(ChipId(3, 3, 3, 0))

    def test_errors(self, session: tuple[HostedGateway, MockControl, Reaper]) -> None:
        host, control, _ = session
        control.drop_card(1)
        with pytest.raises(AnswerError, match="-8005"):
            host.network_health(ChipId(1, 1, 1, 0))
        control.fail(NETWORK, -8255, chip=0)
        with pytest.raises(AnswerError) as caught:
            host.network_health(ChipId(0, 0, 0, 0))
        assert caught.value.kind is AnswerKind.NOT_SUPPORTED

    def test_a_hang_ends_at_the_deadline_and_with_it_the_session(
        self, session: tuple[HostedGateway, MockControl, Reaper]
    ) -> None:
        host, control, reaper = session
        control.hang(NETWORK, 600, chip=0)
        began = time.monotonic()
        with pytest.raises(HostStuckError, match="network_health"):
            host.network_health(ChipId(0, 0, 0, 0))
        assert 0.9 < time.monotonic() - began < 5
        with pytest.raises(HostStuckError):
            host.network_health(ChipId(1, 1, 1, 0))
        assert not host.ended
        host.close()
        wait_until(lambda: host.ended)
        assert reaper.alive() == 0

    def test_a_crash_is_an_error_and_leaves_nothing(self, session: tuple[HostedGateway, MockControl, Reaper]) -> None:
        host, control, _ = session
        control.crash(NETWORK, chip=0)
        with pytest.raises(HostGoneError, match="SIGSEGV"):
            host.network_health(ChipId(0, 0, 0, 0))
        wait_until(lambda: host.ended)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
class TestOddLibraries:
    @pytest.fixture
    def session_with(self, tmp_path: Path) -> Iterator[Callable[[str], HostedGateway]]:
        """A session with a library of a C text."""
        made: list[HostedGateway] = []

        def make(text: str) -> HostedGateway:
            library, source = tmp_path / "libdcmi.so", tmp_path / "dcmi.c"
            source.write_text("int dcmi_init(void) { return 0; }\n" + text)
            subprocess.run(["cc", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
            made.append(HostedGateway(DcmiSettings(str(library), trust=True), LIMIT_S, Reaper()))
            made[0].open()
            return made[0]

        yield make
        made[0].close()

    def test_one_without_the_function_does_not_support_it(self, session_with: Callable[[str], HostedGateway]) -> None:
        with pytest.raises(AnswerError, match=f"{NETWORK} returned -99998") as caught:
            session_with("").network_health(ChipId(0, 0, 0, 0))
        assert caught.value.kind is AnswerKind.NOT_SUPPORTED

    def test_one_that_writes_no_answer_gives_none(self, session_with: Callable[[str], HostedGateway]) -> None:
        session = session_with(f"int {NETWORK}(int c, int d, int *r) {{ (void)c; (void)d; (void)r; return 0; }}")
        with pytest.raises(AnswerDamaged, match="a result of -1"):
            session.network_health(ChipId(0, 0, 0, 0))


class TestBesideTheChips:
    def test_a_bad_gateway_is_a_link_that_is_down(self, serve: Callable[[str], Node]) -> None:
        node = serve("a2")
        node.control.set_gateway(3, 2)
        wait_until(lambda: node.facts() == [(FaultOccurred, 3)])
        node.control.set_link(3, up=False)
        node.control.set_gateway(3, 6)
        time.sleep(0.6)
        assert node.facts() == [(FaultOccurred, 3)], "the link itself is still down"
        node.control.set_link(3, up=True)
        wait_until(lambda: node.facts()[1:] == [(FaultRecovered, 3)])

    def test_a_hang_leaves_chip_events_and_the_other_gateways_undisturbed(self, serve: Callable[[str], Node]) -> None:
        node = serve("a2")
        wait_until(lambda: len(node.hosts) == 1)
        node.control.hang(NETWORK, 600, chip=2)
        wait_until(lambda: node.told(EventReason.GATEWAY_UNKNOWN))
        codes = [f"80E180{number:02X}" for number in range(0x10, 0x30)]
        for number, code in enumerate(codes):
            node.control.raise_fault(number % 8, code, wait_s=5)
        wait_until(lambda: all(node.facts(int(code, 16)) for code in codes), 5)
        for number, code in enumerate(codes):
            assert node.facts(int(code, 16)) == [(FaultOccurred, number % 8)]
        node.control.set_gateway(5, 3)
        wait_until(lambda: node.facts() == [(FaultOccurred, 5)])
        assert len(node.hosts) == 2
        assert node.metrics.value("driver_sessions_lost_total") == 0
        assert node.metrics.value("gateway_sessions_lost_total") == 1
        assert [subject[:6] for subject in node.told(EventReason.GATEWAY_UNKNOWN)] == ["chip 2"]
        assert node.gateway_reaper.alive() == 0

    def test_a_killed_gateway_host_is_replaced(self, serve: Callable[[str], Node]) -> None:
        node = serve("a2")
        node.control.crash(NETWORK, chip=0)
        node.control.set_gateway(0, 1)
        wait_until(lambda: node.facts() == [(FaultOccurred, 0)])
        assert node.metrics.value("driver_sessions_lost_total") == 0

    def test_not_supported_is_named_once_per_chip(self, serve: Callable[[str], Node]) -> None:
        node = serve("a2-card")
        wait_until(lambda: len(node.told(EventReason.GATEWAY_NOT_SUPPORTED)) == 2)
        wait_until(lambda: node.hosts[0].ended)
        time.sleep(0.6)
        assert len(node.told(EventReason.GATEWAY_NOT_SUPPORTED)) == 2
        assert len(node.hosts) == 1, "no process is kept for chips that have nothing to tell"
        assert node.facts() == []

    @pytest.mark.parametrize("profile", ["310p", "950"])
    def test_without_a_parameter_plane_no_host_is_started(self, serve: Callable[[str], Node], profile: str) -> None:
        node = serve(profile)
        time.sleep(0.6)
        assert node.hosts == []
        assert node.metrics.value("gateway_calls_total", result="ok") == 0

    def test_a_950_with_uboe_ports_in_the_words_of_the_second_generation(
        self, serve: Callable[[Path], Node], uboe: Path
    ) -> None:
        node = serve(uboe)
        node.control.set_gateway(1, 2)
        wait_until(lambda: node.facts(UBOE_PORT_DOWN) == [(FaultOccurred, 1)])
        node.control.set_gateway(1, 0)
        wait_until(lambda: node.facts(UBOE_PORT_DOWN)[1:] == [(FaultRecovered, 1)])
        assert node.facts() == []
