"""Logging: one line a change, text for people or JSON for machines, and Events shown as log lines."""

import json
import logging
import sys
from typing import TextIO

from nodeagent.core.telemetry import Event, Metrics

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


class LogEvents:
    """The Event sink of a daemon without a cluster: Events are log lines, and counted."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._log = logging.getLogger("nodeagent.events")

    def emit(self, event: Event) -> None:
        """Log and count one Event."""
        self._metrics.count("events_total", reason=event.reason.value)
        write = self._log.warning if event.warning else self._log.info
        subject = f" {event.subject}:" if event.subject else ""
        write("%s%s %s", event.reason.value, subject, event.message)
