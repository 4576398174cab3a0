"""The switch source on the real mock library in a real driver host, beside the chip source in its own."""

import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from kit.daemon import compile_library, wait_until
from kit.switch_library import INIT, PARTS, QUERY, SUBSCRIBE, library_text, without

from nodeagent.core.clock import SystemClock
from nodeagent.core.errors import LibraryError
from nodeagent.core.observation import (
    FaultOccurred,
    Observation,
    SourceComplete,
    SwitchEventSeen,
    SwitchLibraryFound,
    SwitchListSeen,
    SwitchSilent,
)
from nodeagent.core.switch import NO_FAULT_ID, WHOLE_CHIP_PORT, SwitchRecord
from nodeagent.core.telemetry import Event, EventReason
from nodeagent.daemon.metrics import Registry
from nodeagent.drivers.answers import AnswerDamaged, AnswerError, AnswerKind
from nodeagent.drivers.chips import DcmiSettings, HostedChips
from nodeagent.drivers.host import HostGoneError, HostStuckError, Reaper
from nodeagent.drivers.switches import HostedSwitches, LingquSettings, SwitchNews
from nodeagent.mock.launch import MockServer, library_dir
from nodeagent.sources.chips import ChipSource
from nodeagent.sources.plan import ChipTimes
from nodeagent.sources.switch_plan import SwitchTimes
from nodeagent.sources.switches import SwitchSource

B3 = {"chip": 2, "code": "0x08520003,na,npu", "port": 11, "peer_id": 5, "severity": "major", "time_ms": 1759999990123}
B3_RECORD = SwitchRecord(0x08520003, NO_FAULT_ID, 1, 5, 2, 11, 2, 1, 1759999990123)
FATAL = "0x00f103b0,155907,na"


def lingqu(server: MockServer, **fields: object) -> LingquSettings:
    values = {"library": str(library_dir() / "liblingqu-dcmi.so"), "trust": True, **fields}
    return LingquSettings(**values, environment={"NODEAGENT_MOCK_SOCKET": server.socket})  # type: ignore[arg-type]


class Node:
    """Both sources on a served node, wired as the daemon wires them, and what came out."""

    def __init__(self, node: str | Path = "a3", **fields: object) -> None:
        self.server = MockServer.start(node)
        self.control = self.server.control()
        self.out: list[Observation] = []
        self.events: list[Event] = []
        self.metrics, self.reaper, self.switch_reaper = Registry(), Reaper(), Reaper()
        self.settings, clock = lingqu(self.server, **fields), SystemClock()
        self.hosts: list[HostedSwitches] = []
        times = SwitchTimes(query_s=60, poll_s=0.3)
        self.switches = SwitchSource(self.connect, clock, times, self.emit, self, self.metrics)
        dcmi = DcmiSettings(
            str(library_dir() / "libdcmi.so"), trust=True, environment={"NODEAGENT_MOCK_SOCKET": self.server.socket}
        )
        self.chips = ChipSource(
            lambda on_news: HostedChips("dcmi", dcmi, self.reaper, on_news),
            clock,
            ChipTimes(health_s=0.5),
            self.from_chips,
            self,
            self.metrics,
            self.reaper.alive,
        )
        self.threads = [threading.Thread(target=s.run, daemon=True) for s in (self.switches, self.chips)]
        for thread in self.threads:
            thread.start()
        wait_until(lambda: any(isinstance(o, SourceComplete) for o in self.out))

    def connect(self, on_news: Callable[[SwitchNews], None]) -> HostedSwitches:
        self.hosts.append(HostedSwitches(self.settings, self.switch_reaper, on_news))
        return self.hosts[-1]

    def from_chips(self, observations: Sequence[Observation]) -> None:
        self.out += observations
        self.switches.observe(observations)

    def emit(self, what: Sequence[Observation] | Event) -> None:
        if isinstance(what, Event):
            self.events.append(what)
        else:
            self.out += what

    def of(self, *kinds: type) -> list[Observation]:
        return [o for o in self.out if isinstance(o, kinds)]

    def found(self) -> list[bool]:
        return [o.present for o in self.out if isinstance(o, SwitchLibraryFound)]

    def lists(self) -> list[tuple[SwitchRecord, ...]]:
        return [o.records for o in self.out if isinstance(o, SwitchListSeen)]

    def heard(self) -> list[SwitchRecord]:
        return [o.record for o in self.out if isinstance(o, SwitchEventSeen)]

    def silences(self) -> list[str]:
        return [o.why for o in self.out if isinstance(o, SwitchSilent)]

    def told(self, reason: EventReason) -> list[str]:
        return [e.message for e in self.events if e.reason is reason]

    def ready(self) -> "Node":
        """Subscribed, and queried since."""
        wait_until(lambda: self.metrics.value("switch_subscribed") == 1)
        wait_until(self.lists)
        wait_until(lambda: self.switches.waiting == 0)
        return self

    def chips_work(self) -> None:
        self.control.raise_fault(3, "80E18005", wait_s=5)
        wait_until(lambda: any(isinstance(o, FaultOccurred) and o.logic_id == 3 for o in self.out))
        assert self.metrics.value("driver_sessions_lost_total") == 0

    def stop(self) -> None:
        self.chips.stop()
        self.switches.stop()
        for thread in self.threads:
            thread.join(20)
            assert not thread.is_alive()
        self.control.close()
        self.server.stop()
        wait_until(lambda: self.reaper.alive() + self.switch_reaper.alive() == 0)


