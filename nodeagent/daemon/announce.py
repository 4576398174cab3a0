"""From what a step found to what people and metrics hear of it. Pure."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from nodeagent.core.model import ChipId
from nodeagent.core.telemetry import Event, EventReason
from nodeagent.daemon.announce_switches import switch_events
from nodeagent.policy.state import Change, ChangeKind

MAX_EVENTS_PER_STEP = 50
"""A storm is told by its first events and a number (lesson 53)."""

Names = Callable[[int], str]
"""English name of a code, empty when unknown."""

_REASONS = {
    ChangeKind.OCCURRED: EventReason.FAULT_OCCURRED,
    ChangeKind.RECOVERED: EventReason.FAULT_RECOVERED,
    ChangeKind.VANISHED: EventReason.FAULT_RECOVERED,
    ChangeKind.NOTICED: EventReason.FAULT_NOTICED,
    ChangeKind.NOTICE_DROPPED: EventReason.NOTICE_DROPPED,
    ChangeKind.SILENT: EventReason.CHIP_SILENT,
    ChangeKind.ANSWERS: EventReason.CHIP_ANSWERS,
    ChangeKind.RAISED: EventReason.RAISED,
    ChangeKind.RELEASED: EventReason.RELEASED,
    ChangeKind.LIFTED: EventReason.RELEASED,
}
_WARNINGS = frozenset(
    {ChangeKind.OCCURRED, ChangeKind.NOTICED, ChangeKind.NOTICE_DROPPED, ChangeKind.SILENT, ChangeKind.RAISED}
)
_RULES = {"FaultDuration": "it lasts too long", "FaultFrequency": "it comes too often", "FaultAutofill": "restored"}


_HINTED = frozenset({ChangeKind.OCCURRED, ChangeKind.NOTICED, ChangeKind.RAISED, ChangeKind.SILENT})
"""News of a chip to which a switch fault at its port may be the key."""


def no_hints(_: ChipId) -> str:
    """Nothing is known beside the chip itself."""
    return ""


def events_of(
    changes: Iterable[Change],
    text_of: Callable[[int], str],
    name_of: Names,
    hints_of: Callable[[ChipId], str] = no_hints,
) -> list[Event]:
    """Events for the changes of one step, at most MAX_EVENTS_PER_STEP and one that counts the rest.

    Those of switches come by code, not by port, so they are few. hints_of: what else may concern a chip.
    """
    changes = tuple(changes)
    events = switch_events([change for change in changes if change.switch is not None])
    left_out = 0
    for change in (each for each in changes if each.switch is None):
        reason = _REASONS.get(change.kind)
        if reason is None:
            continue
        if len(events) >= MAX_EVENTS_PER_STEP:
            left_out += 1
            continue
        told = _events(change, reason, text_of, name_of)
        if change.chip is not None and change.kind in _HINTED and (hint := hints_of(change.chip)):
            told[0] = replace(told[0], message=f"{told[0].message}; hint: {hint}")
        events += told
    if left_out:
        events.append(
            Event(EventReason.FAULT_OCCURRED, f"and {left_out} more changes in the same moment", warning=True)
        )
    return events


def _events(change: Change, reason: EventReason, text_of: Callable[[int], str], name_of: Names) -> list[Event]:
    subject = str(change.chip) if change.chip else ""
    warning = change.kind in _WARNINGS
    if change.kind in (ChangeKind.RAISED, ChangeKind.RELEASED, ChangeKind.LIFTED):
        return [Event(reason, _raise_text(change, text_of), warning, subject)]
    if change.code is None:
        return [Event(reason, change.detail, warning, subject)]
    text = text_of(change.code)
    level = change.level.text if change.level is not None else ""
    name = name_of(change.code) or "not in the fault table"
    message = f"{text} {name}, level {level}" + (f", {change.detail}" if change.detail else "")
    events = [Event(reason, message, warning, subject)]
    if not change.known and change.kind in (ChangeKind.OCCURRED, ChangeKind.NOTICED):
        advice = f"code {text} is in no fault table and counts as {level}; add it to faults.site_file"
        events.append(Event(EventReason.UNKNOWN_CODE, advice, True, subject))
    return events


def _raise_text(change: Change, text_of: Callable[[int], str]) -> str:
    code = "the chip" if change.code is None else text_of(change.code)
    level = change.level.text if change.level is not None else ""
    if change.kind is ChangeKind.RAISED:
        return f"{code} is raised to {level}: {_RULES[change.detail]} ({change.detail})"
    how = "an operator lifted it" if change.kind is ChangeKind.LIFTED else "its rule released it"
    return f"{code} is no longer raised to {level}: {how} ({change.detail})"
