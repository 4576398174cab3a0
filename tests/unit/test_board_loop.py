"""The board loop: views, numbers, Events, and what it shows."""

import logging
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from kit.board import BMC_23, CPU_1D, LEVELS, PORT_17, PSU_9, SYSTEM_31, config_of, seen, silent
from kit.clock import FakeClock
from kit.daemon import wait_until

from nodeagent.core.alarms import NodeLevel
from nodeagent.core.board import BoardView
from nodeagent.core.telemetry import Event, EventReason
from nodeagent.daemon import board as board_module
from nodeagent.daemon.announce_board import MAX_EVENTS_PER_STEP
from nodeagent.daemon.board import MAX_LABELS, BoardLoop
from nodeagent.daemon.metrics import Registry
from nodeagent.policy.board import BoardState
from nodeagent.policy.node_table import NodeConfiguration

LIMIT_S = 10.0


class Bench:
    """A board loop in a thread. `settled` waits until it has taken in all that was handed over."""

    def __init__(self, config: NodeConfiguration | None) -> None:
        self.views: list[BoardView] = []
        self.states: list[BoardState] = []
        self.events: list[Event] = []
        self.metrics = Registry()
        self.gate = threading.Event()
        self.gate.set()
        self.loop = BoardLoop(FakeClock(), config, "/dev/ipmi0", self.on_view, self.states.append, self, self.metrics)
        self.thread = threading.Thread(target=self.loop.run, daemon=True)
        self.thread.start()

    def on_view(self, view: BoardView) -> None:
        self.views.append(view)
        assert self.gate.wait(LIMIT_S)

    def emit(self, event: Event) -> None:
        self.events.append(event)

    def take(self, *facts: Any) -> None:
        """Hand over facts, one step for each."""
        for fact in facts:
            self.loop.submit(fact)
            self.settled()

    def settled(self) -> None:
        beat_s = self.loop.beat_s or 0.0
        self.loop._inbox.put(None)
        wait_until(lambda: self.loop.waiting == 0 and (self.loop.beat_s or 0.0) > beat_s, limit_s=LIMIT_S)

    def value(self, name: str, **labels: str) -> float:
        return self.metrics.value(name, **labels)


@pytest.fixture
def config() -> NodeConfiguration | None:
    return config_of()


@pytest.fixture
def bench(config: NodeConfiguration | None) -> Iterator[Bench]:
    bench = Bench(config)
    yield bench
    bench.gate.set()
    bench.loop.stop()
    bench.thread.join(LIMIT_S)
    assert not bench.thread.is_alive()


class TestViews:
    def test_the_view_goes_out_after_each_good_poll_and_never_after_a_failed_one(self, bench: Bench) -> None:
        bench.take(seen(0), silent(60), seen(120, CPU_1D), silent(180), seen(240, CPU_1D))
        assert [(view.generation, view.status) for view in bench.views] == [
            (1, "Healthy"),
            (2, "PreSeparate"),
            (2, "PreSeparate"),
        ]
        assert bench.loop.view == bench.views[-1]
        assert len(bench.states) == 3

    def test_t8_another_table_acts_at_once(self, bench: Bench) -> None:
        bench.take(seen(0, CPU_1D))
        bench.loop.configure(config_of(LEVELS | {"0000001D": NodeLevel.SEPARATE}, "v2"))
        wait_until(lambda: len(bench.views) == 2, limit_s=LIMIT_S)
        assert bench.views[-1].status == "UnHealthy"
        bench.settled()
        assert bench.events[-1] == Event(
            EventReason.RAISED,
            "0000001D name of 0000001D, level SeparateFault instead of PreSeparateFault: the table has changed",
            True,
            "board CPU 1",
        )
        bench.loop.configure(config_of({}, "v3"))
        wait_until(lambda: len(bench.views) == 3, limit_s=LIMIT_S)
        bench.settled()
        assert bench.events[-1].reason is EventReason.FAULT_RECOVERED
        bench.loop.configure(config_of(LEVELS, "v4"))
        wait_until(lambda: len(bench.views) == 4, limit_s=LIMIT_S)
        bench.settled()
        assert bench.events[-1].message == "0000001D name of 0000001D, level PreSeparateFault, listed by the table now"
        assert bench.events[-1].warning

    @pytest.mark.parametrize("config", [None])
    def test_t15_before_the_table_nothing_is_concluded(self, bench: Bench) -> None:
        bench.take(seen(0, CPU_1D))
        assert bench.views == []
        assert bench.loop.state_json()["known"] is False
        bench.loop.configure(config_of())
        wait_until(lambda: bench.views, limit_s=LIMIT_S)
        assert [view.status for view in bench.views] == ["PreSeparate"]

    def test_of_two_tables_during_one_step_the_latest_wins(self, bench: Bench) -> None:
        bench.gate.clear()
        bench.loop.submit(seen(0, CPU_1D))
        wait_until(lambda: bench.views, limit_s=LIMIT_S)
        bench.loop.configure(config_of({}, "v2"))
        bench.loop.configure(config_of(LEVELS | {"0000001D": NodeLevel.SEPARATE}, "v3"))
        bench.gate.set()
        wait_until(lambda: len(bench.views) == 2, limit_s=LIMIT_S)
        bench.settled()
        assert [view.status for view in bench.views] == ["PreSeparate", "UnHealthy"]
        assert bench.loop.config is not None
        assert bench.loop.config.version == "v3"


