"""The parts that watch the board and the storage clients, made from settings and tied together; nothing runs yet.

A pipeline beside that of the chips: neither needs the other, and each of its own sources starts, fails and heals alone.
"""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from nodeagent.core.clock import Clock, SystemClock
from nodeagent.core.observation import InventorySeen, Observation
from nodeagent.core.settings import Settings
from nodeagent.core.telemetry import EventSink, Metrics
from nodeagent.daemon.board import BoardLoop
from nodeagent.daemon.build import (
    configuration_places,
    local_target,
    manner_of_node_info,
    object_place,
    site_documents,
)
from nodeagent.daemon.cluster import Cluster
from nodeagent.daemon.fault_diag import FaultDiagLog
from nodeagent.daemon.hardware import connect_board, hang_s, pause, storage_settings, transport_text, trusted_uids
from nodeagent.daemon.supervisor import Loop
from nodeagent.drivers.ipmi_alarms import poll_alarms
from nodeagent.drivers.ipmi_label import read_serial_number
from nodeagent.drivers.storage_files import read_client
from nodeagent.policy.board import BoardState
from nodeagent.policy.node_configuration import first_node_configuration
from nodeagent.policy.node_table import NodeConfiguration
from nodeagent.policy.storage_listing import storage_json
from nodeagent.publish.courier import Courier
from nodeagent.publish.node_info import NodeInfoPublisher, NodeInfoTimes
from nodeagent.publish.node_writer import NodeWriter
from nodeagent.publish.owner import DaemonSetOwner
from nodeagent.publish.public_fault import PublicFaultWriter
from nodeagent.publish.targets import Target
from nodeagent.sources.board import BoardSource
from nodeagent.sources.board_plan import BoardTimes
from nodeagent.sources.config_documents import shipped_nodes
from nodeagent.sources.configuration import NodeConfigSource, ObjectReader
from nodeagent.sources.storage import StorageSource

log = logging.getLogger("nodeagent.node_faults")

FIRST_LEVELS_S = 15.0
"""How long the first judgement waits for the ConfigMap with levels; longer, and the layers below it begin (7.3)."""


@dataclass(frozen=True, slots=True)
class BoardParts:
    """The board: levels, source, owner of the state, and the writer of its object."""

    levels: NodeConfigSource
    gate: "LevelsGate"
    source: BoardSource
    loop: BoardLoop
    publisher: NodeInfoPublisher
    fault_diag: FaultDiagLog | None


class NodeFaults:
    """Everything that watches node faults but chips. board: None = the BMC is not asked (`ipmi.transport=off`)."""

    def __init__(
        self, board: BoardParts | None, storage: StorageSource, public: PublicFaultWriter, clock: Clock
    ) -> None:
        self.board = board
        self._storage = storage
        self._public = public
        self._clock = clock

    def observe(self, observations: Sequence[Observation]) -> None:
        """See the list of the chips pass, which public faults name; from any thread, never blocks."""
        for observation in observations:
            if isinstance(observation, InventorySeen):
                self._public.chips(chip.physical_id for chip in observation.inventory.chips)

    def loops(self) -> list[Loop]:
        """Everything to be supervised, in the order of the start: whoever takes runs before whoever gives."""
        loops = [
            Loop("public_faults", self._public.run, self._public.stop),
            Loop("storage", self._storage.run, self._storage.stop),
        ]
        if (board := self.board) is not None:
            if board.fault_diag is not None:
                loops.append(Loop("fault_diag", board.fault_diag.run, board.fault_diag.stop))
            loops += [
                Loop("node_info", board.publisher.run, board.publisher.stop),
                Loop("board", board.loop.run, board.loop.stop),
                Loop("levels", board.levels.run, board.levels.stop),
                Loop("ipmi", board.source.run, board.source.stop),
            ]
        return loops

    def begin(self, stopping: threading.Event) -> None:
        """Let the board be judged once its levels are known; in a thread of its own."""
        if self.board is not None:
            work = (self.board.levels, stopping)
            threading.Thread(target=self.board.gate.begin, args=work, name="levels-gate", daemon=True).start()

    @property
    def beat_s(self) -> float | None:
        """Monotonic second of the last pass of the board loop; None without one and before the first."""
        return None if self.board is None else self.board.loop.beat_s

    def queues(self) -> dict[str, Callable[[], int]]:
        """What waits, by name."""
        board = self.board
        return {} if board is None else {"board": lambda: board.loop.waiting}

    def state(self) -> dict[str, Any]:
        """Board, storage clients and public faults, for `/state` and `scan`. board: null = not watched."""
        return {
            "board": None if self.board is None else self.board.loop.state_json(),
            "storage": storage_json(self._storage.standings(), self._clock.now()),
            "public_faults": self._public.state_json(),
        }

    def why_node(self, _: Mapping[str, Any]) -> dict[str, Any]:
        """Answer of the socket to `why node`."""
        return {"board": None if self.board is None else self.board.loop.why_json(), "storage": self.state()["storage"]}


