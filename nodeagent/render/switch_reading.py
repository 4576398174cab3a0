"""What our last published object said of switches, to be kept until the library answers (decision 4).

The content may be anybody's: what is not as `switch_info` writes it says nothing.
"""

import json
from collections.abc import Mapping

from nodeagent.core.observation import CarriedSwitches
from nodeagent.core.switch import NOTICE, RECOVERY, SwitchRecord
from nodeagent.core.switch_codes import SwitchLevel, parse_switch_code
from nodeagent.render.reading import INT64

MAX_READ = 1024
"""Faults that are taken from an object; more were never written."""
_NUMBERS = ("EventType", "PeerPortDevice", "PeerPortId", "SwitchChipId", "SwitchPortId", "Severity", "Assertion")
_U32 = range(2**32)


def carried_switches(data: Mapping[str, object]) -> CarriedSwitches | None:
    """The switch faults of an object's `data`; None when it has none, the zero value, or is not as we write it.

    Notices are left out: an object that is there was taken, so they were reported (decision 3). The node level is kept
    where it is higher than those of the named faults: unlisted codes and a plane that is down are not named.
    """
    text = data.get("SwitchInfoCfg")
    if not isinstance(text, str):
        return None
    try:
        info = json.loads(text)
        if info["FaultCode"] is None:
            return None
        times = info["FaultTimeAndLevelMap"]
        faults = [_fault(each, times) for each in info["FaultCode"][:MAX_READ]]
        published = SwitchLevel.parse(info["FaultLevel"]) if info["FaultLevel"] else None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    kept = tuple((record, level) for record, level in faults if record.assertion not in (NOTICE, RECOVERY))
    explained = max((level for _, level in faults), default=None)
    floor = published if published is not None and (explained is None or published > explained) else None
    return CarriedSwitches(kept, floor)


def _fault(text: str, times: Mapping[str, Mapping[str, object]]) -> tuple[SwitchRecord, SwitchLevel]:
    fault = json.loads(text)
    code = fault["AssembledFaultCode"]
    numbers = [_number(fault[name], _U32) for name in _NUMBERS]
    alarm_id, peer_device, peer_id, chip_id, port_id, severity, assertion = numbers
    raised_ms = _number(fault["AlarmRaisedTime"], INT64)
    level = SwitchLevel.parse(str(times[f"{code}_{chip_id}_{port_id}"]["fault_level"]))
    parsed = parse_switch_code(code)
    record = SwitchRecord(
        alarm_id, parsed.fault_id, peer_device, peer_id, chip_id, port_id, severity, assertion, raised_ms
    )
    return record, level


def _number(value: object, allowed: range) -> int:
    if type(value) is not int or value not in allowed:
        raise ValueError(f"{value!r} is not a number of its range"[:200])
    return value
