"""A log file for the offline FaultDiag of MindCluster, which reads alarms from the log of NodeD (node-faults 18.2).

One line for each alarm when it appears, and again every 30 minutes while it is present; alarms that no table lists are
written too, as upstream does. The file is a service to another tool: whatever is wrong with it is said once, and the
line is tried again with the next poll.
"""

import contextlib
import logging
import os
import stat
import threading
from collections import deque
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from nodeagent.core.alarms import Alarm
from nodeagent.core.clock import Clock
from nodeagent.core.instant import Instant
from nodeagent.policy.board import AlarmKey, BoardState

log = logging.getLogger("nodeagent.fault_diag")

REPEAT_MS = 30 * 60 * 1000
MAX_BYTES = 20 * 1024 * 1024
"""Size at which NodeD rotates its log too."""
KEPT_BACKUPS = 3
_FILE_MODE, _BACKUP_MODE, _FOLDER_MODE = 0o640, 0o400, 0o750
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""No link is followed and no pipe is waited for: the folder is on the host, and others may write there."""
BEAT_PERIOD_S = 10.0


def line_of(alarm: Alarm, at: Instant, process: int) -> str:
    """The line of an alarm in the form of NodeD, without its end. process: number in the place of the thread's.

    Local time, as in all logs of a node that FaultDiag sorts together.
    """
    time = datetime.fromtimestamp(at.wall_ms / 1000).strftime("%Y/%m/%d %H:%M:%S.%f")
    said = f"[device type: {alarm.device_type}]-[device id: {alarm.device_id}]-[error code: {alarm.text}]"
    return f"[INFO]     {time} {process}     ipmi:206    get fault event, {said}"


class FaultDiagLog:
    """Writes the file in a thread of its own, so that a disk that hangs delays nothing else.

    path: the file, whose name FaultDiag wants to be `noded.log`. max_bytes: size before it is put aside.
    """

    def __init__(self, path: Path, clock: Clock, max_bytes: int = MAX_BYTES) -> None:
        self._path = path
        self._clock = clock
        self._max_bytes = max_bytes
        self._newest: deque[BoardState] = deque(maxlen=1)
        self._wake = threading.Event()
        self._stopping = False
        self._written: dict[AlarmKey, int] = {}
        self._failing = False

    def submit(self, state: BoardState) -> None:
        """Take the state after a good poll; the latest wins, never blocks."""
        self._newest.append(state)
        self._wake.set()

    def stop(self) -> None:
        """Make `run` return."""
        self._stopping = True
        self._wake.set()

    def run(self) -> None:
        """Write whenever there is something new, until `stop`."""
        while not self._stopping:
            self._wake.wait(BEAT_PERIOD_S)
            self._wake.clear()
            if self._newest:
                self._take(self._newest.popleft())

    def _take(self, state: BoardState) -> None:
        now = self._clock.now()
        self._written = {key: ms for key, ms in self._written.items() if key in state.sightings}
        due = [
            key for key in state.sightings if key not in self._written or now.mono_ms - self._written[key] >= REPEAT_MS
        ]
        if not due:
            return
        try:
            self._append(line_of(state.sightings[key].alarm, now, os.getpid()) for key in due)
        except OSError as problem:
            if not self._failing:
                self._failing = True
                log.warning("the file for FaultDiag cannot be written, which is tried again: %s", problem)
            return
        self._written |= dict.fromkeys(due, now.mono_ms)
        if self._failing:
            self._failing = False
            log.info("the file for FaultDiag is written again path=%s", self._path)

    def _append(self, lines: Iterable[str]) -> None:
        """All lines or none. Raises OSError."""
        content = "".join(line + "\n" for line in lines).encode()
        self._path.parent.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
        self._rotate(len(content))
        descriptor = os.open(self._path, _FLAGS, _FILE_MODE)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(f"{self._path} is not a regular file")
            os.fchmod(descriptor, _FILE_MODE)
            size = os.fstat(descriptor).st_size
            try:
                done = 0
                while done < len(content):
                    done += os.write(descriptor, content[done:])
            except OSError:
                os.ftruncate(descriptor, size)  # half a line would spoil the next one
                raise
        finally:
            os.close(descriptor)

    def _rotate(self, more_bytes: int) -> None:
        """Put a file aside that would grow too large, under the name that FaultDiag knows of NodeD's backups."""
        try:
            size = self._path.lstat().st_size
        except FileNotFoundError:
            return
        if size == 0 or size + more_bytes <= self._max_bytes:
            return
        wall_ms = self._clock.now().wall_ms
        time = datetime.fromtimestamp(wall_ms / 1000).strftime("%Y-%m-%dT%H-%M-%S") + f".{wall_ms % 1000:03d}"
        backup = self._path.with_name(f"{self._path.stem}-{time}{self._path.suffix}")
        self._path.rename(backup)
        backup.chmod(_BACKUP_MODE)
        pattern = f"{self._path.stem}-????-??-??T??-??-??.???{self._path.suffix}"
        for old in sorted(self._path.parent.glob(pattern))[:-KEPT_BACKUPS]:
            with contextlib.suppress(OSError):
                old.unlink()
