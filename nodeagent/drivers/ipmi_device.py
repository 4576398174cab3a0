"""The BMC through the kernel's IPMI driver, `/dev/ipmi0` (node-faults 2). Structures are those of 64-bit Linux.

Each open file is a user of its own for the kernel, so another program may use the device at the same time. Within one
open file, the answer of a command that was given up may still arrive; its number tells it apart.
"""

import ctypes as C
import errno
import fcntl
import itertools
import os
import select
from collections.abc import Callable
from typing import Protocol

from nodeagent.core.clock import monotonic_s
from nodeagent.core.errors import IpmiAccessError, IpmiError
from nodeagent.drivers.ipmi import DamagedAnswerError, NoAnswerError

SEND_COMMAND = 0x8028690D
RECEIVE_MSG_TRUNC = 0xC030690B
SYSTEM_INTERFACE = 0x0C
BMC_CHANNEL = 0x0F
RESPONSE = 1
MAX_ANSWER_BYTES = 1024
"""Room for an answer; the kernel's limit is 272 bytes (2.2)."""


class Address(C.Structure):
    """`struct ipmi_system_interface_addr`, 8 bytes."""

    _fields_ = (("addr_type", C.c_int), ("channel", C.c_short), ("lun", C.c_ubyte))


class Message(C.Structure):
    """`struct ipmi_msg`, 16 bytes."""

    _fields_ = (("netfn", C.c_ubyte), ("cmd", C.c_ubyte), ("data_len", C.c_ushort), ("data", C.c_void_p))


class Request(C.Structure):
    """`struct ipmi_req`, 40 bytes."""

    _fields_ = (("addr", C.c_void_p), ("addr_len", C.c_uint), ("msgid", C.c_long), ("msg", Message))


class Received(C.Structure):
    """`struct ipmi_recv`, 48 bytes."""

    _fields_ = (
        ("recv_type", C.c_int),
        ("addr", C.c_void_p),
        ("addr_len", C.c_uint),
        ("msgid", C.c_long),
        ("msg", Message),
    )


class Kernel(Protocol):
    """The system calls of a transport; all but `now_s` raise OSError."""

    def open(self, path: str) -> int:
        """File descriptor, for reading and writing."""

    def ioctl(self, fd: int, number: int, structure: C.Structure) -> None:
        """The kernel reads the structure and may write into it, before an error too."""

    def wait_readable(self, fd: int, limit_s: float) -> int:
        """The events of poll(2); 0 when the time is over."""

    def close(self, fd: int) -> None:
        """Close the file."""

    def now_s(self) -> float:
        """Seconds of a clock that never goes back."""


class LinuxKernel:
    """The real ones."""

    def open(self, path: str) -> int:
        """open(2)."""
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)

    def ioctl(self, fd: int, number: int, structure: C.Structure) -> None:
        """ioctl(2)."""
        fcntl.ioctl(fd, number, structure, True)

    def wait_readable(self, fd: int, limit_s: float) -> int:
        """poll(2) for POLLIN."""
        poller = select.poll()
        poller.register(fd, select.POLLIN)
        return next((events for _, events in poller.poll(limit_s * 1000)), 0)

    def close(self, fd: int) -> None:
        """close(2)."""
        os.close(fd)

    def now_s(self) -> float:
        """The monotonic clock."""
        return monotonic_s()


