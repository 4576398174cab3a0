"""From active codes to levels and health (chip-faults 3.3-3.5 with R3; device-info 4.4). Pure."""

from typing import Protocol

from nodeagent.core.instant import Instant
from nodeagent.core.levels import Level, Plane, Severity, plane_of
from nodeagent.core.model import ChipView, Family, FaultView, Reason
from nodeagent.policy.state import ActiveFault, ChipState, Notice, Why
from nodeagent.policy.table_records import Suppression

AUTOFILL_TEXT = "AutofillFaultCode"
"""Stands for the code of a manual separation whose code is not known any more (device-info 6.2)."""


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

    @property
    def suppressions(self) -> tuple[Suppression, ...]:
        """What the site does not want reported, ended ones included."""


def judge_chip(chip: ChipState, family: Family, used: bool, levels: Levels, wall_ms: int) -> ChipView:
    """Level every code on its own (R3), put the upgrade reasons on top, then take the maximum of each plane (3.5).

    A code that the site suppresses now (decision 13) is left out of everything and named in `suppressed`.
    wall_ms: Unix ms of now, for the end dates of suppressions.
    """
    hidden = {s.code: s for s in levels.suppressions if s.applies(chip.chip.physical_id, wall_ms)}
    present = {*chip.faults, *chip.notices, *(w.code for w in chip.reasons)}
    reasons = {w: at for w, at in chip.reasons.items() if w.code not in hidden}
    shown: list[FaultView] = [_fault_view(fault, levels) for code, fault in chip.faults.items() if code not in hidden]
    notices = (n for code, n in chip.notices.items() if code not in chip.faults and code not in hidden)
    shown += [_fault_view(note, levels) for note in notices]
    network = max((f.level for f in shown if f.plane is Plane.NETWORK), default=Level.NORMAL)
    board = max((f.level for f in shown if f.plane is not Plane.NETWORK), default=Level.NORMAL)
    for why in reasons:
        if why.code is not None and plane_of(why.code) is Plane.NETWORK:
            network = max(network, why.level)
        else:
            board = max(board, why.level)
    return ChipView(
        chip=chip.chip,
        faults=tuple(shown),
        chip_level=board,
        network_level=network,
        healthy=is_healthy(board, used),
        network_healthy=not family.has_network_plane or network <= Level.NOT_HANDLE,
        used=used,
        manually_separated=chip.manual is not None and any(w.level is Level.MANUALLY_SEPARATE for w in reasons),
        reasons=tuple(sorted((_reason(w, at, levels) for w, at in reasons.items()), key=_order)),
        suppressed=tuple(f"{s.text} until {s.until}: {s.reason}" for c, s in sorted(hidden.items()) if c in present),
        silent_since_ms=None if chip.silent_since is None else chip.silent_since.wall_ms,
    )


def _reason(why: Why, at: Instant, levels: Levels) -> Reason:
    text = AUTOFILL_TEXT if why.code is None else levels.text_of(why.code).lower()
    return Reason(at.wall_ms, text, why.level, why.upgrade_type)


def _order(reason: Reason) -> tuple[str, int, str]:
    return reason.code_text, reason.level, reason.upgrade_type.value


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
