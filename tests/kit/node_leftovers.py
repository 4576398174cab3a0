"""What a node leaves behind when it ends: containers outlive containerd, mounts and cgroups outlive both.

Everything here goes by names that only one node has: its folder, and its cgroup. Nothing else is touched, also not
other containers of this machine. It works on the remains of a run that was killed just as well.
"""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from kit.daemon import wait_until

PLACE = Path("/var/tmp")
PREFIX = "nodeagent-node-"
CGROUPS = Path("/sys/fs/cgroup")
_LINKS = Path("/var/log/containers")
_KERNEL = Path("/proc/sys")
_SETTINGS = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)
"""What a kubelet sets for the whole machine, and does not set back."""


class NodeFolder:
    """The folder of a node that runs, and the cgroup of the same name. Nobody cleans up while it is held.

    It lies outside of pytest's folders, as its path must be short for sockets, and is found again after a crash.
    """

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=PLACE))
        self._lock = (self.path / "lock").open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        values = {name: (_KERNEL / name).read_text() for name in _SETTINGS if (_KERNEL / name).exists()}
        (self.path / "kernel.json").write_text(json.dumps(values))
        for root in _cgroup_roots():
            (root / self.path.name).mkdir()
            for given in (
                "cpuset.cpus",
                "cpuset.mems",
            ):  # version 1 gives a new cpuset none
                if (root / "cgroup.clone_children").exists() and (root / given).exists():
                    (root / self.path.name / given).write_text((root / given).read_text())

    def remove(self) -> None:
        """End what still runs in it, and remove it."""
        clean(self.path)
        self._lock.close()


def clean_leftovers() -> None:
    """Remove what test runs left behind that were killed."""
    for folder in PLACE.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError), (folder / "lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # else it is in use
            clean(folder)


def clean(folder: Path) -> None:
    """End all processes of a node's containers, unmount everything below its folder, remove folder and cgroups."""
    assert folder.parent == PLACE, folder
    assert folder.name.startswith(PREFIX), folder
    wait_until(lambda: not _kill(_processes(folder)), f"the processes of {folder} end")
    for file in folder.glob("state/io.containerd.runtime.v2.task/*/*/address"):
        Path(file.read_text().strip().removeprefix("unix://")).unlink(missing_ok=True)  # a shim's socket in /run
    for mount in _mounts(folder):
        subprocess.run(["umount", "--lazy", mount], check=False, stderr=subprocess.DEVNULL)
    for root in _cgroup_roots():
        _remove_cgroup(root / folder.name)
    if _LINKS.is_dir():
        for link in _LINKS.iterdir():
            if link.is_symlink() and Path(os.readlink(link)).is_relative_to(folder):
                link.unlink()
    with contextlib.suppress(OSError, ValueError):
        for name, value in json.loads((folder / "kernel.json").read_text()).items():
            (_KERNEL / name).write_text(value)
    assert not _mounts(folder), f"still mounted: {_mounts(folder)}"
    shutil.rmtree(folder)


def _processes(folder: Path) -> list[int]:
    socket = f"{folder}/containerd.sock"
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it ended
            in_cgroup = f"/{folder.name}/" in (entry / "cgroup").read_text()
            ended = (entry / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
            if not ended and (in_cgroup or socket in (entry / "cmdline").read_bytes().decode().split("\0")):
                found.append(int(entry.name))
    return found


def _kill(pids: list[int]) -> list[int]:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return pids


def _mounts(folder: Path) -> list[str]:
    """What is mounted below a folder, the last one first."""
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [point for point in reversed(points) if point.startswith(f"{folder}/")]


def _cgroup_roots() -> list[Path]:
    """Where cgroups are made: one folder in version 2, one for each controller in version 1."""
    if (CGROUPS / "cgroup.controllers").exists():
        return [CGROUPS]
    return [path for path in CGROUPS.iterdir() if path.is_dir() and not path.is_symlink() and os.path.ismount(path)]


def _remove_cgroup(path: Path) -> None:
    if path.is_dir():
        for folder, _, _ in os.walk(path, topdown=False):
            wait_until(lambda folder=folder: _removed(Path(folder)), f"cgroup {folder} is empty")


def _removed(path: Path) -> bool:
    with contextlib.suppress(FileNotFoundError):
        try:
            path.rmdir()
        except OSError:  # a process that was killed is still leaving
            return False
    return True