class LevelsGate:
    """Hands levels to the board loop, but none before those of the cluster were looked for (7.3, "order of start").

    Otherwise a start would judge by the built-in levels first, and the published state would go there and back.
    """

    def __init__(self, in_force: NodeConfiguration, configure: Callable[[NodeConfiguration], None]) -> None:
        self._latest = in_force
        self._configure = configure
        self._open = False
        self._lock = threading.Lock()

    def put(self, configuration: NodeConfiguration) -> None:
        """New levels; from the thread of their source."""
        with self._lock:
            self._latest = configuration
            if self._open:
                self._configure(configuration)

    def begin(self, levels: NodeConfigSource, stopping: threading.Event) -> None:
        """Wait for the first look at all layers, and open. An API server that is away delays node faults no longer."""
        if not levels.wait_known(FIRST_LEVELS_S):
            log.warning("ConfigMap with levels of node faults is not read yet, the layers below it hold until it is")
        if not stopping.is_set():
            with self._lock:
                self._open = True
                self._configure(self._latest)


def node_faults_of(
    settings: Settings,
    clock: Clock,
    state_dir: Path | None,
    cluster: Cluster | None,
    node: NodeWriter | None,
    events: EventSink,
    metrics: Metrics,
) -> NodeFaults:
    """Make all of it. node: who keeps the marks of the node object, None = nobody. Raises SettingsError."""
    public = PublicFaultWriter(
        _courier(settings, cluster),
        settings.node.name,
        state_dir,
        _audience(settings),
        settings.public_faults.chips_deadline_s,
        SystemClock(),
        events,
        metrics,
    )

    storage = StorageSource(
        storage_settings(settings),
        clock,
        public.submit,
        events,
        metrics,
        read=partial(read_client, trusted_uids=trusted_uids(settings)),
    )
    board = None
    if settings.ipmi.transport != "off":
        board = _board_of(settings, clock, cluster, node, events, metrics)
    return NodeFaults(board, storage, public, clock)


def _board_of(
    settings: Settings,
    clock: Clock,
    cluster: Cluster | None,
    node: NodeWriter | None,
    events: EventSink,
    metrics: Metrics,
) -> BoardParts:
    diag_file = settings.log.fault_diag_file
    fault_diag = FaultDiagLog(Path(diag_file), SystemClock()) if diag_file else None
    publisher = NodeInfoPublisher(
        _target(settings, cluster, "node_info"),
        settings.node.name,
        SystemClock(),
        lambda _generation, _at: None,
        events,
        metrics,
        NodeInfoTimes(min_distance_ms=int(settings.ipmi.report_interval_s * 1000)),
        None if cluster is None else DaemonSetOwner.of_this_process(cluster.client, SystemClock()),
        manner=manner_of_node_info(settings),
    )

    def on_alarms(state: BoardState) -> None:
        if fault_diag is not None:
            fault_diag.submit(state)

    loop = BoardLoop(clock, None, transport_text(settings), publisher.submit, on_alarms, events, metrics)

    def on_serial(text: str) -> None:
        loop.serial_number(text)
        if node is not None:
            node.submit_serial_number(text)

    source = BoardSource(
        connect_board(settings, metrics),
        partial(poll_alarms, pause=pause),
        partial(read_serial_number, pause=pause) if settings.ipmi.serial_number else None,
        clock,
        BoardTimes(settings.ipmi.poll_period_s, hang_s(settings)),
        loop.submit,
        on_serial,
        events,
        metrics,
    )
    lowest = shipped_nodes()
    first, site = first_node_configuration(lowest, site_documents(settings))
    gate = LevelsGate(first, loop.configure)
    place = object_place(settings, settings.faults.node_config_map, "faults.node_config_map")
    reader: ObjectReader | None = None
    if place is not None and cluster is not None:
        reader = cluster.follow_rules(place, lambda: levels.hasten(), "node_rules")
    elif place is not None:
        reader = local_target(settings)  # one of its own, because one thread uses a target
    levels = NodeConfigSource(
        lowest,
        first,
        site,
        replace(configuration_places(settings), config_map=place),
        reader,
        gate.put,
        events,
        metrics,
        settings.faults.reload_period_s,
        keep_deleted=settings.faults.node_on_delete == "keep",
    )
    return BoardParts(levels, gate, source, loop, publisher, fault_diag)


def _target(settings: Settings, cluster: Cluster | None, label: str) -> Target:
    """A target for one more writer, since one thread uses a target."""
    if cluster is not None:
        return cluster.another_target(label)
    target = local_target(settings)
    assert target is not None  # there is no cluster
    return target


def _courier(settings: Settings, cluster: Cluster | None) -> Courier | None:
    """The way to ClusterD; None = nobody is told. In shadow mode nobody is called either: a call has no shadow."""
    delivery, shadow = settings.public_faults.delivery, settings.publish.mode == "shadow"
    if delivery == "grpc" and not shadow:
        from nodeagent.publish.courier_grpc import GrpcCourier

        return GrpcCourier(settings.public_faults)
    if delivery == "off" or (delivery == "grpc" and shadow):
        return None
    from nodeagent.publish.courier_configmap import ConfigMapCourier

    return ConfigMapCourier(_target(settings, cluster, "public_fault"), settings.node.name, shadow)


def _audience(settings: Settings) -> str:
    """Who is told, in one word for the memory of what they know."""
    told = settings.public_faults.delivery
    by = f"-{settings.publish.target}" if told == "configmap" else ""
    return f"{told}{by}-{settings.publish.mode}"
