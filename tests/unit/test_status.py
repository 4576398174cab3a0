"""How a daemon stands, from its real parts: a core loop, a publisher, a supervisor."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from kit.daemon import wait_until
from kit.engine import config_of

from nodeagent import __version__
from nodeagent.core.clock import SystemClock, monotonic_s
from nodeagent.core.model import ChipId, Family, Inventory, Product
from nodeagent.core.observation import CarriedOver, ChipCodes, ChipSilent, InventorySeen, SourceComplete
from nodeagent.core.settings import EventSettings, IpmiSettings, NodeSettings, PublicFaultSettings, Settings
from nodeagent.core.telemetry import Event, EventReason, NullTelemetry
from nodeagent.daemon.cluster import Cluster
from nodeagent.daemon.core_loop import CoreLoop
from nodeagent.daemon.health import BEAT_LIMIT_S, Conditions, not_ready, unhealthy
from nodeagent.daemon.metrics import Registry
from nodeagent.daemon.node_faults import node_faults_of
from nodeagent.daemon.status import Status
from nodeagent.daemon.supervisor import Loop, Supervisor
from nodeagent.policy.listing import LibraryFacts
from nodeagent.publish.directory import DirectoryTarget
from nodeagent.publish.publisher import Publisher
from nodeagent.sources.chips import ChipSource
from nodeagent.sources.links import LinkSource

OFF = Settings(ipmi=IpmiSettings(transport="off"), public_faults=PublicFaultSettings(delivery="off"))


class Source:
    """Stands for both sources: what Status reads of them."""

    library = LibraryFacts()
    waiting = 7


class Rig:
    """A daemon without drivers."""

    def __init__(self, folder: Path) -> None:
        telemetry, clock = NullTelemetry(), SystemClock()
        self.metrics = Registry()
        self.source = Source()
        self.conditions = Conditions()
        self.supervisor = Supervisor(telemetry)
        self.core = CoreLoop(
            clock,
            config_of(),
            str,
            lambda view: self.publisher.submit(view),
            lambda: self.publisher.start(),
            lambda *_: None,
            telemetry,
            self.metrics,
        )
        self.publisher = Publisher(
            DirectoryTarget(folder),
            "node",
            clock,
            self.core.acknowledge,
            self.core.manual_field,
            telemetry,
            self.metrics,
        )
        # Without a board, and with storage clients whose files are nowhere: nothing of them runs here.
        self.node_faults = node_faults_of(
            replace(OFF, node=NodeSettings("n1")), SystemClock(), None, None, None, telemetry, self.metrics
        )
        self.status = Status(
            self.core,
            cast(ChipSource, self.source),
            cast(LinkSource, self.source),
            self.publisher,
            self.supervisor,
            self.conditions,
            self.metrics,
            self.node_faults,
            {"events": lambda: 3},
        )
        self.chips = [ChipId(i, i, i, 0) for i in range(3)]

    def not_ready(self) -> list[str]:
        return not_ready(self.status.snapshot())

    def unhealthy(self) -> list[str]:
        return unhealthy(self.status.snapshot())


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(tmp_path)
    yield rig
    rig.supervisor.stop(10)
    rig.publisher.stop(10)


def test_from_the_start_to_readiness(rig: Rig) -> None:
    assert rig.not_ready() == ["chips: the driver is not open yet", "publish: not acknowledged yet"]
    rig.source.library = LibraryFacts("", ("libdcmi.so was not found",))
    assert rig.not_ready()[0] == "chips: the driver is not open: libdcmi.so was not found"
    rig.supervisor.start(Loop("core", rig.core.run, rig.core.stop))
    now = SystemClock().now()
    rig.core.submit([InventorySeen(Inventory(Product(Family.A2, "chip"), tuple(rig.chips)), now)])
    wait_until(lambda: rig.not_ready()[0] == "chips: 3 of 3 not asked yet")
    rig.core.submit([ChipCodes(0, (), now), ChipSilent(1, "no answer", now)])
    wait_until(lambda: rig.not_ready()[0] == "chips: 1 of 3 not asked yet")
    state = rig.status.state()
    assert [c["why_silent"] for c in state["chips"]] == [None, "no answer", "not asked yet"]
    rig.core.submit([ChipCodes(2, (), now), SourceComplete(now)])
    wait_until(lambda: rig.not_ready() == ["publish: not acknowledged yet"])
    rig.core.submit([CarriedOver((), now)])
    wait_until(lambda: rig.not_ready() == [])
    rig.conditions.hold("lock", "another daemon has the lock")
    assert rig.not_ready() == ["lock: another daemon has the lock"]
    assert rig.unhealthy() == []


def test_a_target_that_refuses_is_the_reason(rig: Rig, tmp_path: Path) -> None:
    (tmp_path / "kube-system").write_text("a file where a folder should be")
    rig.supervisor.start(Loop("core", rig.core.run, rig.core.stop))
    now = SystemClock().now()
    inventory = Inventory(Product(Family.A2, "chip"), tuple(rig.chips))
    rig.core.submit([InventorySeen(inventory, now), SourceComplete(now), CarriedOver((), now)])
    wait_until(lambda: [r for r in rig.not_ready() if r.startswith("publish: not acknowledged: ")])
    assert rig.unhealthy() == []


def test_a_core_loop_that_is_stuck_is_unhealthy(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rig.unhealthy() == []
    monkeypatch.setattr(CoreLoop, "beat_s", monotonic_s() - BEAT_LIMIT_S - 1)
    assert rig.unhealthy() == ["core: the core loop has not turned for 61 s"]


class _Ends(BaseException):
    """Nothing that a supervisor survives."""


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_threads_that_ended_are_unhealthy(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def end(*_: Any) -> None:
        raise _Ends

    rig.supervisor.start(Loop("chips", end, lambda: None))
    wait_until(lambda: rig.unhealthy() == ["loops: the thread has ended of chips"])
    monkeypatch.setattr(rig.publisher, "_round", end)
    rig.publisher.start()
    wait_until(lambda: len(rig.unhealthy()) == 2)
    assert rig.unhealthy()[1] == "publisher: its thread has ended"


def test_a_loop_that_waits_for_its_restart_is_not(rig: Rig) -> None:
    failed = threading.Event()

    def fail() -> None:
        failed.set()
        raise RuntimeError("unforeseen")

    rig.supervisor.start(Loop("chips", fail, lambda: None))
    assert failed.wait(10)
    assert rig.unhealthy() == []


def test_one_that_was_stopped_is_not(rig: Rig) -> None:
    rig.supervisor.start(Loop("core", rig.core.run, rig.core.stop))
    assert rig.supervisor.stop(10) == []
    rig.publisher.start()
    assert rig.publisher.stop(10)
    assert rig.unhealthy() == []


@pytest.mark.parametrize(
    ("name", "labels", "judge"),
    [
        ("ready", {}, lambda value: value == 0),
        ("queue_depth", {"queue": "chips"}, lambda value: value == 7),
        ("queue_depth", {"queue": "core"}, lambda value: value == 0),
        ("queue_depth", {"queue": "events"}, lambda value: value == 3),
        ("build_info", {"version": __version__}, lambda value: value == 1),
        ("process_start_time_seconds", {}, lambda value: value > 1.7e9),
        ("resident_memory_bytes", {"process": "daemon"}, lambda value: value > 10e6),
        ("cpu_seconds_total", {"process": "daemon"}, lambda value: value > 0),
    ],
)
def test_metrics_of_the_moment(rig: Rig, name: str, labels: dict[str, str], judge: Callable[[float], bool]) -> None:
    rig.status.measure()
    assert judge(rig.metrics.value(name, **labels))


def test_events_that_wait_for_the_api_server_are_a_queue(tmp_path: Path) -> None:
    node = NodeSettings("worker-1")
    cluster = Cluster(str(tmp_path / "kubeconfig"), Registry())
    sinks = cluster.listeners(Settings(node=node))
    waiting = cluster.queues()["events"]
    assert waiting() == 0
    for chip in ("chip 1", "chip 2", "chip 2"):
        for sink in sinks:
            sink.emit(Event(EventReason.FAULT_OCCURRED, "80E18005", True, chip))
    assert waiting() == 3


def test_without_events_there_is_no_such_queue(tmp_path: Path) -> None:
    cluster = Cluster(str(tmp_path / "kubeconfig"), Registry())
    cluster.listeners(Settings(node=NodeSettings("worker-1"), events=EventSettings(enabled=False)))
    assert cluster.queues() == {}
