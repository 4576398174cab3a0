"""What the kernel's IPMI driver says to well-formed and odd system calls, asked with our own structures.

Runs in the guest; prints a JSON object, question -> answer. Errors are their symbols, as in `EAGAIN`. What stands in
for the driver in unit tests must answer the same.
"""

import ctypes as C
import errno
import fcntl
import json
import os
import select
from collections.abc import Callable
from typing import Any

from nodeagent.drivers.ipmi_device import (
    BMC_CHANNEL,
    RECEIVE_MSG_TRUNC,
    SEND_COMMAND,
    SYSTEM_INTERFACE,
    Address,
    Message,
    Received,
    Request,
)

RECEIVE_MSG = 0xC030690C
"""Unlike RECEIVE_MSG_TRUNC it leaves an answer that has no room where it is (node-faults 2.2)."""
_APP, _DEVICE_ID = 0x06, 0x01
_WAIT_MS = 5000


class Probe:
    """The questions, on an open device."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._out = (C.c_ubyte * 400)()
        self.answers: dict[str, Any] = {}

    def note(self, question: str, ask: Callable[[], Any]) -> None:
        """Ask, and keep what came."""
        try:
            self.answers[question] = ask()
        except OSError as error:
            self.answers[question] = errno.errorcode[error.errno or 0]

    def send(
        self,
        *,
        number: int = 7,
        netfn: int = _APP,
        command: int = _DEVICE_ID,
        data_bytes: int = 0,
        address: Address | None = None,
        address_bytes: int = 8,
        ioctl: int = SEND_COMMAND,
    ) -> str:
        """Send a command; `sent`."""
        where = address or Address(SYSTEM_INTERFACE, BMC_CHANNEL, 0)
        message = Message(netfn, command, data_bytes, C.addressof(self._out))
        fcntl.ioctl(self._fd, ioctl, Request(C.addressof(where), address_bytes, number, message))
        return "sent"

    def readable(self, limit_ms: int = _WAIT_MS) -> bool:
        """Wait for something to receive."""
        poller = select.poll()
        poller.register(self._fd, select.POLLIN)
        return bool(poller.poll(limit_ms))

    def receive(self, *, room: int = 1024, address_bytes: int = 8, ioctl: int = RECEIVE_MSG_TRUNC) -> list[Any]:
        """Error, type, number, netfn, command, bytes told, the first four bytes."""
        buffer, where = (C.c_ubyte * 1024)(), Address()
        received = Received(0, C.addressof(where), address_bytes, 0, Message(0, 0, room, C.addressof(buffer)))
        try:
            fcntl.ioctl(self._fd, ioctl, received)
            result = "ok"
        except OSError as error:
            result = errno.errorcode[error.errno or 0]
        told = received.msg
        first = bytes(buffer[: min(4, told.data_len)]).hex()
        return [result, received.recv_type, received.msgid, told.netfn, told.cmd, told.data_len, first]

    def exchange(self, number: int, **receiving: int) -> list[Any]:
        """Send, wait, and receive like that."""
        self.send(number=number)
        assert self.readable()
        return self.receive(**receiving)


def main() -> None:
    """Ask everything."""
    probe = Probe(os.open("/dev/ipmi0", os.O_RDWR))
    sizes = {kind.__name__: C.sizeof(kind) for kind in (Address, Message, Request, Received)}
    probe.note("sizes", lambda: sizes)
    probe.note("nothing there: receive", probe.receive)
    probe.note("nothing there: poll", lambda: probe.readable(50))
    probe.note("answer", lambda: probe.exchange(7))
    probe.note("answer, once more", probe.receive)
    probe.note("4 bytes of address", lambda: probe.send(address_bytes=4))
    probe.note("7 bytes of address", lambda: probe.send(address_bytes=7))
    probe.note("address of another type", lambda: probe.send(address=Address(0x0D, BMC_CHANNEL, 0)))
    probe.note("address of another channel", lambda: probe.send(address=Address(SYSTEM_INTERFACE, 0, 0)))
    probe.note("address with LUN 4", lambda: probe.send(address=Address(SYSTEM_INTERFACE, BMC_CHANNEL, 4)))
    probe.note("271 bytes of data", lambda: probe.send(data_bytes=271))
    probe.note("odd network function", lambda: probe.send(netfn=_APP + 1))
    probe.note("wrong ioctl", lambda: probe.send(ioctl=SEND_COMMAND + 1))
    probe.note("room for 4 bytes", lambda: probe.exchange(99, room=4))
    probe.note("room for 4 bytes, once more", probe.receive)
    probe.note("without TRUNC", lambda: probe.exchange(100, room=4, ioctl=RECEIVE_MSG))
    probe.note("without TRUNC, once more", probe.receive)
    probe.note("room for 4 bytes of address", lambda: probe.exchange(101, address_bytes=4))
    probe.note("room for 4 bytes of address, once more", probe.receive)
    print(json.dumps(probe.answers))


if __name__ == "__main__":
    main()
