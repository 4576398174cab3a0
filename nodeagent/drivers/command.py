"""Run one external program so that it can do no harm: a deadline, a process group, little environment, little output.

A program that cannot be killed is left behind and counted; while one lives, no further one is started (lesson 35).
"""

import contextlib
import os
import selectors
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from typing import IO

from nodeagent.core.clock import monotonic_s
from nodeagent.drivers.hccn_text import ToolError, shortened

OUTPUT_LIMIT_BYTES = 1024 * 1024
_LOOK_S = 0.05
_END_S = 0.5
_CHUNK = 65536
_PASSED = ("PATH", "LD_LIBRARY_PATH")


def minimal_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """PATH and LD_LIBRARY_PATH, nothing else; a value with NUL, which no program can be given, is left out."""
    return {name: environ[name] for name in _PASSED if name in environ and "\0" not in environ[name]}


class CommandRunner:
    """Runs programs one at a time, on one thread; any thread may `stop` the one that runs."""

    def __init__(self, environ: Mapping[str, str], limit_bytes: int = OUTPUT_LIMIT_BYTES) -> None:
        self._environment = minimal_environment(environ)
        self._limit = limit_bytes
        self._left: list[subprocess.Popen[bytes]] = []
        self._running: subprocess.Popen[bytes] | None = None
        self._stopping = threading.Event()
        self._lock = threading.Lock()

    def run(self, command: Sequence[str], deadline_s: float) -> str:
        """Standard output of a program that ended with status 0.

        command: absolute path and arguments. deadline_s: real seconds from now; then the whole group is killed.
        Raises ToolError: not started, deadline, status, more than the limit on either stream, `stop` was called.
        """
        if self._stopping.is_set():
            raise ToolError(f"{command[0]} is not started any more")
        self._left = [p for p in self._left if p.poll() is None]
        if self._left:
            raise ToolError(f"{command[0]} still hangs in the kernel from an earlier call and is not started again")
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=self._environment,
                cwd="/",
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise ToolError(f"{command[0]} could not be started: {error}") from error
        with self._lock:
            self._running = process
        if self._stopping.is_set():  # before the program was known, so nobody has killed it
            self._kill()
        assert process.stdout is not None
        assert process.stderr is not None
        with process.stdout, process.stderr:
            try:
                out, err = self._collect(process, process.stdout, process.stderr, monotonic_s() + deadline_s)
            except ToolError as error:
                raise ToolError(f"{' '.join(command)} {error.sentence}") from None
            finally:
                self._end(process)
        if process.returncode != 0:
            said = shortened((err or out).decode(errors="replace")) or "it said nothing"
            raise ToolError(f"{' '.join(command)} ended with status {process.returncode}: {said}")
        return out.decode(errors="replace")

    def stop(self) -> None:
        """Kill the program that runs now, with its whole group; none is started until `resume`."""
        self._stopping.set()
        self._kill()

    def resume(self) -> None:
        """Programs may be started again."""
        self._stopping.clear()

    def pids(self) -> list[int]:
        """Programs that have not ended; from any thread."""
        with self._lock:
            running = [] if self._running is None else [self._running.pid]
            return running + [p.pid for p in self._left if p.poll() is None]

    def _kill(self) -> None:
        with self._lock, contextlib.suppress(OSError):  # nobody is left
            if self._running is not None:
                os.killpg(self._running.pid, signal.SIGKILL)

    def _collect(
        self, process: subprocess.Popen[bytes], stdout: IO[bytes], stderr: IO[bytes], until_s: float
    ) -> tuple[bytes, bytes]:
        """Both streams, until both end or the program has: a child of it may keep them open for ever."""
        got = {stdout: bytearray(), stderr: bytearray()}
        with selectors.DefaultSelector() as selector:
            for stream in got:
                os.set_blocking(stream.fileno(), False)
                selector.register(stream, selectors.EVENT_READ)
            while True:
                over = _has_ended(process)
                ready = selector.select(0 if over else min(_LOOK_S, max(0.0, until_s - monotonic_s())))
                for key, _ in ready:
                    stream = stdout if key.fileobj is stdout else stderr
                    chunk = os.read(stream.fileno(), _CHUNK)
                    if not chunk:
                        selector.unregister(stream)
                    got[stream] += chunk
                    if len(got[stream]) > self._limit:
                        raise ToolError(f"printed more than {self._limit} bytes")
                if over and not ready:
                    return bytes(got[stdout]), bytes(got[stderr])
                if monotonic_s() >= until_s:
                    raise ToolError("did not answer in time")

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """Kill what is left of the group, then reap its leader: in that order, while the group's number is ours."""
        self._kill()
        with self._lock:
            self._running = None
            self._left.append(process)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_END_S)


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Without reaping: an ended leader that is not reaped keeps the number of its group from being given away."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
