"""The fleet: simulated nodes on two lanes, each with a client of its own; knows who waits for an acknowledgement."""

import random
import threading
from collections.abc import Callable, Sequence

from fleet.lane import Lane, Task
from fleet.node import SimulatedNode, simulated
from fleet.traffic import Traffic
from nodeagent.cluster.access import CONNECTIONS
from nodeagent.cluster.client import ApiClient
from nodeagent.core.clock import monotonic_s
from nodeagent.publish.book import BookParameters

LANES = 2
"""A client keeps CONNECTIONS connections: as many threads use it, so that none is opened and closed again."""
LIMIT_S = 300.0
_LOOK_S = 0.5

NodeMaker = Callable[[str, int, Callable[[SimulatedNode, int], None]], SimulatedNode]
"""Makes a node from its name, the number of its lane, and whom it tells of acknowledgements."""


class NotSettled(Exception):
    """Some nodes got no acknowledgement within the limit, or a turn raised an error."""


class Fleet:
    """Nodes that can be made to report and waited for. make: a maker of nodes, for tests; see `real_nodes`."""

    def __init__(self, make: NodeMaker, refresh_s: float) -> None:
        self._make = make
        self._refresh_ms = int(refresh_s * 1000)
        self._lanes = [Lane(CONNECTIONS) for _ in range(LANES)]
        self._tasks: list[Task] = []
        self.nodes: list[SimulatedNode] = []
        self._changed = threading.Condition()
        self._waiting: dict[str, float] = {}
        self._settled_s: dict[str, tuple[float, float]] = {}

    def close(self) -> None:
        """End all threads; nothing is deleted."""
        for lane in self._lanes:
            lane.close()

    def grow(self, count: int) -> None:
        """Let there be `count` nodes; each new one reports that all its chips are healthy."""
        for number in range(len(self.nodes), count):
            node = self._make(f"node-{number:05}", number % LANES, self._acknowledged)
            self.nodes.append(node)
            self._tasks.append(Task(node.turn))
            self.report(number)

    def report(self, number: int, *toggled: int) -> None:
        """The fault of these chips of one node comes or goes."""
        node = self.nodes[number]
        with self._changed:  # an acknowledgement of this view must find it among those that are waited for
            self._waiting[node.name] = monotonic_s()
            node.report(*toggled)
        self._poke(number)

    @property
    def waiting(self) -> int:
        """Nodes whose last report is not acknowledged."""
        with self._changed:
            return len(self._waiting)

    def settle(self, say: Callable[[str], None], limit_s: float = LIMIT_S) -> None:
        """Wait until the last report of every node is acknowledged. Raises NotSettled after `limit_s`."""
        end_s = monotonic_s() + limit_s
        while True:
            for lane in self._lanes:
                if lane.error is not None:
                    raise NotSettled(f"a node failed: {lane.error!r}") from lane.error
            with self._changed:
                left = len(self._waiting)
                if not left:
                    return
                if monotonic_s() > end_s:
                    raise NotSettled(f"{left} nodes were not acknowledged within {limit_s:g} s")
                self._changed.wait(_LOOK_S)
            say(f"{left} of {len(self.nodes)} nodes are not acknowledged yet")

    def settled(self) -> dict[str, tuple[float, float]]:
        """Of each node the monotonic seconds of its last report and of the acknowledgement of it."""
        with self._changed:
            return dict(self._settled_s)

    def spread(self) -> None:
        """Let the last writes have all ages up to the refresh period, evenly, in no order."""
        ages = [number * self._refresh_ms // len(self.nodes) for number in range(len(self.nodes))]
        random.Random(len(ages)).shuffle(ages)
        for number, age_ms in enumerate(ages):
            self.nodes[number].age(age_ms)
            self._poke(number)

    def expected(self) -> dict[str, frozenset[str]]:
        """The devices with a fault, by node."""
        return {node.name: node.devices for node in self.nodes}

    def _poke(self, number: int) -> None:
        self._lanes[number % LANES].poke(self._tasks[number])

    def _acknowledged(self, node: SimulatedNode, generation: int) -> None:
        with self._changed:
            if generation == node.generation and (since_s := self._waiting.pop(node.name, None)) is not None:
                self._settled_s[node.name] = since_s, monotonic_s()
                if not self._waiting:
                    self._changed.notify_all()


def real_nodes(clients: Sequence[ApiClient], parameters: BookParameters, traffic: Traffic) -> NodeMaker:
    """Nodes that write to an API server; one client for each lane."""

    def make(name: str, lane: int, on_acknowledged: Callable[[SimulatedNode, int], None]) -> SimulatedNode:
        return simulated(name, clients[lane], parameters, traffic, on_acknowledged)

    return make
