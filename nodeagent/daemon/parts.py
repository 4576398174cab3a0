"""The parts of a daemon, made from its settings and tied together; nothing runs yet.

One builder for each side, in the order in which one needs another: the ground, publishing, driving, following, asking.
A builder reads settings and makes objects: no thread is started, nothing is asked, no file is written.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nodeagent.core.clock import Clock, SystemClock
from nodeagent.core.observation import Observation
from nodeagent.core.settings import Settings
from nodeagent.core.telemetry import EventSink
from nodeagent.daemon.build import (
    book_parameters,
    check_access,
    configuration_places,
    connect_dcmi,
    connect_gateway,
    http_endpoint,
    link_times,
    link_tool,
    local_target,
    manner,
    switch_source,
)
from nodeagent.daemon.cluster import Cluster, pods_of
from nodeagent.daemon.core_loop import CoreLoop
from nodeagent.daemon.health import Conditions
from nodeagent.daemon.logs import Fan, LogEvents
from nodeagent.daemon.metrics import Registry
from nodeagent.daemon.node_faults import NodeFaults, node_faults_of
from nodeagent.daemon.outlet import Outlet
from nodeagent.daemon.release import DriverRelease
from nodeagent.daemon.restoring import Restoring
from nodeagent.daemon.selfcheck.doctor import Doctor
from nodeagent.daemon.shadow import ShadowWatch, shadow_answer, shadow_watch
from nodeagent.daemon.socket_api import SocketApi
from nodeagent.daemon.start_check import StartCheck
from nodeagent.daemon.state_file import StateFile
from nodeagent.daemon.status import Status
from nodeagent.daemon.supervisor import Supervisor
from nodeagent.drivers.host import Reaper
from nodeagent.policy.rules import Configuration
from nodeagent.policy.table import Document
from nodeagent.publish.node_writer import NodeWriter
from nodeagent.publish.publisher import Publisher
from nodeagent.publish.targets import Target
from nodeagent.render.node_object import parse_skip
from nodeagent.sources.chips import ChipSource
from nodeagent.sources.configuration import ConfigSource, ObjectReader
from nodeagent.sources.link_plan import parse_boards
from nodeagent.sources.links import LinkSource
from nodeagent.sources.plan import ChipTimes
from nodeagent.sources.pods import PodSource
from nodeagent.sources.switches import SwitchSource

if TYPE_CHECKING:
    from nodeagent.daemon.http_api import HttpApi


@dataclass(frozen=True, slots=True)
class Layers:
    """What the configuration begins with: the shipped layer, what is in force, and the site's documents in it."""

    shipped: Configuration
    in_force: Configuration
    site: tuple[Document, ...] = ()


@dataclass(frozen=True, slots=True)
class Ground:
    """What every side stands on. clock: of the policy. cluster: None = objects go to files or to stdout."""

    settings: Settings
    layers: Layers
    clock: Clock
    metrics: Registry
    events: EventSink
    conditions: Conditions
    supervisor: Supervisor
    target: Target
    cluster: Cluster | None
    start_check: StartCheck

    @property
    def state_dir(self) -> Path | None:
        """Where state is kept; None = nowhere."""
        own = self.settings.daemon
        return Path(own.state_dir) if own.state_dir else None


@dataclass(frozen=True, slots=True)
class Publishing:
    """From observations to objects. node: who keeps the marks of the node object, None = nobody."""

    core: CoreLoop
    publisher: Publisher
    outlet: Outlet
    state_file: StateFile
    node: NodeWriter | None


@dataclass(frozen=True, slots=True)
class Driving:
    """From the driver to observations."""

    chips: ChipSource
    links: LinkSource
    switches: SwitchSource
    release: DriverRelease


@dataclass(frozen=True, slots=True)
class Following:
    """What others say: the configuration, the pods of the node (None = not followed), our own last object.

    shadow: the comparison with the live object, None = nothing is compared.
    """

    configuration: ConfigSource
    restoring: Restoring
    shadow: ShadowWatch | None