class DeviceTransport:
    """An open device file (see `Transport`).

    deadline_s: longest time from a command to its answer. on_discarded: called for each answer that was thrown away
    because it belongs to a command that was given up, or is none. Raises IpmiAccessError when the device cannot be
    opened. Not to be closed while a command runs.
    """

    def __init__(
        self, path: str, deadline_s: float, on_discarded: Callable[[], None], kernel: Kernel | None = None
    ) -> None:
        self._path = path
        self._deadline_s = deadline_s
        self._on_discarded = on_discarded
        self._kernel = kernel or LinuxKernel()
        # A start by chance, so that nobody who reads a trace takes two runs for one.
        self._numbers = itertools.count(int.from_bytes(os.urandom(6), "little"))
        try:
            self._fd = self._kernel.open(path)
        except OSError as error:
            raise _not_opened(path, error) from error

    def close(self) -> None:
        """Close the device; late answers are the kernel's to throw away."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            self._kernel.close(fd)

    def raw(self, netfn: int, command: int, data: bytes) -> bytes:
        """Send one command to the BMC itself and wait for its answer: completion code, then payload.

        Raises NoAnswerError (deadline), DamagedAnswerError (too long, or empty), IpmiAccessError (the device is gone
        or is none), IpmiError (the kernel refuses the command).
        """
        if self._fd < 0:
            raise IpmiAccessError(f"{self._path} was closed")
        end_s = self._kernel.now_s() + self._deadline_s
        number = next(self._numbers)
        self._send(netfn, command, data, number, end_s)
        while True:
            self._wait(end_s)
            answer = self._receive(number, end_s)
            if answer is not None:
                return answer

    def _send(self, netfn: int, command: int, data: bytes, number: int, end_s: float) -> None:
        address = Address(SYSTEM_INTERFACE, BMC_CHANNEL, 0)
        out = (C.c_ubyte * max(1, len(data)))(*data)
        message = Message(netfn, command, len(data), C.addressof(out))
        self._ioctl(SEND_COMMAND, Request(C.addressof(address), C.sizeof(address), number, message), end_s)

    def _wait(self, end_s: float) -> None:
        """Until there may be an answer."""
        events = 0
        while not events:
            left_s = self._left_s(end_s)
            try:
                events = self._kernel.wait_readable(self._fd, left_s)
            except InterruptedError:
                continue
            except OSError as error:
                raise self._failed(error) from error
        if not events & select.POLLIN:
            raise IpmiAccessError(f"{self._path} reports an error (poll events {events:#x})", _GONE)

    def _receive(self, number: int, end_s: float) -> bytes | None:
        """The answer with that number; None when there was none yet, or another one, which is thrown away."""
        address, room = Address(), (C.c_ubyte * MAX_ANSWER_BYTES)()
        received = Received(
            0, C.addressof(address), C.sizeof(address), 0, Message(0, 0, MAX_ANSWER_BYTES, C.addressof(room))
        )
        too_long = False
        try:
            self._ioctl(RECEIVE_MSG_TRUNC, received, end_s)
        except BlockingIOError:
            return None
        except _TooLong:
            too_long = True
        if received.recv_type != RESPONSE or received.msgid != number:
            self._on_discarded()
            return None
        if too_long:
            raise DamagedAnswerError(f"the BMC answered with more than {MAX_ANSWER_BYTES} bytes")
        answer = bytes(room[: received.msg.data_len])
        if not answer:
            raise DamagedAnswerError("the kernel handed over an answer without a completion code")
        return answer

    def _ioctl(self, number: int, structure: C.Structure, end_s: float) -> None:
        while True:
            try:
                return self._kernel.ioctl(self._fd, number, structure)
            except InterruptedError:
                self._left_s(end_s)
            except OSError as error:
                if number == RECEIVE_MSG_TRUNC and error.errno == errno.EAGAIN:
                    raise
                if number == RECEIVE_MSG_TRUNC and error.errno == errno.EMSGSIZE:
                    raise _TooLong from error
                raise self._failed(error) from error

    def _left_s(self, end_s: float) -> float:
        left_s = end_s - self._kernel.now_s()
        if left_s <= 0:
            raise NoAnswerError(f"the BMC did not answer through {self._path} within {self._deadline_s:g} s")
        return left_s

    def _failed(self, error: OSError) -> IpmiError:
        if error.errno in (errno.ENODEV, errno.ENXIO):
            return IpmiAccessError(f"{self._path} has lost its BMC ({error.strerror})", _GONE)
        if error.errno == errno.ENOTTY:
            return IpmiAccessError(f"{self._path} is no IPMI device", "ipmi.device names the file, usually /dev/ipmi0")
        if error.errno in (errno.EACCES, errno.EPERM):
            return IpmiAccessError(f"{self._path} may not be used ({error.strerror})", _RIGHTS)
        return IpmiError(f"{self._path} refuses a command: {error.strerror or error}")


class _TooLong(Exception):
    """EMSGSIZE: the answer was longer than its room; the kernel has handed over what fits."""


_GONE = "the kernel's IPMI driver was unloaded, or the BMC is being restarted"
_RIGHTS = "run as root on the host, or in a privileged container"


def _not_opened(path: str, error: OSError) -> IpmiAccessError:
    reasons = {
        errno.ENOENT: (
            f"there is no {path}",
            "load the kernel modules ipmi_si and ipmi_devintf; in a pod, mount /dev of the host",
        ),
        errno.ENODEV: (f"{path} has no BMC behind it", "load the kernel module ipmi_si (or ipmi_ssif)"),
        errno.EPERM: (f"{path} may not be opened: the device cgroup of the container forbids it", _RIGHTS),
        errno.EACCES: (f"{path} may not be opened: no right to read and write it", _RIGHTS),
        errno.EBUSY: (f"{path} is used by somebody else", "end the program that has it open: fuser -v names it"),
    }
    reasons[errno.ENXIO] = reasons[errno.ENODEV]
    sentence, hint = reasons.get(error.errno or 0, (f"{path} cannot be opened: {error.strerror or error}", ""))
    return IpmiAccessError(sentence, hint)
