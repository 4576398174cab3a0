"""The chip source: threads and sessions around the plan.

`chips` owns the plan and takes news and answers; `chips.calls` makes one driver call at a time, so that a call
which hangs delays no event; `chips.probe` tries quarantined chips in a session of its own, now and then.
A session that is being replaced keeps delivering events until its successor has subscribed.
While the driver is released for an upgrade there is no session, no call and no observation.
"""

import logging
import queue
import threading
from collections.abc import Callable, Sequence

from nodeagent.core.clock import Clock
from nodeagent.core.errors import NodeAgentError
from nodeagent.core.instant import Instant
from nodeagent.core.node_facts import NodeFacts
from nodeagent.core.observation import Observation
from nodeagent.core.telemetry import EventSink, Metrics
from nodeagent.drivers.answers import ALREADY_SUBSCRIBED, AnswerError, result_label
from nodeagent.drivers.chips import CodesAnswer, Connect, Opened
from nodeagent.drivers.host import HostGoneError, HostStuckError
from nodeagent.policy.listing import LibraryFacts
from nodeagent.sources.chip_calls import Brought, ChipCalls, News, Probed, Result, Task, Tasks
from nodeagent.sources.chip_session import Session, Sessions
from nodeagent.sources.driver_standing import DriverStanding
from nodeagent.sources.fact_questions import FactQuestions
from nodeagent.sources.loop import SourceLoop
from nodeagent.sources.plan import ChipPlan, ChipTimes, JobKind, Outcome

log = logging.getLogger("nodeagent.chips")


