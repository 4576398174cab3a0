"""Switch faults as JSON for `nodeagent scan` and `/state`, and what they hint at for single chips. Pure."""

from typing import Any

from nodeagent.core.model import Family, SwitchFaultView, SwitchView
from nodeagent.core.switch import NOTICE
from nodeagent.core.switch_codes import PEER_NPU, is_whole_chip, parse_switch_code, peer_text, place_of
from nodeagent.policy.state import NodeState
from nodeagent.policy.switch_judge import judge_switches
from nodeagent.policy.switch_table import SwitchTable

MAX_HINTS = 4
"""Switch faults that are named beside one chip; of more, their number."""


def switches_json(state: NodeState, table: SwitchTable, absent: str = "") -> dict[str, Any] | None:
    """All that is known of the switches; None on products without.

    watched: whether the LingQu library serves the node, null = not told yet. known: false = nothing is known, and
    `SwitchInfoCfg` has its zero value. why_absent: why the library does not serve the node, where `absent` tells it.
    level: empty without faults. since_ms: Unix ms.
    """
    if state.inventory is None or state.inventory.product.family is not Family.A3:
        return None
    view, silent = judge_switches(state.switches, table), state.switches.silent_since
    return {
        "watched": state.switches.present,
        "known": view.known,
        "level": view.fault_level,
        "node_status": view.node_status,
        "planes_down": list(view.planes_down),
        "why_absent": absent or None,
        "silent_since_ms": None if silent is None else silent.wall_ms,
        "why_silent": state.switches.silent_why or None,
        "faults": [fault_json(fault, table) for fault in view.faults],
    }


def fault_json(fault: SwitchFaultView, table: SwitchTable) -> dict[str, Any]:
    """One fault. port: null = the whole chip. known: listed in the table, and so named in `FaultCode`."""
    record = fault.record
    return {
        "code": fault.text,
        "name": table.name_of(parse_switch_code(fault.text)) or "not in the fault table",
        "level": fault.level.text,
        "known": fault.known,
        "switch_chip": record.chip_id,
        "port": None if is_whole_chip(record) else record.port_id,
        "peer": peer_text(record) or None,
        "severity": record.severity,
        "once": record.assertion == NOTICE,
        "since_ms": record.raised_ms,
    }


def hints(switch: SwitchView, physical_id: int) -> tuple[str, ...]:
    """Switch faults of ports whose other end is said to be this NPU, for people.

    No level is derived from them: nothing maps NPUs to ports, and what the peer id counts is not published (7).
    """
    found = [
        f"{place_of(fault.record.chip_id, fault.record.port_id)} towards it has {fault.text} ({fault.level.text})"
        for fault in switch.faults
        if fault.record.peer_device == PEER_NPU
        and fault.record.peer_id == physical_id
        and not is_whole_chip(fault.record)
    ]
    more = len(found) - MAX_HINTS
    return (*found[:MAX_HINTS], *([f"and {more} more"] if more > 0 else []))
