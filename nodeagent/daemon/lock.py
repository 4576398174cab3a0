"""One daemon of a node at a time: a locked file. The second waits until the first has ended (decision 23).

The kernel drops the lock when the process that holds it ends, however it ends.
"""

import errno
import fcntl
import logging
import os
import threading
from pathlib import Path

log = logging.getLogger("nodeagent.lock")

_POLL_S = 0.2


class NodeLock:
    """The lock of one node. path: None = no lock is wanted."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file: int | None = None
        self._waits = False

    @property
    def waits(self) -> bool:
        """Another daemon holds the lock, and we wait for its end."""
        return self._waits

    def acquire(self, stopping: threading.Event) -> bool:
        """Wait for the lock; false when `stopping` was set before we had it.

        A file that cannot be made or locked is said once, and we go on without: nobody else could hold it either.
        """
        if self._path is None:
            return True
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            return self._wait(self._file, stopping)
        except OSError as error:
            log.warning(
                "no lock, a second daemon of this node would not be noticed path=%s problem=%s", self._path, error
            )
            self._waits = False
            return True

    def release(self) -> None:
        """Give the lock up; the file stays, so that nobody locks a file that is gone."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _wait(self, file: int, stopping: threading.Event) -> bool:
        while not stopping.is_set():
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno not in (errno.EAGAIN, errno.EACCES):
                    raise
                if not self._waits:
                    self._waits = True
                    log.warning(
                        "another daemon of this node runs, we wait for its end path=%s pid=%s",
                        self._path,
                        _holder(file),
                    )
                stopping.wait(_POLL_S)
                continue
            if self._waits:
                log.info("the other daemon has ended, we go on path=%s", self._path)
            self._waits = False
            os.ftruncate(file, 0)
            os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
            return True
        return False


def _holder(file: int) -> str:
    return os.pread(file, 32, 0).decode("ascii", "replace").strip() or "unknown"


def holder_of(path: Path) -> str:
    """Process id of the daemon that holds the lock; empty = nobody does.

    Taken and given back at once: a daemon that starts in that very moment waits for one turn. Raises OSError when
    that cannot be told; a missing file is held by nobody.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return ""
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return ""
    except BlockingIOError:
        return _holder(file)
    finally:
        os.close(file)
