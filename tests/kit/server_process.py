"""Servers that tests start beside the daemon: own session, log in a file, never left behind."""

import atexit
import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from kit.daemon import wait_until

_running: set["ServerProcess"] = set()


def free_ports(count: int, kind: socket.SocketKind = socket.SOCK_STREAM) -> list[int]:
    """Ports of 127.0.0.1 that nothing uses now, for TCP or (SOCK_DGRAM) for UDP.

    They lie below the range from which the kernel gives ports to outgoing connections. From that range, a client
    could be given the port of a server that is stopped for a while, and talk to itself.
    """
    low = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    found: list[int] = []
    for port in random.sample(range(low // 2, low), 200):
        with socket.socket(socket.AF_INET, kind) as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            found.append(port)
        if len(found) == count:
            return found
    raise AssertionError(f"no {count} free ports below {low}")


class ServerProcess:
    """A server that can be stopped, killed and started again with the same command.

    name: for messages and the log `<folder>/<name>.log`. ready: asked until it is true after each start. The server
    is killed with all its children when the tests end, also when they are interrupted, and even when they are killed
    (then by the kernel: it watches the thread that called `start`, so that thread should be the main one).
    """

    def __init__(self, name: str, command: Sequence[object], folder: Path, ready: Callable[[], bool]) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        self._command = [*_dies_with_us(), *map(str, command)]
        self._folder = folder
        self._ready = ready
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Process id while it runs."""
        assert self._process is not None, f"{self.name} does not run"
        return self._process.pid

    @property
    def running(self) -> bool:
        """It was started and has not ended, by itself or by us."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it and wait until it is ready. AssertionError with the end of its log when it does not get there."""
        assert not self.running, f"{self.name} runs already"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        _running.add(self)
        try:
            wait_until(lambda: not self.running or self._ready(), f"{self.name} is ready")
            assert self.running, f"{self.name} ended at once"
        except AssertionError as error:
            self.kill()
            raise AssertionError(f"{error}\nend of {self.log}:\n{self.words()[-4000:]}") from None

    def stop(self) -> None:
        """SIGTERM, and wait for its end. A server may first finish what it was asked: `kill` is quicker."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL to it and its children, and wait for the end."""
        self._end(signal.SIGKILL)

    def words(self) -> str:
        """The log so far."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def _end(self, number: signal.Signals) -> None:
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)
        self._process.wait()
        self._process = None
        _running.discard(self)


def _dies_with_us() -> list[str]:
    """A prefix that has the kernel kill the command when we are gone; none where util-linux is not installed."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL"] if setpriv else []


@atexit.register
def _kill_all() -> None:
    for server in list(_running):
        server.kill()
