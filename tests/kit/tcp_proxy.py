"""A TCP proxy in front of a server, which breaks connections in the ways that networks do."""

import queue
import select
import socket
import struct
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass

from kit.daemon import LIMIT_S

_CHUNK_BYTES = 65536
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
"""SO_LINGER with a time of 0: close sends RST instead of FIN."""


@dataclass(eq=False)
class _Way:
    """One direction of a connection. pending: read and not yet passed on. over: the source sends no more."""

    source: socket.socket
    sink: socket.socket
    pending: bytes = b""
    over: bool = False

    def read(self) -> None:
        """Called when the source is readable."""
        self.pending = self.source.recv(_CHUNK_BYTES)
        if not self.pending:
            self.over = True
            self.sink.shutdown(socket.SHUT_WR)

    def write(self) -> None:
        """Called when the sink is writable; passes on as much as it takes."""
        self.pending = self.pending[self.sink.send(self.pending) :]


class _Link:
    """A forwarded connection."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        for end in (client, server):
            end.setblocking(False)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.ends = (client, server)
        self.ways = (_Way(client, server), _Way(server, client))

    def serve(self, readable: Collection[socket.socket], writable: Collection[socket.socket]) -> bool:
        """Move what can be moved; false when the connection has ended."""
        try:
            for way in self.ways:
                if way.pending and way.sink in writable:
                    way.write()
                elif not way.pending and not way.over and way.source in readable:
                    way.read()
        except OSError:
            self.reset()
            return False
        if all(way.over for way in self.ways):
            for end in self.ends:
                end.close()
            return False
        return True

    def reset(self) -> None:
        """Close both ends with RST."""
        for end in self.ends:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            end.close()


class TcpProxy:
    """Forwards connections to `port` of 127.0.0.1 from its own `port`. Use it as a context manager.

    When the server refuses a connection, the client's is reset. One thread does everything, so that what a command
    asks for has happened when it returns.
    """

    def __init__(self, port: int) -> None:
        self._server_port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._links: list[_Link] = []
        self._accepted = 0
        self._frozen = False
        self._ended = False
        self._commands: queue.SimpleQueue[tuple[Callable[[], None], threading.Event]] = queue.SimpleQueue()
        self._bell, self._ear = socket.socketpair()
        self._thread = threading.Thread(target=self._run, name="tcp-proxy", daemon=True)
        self._thread.start()

    def __enter__(self) -> "TcpProxy":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        """Where clients of an API server behind it connect to."""
        return f"https://127.0.0.1:{self.port}"

    @property
    def accepted(self) -> int:
        """Connections that were forwarded since the start, without those that wait for `thaw`."""
        return self._accepted

    @property
    def open(self) -> int:
        """Connections that are forwarded now."""
        return len(self._links)

    def cut(self) -> None:
        """Reset all connections on both sides; new ones are forwarded, unless frozen."""
        self._do(self._cut)

    def freeze(self) -> None:
        """Become a network that loses everything: connections stay open, new ones are made, nothing passes."""
        self._do(lambda: self._freeze(True))

    def thaw(self) -> None:
        """Forward again, first of all what came while frozen."""
        self._do(lambda: self._freeze(False))

    def close(self) -> None:
        """Reset all connections and stop listening."""
        if self._thread.is_alive():
            self._do(self._end)
            self._thread.join(LIMIT_S)
        for end in (self._listener, self._bell, self._ear):
            end.close()

    def _do(self, command: Callable[[], None]) -> None:
        done = threading.Event()
        self._commands.put((command, done))
        self._bell.send(b"!")
        assert done.wait(LIMIT_S), "the proxy's thread has died"

    def _run(self) -> None:
        while not self._ended:
            ways = [] if self._frozen else [way for link in self._links for way in link.ways]
            sources = [way.source for way in ways if not way.pending and not way.over]
            sinks = [way.sink for way in ways if way.pending]
            front = [] if self._frozen else [self._listener]
            readable, writable, _ = select.select([self._ear, *front, *sources], sinks, [])
            self._links = [link for link in self._links if link.serve(readable, writable)]
            if self._listener in readable:
                self._accept()
            if self._ear in readable:
                self._ear.recv(1)
                command, done = self._commands.get()
                command()
                done.set()

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        try:
            server = socket.create_connection(("127.0.0.1", self._server_port), LIMIT_S)
        except OSError:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            client.close()
        else:
            self._links.append(_Link(client, server))
            self._accepted += 1

    def _cut(self) -> None:
        for link in self._links:
            link.reset()
        self._links = []

    def _freeze(self, frozen: bool) -> None:
        self._frozen = frozen

    def _end(self) -> None:
        self._cut()
        self._ended = True
