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
from dataclasses import dataclass, field

from nodeagent.core.clock import Clock, monotonic_s
from nodeagent.core.errors import HostError, NodeAgentError
from nodeagent.core.instant import Instant
from nodeagent.core.model import ChipId
from nodeagent.core.node_facts import NodeFacts
from nodeagent.core.observation import Observation
from nodeagent.core.telemetry import Event, EventReason, EventSink, Metrics
from nodeagent.drivers.answers import ALREADY_SUBSCRIBED, AnswerError, AnswerKind, result_label
from nodeagent.drivers.chips import ChipDriver, CodesAnswer, Connect, DriverNews, Opened
from nodeagent.drivers.host import HostGoneError, HostStuckError
from nodeagent.policy.listing import LibraryFacts
from nodeagent.sources.fact_plan import FactPlan
from nodeagent.sources.gate import Gate
from nodeagent.sources.plan import ChipPlan, ChipTimes, Job, JobKind, Outcome

log = logging.getLogger("nodeagent.chips")


@dataclass(slots=True, eq=False)
class _Session:
    """A driver session and what it has told so far."""

    driver: ChipDriver | None = None
    dropped: int = 0
    early: list[DriverNews] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Task:
    """A job with all that its thread needs, so that it never looks into the plan."""

    job: Job
    session: _Session | None
    chip: ChipId | None
    avoid: frozenset[int]


@dataclass(frozen=True, slots=True)
class _News:
    session: _Session
    news: DriverNews


@dataclass(frozen=True, slots=True)
class _Result:
    """A finished call: its value or its error. session: the one it was made on (the new one for OPEN)."""

    job: Job
    session: _Session
    asked: Instant
    value: object = None
    error: NodeAgentError | None = None


@dataclass(frozen=True, slots=True)
class _Probed:
    logic_id: int
    ok: bool


_Tasks = queue.SimpleQueue[_Task | None]
"""Work of one thread; None ends it. It also names the time between two releases that a result belongs to."""


@dataclass(frozen=True, slots=True)
class _Brought:
    origin: _Tasks
    what: _Result | _Probed


