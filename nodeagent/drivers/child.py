"""The driver host's side: one library, one thread of calls, one thread that carries events up.

Started as a process of its own by nodeagent.drivers.host. It dies with its parent (end of file on the socket)
and may die or hang at any time in vendor code; nothing here tries to prevent that. It knows no library: the
adapter does.
"""

import contextlib
import importlib
import os
import select
import signal
import socket
import threading
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from nodeagent.core.errors import HostError, NodeAgentError
from nodeagent.drivers import protocol
from nodeagent.drivers.answers import AnswerDamaged, AnswerError


class Adapter(Protocol):
    """One vendor library as a table of calls and a source of events."""

    def calls(self) -> Mapping[str, Callable[..., Any]]:
        """Callables by name; each takes and returns JSON values, raises AnswerError or another NodeAgentError."""

    def event_fd(self) -> int:
        """File descriptor that is readable while events wait; -1 while there is none yet."""

    def drain(self, room: int) -> tuple[list[list[Any]], int]:
        """Up to `room` waiting events, oldest first, and the total of dropped ones."""


def main(adapter_name: str, socket_fd: int) -> None:
    """Serve the adapter `package.module:Class` on an inherited socket until the parent goes away."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    module, _, name = adapter_name.partition(":")
    adapter: Adapter = getattr(importlib.import_module(module), name)()
    serve(adapter, socket.socket(fileno=socket_fd))


def serve(adapter: Adapter, sock: socket.socket) -> None:
    """Answer calls one after the other; returns at end of file.

    A thread of its own notices the parent's end even while a call hangs, the loading of the library included.
    """
    threading.Thread(target=_leave_with_parent, args=(sock.fileno(),), name="parent", daemon=True).start()
    table = adapter.calls()
    sending = threading.Lock()
    pump: threading.Thread | None = None

    def send(message: protocol.Message) -> None:
        with sending:
            sock.sendall(protocol.encode(message))

    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the parent left while a call ran
        while packet := sock.recv(protocol.MAX_PACKET_BYTES):
            request = protocol.decode(packet)
            if not isinstance(request, protocol.Call):
                raise HostError("the parent sent something that is no call")
            send(_answer(table, request))
            if pump is None and adapter.event_fd() >= 0:
                pump = threading.Thread(target=_pump, args=(adapter, send), name="events", daemon=True)
                pump.start()


def _answer(table: Mapping[str, Callable[..., Any]], request: protocol.Call) -> protocol.Answer:
    function = table.get(request.name)
    if function is None:
        return protocol.Failure(request.id, HostError.code, f"this driver host has no call {request.name!r}", "")
    try:
        return protocol.Value(request.id, function(*request.args))
    except AnswerError as error:
        what = error.what if isinstance(error, AnswerDamaged) else ""
        return protocol.Refusal(request.id, error.rc, error.function, what)
    except NodeAgentError as error:
        return protocol.Failure(request.id, error.code, error.sentence, error.hint)


def _leave_with_parent(socket_fd: int) -> None:
    poller = select.poll()
    poller.register(socket_fd, 0)  # nothing but the other end's closing
    poller.poll()
    os._exit(0)


def _pump(adapter: Adapter, send: Callable[[protocol.Message], None]) -> None:
    """Carry events up as they come; leave the process at once when the parent is gone."""
    poller = select.poll()
    wake_fd = adapter.event_fd()
    poller.register(wake_fd, select.POLLIN)
    told = 0
    try:
        while True:
            poller.poll()
            os.eventfd_read(wake_fd)
            while True:
                events, dropped = adapter.drain(protocol.MAX_EVENTS_PER_PACKET)
                if not events and dropped == told:
                    break
                told = dropped
                send(protocol.Events(tuple(tuple(e) for e in events), dropped))
    except OSError:
        os._exit(0)
