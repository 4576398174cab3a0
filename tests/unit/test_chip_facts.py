"""Facts from the chip source in its threads, on a pretended node and a clock that only the test moves."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from kit.clock import PacedClock

from nodeagent.core.model import ChipId, Family
from nodeagent.core.node_facts import FactKind, NodeFacts
from nodeagent.core.observation import ChipCodes, ChipSilent, FaultOccurred, Observation, SourceComplete
from nodeagent.core.telemetry import Event
from nodeagent.daemon.metrics import Registry
from nodeagent.drivers.chips import CodesAnswer, DriverNews
from nodeagent.drivers.fake import FakeChipDriver
from nodeagent.mock.node import MockNode
from nodeagent.mock.spec import NodeSpec
from nodeagent.sources.chips import ChipSource
from nodeagent.sources.plan import ChipTimes

LIMIT_S = 20.0
IP = "dcmi_get_device_ip"
A2 = NodeSpec(profile="a2", chips=2)
TIMES = ChipTimes()
FIRST = ["192.168.100.1", "192.168.100.2"]


class Session(FakeChipDriver):
    """A fake session under the lock of its node, which writes every call into the rig's list."""

    def __init__(self, rig: "Rig", on_news: Callable[[DriverNews], None]) -> None:
        super().__init__(rig.node, on_news)
        self.rig = rig

    def codes(self, chip: ChipId) -> CodesAnswer:
        self.rig.calls.append(("codes", chip.logic_id))
        with self.rig.lock:
            return super().codes(chip)

    def card_dropped(self, chip: ChipId) -> bool:
        self.rig.calls.append(("health", chip.logic_id))
        with self.rig.lock:
            return super().card_dropped(chip)

    def fact(self, chip: ChipId, kind: FactKind) -> int | str:
        self.rig.calls.append((kind.value, chip.logic_id))
        if self.rig.gate is not None:
            assert self.rig.gate.wait(LIMIT_S)
        with self.rig.lock:
            return super().fact(chip, kind)


class Rig:
    """A source on a node. Everything it emitted and reported, and every call, is kept in order."""

    def __init__(self, spec: NodeSpec, times: ChipTimes) -> None:
        self.clock = PacedClock()
        self.node = MockNode(spec, self.clock)
        self.lock = threading.RLock()
        self.gate: threading.Event | None = None
        self.calls: list[tuple[str, int]] = []
        self.found: list[Observation] = []
        self.facts: list[NodeFacts] = []
        self.sessions = 0
        self.metrics = Registry()
        self.source = ChipSource(
            self.connect, self.clock, times, self.take, self, self.metrics, lambda: 0, self.facts.append
        )
        self.thread = threading.Thread(target=self.source.run, daemon=True)

    def connect(self, on_news: Callable[[DriverNews], None]) -> Session:
        self.sessions += 1
        return Session(self, on_news)

    def take(self, observations: Sequence[Observation]) -> None:
        self.found += observations
        self.calls += [("complete", -1) for o in observations if isinstance(o, SourceComplete)]

    def emit(self, _: Event) -> None:
        pass

    def do(self, action: str, *args: object) -> None:
        """Something happens to the hardware."""
        with self.lock:
            getattr(self.node, action)(*args)

    def until(self, condition: Callable[[], object], step_ms: int = 0) -> None:
        """Wait for a condition; the clock goes on by `step_ms` with each look."""
        end = time.monotonic() + LIMIT_S
        while not condition():
            assert time.monotonic() < end, f"not reached; calls {self.calls}; facts {self.facts}"
            assert self.thread.is_alive()
            if step_ms:
                self.clock.advance_ms(step_ms)
            time.sleep(0.002)

    def addresses(self) -> list[str | None]:
        """Addresses of the last report."""
        return [chip.address for chip in self.facts[-1].chips]


@contextmanager
def running(spec: NodeSpec, prepare: Callable[[Rig], None] = lambda _: None, times: ChipTimes = TIMES) -> Iterator[Rig]:
    rig = Rig(spec, times)
    prepare(rig)
    rig.thread.start()
    try:
        yield rig
    finally:
        if rig.gate is not None:
            rig.gate.set()
        rig.source.stop()
        rig.thread.join(LIMIT_S)
        assert not rig.thread.is_alive()


