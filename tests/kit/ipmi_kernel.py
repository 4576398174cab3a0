"""A pretended `/dev/ipmi0`: reads and writes the same structures as the kernel, on a clock that only it moves."""

import ctypes
import errno
import os
import select
from collections.abc import Callable
from dataclasses import dataclass, field

from nodeagent.drivers.ipmi_device import RECEIVE_MSG_TRUNC, SEND_COMMAND, Received, Request

RESPONSE, EVENT, COMMAND = 1, 2, 3


@dataclass
class Coming:
    """A message on its way. at_s: when it is there. number: of the command that it answers."""

    at_s: float
    number: int
    data: bytes
    kind: int = RESPONSE


@dataclass
class Sent:
    """What a program sent, and the address that it was sent to."""

    netfn: int
    command: int
    data: bytes
    number: int
    address: bytes


@dataclass
class FakeKernel:
    """reply: what a command sets off, given what was sent and the time.

    errors: for each system call by name, the errno of its next calls, 0 = this one works. more_events: of poll(2),
    beside POLLIN. It answers as kernel 6.1 was seen to: a message that is too long is handed over as far as it fits,
    together with EMSGSIZE, and is gone then.
    """

    reply: Callable[[Sent, float], list[Coming]] = lambda _sent, _now_s: []
    errors: dict[str, list[int]] = field(default_factory=dict)
    more_events: int = 0
    clock_s: float = 1000.0
    sent: list[Sent] = field(default_factory=list)
    coming: list[Coming] = field(default_factory=list)
    opened: list[int] = field(default_factory=list)

    def open(self, path: str) -> int:
        self._fail("open")
        self.opened.append(7)
        return 7

    def close(self, fd: int) -> None:
        self.opened.remove(fd)

    def now_s(self) -> float:
        return self.clock_s

    def wait_readable(self, fd: int, limit_s: float) -> int:
        assert limit_s > 0
        self._fail("poll")
        first = min((c.at_s for c in self.coming), default=float("inf"))
        if self.more_events and first > self.clock_s:
            return self.more_events
        self.clock_s = max(self.clock_s, min(first, self.clock_s + limit_s))
        return (select.POLLIN | self.more_events) if first <= self.clock_s else 0

    def ioctl(self, fd: int, number: int, structure: ctypes.Structure) -> None:
        assert fd in self.opened
        if number == SEND_COMMAND:
            assert isinstance(structure, Request)
            self._fail("send")
            self._take(structure)
        else:
            assert number == RECEIVE_MSG_TRUNC
            assert isinstance(structure, Received)
            self._fail("receive")
            self._hand_over(structure)

    def _take(self, request: Request) -> None:
        data = ctypes.string_at(request.msg.data, request.msg.data_len)
        address = ctypes.string_at(request.addr, request.addr_len)
        sent = Sent(request.msg.netfn, request.msg.cmd, data, request.msgid, address)
        self.sent.append(sent)
        self.coming += self.reply(sent, self.clock_s)
        self.coming.sort(key=lambda c: c.at_s)

    def _hand_over(self, received: Received) -> None:
        if not self.coming or self.coming[0].at_s > self.clock_s:
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        message = self.coming.pop(0)
        room = received.msg.data_len
        ctypes.memmove(received.msg.data, message.data, min(room, len(message.data)))
        received.recv_type, received.msgid = message.kind, message.number
        received.msg.netfn, received.msg.data_len = 0x31, min(room, len(message.data))
        if len(message.data) > room:
            raise OSError(errno.EMSGSIZE, os.strerror(errno.EMSGSIZE))

    def _fail(self, call: str) -> None:
        waiting = self.errors.get(call, [])
        number = waiting.pop(0) if waiting else 0
        if number:
            self.clock_s += 0.001
            raise OSError(number, os.strerror(number))
