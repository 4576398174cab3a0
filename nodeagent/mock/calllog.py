"""The log of library calls: a bounded ring, optionally also a file of JSON lines."""

import json
import threading
from collections import deque
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from nodeagent.core.errors import MockError


@dataclass(frozen=True, slots=True)
class LoggedCall:
    """One call: name as called, integer arguments, return code, moment of the answer, calling process."""

    mono_ns: int
    wall_ms: int
    pid: int
    function: str
    args: tuple[int, ...]
    rc: int


class CallLog:
    """Records calls while it is on; safe to use from several threads."""

    def __init__(self, *, on: bool, path: Path | None = None, capacity: int = 20_000) -> None:
        self.on = on or path is not None
        self._lock = threading.Lock()
        self._calls: deque[LoggedCall] = deque(maxlen=capacity)
        self._file: IO[str] | None = None
        if path is not None:
            try:
                self._file = path.open("a", encoding="utf-8", buffering=1)
            except OSError as problem:
                raise MockError(f"{path}: cannot be written: {problem.strerror}") from None

    def add(self, call: LoggedCall) -> None:
        """Record a call if the log is on."""
        if not self.on:
            return
        with self._lock:
            self._calls.append(call)
            if self._file is not None:
                self._file.write(json.dumps(asdict(call)) + "\n")

    def last(self, count: int, function: str | None = None) -> list[dict[str, object]]:
        """The newest `count` calls, oldest first; only those of one function if named."""
        with self._lock:
            calls = [call for call in self._calls if function in (None, call.function)]
        return [asdict(call) for call in calls[-count:]] if count else []

    def clear(self) -> None:
        """Forget what the ring holds; the file keeps it."""
        with self._lock:
            self._calls.clear()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None
