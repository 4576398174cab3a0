"""Questions to the BMC: each opens the device, asks, and closes it, whatever happens.

They can take long or never come back: the source makes them in threads of their own, one at a time (lessons 88, 91).
"""

import contextlib
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from nodeagent.core.alarms import Alarm
from nodeagent.core.board import AlarmsSeen, AlarmsSilent, BoardFact
from nodeagent.core.clock import Clock, monotonic_s
from nodeagent.core.errors import IpmiAccessError, IpmiError, NodeAgentError
from nodeagent.core.telemetry import Metrics
from nodeagent.drivers.ipmi import Connect, LoginRefusedError, Raw, Transport, result_label
from nodeagent.policy.board import BoardState, board_step
from nodeagent.policy.node_table import NodeTable

log = logging.getLogger("nodeagent.board")

T = TypeVar("T")


PollAlarms = Callable[[Raw], tuple[Alarm, ...]]
"""nodeagent.drivers.ipmi_alarms.poll_alarms. Raises IpmiError, IpmiNotSupportedError, IpmiAccessError."""
ReadSerial = Callable[[Raw], str]
"""nodeagent.drivers.ipmi_label.read_serial_number; an empty text: the board has none. Raises the same."""


@dataclass(frozen=True, slots=True)
class Ended(Generic[T]):
    """A call came back. value: None with an error."""

    call: "Call[T]"
    value: T | None = None
    error: NodeAgentError | None = None


class Call(Generic[T]):
    """One question in a thread of its own, begun by the constructor.

    begun, begun_s: the moment before the device was opened, by the clock of the source and in real seconds. put: takes
    the one result, from the thread. given_up: nobody counts on the result any more; the device is not closed under it,
    since its number could be another file's a moment later, and what keeps its deadlines comes back by itself.
    """

    def __init__(
        self, connect: Connect, ask: Callable[[Raw], T], clock: Clock, metrics: Metrics, put: Callable[[Ended[T]], None]
    ) -> None:
        self.begun, self.begun_s = clock.now(), monotonic_s()
        self.given_up = False
        work = (connect, ask, metrics, put)
        threading.Thread(target=self._make, args=work, name="board.call", daemon=True).start()

    def _make(
        self, connect: Connect, ask: Callable[[Raw], T], metrics: Metrics, put: Callable[[Ended[T]], None]
    ) -> None:
        value: T | None = None
        error: NodeAgentError | None = None
        try:
            transport = connect()
            try:
                value = ask(_measured(transport, metrics))
            finally:
                _close(transport)
        except NodeAgentError as problem:
            error = problem
        except Exception as problem:  # border of a thread: without a result no call would be made ever again
            log.exception("unforeseen error of a call to the BMC")
            error = IpmiError(f"unforeseen {type(problem).__name__}: {problem}")
        put(Ended(self, value, error))


def look_at_board(
    connect: Connect, poll: PollAlarms, clock: Clock, metrics: Metrics, table: NodeTable | None
) -> BoardState:
    """One poll, in the thread of the caller, and what follows from it; for commands that need no daemon."""
    at = clock.now()
    fact: BoardFact
    try:
        transport = connect()
        try:
            fact = AlarmsSeen(poll(_measured(transport, metrics)), at)
        finally:
            _close(transport)
    except (IpmiError, IpmiAccessError) as problem:
        fact = AlarmsSilent(problem.sentence, clock.now(), no_way(problem))
    return board_step(BoardState(), [fact], clock.now(), table).state


def no_way(error: NodeAgentError) -> bool:
    """Nobody could be asked. A refused login is no such case: there is a BMC, and something is to be put right."""
    return isinstance(error, IpmiAccessError) and not isinstance(error, LoginRefusedError)


def _measured(transport: Transport, metrics: Metrics) -> Raw:
    def raw(netfn: int, command: int, data: bytes) -> bytes:
        began_s = monotonic_s()
        try:
            answer = transport.raw(netfn, command, data)
        except (IpmiError, IpmiAccessError) as problem:
            _tell(metrics, began_s, result_label(problem))
            raise
        _tell(metrics, began_s, result_label(answer))
        return answer

    return raw


def _tell(metrics: Metrics, began_s: float, result: str) -> None:
    metrics.observe("ipmi_command_seconds", monotonic_s() - began_s)
    metrics.count("ipmi_commands_total", result=result)


def _close(transport: Transport) -> None:
    # The call is over, and its result is worth more than an error of its end.
    with contextlib.suppress(NodeAgentError, OSError):
        transport.close()
