"""The switch source: threads and sessions around the plan of the LingQu library of an A3 node.

`switches` owns the plan and takes news and answers; `switches.calls` makes one call at a time. The library has a driver
host of its own, so nothing that it does reaches the chips, nor the other way round.
While the driver is released for an upgrade there is no session, no call and no observation.
"""

import logging
import queue
import threading
from collections.abc import Callable, Sequence

from nodeagent.core.clock import Clock
from nodeagent.core.errors import HostError, LibraryError, NodeAgentError
from nodeagent.core.instant import Instant
from nodeagent.core.model import Family
from nodeagent.core.observation import InventorySeen, Observation
from nodeagent.core.telemetry import Event, EventReason, EventSink, Metrics
from nodeagent.drivers.answers import result_label
from nodeagent.drivers.host import HostGoneError, HostStuckError
from nodeagent.drivers.switches import MAX_ROOM, ConnectSwitches
from nodeagent.sources.loop import SourceLoop
from nodeagent.sources.switch_calls import News, Result, Session, Task, Tasks, make_calls
from nodeagent.sources.switch_plan import OpenFailure, SwitchJob, SwitchPlan, SwitchTimes

log = logging.getLogger("nodeagent.switches")


class SwitchSource(SourceLoop[News | Result]):
    """Turns the switch library into observations, for ever.

    connect: maker of sessions, None = the library is not to be used. emit: takes observations, from the source's
    thread; may wait. Nothing happens before `observe` has seen that this is an A3 (lingqu-switch-faults 1).
    """

    def __init__(
        self,
        connect: ConnectSwitches | None,
        clock: Clock,
        times: SwitchTimes,
        emit: Callable[[Sequence[Observation]], None],
        events: EventSink,
        metrics: Metrics,
    ) -> None:
        super().__init__(clock)
        self._connect = connect
        self._emit = emit
        self._events = events
        self._metrics = metrics
        self._plan = SwitchPlan(times)
        self._tasks: Tasks = queue.SimpleQueue()
        self._busy = False
        self._session: Session | None = None
        self._present = threading.Event()
        self._started = False
        self._said: dict[str, str] = {}

    def observe(self, observations: Sequence[Observation]) -> None:
        """See what passes from the chips; never blocks, from any thread."""
        for observation in observations:
            if isinstance(observation, InventorySeen) and observation.inventory.product.family is Family.A3:
                self._present.set()
                self._inbox.put(None)

    def _new_thread(self) -> None:
        self._tasks.put(None)
        self._tasks, self._busy = queue.SimpleQueue(), False
        if self._connect is not None:
            work = (self._tasks, self._connect, self._gate, self._clock, self._inbox.put)
            threading.Thread(target=make_calls, args=work, name="switches.calls", daemon=True).start()

    def _end(self) -> None:
        self._tasks.put(None)
        if self._session is not None:
            self._close_session()
            self._plan.on_session_lost(self._clock.now())

    def _close_session(self) -> None:
        if self._session is not None and self._session.driver is not None:
            self._session.driver.close()
        self._session = None
        self._metrics.set("switch_subscribed", 0)

    # -- release for a driver upgrade -------------------------------------------------

    def _let_go(self) -> None:
        self._plan.release()
        self._close_session()
        self._new_thread()
        self._said.clear()

    def _take_back(self) -> None:
        self._plan.resume(self._clock.now())

    # -- the loop -----------------------------------------------------------------

    def _dispatch(self) -> None:
        now = self._clock.now()
        if self._present.is_set() and not self._started:
            self._started = True
            if self._connect is None:
                self._tell(self._plan.refuse(now))
            else:
                self._plan.want(now)
        job = None if self._busy else self._plan.next_job(now.mono_ms)
        if job is not None:
            session = Session() if job is SwitchJob.OPEN else self._session
            assert session is not None
            self._busy = True
            self._tasks.put(Task(job, session))

    def _due_ms(self) -> int | None:
        return None if self._busy else self._plan.next_due_ms()

    def _take(self, message: News | Result) -> None:
        now = self._clock.now()
        if isinstance(message, News):
            self._on_news(message, now)
        elif message.origin is self._tasks:
            self._busy = False
            self._on_result(message, now)
        elif message.task.job is SwitchJob.OPEN and message.task.session.driver is not None:
            message.task.session.driver.close()  # opened for a run before this one, or of before a release
            self._gate.leave(message.task.session.driver)

    def _tell(self, observations: Sequence[Observation]) -> None:
        if observations:
            self._emit(observations)

    # -- news -----------------------------------------------------------------------

    def _on_news(self, message: News, now: Instant) -> None:
        session, news = message.session, message.news
        if session is not self._session:
            return  # it has no events before it is subscribed, and the next call finds out that it has ended
        if news.gone:
            if not self._busy:  # a call under way finds out by itself
                self._lose(news.gone, now)
            return
        self._metrics.count("switch_events_total", len(news.events))
        stamped = [(event.record, self._clock.at_mono_ns(event.mono_ns)) for event in news.events]
        self._tell(self._plan.on_events(stamped, now))
        if news.dropped > session.dropped:
            lost = news.dropped - session.dropped
            session.dropped = news.dropped
            self._metrics.count("switch_ring_dropped_total", lost)
            log.warning("event ring of the switches overflowed, they are queried lost=%d total=%d", lost, news.dropped)
            self._plan.query_soon(now)

    def _lose(self, why: str, now: Instant) -> None:
        self._metrics.count("switch_sessions_lost_total")
        self._close_session()
        self._plan.on_session_lost(now)
        self._say("answers", EventReason.SWITCHES_SILENT, why)

    # -- results ----------------------------------------------------------------------

    def _on_result(self, result: Result, now: Instant) -> None:
        job, error = result.task.job, result.error
        self._metrics.count("driver_calls_total", call=job.value, result=result_label(error))
        self._metrics.observe("driver_call_seconds", result.took_s, call=job.value)
        if isinstance(error, HostStuckError):
            self._metrics.count("driver_deadlines_missed_total", call=job.value)
        if job is SwitchJob.OPEN:
            self._on_open_result(result, now)
            return
        if job is SwitchJob.SUBSCRIBE:
            self._on_subscribe_result(error, now)
        else:
            self._on_query_result(result, now)
        if isinstance(error, HostStuckError | HostGoneError) and result.task.session is self._session:
            self._lose(error.sentence, now)

    def _on_open_result(self, result: Result, now: Instant) -> None:
        session, error = result.task.session, result.error
        if error is not None:
            self._tell(self._plan.on_open_failed(_failure(error), error.sentence, now))
            if isinstance(error, HostError):
                self._say("answers", EventReason.SWITCHES_SILENT, error.sentence)
            else:
                self._say("library", EventReason.SWITCH_LIBRARY_MISSING, f"switch faults are not watched: {error}")
            return
        assert session.driver is not None
        self._gate.leave(session.driver)
        self._session = session
        log.info("switch library is open library=%s", result.value)
        self._said.pop("library", None)
        self._tell(self._plan.on_opened(now))

    def _on_subscribe_result(self, error: NodeAgentError | None, now: Instant) -> None:
        self._metrics.set("switch_subscribed", error is None)
        if error is None:
            self._plan.on_subscribed(now)
            self._well("subscription", EventReason.SWITCHES_SUBSCRIBED, "switch events are subscribed")
            return
        self._plan.on_subscribe_failed(now)
        if self._plan.polling:
            message = f"the list of switch faults is polled, {error.sentence}"
            self._say("subscription", EventReason.SWITCHES_NOT_SUBSCRIBED, message)

    def _on_query_result(self, result: Result, now: Instant) -> None:
        error = result.error
        self._metrics.count("switch_queries_total", result=result_label(error))
        if error is not None:
            no_answer = isinstance(error, HostStuckError | HostGoneError)
            self._tell(self._plan.on_query_failed(error.sentence, now, no_answer=no_answer))
            self._say("answers", EventReason.SWITCHES_SILENT, error.sentence)
            return
        assert isinstance(result.value, tuple)
        if len(result.value) >= MAX_ROOM:
            log.warning("more switch faults than can be listed listed=%d", len(result.value))
        self._metrics.set("source_last_success_timestamp_seconds", now.wall_ms / 1000, source="switches")
        self._tell(self._plan.on_faults(result.value, result.asked, now))
        self._well("answers", EventReason.SWITCHES_ANSWER, "queries of the switches work again")

    # -- what people hear: changes, not repetitions (lesson 81) ------------------------

    def _say(self, topic: str, reason: EventReason, message: str) -> None:
        if topic not in self._said:
            self._said[topic] = message
            self._events.emit(Event(reason, message, warning=True))

    def _well(self, topic: str, reason: EventReason, message: str) -> None:
        if self._said.pop(topic, None) is not None:
            self._events.emit(Event(reason, message))


def _failure(error: NodeAgentError) -> OpenFailure:
    if isinstance(error, LibraryError):
        return OpenFailure.NO_LIBRARY
    return OpenFailure.NO_ANSWER if isinstance(error, HostError) else OpenFailure.REFUSED
