"""From active codes to levels and health (chip-faults 3.3-3.5 with R3; device-info 4.4). Pure."""

from typing import Protocol

from nodeagent.core.levels import Level, Plane, Severity
from nodeagent.core.model import ChipView, Family, FaultView
from nodeagent.policy.state import ActiveFault, ChipState, Notice


class Decision(Protocol):
    """Level of one code by itself."""

    @property
    def level(self) -> Level:
        """The level."""

    @property
    def plane(self) -> Plane:
        """The plane on which the level counts."""

    @property
    def known(self) -> bool:
        """Listed in the table; False = levelled by the policy for unknown codes."""


class Levels(Protocol):
    """What judging needs of a fault table (nodeagent.policy.table.FaultTable)."""

    def level_of(self, code: int, severity: Severity | None) -> Decision:
        """Level of one code; severity only matters for codes that the table does not list."""

    def text_of(self, code: int) -> str:
        """Upper-case spelling for publication."""


def judge_chip(chip: ChipState, family: Family, used: bool, levels: Levels) -> ChipView:
    """Level every code on its own, then take the maximum of each plane (R3)."""
    shown: list[FaultView] = [_fault_view(fault, levels) for fault in chip.faults.values()]
    shown += [_fault_view(note, levels) for code, note in chip.notices.items() if code not in chip.faults]
    network = max((f.level for f in shown if f.plane is Plane.NETWORK), default=Level.NORMAL)
    board = max((f.level for f in shown if f.plane is not Plane.NETWORK), default=Level.NORMAL)
    return ChipView(
        chip=chip.chip,
        faults=tuple(shown),
        chip_level=board,
        network_level=network,
        healthy=is_healthy(board, used),
        network_healthy=not family.has_network_plane or network <= Level.NOT_HANDLE,
        used=used,
        silent_since_ms=None if chip.silent_since is None else chip.silent_since.wall_ms,
    )


def is_healthy(level: Level, used: bool) -> bool:
    """Chip health of a chip level: PreSeparateNPU spares a chip that a pod uses (device-info 4.4)."""
    return level <= Level.SUB_HEALTH or (level is Level.PRE_SEPARATE and used)


def _fault_view(fault: ActiveFault | Notice, levels: Levels) -> FaultView:
    decision = levels.level_of(fault.code, fault.severity)
    carried = fault.carried if isinstance(fault, ActiveFault) else None
    return FaultView(
        code=fault.code,
        text=levels.text_of(fault.code),
        plane=decision.plane,
        since_ms=fault.since.wall_ms,
        level=decision.level if carried is None else carried,
        known=decision.known,
        once=isinstance(fault, Notice) and fault.once,
    )
