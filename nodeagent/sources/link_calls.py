"""Calls that the link source hands out, on threads of their own: gateway samples and questions to hccn_tool.

Each worker takes tasks from its queue and puts exactly one result for each into the inbox, whatever happens.
"""

import logging
import queue
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from nodeagent.core.clock import Clock, monotonic_s
from nodeagent.core.errors import HostError, NodeAgentError
from nodeagent.core.instant import Instant
from nodeagent.core.model import ChipId
from nodeagent.drivers.gateway import ConnectGateway, GatewayDriver
from nodeagent.drivers.hccn import PortCount
from nodeagent.drivers.hccn_text import ToolError
from nodeagent.sources.gate import Gate

log = logging.getLogger("nodeagent.links")


class LinkTool(Protocol):
    """What is needed of hccn_tool (nodeagent.drivers.hccn). Questions raise ToolError."""

    def link_up(self, physical_id: int) -> bool:
        """State of the RoCE port."""

    def ports_down(self, logic_id: int) -> PortCount:
        """Ports of a 950 chip that are down."""

    def stop(self) -> None:
        """Kill a question that runs; further ones are refused."""

    def resume(self) -> None:
        """Answer questions again after `stop`."""


@dataclass(frozen=True, slots=True)
class Task:
    """A call to make. session: the open one, None = open one first. counts: ask for ports, not for a link."""

    chip: ChipId
    session: GatewayDriver | None = None
    counts: bool = False


Tasks = queue.SimpleQueue[Task | None]
"""Work of one thread; None ends it. It also names the run of the source that a result belongs to."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """A gateway call came back. session: None = none could be opened. opened: it is a new one.

    asked: the moment before the call. took_s: real seconds. value: 0..127, None with an error.
    """

    origin: Tasks
    chip: ChipId
    asked: Instant
    session: GatewayDriver | None
    opened: bool
    value: int | None = None
    error: NodeAgentError | None = None
    took_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Told:
    """hccn_tool answered: link up, or a count of ports; None with an error. asked: the moment before it ran."""

    origin: Tasks
    chip: ChipId
    asked: Instant
    answer: bool | PortCount | None = None
    error: NodeAgentError | None = None


def make_gateway_calls(
    tasks: Tasks, connect: ConnectGateway, gate: Gate, clock: Clock, put: Callable[[Sampled | Told], None]
) -> None:
    """Body of the gateway thread: opens sessions and asks chips, one call at a time.

    A session that it opens has entered the gate; the taker of the result lets it leave.
    """
    while (task := tasks.get()) is not None:
        asked, started_s, session = clock.now(), monotonic_s(), task.session
        value: int | None = None
        error: NodeAgentError | None = None
        try:
            if session is None:
                session = _opened(connect, gate)
                asked, started_s = clock.now(), monotonic_s()
            value = session.network_health(task.chip)
        except NodeAgentError as problem:
            error = problem
        except Exception as problem:  # border of a thread: without a result no call would be made ever again
            log.exception("unforeseen error of a gateway call")
            error = HostError(f"unforeseen {type(problem).__name__}: {problem}")
        took_s = monotonic_s() - started_s
        put(Sampled(tasks, task.chip, asked, session, task.session is None, value, error, took_s))


def ask_tool(tasks: Tasks, tool: LinkTool, clock: Clock, put: Callable[[Sampled | Told], None]) -> None:
    """Body of the tool thread."""
    while (task := tasks.get()) is not None:
        asked = clock.now()
        answer: bool | PortCount | None = None
        error: NodeAgentError | None = None
        try:
            answer = tool.ports_down(task.chip.logic_id) if task.counts else tool.link_up(task.chip.physical_id)
        except NodeAgentError as problem:
            error = problem
        except Exception as problem:  # border of a thread, as above
            log.exception("unforeseen error of a question to hccn_tool")
            error = ToolError(f"unforeseen {type(problem).__name__}: {problem}")
        put(Told(tasks, task.chip, asked, answer, error))


def _opened(connect: ConnectGateway, gate: Gate) -> GatewayDriver:
    session = connect()
    try:
        gate.enter(session)
        session.open()
    except BaseException:
        session.close()
        gate.leave(session)
        raise
    return session
