"""The daemon's side of a driver host: a child process that may hang, crash or leak without taking us along.

A call that misses its deadline marks the host as stuck: no further call is made on it, but its events still
arrive until somebody closes it. Closing never waits: the child is killed, and one that the kernel will not let
die (D state) is abandoned and counted; while too many such children live, no new one is started (lesson 35).
"""

import contextlib
import logging
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nodeagent.core.errors import HostError, LibraryError, NodeAgentError
from nodeagent.drivers import protocol
from nodeagent.drivers.answers import AnswerDamaged, AnswerError

log = logging.getLogger("nodeagent.host")

MAX_ABANDONED = 4
_EXIT_GRACE_S = 0.2


class HostStuckError(HostError):
    """A call missed its deadline; the host takes no further calls."""


class HostGoneError(HostError):
    """The child process has ended."""


@dataclass(frozen=True, slots=True)
class HostSpec:
    """Which adapter a host runs.

    name: for logs and the process list. adapter: `package.module:Class`. environment: variables beside our own.
    """

    name: str
    adapter: str
    environment: Mapping[str, str] = field(default_factory=dict)


class Reaper:
    """Children that were killed and have not been seen to end yet."""

    def __init__(self, limit: int = MAX_ABANDONED) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._waiting: list[subprocess.Popen[bytes]] = []

    def take(self, process: subprocess.Popen[bytes]) -> None:
        """Kill a child and remember it; never waits."""
        process.kill()
        with self._lock:
            self._waiting.append(process)
        self.alive()

    def alive(self) -> int:
        """How many abandoned children still live; ended ones are reaped on the way."""
        return len(self._living())

    def pids(self) -> list[int]:
        """Process ids of the abandoned children that still live."""
        return [process.pid for process in self._living()]

    def _living(self) -> list[subprocess.Popen[bytes]]:
        with self._lock:
            self._waiting = [p for p in self._waiting if p.poll() is None]
            return self._waiting

    def check(self) -> None:
        """Raise HostError when another child must not be started."""
        if (count := self.alive()) >= self._limit:
            raise HostError(
                f"{count} driver hosts hang in the kernel and cannot be killed; no further one is started",
                "the node needs a driver restart or a reboot",
            )


