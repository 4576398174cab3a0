"""When the switch library is opened, subscribed and queried, and what comes of it. No I/O, time passed in.

Rules: lingqu-switch-faults 3, decision 9. Events are passed on as they come; a list carries the moment before its query
began, so that whoever applies both by their time ends with what is true.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from nodeagent.core.instant import Instant
from nodeagent.core.observation import (
    SwitchEventSeen,
    SwitchFact,
    SwitchLibraryFound,
    SwitchListSeen,
    SwitchSilent,
)
from nodeagent.core.pauses import backoff_s
from nodeagent.core.switch import NOTICE, OCCURRENCE, RECOVERY, SwitchRecord
from nodeagent.sources.tracks import RETRY_S, SETTLED_MS

SUBSCRIBE_RETRY_S = (1, 1, 2, 5, 10, 30, 60)
"""Pauses after failed subscriptions: three attempts with 1 s between them (3.1), and then for ever (decision 9)."""
POLL_AFTER_FAILURES = 3
"""After so many failed subscriptions the list is polled (3.3)."""
REFUSED_RETRY_S = (60, 300)
"""Pauses after the library refused to initialise: perhaps its kernel driver comes later."""


class SwitchJob(Enum):
    """Calls that the source makes."""

    OPEN = "switch_open"
    SUBSCRIBE = "switch_subscribe"
    QUERY = "switch_query"


class OpenFailure(Enum):
    """Why there is no session: no library that could be used, its init said no, or no answer came."""

    NO_LIBRARY = "no library"
    REFUSED = "refused"
    NO_ANSWER = "no answer"


@dataclass(frozen=True, slots=True)
class SwitchTimes:
    """Periods in seconds. query: full query, always. poll: the same after three failed subscriptions."""

    query_s: float = 300.0
    poll_s: float = 5.0


class SwitchPlan:
    """Owned by one thread. Every method that learns something returns the observations it makes of it.

    Nothing is due before `want`. A library that is not there is not looked for again before `resume`.
    """

    def __init__(self, times: SwitchTimes) -> None:
        self._times = times
        self._wanted = False
        self._absent = False
        self._released = False
        self._found: bool | None = None
        self._silent = ""
        self._open = False
        self._opened_ms = 0
        self._open_due_ms = 0
        self._open_failures = 0
        self._subscribe_due_ms: int | None = None
        self._subscribe_failures = 0
        self._query_due_ms = 0
        self._query_failures = 0
        self._hold_query_ms = 0
        self._last_event_ms = -2
        self._wanted_meanwhile = False
        self.subscribed = False

    # -- what to do next -------------------------------------------------------

    @property
    def idle(self) -> bool:
        """Nothing will be due by itself."""
        return not self._wanted or self._absent or self._released

    @property
    def polling(self) -> bool:
        """The list is queried in place of a subscription (3.3)."""
        return not self.subscribed and self._subscribe_failures >= POLL_AFTER_FAILURES

    def next_job(self, now_ms: int) -> SwitchJob | None:
        """The most urgent call that is due, to be made at once.

        A subscription goes before a query, so that nothing falls in between.
        """
        if self.idle:
            return None
        if not self._open:
            return SwitchJob.OPEN if now_ms >= self._open_due_ms else None
        if self._subscribe_due_ms is not None and now_ms >= self._subscribe_due_ms:
            return SwitchJob.SUBSCRIBE
        if now_ms < self._next_query_ms():
            return None
        self._wanted_meanwhile = False
        return SwitchJob.QUERY

    def next_due_ms(self) -> int | None:
        """Monotonic time at which something is due; None = never."""
        if self.idle:
            return None
        if not self._open:
            return self._open_due_ms
        if self._subscribe_due_ms is None:
            return self._next_query_ms()
        return min(self._subscribe_due_ms, self._next_query_ms())

    def want(self, now: Instant) -> None:
        """The node has switches: begin."""
        if not self._wanted:
            self._wanted, self._open_due_ms = True, now.mono_ms

    def refuse(self, now: Instant) -> list[SwitchFact]:
        """The node has switches, but the library is not to be used."""
        return self._say_found(False, now)

    def release(self) -> None:
        """The driver is let go: nothing is due until `resume`, and what is known stays as it is."""
        self._released, self._open, self.subscribed = True, False, False
        self._subscribe_due_ms = None

    def resume(self, now: Instant) -> None:
        """The driver may be used again. It may be another one, so neither failures nor an absent library count."""
        self._released = self._absent = False
        self._open_failures = self._subscribe_failures = self._query_failures = 0
        self._open_due_ms = self._hold_query_ms = now.mono_ms

    # -- the session ------------------------------------------------------------

    def on_opened(self, now: Instant) -> list[SwitchFact]:
        """Faults of before are in the list only, and no session has told of what came since the last (16.6).

        After a failed subscription the query goes first: the next one may take the session along.
        """
        self._open, self._opened_ms, self.subscribed = True, now.mono_ms, False
        failures = self._subscribe_failures
        self._subscribe_due_ms = now.mono_ms + (backoff_s(SUBSCRIBE_RETRY_S, failures) * 1000 if failures else 0)
        self.query_soon(now)
        return self._say_found(True, now)

    def on_open_failed(self, failure: OpenFailure, why: str, now: Instant) -> list[SwitchFact]:
        """No session. A library that was there once is waited for; what is known of the switches stays meanwhile."""
        self._open_failures += 1
        pauses = RETRY_S if self._found or failure is OpenFailure.NO_ANSWER else REFUSED_RETRY_S
        self._open_due_ms = now.mono_ms + backoff_s(pauses, self._open_failures) * 1000
        if self._found or failure is OpenFailure.NO_ANSWER:
            return self._say_silent(why, now)
        self._absent = failure is OpenFailure.NO_LIBRARY
        return self._say_found(False, now)

    def on_session_lost(self, now: Instant) -> None:
        """The session hangs or has ended: open a new one, at once unless that keeps happening."""
        if self._open and now.mono_ms - self._opened_ms > SETTLED_MS:
            self._open_failures = 0
        pause_s = backoff_s(RETRY_S, self._open_failures) if self._open_failures else 0
        self._open, self.subscribed, self._subscribe_due_ms = False, False, None
        self._open_due_ms = now.mono_ms + pause_s * 1000
        self._open_failures += 1

    def on_subscribed(self, now: Instant) -> None:
        """Events flow; a query closes the gap before the subscription."""
        self.subscribed, self._subscribe_due_ms, self._subscribe_failures = True, None, 0
        self.query_soon(now)

    def on_subscribe_failed(self, now: Instant) -> None:
        """Retried for ever; from the third failure on the list is polled meanwhile."""
        self._subscribe_failures += 1
        self._subscribe_due_ms = now.mono_ms + backoff_s(SUBSCRIBE_RETRY_S, self._subscribe_failures) * 1000
        if self.polling:
            self._query_due_ms = min(self._query_due_ms, now.mono_ms + self._period_ms())

    # -- what comes in ------------------------------------------------------------

    def query_soon(self, now: Instant) -> None:
        """A query is wanted that begins after this: events may have been lost. After one that hung it waits."""
        self._wanted_meanwhile = True
        self._query_due_ms = max(now.mono_ms, self._hold_query_ms)

    def on_events(self, events: Iterable[tuple[SwitchRecord, Instant]], now: Instant) -> list[SwitchFact]:
        """Events in the order of their callbacks, each with its moment. One of no known kind makes a query due."""
        found: list[SwitchFact] = []
        for record, at in events:
            self._last_event_ms = max(self._last_event_ms, at.mono_ms)
            found.append(SwitchEventSeen(record, at))
            if record.assertion not in (RECOVERY, OCCURRENCE, NOTICE):
                self.query_soon(now)
        return found

    def on_faults(self, records: tuple[SwitchRecord, ...], asked: Instant, now: Instant) -> list[SwitchFact]:
        """A query succeeded. asked: the moment before it began; the list gets the millisecond before that, so that an
        event of the same millisecond, which may have come after the library answered, outranks it."""
        self._query_failures = 0
        self._hold_query_ms = now.mono_ms
        self._query_due_ms = now.mono_ms + (0 if self._wanted_meanwhile else self._period_ms())
        return [*self._say_silent("", now), SwitchListSeen(records, asked.plus_ms(-1))]

    def on_query_failed(self, why: str, now: Instant, *, no_answer: bool) -> list[SwitchFact]:
        """The list stays as it is (3.3), and is asked for again after a pause.

        no_answer: the call hung or ended its process; then the next session waits as well, and hears events first.
        """
        self._query_failures += 1
        pause_ms = backoff_s(RETRY_S, self._query_failures) * 1000
        self._query_due_ms = now.mono_ms + min(pause_ms, self._period_ms())
        if no_answer:
            self._hold_query_ms = now.mono_ms + pause_ms
        return self._say_silent(why, now)

    # -- inside -------------------------------------------------------------------

    def _next_query_ms(self) -> int:
        """So late that the list is younger than every event so far, whoever wins in the same millisecond."""
        return max(self._query_due_ms, self._last_event_ms + 2)

    def _period_ms(self) -> int:
        return int((self._times.poll_s if self.polling else self._times.query_s) * 1000)

    def _say_found(self, present: bool, now: Instant) -> list[SwitchFact]:
        if self._found is present:
            return []
        self._found = present
        return [SwitchLibraryFound(present, now)]

    def _say_silent(self, why: str, now: Instant) -> list[SwitchFact]:
        if self._silent == why:
            return []
        self._silent = why
        return [SwitchSilent(why, now)]
