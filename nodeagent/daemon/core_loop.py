"""The core loop: the only owner of the state. Observations in, views out.

The inbox is bounded: a source that is faster than the policy waits, its ring overflows, and a full query repairs
what was lost. Acknowledgements do not wait in it; only the latest counts.
"""

import logging
import queue
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from nodeagent.core.clock import Clock, SystemClock, monotonic_s
from nodeagent.core.instant import Instant
from nodeagent.core.levels import Level, Plane
from nodeagent.core.model import ChipId, NodeView, SwitchView, device_name
from nodeagent.core.observation import Acknowledged, CarriedOver, ManualField, Observation
from nodeagent.core.switch_codes import SwitchLevel
from nodeagent.core.telemetry import EventSink, Metrics
from nodeagent.daemon.announce import Names, events_of
from nodeagent.daemon.latency import FaultLatencies
from nodeagent.policy.engine import Step, reconfigure, step
from nodeagent.policy.memory import remember
from nodeagent.policy.restore import absent_memory
from nodeagent.policy.rules import Configuration
from nodeagent.policy.state import Change, ChangeKind, NodeState
from nodeagent.policy.switch_listing import hints
from nodeagent.policy.switch_memory import remember_switches

log = logging.getLogger("nodeagent.core")

INBOX_BATCHES = 256
MAX_BATCH = 10_000
SAVE_PERIOD_S = 60.0
BEAT_PERIOD_S = 10.0
"""The loop passes at least this often, so that one that is stuck can be told from one without work."""
MAX_LABELS = 256

_COUNTED = {
    ChangeKind.UNATTRIBUTED: "unattributed_events_total",
    ChangeKind.DISCARDED: "discarded_events_total",
    ChangeKind.NOTICE_DROPPED: "notices_dropped_total",
    ChangeKind.SWITCH_ODD: "switch_odd_records_total",
}