class DriverHost:
    """One child process that runs one adapter.

    on_events(events, dropped_total) and on_gone(reason) are called on the host's reader thread.
    """

    def __init__(
        self,
        spec: HostSpec,
        reaper: Reaper,
        on_events: Callable[[tuple[tuple[Any, ...], ...], int], None],
        on_gone: Callable[[str], None],
    ) -> None:
        self.spec = spec
        self._reaper = reaper
        self._on_events = on_events
        self._on_gone = on_gone
        self._calling = threading.Lock()
        self._waiting: dict[int, queue.SimpleQueue[protocol.Answer | None]] = {}
        self._waiting_lock = threading.Lock()
        self._number = 0
        self._stuck = ""
        self._gone = ""
        self._closed = False
        reaper.check()
        try:
            self._process, self._socket = self._start()
        except OSError as error:
            raise HostError(
                f"driver host {spec.name} could not be started: {error.strerror or error}",
                "the limits of processes, open files or memory may be reached",
            ) from error
        self._reader = threading.Thread(target=self._read, name=f"{spec.name}.reader", daemon=True)
        self._reader.start()

    def _start(self) -> tuple[subprocess.Popen[bytes], socket.socket]:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            child = subprocess.Popen(
                self._command(theirs.fileno()),
                stdin=subprocess.DEVNULL,
                stdout=2,  # what a vendor library prints must not mix with our own output
                pass_fds=[theirs.fileno()],
                env={**os.environ, **self.spec.environment},
            )
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        return child, ours

    def _command(self, fd: int) -> list[str]:
        # Isolated mode keeps the working folder and PYTHON* variables out; the package comes from where we came from.
        root = str(Path(__file__).resolve().parents[2])
        code = (
            f"import sys; sys.path.insert(0, {root!r}); from nodeagent.drivers.child import main;"
            f" main({self.spec.adapter!r}, {fd})"
        )
        return [sys.executable, "-I", "-c", code, f"nodeagent-{self.spec.name}"]

    @property
    def pid(self) -> int:
        """Process id of the child."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """The child has been seen to end. A closed host may live on while the kernel does not let it die."""
        return self._process.poll() is not None

    @property
    def stuck(self) -> str:
        """Why no further call is made here; empty while calls are fine."""
        return self._stuck

    def call(self, name: str, *args: Any, deadline_s: float) -> Any:
        """Run one call in the child and wait for its answer, at most `deadline_s` seconds (real time).

        Raises AnswerError (the library said no), LibraryError or HostError (above the library),
        HostStuckError (deadline missed), HostGoneError (the child ended).
        """
        with self._calling:
            self._raise_if_unusable()
            self._number += 1
            number = self._number
            box: queue.SimpleQueue[protocol.Answer | None] = queue.SimpleQueue()
            with self._waiting_lock:
                self._waiting[number] = box
            try:
                self._socket.sendall(protocol.encode(protocol.Call(number, name, args)))
                answer = box.get(timeout=deadline_s)
            except queue.Empty:
                self._stuck = f"{_shown(name, args)} did not return within {deadline_s:g} s"
                raise HostStuckError(self._stuck) from None
            except OSError as error:
                raise HostGoneError(self._gone or f"driver host {self.spec.name} is gone ({error})") from error
            finally:
                with self._waiting_lock:
                    self._waiting.pop(number, None)
        if answer is None:
            raise HostGoneError(f"{self._gone} during {_shown(name, args)}")
        return _unwrap(answer)

    def _raise_if_unusable(self) -> None:
        if self._gone:
            raise HostGoneError(self._gone)
        if self._stuck:
            raise HostStuckError(self._stuck)

    def close(self) -> None:
        """End the child without waiting for it. Its events stop."""
        self._closed = True
        with contextlib.suppress(OSError):  # the child may have been faster
            self._socket.shutdown(socket.SHUT_RDWR)
        self._reaper.take(self._process)

    def _read(self) -> None:
        reason = ""
        try:
            while packet := self._socket.recv(protocol.MAX_PACKET_BYTES):
                message = protocol.decode(packet)
                if isinstance(message, protocol.Events):
                    if not self._closed:
                        self._on_events(message.events, message.dropped)
                elif not isinstance(message, protocol.Call):
                    self._hand_over(message)
        except HostError as error:
            reason = f"is of no use: {error.sentence}"
        except OSError:
            reason = ""  # "connection reset": it ended before it read a call, and its exit tells more
        except Exception as error:  # border of a thread: calls would wait for a reader that is no more
            log.exception("unforeseen error of the reader host=%s", self.spec.name)
            reason = f"is of no use: unforeseen {type(error).__name__}: {error}"
        self._end(reason)

    def _hand_over(self, answer: protocol.Answer) -> None:
        with self._waiting_lock:
            box = self._waiting.get(answer.id)
        if box is not None:  # else: the answer of a call that was given up
            box.put(answer)

    def _end(self, reason: str) -> None:
        self._gone = f"driver host {self.spec.name} {reason or self._exit_text()}"
        with self._waiting_lock:
            for box in self._waiting.values():
                box.put(None)
        self._socket.close()
        if not self._closed:
            self._reaper.take(self._process)
            self._on_gone(self._gone)

    def _exit_text(self) -> str:
        status = _wait_briefly(self._process)
        if status is None:
            return "closed its socket"
        if status < 0:
            return f"was killed by {_signal_name(-status)}"
        return f"ended with status {status}"


def _wait_briefly(process: subprocess.Popen[bytes]) -> int | None:
    try:
        return process.wait(_EXIT_GRACE_S)
    except subprocess.TimeoutExpired:
        return None


def _shown(name: str, args: tuple[Any, ...]) -> str:
    return f"{name}({', '.join(map(repr, args))})"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _unwrap(answer: protocol.Answer) -> Any:
    if isinstance(answer, protocol.Value):
        return answer.value
    if isinstance(answer, protocol.Refusal):
        if answer.what:  # still an answer of one chip, so it must not look like trouble with the host
            raise AnswerDamaged(answer.function, answer.what)
        raise AnswerError(answer.function, answer.rc)
    error_class: type[NodeAgentError] = LibraryError if answer.code == LibraryError.code else HostError
    raise error_class(answer.sentence, answer.hint)
