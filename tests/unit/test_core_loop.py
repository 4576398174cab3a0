"""The core loop's own promises: what is saved when, and that nothing handed over is lost."""

import queue
import threading
from collections.abc import Iterator, Mapping

import pytest
from kit.clock import FakeClock
from kit.daemon import wait_until
from kit.engine import config_of
from kit.rules import DEFAULTS

from nodeagent.core.instant import Instant
from nodeagent.core.model import ChipId, Family, Inventory, NodeView, Product
from nodeagent.core.observation import CarriedOver, ChipCodes, FaultOccurred, InventorySeen, SourceComplete
from nodeagent.core.telemetry import Event
from nodeagent.daemon import core_loop
from nodeagent.daemon.core_loop import BEAT_PERIOD_S, MAX_LABELS, CoreLoop
from nodeagent.daemon.health import BEAT_LIMIT_S
from nodeagent.daemon.metrics import Registry

LIVENESS_S = 10


class Bench:
    """A core loop in a thread, and what came out of it."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.saved: list[Mapping[str, object]] = []
        self.shown, self.restored = threading.Event(), threading.Event()
        self.views: queue.Queue[NodeView] = queue.Queue()
        self.gate = threading.Event()
        self.gate.set()
        self.config = config_of(rules=DEFAULTS)
        self.metrics = Registry()
        self.core = CoreLoop(
            self.clock, self.config, str, self._on_view, self.restored.set, self._save, self, self.metrics
        )
        self.thread = threading.Thread(target=self.core.run, daemon=True)
        self.thread.start()

    def emit(self, event: Event) -> None:
        """Events are of no interest here."""

    def _on_view(self, view: NodeView) -> None:
        self.views.put(view)
        self.shown.set()
        self.gate.wait(LIVENESS_S)

    def _save(self, memory: Mapping[str, object], _: Instant) -> None:
        self.saved.append(memory)

    def see_a_faulty_chip(self) -> None:
        now = self.clock.now()
        inventory = Inventory(Product(Family.A2, "chip"), (ChipId(0, 0, 0, 0),))
        fault = FaultOccurred(0, 0x80E18005, None, now)
        self.core.submit([InventorySeen(inventory, now), ChipCodes(0, (), now), fault, SourceComplete(now)])
        assert self.shown.wait(LIVENESS_S)


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.core.stop()
    bench.thread.join(LIVENESS_S)


def test_the_memory_of_an_earlier_run_is_not_overwritten_before_it_was_read(bench: Bench) -> None:
    bench.see_a_faulty_chip()
    assert bench.saved == []
    bench.core.submit([CarriedOver((), bench.clock.now())])
    assert bench.restored.wait(LIVENESS_S)
    assert list(bench.saved[-1]) == ["0"]


def test_of_two_edits_during_one_step_neither_is_lost(bench: Bench) -> None:
    """The later one must not stand in for the first, which lifted a chip."""
    bench.core.submit([CarriedOver((), bench.clock.now(), frozenset({0}))])
    bench.gate.clear()
    bench.see_a_faulty_chip()  # the loop stays in this step until the gate opens
    assert bench.views.get(timeout=LIVENESS_S).chips[0].manually_separated
    bench.core.manual_field(frozenset(), 0)
    bench.core.manual_field(frozenset({0}), 0)
    bench.gate.set()
    assert not bench.views.get(timeout=LIVENESS_S).chips[0].manually_separated


def test_codes_without_end_do_not_make_metrics_without_end(bench: Bench) -> None:
    now = bench.clock.now()
    bench.see_a_faulty_chip()
    bench.core.submit([FaultOccurred(0, 0x8F000000 + number, None, now) for number in range(MAX_LABELS + 5)])
    bench.core.submit([CarriedOver((), now)])
    assert bench.restored.wait(LIVENESS_S)
    bench.core.submit([FaultOccurred(0, 0x8E000000, None, now)])
    bench.core.stop()
    bench.thread.join(LIVENESS_S)
    assert bench.metrics.summary().count("unknown_codes_total") == MAX_LABELS + 1
    assert bench.metrics.value("unknown_codes_total", code="other") >= 5


def test_a_loop_without_work_beats_and_a_stuck_one_does_not(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_loop, "BEAT_PERIOD_S", 0.01)
    bench.core.submit([])  # wakes it from a wait that was begun before
    first = wait_until(lambda: bench.core.beat_s)
    wait_until(lambda: (bench.core.beat_s or 0) > first + 0.05, "several beats without an observation")
    bench.gate.clear()
    bench.see_a_faulty_chip()  # the loop stays in this step until the gate opens
    stuck = bench.core.beat_s
    assert stuck is not None
    bench.thread.join(0.2)
    assert bench.core.beat_s == stuck
    bench.gate.set()
    wait_until(lambda: (bench.core.beat_s or 0) > stuck)


def test_the_limit_of_health_spares_a_loop_that_only_waits() -> None:
    assert BEAT_LIMIT_S >= 5 * BEAT_PERIOD_S