class ChipSource:
    """Turns one chip library into observations, for ever.

    emit: takes observations, from the source's thread. stuck_children: how many abandoned hosts still live; while
    there are any, no quarantined chip is probed (the stuck call may be on that very chip). on_facts: takes what the
    node is, from the source's thread, whenever that differs from the last time; must not block.
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
        self._connect = connect
        self._clock = clock
        self._emit = emit
        self._events = events
        self._metrics = metrics
        self._stuck_children = stuck_children
        self._on_facts = on_facts
        self._plan = ChipPlan(times)
        self._facts = FactPlan(self._plan.tracks, times.facts_s)
        self._inbox: queue.SimpleQueue[_News | _Brought | None] = queue.SimpleQueue()
        self._tasks: _Tasks = queue.SimpleQueue()
        self._gate = Gate()
        self._times_released = 0
        self._holding = False
        self._session: _Session | None = None
        self._retiring: _Session | None = None
        self._busy = False
        self._probing = False
        self._stopping = threading.Event()
        self._said: dict[str, str] = {}
        self._library = LibraryFacts()

    @property
    def library(self) -> LibraryFacts:
        """The library in use, or why there is none; from any thread."""
        return self._library

    @property
    def waiting(self) -> int:
        """News and answers in the inbox."""
        return self._inbox.qsize()

    def run(self) -> None:
        """Work until `stop`; the supervisor calls this again should it ever raise."""
        self._new_thread()
        try:
            while not self._stopping.is_set():
                self._dispatch()
                message = self._next()
                if message is not None:
                    self._take(message)
        finally:
            self._tasks.put(None)
            self._close_sessions()
            self._busy = False
            self._plan.on_session_lost(self._clock.now())

    def _new_thread(self) -> None:
        self._tasks.put(None)
        self._tasks = queue.SimpleQueue()
        self._busy = self._probing = False
        threading.Thread(target=self._make_calls, args=(self._tasks,), name="chips.calls", daemon=True).start()

    def _close_sessions(self) -> None:
        for session in (self._session, self._retiring):
            if session is not None and session.driver is not None:
                session.driver.close()
        self._session = self._retiring = None

    # -- release for a driver upgrade, from any thread -----------------------------

    def release(self) -> None:
        """Let go of the driver and hold what is known, until `resume`; `holds_driver` says when that is done."""
        self._gate.shut()
        self._inbox.put(None)

    def resume(self) -> None:
        """Open the driver again and query every chip."""
        self._gate.open()
        self._inbox.put(None)

    @property
    def holds_driver(self) -> bool:
        """A session is open, or may still be; one that was closed and does not end is the reaper's matter."""
        return self._gate.look() != (True, self._times_released)

    @property
    def sees_chips(self) -> bool:
        """A session with the driver is open."""
        return self._session is not None

    def _follow_gate(self) -> None:
        shut, times = self._gate.look()
        if times != self._times_released:
            self._plan.release()
            self._close_sessions()
            self._new_thread()
            self._said.clear()
            self._metrics.set("driver_subscribed", 0)
            self._holding, self._times_released = True, times
        if self._holding and not shut:
            self._holding = False
            self._plan.resume(self._clock.now())

    def stop(self) -> None:
        """Make `run` return; sessions are closed without waiting for calls that hang."""
        self._stopping.set()
        self._inbox.put(None)

    # -- the loop -----------------------------------------------------------------

    def _next(self) -> _News | _Brought | None:
        if self._busy:
            due_ms = None if self._probing else self._probe_due_ms()
        else:
            due = (self._plan.next_due_ms(probing=self._probing), self._facts_due_ms())
            due_ms = min((ms for ms in due if ms is not None), default=None)
        timeout_s = None if due_ms is None else self._clock.real_s((due_ms - self._clock.now().mono_ms) / 1000)
        try:
            return self._inbox.get(timeout=timeout_s)
        except queue.Empty:
            return None

    def _probe_due_ms(self) -> int | None:
        return min((t.probe_due_ms for t in self._plan.tracks.values() if t.probe_due_ms is not None), default=None)

    def _facts_due_ms(self) -> int | None:
        return self._facts.next_due_ms() if self._plan.settled else None

    def _fact_job(self, now_ms: int) -> Job | None:
        fact = self._facts.next_fact(now_ms) if self._plan.settled else None
        return None if fact is None else Job(JobKind.FACT, *fact)

    def _dispatch(self) -> None:
        self._follow_gate()
        now = self._clock.now()
        if not self._busy:
            job = self._plan.next_job(now.mono_ms) or self._fact_job(now.mono_ms)
            if job is not None:
                self._busy = True
                track = self._plan.tracks.get(job.logic_id)
                self._tasks.put(_Task(job, self._session, track.chip if track else None, self._plan.avoid))
        if not self._probing:
            logic_id = self._plan.next_probe(now.mono_ms)
            if logic_id is not None:
                self._probing = True
                probe = (self._tasks, self._plan.tracks[logic_id].chip, self._plan.avoid)
                threading.Thread(target=self._probe, args=probe, name="chips.probe", daemon=True).start()

    def _take(self, message: _News | _Brought) -> None:
        self._follow_gate()  # what ended because the gate was shut is no news of the chips
        now = self._clock.now()
        if isinstance(message, _News):
            self._on_news(message, now)
        elif message.origin is not self._tasks:
            self._drop(message.what)
        elif isinstance(message.what, _Probed):
            self._probing = False
            self._plan.on_probed(message.what.logic_id, message.what.ok, now)
        else:
            self._busy = False
            self._on_result(message.what, now)

    def _drop(self, late: _Result | _Probed) -> None:
        """What a thread of before the release, or of the run before this one, still brings."""
        if isinstance(late, _Result) and isinstance(late.value, Opened):
            assert late.session.driver is not None
            late.session.driver.close()
            self._gate.leave(late.session.driver)

    def _tell(self, observations: list[Observation]) -> None:
        if observations:
            self._emit(observations)

    # -- news -----------------------------------------------------------------------

    def _on_news(self, message: _News, now: Instant) -> None:
        session, news = message.session, message.news
        if session is not self._session and session is not self._retiring:
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

    def _on_gone(self, session: _Session, why: str, now: Instant) -> None:
        if session is self._retiring:
            self._retiring = None
        elif not self._busy:  # a call under way finds out by itself, and knows which chip it was about
            self._lose(why, now)

    def _lose(self, why: str, now: Instant) -> None:
        """The session is of no more use for calls; its events are welcome until the next one has subscribed."""
        self._metrics.count("driver_sessions_lost_total")
        self._library = LibraryFacts("", (why,))
        self._say(EventReason.DRIVER_LOST, why, warning=True)
        self._replace(None)
        self._plan.on_session_lost(now)

    def _replace(self, successor: _Session | None) -> None:
        """Only a subscribed session has events to give meanwhile; one that is not must not push out one that is."""
        if self._plan.subscribed:
            self._retire()
            self._retiring = self._session
        elif self._session is not None and self._session.driver is not None:
            self._session.driver.close()
        self._session = successor

    # -- results ----------------------------------------------------------------------

    def _on_result(self, result: _Result, now: Instant) -> None:
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
            self._on_fact_result(result, now)
        elif error is not None:
            self._tell(self._plan.on_failed(result.job, _outcome(error), error.sentence, result.asked, now))
        elif kind is JobKind.CODES:
            assert isinstance(result.value, CodesAnswer)
            self._metrics.set("chip_last_answer_seconds", now.wall_ms / 1000, chip=str(result.job.logic_id))
            self._tell(self._plan.on_codes(result.job.logic_id, result.value, result.asked, now))
        else:
            self._tell(self._plan.on_health(result.job.logic_id, result.value is True, now))
        if isinstance(error, HostStuckError | HostGoneError) and result.session is self._session:
            self._lose(error.sentence, now)

    def _on_fact_result(self, result: _Result, now: Instant) -> None:
        """A fact that is not told is no news of the chip; a call that hangs is, like any other that does."""
        job, error = result.job, result.error
        assert job.fact is not None
        if isinstance(error, HostStuckError | HostGoneError):
            self._facts.on_hung(job.logic_id, job.fact, now)
            self._tell(self._plan.on_failed(job, _outcome(error), error.sentence, result.asked, now))
        elif error is not None:
            supported = not (isinstance(error, AnswerError) and error.kind is AnswerKind.NOT_SUPPORTED)
            if self._facts.on_refused(job.logic_id, job.fact, error.sentence, now, supported=supported):
                log.info("fact not known chip=%d fact=%s: %s", job.logic_id, job.fact.value, error.sentence)
        else:
            assert isinstance(result.value, int | str)
            self._facts.on_answer(job.logic_id, job.fact, result.value, now)
        if (facts := self._facts.report(now.mono_ms)) is not None:
            self._on_facts(facts)

    def _on_open_result(self, result: _Result, now: Instant) -> None:
        if result.error is not None:
            self._plan.on_open_failed(now)
            if self._session is None:
                self._library = LibraryFacts("", (result.error.sentence,))
            self._say(EventReason.DRIVER_LOST, str(result.error), warning=True)
            return
        opened = result.value
        assert isinstance(opened, Opened)
        self._replace(result.session)
        assert result.session.driver is not None
        self._gate.leave(result.session.driver)
        self._library = LibraryFacts(opened.library, opened.problems)
        self._tell(self._plan.on_opened(opened.inventory, now))
        self._facts.on_opened(opened.inventory, now)
        if opened.problems:
            self._plan.look_again(now)
            for problem in opened.problems:
                log.warning("part of the node is not identified: %s", problem)
        self._say(EventReason.DRIVER_READY, f"{len(opened.inventory.chips)} chips through {opened.library}")
        for news in result.session.early:
            self._on_news(_News(result.session, news), now)
        result.session.early.clear()

    def _on_subscribe_result(self, result: _Result, now: Instant) -> None:
        error = result.error
        if error is None:
            self._plan.on_subscribed(now)
            self._retire()
            self._metrics.set("driver_subscribed", 1)
            self._say(EventReason.SUBSCRIBED, "fault events are subscribed")
            return
        occupied = isinstance(error, AnswerError) and error.rc == ALREADY_SUBSCRIBED
        self._plan.on_subscribe_failed(now, new_process=occupied)
        self._metrics.set("driver_subscribed", 0)
        self._say(EventReason.NOT_SUBSCRIBED, f"code lists are polled, {error.sentence}", warning=True)

    def _retire(self) -> None:
        """The successor is complete: end the session it replaced."""
        if self._retiring is not None and self._retiring.driver is not None:
            self._retiring.driver.close()
        self._retiring = None

    def _say(self, reason: EventReason, message: str, *, warning: bool = False) -> None:
        """One Event per change of a topic, not per repetition (lesson 81)."""
        topic = "driver" if reason in (EventReason.DRIVER_LOST, EventReason.DRIVER_READY) else "subscription"
        if self._said.get(topic) != message:
            self._said[topic] = message
            self._events.emit(Event(reason, message, warning))

    # -- driver calls, on threads of their own -------------------------------------------

    def _make_calls(self, tasks: _Tasks) -> None:
        while (task := tasks.get()) is not None:
            asked, started_s = self._clock.now(), monotonic_s()
            try:
                result = self._call(task, asked)
            except Exception as error:  # border of a thread: without a result no call would be made ever again
                log.exception("unforeseen error of a driver call call=%s", task.job.kind.value)
                failure = HostError(f"unforeseen {type(error).__name__}: {error}")
                result = _Result(task.job, task.session or _Session(), asked, error=failure)
            call = task.job.kind.value
            self._metrics.observe("driver_call_seconds", monotonic_s() - started_s, call=call)
            if isinstance(result.error, HostStuckError):
                self._metrics.count("driver_deadlines_missed_total", call=call)
            self._inbox.put(_Brought(tasks, result))

    def _call(self, task: _Task, asked: Instant) -> _Result:
        if task.session is None or task.job.kind is JobKind.OPEN:
            return self._open_session(task, asked)
        try:
            return _Result(task.job, task.session, asked, _ask(task, task.session))
        except NodeAgentError as error:
            return _Result(task.job, task.session, asked, error=error)

    def _open_session(self, task: _Task, asked: Instant) -> _Result:
        session = _Session()
        driver: ChipDriver | None = None
        try:
            driver = self._connect(lambda news: self._inbox.put(_News(session, news)))
            self._gate.enter(driver)
            opened = driver.open(task.avoid)
        except Exception as error:
            if driver is not None:
                driver.close()
                self._gate.leave(driver)
            if not isinstance(error, NodeAgentError):
                raise
            return _Result(task.job, session, asked, error=error)
        session.driver = driver
        return _Result(task.job, session, asked, opened)

    def _probe(self, origin: _Tasks, chip: ChipId, avoid: frozenset[int]) -> None:
        """Ask a quarantined chip in a session that may hang without disturbing anybody."""
        driver: ChipDriver | None = None
        ok = False
        try:
            if self._stuck_children() == 0:
                driver = self._connect(_ignore)
                self._gate.enter(driver)
                driver.open(avoid)
                driver.codes(chip)
                ok = True
        except NodeAgentError as error:
            ok = isinstance(error, AnswerError)  # an error is an answer: the call came back
            log.info("probe of a quarantined chip chip=%r result=%s", str(chip), error)
        finally:
            if driver is not None:
                driver.close()
                self._gate.leave(driver)
            self._inbox.put(_Brought(origin, _Probed(chip.logic_id, ok)))


def _ignore(_: DriverNews) -> None:
    """A probe's session is not subscribed; it has no news worth hearing."""


def _ask(task: _Task, session: _Session) -> object:
    driver = session.driver
    assert driver is not None
    if task.job.fact is not None:
        assert task.chip is not None
        return driver.fact(task.chip, task.job.fact)
    if task.chip is None:
        driver.subscribe()
        return None
    return driver.codes(task.chip) if task.job.kind is JobKind.CODES else driver.card_dropped(task.chip)


def _outcome(error: NodeAgentError) -> Outcome:
    if isinstance(error, HostStuckError):
        return Outcome.HUNG
    return Outcome.GONE if isinstance(error, HostGoneError) else Outcome.REFUSED
