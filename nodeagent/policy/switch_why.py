"""Why a switch or one of its ports does to the node what it does, for `nodeagent why switch`. Pure."""

from typing import Any

from nodeagent.core.model import Family
from nodeagent.core.switch import WHOLE_CHIP_PORT
from nodeagent.core.switch_codes import is_whole_chip, parse_switch_code, place_of
from nodeagent.policy.rules import Configuration
from nodeagent.policy.state import NodeState
from nodeagent.policy.switch_judge import PLANE_PORTS, judge_switches, l2_ports
from nodeagent.policy.switch_listing import fault_json


def explain_switch(
    state: NodeState, chip_id: int, port_id: int | None, config: Configuration, absent: str = ""
) -> dict[str, Any] | None:
    """The report as JSON; None when the node has no switches. port_id None: the chip with all its ports.

    For a port the faults of the whole chip are shown as well. absent: why no library serves the node, if that is known.
    """
    if state.inventory is None or state.inventory.product.family is not Family.A3:
        return None
    view, silent = judge_switches(state.switches, config.switches), state.switches.silent_since
    faults = [
        fault
        for fault in view.faults
        if fault.record.chip_id == chip_id and (port_id in (None, fault.record.port_id) or is_whole_chip(fault.record))
    ]
    down = l2_ports(fault.record for fault in view.faults).get(chip_id, 0)
    fields = {
        "FaultCode": f"names {sum(fault.known for fault in faults)} of {len(faults)} fault(s) shown here",
        "FaultLevel": f"{view.fault_level!r}: the most serious of all {len(view.faults)} switch fault(s) of the node"
        + (", raised by a plane that is down" if view.planes_down else ""),
        "NodeStatus": f"{view.node_status!r}: it concerns the whole node, no single chip",
    }
    return {
        "place": place_of(chip_id, WHOLE_CHIP_PORT if port_id is None else port_id),
        "switch_chip": chip_id,
        "port": port_id,
        "watched": state.switches.present,
        "known": view.known,
        "why_absent": absent or None,
        "silent_since_ms": None if silent is None else silent.wall_ms,
        "why_silent": state.switches.silent_why or None,
        "node_level": view.fault_level,
        "node_status": view.node_status,
        "plane": {"down": chip_id in view.planes_down, "ports_with_faults": down, "needed": PLANE_PORTS},
        "faults": [
            fault_json(fault, config.switches) | {"said_by": _said_by(state, fault.record.identity, fault.text, config)}
            for fault in faults
        ],
        "fields": fields if view.known else {"SwitchInfoCfg": "has its zero value: nothing is known of switches"},
        "configuration": {"version": config.version, "layers": list(config.layers)},
    }


def _said_by(state: NodeState, identity: tuple[int, int, int, int, int, int], text: str, config: Configuration) -> str:
    fault = state.switches.faults[identity]
    if fault.carried is not None:
        return "our last published object; the library has not answered"
    return config.switches.level_of(parse_switch_code(text)).reason
