"""What the benchmarks share: a daemon on a mock node, inotify on its output, footprint of processes."""

import contextlib
import ctypes
import os
import select
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
import yaml

from nodeagent.mock.launch import MockServer, library_dir
from nodeagent.render.reading import ParsedDeviceInfo, parse_device_info

NODE = "bench-node"
_MOVED_TO = 0x80


class Inotify:
    """Tells when a file is renamed into a folder; wakes without polling."""

    def __init__(self, folder: Path) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fd = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd < 0 or self._libc.inotify_add_watch(self._fd, os.fsencode(folder), _MOVED_TO) < 0:
            raise OSError(ctypes.get_errno(), "inotify")

    def wait(self, timeout_s: float) -> int | None:
        """Monotonic ns at which the next rename was seen, None after the time-out."""
        if not select.select([self._fd], [], [], timeout_s)[0]:
            return None
        seen_ns = time.monotonic_ns()
        os.read(self._fd, 65536)
        return seen_ns

    def count(self, seconds: float) -> int:
        """Number of renames within a time."""
        end, found = time.monotonic() + seconds, 0
        while (left := end - time.monotonic()) > 0:
            if select.select([self._fd], [], [], left)[0]:
                found += os.read(self._fd, 65536).count(b".yaml\0")
        return found


@dataclass(frozen=True)
class Running:
    """A daemon under test. started_ns: monotonic clock just before its start. log: its stderr so far."""

    process: subprocess.Popen[bytes]
    node: MockServer
    out: Path
    log: Path
    started_ns: int

    @property
    def object_file(self) -> Path:
        """The published file."""
        return self.out / "kube-system" / f"mindx-dl-deviceinfo-{NODE}.yaml"

    def published(self) -> ParsedDeviceInfo:
        """What the file says now."""
        return parse_device_info(yaml.safe_load(self.object_file.read_text())["data"])

    def processes(self) -> list[psutil.Process]:
        """The daemon and its driver hosts (the mock node is not ours to count)."""
        mine = psutil.Process(self.process.pid)
        return [mine, *mine.children(recursive=True)]


@contextlib.contextmanager
def running(
    folder: Path, node: str = "a2", program: Sequence[str] = (), pass_fds: Sequence[int] = (), **settings: str
) -> Iterator[Running]:
    """`nodeagent run` on a mock node; yields after it was started, not after it published.

    program: what to start instead of `nodeagent`. pass_fds: open files that it inherits.
    """
    with MockServer.start(node) as server, (folder / "log").open("wb") as log:
        every = {
            "driver.library": str(library_dir() / "libdcmi.so"),
            "driver.trust_library": "true",
            "switches.library": str(library_dir() / "liblingqu-dcmi.so"),
            "mock.socket": server.socket,
            "publish.target": "directory",
            "publish.directory": str(folder),
            "node.name": NODE,
            "daemon.state_dir": str(folder / ".state"),
            "daemon.socket": str(folder / ".state" / "socket"),
            "http.port": "0",
            **settings,
        }
        flags = [part for key, value in every.items() for part in ("--set", f"{key}={value}")]
        command = program or [str(Path(sys.executable).parent / "nodeagent")]
        started_ns = time.monotonic_ns()
        process = subprocess.Popen([*command, "run", *flags], stderr=log, pass_fds=pass_fds)
        try:
            yield Running(process, server, folder, folder / "log", started_ns)
        finally:
            process.terminate()
            process.wait(10)


def show_memory(title: str, processes: list[psutil.Process]) -> None:
    """Print the sum of the proportional and of the resident memory.

    alone: what the proportional sum were if no other process used the same interpreter, as the benchmark itself does:
    private pages, and pages of each file once.
    """
    infos = [p.memory_full_info() for p in processes]
    pss, rss = sum(i.pss for i in infos) / 2**20, sum(i.rss for i in infos) / 2**20
    each = " + ".join(f"{i.pss / 2**20:.1f}" for i in infos)
    print(
        f"{title} PSS {pss:.1f} MiB ({each}: daemon + driver hosts), alone {_alone_mib(processes):.1f} MiB,"
        f" RSS {rss:.1f} MiB   (target 80 MiB)"
    )


def _alone_mib(processes: list[psutil.Process]) -> float:
    private, files = 0, dict[str, int]()
    for process in processes:
        for part in process.memory_maps():
            private += part.private_clean + part.private_dirty
            files[part.path] = max(files.get(part.path, 0), part.shared_clean + part.shared_dirty)
    return (private + sum(files.values())) / 2**20


def last_words(log: str, name: str) -> float:
    """The value of a metric in the last words of a daemon that was stopped, 0 if it is not there."""
    for word in log.split():
        if word.startswith(f"{name}="):
            return float(word.partition("=")[2])
    return 0.0


def cpu_s(processes: list[psutil.Process]) -> float:
    """User and system time so far, seconds."""
    return sum(sum(p.cpu_times()[:2]) for p in processes)


def p99(samples: Sequence[float]) -> float:
    """The smallest sample that 99 of 100 do not exceed."""
    return sorted(samples)[max(0, -(-len(samples) * 99 // 100) - 1)]


def scraped_port() -> str:
    """A port that is free now, for a daemon that is to be scraped."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return str(probe.getsockname()[1])


def scrape(port: str) -> None:
    """Fetch /metrics as Prometheus does; the first time loads what makes the page."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as page:
        page.read()


def wait_for_file(path: Path, limit_s: float = 30) -> int:
    """Monotonic ns at which a file was first seen."""
    end = time.monotonic() + limit_s
    while not path.exists():
        if time.monotonic() > end:
            raise SystemExit(f"{path} was not published within {limit_s:g} s")
        time.sleep(0.001)
    return time.monotonic_ns()
