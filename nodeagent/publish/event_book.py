"""Which Events are sent to the API server, and when. Pure book-keeping: time comes in as an argument.

A token bucket bounds the rate (chip-faults 9.3 has 10 a minute too); what cannot be sent at once is merged with others
of its reason and type, so the number of waiting letters is bounded by the burst and the list of reasons. What the agent
says of itself goes before what it says of chips (lesson 53). Each Event ends as sent, merged into a sent one, or
dropped: nothing is lost uncounted.
"""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

from nodeagent.core.instant import Instant
from nodeagent.core.telemetry import Event, EventReason

ABOUT_CHIPS = frozenset(
    {
        EventReason.FAULT_OCCURRED,
        EventReason.FAULT_RECOVERED,
        EventReason.FAULT_NOTICED,
        EventReason.NOTICE_DROPPED,
        EventReason.RAISED,
        EventReason.RELEASED,
        EventReason.UNKNOWN_CODE,
        EventReason.CHIP_SILENT,
        EventReason.CHIP_ANSWERS,
        EventReason.GATEWAY_NOT_SUPPORTED,
        EventReason.GATEWAY_UNKNOWN,
        EventReason.GATEWAY_ANSWERS,
        EventReason.LINK_QUERY_FAILED,
        EventReason.LINK_QUERY_WORKS,
        EventReason.SWITCHES_WITHDRAWN,
        EventReason.SWITCHES_CROWDED,
    }
)
"""These come once a chip or a code, so in floods. All others are the agent's own trouble and go first."""

STALE_MS = 600_000
"""A letter that waited this long is dropped: after an outage people read the present state, not a backlog."""
REPEAT_MS = 600_000
"""An identical Event within this time of the last is counted into the next one."""
CONTRARY_REPEAT_MS = 60_000
"""The same when its subject was in the news otherwise since (a fault recovered and came again): that is a change, which
readers must not miss for long."""
MAX_REMEMBERED = 256
"""Events whose repetitions are recognised; of more, the oldest are forgotten."""
MAX_SUBJECTS = 5
MAX_MESSAGE_BYTES = 1024
"""Limit of the API server for an Event with `eventTime` (kubernetes, core validation of Events)."""
_TOKEN = 60_000
"""One token in the unit of the bucket, which is refilled with `per_minute` units a millisecond."""


@dataclass(frozen=True, slots=True)
class EventLimits:
    """per_minute: Events in the long run, 1 or more. burst: at once after quiet, 1 or more; a fifth of it (rounded
    down) is kept for what the agent says of itself."""

    per_minute: int = 10
    burst: int = 25


@dataclass(frozen=True, slots=True)
class Letter:
    """One Event object to be sent, and the Events that it tells of.

    serial: number of the letter, the same at each attempt. message: at most MAX_MESSAGE_BYTES in UTF-8.
    count: Events in it. first, last: the moments of the first and the last of them.
    """

    serial: int
    reason: EventReason
    warning: bool
    message: str
    count: int
    first: Instant
    last: Instant


