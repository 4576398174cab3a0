"""Reading the state files of storage clients, which are procfs files of their kernel modules (node-faults 11.1, 12).

A file that anybody but root may change could take a node out of service or hide a fault, so who owns it is checked on
the descriptor that is then read: what is put into its place meanwhile is never read. Folders on the way are trusted.
"""

import errno
import os
import stat
from collections.abc import Collection
from pathlib import Path

from nodeagent.core.errors import StorageStateError
from nodeagent.core.storage import StorageClient, StorageInstance
from nodeagent.drivers.storage_text import parse_state

LIMIT_BYTES = 64 * 1024
"""Largest file that is read; 21 instances take about 2 KiB."""
ROOT_ONLY = frozenset({0})
FORBIDDEN_MODE = 0o133
"""Mode bits that the file must not have (11.1): execute for its owner, write and execute for everybody else."""
_MAX_LINKS = 8
_PLACES = {
    StorageClient.DPC: ("odcs", "dpc_status_check"),
    StorageClient.DTFS: ("dtfs", "dtfs_status_check"),
}


class StorageFileMissingError(StorageStateError):
    """There is no state file: the kernel module of the client is not loaded."""


def state_file(proc: Path, client: StorageClient) -> Path:
    """Where a client shows its state, below the place at which /proc of the host is seen (11.1, 12)."""
    return proc.joinpath(*_PLACES[client])


def read_client(
    proc: Path, client: StorageClient, trusted_uids: Collection[int] = ROOT_ONLY
) -> tuple[StorageInstance, ...]:
    """What the state file of a client says now; may hang as long as its kernel module does.

    trusted_uids: who may own the file and links to it; for dry runs, which write one of their own.
    Raises StorageFileMissingError, or StorageStateError for everything else; the sentence names the file.
    """
    path = state_file(proc, client)
    content = read_trusted(path, trusted_uids)
    try:
        return parse_state(client, content)
    except StorageStateError as problem:
        raise StorageStateError(f"{path} is not understood, {problem.sentence}", problem.hint) from None


def read_trusted(path: Path, trusted_uids: Collection[int] = ROOT_ONLY) -> bytes:
    """The content of a regular file that only a trusted user can change.

    A symbolic link must itself belong to a trusted user, and so must each further one; an absolute one leads through
    our own view of the file system. A FIFO, a device or a folder is refused and not waited for. st_size is not asked,
    it is 0 in procfs. Raises as `read_client`.
    """
    try:
        file = _open_trusted(path, trusted_uids)
        try:
            return _read_all(file, path)
        finally:
            os.close(file)
    except OSError as problem:
        reason = problem.strerror or str(problem)
        if problem.errno in (errno.ENOENT, errno.ENOTDIR):
            raise StorageFileMissingError(f"{path} does not exist") from None
        raise StorageStateError(f"{path} cannot be read: {reason}") from problem
    except ValueError as problem:  # a path with a NUL
        raise StorageStateError(f"{path} cannot be read: {problem}") from problem


def _open_trusted(path: Path, trusted_uids: Collection[int]) -> int:
    """A descriptor of the checked file at the end of all links."""
    where = str(path)
    for _ in range(_MAX_LINKS + 1):
        # O_PATH opens nothing in the sense of a device or FIFO; what is seen and read through it is one and the same.
        seen = os.open(where, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            facts = os.fstat(seen)
            if not stat.S_ISLNK(facts.st_mode):
                _check(facts, path, trusted_uids)
                return _open_again(where, path, trusted_uids)
            _check_owner(facts, path, "a symbolic link that", trusted_uids)
            where = os.path.join(os.path.dirname(where), os.readlink("", dir_fd=seen))
        finally:
            os.close(seen)
    raise StorageStateError(f"{path} cannot be read: more than {_MAX_LINKS} symbolic links in a row")


def _open_again(where: str, path: Path, trusted_uids: Collection[int]) -> int:
    """Open for reading, and check what was opened: it may have been put there since the first look."""
    file = os.open(where, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        _check(os.fstat(file), path, trusted_uids)
        os.set_blocking(file, True)  # a module may answer EAGAIN otherwise
    except BaseException:
        os.close(file)
        raise
    return file


def _check(facts: os.stat_result, path: Path, trusted_uids: Collection[int]) -> None:
    if not stat.S_ISREG(facts.st_mode):
        raise StorageStateError(f"{path} is not a regular file")
    _check_owner(facts, path, "a file that", trusted_uids)
    if mode := stat.S_IMODE(facts.st_mode) & FORBIDDEN_MODE:
        raise StorageStateError(
            f"{path} is not trusted: its mode {stat.S_IMODE(facts.st_mode):04o} has {mode:03o}, which it must not have"
        )


def _check_owner(facts: os.stat_result, path: Path, what: str, trusted_uids: Collection[int]) -> None:
    if facts.st_uid not in trusted_uids:
        allowed = " or ".join(map(str, sorted(trusted_uids)))
        raise StorageStateError(f"{path} is not trusted: it is {what} belongs to uid {facts.st_uid}, not to {allowed}")


def _read_all(file: int, path: Path) -> bytes:
    content = b""
    while len(content) <= LIMIT_BYTES:
        part = os.read(file, LIMIT_BYTES + 1 - len(content))
        if not part:
            return content
        content += part
    raise StorageStateError(f"{path} is larger than the limit of {LIMIT_BYTES} bytes")
