"""An iBMC in a few lines: it answers the two commands of node-faults 6.1, and misbehaves on request."""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from nodeagent.core.alarms import Alarm

Answer = bytes | Exception | Callable[[bytes], bytes]


def record(alarm: Alarm) -> bytes:
    """The 15 bytes of an alarm (3.2)."""
    return struct.pack("<IIBBB4x", alarm.code, alarm.raised_s, alarm.severity, alarm.subject, alarm.device_id)


def page(total: int, alarms: Sequence[Alarm], *, count: int | None = None, code: int = 0) -> bytes:
    """An answer to 30/94, completion code first."""
    head = struct.pack("<B3sHBx", code, b"\xdb\x07\x00", total, len(alarms) if count is None else count)
    return head + b"".join(map(record, alarms))


def numbered(count: int) -> list[Alarm]:
    """Alarms that differ."""
    return [Alarm(0x0100_0000 + n, 0x66A0_0000 + n, 1 + n % 3, 0x01, n % 256) for n in range(count)]


@dataclass
class FakeBmc:
    """alarms: all present ones. page_size: alarms of one answer. serial: answers to 30/90, one for each part.

    odd: what is said instead to the n-th request (from 0): bytes, an exception, or a change of the good answer.
    asked: data bytes of all requests so far.
    """

    alarms: Sequence[Alarm] = ()
    page_size: int = 16
    serial: Sequence[bytes] = (b"\x00\x80",)
    odd: dict[int, Answer] = field(default_factory=dict)
    asked: list[bytes] = field(default_factory=list)

    def raw(self, netfn: int, command: int, data: bytes) -> bytes:
        """As `Transport.raw`."""
        number = len(self.asked)
        self.asked.append(bytes(data))
        odd = self.odd.get(number)
        if isinstance(odd, Exception):
            raise odd
        if isinstance(odd, bytes):
            return odd
        answer = self.answer(netfn, command, bytes(data))
        return answer if odd is None else odd(answer)

    def answer(self, netfn: int, command: int, data: bytes) -> bytes:
        """The good answer (6.1)."""
        if (netfn, command) == (0x30, 0x90) and data[:4] == b"\x05\x00\x03\x04":
            return self._part(data[4])
        if (netfn, command) != (0x30, 0x94) or data[:5] != b"\xdb\x07\x00\x40\x00":
            return b"\xc1"
        if len(data) != 9:
            return b"\xc7"
        index, mask, subject = struct.unpack_from("<HBB", data, 5)
        found = [a for a in self.alarms if mask >> a.severity & 1 and subject in (0xFF, a.subject)]
        return page(len(found), found[index : index + self.page_size])

    def _part(self, offset: int) -> bytes:
        for part in self.serial:
            if offset == 0:
                return part
            offset -= len(part) - 2
        return b"\xc9"
