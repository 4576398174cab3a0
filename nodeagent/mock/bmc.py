"""What the pretended BMC of a node answers to IPMI commands: the three of node-faults 6.1, in any wanted disorder.

Pure: a state, a command, an answer. The same state as a text is the alarm file (`nodeagent.mock.alarm_file`), from
which the module of tests/ipmi lets OpenIPMI's ipmi_sim answer over a real wire.
"""

import struct
from dataclasses import dataclass, field, replace

from nodeagent.core.alarms import Alarm

ALARM_QUERY = (0x30, 0x94)
"""netFn and command of Huawei's query of the present events (3.1)."""
LABEL_QUERY = (0x30, 0x90)
"""netFn and command of Huawei's reading of the e-label, the serial number among it (10)."""
DEVICE_ID_QUERY = (0x06, 0x01)
"""netFn and command of the device id, which every BMC answers (6.1)."""

OK, UNKNOWN_COMMAND, WRONG_LENGTH = 0x00, 0xC1, 0xC7
"""Completion codes (3.6)."""
HUAWEI = 0x0007DB
"""Manufacturer id in requests and answers (3.1)."""
MAX_PAGE = 16
"""Most alarms in one answer: 8 + 16 * 15 bytes fit into the 255 of a message (3.2)."""
MAX_ALARMS = 1000
"""Most alarms that the module of ipmi_sim reads from its file."""
MAX_LABEL_CHARACTERS = 63
"""Longest text of the e-label: as much as a field of a board has room for."""
ALARM_SEVERITIES = {"normal": 0, "minor": 1, "major": 2, "critical": 3}
"""The severity byte of an alarm (3.2)."""

_EVENT = struct.Struct("<IIBBB4x")
_QUERY_PREFIX = struct.pack("<I", HUAWEI)[:3] + b"\x40\x00"
_QUERY_BYTES, _LABEL_BYTES = 9, 6
_LABEL_PREFIX = b"\x05\x00\x03"
_SERIAL_FIELD, _VENDOR_FIELD = 4, 0
_LAST_PART, _MORE_FOLLOWS = 0x80, 0x00
# Device id 0x20, revision 1, firmware 3.15, IPMI 2.0, a BMC with all functions, manufacturer, product 0.
_DEVICE_ID = bytes((OK, 0x20, 0x01, 0x03, 0x15, 0x02, 0x9F)) + struct.pack("<I", HUAWEI)[:3] + bytes(2)


@dataclass(frozen=True, slots=True)
class BmcFault:
    """How the answers differ from what they should be; the default is a BMC in good health.

    Only queries of alarms from the index `from_index` on, and only `times` of them (0 = all), are met by these.
    completion_code: 1..255 in place of the answer, 0 = none. cut_bytes: so many bytes are missing at the end of a page.
    count: the count byte, None = the truth. delay_ms: how late the answer is. empty: no alarm in the page. silent: no
    answer.

    The others hold for all answers. manufacturer_id: 24 bits. total: None = the truth; next_total: in all but the first
    page. label_code: completion code of readings of the e-label, label_part: most bytes of text in one of them.
    """

    completion_code: int = 0
    cut_bytes: int = 0
    count: int | None = None
    delay_ms: int = 0
    empty: bool = False
    silent: bool = False
    from_index: int = 0
    times: int = 0
    manufacturer_id: int = HUAWEI
    total: int | None = None
    next_total: int | None = None
    label_code: int = 0
    label_part: int = MAX_LABEL_CHARACTERS

    @property
    def passing(self) -> bool:
        """Whether there is any trouble of those that `from_index` and `times` are about."""
        return self.without_passing() != replace(self, from_index=0, times=0)

    def without_passing(self) -> "BmcFault":
        """What is left when `times` are used up."""
        return BmcFault(
            manufacturer_id=self.manufacturer_id,
            total=self.total,
            next_total=self.next_total,
            label_code=self.label_code,
            label_part=self.label_part,
        )


@dataclass(frozen=True, slots=True)
class BmcState:
    """Everything the answers depend on. serial, vendor: texts of the e-label, empty = the field is empty.

    page: most alarms in one answer, 1..16; a real BMC chooses its own (3.2).
    """

    alarms: tuple[Alarm, ...] = ()
    serial: str = ""
    vendor: str = ""
    page: int = MAX_PAGE
    fault: BmcFault = field(default_factory=BmcFault)


def is_hit(state: BmcState, netfn: int, command: int, data: bytes) -> bool:
    """Whether trouble that `from_index` and `times` are about meets this command."""
    asks_alarms = (netfn, command) == ALARM_QUERY and len(data) == _QUERY_BYTES and data.startswith(_QUERY_PREFIX)
    return asks_alarms and state.fault.passing and _index(data) >= state.fault.from_index


def answer(state: BmcState, netfn: int, command: int, data: bytes) -> bytes | None:
    """Completion code and payload of a command, None for silence (6.1).

    netfn: of the request, not shifted; data: without the network function and the command. How late the answer comes
    is `state.fault.delay_ms` of a command that is hit.
    """
    if (netfn, command) == DEVICE_ID_QUERY:
        return _DEVICE_ID
    if (netfn, command) == ALARM_QUERY:
        hit = is_hit(state, netfn, command, data)
        return _alarms(state, state.fault if hit else state.fault.without_passing(), data)
    if (netfn, command) == LABEL_QUERY:
        return _label(state, data)
    return bytes((UNKNOWN_COMMAND,))


def _alarms(state: BmcState, fault: BmcFault, data: bytes) -> bytes | None:
    if len(data) != _QUERY_BYTES:
        return bytes((WRONG_LENGTH,))
    if not data.startswith(_QUERY_PREFIX):
        return bytes((UNKNOWN_COMMAND,))
    if fault.silent:
        return None
    if fault.completion_code:
        return bytes((fault.completion_code,))
    index, severities, subject = _index(data), data[7], data[8]
    wanted = [a for a in state.alarms if severities >> a.severity & 1 and subject in (0xFF, a.subject)]
    page = [] if fault.empty else wanted[index:][: state.page]
    body = b"".join(_EVENT.pack(a.code, a.raised_s, a.severity, a.subject, a.device_id) for a in page)
    total = len(wanted) if fault.total is None else fault.total
    if index > 0 and fault.next_total is not None:
        total = fault.next_total
    count = len(page) if fault.count is None else fault.count
    head = bytes((OK,)) + struct.pack("<I", fault.manufacturer_id)[:3] + struct.pack("<HBB", total, count, 0)
    return head + (body[: len(body) - fault.cut_bytes] if len(body) > fault.cut_bytes else body)


def _label(state: BmcState, data: bytes) -> bytes:
    if len(data) != _LABEL_BYTES:
        return bytes((WRONG_LENGTH,))
    if not data.startswith(_LABEL_PREFIX):
        return bytes((UNKNOWN_COMMAND,))
    if state.fault.label_code:
        return bytes((state.fault.label_code,))
    text = {_SERIAL_FIELD: state.serial, _VENDOR_FIELD: state.vendor}.get(data[3], "")[data[4] :]
    part = text[: state.fault.label_part]
    return bytes((OK, _LAST_PART if part == text else _MORE_FOLLOWS)) + part.encode("ascii")


def _index(data: bytes) -> int:
    return int.from_bytes(data[5:7], "little")
