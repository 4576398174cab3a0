"""The hand of the tests inside the guest: does what it is told over the serial line, one JSON object a line each way.

`{"do": NAME, …}` is answered by `{"is": RESULT}`, or by `{"error": CLASS, "says": SENTENCE, "hint": HINT}` when an
error of ours was raised. The names are the public methods of `Hand`, their arguments the other keys.
"""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from nodeagent.core.errors import NodeAgentError
from nodeagent.drivers.ipmi_alarms import poll_alarms
from nodeagent.drivers.ipmi_device import DeviceTransport
from nodeagent.drivers.ipmi_label import read_serial_number

DEVICE = Path("/dev/ipmi0")
SHARE = Path("/run/share")
DEADLINE_S = 10.0
"""As the daemon's (node-faults 2.3)."""


class Hand:
    """The commands. The first one that needs the device opens it; polls and serial numbers that fail close it."""

    def __init__(self) -> None:
        self._deadline_s = DEADLINE_S
        self._transport: DeviceTransport | None = None
        self._started: dict[int, subprocess.Popen[bytes]] = {}

    def device(self) -> bool:
        """There is a /dev/ipmi0."""
        return DEVICE.is_char_device()

    def poll(self) -> list[list[int]]:
        """The present alarms: code, seconds, severity, subject, device."""
        with self._closed_by_errors():
            return [[a.code, a.raised_s, a.severity, a.subject, a.device_id] for a in poll_alarms(self._raw)]

    def serial_number(self) -> str:
        """The serial number of the product."""
        with self._closed_by_errors():
            return read_serial_number(self._raw)

    def raw(self, netfn: int, command: int, data: str) -> str:
        """One command, its data and its answer in hex. The device stays open whatever happens."""
        return self._raw(netfn, command, bytes.fromhex(data)).hex()

    def close(self, deadline_s: float = DEADLINE_S) -> None:
        """Close the device. From the next opening on, a command may take so long."""
        if self._transport is not None:
            self._transport.close()
        self._transport, self._deadline_s = None, deadline_s

    def run(self, words: Sequence[str]) -> list[Any]:
        """Run a program to its end: its exit status, and what it wrote."""
        done = subprocess.run(words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        return [done.returncode, done.stdout + done.stderr]

    def start(self, words: Sequence[str], log: str) -> int:
        """Start a program, with its output in a file of the share; its process id."""
        with (SHARE / log).open("wb") as file:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT)
        self._started[process.pid] = process
        return process.pid

    def end(self, pid: int, number: int) -> int:
        """Send a signal to a program that `start` started, and wait for its end; its exit status."""
        self._started[pid].send_signal(number)
        return self._started.pop(pid).wait()

    def _raw(self, netfn: int, command: int, data: bytes) -> bytes:
        if self._transport is None:
            self._transport = DeviceTransport(str(DEVICE), self._deadline_s, lambda: None)
        return self._transport.raw(netfn, command, data)

    @contextlib.contextmanager
    def _closed_by_errors(self) -> Iterator[None]:
        try:
            yield
        except NodeAgentError:
            self.close(self._deadline_s)
            raise


def main() -> int:
    """Serve until `{"do": "leave", "status": N}`; the exit status is that N."""
    hand = Hand()
    print(json.dumps({"is": "ready"}), flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        name = order.pop("do")
        if name == "leave":
            return int(order["status"])
        try:
            answer = {"is": getattr(hand, name)(**order)}
        except NodeAgentError as error:
            answer = {"error": type(error).__name__, "says": error.sentence, "hint": error.hint}
        print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