@pytest.fixture
def serve() -> Iterator[Callable[..., Node]]:
    made: list[Node] = []

    def make(*args: object, **kwargs: object) -> Node:
        made.append(Node(*args, **kwargs))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for node in made:
        node.stop()


def a3(folder: Path, text: str) -> Path:
    path = folder / "node.yaml"
    path.write_text(f"node:\n  profile: a3\n{text}")
    return path


class TestHost:
    @pytest.fixture
    def host(self) -> Iterator[tuple[HostedSwitches, MockServer, list[SwitchNews]]]:
        news: list[SwitchNews] = []
        reaper = Reaper()
        with MockServer.start("a3") as server:
            made = HostedSwitches(lingqu(server, call_deadline_s=1.0), reaper, news.append)
            assert made.open() == os.path.realpath(library_dir() / "liblingqu-dcmi.so")
            yield made, server, news
            made.close()
            wait_until(lambda: reaper.alive() == 0)

    def test_events_and_lists_in_plain_values(self, host: tuple[HostedSwitches, MockServer, list[SwitchNews]]) -> None:
        made, server, news = host
        made.subscribe()
        with server.control() as control:
            (told,) = control.raise_switch_fault(**B3)
            control.raise_switch_fault(0, FATAL, severity="critical", time_ms=0)
            wait_until(lambda: len(news) == 2)
            (event,) = news[0].events
            assert event.record == B3_RECORD
            assert 0 <= event.mono_ns - told.callbacks[0].mono_ns < 10**9, "the moment of the callback"
            assert news[1].events[0].record == SwitchRecord(
                0x00F103B0, 155907, 0xFFFF, 0xFFFF, 0, WHOLE_CHIP_PORT, 3, 1, 0
            )
            assert made.faults() == (B3_RECORD, news[1].events[0].record)

    def test_a_full_list_is_asked_for_again(self, host: tuple[HostedSwitches, MockServer, list[SwitchNews]]) -> None:
        made, server, _ = host
        with server.control() as control:
            control.log_calls(True)
            control.switch_storm(leave_raised=True, chips=1, ports=42)
            assert len(made.faults()) == 126
            control.raise_switch_fault(6, "0x00f103b6,155908")
            assert len(made.faults()) == 127
            assert [c["args"][0] for c in control.calls(function=QUERY)] == [128, 128]
            control.switch_storm(leave_raised=True)
            assert len(made.faults()) == 1009
            assert [c["args"][0] for c in control.calls(function=QUERY)][2:] == [128, 1024]

    @pytest.mark.parametrize("count", [129, -1, 2**31 - 1])
    def test_d7_a_count_above_the_capacity_or_below_zero_is_an_error(
        self, host: tuple[HostedSwitches, MockServer, list[SwitchNews]], count: int
    ) -> None:
        made, server, _ = host
        with server.control() as control:
            control.claim_switch_count(count)
            with pytest.raises(AnswerDamaged, match=f"a count of {count} faults, outside 0..128"):
                made.faults()

    def test_codes_have_the_meanings_of_this_library(
        self, host: tuple[HostedSwitches, MockServer, list[SwitchNews]]
    ) -> None:
        made, server, _ = host
        with server.control() as control:
            control.fail(SUBSCRIBE, -8014)
            with pytest.raises(AnswerError, match=f"^NA302: {SUBSCRIBE} returned -8014: too many sub"):
                made.subscribe()
            control.fail(QUERY, -8005)
            with pytest.raises(AnswerError, match=f"^NA302: {QUERY} returned -8005: the kernel refused the request$"):
                made.faults()

    @pytest.mark.parametrize("place", [{"chip": 7}, {"chip": 2, "port": 48}])
    def test_a_record_out_of_range_is_asked_for_three_times_and_then_passed_on(
        self, host: tuple[HostedSwitches, MockServer, list[SwitchNews]], place: dict[str, int]
    ) -> None:
        """native-abi 16.7: a torn record; but it may as well be a machine that we do not know."""
        made, server, _ = host
        with server.control() as control:
            control.log_calls(True)
            control.raise_switch_fault(code="0x08520003,na", **place)  # type: ignore[arg-type]
            (record,) = made.faults()
            assert {"chip": record.chip_id, "port": record.port_id}.items() >= place.items()
            assert len(control.calls(function=QUERY)) == 3

    def test_a_hang_and_a_crash_cost_the_host(self, host: tuple[HostedSwitches, MockServer, list[SwitchNews]]) -> None:
        made, server, news = host
        made.subscribe()
        with server.control() as control:
            control.hang(QUERY, 600)
            with pytest.raises(HostStuckError, match="faults"):
                made.faults()
            control.raise_switch_fault(**B3)
            wait_until(lambda: news, "its events still come")
        os.kill(made.pid, signal.SIGSEGV)
        wait_until(lambda: news[-1].gone)
        with pytest.raises(HostGoneError, match="SIGSEGV"):
            made.subscribe()


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
class TestOddLibraries:
    """Libraries of the test, loaded through the same path."""

    @pytest.fixture
    def session_with(self, tmp_path: Path) -> Iterator[Callable[[dict[str, str]], HostedSwitches]]:
        made: list[HostedSwitches] = []

        def make(parts: dict[str, str]) -> HostedSwitches:
            path = compile_library(tmp_path, library_text(parts), "liblingqu-dcmi.so")
            made.append(HostedSwitches(LingquSettings(str(path), trust=True), Reaper(), lambda _: None))
            return made[-1]

        yield make
        made[0].close()

    @pytest.mark.parametrize("name", [INIT, SUBSCRIBE, QUERY])
    def test_a_missing_function_is_a_library_that_cannot_be_used(
        self, session_with: Callable[[dict[str, str]], HostedSwitches], name: str
    ) -> None:
        session = session_with(without(name))
        with pytest.raises(LibraryError, match=f"has no {name}"):
            session.open()

    def test_d14_init_says_no(self, session_with: Callable[[dict[str, str]], HostedSwitches]) -> None:
        session = session_with({**PARTS, INIT: PARTS[INIT].replace("return 0", "return 1")})
        with pytest.raises(AnswerError, match="lq_dcmi_init returned 1") as caught:
            session.open()
        assert caught.value.kind is AnswerKind.FAILED

    def test_d8_records_that_say_recovery_are_left_out(
        self, session_with: Callable[[dict[str, str]], HostedSwitches]
    ) -> None:
        text = PARTS[QUERY].replace(
            "*c = 0;",
            "memset(l, 0, 3 * sizeof *l); l[0].eventType = 1; l[1].assertion = 1; l[2].assertion = 2; *c = 3;",
        )
        session = session_with({**PARTS, QUERY: text})
        session.open()
        assert [record.assertion for record in session.faults()] == [1, 2]

    def test_a_record_that_is_torn_once_is_read_again(
        self, session_with: Callable[[dict[str, str]], HostedSwitches]
    ) -> None:
        text = PARTS[QUERY].replace(
            "*c = 0;",
            "static int calls; memset(l, 0, sizeof *l); l[0].assertion = calls++ ? 1 : 77; *c = 1;",
        )
        session = session_with({**PARTS, QUERY: text})
        session.open()
        assert [record.assertion for record in session.faults()] == [1]

    def test_one_that_writes_more_than_it_was_given_room_for_harms_nothing(
        self, session_with: Callable[[dict[str, str]], HostedSwitches]
    ) -> None:
        text = PARTS[QUERY].replace("*c = 0;", "memset(l, 0, (n + 1) * sizeof *l); *c = n + 1;")
        session = session_with({**PARTS, QUERY: text})
        session.open()
        for _ in range(20):
            with pytest.raises(AnswerDamaged, match="a count of 129"):
                session.faults()


