"""Calls that the switch source hands out, on a thread of their own: one at a time, each with exactly one result."""

import logging
import queue
from collections.abc import Callable
from dataclasses import dataclass

from nodeagent.core.clock import Clock, monotonic_s
from nodeagent.core.errors import HostError, NodeAgentError
from nodeagent.core.instant import Instant
from nodeagent.drivers.switches import ConnectSwitches, SwitchDriver, SwitchNews
from nodeagent.sources.gate import Gate
from nodeagent.sources.switch_plan import SwitchJob

log = logging.getLogger("nodeagent.switches")


@dataclass(slots=True, eq=False)
class Session:
    """A session (driver None = not open yet) and how many events its ring has lost so far."""

    driver: SwitchDriver | None = None
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class Task:
    """A call to make. session: the one to make it on; a new one for OPEN."""

    job: SwitchJob
    session: Session


Tasks = queue.SimpleQueue[Task | None]
"""Work of one thread; None ends it. It also names the time between two releases that a result belongs to."""


@dataclass(frozen=True, slots=True)
class News:
    """What a session told by itself."""

    session: Session
    news: SwitchNews


@dataclass(frozen=True, slots=True)
class Result:
    """A finished call: its value or its error. asked: the moment before it. took_s: real seconds."""

    origin: Tasks
    task: Task
    asked: Instant
    value: object = None
    error: NodeAgentError | None = None
    took_s: float = 0.0


def make_calls(
    tasks: Tasks, connect: ConnectSwitches, gate: Gate, clock: Clock, put: Callable[[News | Result], None]
) -> None:
    """Body of the thread. A session that it opens has entered the gate; the taker of the result lets it leave."""
    while (task := tasks.get()) is not None:
        asked, started_s = clock.now(), monotonic_s()
        value: object = None
        error: NodeAgentError | None = None
        try:
            value = _call(task, connect, gate, put)
        except NodeAgentError as problem:
            error = problem
        except Exception as problem:  # border of a thread: without a result no call would be made ever again
            log.exception("unforeseen error of a switch call call=%s", task.job.value)
            error = HostError(f"unforeseen {type(problem).__name__}: {problem}")
        put(Result(tasks, task, asked, value, error, monotonic_s() - started_s))


def _call(task: Task, connect: ConnectSwitches, gate: Gate, put: Callable[[News | Result], None]) -> object:
    if task.job is SwitchJob.OPEN:
        return _open(task.session, connect, gate, put)
    driver = task.session.driver
    assert driver is not None
    if task.job is SwitchJob.QUERY:
        return driver.faults()
    driver.subscribe()
    return None


def _open(session: Session, connect: ConnectSwitches, gate: Gate, put: Callable[[News | Result], None]) -> str:
    driver = connect(lambda news: put(News(session, news)))
    try:
        gate.enter(driver)
        path = driver.open()
    except BaseException:
        driver.close()
        gate.leave(driver)
        raise
    session.driver = driver
    return path
