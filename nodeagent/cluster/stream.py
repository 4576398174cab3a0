"""The answer to a watch: one JSON document a line, for as long as the server likes; can be ended from outside."""

import contextlib
import json
import socket
from collections.abc import Callable, Iterator
from typing import Any

from nodeagent.cluster.calls import Call, NoAnswerError

MAX_LINE_BYTES = 8 * 1024 * 1024
"""An object has at most about 3 MiB; a longer line is no event."""


class Stream:
    """Events of one watch request. One thread iterates; `close` comes from any.

    received: told the size of each piece of the answer in bytes.
    """

    def __init__(self, call: Call, response: Any, received: Callable[[int], None]) -> None:
        self._call = call
        self._response = response
        self._received = received

    def events(self) -> Iterator[dict[str, Any]]:
        """Each event as the server sent it; ends when the server ends the watch properly.

        Raises NoAnswerError for a stream that breaks, falls silent, or says something that is no event.
        """
        import urllib3.exceptions

        rest = b""
        try:
            for piece in self._response.stream(65536, decode_content=True):
                self._received(len(piece))
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    if line.strip():
                        yield self._event(line)
                if len(rest) > MAX_LINE_BYTES:
                    raise NoAnswerError(f"{self._call} sent a line of more than {MAX_LINE_BYTES} bytes")
        except (urllib3.exceptions.HTTPError, OSError, AttributeError, ValueError) as error:
            # AttributeError, ValueError: what reading a response raises that was closed meanwhile.
            raise NoAnswerError(f"{self._call} broke off: {type(error).__name__}: {error}") from error
        if rest.strip():
            raise NoAnswerError(f"{self._call} broke off in the middle of an event")

    def silence_s(self, limit_s: float) -> None:
        """Change the longest silence from now on."""
        sock = self._socket()
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.settimeout(limit_s)

    def close(self) -> None:
        """End the stream; a thread that waits in `events` returns at once, usually with NoAnswerError."""
        sock = self._socket()
        if sock is not None:
            # Closing alone would not wake a thread that reads.
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def release(self) -> None:
        """Give the connection up; by the iterating thread, when it is done."""
        with contextlib.suppress(OSError, ValueError, AttributeError):
            self._response.close()

    def _socket(self) -> Any:
        sock = getattr(getattr(self._response, "connection", None), "sock", None)
        if sock is not None:
            return sock
        # With `Connection: close` the connection has no socket any more: the answer alone reads from it.
        reader = getattr(getattr(self._response, "_fp", None), "fp", None)
        return getattr(getattr(reader, "raw", None), "_sock", None)

    def _event(self, line: bytes) -> dict[str, Any]:
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            event = None
        if not isinstance(event, dict) or not isinstance(event.get("object"), dict):
            raise NoAnswerError(f"{self._call} sent a line that is no event")
        return event
