"""The planned release of the driver for an upgrade: closed libraries, held facts, a return by itself (decision 27).

The end is kept as a wall-clock time in `state_dir`, so that a daemon that is restarted meanwhile does not open the
library; while we run it is a monotonic time, so that a stepped wall clock moves nothing.
"""

import json
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Protocol

from nodeagent.core.clock import Clock
from nodeagent.core.errors import NodeAgentError
from nodeagent.core.files import read_text, replace_text
from nodeagent.core.instant import Instant
from nodeagent.core.telemetry import Event, EventReason, EventSink, Metrics
from nodeagent.daemon.state_file import StateFileError

log = logging.getLogger("nodeagent.release")

FILE_NAME = "release.json"
VERSION = 1
LIMIT_BYTES = 4096
MIN_S, MAX_S = 60, 4 * 3600
"""Bounds of one release. Longer upgrades ask again: a release moves the end of the one before."""


class Released(Protocol):
    """A part of the daemon that uses the driver. Both methods return at once, and may be called again."""

    def release(self) -> None:
        """Close libraries and device files, start nothing, keep what is known."""

    def resume(self) -> None:
        """Open them again and ask for everything."""

    @property
    def holds_driver(self) -> bool:
        """Something is not closed yet."""


@dataclass(frozen=True, slots=True)
class End:
    """When a release is over. wall_s: Unix seconds, for people and the file. mono_ms: what decides while we run."""

    wall_s: int
    mono_ms: int

    def left_ms(self, now: Instant) -> int:
        """Time left, 0 when it is over."""
        return max(0, self.mono_ms - now.mono_ms)


