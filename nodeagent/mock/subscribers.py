"""Who receives events, and when each event reached its callback (native-abi 7.4).

A subscriber is a process with an event connection. Its events wait in a bounded queue, as they do in the kernel;
a full queue loses the newest event and counts it.
"""

import threading
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from nodeagent.core.clock import monotonic_ns


class Deliverable(Protocol):
    """What is needed of an event: of a chip, or of a switch."""

    @property
    def token(self) -> int:
        """Number of the event, unique among those of its kind."""

    def report(self) -> dict[str, object]:
        """What the answer of a control command says of it."""


class Wanted(Protocol):
    """Which events a subscriber takes."""

    def matches(self, event: Any) -> bool:
        """Whether it takes this one."""


E = TypeVar("E", bound=Deliverable)


@dataclass(frozen=True, slots=True)
class Callback:
    """The moment just before a handler was called: nanoseconds of CLOCK_MONOTONIC and of the wall clock."""

    pid: int
    mono_ns: int
    wall_ns: int


class Delivery(Generic[E]):
    """The way of one event to all its subscribers; threads may wait for the end of it."""

    def __init__(self, event: E, subscribers: set[int]) -> None:
        self.event = event
        self.injected_ns = monotonic_ns()
        self.callbacks: list[Callback] = []
        self._open = set(subscribers)
        self._changed = threading.Condition()

    @property
    def missing(self) -> int:
        """Subscribers that have not called their handler (yet)."""
        return len(self._open)

    def arrived(self, subscriber: int, callback: Callback) -> None:
        """A handler returned."""
        with self._changed:
            self._open.discard(subscriber)
            self.callbacks.append(callback)
            self._changed.notify_all()

    def lost(self, subscriber: int) -> None:
        """The event will not reach this subscriber."""
        with self._changed:
            self._open.discard(subscriber)
            self._changed.notify_all()

    def wait(self, timeout_s: float) -> bool:
        """Wait until every handler returned or was lost; false after `timeout_s`."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._open, timeout_s)

    def report(self) -> dict[str, object]:
        """For the answer of a control command; delays are milliseconds from injection to callback."""
        return {
            "token": self.event.token,
            **self.event.report(),
            "injected_mono_ns": self.injected_ns,
            "missing": self.missing,
            "callbacks": [
                {
                    "pid": callback.pid,
                    "mono_ns": callback.mono_ns,
                    "wall_ns": callback.wall_ns,
                    "delay_ms": (callback.mono_ns - self.injected_ns) / 1e6,
                }
                for callback in self.callbacks
            ],
        }


@dataclass(slots=True)
class Counters:
    """What became of a subscriber's events; delays in nanoseconds."""

    delivered: int = 0
    dropped: int = 0
    delay_sum_ns: int = 0
    delay_max_ns: int = 0


