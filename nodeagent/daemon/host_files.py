"""What stays behind of a daemon on its host: state, lock and socket. Only files that it writes are ever removed."""

from collections.abc import Iterable
from pathlib import Path

from nodeagent.core.settings import Settings
from nodeagent.daemon import release, shadow, state_file
from nodeagent.daemon.lock import holder_of
from nodeagent.publish import public_fault_file
from nodeagent.publish.leftovers import Leftover, What

_FOLDER = "nodeagent"
"""A folder of another name was somebody else's idea, and stays."""


def host_leftovers(settings: Settings) -> list[Leftover]:
    """Files and folders of the daemon with these settings that are on this machine.

    They are kept while a daemon holds the lock, or when that cannot be told.
    """
    own = settings.daemon
    kept = _running(Path(own.lock)) if own.lock else ""
    files = [Path(each) for each in (own.lock, own.socket) if each]
    if own.state_dir:
        for name in (state_file.FILE_NAME, release.FILE_NAME, shadow.FILE_NAME, public_fault_file.FILE_NAME):
            files += [Path(own.state_dir) / name, Path(own.state_dir) / f".{name}.tmp"]
    folders = dict.fromkeys([file.parent for file in files])
    found = [file for file in files if file.is_symlink() or file.exists()]
    found += [folder for folder in folders if folder.is_dir() and folder.name == _FOLDER]
    return [Leftover(What.FILE, str(path), kept=kept) for path in found]


def remove_host_files(leftovers: Iterable[Leftover]) -> list[tuple[Leftover, str]]:
    """Remove those that are not kept, folders when they are empty. With each what is wrong; empty = it is gone."""
    done = []
    for each in leftovers:
        if each.kept:
            continue
        path, problem = Path(each.place), ""
        try:
            if path.is_dir() and not path.is_symlink():
                path.rmdir()
            else:
                path.unlink(missing_ok=True)
        except OSError as error:
            problem = error.strerror or str(error)
        done.append((each, problem))
    return done


def _running(lock: Path) -> str:
    try:
        holder = holder_of(lock)
    except OSError as error:
        return f"whether a daemon runs cannot be told: {lock}: {error.strerror}"
    return f"a daemon still runs here with pid {holder}; stop it first" if holder else ""