class TestNews:
    def test_events_name_device_code_and_level(self, bench: Bench) -> None:
        bench.take(seen(0), seen(60, CPU_1D), seen(120))
        message = "0000001D name of 0000001D, level PreSeparateFault"
        assert bench.events == [
            Event(EventReason.FAULT_OCCURRED, message, True, "board CPU 1"),
            Event(EventReason.FAULT_RECOVERED, message, False, "board CPU 1"),
        ]

    def test_what_was_there_before_us_is_said_to_be(self, bench: Bench) -> None:
        bench.take(seen(0, CPU_1D))
        assert bench.events[0].message.endswith(", level PreSeparateFault, found by the first poll")

    def test_t5_unlisted_codes_are_logged_once_and_are_no_events(
        self, bench: Bench, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.WARNING, "nodeagent.board")
        bench.take(seen(0, PORT_17, BMC_23), seen(60), seen(120, PORT_17, replace(PORT_17, device_id=3)))
        assert bench.events == []
        logged = [record.message.split(";")[0] for record in caplog.records]
        assert logged == [
            "alarm in no table of node faults, published nowhere code=1A000023 device='BMC' id=255",
            "alarm in no table of node faults, published nowhere code=29000017 device='Port' id=255",
        ]
        assert bench.value("unlisted_alarms_total", code="29000017") == 3
        assert bench.value("unlisted_alarms_total", code="1A000023") == 1

    def test_codes_without_end_make_no_labels_without_end(self, bench: Bench) -> None:
        bench.take(seen(0, *(replace(CPU_1D, code=0x70000000 + number) for number in range(MAX_LABELS + 20))))
        assert bench.metrics.summary().count("unlisted_alarms_total") == MAX_LABELS + 1
        assert bench.value("unlisted_alarms_total", code="other") == 20

    def test_a_storm_is_told_by_its_first_events_and_a_number(self, bench: Bench) -> None:
        bench.take(seen(0, *(replace(CPU_1D, device_id=number) for number in range(256))))
        assert len(bench.events) == MAX_EVENTS_PER_STEP + 1
        assert bench.events[-1].message == "and 206 more changes of the board in the same moment"


class TestNumbers:
    def test_they_follow_the_state(self, bench: Bench) -> None:
        bench.take(seen(0, CPU_1D, SYSTEM_31, PSU_9, PORT_17))
        assert [bench.value(name) for name in ("board_alarms", "board_alarms_unlisted", "board_stale")] == [4, 1, 0]
        assert [bench.value("node_faults", level=level.text) for level in NodeLevel] == [1, 1, 1]
        assert bench.value("node_unhealthy", status="UnHealthy") == 1
        assert bench.value("node_unhealthy", status="PreSeparate") == 0
        bench.take(seen(60, CPU_1D))
        assert [bench.value("node_faults", level=level.text) for level in NodeLevel] == [0, 1, 0]
        assert bench.value("node_unhealthy", status="UnHealthy") == 0
        assert bench.value("node_unhealthy", status="PreSeparate") == 1

    def test_t12_staleness(self, bench: Bench) -> None:
        bench.take(seen(0, CPU_1D), silent(60), silent(120))
        assert bench.value("board_stale") == 0
        bench.take(silent(180))
        assert bench.value("board_stale") == 1
        assert bench.value("board_alarms") == 1, "the last state stays"
        bench.take(seen(240))
        assert bench.value("board_stale") == 0

    def test_before_a_good_poll_there_are_none(self, bench: Bench) -> None:
        bench.take(silent(0))
        told = {name for name, family in bench.metrics.families().items() if family.values}
        assert told == {"board_stale"}


class TestShown:
    def test_the_serial_number_is_shown(self, bench: Bench) -> None:
        assert bench.loop.state_json()["serial_number"] is None
        bench.loop.serial_number("2102ABC")
        assert bench.loop.state_json()["serial_number"] == "2102ABC"
        assert bench.loop.why_json()["transport"] == "/dev/ipmi0"

    def test_a_loop_without_work_beats_and_a_stuck_one_does_not(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(board_module, "BEAT_PERIOD_S", 0.01)
        bench.take(silent(0))
        first = wait_until(lambda: bench.loop.beat_s)
        wait_until(lambda: (bench.loop.beat_s or 0) > first + 0.05, limit_s=LIMIT_S)
        bench.gate.clear()
        bench.loop.submit(seen(60))
        wait_until(lambda: bench.views, limit_s=LIMIT_S)
        stuck = bench.loop.beat_s
        bench.thread.join(0.1)
        assert bench.loop.beat_s == stuck
