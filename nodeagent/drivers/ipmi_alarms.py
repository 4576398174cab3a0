"""The present alarms of an iBMC, page by page (node-faults 3). Pure: `raw` is given.

A list that is cut short looks like a recovery, so nothing is taken from a poll unless every page of it is beyond
doubt: the caller then keeps what the last good poll said.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass

from nodeagent.core.alarms import Alarm
from nodeagent.core.errors import IpmiError
from nodeagent.drivers.ipmi import (
    NETFN_OEM,
    OUT_OF_RANGE,
    DamagedAnswerError,
    Raw,
    at_once,
    payload_of,
    retrying,
)

COMMAND = 0x94
MANUFACTURER = b"\xdb\x07\x00"
"""2011, Huawei, least significant byte first (3.1)."""
RECORD_BYTES = 15
MAX_TOTAL = 0xFFFF
"""The index of a request and the total of an answer are two bytes (3.1, 3.2)."""
MAX_ROUNDS = 4
"""How often the list is read from its beginning when it changes meanwhile (3.3 says a few times)."""
_WHAT = "the question for its alarms"
_HEAD_BYTES = 7


@dataclass(frozen=True, slots=True)
class AlarmPage:
    """One answer. total: present alarms at that moment, 0 to 65535. alarms: those of this page, as they came."""

    total: int
    alarms: tuple[Alarm, ...]


def alarm_request(index: int) -> bytes:
    """The nine data bytes that ask for the alarms from `index` on, 0 to 65535: minor ones and above, of all devices."""
    return MANUFACTURER + struct.pack("<BBHBB", 0x40, 0x00, index, 0x0E, 0xFF)


def parse_page(answer: bytes) -> AlarmPage:
    """The page in an answer, completion code first (3.2).

    The reserved bytes are not looked at: nobody knows that they stay 0. Raises IpmiError for anything that is not
    exactly a page, IpmiNotSupportedError for completion codes that say so.
    """
    payload = payload_of(answer, _WHAT)
    if len(payload) < _HEAD_BYTES:
        raise DamagedAnswerError(f"a page of alarms has {len(payload)} bytes, fewer than its head of {_HEAD_BYTES}")
    if payload[:3] != MANUFACTURER:
        raise DamagedAnswerError(
            f"a page of alarms has the manufacturer id {payload[:3].hex(' ').upper()}, not {_HUAWEI} of Huawei"
        )
    total, count = struct.unpack_from("<HB", payload, 3)
    body = payload[_HEAD_BYTES:]
    if len(body) != RECORD_BYTES * count:
        raise DamagedAnswerError(
            f"a page of {count} alarms has {len(body)} bytes of alarms, not {RECORD_BYTES * count}"
        )
    if count > total:
        raise DamagedAnswerError(f"a page has {count} alarms where the BMC counts {total} in all")
    return AlarmPage(total, tuple(Alarm(*fields) for fields in _RECORD.iter_unpack(body)))


def poll_alarms(raw: Raw, pause: Callable[[], None] = at_once) -> tuple[Alarm, ...]:
    """All present alarms in the order in which the BMC tells them, doubles included.

    A busy BMC is asked again (see `retrying`; pause: the wait before that). A list that changes while it is read is
    read anew, MAX_ROUNDS times at most. Raises IpmiError, IpmiNotSupportedError, and what `raw` raises: nothing is
    known then.
    """
    ask = retrying(raw, pause)
    for _ in range(MAX_ROUNDS):
        alarms = _read_list(ask)
        if alarms is not None:
            return alarms
    raise IpmiError(f"the list of alarms changed during each of {MAX_ROUNDS} readings", "the next poll tries again")


def _read_list(ask: Raw) -> tuple[Alarm, ...] | None:
    """The whole list; None when it changed between two pages."""
    alarms: list[Alarm] = []
    total: int | None = None
    while True:
        answer = ask(NETFN_OEM, COMMAND, alarm_request(len(alarms)))
        if total is not None and answer[:1] and answer[0] in OUT_OF_RANGE:
            return None
        page = parse_page(answer)
        if total is not None and page.total != total:
            return None
        total = page.total
        alarms += page.alarms
        if len(alarms) > total:
            raise DamagedAnswerError(f"the BMC counts {total} alarms and told {len(alarms)}")
        if len(alarms) == total:
            return tuple(alarms)
        if not page.alarms:
            raise DamagedAnswerError(f"the BMC counts {total} alarms and tells none after the first {len(alarms)}")


_HUAWEI = MANUFACTURER.hex(" ").upper()
_RECORD = struct.Struct("<IIBBB4x")
