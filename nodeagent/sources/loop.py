"""The loop of a source that makes calls to a vendor library: an inbox, a gate, and one thread that takes messages.

The supervisor runs it; `release` and `resume` come from the socket, and are followed by the loop in its own time.
"""

import queue
import threading
from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from nodeagent.core.clock import Clock
from nodeagent.sources.gate import Gate

M = TypeVar("M")


class SourceLoop(ABC, Generic[M]):
    """A source. M: what its other threads put into the inbox; None there only wakes the loop up."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._gate = Gate()
        self._inbox: queue.SimpleQueue[M | None] = queue.SimpleQueue()
        self._stopping = threading.Event()

    @property
    def waiting(self) -> int:
        """News and answers in the inbox."""
        return self._inbox.qsize()

    def run(self) -> None:
        """Work until `stop`; the supervisor calls this again should it ever raise."""
        self._new_thread()
        try:
            while not self._stopping.is_set():
                self._follow_gate()
                self._dispatch()
                message = self._next()
                if message is not None:
                    self._follow_gate()  # what ended because the gate was shut is no news
                    self._take(message)
        finally:
            self._end()

    def stop(self) -> None:
        """Make `run` return; sessions are closed without waiting for calls that hang."""
        self._stopping.set()
        self._inbox.put(None)

    # -- release for a driver upgrade, from any thread -----------------------------

    def release(self) -> None:
        """Let go of the library and hold what is known, until `resume`; `holds_driver` says when that is done."""
        self._gate.shut()
        self._inbox.put(None)

    def resume(self) -> None:
        """Open the library again, subscribe and query."""
        self._gate.open()
        self._inbox.put(None)

    @property
    def holds_driver(self) -> bool:
        """A session is open, or may still be; one that was closed and does not end is the reaper's matter."""
        return not self._gate.held

    # -- the loop ---------------------------------------------------------------------

    def _follow_gate(self) -> None:
        self._gate.follow(self._let_go, self._take_back)

    def _next(self) -> M | None:
        due_ms = self._due_ms()
        timeout_s = None if due_ms is None else self._clock.real_s((due_ms - self._clock.now().mono_ms) / 1000)
        try:
            return self._inbox.get(timeout=timeout_s)
        except queue.Empty:
            return None

    # -- what makes a source ----------------------------------------------------------

    @abstractmethod
    def _new_thread(self) -> None:
        """Leave the thread that makes calls to itself, as it may hang, and start another."""

    @abstractmethod
    def _let_go(self) -> None:
        """The gate was shut: end every session."""

    @abstractmethod
    def _take_back(self) -> None:
        """The gate is open again."""

    @abstractmethod
    def _dispatch(self) -> None:
        """Hand out the work that is due."""

    @abstractmethod
    def _due_ms(self) -> int | None:
        """Monotonic milliseconds when `_dispatch` has something to do without a message; None = not before one."""

    @abstractmethod
    def _take(self, message: M) -> None:
        """Take in a message."""

    @abstractmethod
    def _end(self) -> None:
        """The loop ends, by `stop` or by an error: end every session."""
