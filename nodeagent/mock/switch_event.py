"""Switch events of the mock: the value, its bytes in the ABI, and the text by which people name a code."""

import re
import struct
from dataclasses import dataclass
from typing import Final

from nodeagent.core.switch import NO_FAULT_ID, WHOLE_CHIP_PORT

PEERS: Final = {"cpu": 0, "npu": 1, "L2": 2, "na": 0xFFFF}
"""Kinds of devices at the other end of a port (lingqu-switch-faults 2.2, 4)."""
_PEER_NAMES = {number: name for name, number in PEERS.items()}

_EVENT = struct.Struct("<IIHHHHBB6xIIQ40x32s")
EVENT_BYTES: Final = 112
assert _EVENT.size == EVENT_BYTES

_CODE = re.compile(r"\[?0x([0-9a-fA-F]{8}),(na|\d{1,10})(?:,(cpu|npu|L2|na))?(?:,na)?\]?")


@dataclass(frozen=True, slots=True)
class SwitchCode:
    """What a code names: alarm id, fault id (NO_FAULT_ID = none), and the peer if it names one ("" = it does not)."""

    alarm_id: int
    fault_id: int
    peer: str = ""


def parse_switch_code(text: str) -> SwitchCode:
    """A code as the level table writes it, `[0x00f10509,132332,npu,na]`; brackets, peer and last `na` may be absent.

    Raises ValueError for anything else.
    """
    found = _CODE.fullmatch(text)
    if found is None:
        raise ValueError(f"a switch code looks like 0x00f10509,132332,npu or [0x08520003,na,cpu,na], not {text!r}")
    alarm, fault, peer = found.groups()
    fault_id = NO_FAULT_ID if fault == "na" else int(fault)
    if fault_id > NO_FAULT_ID:
        raise ValueError(f"a fault id has 32 bits, {fault} is larger")
    return SwitchCode(int(alarm, 16), fault_id, peer or "")


@dataclass(frozen=True, slots=True)
class MockSwitchEvent:
    """One event of a switch as the library would report it.

    token: number of the event within this node's switches, counted from 1; not part of the ABI. chip, port, peer,
    peer_id: 0..65535. raised_ms: Unix milliseconds, 0 = unknown.
    """

    token: int
    alarm_id: int
    fault_id: int
    chip: int
    port: int
    peer: int
    peer_id: int
    severity: int
    assertion: int
    raised_ms: int

    @property
    def identity(self) -> tuple[int, ...]:
        """What makes two events the same fault (3.1)."""
        return self.alarm_id, self.fault_id, self.peer, self.peer_id, self.chip, self.port

    @property
    def text(self) -> str:
        """The code as the level table writes it, with the peer of the event."""
        fault = "na" if self.fault_id == NO_FAULT_ID else str(self.fault_id)
        peer = "na" if self.port == WHOLE_CHIP_PORT else _PEER_NAMES.get(self.peer, "na")
        return f"[0x{self.alarm_id:08x},{fault},{peer},na]"

    @property
    def chip_wide(self) -> bool:
        """The event concerns the whole switch chip (16.2)."""
        return self.port == WHOLE_CHIP_PORT

    def to_bytes(self) -> bytes:
        """`struct LqDcmiEvent` (2.2)."""
        return _EVENT.pack(
            self.alarm_id,
            self.fault_id,
            self.peer,
            self.peer_id,
            self.chip,
            self.port,
            self.severity,
            self.assertion,
            self.token & 0xFFFFFFFF,
            self.token & 0xFFFFFFFF,
            self.raised_ms,
            f"mock switch fault {self.text}"[:32].encode(),
        )

    def report(self) -> dict[str, object]:
        """What a control command and the state report say of it."""
        port = None if self.chip_wide else self.port
        return {"chip": self.chip, "port": port, "code": self.text, "assertion": self.assertion}


class EveryEvent:
    """The ring of a process takes every event; the filters of its subscriptions are applied in the library (16.7)."""

    def matches(self, _event: object) -> bool:
        """Yes."""
        return True
