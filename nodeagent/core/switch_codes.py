"""Codes and levels of LingQu switch faults, as numbers and as text (lingqu-switch-faults 4 and 5)."""

import re
from enum import IntEnum
from typing import NamedTuple

from nodeagent.core.levels import Level
from nodeagent.core.switch import NO_FAULT_ID, WHOLE_CHIP_PORT, SwitchRecord

PEER_NPU, PEER_L2 = 1, 2
"""Values of `peer_device` that mean something to us (2.2)."""
OLD_PORT_ALARM, PORT_ALARM = 0x00F1FF09, 0x00F1FEF5
"""Alarm id of the port alarms until February 2025, and since (5.1)."""
MAX_CODE_LETTERS = 50
"""Longest code that a table may hold (5)."""

_PEERS = ("cpu", "npu", "L2")
_NONE = "na"
_WHOLE_CHIP = frozenset({WHOLE_CHIP_PORT, 0xFFFFFFFF})
_ALARM = re.compile(r"(?:0[xX])?[0-9A-Fa-f]{1,8}")
_NUMBER = re.compile(r"[0-9]{1,10}")


class SwitchLevel(IntEnum):
    """Levels of switch faults, mild to serious, with upstream's numbers (5); comparing and `max` follow them."""

    NOT_HANDLE = 0
    SUB_HEALTH = 1
    RESTART_REQUEST = 2
    PRE_SEPARATE = 3
    SEPARATE = 4

    @property
    def text(self) -> str:
        """The exact spelling of `FaultLevel`, for example `SubHealthFault`."""
        return _LEVELS[self][0]

    @property
    def status(self) -> str:
        """`NodeStatus` of a node whose most serious fault has this level; mind the capital H of `UnHealthy`."""
        return _LEVELS[self][1]

    @property
    def rank(self) -> Level:
        """The chip level that weighs as much, to compare faults of chips and of switches."""
        return _LEVELS[self][2]

    @classmethod
    def parse(cls, text: str) -> "SwitchLevel":
        """The level of an exact spelling. Raises ValueError for any other text."""
        for level in cls:
            if level.text == text:
                return level
        raise ValueError(f"not a level of switch faults: {text!r}")


_LEVELS = (
    ("NotHandle", "Healthy", Level.NOT_HANDLE),
    ("SubHealthFault", "SubHealthy", Level.SUB_HEALTH),
    ("RestartRequest", "UnHealthy", Level.RESTART_REQUEST),
    ("PreSeparate", "PreSeparate", Level.PRE_SEPARATE),
    ("Separate", "UnHealthy", Level.SEPARATE),
)
HEALTHY_STATUS = "Healthy"
"""`NodeStatus` of a node without switch faults (6)."""


class SwitchCode(NamedTuple):
    """A code taken apart. fault_id: NO_FAULT_ID = none. peer: `cpu`, `npu`, `L2` or `na`."""

    alarm_id: int
    fault_id: int
    peer: str

    @property
    def text(self) -> str:
        """The exact text that tables and consumers compare (4)."""
        fault = _NONE if self.fault_id == NO_FAULT_ID else str(self.fault_id)
        return f"[0x{self.alarm_id:08x},{fault},{self.peer},{_NONE}]"


def is_whole_chip(record: SwitchRecord) -> bool:
    """The record concerns the whole switch chip; its peer then means nothing, whatever it says (4)."""
    return record.port_id in _WHOLE_CHIP


def code_of(record: SwitchRecord) -> SwitchCode:
    """The code of a record (4); B12: of a whole-chip record with the peer `na`."""
    peer = _NONE
    if not is_whole_chip(record) and record.peer_device < len(_PEERS):
        peer = _PEERS[record.peer_device]
    return SwitchCode(record.alarm_id, record.fault_id, peer)


def place_of(chip_id: int, port_id: int) -> str:
    """Where, for people: `switch 2 port 11`, `switch 0`."""
    return f"switch {chip_id}" if port_id in _WHOLE_CHIP else f"switch {chip_id} port {port_id}"


def peer_text(record: SwitchRecord) -> str:
    """What is at the other end, for people: `npu 5`, `L2 0`; empty for a whole chip and for unknown kinds."""
    if is_whole_chip(record) or record.peer_device >= len(_PEERS):
        return ""
    return f"{_PEERS[record.peer_device]} {record.peer_id}"


def parse_switch_code(text: str) -> SwitchCode:
    """The code of a text in any letter case, with blanks, without brackets or `0x`, an empty part for `na`.

    The knowledge base writes an empty fault id (fault-catalogue 11, item 2). Raises ValueError for anything else.
    """
    parts = "".join(text.split()).removeprefix("[").removesuffix("]").split(",")
    if len(parts) != 4 or not _ALARM.fullmatch(parts[0]) or parts[3].lower() not in ("", _NONE):
        raise ValueError(f"not the code of a switch fault: {text!r}")
    peers = {peer.lower(): peer for peer in (*_PEERS, _NONE)} | {"": _NONE}
    peer = peers.get(parts[2].lower())
    fault = NO_FAULT_ID if parts[1].lower() in ("", _NONE) else _fault_id(parts[1])
    if peer is None or fault is None:
        raise ValueError(f"not the code of a switch fault: {text!r}")
    return SwitchCode(int(parts[0], 16), fault, peer)


def _fault_id(text: str) -> int | None:
    number = int(text) if _NUMBER.fullmatch(text) else NO_FAULT_ID
    return number if number < NO_FAULT_ID else None