class CoreLoop:
    """Runs the engine.

    on_view: takes each new view, never blocks. on_restored: called once, after the step that took in what our
    last published object said, so that nothing is published before it. save: takes what must survive a kill, before
    a view that depends on it is handed on.
    """

    def __init__(
        self,
        clock: Clock,
        config: Configuration,
        name_of: Names,
        on_view: Callable[[NodeView], None],
        on_restored: Callable[[], None],
        save: Callable[[Mapping[str, object], Instant], None],
        events: EventSink,
        metrics: Metrics,
    ) -> None:
        self._clock = clock
        self._config = config
        self._next_configs: deque[Configuration] = deque(maxlen=1)
        self._save = save
        self._saved: Mapping[str, object] = {}
        self._saved_at_ms = 0
        self._labels: set[str] = set()
        self._switches_measured = False
        self._real = SystemClock()
        self._name_of = name_of
        self._on_view = on_view
        self._on_restored = on_restored
        self._events = events
        self._metrics = metrics
        self._inbox: queue.Queue[Sequence[Observation]] = queue.Queue(INBOX_BATCHES)
        self._acknowledged = 0
        self._edits: deque[tuple[frozenset[int], int]] = deque()
        self._ack_waits = threading.Event()
        self._stopping = threading.Event()
        self._latencies = FaultLatencies(clock, metrics)
        self._beat_s: float | None = None
        self._state = NodeState()
        self._wake_at_ms: int | None = None

    def submit(self, observations: Sequence[Observation]) -> None:
        """Hand over observations; waits while the inbox is full."""
        self._inbox.put(observations)

    def acknowledge(self, generation: int, _at: Instant) -> None:
        """A target has the content of this view; never blocks."""
        self._latencies.acknowledged(generation)
        self._acknowledged = max(self._acknowledged, generation)
        self._ack_waits.set()
        self._poke()

    def manual_field(self, physical_ids: frozenset[int], generation: int) -> None:
        """Somebody changed our object, which names these chips as manually separated; never blocks."""
        self._edits.append((physical_ids, generation))
        self._poke()

    def configure(self, config: Configuration) -> None:
        """Swap the configuration between two steps; from any thread."""
        self._next_configs.append(config)
        self._poke()

    @property
    def config(self) -> Configuration:
        """The configuration in force."""
        return self._config

    @property
    def state(self) -> NodeState:
        """The present state; never changed by anybody."""
        return self._state

    @property
    def beat_s(self) -> float | None:
        """Monotonic second of the last pass; None before the first, which waits for the lock of the node."""
        return self._beat_s

    @property
    def waiting(self) -> int:
        """Batches in the inbox."""
        return self._inbox.qsize()

    def stop(self) -> None:
        """Make `run` return."""
        self._stopping.set()
        self._poke()

    @property
    def view(self) -> NodeView | None:
        """The latest view, None before the first complete query."""
        return self._state.view

    def run(self) -> None:
        """Step whenever there is something to take in, until `stop`."""
        while not self._stopping.is_set():
            self._beat_s = monotonic_s()
            batch = self._gather()
            now = self._clock.now()
            if self._next_configs:
                self._reconfigure(self._next_configs.popleft(), now)
            due = self._wake_at_ms is not None and now.mono_ms >= self._wake_at_ms
            if batch or due:
                self._step(batch, now)

    def _poke(self) -> None:
        """Wake the loop; a full inbox will wake it anyway."""
        try:
            self._inbox.put_nowait(())
        except queue.Full:
            return

    def _gather(self) -> list[Observation]:
        """Everything that waits, up to MAX_BATCH; blocks until there is something or the engine wants a step."""
        batch: list[Observation] = []
        try:
            batch += self._inbox.get(timeout=self._timeout_s())
            while len(batch) < MAX_BATCH:
                batch += self._inbox.get_nowait()
        except queue.Empty:
            pass  # nothing more waits
        while self._edits:
            batch.append(ManualField(*self._edits.popleft(), self._clock.now()))
        if self._ack_waits.is_set():
            self._ack_waits.clear()
            batch.append(Acknowledged(self._acknowledged, self._clock.now()))
        return batch

    def _timeout_s(self) -> float:
        if self._wake_at_ms is None:
            return BEAT_PERIOD_S
        return min(BEAT_PERIOD_S, self._clock.real_s((self._wake_at_ms - self._clock.now().mono_ms) / 1000))

    def _step(self, batch: list[Observation], now: Instant) -> None:
        started_s = monotonic_s()
        result = step(self._state, batch, now, self._config)
        self._metrics.observe("core_step_seconds", monotonic_s() - started_s)
        self._metrics.set("core_loop_batch", len(batch))
        self._take(result, batch)

    def _reconfigure(self, config: Configuration, now: Instant) -> None:
        log.info("configuration in force version=%s layers=%s", config.version, ", ".join(config.layers))
        self._config = config
        self._take(reconfigure(self._state, now, config), [])

    def _take(self, result: Step, batch: list[Observation]) -> None:
        self._state = result.state
        self._wake_at_ms = result.wake_at_mono_ms
        self._remember()
        self._latencies.seen(batch, result)  # before the view goes out, since its acknowledgement comes from elsewhere
        if result.view is not None:
            self._on_view(result.view)
            self._measure(result.view)
        self._measure_silence()
        if any(isinstance(o, CarriedOver) for o in batch):
            self._on_restored()
        self._announce(result)

    def _remember(self) -> None:
        """Save what must survive, when it changed; and now and then, so that its age can be told."""
        if not self._state.complete or self._state.restored is None:
            return  # what an earlier run remembered is better than what is known so far, and perhaps not read yet
        memory = {**absent_memory(self._state), **remember(self._state), **remember_switches(self._state)}
        now = self._clock.now()
        if memory != self._saved or now.mono_ms - self._saved_at_ms >= SAVE_PERIOD_S * 1000:
            self._saved, self._saved_at_ms = memory, now.mono_ms
            self._save(memory, self._real.now())

    def _announce(self, result: Step) -> None:
        for change in result.changes:
            if change.kind in (ChangeKind.INVENTORY, ChangeKind.COMPLETE):
                log.info("%s: %s", change.kind.value, change.detail)
            if (name := _COUNTED.get(change.kind)) is not None:
                self._metrics.count(name)
            if change.kind is ChangeKind.UNATTRIBUTED:
                log.warning("event ignored code=%X reason=%r", change.code or 0, change.detail)
            if change.kind is ChangeKind.SWITCH_ODD and change.switch is not None:
                log.warning(
                    "odd record place=%r code=%s reason=%r", change.switch.place, change.switch.text, change.detail
                )
            if text := self._unknown(change):
                self._metrics.count("unknown_codes_total", code=self._label(text))
        for event in events_of(result.changes, self._config.table.text_of, self._name_of, self._hints):
            self._events.emit(event)

    def _unknown(self, change: Change) -> str:
        """The code of a change when no table lists it; empty otherwise."""
        if change.kind in (ChangeKind.OCCURRED, ChangeKind.NOTICED) and change.switch and not change.switch.known:
            return change.switch.text
        if not change.known and change.code is not None and change.kind is not ChangeKind.RECOVERED:
            return self._config.table.text_of(change.code)
        return ""

    def _hints(self, chip: ChipId) -> str:
        """Switch faults that name the chip as their peer, for people."""
        view = self._state.view
        return "" if view is None else "; ".join(hints(view.switch, chip.physical_id))

    def _label(self, text: str) -> str:
        """Label of an unknown code; of many different ones (a driver gone mad) the later ones share one."""
        if len(self._labels) < MAX_LABELS:
            self._labels.add(text)
        return text if text in self._labels else "other"

    def _measure(self, view: NodeView) -> None:
        """Gauges are computed from the view, never toggled by events (lesson 15)."""
        counts = dict.fromkeys(Level, 0)
        for chip in view.chips:
            for fault in chip.faults:
                counts[fault.level] += 1
        for level in Level:
            if level is not Level.NORMAL:
                self._metrics.set("faults", counts[level], level=level.text)
        self._measure_switches(view.switch)
        self._metrics.set("chips", len(view.chips))
        self._metrics.set("faults_suppressed", sum(len(c.suppressed) for c in view.chips))
        self._metrics.set("chips_silent", sum(c.silent_since_ms is not None for c in view.chips))
        self._metrics.set("chips_unhealthy", sum(not c.healthy for c in view.chips), plane=Plane.CHIP.value)
        self._metrics.set("chips_unhealthy", sum(not c.network_healthy for c in view.chips), plane=Plane.NETWORK.value)
        for each in view.chips:
            names = {
                "chip": str(each.chip.logic_id),
                "device": device_name(view.product.family, each.chip.physical_id),
            }
            self._metrics.set("chip_unhealthy", not each.healthy, plane=Plane.CHIP.value, **names)
            self._metrics.set("chip_unhealthy", not each.network_healthy, plane=Plane.NETWORK.value, **names)
            self._metrics.set("chip_silent", each.silent_since_ms is not None, **names)

    def _measure_switches(self, switch: SwitchView) -> None:
        if not switch.known and not self._switches_measured:
            return  # a product without switches has no such numbers
        self._switches_measured = True
        counts = dict.fromkeys(SwitchLevel, 0)
        for fault in switch.faults:
            counts[fault.level] += 1
        for level, count in counts.items():
            self._metrics.set("switch_faults", count, level=level.text)
        ill = {f.record.chip_id for f in switch.faults if f.level.status == SwitchLevel.SEPARATE.status}
        self._metrics.set("switch_chips_unhealthy", len(ill | {*switch.planes_down}))
        self._metrics.set("switch_faults_unlisted", sum(not fault.known for fault in switch.faults))
        self._metrics.set("switches_known", switch.known)

    def _measure_silence(self) -> None:
        """Not from the view: that of switches which have never answered does not tell that they are silent."""
        silent = self._state.switches.silent_since is not None
        if silent or self._switches_measured:
            self._metrics.set("switches_silent", silent)
            self._switches_measured = True