class ChipSource(SourceLoop[News | Brought]):
    """Turns one chip library into observations, for ever.

    emit: takes observations, from the source's thread. stuck_children: how many abandoned hosts still live; while
    there are any, no quarantined chip is probed. on_facts: takes what the node is, from the source's thread,
    whenever that differs from the last time; must not block.
    """

    def __init__(
        self,
        connect: Connect,
        clock: Clock,
        times: ChipTimes,
        emit: Callable[[Sequence[Observation]], None],
        events: EventSink,
        metrics: Metrics,
        stuck_children: Callable[[], int] = lambda: 0,
        on_facts: Callable[[NodeFacts], None] = lambda _: None,
    ) -> None:
        super().__init__(clock)
        self._emit = emit
        self._metrics = metrics
        self._plan = ChipPlan(times)
        self._facts = FactQuestions(self._plan, times.facts_s, on_facts)
        self._tasks: Tasks = queue.SimpleQueue()
        self._calls = ChipCalls(connect, self._gate, clock, metrics, stuck_children, self._inbox.put)
        self._sessions = Sessions()
        self._standing = DriverStanding(events, metrics)
        self._busy = False
        self._probing = False

    @property
    def library(self) -> LibraryFacts:
        """The library in use, or why there is none; from any thread."""
        return self._standing.library

    def _end(self) -> None:
        self._tasks.put(None)
        self._sessions.close()
        self._busy = False
        self._plan.on_session_lost(self._clock.now())

    def _new_thread(self) -> None:
        self._tasks.put(None)
        self._tasks = queue.SimpleQueue()
        self._busy = self._probing = False
        threading.Thread(target=self._calls.make, args=(self._tasks,), name="chips.calls", daemon=True).start()

    @property
    def sees_chips(self) -> bool:
        """A session with the driver is open."""
        return self._sessions.current is not None

    def _let_go(self) -> None:
        self._plan.release()
        self._sessions.close()
        self._new_thread()
        self._standing.released()

    def _take_back(self) -> None:
        self._plan.resume(self._clock.now())

    # -- the loop -----------------------------------------------------------------

    def _due_ms(self) -> int | None:
        if self._busy:
            return None if self._probing else self._probe_due_ms()
        due = (self._plan.next_due_ms(probing=self._probing), self._facts.due_ms())
        return min((ms for ms in due if ms is not None), default=None)

    def _probe_due_ms(self) -> int | None:
        return min((t.probe_due_ms for t in self._plan.tracks.values() if t.probe_due_ms is not None), default=None)

    def _dispatch(self) -> None:
        now = self._clock.now()
        if not self._busy:
            job = self._plan.next_job(now.mono_ms) or self._facts.next_job(now.mono_ms)
            if job is not None:
                self._busy = True
                track = self._plan.tracks.get(job.logic_id)
                self._tasks.put(Task(job, self._sessions.current, track.chip if track else None, self._plan.avoid))
        if not self._probing:
            logic_id = self._plan.next_probe(now.mono_ms)
            if logic_id is not None:
                self._probing = True
                probe = (self._tasks, self._plan.tracks[logic_id].chip, self._plan.avoid)
                threading.Thread(target=self._calls.probe, args=probe, name="chips.probe", daemon=True).start()

    def _take(self, message: News | Brought) -> None:
        now = self._clock.now()
        if isinstance(message, News):
            self._on_news(message, now)
        elif message.origin is not self._tasks:
            self._drop(message.what)
        elif isinstance(message.what, Probed):
            self._probing = False
            self._plan.on_probed(message.what.logic_id, message.what.ok, now)
        else:
            self._busy = False
            self._on_result(message.what, now)

    def _drop(self, late: Result | Probed) -> None:
        """What a thread of before the release, or of the run before this one, still brings."""
        if isinstance(late, Result) and isinstance(late.value, Opened):
            assert late.session.driver is not None
            late.session.close()
            self._gate.leave(late.session.driver)

    def _tell(self, observations: list[Observation]) -> None:
        if observations:
            self._emit(observations)

    # -- news -----------------------------------------------------------------------

    def _on_news(self, message: News, now: Instant) -> None:
        session, news = message.session, message.news
        if session is not self._sessions.current and session is not self._sessions.retiring:
            if session.driver is None:
                session.early.append(news)  # events that came before the session was known to be open
            return
        if news.gone:
            self._on_gone(session, news.gone, now)
            return
        self._metrics.count("driver_events_total", len(news.events))
        stamped = [(event, self._clock.at_mono_ns(event.mono_ns)) for event in news.events]
        self._tell(self._plan.on_events(stamped))
        if news.dropped > session.dropped:
            lost = news.dropped - session.dropped
            session.dropped = news.dropped
            self._metrics.count("driver_ring_dropped_total", lost)
            log.warning("event ring overflowed, every chip is queried lost=%d total=%d", lost, news.dropped)
            self._plan.query_all(now)

    def _on_gone(self, session: Session, why: str, now: Instant) -> None:
        if session is self._sessions.retiring:
            self._sessions.retiring = None
        elif not self._busy:  # a call under way finds out by itself, and knows which chip it was about
            self._lose(why, now)

    def _lose(self, why: str, now: Instant) -> None:
        """The session is of no more use for calls; its events are welcome until the next one has subscribed."""
        self._standing.lost(why)
        self._sessions.replace(None, subscribed=self._plan.subscribed)
        self._plan.on_session_lost(now)

    # -- results ----------------------------------------------------------------------

    def _on_result(self, result: Result, now: Instant) -> None:
        kind, error = result.job.kind, result.error
        self._metrics.count("driver_calls_total", call=kind.value, result=result_label(error))
        if error is None:
            self._metrics.set("source_last_success_timestamp_seconds", now.wall_ms / 1000, source="chips")
        if kind is JobKind.OPEN:
            self._on_open_result(result, now)
            return
        if kind is JobKind.SUBSCRIBE:
            self._on_subscribe_result(result, now)
        elif kind is JobKind.FACT:
            self._facts.on_result(result, now)
            if error is not None and result.host_lost:
                self._tell(self._plan.on_failed(result.job, _outcome(error), error.sentence, result.asked, now))
            self._facts.report(now)
        elif error is not None:
            self._tell(self._plan.on_failed(result.job, _outcome(error), error.sentence, result.asked, now))
        elif kind is JobKind.CODES:
            assert isinstance(result.value, CodesAnswer)
            self._metrics.set("chip_last_answer_seconds", now.wall_ms / 1000, chip=str(result.job.logic_id))
            self._tell(self._plan.on_codes(result.job.logic_id, result.value, result.asked, now))
        else:
            self._tell(self._plan.on_health(result.job.logic_id, result.value is True, now))
        if error is not None and result.host_lost and result.session is self._sessions.current:
            self._lose(error.sentence, now)

    def _on_open_result(self, result: Result, now: Instant) -> None:
        if result.error is not None:
            self._plan.on_open_failed(now)
            self._standing.not_opened(result.error, another=self.sees_chips)
            return
        opened = result.value
        assert isinstance(opened, Opened)
        self._sessions.replace(result.session, subscribed=self._plan.subscribed)
        assert result.session.driver is not None
        self._gate.leave(result.session.driver)
        self._standing.opened(opened)
        self._tell(self._plan.on_opened(opened.inventory, now))
        self._facts.on_opened(opened.inventory, now)
        if opened.problems:
            self._plan.look_again(now)
        for news in result.session.early:
            self._on_news(News(result.session, news), now)
        result.session.early.clear()

    def _on_subscribe_result(self, result: Result, now: Instant) -> None:
        error = result.error
        if error is None:
            self._plan.on_subscribed(now)
            self._sessions.retire()
            self._standing.subscribed()
            return
        occupied = isinstance(error, AnswerError) and error.rc == ALREADY_SUBSCRIBED
        self._plan.on_subscribe_failed(now, new_process=occupied)
        self._standing.not_subscribed(error)


def _outcome(error: NodeAgentError) -> Outcome:
    if isinstance(error, HostStuckError):
        return Outcome.HUNG
    return Outcome.GONE if isinstance(error, HostGoneError) else Outcome.REFUSED
