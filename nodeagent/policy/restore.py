"""What a chip begins with after a restart: the published object and the state file, reconciled (chip-faults 7.4). Pure.

The state file, when there is one, knows more and is newer or equally new; only an operator's lift is read from the
object. Without it the object is all there is: its reasons come back, its counters do not.
"""

from dataclasses import replace
from typing import Any

from nodeagent.core.instant import Instant
from nodeagent.core.levels import Level
from nodeagent.core.model import ChipId, Reason, UpgradeType
from nodeagent.core.observation import CarriedOver
from nodeagent.policy import faults, memory, raises
from nodeagent.policy.duration import DurationState
from nodeagent.policy.frequency import FrequencyState
from nodeagent.policy.raises import Told
from nodeagent.policy.state import UNNAMED, ChipState, Manual, NodeState, Why

MAX_ABSENT = 64
"""Bound of what is remembered of chips that are not there; the names may be anybody's."""


def restore(chip: ChipState, carried: CarriedOver, entering: int) -> list[Told]:
    """Fill a chip that has not answered yet; what was lifted or repaired on the way is told."""
    physical_id = chip.chip.physical_id
    remembered = carried.memory.get(physical_id)
    if remembered is not None:
        memory.recall(chip, remembered, carried.at, carried.same_boot)
        if carried.object_newer:
            _from_object(chip, [r for p, r in carried.reasons if p == physical_id], carried.at)
            if chip.manual is None and physical_id in (carried.manual or ()):
                chip.manual = Manual(0)
        if chip.manual is not None and chip.manual.entered > 0:
            # Never acknowledged as far as the file knows: absence from the field means nothing, unless the object has
            # this very separation among its reasons. Then the write arrived and we ended before we heard of it.
            arrived = _has_arrived(chip, [r for p, r in carried.reasons if p == physical_id])
            chip.manual = Manual(0 if arrived else entering)
    else:
        mine = tuple(c for c in carried.faults if c.physical_id == physical_id)
        chip.faults = faults.from_carried(mine, carried.at, entering)
        _from_object(chip, [r for p, r in carried.reasons if p == physical_id], carried.at)
        if physical_id in (carried.manual or ()):
            chip.manual = Manual(0)
    return _repair(chip, carried)


def absent_memory(state: NodeState) -> dict[str, Any]:
    """What an earlier run left of chips that this one has not seen, by physical id as text.

    A name that our writes cannot contain was lifted by nobody, so a separation counts as never made known.
    """
    carried = state.restored
    if carried is None:
        return {}
    here = {chip.chip.physical_id for chip in state.chips.values()}
    named = {*carried.memory, *(carried.manual or ()), *(p for p, _ in carried.reasons)}
    found: dict[str, Any] = {}
    for physical_id in sorted(named - here)[:MAX_ABSENT]:
        chip = ChipState(ChipId(physical_id, physical_id, 0, 0))
        restore(chip, carried, UNNAMED)
        if chip.manual is not None:
            chip.manual = Manual(UNNAMED)
        if left := memory.remember_chip(chip, state.acknowledged):
            found[str(physical_id)] = left
    return found


def merge(past: ChipState, chip: ChipState) -> None:
    """Put a restored past under what this run has seen of the chip, if the past is read only after that."""
    for code, seen in list(chip.faults.items()):
        if (known := past.faults.get(code)) is not None:
            severity = known.severity if seen.severity is None else seen.severity
            chip.faults[code] = replace(seen, since=min(known.since, seen.since), severity=severity)
    for code, counted in past.frequency.items():
        again = code in past.faults and code in chip.faults  # seen anew, but no occurrence
        chip.frequency[code] = _counted(counted, chip.frequency.get(code, FrequencyState()), again)
    for code, ran in past.duration.items():
        runs = chip.duration.get(code, DurationState())
        alarm = ran.alarm if ran.timed_out or runs.alarm is None else runs.alarm
        chip.duration[code] = DurationState(ran.timed_out or runs.timed_out, ran.edges + runs.edges, alarm)
    chip.faults = {**past.faults, **chip.faults}
    chip.reasons = {**past.reasons, **chip.reasons}
    chip.manual = past.manual or chip.manual
    chip.held = past.held + chip.held
    chip.triggers = {**past.triggers, **chip.triggers}
    chip.associated |= past.associated
    chip.recalled = past.recalled


def _counted(past: FrequencyState, seen: FrequencyState, again: bool) -> FrequencyState:
    """Counters of before and of this run. again: the first occurrence of this run is one of before."""
    fault = past.last_fault if again and len(seen.occurrences) < 2 else None
    return FrequencyState(
        past.occurrences + seen.occurrences[1 if again else 0 :],
        fault or seen.last_fault or past.last_fault,
        seen.last_recover or past.last_recover,
    )


def _from_object(chip: ChipState, reasons: list[Reason], at: Instant) -> None:
    """Reasons of the object, newest time first for doubled ones; a timed-out rule stays timed out, no count (W19)."""
    for reason in reasons:
        since = Instant(at.mono_ms - (at.wall_ms - reason.upgrade_time_ms), reason.upgrade_time_ms)
        why = Why(reason.code, reason.level, reason.upgrade_type)
        if why in chip.reasons and chip.reasons[why] >= since:
            continue
        chip.reasons[why] = since
        if why.code is None:
            continue
        if why.upgrade_type is UpgradeType.DURATION:
            chip.duration.setdefault(why.code, DurationState(timed_out=True, alarm=since))
        elif why.upgrade_type is UpgradeType.FREQUENCY:
            chip.frequency.setdefault(why.code, FrequencyState(last_fault=since))


def _has_arrived(chip: ChipState, reasons: list[Reason]) -> bool:
    """The object tells of a manual separation that the chip has, with the same moment."""
    separating = [r for r in reasons if r.level is Level.MANUALLY_SEPARATE]
    known = [chip.reasons.get(Why(r.code, r.level, r.upgrade_type)) for r in separating]
    return any(k is not None and k.wall_ms == r.upgrade_time_ms for k, r in zip(known, separating, strict=True))


def _repair(chip: ChipState, carried: CarriedOver) -> list[Told]:
    """Field and reasons must tell the same (7.4 step 3)."""
    separating = [w for w in chip.reasons if w.level is Level.MANUALLY_SEPARATE]
    if carried.manual is not None:
        named = chip.chip.physical_id in carried.manual
        known = chip.manual is None or chip.manual.entered == 0
        if not named and known and (separating or chip.manual is not None):
            return raises.lift(chip, carried.at)
    if chip.manual is not None and not separating:
        why = Why(None, Level.MANUALLY_SEPARATE, UpgradeType.AUTOFILL)
        chip.reasons[why] = carried.at
        return [Told(why, carried.at, began=True)]
    if chip.manual is None and separating:
        chip.manual = Manual(0)
    return []
