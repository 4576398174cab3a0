"""One simulated node: the real publisher without its thread, and a pretended state of eight chips."""

import random
from collections.abc import Callable
from dataclasses import replace

from nodeagent.cluster.backoff import Backoff
from nodeagent.cluster.client import ApiClient
from nodeagent.core.clock import SystemClock
from nodeagent.core.errors import ReadBackError
from nodeagent.core.instant import Instant
from nodeagent.core.levels import Level, plane_of
from nodeagent.core.model import ChipId, ChipView, Family, FaultView, NodeView, Product
from nodeagent.core.telemetry import Metrics, NullTelemetry
from nodeagent.daemon.restoring import FIRST_PAUSE_S
from nodeagent.publish.book import BookParameters
from nodeagent.publish.kubernetes import KubernetesTarget
from nodeagent.publish.manner import Manner
from nodeagent.publish.other_writer import WriterGuard
from nodeagent.publish.publisher import Publisher
from nodeagent.publish.targets import Target

CHIPS = 8
CODE = "80E18005"
_PRODUCT = Product(Family.A2, "910B3")


class ShiftedClock(SystemClock):
    """The machine's clocks, the monotonic one moved by `shift_ms`.

    A fleet that was started in one minute gets by it the ages of one that was started over days.
    """

    def __init__(self) -> None:
        self.shift_ms = 0

    def now(self) -> Instant:
        """The moment on both clocks, the monotonic one shifted."""
        now = super().now()
        return Instant(now.mono_ms + self.shift_ms, now.wall_ms)


class SimulatedNode:
    """A node with CHIPS chips, of which some have one fault.

    on_acknowledged: called from a thread that drives the node, with the node and the generation that the server has.
    """

    def __init__(
        self,
        name: str,
        target: Target,
        parameters: BookParameters,
        metrics: Metrics,
        on_acknowledged: Callable[["SimulatedNode", int], None],
    ) -> None:
        self.name = name
        self.generation = 0
        self._bad: frozenset[int] = frozenset()
        self._clock = ShiftedClock()
        self._written_ms = 0
        self._read_back = False
        self._backoff = Backoff(random.random, base_s=FIRST_PAUSE_S)
        self._on_acknowledged = on_acknowledged
        self._publisher = Publisher(
            target,
            name,
            self._clock,
            self._acknowledged,
            lambda _ids, _generation: None,
            NullTelemetry(),
            metrics,
            parameters,
            manner=Manner(guard=WriterGuard(overwrite=False)),
        )

    @property
    def devices(self) -> frozenset[str]:
        """Names of the chips that have the fault now."""
        return frozenset(f"Ascend910-{chip}" for chip in self._bad)

    def report(self, *toggled: int) -> None:
        """A new view, in which the fault of these chips comes or goes. The lane must be poked after it."""
        self._bad = self._bad.symmetric_difference(toggled)
        self.generation += 1
        self._publisher.submit(_view(self.generation, self._bad, self._clock.now().wall_ms))

    def turn(self) -> float | None:
        """What the daemon does in its threads `restore` and `publisher`; returns the seconds to wait."""
        if not self._read_back:
            try:
                self._publisher.read_back()
            except ReadBackError:
                return self._backoff.failed()
            self._read_back = True
        return self._publisher.turn()

    def age(self, age_ms: int) -> None:
        """Let the last write be so old. The lane must be poked after it."""
        self._clock.shift_ms += age_ms - (self._clock.now().mono_ms - self._written_ms)

    def _acknowledged(self, generation: int, at: Instant) -> None:
        self._written_ms = at.mono_ms
        self._on_acknowledged(self, generation)


def simulated(
    name: str,
    client: ApiClient,
    parameters: BookParameters,
    metrics: Metrics,
    on_acknowledged: Callable[[SimulatedNode, int], None],
) -> SimulatedNode:
    """A node that writes through a client that it shares with others."""
    return SimulatedNode(name, KubernetesTarget(client), parameters, metrics, on_acknowledged)


def _view(generation: int, bad: frozenset[int], now_ms: int) -> NodeView:
    code = int(CODE, 16)
    fault = FaultView(code, CODE, plane_of(code), now_ms, Level.RESTART_NPU)
    chips = []
    for number in range(CHIPS):
        chip = ChipView(ChipId(number, number, number, 0))
        if number in bad:
            chip = replace(chip, faults=(fault,), chip_level=Level.RESTART_NPU, healthy=False)
        chips.append(chip)
    return NodeView(generation, _PRODUCT, tuple(chips))
