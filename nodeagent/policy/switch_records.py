"""Which records of the library can be used, and which moment they tell (lingqu-switch-faults 2.2 and 4). Pure."""

from nodeagent.core.switch import NOTICE, SwitchRecord
from nodeagent.core.switch_codes import is_whole_chip

MAX_CHIP, MAX_PORT = 6, 47
"""Highest switch chip and port of the machines that are known (native-abi 16.2)."""
_MAX_MS = 2**63 - 1
_U16, _U32 = 2**16, 2**32
_SECONDS_BELOW = 10**12
_BEGIN_2015_MS = 1_420_070_400_000
_FUTURE_MS = 60_000


def unusable(record: SwitchRecord) -> str:
    """Why a record cannot be published at all, one sentence; empty = it can.

    Consumers read ids as unsigned numbers: one that is none makes them refuse the whole object (9.1).
    """
    wide = (record.alarm_id, record.fault_id, record.chip_id, record.port_id)
    narrow = (record.peer_device, record.peer_id, record.severity, record.assertion)
    if all(0 <= each < _U32 for each in wide) and all(0 <= each < _U16 for each in narrow):
        return ""
    return f"a record of a switch has numbers that none can have: {record}"


def oddity(record: SwitchRecord, wall_ms: int) -> str:
    """What is strange about a record that is used all the same, one sentence; empty = nothing.

    A torn entry of the library's table may look like this (native-abi 16.6), and so may a machine that we do not know:
    a wrong fault for one period of polls is better than one that nobody ever hears of.
    """
    found = []
    if record.chip_id > MAX_CHIP:
        found.append(f"switch chip {record.chip_id} is not in 0..{MAX_CHIP}")
    if record.port_id > MAX_PORT and not is_whole_chip(record):
        found.append(f"port {record.port_id} is not in 0..{MAX_PORT}")
    if record.assertion > NOTICE:
        found.append(f"assertion {record.assertion} is not in 0..{NOTICE}, it counts as an occurrence")
    if record.raised_ms and (moment := moment_ms(record.raised_ms)) is None:
        found.append(f"its time {record.raised_ms} is none, the time of its first report counts")
    elif record.raised_ms and moment is not None:
        if moment < _BEGIN_2015_MS:
            found.append(f"its time {record.raised_ms} is before 2015")
        elif moment > wall_ms + _FUTURE_MS:
            found.append(f"its time {record.raised_ms} is in the future")
    return "; ".join(found)


def moment_ms(raised_ms: int) -> int | None:
    """The Unix milliseconds to publish; None = the record tells none.

    Published as received, with one exception: what can only be seconds is taken for seconds (native-abi 21).
    """
    if not 0 < raised_ms <= _MAX_MS:
        return None
    in_seconds = raised_ms < _SECONDS_BELOW and raised_ms * 1000 >= _BEGIN_2015_MS
    return raised_ms * 1000 if in_seconds else raised_ms
