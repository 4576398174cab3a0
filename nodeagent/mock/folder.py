"""The files of a served mock node, in a folder beside its socket.

`alarms.txt` is the board as the module of ipmi_sim reads it; `proc/` is what storage clients have below /proc.
"""

import os
import shutil
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from nodeagent.core.errors import MockError
from nodeagent.mock.alarm_file import format_alarm_file
from nodeagent.mock.storage import PROC_PATHS

if TYPE_CHECKING:  # programs that only want to know where the files are need no model
    from nodeagent.mock.node import MockNode


def folder_of(socket_path: str | Path) -> Path:
    """The folder of the node that is served at this socket."""
    return Path(f"{socket_path}.d")


def alarm_file_of(socket_path: str | Path) -> Path:
    """Its alarm file; there is none while the node has no BMC."""
    return folder_of(socket_path) / "alarms.txt"


def proc_of(socket_path: str | Path) -> Path:
    """What stands for /proc of that node (`storage.proc`)."""
    return folder_of(socket_path) / "proc"


class NodeFolder:
    """Keeps the files as the node is. Not thread-safe.

    socket_path: of the server, which must own it already: what a killed predecessor left there is removed.
    Raises MockError when the folder cannot be made.
    """

    def __init__(self, socket_path: str | Path) -> None:
        self._alarms = alarm_file_of(socket_path)
        self._proc = proc_of(socket_path)
        self._folder = folder_of(socket_path)
        self._shown: dict[Path, tuple[str, int] | None] = {}
        try:
            if self._folder.is_symlink() or (self._folder.exists() and not _is_ours(self._folder)):
                raise MockError(f"{self._folder} is in the way", "remove it or choose another --socket")
            self.remove()
            self._folder.mkdir()
            for path in PROC_PATHS.values():
                (self._proc / path).parent.mkdir(parents=True)
        except OSError as problem:
            raise MockError(f"{self._folder}: cannot be made: {problem.strerror}") from None

    def show(self, node: "MockNode") -> None:
        """Make the files say what holds now, each changed one in one step. Raises OSError."""
        board = node.board
        self._put(self._alarms, (format_alarm_file(board.state), 0o644) if board.present else None)
        for client, path in PROC_PATHS.items():
            file = node.storage.files[client]
            self._put(self._proc / path, (file.text, file.mode) if file else None)

    def remove(self) -> None:
        """Take the folder away."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _put(self, path: Path, wanted: tuple[str, int] | None) -> None:
        if self._shown.get(path) == wanted:
            return
        if wanted is None:
            path.unlink(missing_ok=True)
        else:
            text, mode = wanted
            temporary = path.with_name(f".{path.name}.tmp")
            temporary.write_text(text, encoding="utf-8")
            temporary.chmod(mode)
            temporary.replace(path)
        self._shown[path] = wanted


def _is_ours(path: Path) -> bool:
    found = path.stat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
