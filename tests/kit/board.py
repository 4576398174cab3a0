"""The board for tests: alarms, tables, and a BMC that does what a test says."""

import threading
from collections.abc import Callable, Mapping, Sequence

from nodeagent.core.alarms import Alarm, NodeLevel
from nodeagent.core.board import AlarmsSeen, AlarmsSilent, BoardFact, BoardView
from nodeagent.core.instant import Instant
from nodeagent.policy.board import BoardChange, BoardState, BoardStep, board_step, reconfigure
from nodeagent.policy.node_table import NodeConfiguration, NodeFaultRecord, NodeTable
from nodeagent.policy.table_records import Place

CPU, MEMORY, DISK, PSU, UNNAMED, BMC, PORT, SYSTEM, LCNE = 0x00, 0x01, 0x02, 0x03, 0x07, 0x1A, 0x29, 0x2C, 0x62
CPU_1D = Alarm(0x0000001D, 1_720_000_000, 3, CPU, 1)
CPU_1F = Alarm(0x0000001F, 1_720_000_001, 2, CPU, 1)
PSU_9 = Alarm(0x03000009, 1_720_000_002, 1, PSU, 2)
SYSTEM_31 = Alarm(0x2C000031, 1_720_000_003, 3, SYSTEM, 255)
PORT_17 = Alarm(0x29000017, 1_720_000_004, 1, PORT, 255)
BMC_23 = Alarm(0x1A000023, 1_720_000_005, 1, BMC, 255)
LEVELS = {
    "0000001D": NodeLevel.PRE_SEPARATE,
    "0000001F": NodeLevel.PRE_SEPARATE,
    "03000009": NodeLevel.NOT_HANDLE,
    "2C000031": NodeLevel.SEPARATE,
    "62000006": NodeLevel.PRE_SEPARATE,
}
"""Levels of these codes in the shipped defaults (node-faults, data/node-fault-levels.tsv)."""


def table_of(levels: Mapping[str, NodeLevel | None] = LEVELS) -> NodeTable:
    """A table with these levels, one record a line."""
    return NodeTable(
        {
            text: NodeFaultRecord(text, Place("node.yaml", line), Place("node.yaml", line), level, f"name of {text}")
            for line, (text, level) in enumerate(levels.items(), 1)
        }
    )


def config_of(levels: Mapping[str, NodeLevel | None] = LEVELS, version: str = "v1") -> NodeConfiguration:
    """The same as a configuration."""
    return NodeConfiguration(table_of(levels), version, ("node.yaml",))


def at(seconds: float) -> Instant:
    """A moment that many seconds after the start of the test's time."""
    return Instant(1_000_000, 1_760_000_000_000).plus_ms(round(seconds * 1000))


def seen(seconds: float, *alarms: Alarm) -> AlarmsSeen:
    """A good poll."""
    return AlarmsSeen(alarms, at(seconds))


def silent(seconds: float, why: str = "no answer") -> AlarmsSilent:
    """A failed poll."""
    return AlarmsSilent(why, at(seconds))


class BoardBench:
    """The policy of the board fed step by step. views: every new one. changes: those of the last step."""

    def __init__(self, table: NodeTable | None = None) -> None:
        self.table = table
        self.state = BoardState()
        self.views: list[BoardView] = []
        self.changes: tuple[BoardChange, ...] = ()

    def take(self, *facts: BoardFact) -> BoardView | None:
        """One step with these facts; the new view."""
        return self._keep(board_step(self.state, facts, facts[-1].at, self.table))

    def reconfigure(self, seconds: float, table: NodeTable) -> BoardView | None:
        """Another table; the new view."""
        self.table = table
        return self._keep(reconfigure(self.state, at(seconds), table))

    def _keep(self, step: BoardStep) -> BoardView | None:
        self.state, self.changes = step.state, step.changes
        self.views += [step.view] if step.view is not None else []
        return step.view


class PlayedBmc:
    """A BMC behind a transport. `say` is called for each command; connecting fails with `no_way` while that is set.

    opened, closed, most_open: how many transports there were, and how many at once.
    """

    def __init__(self) -> None:
        self.say: Callable[[int, int, bytes], bytes] = lambda *_: b"\0"
        self.no_way: Exception | None = None
        self.lock = threading.Lock()
        self.opened = self.closed = self.open_now = self.most_open = 0

    def connect(self) -> "PlayedTransport":
        """Open a transport."""
        with self.lock:
            if self.no_way is not None:
                raise self.no_way
            self.opened += 1
            self.open_now += 1
            self.most_open = max(self.most_open, self.open_now)
        return PlayedTransport(self)


class PlayedTransport:
    """`nodeagent.drivers.ipmi.Transport` to a PlayedBmc."""

    def __init__(self, bmc: PlayedBmc) -> None:
        self._bmc = bmc
        self._closed = False

    def raw(self, netfn: int, command: int, data: bytes) -> bytes:
        """What the BMC says."""
        assert not self._closed
        return self._bmc.say(netfn, command, data)

    def close(self) -> None:
        """Close it, once or twice."""
        with self._bmc.lock:
            if not self._closed:
                self._closed = True
                self._bmc.closed += 1
                self._bmc.open_now -= 1


def facts_text(facts: Sequence[BoardFact]) -> list[str]:
    """`seen N` or `silent` for each fact."""
    return [f"seen {len(fact.alarms)}" if isinstance(fact, AlarmsSeen) else "silent" for fact in facts]
