"""Logging: one line a change, text for people or JSON for machines, and Events shown as log lines."""

import json
import logging
import sys
import threading
from typing import TextIO

from nodeagent.core.clock import monotonic_s
from nodeagent.core.telemetry import Event, EventReason, EventSink, Metrics

_TEXT = "%(asctime)s %(levelname)-7s %(name)s %(message)s"


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time (ISO 8601, UTC offset), level, logger, message, error if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """The line without a newline."""
        body = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S") + f".{int(record.msecs):03d}",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            body["error"] = self.formatException(record.exc_info)
        return json.dumps(body, ensure_ascii=False)


def set_up_logging(level: str, form: str, stream: TextIO | None = None) -> None:
    """Send everything under `nodeagent` to one stream (default stderr), once."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else logging.Formatter(_TEXT))
    root = logging.getLogger("nodeagent")
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    root.propagate = False


MAX_EVENTS_PER_S = 50
"""More Events about faults than these within one second are counted, not logged one by one (lesson 38)."""
_ABOUT_FAULTS = frozenset(
    {
        EventReason.FAULT_OCCURRED,
        EventReason.FAULT_RECOVERED,
        EventReason.FAULT_NOTICED,
        EventReason.UNKNOWN_CODE,
        EventReason.RAISED,
        EventReason.RELEASED,
    }
)
"""Only these can come in storms; what the agent says of itself is always logged."""


class LogEvents:
    """The Event sink of a daemon without a cluster: Events are log lines, and counted."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._log = logging.getLogger("nodeagent.events")
        self._lock = threading.Lock()
        self._second = 0
        self._in_second = 0
        self._untold = 0

    def emit(self, event: Event) -> None:
        """Log and count one Event."""
        self._metrics.count("events_total", reason=event.reason.value)
        untold, told = 0, True
        if event.reason in _ABOUT_FAULTS:
            with self._lock:
                untold, told = self._admit(int(monotonic_s()))
        if untold:
            self._log.warning("and %d more Events, which the metric events_total counts by reason", untold)
        if told:
            self._write(event)

    def _admit(self, second: int) -> tuple[int, bool]:
        """How many Events of an earlier second were left out and not told yet, and whether this one is logged."""
        untold = 0
        if second != self._second:
            untold, self._untold = self._untold, 0
            self._second, self._in_second = second, 0
        self._in_second += 1
        if self._in_second <= MAX_EVENTS_PER_S:
            return untold, True
        self._untold += 1
        return untold, False

    def _write(self, event: Event) -> None:
        write = self._log.warning if event.warning else self._log.info
        subject = f" {event.subject}:" if event.subject else ""
        write("%s%s %s", event.reason.value, subject, event.message)


class Fan:
    """Hands each Event to several sinks, in order."""

    def __init__(self, *sinks: EventSink) -> None:
        self._sinks = sinks

    def emit(self, event: Event) -> None:
        """Hand on one Event."""
        for sink in self._sinks:
            sink.emit(event)
