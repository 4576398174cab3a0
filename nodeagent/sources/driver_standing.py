"""What people are told of the driver: the library in use or why there is none, and one Event per change."""

import logging

from nodeagent.core.errors import NodeAgentError
from nodeagent.core.telemetry import Event, EventReason, EventSink, Metrics
from nodeagent.drivers.chips import Opened
from nodeagent.policy.listing import LibraryFacts

log = logging.getLogger("nodeagent.chips")


class DriverStanding:
    """Told by the chip source's loop. library: the one in use, or why there is none; to be read from any thread."""

    def __init__(self, events: EventSink, metrics: Metrics) -> None:
        self._events = events
        self._metrics = metrics
        self._said: dict[str, str] = {}
        self.library = LibraryFacts()

    def opened(self, opened: Opened) -> None:
        """A session is open."""
        self.library = LibraryFacts(opened.library, opened.problems)
        for problem in opened.problems:
            log.warning("part of the node is not identified: %s", problem)
        self._say("driver", EventReason.DRIVER_READY, f"{len(opened.inventory.chips)} chips through {opened.library}")

    def not_opened(self, error: NodeAgentError, *, another: bool) -> None:
        """No new session could be had. another: there is one in use all the same."""
        if not another:
            self.library = LibraryFacts("", (error.sentence,))
        self._say("driver", EventReason.DRIVER_LOST, str(error), warning=True)

    def lost(self, why: str) -> None:
        """The session in use takes no more calls."""
        self._metrics.count("driver_sessions_lost_total")
        self.library = LibraryFacts("", (why,))
        self._say("driver", EventReason.DRIVER_LOST, why, warning=True)

    def subscribed(self) -> None:
        """Fault events come by themselves."""
        self._metrics.set("driver_subscribed", 1)
        self._say("subscription", EventReason.SUBSCRIBED, "fault events are subscribed")

    def not_subscribed(self, error: NodeAgentError) -> None:
        """They do not, so the chips are asked."""
        self._metrics.set("driver_subscribed", 0)
        message = f"code lists are polled, {error.sentence}"
        self._say("subscription", EventReason.NOT_SUBSCRIBED, message, warning=True)

    def released(self) -> None:
        """The driver was let go for an upgrade: whatever comes after it is news."""
        self._said.clear()
        self._metrics.set("driver_subscribed", 0)

    def _say(self, topic: str, reason: EventReason, message: str, *, warning: bool = False) -> None:
        """One Event per change of a topic, not per repetition (lesson 81)."""
        if self._said.get(topic) != message:
            self._said[topic] = message
            self._events.emit(Event(reason, message, warning))
