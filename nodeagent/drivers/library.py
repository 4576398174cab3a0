"""Find a vendor library and refuse one that somebody else could have put there (native-abi 2.1)."""

import os
import stat
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from nodeagent.core.errors import LibraryError

DCMI_FILE_NAME = "libdcmi.so"
LINGQU_FILE_NAME = "liblingqu-dcmi.so"
_MAX_PATH = 1024
_MAX_DEPTH = 20
_ELF_HEAD = 20
_MACHINES = {3: "x86", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv64", 258: "loongarch64"}
_LDCONFIG = "/sbin/ldconfig"
_LDCONFIG_DEADLINE_S = 10
_HINT = (
    "mount the driver directory /usr/local/Ascend/driver, set LD_LIBRARY_PATH to its lib64 folders,"
    " or name the file in {setting}"
)


@dataclass(frozen=True, slots=True)
class LibrarySettings:
    """library: path, empty = search. trust: skip the ownership check. Deadlines in real seconds.

    environment: variables for the driver host beside our own.
    """

    library: str = ""
    trust: bool = False
    call_deadline_s: float = 5.0
    init_deadline_s: float = 120.0
    environment: Mapping[str, str] = field(default_factory=dict)

    def path(self, file_name: str, *, setting: str = "driver.library") -> str:
        """Where the library lies; its ownership is checked unless the settings trust it. Raises LibraryError."""
        if self.library:
            return explicit_library(self.library, trust=self.trust, setting=setting)
        return find_library(file_name, os.environ, setting=setting)


def find_library(file_name: str, environ: Mapping[str, str], *, setting: str = "driver.library") -> str:
    """Absolute path of the library: first LD_LIBRARY_PATH, then the loader's cache.

    Each candidate must pass `check_ownership`. setting: where people can name a path instead. Raises LibraryError with
    the reasons of both stages.
    """
    reasons = []
    for stage in (_from_environment, _from_cache):
        try:
            return stage(file_name, environ)
        except LibraryError as error:
            reasons.append(error.sentence)
    raise LibraryError(f"{file_name} was not found: " + "; ".join(reasons), _HINT.format(setting=setting))


def explicit_library(path: str, *, trust: bool, setting: str = "driver.library") -> str:
    """A path that the operator named. trust=True skips the ownership check (dry runs, tests)."""
    if not os.path.isfile(path):
        raise LibraryError(f"{path} does not exist or is no file", f"correct {setting}")
    return os.path.realpath(path) if trust else check_ownership(path)


def check_ownership(path: str) -> str:
    """The resolved path, if it and every folder above it belong to root and only root can write to them.

    Raises LibraryError naming the offending path, what was found and what is wanted.
    """
    resolved = os.path.realpath(path)
    if resolved != os.path.abspath(path) and os.lstat(path).st_uid != 0:
        raise LibraryError(f"the link {path} belongs to uid {os.lstat(path).st_uid}, not to root", _fix(path))
    current = Path(resolved)
    for depth, step in enumerate([current, *current.parents]):
        if depth > _MAX_DEPTH:
            raise LibraryError(f"{resolved} lies more than {_MAX_DEPTH} folders deep", "move it closer to /")
        status = os.stat(step)
        if status.st_uid != 0:
            owner = status.st_uid
            raise LibraryError(f"{step} belongs to uid {owner}, not to root (needed for {resolved})", _fix(step))
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            mode = stat.S_IMODE(status.st_mode)
            raise LibraryError(f"{step} can be written by others, mode {mode:04o} (needed for {resolved})", _fix(step))
    return resolved


def foreign_reason(path: str) -> str:
    """Why this machine cannot load a file, as far as its first bytes tell; empty when they do not.

    The loader itself calls a library of another architecture a file that does not exist.
    """
    try:
        with open(path, "rb") as file, open("/proc/self/exe", "rb") as own:
            found, wanted = file.read(_ELF_HEAD), own.read(_ELF_HEAD)
    except OSError:
        return ""
    if found[:4] != b"\x7fELF" or len(found) < _ELF_HEAD:
        return "it is no shared library (no ELF header)"
    if found[4:6] == wanted[4:6] and found[18:20] == wanted[18:20]:
        return ""
    return f"it is built for {_machine(found)}, and this machine runs {_machine(wanted)}"


def _machine(head: bytes) -> str:
    number = int.from_bytes(head[18:20], "little" if head[5] == 1 else "big")
    return _MACHINES.get(number, f"machine type {number}") + (", 32 bit" if head[4] == 1 else "")


def _fix(path: object) -> str:
    return f"chown root:root {path}; chmod go-w {path}; or set driver.trust_library for a dry run"


def _from_environment(file_name: str, environ: Mapping[str, str]) -> str:
    value = environ.get("LD_LIBRARY_PATH", "")
    if len(value) > _MAX_PATH:
        raise LibraryError(f"LD_LIBRARY_PATH is longer than {_MAX_PATH} characters")
    refused = []
    # An empty component would mean the current folder: skipped (native-abi 20, row 17).
    for folder in filter(None, value.split(":")):
        candidate = os.path.join(folder, file_name)
        if len(candidate) > _MAX_PATH or not os.path.lexists(candidate):
            continue
        try:
            return check_ownership(candidate)
        except (LibraryError, OSError) as error:
            refused.append(error.sentence if isinstance(error, LibraryError) else str(error))
    if refused:
        raise LibraryError("in LD_LIBRARY_PATH " + ", ".join(refused))
    raise LibraryError("no folder of LD_LIBRARY_PATH has it" if value else "LD_LIBRARY_PATH is empty")


def _from_cache(file_name: str, environ: Mapping[str, str]) -> str:
    try:
        done = subprocess.run(
            [_LDCONFIG, "--print-cache"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_LDCONFIG_DEADLINE_S,
            check=False,
            env={"PATH": environ.get("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"), "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LibraryError(f"the loader's cache could not be read ({error})") from error
    for line in done.stdout.decode(errors="replace").splitlines():
        name, arrow, path = line.partition("=>")
        if arrow and file_name in name.split():
            try:
                return check_ownership(path.strip())
            except OSError as error:
                raise LibraryError(f"the loader's cache names {path.strip()}, but: {error.strerror}") from error
    raise LibraryError("the loader's cache does not name it")