@dataclass(slots=True)
class Subscriber(Generic[E]):
    """One subscribed process. Queue items are deliveries; None says that the events of before are through."""

    number: int
    pid: int
    filter: Wanted
    capacity: int
    counters: Counters = field(default_factory=Counters)
    _queue: deque[Delivery[E] | None] = field(default_factory=deque)
    _flying: dict[int, Delivery[E]] = field(default_factory=dict)
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _ended: bool = False

    def put(self, delivery: Delivery[E] | None) -> None:
        """Queue an event; a full queue drops it."""
        with self._changed:
            if self._ended or (delivery is not None and len(self._queue) >= self.capacity):
                self.counters.dropped += 1
                if delivery is not None:
                    delivery.lost(self.number)
                return
            self._queue.append(delivery)
            self._changed.notify()

    def take(self) -> tuple[bool, Delivery[E] | None]:
        """Wait for the next item; (False, None) when the subscription has ended."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._ended)
            if self._ended:
                return False, None
            item = self._queue.popleft()
            if item is not None:
                self._flying[item.event.token] = item
            return True, item

    def take_waiting(self) -> list[Delivery[E]]:
        """Everything that waits now."""
        with self._changed:
            items = [item for item in self._queue if item is not None]
            self._queue.clear()
            self._flying.update({item.event.token: item for item in items})
            return items

    def skip(self, token: int) -> None:
        """The library says that it has no handler for an event."""
        with self._changed:
            delivery = self._flying.pop(token, None)
        if delivery is not None:
            delivery.lost(self.number)

    def acknowledge(self, token: int, mono_ns: int, wall_ns: int) -> None:
        """The library says that the handler was called for an event, and when."""
        with self._changed:
            delivery = self._flying.pop(token, None)
            if delivery is None:
                return
            delay_ns = mono_ns - delivery.injected_ns
            self.counters.delivered += 1
            self.counters.delay_sum_ns += delay_ns
            self.counters.delay_max_ns = max(self.counters.delay_max_ns, delay_ns)
        delivery.arrived(self.number, Callback(self.pid, mono_ns, wall_ns))

    def end(self) -> None:
        """The process is gone: nothing of what waits or flies will arrive."""
        with self._changed:
            self._ended = True
            open_items = [item for item in self._queue if item is not None] + list(self._flying.values())
            self._queue.clear()
            self._flying.clear()
            self._changed.notify_all()
        for delivery in open_items:
            delivery.lost(self.number)

    def report(self) -> dict[str, object]:
        """For the state report."""
        with self._changed:
            counters = self.counters
            mean_ns = counters.delay_sum_ns / counters.delivered if counters.delivered else 0.0
            return {
                "pid": self.pid,
                "delivered": counters.delivered,
                "dropped": counters.dropped,
                "waiting": len(self._queue) + len(self._flying),
                "delay_mean_ms": mean_ns / 1e6,
                "delay_max_ms": counters.delay_max_ns / 1e6,
            }


class Subscribers(Generic[E]):
    """All subscribers of a node to one kind of event. Its methods are called under the lock of the server."""

    def __init__(self, slots: int, capacity: int) -> None:
        self._slots = slots
        self._capacity = capacity
        self._number = 0
        self._all: dict[int, Subscriber[E]] = {}
        self._collecting: list[Delivery[E]] | None = None

    def free_slot(self) -> bool:
        """Whether another process may subscribe (7.4: 64 per host)."""
        return len(self._all) < self._slots

    def has(self, pid: int) -> bool:
        """Whether a process is subscribed."""
        return any(subscriber.pid == pid for subscriber in self._all.values())

    def add(self, pid: int, event_filter: Wanted) -> Subscriber[E]:
        """Subscribe a process."""
        self._number += 1
        subscriber: Subscriber[E] = Subscriber(self._number, pid, event_filter, self._capacity)
        self._all[subscriber.number] = subscriber
        return subscriber

    def remove(self, subscriber: Subscriber[E]) -> None:
        """The process is gone; its slot is free."""
        self._all.pop(subscriber.number, None)
        subscriber.end()

    def send(self, event: E) -> None:
        """Queue an event for everybody whose filter takes it."""
        takers = [subscriber for subscriber in self._all.values() if subscriber.filter.matches(event)]
        delivery = Delivery(event, {subscriber.number for subscriber in takers})
        if self._collecting is not None:
            self._collecting.append(delivery)
        for subscriber in takers:
            subscriber.put(delivery)

    def send_before(self, subscriber: Subscriber[E], events: list[E]) -> None:
        """Queue the events that reach the handler before subscribe returns, and the mark that ends them."""
        for event in events:
            if subscriber.filter.matches(event):
                subscriber.put(Delivery(event, {subscriber.number}))
        subscriber.put(None)

    def collect(self) -> list[Delivery[E]]:
        """Note the deliveries of the events sent from now on in the list that is returned."""
        self._collecting = []
        return self._collecting

    def stop_collecting(self) -> None:
        """End what `collect` began."""
        self._collecting = None

    def end_all(self) -> None:
        """Let all connections end."""
        for subscriber in list(self._all.values()):
            self.remove(subscriber)

    def report(self) -> list[dict[str, object]]:
        """For the state report."""
        return [subscriber.report() for subscriber in self._all.values()]
