"""A mock node in operation: the model under a lock, its subscribers, its timelines and what happens by itself."""

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nodeagent.core.clock import Clock, SystemClock, monotonic_ns
from nodeagent.core.errors import NodeAgentError
from nodeagent.mock.actions import Bound
from nodeagent.mock.calllog import CallLog
from nodeagent.mock.dispatch import Dispatcher
from nodeagent.mock.events import MockEvent
from nodeagent.mock.node import MockNode
from nodeagent.mock.scenario import TimedAction
from nodeagent.mock.spec import NodeSpec
from nodeagent.mock.storm import Storm
from nodeagent.mock.subscribers import Delivery, Subscribers
from nodeagent.mock.switch_event import MockSwitchEvent
from nodeagent.mock.switches import MAX_PROCESSES, RING_EVENTS


class Runtime:
    """What the connections of a server share. `lock` guards `node`, `dispatcher` and both subscribers."""

    def __init__(self, spec: NodeSpec, *, log_path: Path | None = None, clock: Clock | None = None) -> None:
        self.lock = threading.RLock()
        self.node = MockNode(spec, clock or SystemClock())
        self.dispatcher = Dispatcher(self.node)
        self.subscribers: Subscribers[MockEvent] = Subscribers(spec.subscribe_slots, spec.queue_events)
        self.switch_rings: Subscribers[MockSwitchEvent] = Subscribers(MAX_PROCESSES, RING_EVENTS)
        self.log = CallLog(on=spec.log_calls, path=log_path)
        self.problems: list[str] = []
        self._stopping = threading.Event()
        self._work = threading.Event()
        self._pump = threading.Thread(target=self._pump_forever, name="pump", daemon=True)
        self.node.add_listener(self.subscribers.send)
        self.node.switches.add_listener(self.switch_rings.send)

    def start(self) -> None:
        """Begin to pump the node."""
        self._pump.start()

    def stop(self) -> None:
        """End the pump, running timelines and all subscriptions."""
        self._stopping.set()
        self._work.set()
        if self._pump.ident is not None:
            self._pump.join()
        with self.lock:
            self.subscribers.end_all()
            self.switch_rings.end_all()
        self.log.close()

    def run(self, bound: Bound) -> tuple[list[Delivery[Any]], Storm | None, int]:
        """Do an action: the deliveries of its events, the storm it began if any, and when it was done (ns)."""
        with self.lock:
            of_chips, of_switches = self.subscribers.collect(), self.switch_rings.collect()
            try:
                injected_ns = monotonic_ns()
                outcome = bound.run(self.node)
            finally:
                self.subscribers.stop_collecting()
                self.switch_rings.stop_collecting()
        deliveries: list[Delivery[Any]] = [*of_chips, *of_switches]
        self._work.set()
        return deliveries, outcome if isinstance(outcome, Storm) else None, injected_ns

    def rest(self, seconds: float) -> bool:
        """Sleep on the thread of one client, so many real seconds; false when the server stops meanwhile."""
        return not self._stopping.wait(seconds)

    def play(self, timeline: tuple[TimedAction, ...], done: Callable[[], None]) -> None:
        """Play a timeline in its own thread; `done` is called at its end.

        An action that the node refuses is noted in `problems` and skipped.
        """
        threading.Thread(target=self._play, args=(timeline, done), name="timeline", daemon=True).start()

    def state(self) -> Mapping[str, object]:
        """Everything there is to know, in plain JSON values."""
        with self.lock:
            return {
                **self.node.state(),
                "subscribers": self.subscribers.report(),
                "switch_rings": self.switch_rings.report(),
                "log_calls": self.log.on,
                "problems": list(self.problems),
            }

    def _play(self, timeline: tuple[TimedAction, ...], done: Callable[[], None]) -> None:
        start_ms = self.node.clock.now().mono_ms
        for entry in timeline:
            left_ms = start_ms + round(entry.at_s * 1000) - self.node.clock.now().mono_ms
            if left_ms > 0 and self._stopping.wait(self.node.clock.real_s(left_ms / 1000)):
                break
            try:
                self.run(entry.bound)
            except NodeAgentError as problem:
                self.problems.append(f"timeline line {entry.line}: {problem}")
        done()

    def _pump_forever(self) -> None:
        while not self._stopping.is_set():
            self._work.clear()
            with self.lock:
                wait_ms = self.node.pump()
            self._work.wait(None if wait_ms is None else self.node.clock.real_s(wait_ms / 1000))
