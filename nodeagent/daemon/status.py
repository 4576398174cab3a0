"""How the running daemon stands: the snapshot behind /healthz and /readyz, metrics of the moment, all chips."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from nodeagent import __version__
from nodeagent.core.clock import SystemClock, monotonic_s
from nodeagent.daemon.core_loop import CoreLoop
from nodeagent.daemon.health import Conditions, Snapshot, not_ready, unhealthy
from nodeagent.daemon.metrics import Registry
from nodeagent.daemon.node_faults import NodeFaults
from nodeagent.daemon.processes import ProcessMeter
from nodeagent.daemon.supervisor import Supervisor
from nodeagent.policy.listing import node_json, was_asked
from nodeagent.publish.publisher import Publisher
from nodeagent.sources.chips import ChipSource
from nodeagent.sources.links import LinkSource


@dataclass(frozen=True, slots=True)
class Pages:
    """What the HTTP endpoint shows; called from several threads.

    unhealthy, not_ready: one line per problem, empty = all is well. metrics: page and content type for an `Accept`
    header. state: everything about all chips.
    """

    unhealthy: Callable[[], list[str]]
    not_ready: Callable[[], list[str]]
    metrics: Callable[[str], tuple[bytes, str]]
    state: Callable[[], dict[str, Any]]


class Status:
    """Looks at the parts of a daemon, from any thread, and changes nothing but metrics.

    queues: those that not every daemon has; name and number of what waits.
    """

    def __init__(
        self,
        core: CoreLoop,
        chips: ChipSource,
        links: LinkSource,
        publisher: Publisher,
        supervisor: Supervisor,
        conditions: Conditions,
        metrics: Registry,
        node_faults: NodeFaults,
        queues: Mapping[str, Callable[[], int]] = MappingProxyType({}),
    ) -> None:
        self._core = core
        self._chips = chips
        self._publisher = publisher
        self._supervisor = supervisor
        self._conditions = conditions
        self._metrics = metrics
        self._node_faults = node_faults
        self._queues: dict[str, Callable[[], int]] = {
            "core": lambda: core.waiting,
            "chips": lambda: chips.waiting,
            "links": lambda: links.waiting,
            **queues,
        }
        self._meter = ProcessMeter(metrics)
        self._measuring = threading.Lock()
        metrics.set("build_info", 1, version=__version__)
        metrics.set("process_start_time_seconds", SystemClock().now().wall_ms / 1000)

    def pages(self) -> Pages:
        """Everything that can be asked for."""
        return Pages(
            unhealthy=lambda: unhealthy(self.snapshot()),
            not_ready=lambda: not_ready(self.snapshot()),
            metrics=self._metrics_page,
            state=self.state,
        )

    def snapshot(self) -> Snapshot:
        """The present moment, for the verdicts of nodeagent.daemon.health."""
        state, library, publishing = self._core.state, self._chips.library, self._publisher.status()
        return Snapshot(
            beat_age_s=_age_s(self._core.beat_s),
            board_beat_age_s=_age_s(self._node_faults.beat_s),
            dead=tuple(self._supervisor.dead()),
            publisher_dead=self._publisher.dead,
            driver_open=state.inventory is not None,
            driver_problem="; ".join(library.problems),
            chips=len(state.chips),
            unasked=sum(not was_asked(chip) for chip in state.chips.values()),
            complete=state.complete,
            acknowledged=publishing.acknowledged_generation is not None,
            publish_problem=publishing.problem,
            other_writer=publishing.waits_for,
            said=self._conditions.all(),
        )

    def state(self) -> dict[str, Any]:
        """All chips and everything else that is watched, as `nodeagent scan --output json` prints them."""
        chips = node_json(self._core.state, self._core.config, self._chips.library, "daemon")
        return {**chips, **self._node_faults.state()}

    def measure(self) -> None:
        """Bring the metrics up to date that nobody sets when something happens."""
        self._metrics.set("ready", not not_ready(self.snapshot()))
        for name, depth in self._queues.items():
            self._metrics.set("queue_depth", depth(), queue=name)
        with self._measuring:
            self._meter.measure()

    def _metrics_page(self, accept: str) -> tuple[bytes, str]:
        # Here, because a daemon that nobody scrapes need not pay for prometheus_client.
        from nodeagent.daemon.exposition import exposition

        self.measure()
        return exposition(self._metrics, accept)


def _age_s(beat_s: float | None) -> float:
    """Seconds since a beat; 0 before the first."""
    return 0.0 if beat_s is None else monotonic_s() - beat_s
