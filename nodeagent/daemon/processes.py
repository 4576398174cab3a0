"""Memory and processor time of the daemon and its children, from /proc.

`stat` alone is read: unlike `smaps` and `cmdline` it takes no lock of the process it tells of, so a driver host that
hangs in the kernel cannot make its reader hang too. Resident memory counts shared pages in every process that has
them; the proportional set sizes of docs/benchmarks.md are smaller.
"""

import contextlib
import os
from pathlib import Path

from nodeagent.core.telemetry import Metrics

PROC = Path("/proc")
_UTIME, _RSS = 11, 21
"""Positions in `stat` behind the name of the program, which may contain blanks and brackets (proc(5); lesson 83)."""


class ProcessMeter:
    """Sets `resident_memory_bytes` and counts `cpu_seconds_total`; for one thread at a time."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._counted_s = {"daemon": 0.0, "children": 0.0}
        self._page_bytes = os.sysconf("SC_PAGE_SIZE")
        self._ticks_per_s = os.sysconf("SC_CLK_TCK")

    def measure(self) -> None:
        """Bring both metrics up to date."""
        own_s, own_bytes = self._read(PROC / "self" / "stat")
        times = os.times()
        children_s, children_bytes = times.children_user + times.children_system, 0
        for pid in self._children():
            with contextlib.suppress(OSError, IndexError):  # ended meanwhile
                spent_s, resident_bytes = self._read(PROC / str(pid) / "stat")
                children_s += spent_s
                children_bytes += resident_bytes
        self._tell("daemon", own_s, own_bytes)
        self._tell("children", children_s, children_bytes)

    def _tell(self, process: str, spent_s: float, resident_bytes: int) -> None:
        self._metrics.set("resident_memory_bytes", resident_bytes, process=process)
        # A child between its end and our noticing it is in neither sum; a counter must not go back for that.
        more_s = spent_s - self._counted_s[process]
        if more_s > 0:
            self._counted_s[process] = spent_s
            self._metrics.count("cpu_seconds_total", more_s, process=process)

    def _read(self, path: Path) -> tuple[float, int]:
        words = path.read_text().rpartition(")")[2].split()
        spent = int(words[_UTIME]) + int(words[_UTIME + 1])
        return spent / self._ticks_per_s, int(words[_RSS]) * self._page_bytes

    def _children(self) -> list[int]:
        found: list[int] = []
        for listed in PROC.glob("self/task/*/children"):  # a child belongs to the thread that started it
            with contextlib.suppress(OSError):  # the thread ended meanwhile
                found += [int(pid) for pid in listed.read_text().split()]
        return found
