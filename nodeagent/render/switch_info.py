"""`SwitchInfoCfg`: the faults of LingQu switches as consumers read them (lingqu-switch-faults 8)."""

import json
from collections.abc import Sequence

from nodeagent.core.model import SwitchFaultView, SwitchView
from nodeagent.render.gojson import go_json, go_map


def listed_faults(switch: SwitchView) -> list[SwitchFaultView]:
    """The faults that are named: those with a registered code (6), none while nothing is known."""
    return [fault for fault in switch.faults if fault.known] if switch.known else []


def switch_info_text(switch: SwitchView, named: Sequence[SwitchFaultView], update_time_s: int) -> str:
    """The text. named: those of `listed_faults` that are not cut for size; level and status stand for all.

    Without a LingQu library the value is Go's zero value, nulls included (device-info 2).
    """
    return go_json(
        {
            "FaultCode": [_fault_text(fault) for fault in named] if switch.known else None,
            "FaultLevel": switch.fault_level if switch.known else "",
            "UpdateTime": update_time_s if switch.known else 0,
            "NodeStatus": switch.node_status,
            "FaultTimeAndLevelMap": _times(named) if switch.known else None,
        }
    )


def size_bytes_of(fault: SwitchFaultView) -> int:
    """Bytes of one fault in the text, its map entry included; quotes within the array are escaped."""
    inner = _fault_text(fault)
    return len(inner) + inner.count('"') + 3 + len(go_json(_times([fault])))


def comparable(text: str) -> str:
    """What two texts have in common when the second need not be written (8.4, with 13.10 mended).

    Compared are the faults without their order but each as often as it is there, the level of each, `FaultLevel` and
    `NodeStatus`; not `UpdateTime`, and times only as part of a fault.
    """
    try:
        info = json.loads(text)
        codes, times = info["FaultCode"], info["FaultTimeAndLevelMap"]
        levels = {key: entry["fault_level"] for key, entry in (times or {}).items()}
        faults = None if codes is None else sorted(codes)
        return go_json([faults, info["FaultLevel"], info["NodeStatus"], go_map(levels)])
    except (ValueError, KeyError, TypeError, AttributeError):
        return text  # not ours; it differs from everything else


def _fault_text(fault: SwitchFaultView) -> str:
    record = fault.record
    return go_json(
        {
            "EventType": record.alarm_id,
            "AssembledFaultCode": fault.text,
            "PeerPortDevice": record.peer_device,
            "PeerPortId": record.peer_id,
            "SwitchChipId": record.chip_id,
            "SwitchPortId": record.port_id,
            "Severity": record.severity,
            "Assertion": record.assertion,
            "AlarmRaisedTime": record.raised_ms,
        }
    )


def _times(named: Sequence[SwitchFaultView]) -> dict[str, dict[str, object]]:
    """Records with the same key share one entry, the last one wins (8.1)."""
    return go_map(
        {
            f"{fault.text}_{fault.record.chip_id}_{fault.record.port_id}": {
                "fault_time": fault.record.raised_ms,
                "fault_level": fault.level.text,
            }
            for fault in named
        }
    )
