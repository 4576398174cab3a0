"""What people hear of node faults: Events for the changes of one step. Pure.

That the BMC is silent is told by its source, and alarms that no table lists by the log, once for each code: a board
has many that are no fault (node-faults 7.1, T5).
"""

from collections.abc import Callable, Sequence

from nodeagent.core.telemetry import Event, EventReason
from nodeagent.policy.board import BoardChange, BoardChangeKind

MAX_EVENTS_PER_STEP = 50
"""A board that raises hundreds of alarms at once is told by its first ones and a number (lesson 53)."""


def board_events(changes: Sequence[BoardChange], name_of: Callable[[str], str]) -> list[Event]:
    """Events for the alarms that a table lists, at most MAX_EVENTS_PER_STEP and one that counts the rest.

    name_of: English name of a code, empty when unknown. A code that a reload adds to the table, or takes from it,
    occurs and recovers.
    """
    events = [event for change in changes if (event := _event(change, name_of)) is not None]
    if (more := len(events) - MAX_EVENTS_PER_STEP) > 0:
        rest = Event(EventReason.FAULT_OCCURRED, f"and {more} more changes of the board in the same moment", True)
        events = [*events[:MAX_EVENTS_PER_STEP], rest]
    return events


def _event(change: BoardChange, name_of: Callable[[str], str]) -> Event | None:
    key, level, was = change.key, change.level, change.was
    if key is None:
        return None
    subject = f"board {key.device_type} {key.device_id}"
    message = f"{key.code} {name_of(key.code) or 'without a name'}"
    if change.kind is BoardChangeKind.RELEVELLED and level is not None and was is not None:
        reason = EventReason.RAISED if level > was else EventReason.RELEASED
        message += f", level {level.text} instead of {was.text}: the table has changed"
        return Event(reason, message, level > was, subject)
    if change.kind is BoardChangeKind.RELEVELLED and level is None and was is not None:
        message += f", level {was.text}: the table does not list it any more"
        return Event(EventReason.FAULT_RECOVERED, message, False, subject)
    if level is None:
        return None
    message += f", level {level.text}"
    if change.kind is BoardChangeKind.RELEVELLED:
        message += ", listed by the table now"
    elif change.detail:
        message += f", {change.detail}"
    occurred = change.kind is not BoardChangeKind.RECOVERED
    return Event(EventReason.FAULT_OCCURRED if occurred else EventReason.FAULT_RECOVERED, message, occurred, subject)
