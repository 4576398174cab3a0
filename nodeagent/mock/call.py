"""One call of the ABI as the server sees it, and how answers are put into bytes."""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nodeagent.mock.chip import Chip
from nodeagent.mock.node import MockNode, Topology

Answer = tuple[int, tuple[bytes, ...]]
"""Return code and the contents of the caller's buffers, in the order the library lists them."""


class CallerDies(Exception):
    """The call ends its process with a signal in place of an answer."""

    def __init__(self, signal: int) -> None:
        super().__init__(signal)
        self.signal = signal


@dataclass(slots=True)
class Call:
    """A call with its subject resolved.

    args: integer arguments in the order of the ABI; for a call about a chip or card those after the ids.
    blob: what the caller's input buffer holds. ids: the leading ids as given.
    topology: what the caller's init saw, None before it. chip: the chip meant, None if there is no such one.
    initialised: the calling library has had a successful init.
    """

    node: MockNode
    name: str
    v2: bool
    pid: int
    args: tuple[int, ...]
    blob: bytes
    ids: tuple[int, ...]
    topology: Topology | None
    chip: Chip | None
    initialised: bool = True

    @property
    def now_ms(self) -> int:
        """Milliseconds of the node's monotonic clock."""
        return self.node.clock.now().mono_ms

    @property
    def the_chip(self) -> Chip:
        """The chip of a call that has one; the dispatcher refuses the others before they get here."""
        if self.chip is None:
            raise LookupError(f"{self.name} came without a chip")
        return self.chip


Handler = Callable[[Call], Answer]


def ok(*outs: bytes) -> Answer:
    """Success with these buffers."""
    return 0, outs


def refuse(code: int) -> Answer:
    """An error; the caller's buffers stay as they are."""
    return code, ()


def i32(*values: int) -> bytes:
    """Signed 32-bit integers, little-endian as both platforms are."""
    return struct.pack(f"<{len(values)}i", *values)


def u32(*values: int) -> bytes:
    """Unsigned 32-bit integers."""
    return struct.pack(f"<{len(values)}I", *(value & 0xFFFFFFFF for value in values))


def text(value: str, size_bytes: int) -> bytes:
    """A text field padded with NULs; a text that fills it has none (5.3)."""
    return value.encode("utf-8")[:size_bytes].ljust(size_bytes, b"\0")


def u32_list(values: Sequence[int], capacity: int, refusal: int) -> Answer:
    """Count and items, or `refusal` when the caller's list is too short; entries beyond stay untouched."""
    if capacity < len(values):
        return refuse(refusal)
    return ok(i32(len(values)), u32(*values))