def end_of(duration_s: int, now: Instant) -> End:
    """The end of a release of `duration_s` seconds that begins now."""
    return End((now.wall_ms + 999) // 1000 + duration_s, now.mono_ms + duration_s * 1000)


def end_in_file(body: Any, now: Instant) -> End | None:
    """The end that an earlier run wrote down; None when it is over. One that is too far ahead is cut to 4 h from now.

    Raises StateFileError when the content is none of ours.
    """
    if not isinstance(body, dict) or body.get("version") != VERSION:
        raise StateFileError("it is not a release file of this version")
    until_s = body.get("until_s")
    if not isinstance(until_s, int) or isinstance(until_s, bool):
        raise StateFileError("it names no end")
    left_ms = min(until_s * 1000 - now.wall_ms, MAX_S * 1000)
    if left_ms <= 0:
        return None
    return End((now.wall_ms + left_ms) // 1000, now.mono_ms + left_ms)


def text_of(wall_s: int) -> str:
    """A moment as people read it."""
    return datetime.fromtimestamp(wall_s, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")


class DriverRelease:
    """Owner of the release. Commands come from any thread; `run` ends it in time.

    folder: where the end is kept, None = a restart ends the release. parts: who must let go, in this order.
    still_open: what has been told to end and has not, in words. clock: real time; a release is for people.
    """

    def __init__(
        self,
        folder: Path | None,
        parts: Sequence[Released],
        still_open: Callable[[], list[str]],
        clock: Clock,
        events: EventSink,
        metrics: Metrics,
    ) -> None:
        self._path = None if folder is None else folder / FILE_NAME
        self._parts = parts
        self._still_open = still_open
        self._clock = clock
        self._events = events
        self._metrics = metrics
        self._lock = threading.Lock()
        self._end: End | None = None
        self._kept = False
        self._stopping = threading.Event()
        self._wake = threading.Event()

    @property
    def until_s(self) -> int | None:
        """Unix time of the end; None while the driver is not released."""
        end = self._end
        return None if end is None else end.wall_s

    def restore(self) -> None:
        """Before the sources start: go on with a release that an earlier run began. Never raises."""
        end = self._read()
        if end is not None:
            with self._lock:
                self._kept = True
                self._hold(end, "as before this start, until")

    def begin(self, duration_s: int) -> None:
        """Release the driver for so many seconds from now, or move the end. Raises ValueError outside MIN_S..MAX_S."""
        if not MIN_S <= duration_s <= MAX_S:
            raise ValueError(f"a release takes {MIN_S} to {MAX_S} seconds, not {duration_s}")
        with self._lock:
            end = end_of(duration_s, self._clock.now())
            self._kept = self._write(end)
            self._hold(end, "until")

    def finish(self, why: str) -> bool:
        """Open the driver again; false when it was not released. why: for the log and the Event."""
        with self._lock:
            return self._return(why)

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The question `release` of the socket; `do` is `begin` (with `duration_s`), `end` or `status`."""
        do, duration_s = request.get("do"), request.get("duration_s")
        if do == "begin":
            if not isinstance(duration_s, int) or not MIN_S <= duration_s <= MAX_S:
                return {"refused": f"a release takes {MIN_S} to {MAX_S} seconds, not {duration_s!r}"}
            self.begin(duration_s)
        ended = do == "end" and self.finish("an operator ended the release")
        return {**self.status(), "ended": ended}

    def status(self) -> dict[str, Any]:
        """released; until_s: Unix time or None; left_s; open: what is not closed yet; kept: survives a restart."""
        end = self._end
        if end is None:
            return {"released": False, "until_s": None, "left_s": None, "open": [], "kept": False}
        still_open = ["a driver session that is being closed"] if any(p.holds_driver for p in self._parts) else []
        return {
            "released": True,
            "until_s": end.wall_s,
            "left_s": end.left_ms(self._clock.now()) // 1000,
            "open": still_open + self._still_open(),
            "kept": self._kept,
        }

    def run(self) -> None:
        """End each release when its time is over, until `stop`."""
        while not self._stopping.is_set():
            self._wake.clear()
            with self._lock:
                left_ms = None if self._end is None else self._end.left_ms(self._clock.now())
                if left_ms == 0:
                    self._return("its time is over")
                    left_ms = None
            self._wake.wait(None if left_ms is None else self._clock.real_s(left_ms / 1000))

    def stop(self) -> None:
        """Make `run` return. A release stays written down for the next start."""
        self._stopping.set()
        self._wake.set()

    # -- inside, under the lock --------------------------------------------------------

    def _hold(self, end: End, how: str) -> None:
        self._end = end
        self._measure()
        for part in self._parts:
            part.release()
        message = f"{how} {text_of(end.wall_s)}: the library is let go, what was published is held, nothing new is seen"
        self._events.emit(Event(EventReason.DRIVER_RELEASED, message, warning=True))
        self._wake.set()

    def _return(self, why: str) -> bool:
        if self._end is None:
            return False
        self._end = None
        self._measure()
        self._forget()
        for part in self._parts:
            part.resume()
        message = f"{why}: the library is opened again and every chip queried"
        self._events.emit(Event(EventReason.DRIVER_RETURNED, message))
        self._wake.set()
        return True

    def _measure(self) -> None:
        self._metrics.set("driver_released", self._end is not None)
        self._metrics.set("driver_release_end_timestamp_seconds", 0 if self._end is None else self._end.wall_s)

    # -- the file --------------------------------------------------------------------------

    def _read(self) -> End | None:
        if self._path is None:
            return None
        try:
            if not self._path.exists():
                return None
            body = json.loads(read_text(self._path, LIMIT_BYTES, StateFileError))
            end = end_in_file(body, self._clock.now())
        except (OSError, ValueError, RecursionError, OverflowError, NodeAgentError) as error:
            self._metrics.count("state_file_errors_total")
            log.warning("release file is not usable, the driver is not released path=%s reason=%s", self._path, error)
            return None
        if end is None:
            log.info("a release of the driver ended while we did not run")
            self._forget()
        elif end.wall_s != body["until_s"]:
            self._write(end)  # else each restart would begin the longest release anew
        return end

    def _write(self, end: End) -> bool:
        if self._path is None:
            return False
        try:
            replace_text(self._path, json.dumps({"version": VERSION, "until_s": end.wall_s}))
        except OSError as error:
            self._metrics.count("state_file_errors_total")
            log.warning("release file cannot be written, a restart ends it path=%s reason=%s", self._path, error)
            return False
        return True

    def _forget(self) -> None:
        try:
            if self._path is not None:
                self._path.unlink(missing_ok=True)
        except OSError as error:
            self._metrics.count("state_file_errors_total")
            log.warning("release file cannot be removed, a restart would hold path=%s reason=%s", self._path, error)