@dataclass(frozen=True, slots=True)
class Asking:
    """What can be asked, by socket and by HTTP. None = nowhere."""

    status: Status
    socket: SocketApi | None
    http: "HttpApi | None"


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything."""

    ground: Ground
    publishing: Publishing
    node_faults: NodeFaults
    driving: Driving
    following: Following
    asking: Asking


def parts_of(settings: Settings, layers: Layers, clock: Clock) -> Parts:
    """Make everything. Raises SettingsError when the settings name no place to publish to, or one that is none."""
    ground = ground_of(settings, layers, clock)
    publishing = publishing_of(ground)
    node_faults = node_faults_of(
        settings, clock, ground.state_dir, ground.cluster, publishing.node, ground.events, ground.metrics
    )
    driving = driving_of(ground, publishing, node_faults.observe)
    following = following_of(ground, publishing)
    asking = asking_of(ground, publishing, node_faults, driving, following)
    return Parts(ground, publishing, node_faults, driving, following, asking)


def ground_of(settings: Settings, layers: Layers, clock: Clock) -> Ground:
    """Telemetry, the target, and the cluster if there is one. Raises SettingsError."""
    metrics = Registry()
    events: EventSink = LogEvents(metrics)
    cluster: Cluster | None = None
    target = local_target(settings)
    if target is None:
        check_access(settings)
        cluster = Cluster(settings.publish.kubeconfig, metrics)
        target = cluster.target
        events = Fan(events, *cluster.listeners(settings))
    doctor = Doctor(settings, None if cluster is None else cluster.client)
    start_check = StartCheck(doctor, metrics)
    supervisor, conditions = Supervisor(metrics), Conditions()
    return Ground(settings, layers, clock, metrics, events, conditions, supervisor, target, cluster, start_check)


def publishing_of(ground: Ground) -> Publishing:
    """The core loop and everyone who writes. The publisher and all deadlines stay on real time."""
    settings = ground.settings
    state_file = StateFile(ground.state_dir, ground.metrics)
    core = CoreLoop(
        ground.clock,
        ground.layers.in_force,
        lambda code: _name_of(code, core.config),
        lambda view: outlet.submit(view),
        lambda: outlet.begin(),
        state_file.save,
        ground.events,
        ground.metrics,
    )
    publisher = Publisher(
        ground.target,
        settings.node.name,
        SystemClock(),
        core.acknowledge,
        core.manual_field,
        ground.events,
        ground.metrics,
        book_parameters(settings),
        manner=manner(settings),
    )
    outlet = Outlet(publisher, ground.cluster, ground.start_check.seen)
    return Publishing(core, publisher, outlet, state_file, _node_writer(ground))


def driving_of(ground: Ground, publishing: Publishing, look_on: Callable[[Sequence[Observation]], None]) -> Driving:
    """The sources of chips and switches, and the release of the driver from them. look_on: sees what the chips tell."""
    settings, events, metrics = ground.settings, ground.events, ground.metrics
    reaper, gateway_reaper, switch_reaper = Reaper(), Reaper(), Reaper()
    submit = publishing.core.submit
    switches = switch_source(settings, switch_reaper, ground.clock, submit, events, metrics)

    def take_in(observations: Sequence[Observation]) -> None:
        """From chips and links; the switches look on, and speak later than the inventory that they see here."""
        submit(observations)
        switches.observe(observations)
        look_on(observations)

    tool, node = link_tool(settings), publishing.node
    links = LinkSource(
        connect_gateway(settings, gateway_reaper),
        tool,
        ground.clock,
        link_times(settings),
        take_in,
        events,
        metrics,
        parse_boards(settings.links.uboe_boards),
    )
    chips = ChipSource(
        connect_dcmi(settings, reaper),
        ground.clock,
        ChipTimes(settings.chips.health_period_s, settings.chips.poll_period_s, settings.chips.full_query_period_s),
        links.observe,
        events,
        metrics,
        reaper.alive,
        on_facts=node.submit if node is not None else lambda _: None,
    )

    def still_open() -> list[str]:
        """Processes that were told to end and may still hold the library or a device file."""
        hosts = [*reaper.pids(), *gateway_reaper.pids(), *switch_reaper.pids()]
        tools = [] if tool is None else tool.pids()
        return [f"driver host with pid {pid}" for pid in hosts] + [f"hccn_tool with pid {pid}" for pid in tools]

    sources = (chips, links, switches)
    release = DriverRelease(ground.state_dir, sources, still_open, SystemClock(), events, metrics)
    return Driving(chips, links, switches, release)


def following_of(ground: Ground, publishing: Publishing) -> Following:
    """What is read from files or watched in the cluster."""
    settings, core, cluster, publisher = ground.settings, publishing.core, ground.cluster, publishing.publisher
    places = configuration_places(settings)
    rules: ObjectReader | None = None
    if places.config_map is not None and cluster is not None:
        rules = cluster.follow_rules(places.config_map, lambda: configuration.hasten())
    elif places.config_map is not None:
        rules = local_target(settings)  # one of its own, because one thread uses a target
    layers = ground.layers
    configuration = ConfigSource(
        layers.shipped,
        layers.in_force,
        layers.site,
        places,
        rules,
        core.configure,
        ground.events,
        ground.metrics,
        settings.faults.reload_period_s,
    )
    pods: PodSource | None = None
    if cluster is not None:
        cluster.follow_own(publisher.object_key, publisher.look)
        if settings.cluster.pods:
            pods = PodSource(ground.clock, core.submit, ground.metrics)
            cluster.follow(pods_of(settings.node.name), pods)
    restoring = Restoring(
        publisher.read_back,
        core.submit,
        publishing.state_file,
        configuration,
        pods,
        ground.conditions,
        ground.clock,
        ground.metrics,
    )
    return Following(configuration, restoring, shadow_watch(settings, cluster, ground.metrics))


def asking_of(
    ground: Ground, publishing: Publishing, node_faults: NodeFaults, driving: Driving, following: Following
) -> Asking:
    """The snapshot of all parts, and the ways to it. Raises SettingsError for an HTTP address that is none."""
    settings = ground.settings
    status = Status(
        publishing.core,
        driving.chips,
        driving.links,
        publishing.publisher,
        ground.supervisor,
        ground.conditions,
        ground.metrics,
        node_faults,
        {
            "switches": lambda: driving.switches.waiting,
            **node_faults.queues(),
            **({} if ground.cluster is None else ground.cluster.queues()),
        },
    )
    place, socket = settings.daemon.socket, None
    if place:
        socket = SocketApi(Path(place), publishing.core, ground.clock, status.state)
        socket.register("release", driving.release.answer)
        socket.register("why_node", node_faults.why_node)
        socket.register("shadow", shadow_answer(following.shadow))
    return Asking(status, socket, http_endpoint(settings, status.pages(), ground.metrics))


def _node_writer(ground: Ground) -> NodeWriter | None:
    """Nobody in shadow mode and without a cluster."""
    settings, cluster = ground.settings, ground.cluster
    wanted, skip = settings.node_object.enabled, parse_skip(settings.node_object.skip)
    if cluster is None or not wanted or settings.publish.mode == "shadow":
        return None
    return NodeWriter(cluster.client, settings.node.name, skip, ground.events, ground.metrics)


def _name_of(code: int, configuration: Configuration) -> str:
    record = configuration.table.lookup(code)
    return record.name_en if record is not None else ""
