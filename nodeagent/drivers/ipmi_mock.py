"""IPMI commands to the pretended BMC of a mock node: the transport of a dry run, with the manners of the real ones."""

import os
import socket
from pathlib import Path

from nodeagent.core.clock import monotonic_s
from nodeagent.core.errors import IpmiAccessError, IpmiError
from nodeagent.drivers.ipmi import NoAnswerError
from nodeagent.mock.ipmi_lines import NO_BMC

_READ_BYTES = 4096


class MockTransport:
    """A connection to the BMC of a served mock node; for one thread.

    socket_path: of the server. deadline_s: longest wait for one answer. Raises IpmiAccessError when nobody serves there
    or the node has no BMC.
    """

    def __init__(self, socket_path: str | Path, deadline_s: float = 10.0) -> None:
        self._path = str(socket_path)
        self._deadline_s = deadline_s
        self._number = 0
        self._received = b""
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._socket.connect(self._path)
            greeting = self._exchange(f"ipmi {os.getpid()}\n")
        except OSError as problem:
            self._socket.close()
            raise self._gone(problem.strerror or str(problem)) from None
        except (IpmiError, IpmiAccessError):
            self._socket.close()
            raise
        if greeting == [b"rc", b"%d" % NO_BMC]:
            self._socket.close()
            raise IpmiAccessError("the mock node has no BMC", "`nodeagent mock bmc` brings it back")

    def raw(self, netfn: int, command: int, data: bytes) -> bytes:
        """Completion code and payload of the answer.

        netfn: of the request, not shifted. Raises IpmiError when no answer comes in time, IpmiAccessError when the BMC
        or the mock node is gone. An answer that comes after its time is thrown away, as that of a real BMC.
        """
        self._number += 1
        try:
            words = self._exchange(f"{self._number} {netfn} {command} {data.hex() or '-'}\n", b"%d" % self._number)
        except OSError as problem:
            raise self._gone(problem.strerror or str(problem)) from None
        if words == [b"gone"]:
            raise IpmiAccessError("the BMC of the mock node is gone", "`nodeagent mock bmc` brings it back")
        return bytes.fromhex(words[1].decode("ascii"))

    def close(self) -> None:
        """Close the connection; the mock node goes on."""
        self._socket.close()

    def _exchange(self, line: str, number: bytes | None = None) -> list[bytes]:
        """Say a line and wait for the one that answers it. number: what a numbered answer must begin with."""
        until_s = monotonic_s() + self._deadline_s
        self._socket.settimeout(self._deadline_s)
        self._socket.sendall(line.encode("ascii"))
        while True:
            words = self._line(until_s).split()
            if number is None or words[0] in (number, b"gone"):
                return words

    def _line(self, until_s: float) -> bytes:
        while b"\n" not in self._received:
            left_s = until_s - monotonic_s()
            if left_s <= 0:
                raise NoAnswerError(f"the BMC did not answer within {self._deadline_s:g} s")
            self._socket.settimeout(left_s)
            try:
                more = self._socket.recv(_READ_BYTES)
            except TimeoutError:
                continue
            if not more:
                raise self._gone("it closed the connection")
            self._received += more
        line, _, self._received = self._received.partition(b"\n")
        return line

    def _gone(self, reason: str) -> IpmiAccessError:
        return IpmiAccessError(f"no mock node at {self._path}: {reason}", "start one with `nodeagent mock serve`")
