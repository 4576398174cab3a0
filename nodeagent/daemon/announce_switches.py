"""What people hear of switches: one Event for each code of a step, whatever the number of its ports. Pure.

A plane that goes down takes 16 ports and more with it; who reads Events wants the plane, not the ports. Whether the
library is there and answers is told by its source.
"""

from collections.abc import Sequence

from nodeagent.core.telemetry import Event, EventReason
from nodeagent.policy.state import Change, ChangeKind

MAX_PLACES = 8
"""Places that one Event names; of more, their number."""
MAX_GROUPS = 20
"""Kinds of news that are told of one step; the table has 30 codes, a library gone mad any number."""

_REASONS = {
    ChangeKind.OCCURRED: EventReason.FAULT_OCCURRED,
    ChangeKind.RECOVERED: EventReason.FAULT_RECOVERED,
    ChangeKind.VANISHED: EventReason.FAULT_RECOVERED,
    ChangeKind.NOTICED: EventReason.FAULT_NOTICED,
    ChangeKind.NOTICE_DROPPED: EventReason.NOTICE_DROPPED,
    ChangeKind.RAISED: EventReason.RAISED,
    ChangeKind.RELEASED: EventReason.RELEASED,
    ChangeKind.SWITCHES_WITHDRAWN: EventReason.SWITCHES_WITHDRAWN,
    ChangeKind.SWITCHES_CROWDED: EventReason.SWITCHES_CROWDED,
}
_QUIET = frozenset({ChangeKind.RECOVERED, ChangeKind.VANISHED, ChangeKind.RELEASED})


def switch_events(changes: Sequence[Change]) -> list[Event]:
    """Events for the changes of switches of one step; changes of the same kind and code share one."""
    groups: dict[tuple[ChangeKind, str, str], list[Change]] = {}
    for change in changes:
        if change.switch is not None and change.kind in _REASONS:
            # What is about no code is told in full, each by itself.
            apart = "" if change.switch.text else change.detail + change.switch.place
            groups.setdefault((change.kind, change.switch.text, apart), []).append(change)
    told = list(groups.values())
    events = [event for group in told[:MAX_GROUPS] for event in _events(group)]
    if (more := len(told) - MAX_GROUPS) > 0:
        text = f"and {more} more kinds of switch news in the same moment"
        events.append(Event(EventReason.FAULT_OCCURRED, text, warning=True, subject="switches"))
    return events


def _events(group: Sequence[Change]) -> list[Event]:
    first = group[0]
    told = first.switch
    assert told is not None  # they were chosen by it
    reason, warning = _REASONS[first.kind], first.kind not in _QUIET
    if not told.text:
        return [Event(reason, first.detail, warning, told.place)]
    name = told.name or "not in the fault table"
    message = f"{told.text} {name}, level {told.level.text}"
    if len(group) == 1:
        message += (f", towards {told.peer}" if told.peer else "") + (f", {first.detail}" if first.detail else "")
    else:
        places = [each.switch.place for each in group if each.switch is not None]
        more = len(places) - MAX_PLACES
        message += f", {len(places)} times: {', '.join(places[:MAX_PLACES])}" + (
            f" and {more} more" if more > 0 else ""
        )
    events = [Event(reason, message, warning, told.place if len(group) == 1 else "switches")]
    if not told.known and first.kind in (ChangeKind.OCCURRED, ChangeKind.NOTICED):
        advice = (
            f"code {told.text} is in no switch table: it counts as NotHandle and is published nowhere; add it under"
        )
        events.append(Event(EventReason.UNKNOWN_CODE, f"{advice} `switch` to faults.site_file", True, told.place))
    return events
