"""How facts change the active codes of one chip (chip-faults 2.6 with R1, R12; decisions 3 and 5).

All functions work on the step's own copy of the chip's state.
"""

from dataclasses import replace

from nodeagent.core.codes import HANG, UB_DEGRADED, UB_DOWN, UBOE_DEGRADED, UBOE_DOWN
from nodeagent.core.instant import Instant
from nodeagent.core.observation import CarriedFault, FaultNoticed, FaultOccurred
from nodeagent.policy.state import LEAVING_LIMIT_MS, NOTICE_LIMIT_MS, ActiveFault, ChipState, Notice

DRIVER_CANNOT_KNOW = frozenset({HANG, UBOE_DOWN, UBOE_DEGRADED, UB_DOWN, UB_DEGRADED})
"""Codes made above the driver: their absence from its list means nothing (R12)."""


def from_carried(carried: tuple[CarriedFault, ...], at: Instant, entering: int) -> dict[int, ActiveFault]:
    """Active codes of a chip at start: what our last published object said of it (decision 4).

    A carried fault keeps its published time; its age on the monotonic clock follows from the wall clock,
    the only one that survives a restart.
    """
    found = {}
    for fault in carried:
        since = Instant(at.mono_ms - max(0, at.wall_ms - fault.since_ms), fault.since_ms)
        found[fault.code] = ActiveFault(fault.code, since, None, entering, fault.level)
    return found


def occur(chip: ChipState, fact: FaultOccurred, entering: int) -> bool:
    """A code became active; true when it was not before.

    Active already: the earlier time stays, a told severity wins over none (R2).
    """
    known = chip.faults.get(fact.code)
    if known is None:
        chip.faults[fact.code] = ActiveFault(fact.code, fact.at, fact.severity, entering)
    else:
        severity = fact.severity if fact.severity is not None else known.severity
        chip.faults[fact.code] = replace(known, since=min(known.since, fact.at), severity=severity, carried=None)
    chip.notices.pop(fact.code, None)
    chip.touched[fact.code] = fact.at.mono_ms
    return known is None


def notice(chip: ChipState, fact: FaultNoticed, entering: int) -> bool:
    """A once-only code: shown in exactly one acknowledged report. A code that is active stays active (false).

    A second notice may come while a write with the first is under way: it is owed a report of its own.
    """
    if fact.code in chip.faults:
        return False
    until = fact.at.mono_ms + NOTICE_LIMIT_MS
    chip.notices[fact.code] = Notice(fact.code, fact.at, fact.severity, entering, until, once=True)
    return True


def recover(chip: ChipState, code: int, at: Instant, acknowledged: int) -> ActiveFault | None:
    """A code is no longer active; the fault it was, or None when it was not active.

    A fault that no acknowledged report has shown yet stays visible for one report (R1); a carried one was shown.
    """
    fault = chip.faults.pop(code, None)
    if fault is not None and fault.entered > acknowledged and fault.carried is None:
        until = at.mono_ms + LEAVING_LIMIT_MS
        chip.notices[code] = Notice(code, fault.since, fault.severity, fault.entered, until, once=False)
    return fault


def missing_from(chip: ChipState, listed: set[int], at_mono_ms: int) -> list[int]:
    """Active codes that a query begun at `at_mono_ms` does not list although it could have."""
    return [
        code
        for code in chip.faults
        if code not in listed and not _is_above(chip.faults[code]) and not is_newer(chip, code, at_mono_ms)
    ]


def _is_above(fault: ActiveFault) -> bool:
    """Made above the driver, and not by an earlier run that ended: a hang is found anew (R12)."""
    return fault.code in DRIVER_CANNOT_KNOW and not (fault.code == HANG and fault.carried is not None)


def is_newer(chip: ChipState, code: int, at_mono_ms: int) -> bool:
    """An event of this code came after the query began, so the answer says nothing about it."""
    return chip.touched.get(code, at_mono_ms) > at_mono_ms


def settle(chip: ChipState, at: Instant) -> None:
    """After the first successful query, begun at `at`: what is left of the carried faults is real."""
    chip.answered = at
    for code, fault in chip.faults.items():
        if fault.carried is not None:
            chip.faults[code] = replace(fault, carried=None)
