"""Fault events of the mock: the value, its bytes in the ABI, and the subscriber's filter (native-abi 7)."""

import struct
from dataclasses import dataclass
from typing import Final

HINT, MINOR, MAJOR, CRITICAL = 0, 1, 2, 3
SEVERITIES: dict[str, int] = {"hint": HINT, "minor": MINOR, "major": MAJOR, "critical": CRITICAL}
RECOVERY, OCCURRENCE, ONE_OFF = 0, 1, 2

_EVENT = struct.Struct("<i4x" + "IHBBBBBBii4xQ256s32s32s")
EVENT_BYTES: Final = 360
assert _EVENT.size == EVENT_BYTES


@dataclass(frozen=True, slots=True)
class Module:
    """The part of a chip that a fault is about (7.1); each number 0..255."""

    node_type: int = 0x40
    node_id: int = 0
    sub_node_type: int = 0
    sub_node_id: int = 0


@dataclass(frozen=True, slots=True)
class MockEvent:
    """One fault event as the driver would report it.

    token: number of the event within this node, counted from 1; not part of the ABI.
    logic_id: 0..65535, not necessarily a chip of the node.
    raised_time_ms: Unix milliseconds of the occurrence, in a recovery as well (7.5).
    additional_info: at most 32 bytes.
    """

    token: int
    logic_id: int
    code: int
    severity: int
    assertion: int
    module: Module
    event_serial_num: int
    notify_serial_num: int
    raised_time_ms: int
    name: str
    additional_info: bytes

    def report(self) -> dict[str, object]:
        """What a control command says of it."""
        return {"chip": self.logic_id, "code": f"{self.code:08X}", "assertion": self.assertion}

    def to_bytes(self, *, extended: bool) -> bytes:
        """`struct dcmi_event`; `extended` fills the additional bytes of 950 drivers in `resv` (7.1)."""
        extra = b""
        if extended:
            extra = struct.pack("<BxHH2x", 0, self.module.node_type, self.module.sub_node_type)
        return _EVENT.pack(
            0,
            self.code,
            self.logic_id,
            self.module.node_type,
            self.module.node_id,
            self.module.sub_node_type,
            self.module.sub_node_id,
            self.severity,
            self.assertion,
            self.event_serial_num,
            self.notify_serial_num,
            self.raised_time_ms,
            self.name.encode("utf-8")[:255],
            self.additional_info,
            extra,
        )


@dataclass(frozen=True, slots=True)
class EventFilter:
    """`struct dcmi_event_filter` (7.2) and the chip of the subscription (None = all)."""

    flags: int = 0
    code: int = 0
    severity: int = 0
    node_type: int = 0
    logic_id: int | None = None

    def matches(self, event: MockEvent) -> bool:
        """Every condition whose bit is set must hold: code equal, severity at least, module type equal."""
        return not (
            (self.logic_id is not None and self.logic_id != event.logic_id)
            or (self.flags & 1 and self.code != event.code)
            or (self.flags & 2 and event.severity < self.severity)
            or (self.flags & 4 and self.node_type != event.module.node_type)
        )