@dataclass(slots=True)
class _Entry:
    """Events that will become one letter: the first one, its repetitions, and different ones of the same kind.

    queued_ms: when the latest of them was allowed to be sent. subjects: of the different ones, the first few.
    """

    event: Event
    first: Instant
    last: Instant
    queued_ms: int
    count: int = 1
    different: int = 0
    subjects: list[str] = field(default_factory=list)

    @property
    def own(self) -> bool:
        return self.event.reason not in ABOUT_CHIPS

    def take_in(self, other: "_Entry") -> None:
        self.count += other.count
        self.last = max(self.last, other.last)
        self.first = min(self.first, other.first)
        self.queued_ms = max(self.queued_ms, other.queued_ms)
        if other.event != self.event:
            self.different += other.count
            subject = other.event.subject
            if subject and subject != self.event.subject and subject not in self.subjects:
                self.subjects.append(subject)

    def letter(self, serial: int) -> Letter:
        event = self.event
        return Letter(serial, event.reason, event.warning, self._message(), self.count, self.first, self.last)

    def _message(self) -> str:
        event = self.event
        first = f"{event.subject}: {event.message}" if event.subject else event.message
        if not self.different:
            return cut(first, MAX_MESSAGE_BYTES)
        shown = ", ".join(self.subjects[:MAX_SUBJECTS]) + (", …" if len(self.subjects) > MAX_SUBJECTS else "")
        more = cut(f" and {self.different} more" + (f" ({shown})" if shown else ""), MAX_MESSAGE_BYTES // 2)
        return cut(first, MAX_MESSAGE_BYTES - len(more.encode())) + more


@dataclass(slots=True)
class _Told:
    """When an Event was last told, and the repetitions that wait for the next telling."""

    at_ms: int
    held: _Entry | None = None
    due_ms: int = 0


class EventBook:
    """What waits to be sent. One letter is under way at a time: `take`, then `ended` or `failed`."""

    def __init__(self, limits: EventLimits) -> None:
        self._limits = limits
        self._reserve = limits.burst // 5
        self._units = limits.burst * _TOKEN
        self._units_at_ms: int | None = None
        self._waiting: list[_Entry] = []
        self._merged: dict[tuple[EventReason, bool], _Entry] = {}
        self._told: OrderedDict[Event, _Told] = OrderedDict()
        self._latest: OrderedDict[str, Event] = OrderedDict()
        self._under_way: Letter | None = None
        self._under_way_since_ms = 0
        self._not_before_ms = 0
        self._serial = 0

    @property
    def waiting(self) -> int:
        """Events that were added and have not ended yet."""
        held = sum(told.held.count for told in self._told.values() if told.held is not None)
        under_way = self._under_way.count if self._under_way is not None else 0
        return under_way + held + sum(entry.count for entry in self._entries())

    def add(self, event: Event, now: Instant) -> None:
        """Take an Event."""
        self._refill(now)
        entry = _Entry(event, now, now, now.mono_ms)
        told = self._told.get(event)
        repeat_ms = REPEAT_MS if self._latest.get(event.subject, event) == event else CONTRARY_REPEAT_MS
        self._remember_latest(event)
        if told is not None and now.mono_ms < told.at_ms + repeat_ms:
            due_ms = told.at_ms + repeat_ms
            if told.held is None:
                told.held, told.due_ms = entry, due_ms
            else:
                told.held.take_in(entry)
                told.due_ms = min(told.due_ms, due_ms)
            return
        if told is not None and told.held is not None:
            told.held.take_in(entry)
            entry, told.held = told.held, None
        self._queue(entry)

    def take(self, now: Instant) -> Letter | None:
        """The letter to send now, if one may be; one that failed comes again, as it was."""
        self._refill(now)
        self._release(now)
        if now.mono_ms < self._not_before_ms:
            return None
        if self._under_way is None and (entry := self._next()) is not None:
            self._remove(entry)
            self._serial += 1
            self._under_way = entry.letter(self._serial)
            self._under_way_since_ms = entry.queued_ms
            self._remember_told(entry, now)
        return self._under_way

    def ended(self, now: Instant) -> None:
        """The server has the letter, or will never take it."""
        self._refill(now)
        self._units -= _TOKEN  # only now: until a letter ends no other is begun, and one that expires costs nothing
        self._under_way = None

    def failed(self, now: Instant, pause_ms: int) -> None:
        """The letter is to be tried again after a pause, as every other one would fail too."""
        self._not_before_ms = now.mono_ms + pause_ms

    def expire(self, now: Instant) -> list[Letter]:
        """Drop what waited too long; returns it."""
        dropped: list[Letter] = []
        if self._under_way is not None and now.mono_ms - self._under_way_since_ms >= STALE_MS:
            dropped.append(self._under_way)
            self._under_way = None
        for entry in [entry for entry in self._entries() if now.mono_ms - entry.queued_ms >= STALE_MS]:
            self._remove(entry)
            dropped.append(entry.letter(0))
        return dropped

    def wait_ms(self, now: Instant) -> int | None:
        """Milliseconds until `take` is worth calling, 0 = now, None = not before another Event is added."""
        self._refill(now)
        times = [told.due_ms for told in self._told.values() if told.held is not None]
        if self._under_way is not None:
            times.append(self._not_before_ms)
        elif (next_ms := self._next_ms(now)) is not None:
            times.append(max(next_ms, self._not_before_ms))
        return None if not times else max(0, min(times) - now.mono_ms)

    # -- the bucket -----------------------------------------------------------------

    def _refill(self, now: Instant) -> None:
        if self._units_at_ms is not None:
            gained = (now.mono_ms - self._units_at_ms) * self._limits.per_minute
            self._units = min(self._limits.burst * _TOKEN, self._units + max(0, gained))
        self._units_at_ms = now.mono_ms

    def _needed(self, entry: _Entry) -> int:
        """Units that the bucket must hold for this entry."""
        return _TOKEN if entry.own else _TOKEN * (1 + self._reserve)

    def _next(self) -> _Entry | None:
        """The first that may be sent with what is in the bucket: own trouble before chips, each in order."""
        affordable = [entry for entry in self._entries() if self._needed(entry) <= self._units]
        return min(affordable, key=lambda entry: (not entry.own, entry.first.mono_ms), default=None)

    def _next_ms(self, now: Instant) -> int | None:
        lacking = [max(0, self._needed(entry) - self._units) for entry in self._entries()]
        return None if not lacking else now.mono_ms - (-min(lacking) // self._limits.per_minute)

    # -- what waits -------------------------------------------------------------------

    def _entries(self) -> Iterator[_Entry]:
        yield from self._waiting
        yield from self._merged.values()

    def _queue(self, entry: _Entry) -> None:
        """Keep the entry apart while it could be sent at once; otherwise merge it with others of its kind."""
        same = next((other for other in self._waiting if other.event == entry.event), None)
        if same is not None:
            same.take_in(entry)
            return
        kind = (entry.event.reason, entry.event.warning)
        before = len(self._waiting) + len(self._merged) + (self._under_way is not None)
        if before * _TOKEN + self._needed(entry) <= self._units:
            self._waiting.append(entry)
        elif kind in self._merged:
            self._merged[kind].take_in(entry)
        else:
            self._merged[kind] = entry

    def _remove(self, entry: _Entry) -> None:
        kind = (entry.event.reason, entry.event.warning)
        if self._merged.get(kind) is entry:
            del self._merged[kind]
        else:
            self._waiting = [other for other in self._waiting if other is not entry]

    # -- repetitions ------------------------------------------------------------------

    def _release(self, now: Instant) -> None:
        """Queue the held repetitions whose time has come."""
        for told in self._told.values():
            if told.held is not None and now.mono_ms >= told.due_ms:
                told.held.queued_ms = now.mono_ms
                self._queue(told.held)
                told.held = None

    def _remember_told(self, entry: _Entry, now: Instant) -> None:
        """The first Event of a letter is told in full, so a repetition of it can wait; merged ones cannot."""
        held = self._told.pop(entry.event, _Told(0)).held
        self._told[entry.event] = _Told(now.mono_ms, held, now.mono_ms + REPEAT_MS)
        while len(self._told) > MAX_REMEMBERED:
            _, oldest = self._told.popitem(last=False)
            if oldest.held is not None:
                oldest.held.queued_ms = now.mono_ms
                self._queue(oldest.held)

    def _remember_latest(self, event: Event) -> None:
        self._latest[event.subject] = event
        self._latest.move_to_end(event.subject)
        if len(self._latest) > MAX_REMEMBERED:
            self._latest.popitem(last=False)


def cut(text: str, limit_bytes: int) -> str:
    """The text in at most so many bytes of UTF-8, cut between characters and marked with `…`; limit at least 3.

    What UTF-8 cannot say (half a surrogate pair, from a file name for example) becomes `?`.
    """
    data = text.encode(errors="replace")
    if len(data) <= limit_bytes:
        return data.decode()
    return data[: limit_bytes - 3].decode(errors="ignore") + "…"
