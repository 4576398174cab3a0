"""Verdicts on what this machine has: device files, the driver's library, chips, folders, a daemon. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from nodeagent.core.errors import NodeAgentError
from nodeagent.daemon.oneshot import Look
from nodeagent.daemon.selfcheck.check import Check, fail, failed, ok, shortened, skipped, warn

DEVICE_FILES, USER, LIBRARY, CHIPS, DAEMON = "device-files", "user", "library", "chips", "daemon"
SWITCH_LIBRARY = "switch-library"
STATE_FOLDER, TARGET_FOLDER = "state-folder", "target-folder"

MANAGER = "davinci_manager"
"""Without this device file nothing works (native-abi 18.1)."""
HELPERS = ("devmm_svm", "hisi_hdc")
"""Memory and message channel of the driver; the vendor's container runtime mounts them beside the manager."""


@dataclass(frozen=True, slots=True)
class DeviceFile:
    """A device file, expected or found. name: below /dev. usable: we may read and write it."""

    name: str
    exists: bool = True
    usable: bool = True


@dataclass(frozen=True, slots=True)
class LibraryFound:
    """A library of the driver. trusted: its owner and mode were checked. generations: v1, v2, by the symbols it has;
    none for the switch library, which has but one."""

    path: str
    trusted: bool
    generations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DaemonFound:
    """holder: process id of who holds the lock, empty = nobody. chips: of the daemon that answers at the socket,
    None = none answers. silence: why none does. socket: a socket is set. released: until when the daemon leaves the
    driver alone for an upgrade, empty = it does not."""

    holder: str
    chips: int | None
    silence: str = ""
    socket: bool = True
    released: str = ""


@dataclass(frozen=True, slots=True)
class FolderTried:
    """What writing to a folder gave. problem: empty = a file was written and renamed. exists: it was there before."""

    path: str
    exists: bool
    free_bytes: int
    problem: str = ""


def check_device_files(files: Sequence[DeviceFile], pretended: bool) -> Check:
    """files: all that are expected and all of chips that were found. pretended: the node is a mock."""
    if pretended:
        return skipped(DEVICE_FILES, "the node is pretended")
    chips = [file for file in files if file.name not in (MANAGER, *HELPERS)]
    missing = {file.name for file in files if not file.exists}
    refused = [f"/dev/{file.name}" for file in files if file.exists and not file.usable]
    if MANAGER in missing or not chips:
        absent = [*(["/dev/davinci<N>"] if not chips else []), *([f"/dev/{MANAGER}"] if MANAGER in missing else [])]
        return fail(
            DEVICE_FILES,
            f"there is no {' and no '.join(absent)}",
            "load the driver on the host; in a container mount /dev whole and run privileged",
        )
    if refused:
        return fail(
            DEVICE_FILES,
            f"we may not read and write {', '.join(shortened(refused))}",
            "run as root and, in a container, privileged: a mounted device file alone gives no right to use it",
        )
    if missing:
        names = ", ".join(f"/dev/{name}" for name in sorted(missing))
        return warn(DEVICE_FILES, f"there is no {names}", "some queries of the driver may fail; mount /dev whole")
    return ok(DEVICE_FILES, f"{len(chips)} chips, manager and channels can be read and written")


def check_user(uid: int, pretended: bool) -> Check:
    """The driver lets nobody but root ask most things (native-abi 3.1, -8002)."""
    if uid == 0:
        return ok(USER, "root")
    if pretended:
        return skipped(USER, f"uid {uid}; a pretended node asks for no right")
    return warn(USER, f"uid {uid}, not root: the driver refuses many queries (-8002)", "run as root")


def check_library(found: LibraryFound | NodeAgentError, wanted: str, pretended: bool) -> Check:
    """wanted: the generation that the settings name: auto, v1 or v2."""
    if isinstance(found, NodeAgentError):
        return failed(LIBRARY, found)
    detail = f"{found.path}, DCMI {' and '.join(found.generations)}"
    if wanted != "auto" and wanted not in found.generations:
        hint = f"set driver.generation to auto or {found.generations[0]}"
        return fail(LIBRARY, f"{detail}; the settings ask for {wanted}", hint)
    return _owned(LIBRARY, detail, found.trusted, pretended)


def check_switch_library(found: LibraryFound | NodeAgentError, pretended: bool) -> Check:
    """Of an A3. Without the library its switches are unknown, and the chips are watched all the same."""
    if isinstance(found, NodeAgentError):
        hint = "set switches.enabled=false if this board has no LingQu switches" + (
            f"; else {found.hint}" if found.hint else ""
        )
        return warn(SWITCH_LIBRARY, f"switch faults are not watched: {found.code}: {found.sentence}", hint)
    return _owned(SWITCH_LIBRARY, f"{found.path}, all 3 functions", found.trusted, pretended)


def _owned(name: str, detail: str, trusted: bool, pretended: bool) -> Check:
    """A library that can be loaded, by who can write to it."""
    if trusted:
        return ok(name, f"{detail}, only root can write to it")
    if pretended:
        return ok(name, f"{detail}, the mock")
    return warn(
        name,
        f"{detail}; whether others than root can write to it was not checked",
        "set driver.trust_library=false: it is for dry runs and tests only",
    )


def check_chips(found: Look | NodeAgentError) -> Check:
    """found: one look at the node."""
    if isinstance(found, NodeAgentError):
        return failed(CHIPS, found)
    product = found.view.product
    detail = (
        f"{len(found.view.chips)} chips, {product.family.value} ({product.chip_name}),"
        f" driver {product.driver_version or 'unknown'}, DCMI {product.generation}"
    )
    troubles = [*found.problems, *(f"chip {chip} gives no answer: {why}" for chip, why in found.silent.items())]
    if troubles:
        return warn(CHIPS, "\n".join([detail, *shortened(troubles)]), "look at these chips with `npu-smi info`")
    return ok(CHIPS, detail)


def check_daemon(found: DaemonFound) -> Check:
    """Whether a daemon of this node runs; that none does is no trouble."""
    who = f"process {found.holder}" if found.holder else "a daemon"
    if found.chips is not None:
        released = f"; the driver is released until {found.released}" if found.released else ""
        return ok(DAEMON, f"{who} runs and knows {found.chips} chips{released}")
    if found.holder and found.socket:
        return warn(
            DAEMON,
            f"process {found.holder} holds the lock, but does not answer: {found.silence}",
            "it starts just now, hangs, or has another daemon.socket; look at its log",
        )
    return ok(DAEMON, f"process {found.holder} holds the lock" if found.holder else "none runs on this node")


def check_folder(name: str, setting: str, tried: FolderTried | None, needed_bytes: int) -> Check:
    """setting: where the folder is named. tried: None = none is set. needed_bytes: below this it is too full."""
    if tried is None:
        return skipped(name, f"{setting} is empty")
    if tried.problem:
        hint = f"make the folder, mount it writable, or set {setting} to another one"
        return fail(name, f"{tried.path} cannot be written: {tried.problem}", hint)
    free = f"{tried.free_bytes // (1024 * 1024)} MiB free"
    if tried.free_bytes < needed_bytes:
        needed = f"{needed_bytes // (1024 * 1024)} MiB"
        return warn(name, f"{tried.path} has only {free}, less than {needed}", "make room on this file system")
    return ok(name, f"{tried.path}{'' if tried.exists else ' can be made'}, {free}")
