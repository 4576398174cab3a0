"""From polls of the BMC to the node faults that follow from them (node-faults 3.4, 4, 7.1, 7.3). Pure.

A good poll says everything that is present, so it replaces what was known; a failed one changes nothing but the age of
it. Nothing is concluded before there is a good poll and a table: ignorance never looks like health.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple

from nodeagent.core.alarms import Alarm, NodeLevel
from nodeagent.core.board import AlarmsSeen, AlarmsSilent, BoardDevice, BoardFact, BoardView
from nodeagent.core.instant import Instant
from nodeagent.policy.node_table import NodeTable

STALE_AFTER = 3
"""Failed polls in a row after which what is published may be out of date (timeline T12)."""


class AlarmKey(NamedTuple):
    """What makes two alarms the same: published device and code. Subjects that share a name share devices (3.4)."""

    device_type: str
    device_id: int
    code: str


@dataclass(frozen=True, slots=True)
class Sighting:
    """A present alarm. alarm: as the last good poll told it. since: the first good poll, of those in a row, with it."""

    alarm: Alarm
    since: Instant


@dataclass(frozen=True, slots=True)
class Silence:
    """Failed polls in a row. since: end of the first of them. tried, why: end of the last one, and its reason. tries:
    at least 1. no_way: the last time nobody could be asked."""

    since: Instant
    tried: Instant
    why: str
    tries: int
    no_way: bool = False

    @property
    def stale(self) -> bool:
        """There were so many that people should know."""
        return self.tries >= STALE_AFTER


@dataclass(frozen=True, slots=True)
class BoardState:
    """All that is known of the board.

    sightings: what the last good poll told. answered: when that was begun; None = there was none. levels: of each
    sighting as the last view has it, None = its code is in no table. view: None before a good poll and a table.
    silence: None while polls are good, and before the first one has ended.
    """

    sightings: Mapping[AlarmKey, Sighting] = field(default_factory=dict)
    answered: Instant | None = None
    levels: Mapping[AlarmKey, NodeLevel | None] = field(default_factory=dict)
    view: BoardView | None = None
    silence: Silence | None = None

    @property
    def stale(self) -> bool:
        """Three polls in a row have failed."""
        return self.silence is not None and self.silence.stale


class BoardChangeKind(Enum):
    """What a step found worth telling."""

    OCCURRED = "occurred"
    RECOVERED = "recovered"
    RELEVELLED = "has another level"
    STALE = "may be out of date"
    FRESH = "up to date again"


@dataclass(frozen=True, slots=True)
class BoardChange:
    """One change. key: the alarm concerned; None for STALE and FRESH. level: of its code, None = in no table; for an
    alarm that recovered the last one. was: the level before a reload. detail: for people."""

    kind: BoardChangeKind
    at: Instant
    key: AlarmKey | None = None
    level: NodeLevel | None = None
    was: NodeLevel | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class BoardStep:
    """view: the new one; None when there is nothing new to publish. changes: in the order in which they happened."""

    state: BoardState
    view: BoardView | None
    changes: tuple[BoardChange, ...]


def board_step(state: BoardState, facts: Sequence[BoardFact], now: Instant, table: NodeTable | None) -> BoardStep:
    """Take in facts in their order. table None: it is not loaded yet; what is seen is kept and nothing is concluded."""
    before, changes = state.view, list[BoardChange]()
    for fact in facts:
        if isinstance(fact, AlarmsSilent):
            state = _silent(state, fact, changes, now)
            continue
        state = _seen(state, fact, changes, now)
        if table is not None:
            state = _judged(state, table, changes, now)
    return BoardStep(state, state.view if state.view is not before else None, tuple(changes))


def reconfigure(state: BoardState, now: Instant, table: NodeTable) -> BoardStep:
    """Judge what the last good poll told by another table, without waiting for the next poll (T8)."""
    if state.answered is None:
        return BoardStep(state, None, ())
    changes: list[BoardChange] = []
    after = _judged(state, table, changes, now)
    return BoardStep(after, after.view if after.view is not state.view else None, tuple(changes))


def _silent(state: BoardState, fact: AlarmsSilent, changes: list[BoardChange], now: Instant) -> BoardState:
    old = state.silence
    tries = 1 if old is None else old.tries + 1
    if tries == STALE_AFTER:
        changes.append(BoardChange(BoardChangeKind.STALE, now, detail=fact.why))
    return replace(state, silence=Silence(fact.at if old is None else old.since, fact.at, fact.why, tries, fact.no_way))


def _seen(state: BoardState, fact: AlarmsSeen, changes: list[BoardChange], now: Instant) -> BoardState:
    if state.stale:
        changes.append(BoardChange(BoardChangeKind.FRESH, now))
    sightings: dict[AlarmKey, Sighting] = {}
    # Of duplicates the most severe and then the oldest is shown, whatever order the BMC tells them in.
    for alarm in sorted(fact.alarms, key=lambda a: (-a.severity, a.raised_s, a.subject)):
        key = AlarmKey(alarm.device_type, alarm.device_id, alarm.text)
        if key not in sightings:
            old = state.sightings.get(key)
            sightings[key] = Sighting(alarm, fact.at if old is None else old.since)
    return replace(state, sightings=dict(sorted(sightings.items())), answered=fact.at, silence=None)


def _judged(state: BoardState, table: NodeTable, changes: list[BoardChange], now: Instant) -> BoardState:
    """The state with the levels of its sightings, and with another view if that makes a difference."""
    levels = {key: table.level_of(key.code) for key in state.sightings}
    first = state.view is None
    changes += _differences(state.levels, levels, now, "found by the first poll" if first else "")
    generation = 0 if state.view is None else state.view.generation
    unlisted = tuple(sighting.alarm for key, sighting in state.sightings.items() if levels[key] is None)
    view = BoardView(generation + 1, _devices(levels), unlisted)
    if state.view is not None and _content(view) == _content(state.view):
        view = state.view
    return replace(state, levels=levels, view=view)


def _differences(
    old: Mapping[AlarmKey, NodeLevel | None], new: Mapping[AlarmKey, NodeLevel | None], now: Instant, detail: str
) -> list[BoardChange]:
    gone = [BoardChange(BoardChangeKind.RECOVERED, now, key, level) for key, level in old.items() if key not in new]
    changed = [
        BoardChange(BoardChangeKind.RELEVELLED, now, key, level, old[key])
        for key, level in new.items()
        if key in old and old[key] is not level
    ]
    come = [
        BoardChange(BoardChangeKind.OCCURRED, now, key, level, detail=detail)
        for key, level in new.items()
        if key not in old
    ]
    return gone + changed + come


def _devices(levels: Mapping[AlarmKey, NodeLevel | None]) -> tuple[BoardDevice, ...]:
    """Faulty devices; codes that no table lists are left out before anything else, and devices without others too."""
    listed: dict[tuple[str, int], dict[str, NodeLevel]] = {}
    for key, level in levels.items():
        if level is not None:
            listed.setdefault((key.device_type, key.device_id), {})[key.code] = level
    return tuple(
        BoardDevice(kind, number, tuple(sorted(codes)), max(codes.values()))
        for (kind, number), codes in sorted(listed.items())
    )


def _content(view: BoardView) -> tuple[object, ...]:
    """What makes a view another one; severity and time of an alarm do not."""
    return view.devices, [(alarm.device_type, alarm.device_id, alarm.text) for alarm in view.unlisted]
