"""Calls that the chip source hands out, on threads of their own: one driver call at a time, and probes.

Each task and each probe puts exactly one result into the inbox, whatever happens.
"""

import logging
import queue
from collections.abc import Callable
from dataclasses import dataclass

from nodeagent.core.clock import Clock, monotonic_s
from nodeagent.core.errors import HostError, NodeAgentError
from nodeagent.core.instant import Instant
from nodeagent.core.model import ChipId
from nodeagent.core.telemetry import Metrics
from nodeagent.drivers.answers import AnswerError
from nodeagent.drivers.chips import ChipDriver, Connect, DriverNews
from nodeagent.drivers.host import HostGoneError, HostStuckError
from nodeagent.sources.chip_session import Session
from nodeagent.sources.gate import Gate
from nodeagent.sources.plan import Job, JobKind

log = logging.getLogger("nodeagent.chips")


@dataclass(frozen=True, slots=True)
class Task:
    """A job with all that its thread needs, so that it never looks into the plan."""

    job: Job
    session: Session | None
    chip: ChipId | None
    avoid: frozenset[int]


Tasks = queue.SimpleQueue[Task | None]
"""Work of one thread; None ends it. It also names the time between two releases that a result belongs to."""


@dataclass(frozen=True, slots=True)
class News:
    """What a session told by itself."""

    session: Session
    news: DriverNews


@dataclass(frozen=True, slots=True)
class Result:
    """A finished call: its value or its error. session: the one it was made on (the new one for OPEN).

    asked: the moment before the call.
    """

    job: Job
    session: Session
    asked: Instant
    value: object = None
    error: NodeAgentError | None = None

    @property
    def host_lost(self) -> bool:
        """The call hangs or its host ended, so that the session takes no further one."""
        return isinstance(self.error, HostStuckError | HostGoneError)


@dataclass(frozen=True, slots=True)
class Probed:
    """A probe ended. ok: the chip answered, be it with an error."""

    logic_id: int
    ok: bool


@dataclass(frozen=True, slots=True)
class Brought:
    """What a thread brings. origin: the tasks that were the source's when it began."""

    origin: Tasks
    what: Result | Probed


class ChipCalls:
    """Bodies of the threads.

    stuck_children: how many abandoned hosts still live; while there are any, no chip is probed (the stuck call may
    be on that very chip). put: takes what comes of it, from any thread. A session that is opened for a task has
    entered the gate; the taker of the result lets it leave.
    """

    def __init__(
        self,
        connect: Connect,
        gate: Gate,
        clock: Clock,
        metrics: Metrics,
        stuck_children: Callable[[], int],
        put: Callable[[News | Brought], None],
    ) -> None:
        self._connect = connect
        self._gate = gate
        self._clock = clock
        self._metrics = metrics
        self._stuck_children = stuck_children
        self._put = put

    def make(self, tasks: Tasks) -> None:
        """Body of the call thread."""
        while (task := tasks.get()) is not None:
            asked, started_s = self._clock.now(), monotonic_s()
            try:
                result = self._call(task, asked)
            except Exception as error:  # border of a thread: without a result no call would be made ever again
                log.exception("unforeseen error of a driver call call=%s", task.job.kind.value)
                failure = HostError(f"unforeseen {type(error).__name__}: {error}")
                result = Result(task.job, task.session or Session(), asked, error=failure)
            call = task.job.kind.value
            self._metrics.observe("driver_call_seconds", monotonic_s() - started_s, call=call)
            if isinstance(result.error, HostStuckError):
                self._metrics.count("driver_deadlines_missed_total", call=call)
            self._put(Brought(tasks, result))

    def probe(self, origin: Tasks, chip: ChipId, avoid: frozenset[int]) -> None:
        """Body of a probe's thread: ask a quarantined chip in a session that may hang without disturbing anybody."""
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
            self._put(Brought(origin, Probed(chip.logic_id, ok)))

    def _call(self, task: Task, asked: Instant) -> Result:
        if task.session is None or task.job.kind is JobKind.OPEN:
            return self._open_session(task, asked)
        try:
            return Result(task.job, task.session, asked, _ask(task, task.session))
        except NodeAgentError as error:
            return Result(task.job, task.session, asked, error=error)

    def _open_session(self, task: Task, asked: Instant) -> Result:
        session = Session()
        driver: ChipDriver | None = None
        try:
            driver = self._connect(lambda news: self._put(News(session, news)))
            self._gate.enter(driver)
            opened = driver.open(task.avoid)
        except Exception as error:
            if driver is not None:
                driver.close()
                self._gate.leave(driver)
            if not isinstance(error, NodeAgentError):
                raise
            return Result(task.job, session, asked, error=error)
        session.driver = driver
        return Result(task.job, session, asked, opened)


def _ignore(_: DriverNews) -> None:
    """A probe's session is not subscribed; it has no news worth hearing."""


def _ask(task: Task, session: Session) -> object:
    driver = session.driver
    assert driver is not None
    if task.job.fact is not None:
        assert task.chip is not None
        return driver.fact(task.chip, task.job.fact)
    if task.chip is None:
        driver.subscribe()
        return None
    return driver.codes(task.chip) if task.job.kind is JobKind.CODES else driver.card_dropped(task.chip)
