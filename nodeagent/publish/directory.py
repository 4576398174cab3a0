"""Publish into a directory of files: `DIR/<namespace>/<name>.yaml`.

Without a cluster these files are the published state, and our memory over a restart. A reader never sees half a
file: the text goes into a temporary file beside it, which then takes its name.
"""

import errno
import logging
import os
from pathlib import Path

from nodeagent.core.errors import PublishError, ReadBackError
from nodeagent.core.files import read_text
from nodeagent.publish.manifest import from_yaml, to_yaml
from nodeagent.publish.targets import ObjectChanged, identity

_LOG = logging.getLogger(__name__)
_HINTS = {
    errno.ENOSPC: "the disk is full: make room, the write is repeated",
    errno.EDQUOT: "the disk quota is used up: make room, the write is repeated",
    errno.EFBIG: "the file-size limit of this process is too small",
    errno.EACCES: "give this user the right to write there",
    errno.EPERM: "give this user the right to write there",
    errno.EROFS: "the file system is mounted read-only",
    errno.ENOTDIR: "a part of the path is a file, not a directory",
}


_EDIT_PERIOD_S = 1.0

_Signature = tuple[int, int, int]


class DirectoryTarget:
    """Objects as files below `root`, one folder per namespace."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[Path, _Signature | None] = {}
        self._cleaned: set[Path] = set()

    def read(self, namespace: str, name: str) -> dict[str, object] | None:
        """The object in its file; None when there is no such file; an empty map when its content is damaged.

        A damaged file does not get better by waiting, so it counts as an object that says nothing: the next write
        replaces it. Raises ReadBackError when the file cannot be read just now.
        """
        path = self._path(namespace, name)
        self._known[path] = _signature(path)
        try:
            if not path.exists():
                return None
        except OSError as error:
            raise ReadBackError(f"{path} cannot be read: {error.strerror or error}") from error
        try:
            with path.open("rb"):
                pass  # a file that this user may not read is no damaged file
        except OSError as error:
            raise ReadBackError(f"{path} cannot be read: {error.strerror or error}") from error
        try:
            return from_yaml(read_text(path, error=ReadBackError))
        except ReadBackError as error:
            _LOG.warning("event=damaged_object_found path=%r problem=%r", str(path), error.sentence)
            return {}

    def write(self, obj: dict[str, object]) -> None:
        """Replace the file in one step. Raises PublishError with a hint when the file system refuses."""
        namespace, name = identity(obj)
        path = self._path(namespace, name)
        text = to_yaml(obj)
        if (found := self.edited(namespace, name)) is not None:
            raise ObjectChanged(f"{path} was changed by somebody else", found)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._remove_leftovers(path.parent)
            self._known[path] = self._replace(path, text)
        except OSError as error:
            hint = _HINTS.get(error.errno or 0, "")
            raise PublishError(f"{path} cannot be written: {error.strerror or error}", hint) from error

    def delete(self, namespace: str, name: str) -> None:
        """Remove the file. Raises PublishError with a hint when the file system refuses."""
        path = self._path(namespace, name)
        if (found := self.edited(namespace, name)) is not None:
            raise ObjectChanged(f"{path} was changed by somebody else", found)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            hint = _HINTS.get(error.errno or 0, "")
            raise PublishError(f"{path} cannot be removed: {error.strerror or error}", hint) from error
        self._known[path] = None

    def edited(self, namespace: str, name: str) -> dict[str, object] | None:
        """The object when its file is not the one that we read or wrote last; a removed file is no edit."""
        path = self._path(namespace, name)
        now = _signature(path)
        if path not in self._known or now is None or now == self._known[path]:
            return None
        known = self._known[path]
        try:
            return self.read(namespace, name)
        except ReadBackError:
            self._known[path] = known  # not seen yet: asked again
            return None

    def edit_period_s(self) -> float | None:
        """Looking at a file costs nothing."""
        return _EDIT_PERIOD_S

    def describe(self) -> str:
        """`directory <root>`."""
        return f"directory {self._root}"

    def _path(self, namespace: str, name: str) -> Path:
        return self._root / namespace / f"{name}.yaml"

    def _replace(self, path: Path, text: str) -> _Signature | None:
        """The signature is taken before the file has its name, so that a later one is somebody else's for sure."""
        temporary = path.with_name(f".{path.name}.tmp")
        try:
            with temporary.open("w", encoding="utf-8") as stream:
                stream.write(text)
                stream.flush()
                # Without this a power cut can leave an empty file under the final name on some file systems.
                os.fdatasync(stream.fileno())
            signature = _signature(temporary)
            temporary.replace(path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        return signature

    def _remove_leftovers(self, folder: Path) -> None:
        """Remove temporary files of a process that was killed while writing; once per folder."""
        if folder not in self._cleaned:
            for leftover in folder.glob(".*.yaml.tmp"):
                leftover.unlink(missing_ok=True)
            self._cleaned.add(folder)


def _signature(path: Path) -> _Signature | None:
    """What changes when somebody writes a file: inode, time, size. None when it cannot be looked at."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
