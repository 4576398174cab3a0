"""What this machine and its files say when they are asked for the self-check."""

import importlib.metadata
import os
import platform
from pathlib import Path

from nodeagent import __version__
from nodeagent.core.errors import NodeAgentError
from nodeagent.core.settings import DaemonSettings
from nodeagent.daemon.lock import holder_of
from nodeagent.daemon.release import text_of
from nodeagent.daemon.selfcheck.node_checks import HELPERS, MANAGER, DaemonFound, DeviceFile, FolderTried
from nodeagent.daemon.selfcheck.settings_checks import Versions
from nodeagent.daemon.socket_api import ask


def device_files(folder: Path) -> list[DeviceFile]:
    """The device files of the driver in a folder such as /dev.

    Whether we may use one is asked of the kernel, without opening it: that would count as a user of the chip. The
    answer heeds the device rights of a container too.
    """
    chips = sorted(path for path in folder.glob("davinci[0-9]*") if path.name[len("davinci") :].isdigit())
    every = [*(folder / name for name in (MANAGER, *HELPERS)), *chips]
    return [DeviceFile(path.name, path.exists(), os.access(path, os.R_OK | os.W_OK)) for path in every]


def running_daemon(own: DaemonSettings) -> DaemonFound:
    """Who holds the lock, and who answers at the socket."""
    try:
        holder = holder_of(Path(own.lock)) if own.lock else ""
    except OSError:
        holder = ""  # the folder is not ours to look into; the socket's answer tells the same
    if not own.socket:
        return DaemonFound(holder, None, socket=False)
    try:
        chips = len(ask(Path(own.socket), ask="chips"))
        until_s = ask(Path(own.socket), ask="release", do="status")["until_s"]
        return DaemonFound(holder, chips, released="" if until_s is None else text_of(until_s))
    except NodeAgentError as error:
        return DaemonFound(holder, None, error.sentence)


def try_folder(path: Path) -> FolderTried:
    """Write a file, rename it, remove it, as the daemon replaces its own.

    Where the folder is missing this is tried in the one in which it would be made. Nothing is left behind.
    """
    exists = path.exists()
    place = path
    while not place.exists() and place != place.parent:
        place = place.parent
    first, second = (place / f".nodeagent-doctor-{os.getpid()}.{end}" for end in ("tmp", "try"))
    try:
        try:
            first.write_text("nodeagent doctor\n")
            first.replace(second)
        finally:
            for each in (first, second):
                each.unlink(missing_ok=True)
        status = os.statvfs(place)
    except OSError as error:
        return FolderTried(str(path), exists, 0, error.strerror or str(error))
    return FolderTried(str(path), exists, status.f_bavail * status.f_frsize)


def versions(api_server: str) -> Versions:
    """Of us and what we rest on. api_server: its version, empty = not known."""
    return Versions(
        __version__, platform.python_version(), _package("cffi"), _package("kubernetes"), platform.release(), api_server
    )


def _package(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""