class TestSource:
    def test_faults_of_before_then_events_in_order(self, serve: Callable[..., Node], tmp_path: Path) -> None:
        node = serve(a3(tmp_path, f"  switch_faults:\n    - {{chip: 0, code: '{FATAL}'}}\n")).ready()
        assert node.found() == [True]
        assert [r.fault_id for r in node.lists()[0]] == [155907]
        node.control.raise_switch_fault(**B3)
        node.control.clear_switch_fault(**{k: v for k, v in B3.items() if k not in ("severity", "time_ms")})
        node.control.switch_notice(4, "0x00f1ff06,155911")
        wait_until(lambda: len(node.heard()) == 3)
        assert [r.assertion for r in node.heard()] == [1, 0, 2]
        assert node.heard()[0] == B3_RECORD
        assert node.silences() == []
        assert node.metrics.value("switch_events_total") == 3
        assert node.metrics.value("source_last_success_timestamp_seconds", source="switches") > 0
        assert node.events
        assert all(not e.warning for e in node.events)

    @pytest.mark.parametrize("profile", ["a2", "950"])
    def test_on_other_products_it_is_not_even_looked_for(self, serve: Callable[..., Node], profile: str) -> None:
        node = serve(profile)
        node.chips_work()
        assert node.hosts == []
        assert node.of(SwitchLibraryFound, SwitchListSeen, SwitchSilent) == []

    def test_a_missing_library_is_said_once(self, serve: Callable[..., Node], tmp_path: Path) -> None:
        node = serve(library=str(tmp_path / "liblingqu-dcmi.so"))
        wait_until(lambda: node.told(EventReason.SWITCH_LIBRARY_MISSING))
        node.chips_work()
        assert node.found() == [False]
        (message,) = node.told(EventReason.SWITCH_LIBRARY_MISSING)
        assert "does not exist" in message
        assert len(node.hosts) == 1

    def test_a_library_that_others_may_write_is_not_trusted(self, serve: Callable[..., Node], tmp_path: Path) -> None:
        # Of our own making: whether the checkout itself is trusted depends on where it lies.
        library = tmp_path / "liblingqu-dcmi.so"
        shutil.copy(library_dir() / library.name, library)
        library.chmod(0o777)
        node = serve(trust=False, library=str(library))
        wait_until(lambda: node.told(EventReason.SWITCH_LIBRARY_MISSING))
        (message,) = node.told(EventReason.SWITCH_LIBRARY_MISSING)
        assert node.found() == [False]
        assert "can be written by others" in message or "belongs to uid" in message

    def test_d14_init_fails_and_the_start_goes_on(self, serve: Callable[..., Node], tmp_path: Path) -> None:
        node = serve(a3(tmp_path, f"  failing:\n    - {{function: {INIT}, code: 1}}\n"))
        wait_until(lambda: node.told(EventReason.SWITCH_LIBRARY_MISSING))
        node.chips_work()
        assert node.found() == [False]
        assert len(node.told(EventReason.SWITCH_LIBRARY_MISSING)) == 1

    def test_d15_without_a_subscription_the_list_is_polled_until_it_works(
        self, serve: Callable[..., Node], tmp_path: Path
    ) -> None:
        node = serve(a3(tmp_path, "  switch_subscribe_failures: 3\n"))
        wait_until(lambda: node.told(EventReason.SWITCHES_NOT_SUBSCRIBED))
        node.control.raise_switch_fault(**B3)
        wait_until(lambda: node.lists()[-1:] == [(B3_RECORD,)], "found by the poll")
        assert node.heard() == []
        wait_until(lambda: node.told(EventReason.SWITCHES_SUBSCRIBED))
        node.control.raise_switch_fault(0, FATAL)
        wait_until(lambda: len(node.heard()) == 1)
        assert node.found() == [True]

    def test_d6_a_query_that_fails_keeps_the_list_and_is_repeated(self, serve: Callable[..., Node]) -> None:
        node = serve().ready()
        node.control.fail(QUERY, -8005, times=2)
        os.kill(node.hosts[-1].pid, signal.SIGKILL)  # the next session begins with a query
        wait_until(lambda: node.silences()[-1:] == [""])
        assert [why[:37] for why in node.silences()] == [f"{QUERY} returned -8005", ""]
        assert node.metrics.value("switch_queries_total", result="failed") == 2
        assert len(node.told(EventReason.SWITCHES_ANSWER)) == 1

    def test_lost_events_are_repaired_by_a_query(self, serve: Callable[..., Node]) -> None:
        """Storm: the ring of the process overflows in the mock; the daemon's own sees all that come."""
        node = serve().ready()
        node.control.raise_switch_fault(event=False, **B3)
        os.kill(node.hosts[-1].pid, signal.SIGSEGV)
        wait_until(lambda: node.lists()[-1] == (B3_RECORD,))
        assert len(node.hosts) == 2
        assert node.found() == [True]
        assert node.metrics.value("switch_sessions_lost_total") == 1
        node.chips_work()

    def test_the_largest_storm_comes_through(self, serve: Callable[..., Node]) -> None:
        node = serve().ready()
        made = node.control.switch_storm(leave_raised=True, wait_s=20)
        wait_until(lambda: len(node.heard()) == len(made) == 1008)
        assert [(r.chip_id, r.port_id) for r in node.heard()[:4]] == [(0, 0), (0, 0), (0, 0), (0, 1)]

    def test_a_hang_leaves_the_chips_undisturbed_and_the_next_session_hears_events_first(
        self, serve: Callable[..., Node]
    ) -> None:
        node = serve(call_deadline_s=0.5).ready()
        node.control.hang(QUERY, 600)
        os.kill(node.hosts[-1].pid, signal.SIGKILL)
        wait_until(lambda: any("did not return" in why for why in node.silences()))
        node.chips_work()
        wait_until(lambda: len(node.hosts) == 3 and node.metrics.value("switch_subscribed") == 1)
        node.control.hang(QUERY, 0)
        node.control.raise_switch_fault(**B3)
        wait_until(lambda: B3_RECORD in node.heard() or (node.lists() and B3_RECORD in node.lists()[-1]))
        wait_until(lambda: node.silences()[-1] == "")

    def test_a_crash_of_the_chip_library_leaves_the_switches_undisturbed(self, serve: Callable[..., Node]) -> None:
        node = serve().ready()
        node.control.crash("dcmi_get_device_health")
        wait_until(lambda: node.metrics.value("driver_sessions_lost_total") == 1)
        node.control.raise_switch_fault(**B3)
        wait_until(lambda: node.heard() == [B3_RECORD])
        assert len(node.hosts) == 1
        assert node.metrics.value("switch_sessions_lost_total") == 0

    def test_release_closes_the_host_and_resume_begins_anew(self, serve: Callable[..., Node]) -> None:
        node = serve().ready()
        before = len(node.lists())
        node.switches.release()
        wait_until(lambda: not node.switches.holds_driver)
        wait_until(lambda: node.switch_reaper.alive() == 0)
        node.control.raise_switch_fault(**B3)
        assert len(node.of(SwitchEventSeen)) == 0
        node.switches.resume()
        wait_until(lambda: len(node.lists()) > before)
        wait_until(lambda: node.lists()[-1] == (B3_RECORD,))
        assert node.found() == [True]
        assert node.silences() == [], "a release is no news of the switches"
        assert node.events
        assert all(not e.warning for e in node.events)