class TestReport:
    def test_facts_come_once_and_after_the_first_complete_query(self) -> None:
        with running(A2) as rig:
            rig.until(lambda: rig.facts)
            asked = [i for i, (call, _) in enumerate(rig.calls) if call in {k.value for k in FactKind}]
            assert asked[0] > rig.calls.index(("complete", -1))
            assert rig.addresses() == FIRST
            assert [(c.aicore_count, c.memory_gib, c.super_device_id) for c in rig.facts[0].chips] == [
                (20, 32, None)
            ] * 2
            assert rig.facts[0].product.family is Family.A2
            rig.until(lambda: rig.calls.count(("address", 0)) == 3, step_ms=500)
            assert len(rig.facts) == 1

    def test_another_address_is_reported_within_the_period(self) -> None:
        with running(A2) as rig:
            rig.until(lambda: rig.facts)
            rig.do("set_address", 1, "10.9.9.9")
            start_ms = rig.clock.now().mono_ms
            rig.until(lambda: len(rig.facts) == 2, step_ms=200)
            assert rig.addresses() == [FIRST[0], "10.9.9.9"]
            assert rig.clock.now().mono_ms - start_ms <= 62_000

    def test_the_thread_waits_no_longer_than_to_the_next_look_at_an_address(self) -> None:
        with running(A2, times=ChipTimes(health_s=300, poll_s=300, full_s=300)) as rig:
            rig.until(lambda: rig.facts)
            rig.until(lambda: 60.0 in rig.clock.waits)

    def test_a_lost_session_is_no_news_of_the_node(self) -> None:
        with running(A2) as rig:
            rig.until(lambda: rig.facts)
            rig.do("crash", "dcmi_get_device_health", None, 11)
            rig.until(lambda: rig.sessions == 2 and rig.calls.count(("cores", 1)) == 2, step_ms=200)
            rig.do("set_address", 0, "10.9.9.8")
            rig.until(lambda: rig.addresses()[0] == "10.9.9.8", step_ms=200)
            assert len(rig.facts) == 2


class TestErrors:
    def test_a_failing_fact_is_unknown_and_makes_no_chip_silent(self) -> None:
        with running(A2, lambda rig: rig.do("fail", IP, 0, -8005)) as rig:
            rig.until(lambda: rig.facts)
            assert rig.addresses() == [None, FIRST[1]]
            rig.do("fail", IP, 0, 0)
            rig.until(lambda: len(rig.facts) == 2, step_ms=500)
            assert rig.addresses() == FIRST
            assert not [o for o in rig.found if isinstance(o, ChipSilent)]
            assert rig.sessions == 1
            assert rig.metrics.value("driver_calls_total", call="fact", result="failed") == 1

    def test_a_fact_that_hangs_costs_a_session_and_stops_no_fault(self) -> None:
        with running(A2, lambda rig: rig.do("hang", IP, 0, 3600.0)) as rig:
            rig.until(lambda: rig.sessions == 2, step_ms=10)
            (silent,) = [o for o in rig.found if isinstance(o, ChipSilent)]
            assert silent.logic_id == 0
            assert "address(0) did not return" in silent.why
            rig.until(lambda: rig.metrics.value("driver_subscribed") == 1)
            rig.do("raise_fault", 1, 0x80E18005)
            rig.until(lambda: [o for o in rig.found if isinstance(o, FaultOccurred)])
            # Its codes are asked for again after the quarantine, its address not before a minute is over.
            answered = len([o for o in rig.found if isinstance(o, ChipCodes) and o.logic_id == 0])
            rig.until(
                lambda: len([o for o in rig.found if isinstance(o, ChipCodes) and o.logic_id == 0]) > answered,
                step_ms=100,
            )
            assert rig.calls.count(("address", 0)) == 1
            rig.do("hang", IP, 0, 0.0)
            rig.until(lambda: rig.addresses() == FIRST, step_ms=200)

    def test_a_fault_query_that_is_due_goes_first(self) -> None:
        def slow(rig: Rig) -> None:
            rig.gate = threading.Event()

        with running(A2, slow) as rig:
            rig.until(lambda: ("cores", 0) in rig.calls)
            rig.clock.advance_ms(10_000)  # health of both chips is overdue while the first fact takes its time
            before = len(rig.calls)
            assert rig.gate is not None
            rig.gate.set()
            rig.until(lambda: rig.facts)
            assert rig.calls[before : before + 2] == [("health", 0), ("health", 1)]
