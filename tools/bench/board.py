"""Alarms of the board: from the last answer of a poll to the written file, for few alarms and for many."""

import contextlib
import os
import select
import statistics
import sys
import tempfile
import time
from pathlib import Path

import yaml
from rig import NODE, Inotify, Running, p99, running, wait_for_file

from nodeagent.mock.client import MockControl

SIZES = 33, 300
"""Alarms at once: a page of the BMC and a bit, and far more than any board has had."""
SAMPLES = 200
LIMIT_S = 20.0
CODES = "0000001D", "01000017"
DEVICES = 150
"""Each code on so many CPUs, as a number of a device is one byte."""
PERIODS = {"ipmi.poll_period_s": "0.2", "ipmi.report_interval_s": "0.02"}
"""A minute and five seconds as shipped; here to gather samples."""


class Polls:
    """Good polls, told by the daemon: nanoseconds of the first question and the last answer, number of alarms."""

    def __init__(self) -> None:
        self._read_fd, self.write_fd = os.pipe()
        self._text = b""

    def wait_for(self, alarms: int) -> tuple[int, int]:
        """The next poll with so many alarms; earlier ones are dropped. Raises SystemExit when none comes."""
        end = time.monotonic() + LIMIT_S
        while True:
            line, found, rest = self._text.partition(b"\n")
            if not found:
                if not select.select([self._read_fd], [], [], max(0.0, end - time.monotonic()))[0]:
                    raise SystemExit(f"no poll had {alarms} alarms within {LIMIT_S:g} s")
                self._text += os.read(self._read_fd, 4096)
                continue
            self._text = rest
            asked_ns, answered_ns, number = map(int, line.split())
            if number == alarms:
                return asked_ns, answered_ns

    def close(self) -> None:
        """Close both ends."""
        os.close(self._read_fd)
        os.close(self.write_fd)


def board_latency() -> None:
    """The last answer of the pretended BMC -> file in place."""
    for size in SIZES:
        with tempfile.TemporaryDirectory() as name, contextlib.closing(Polls()) as polls:
            program = [sys.executable, str(Path(__file__).parent / "stamped_polls.py"), str(polls.write_fd)]
            with (
                running(Path(name), program=program, pass_fds=[polls.write_fd], **PERIODS) as it,
                it.node.control() as control,
            ):
                _measure(it, control, polls, size)


def _measure(it: Running, control: MockControl, polls: Polls, size: int) -> None:
    """Let the last alarm come and go, again and again."""
    file = it.out / "mindx-dl" / f"mindx-dl-nodeinfo-{NODE}.yaml"
    alarms = [(CODES[number // DEVICES], number % DEVICES) for number in range(size)]
    for code, device in alarms[:-1]:
        control.raise_alarm(code, device_id=device)
    wait_for_file(file)
    polls.wait_for(size - 1)
    time.sleep(1)
    watch, (code, device) = Inotify(file.parent), alarms[-1]
    written_ms, poll_ms = [], []
    for number in range(SAMPLES):
        if present := number % 2 == 0:
            control.raise_alarm(code, device_id=device)
        else:
            control.clear_alarm(code, device_id=device)
        seen_ns = watch.wait(LIMIT_S)
        asked_ns, answered_ns = polls.wait_for(size if present else size - 1)
        if seen_ns is None:
            raise SystemExit(f"nothing was written within {LIMIT_S:g} s")
        written_ms.append((seen_ns - answered_ns) / 1e6)
        poll_ms.append((answered_ns - asked_ns) / 1e6)
    kib = len(yaml.load(file.read_text(), yaml.CSafeLoader)["data"]["NodeInfo"]) / 1024
    print(
        f"end of a poll -> published   {size} alarms: n={len(written_ms)}"
        f"  median {statistics.median(written_ms):.1f} ms  p99 {p99(written_ms):.1f} ms  max {max(written_ms):.1f} ms;"
        f" the poll {statistics.median(poll_ms):.1f} ms, {kib:.0f} KiB published"
    )
