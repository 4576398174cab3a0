"""From the faults of switches to the level and status of the node (lingqu-switch-faults 6). Pure."""

from collections.abc import Iterable

from nodeagent.core.instant import Instant
from nodeagent.core.model import SwitchFaultView, SwitchView
from nodeagent.core.switch import OCCURRENCE, WHOLE_CHIP_PORT, SwitchRecord
from nodeagent.core.switch_codes import PEER_L2, SwitchLevel, is_whole_chip, place_of
from nodeagent.policy.state import Change, ChangeKind, SwitchTold
from nodeagent.policy.switch_state import SwitchFault, SwitchState
from nodeagent.policy.switch_table import SwitchTable

PLANE_PORTS = 16
"""Ports of one chip towards L2 that make up its L1-L2 plane; as many or more down = the plane is down (6, 13.7)."""


def judge_switches(state: SwitchState, table: SwitchTable) -> SwitchView:
    """What is to be published of the switches; the zero value while nothing is known of them.

    Every fault has the level of its own code, or that of our last published object until somebody confirms it. A plane
    that is down raises the node, not its single faults.
    """
    if not state.known:
        return SwitchView()
    faults = tuple(_view(fault, table) for fault in state.faults.values())
    planes = planes_down(state.faults.values())
    levels = [fault.level for fault in faults]
    levels += [state.floor] if state.floor is not None else []
    levels += [SwitchLevel.SEPARATE] if planes else []
    return SwitchView(
        known=True,
        faults=faults,
        level=max(levels, default=None),
        planes_down=planes,
        silent_since_ms=None if state.silent_since is None else state.silent_since.wall_ms,
    )


def planes_down(faults: Iterable[SwitchFault]) -> tuple[int, ...]:
    """Chips whose plane is down, in order: by distinct ports with an occurrence towards L2, whatever its code (6).

    A record of a whole chip is no port.
    """
    return tuple(
        sorted(chip for chip, count in l2_ports(fault.record for fault in faults).items() if count >= PLANE_PORTS)
    )


def l2_ports(records: Iterable[SwitchRecord]) -> dict[int, int]:
    """Switch chip -> number of its ports towards L2 that have an occurrence."""
    ports: dict[int, set[int]] = {}
    for record in records:
        if record.peer_device == PEER_L2 and record.assertion == OCCURRENCE and not is_whole_chip(record):
            ports.setdefault(record.chip_id, set()).add(record.port_id)
    return {chip: len(found) for chip, found in ports.items()}


def plane_changes(before: SwitchView, after: SwitchView, now: Instant) -> list[Change]:
    """Planes that went down and came back between two views."""
    changes = []
    for chip in sorted({*before.planes_down} ^ {*after.planes_down}):
        told = SwitchTold(place_of(chip, WHOLE_CHIP_PORT), level=SwitchLevel.SEPARATE)
        if chip in after.planes_down:
            text = f"{PLANE_PORTS} or more ports towards L2 have faults: the L1-L2 plane is down, the node is separated"
            changes.append(Change(ChangeKind.RAISED, now, detail=text, switch=told))
        elif after.known:
            text = f"less than {PLANE_PORTS} ports towards L2 have faults: the L1-L2 plane works again"
            changes.append(Change(ChangeKind.RELEASED, now, detail=text, switch=told))
    return changes


def _view(fault: SwitchFault, table: SwitchTable) -> SwitchFaultView:
    decision = table.level_of(fault.code)
    return SwitchFaultView(
        record=fault.record,
        text=fault.code.text,
        level=decision.level if fault.carried is None else fault.carried,
        known=decision.known or fault.carried is not None,
    )
