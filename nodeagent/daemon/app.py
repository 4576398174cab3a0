"""The daemon put together: driver -> source -> core loop -> publisher, started and stopped in order."""

import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nodeagent.core.clock import Clock, SystemClock
from nodeagent.core.errors import ReadBackError
from nodeagent.core.model import NodeView
from nodeagent.core.observation import CarriedOver, Observation
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
from nodeagent.daemon.lock import NodeLock
from nodeagent.daemon.logs import Fan, LogEvents
from nodeagent.daemon.metrics import Registry
from nodeagent.daemon.release import DriverRelease
from nodeagent.daemon.selfcheck.doctor import Doctor
from nodeagent.daemon.socket_api import SocketApi
from nodeagent.daemon.start_check import StartCheck
from nodeagent.daemon.state_file import STALE_S, StateFile
from nodeagent.daemon.status import Status
from nodeagent.daemon.supervisor import Loop, Supervisor
from nodeagent.drivers.chips import Connect
from nodeagent.drivers.host import Reaper
from nodeagent.policy.rules import Configuration
from nodeagent.policy.table import Document
from nodeagent.publish.node_writer import NodeWriter
from nodeagent.publish.publisher import Publisher, ReadBack
from nodeagent.render.node_object import parse_skip
from nodeagent.render.operator_fields import manual_ids, upgrade_reasons
from nodeagent.sources.chips import ChipSource
from nodeagent.sources.configuration import ConfigPlaces, ConfigSource, ObjectReader
from nodeagent.sources.link_plan import parse_boards
from nodeagent.sources.links import LinkSource
from nodeagent.sources.plan import ChipTimes
from nodeagent.sources.pods import PodSource

log = logging.getLogger("nodeagent.daemon")

READ_BACK_PAUSES_S = (1.0, 2.0, 5.0, 10.0, 30.0)
METRICS_PERIOD_S = 300.0
FIRST_CONFIGURATION_S = 15.0
FIRST_PODS_S = 5.0
"""A restart does not offer chips that pods use for want of a few seconds (decision 7 counts unknown as unused)."""
STOP_LOOP_S = 0.4
STOP_PUBLISHER_S = 0.6


@dataclass(frozen=True, slots=True)
class Layers:
    """What the configuration begins with: the shipped layer, what is in force, and the site's documents in it."""

    shipped: Configuration
    in_force: Configuration
    site: tuple[Document, ...] = ()


class Daemon:
    """One node's daemon. `clock` is the policy clock; the publisher and all deadlines stay on real time.

    connect: maker of driver sessions, for tests; None = DCMI in a driver host, as the settings say.
    stopping: ends a start that waits for another daemon of this node.
    Raises SettingsError when the settings name no place to publish to.
    """

    def __init__(
        self,
        settings: Settings,
        layers: Layers,
        clock: Clock,
        connect: Connect | None = None,
        stopping: threading.Event | None = None,
    ) -> None:
        self.metrics = Registry()
        self._events: EventSink = LogEvents(self.metrics)
        self._clock = clock
        self._reaper, self._gateway_reaper = Reaper(), Reaper()
        self._supervisor = Supervisor(self.metrics)
        self.conditions = Conditions()
        self._stopping = stopping or threading.Event()
        self._publisher_started = False
        own = settings.daemon
        self._lock = NodeLock(Path(own.lock) if own.lock else None)
        target = local_target(settings)
        self._cluster: Cluster | None = None
        if target is None:
            check_access(settings)
            self._cluster = Cluster(settings.publish.kubeconfig, self.metrics)
            target = self._cluster.target
            self._events = Fan(self._events, *self._cluster.listeners(settings))
        self._target = target
        self._state_file = StateFile(Path(own.state_dir) if own.state_dir else None, self.metrics)
        self.core = CoreLoop(
            clock,
            layers.in_force,
            self._name_of,
            self._hand_on,
            self._start_publisher,
            self._state_file.save,
            self._events,
            self.metrics,
        )
        self.publisher = Publisher(
            self._target,
            settings.node.name,
            SystemClock(),
            self.core.acknowledge,
            self.core.manual_field,
            self._events,
            self.metrics,
            book_parameters(settings),
            manner=manner(settings),
        )
        self._node = self._node_writer(settings)
        self._switch_reaper = Reaper()
        self._switches = switch_source(
            settings, self._switch_reaper, clock, self.core.submit, self._events, self.metrics
        )
        chips = settings.chips
        self._tool = link_tool(settings)
        self._links = LinkSource(
            connect_gateway(settings, self._gateway_reaper) if connect is None else None,
            self._tool,
            clock,
            link_times(settings),
            self._take_in,
            self._events,
            self.metrics,
            parse_boards(settings.links.uboe_boards),
        )
        self._source = ChipSource(
            connect or connect_dcmi(settings, self._reaper),
            clock,
            ChipTimes(chips.health_period_s, chips.poll_period_s, chips.full_query_period_s),
            self._links.observe,
            self._events,
            self.metrics,
            self._reaper.alive,
            on_facts=self._node.submit if self._node is not None else lambda _: None,
        )
        self.release = DriverRelease(
            Path(own.state_dir) if own.state_dir else None,
            (self._source, self._links, self._switches),
            self._still_open,
            SystemClock(),
            self._events,
            self.metrics,
        )

        places = configuration_places(settings)
        self._configuration = ConfigSource(
            layers.shipped,
            layers.in_force,
            layers.site,
            places,
            self._reader_of_rules(settings, places),
            self.core.configure,
            self._events,
            self.metrics,
            settings.faults.reload_period_s,
        )
        self._pods: PodSource | None = None
        if self._cluster is not None:
            self._cluster.follow_own(self.publisher.object_key, self.publisher.look)
            if settings.cluster.pods:
                self._pods = PodSource(clock, self.core.submit, self.metrics)
                self._cluster.follow(pods_of(settings.node.name), self._pods)
        self._status = Status(
            self.core,
            self._source,
            self._links,
            self.publisher,
            self._supervisor,
            self.conditions,
            self.metrics,
            {"switches": lambda: self._switches.waiting},
        )
        self._socket = SocketApi(Path(own.socket), self.core, clock, self._status.state) if own.socket else None
        if self._socket is not None:
            self._socket.register("release", self.release.answer)
        self._http = http_endpoint(settings, self._status.pages(), self.metrics)
        client = None if self._cluster is None else self._cluster.client
        self._start_check = StartCheck(Doctor(settings, client), self.metrics)

    @property
    def where(self) -> str:
        """Where objects are published to, for people."""
        return self._target.describe()

    def _node_writer(self, settings: Settings) -> NodeWriter | None:
        """Who keeps the marks of the node object; nobody in shadow mode and without a cluster."""
        wanted, skip = settings.node_object.enabled, parse_skip(settings.node_object.skip)
        if self._cluster is None or not wanted or settings.publish.mode == "shadow":
            return None
        return NodeWriter(self._cluster.client, settings.node.name, skip, self._events, self.metrics)

    def _reader_of_rules(self, settings: Settings, places: ConfigPlaces) -> ObjectReader | None:
        """Who reads the ConfigMap of rules: the watch that follows it, or a target of its own for files."""
        if places.config_map is None:
            return None
        if self._cluster is not None:
            return self._cluster.follow_rules(places.config_map, lambda: self._configuration.hasten())
        return local_target(settings)  # one of its own, because one thread uses a target

    def start(self) -> bool:
        """Start everything. Publishing begins when the last published object was read and every chip was asked.

        Waits while another daemon of this node runs; false when `stopping` was set meanwhile.
        """
        self.conditions.hold("restore", "the last published object is not read yet")
        self.conditions.hold("lock", "waits for the end of another daemon of this node")
        if self._http is not None:
            self._supervisor.start(Loop("http", self._http.run, self._http.stop))
        if not self._lock.acquire(self._stopping):
            return False
        self.conditions.clear("lock")
        self._supervisor.start(Loop("core", self.core.run, self.core.stop))
        self._supervisor.start(Loop("configuration", self._configuration.run, self._configuration.stop))
        for loop in self._cluster.loops() if self._cluster is not None else []:
            self._supervisor.start(loop)
        threading.Thread(target=self._keep_restoring, name="restore", daemon=True).start()
        if self._node is not None:
            self._supervisor.start(Loop("node_object", self._node.run, self._node.stop))
        self.release.restore()  # before anything opens the library
        self._supervisor.start(Loop("release", self.release.run, self.release.stop))
        self._supervisor.start(Loop("switches", self._switches.run, self._switches.stop))
        self._supervisor.start(Loop("links", self._links.run, self._links.stop))
        self._supervisor.start(Loop("chips", self._source.run, self._source.stop))
        if self._socket is not None:
            self._supervisor.start(Loop("socket", self._socket.run, self._socket.stop))
        threading.Thread(target=self._report, name="report", daemon=True).start()
        threading.Thread(target=self._start_check.run, name="self-check", daemon=True).start()
        return True

    def stop(self) -> None:
        """Stop everything within about a second, also while a driver call hangs. Nothing is written or deleted."""
        self._stopping.set()
        self._start_check.stop()
        late = self._supervisor.stop(STOP_LOOP_S)
        if self._publisher_started and not self.publisher.stop(STOP_PUBLISHER_S):
            late.append("publisher")
        self._lock.release()
        log.info("stopped %s", f"while still busy: {', '.join(late)}" if late else "cleanly")
        log.info("metrics %s", self.metrics.summary())

    def _keep_restoring(self) -> None:
        """Restore, whatever unforeseen stands in the way: without it nothing would ever be published."""
        while not self._stopping.is_set():
            try:
                self._restore()
            except Exception:
                log.exception("unforeseen error while restoring, it is tried again")
                self.metrics.count("loop_restarts_total", loop="restore")
                self._stopping.wait(READ_BACK_PAUSES_S[-1])
            else:
                return

    def _restore(self) -> None:
        """Read our last published object until that succeeds; detection does not wait for it, publishing does.

        The cluster's configuration is waited for too, so that nothing is published at levels that it changes.
        """
        if not self._configuration.wait_first(FIRST_CONFIGURATION_S):
            log.warning("configuration is not read yet, publishing begins with what is in force")
        failures = 0
        while not self._stopping.is_set():
            try:
                found = self.publisher.read_back()
            except ReadBackError as error:
                if failures == 0:
                    log.warning("last published object cannot be read, nothing is published before: %s", error)
                self.conditions.hold("restore", f"the last published object cannot be read: {error.sentence}")
                pause_s = READ_BACK_PAUSES_S[min(failures, len(READ_BACK_PAUSES_S) - 1)]
                failures += 1
                self._stopping.wait(pause_s)
                continue
            # With the API back, the ConfigMap comes too: reasons of its rules must not meet the rules below it.
            if not self._configuration.wait_known(FIRST_CONFIGURATION_S):
                log.warning("ConfigMap with rules is not read yet, reasons are judged by the rules in force")
            if self._pods is not None and not self._pods.wait_first(FIRST_PODS_S):
                log.warning("pods of this node are not known yet, chips count as unused until they are")
            self.core.submit([self._carried(found)])
            self.conditions.clear("restore")
            return

    def _carried(self, found: ReadBack) -> CarriedOver:
        """What the object and the state file say together; one line tells what was carried over (decision 17)."""
        memory = self._state_file.load()
        data = found.data
        if memory is not None and found.update_time_s > memory.saved_at_s + STALE_S:
            log.warning("state file is older than the published object by more than %d s, it is ignored", STALE_S)
            memory = None
        manual = None if data is None else manual_ids(data)
        reasons = () if data is None else upgrade_reasons(data)
        log.info(
            "carried over faults=%d reasons=%d manual=%s state_file=%s",
            len(found.carried.faults),
            len(reasons),
            "unknown" if manual is None else sorted(manual),
            "none" if memory is None else f"{len(memory.chips)} chips",
        )
        return CarriedOver(
            found.carried.faults,
            self._clock.now(),
            manual,
            reasons,
            {} if memory is None else memory.chips,
            same_boot=memory is not None and memory.same_boot,
            object_newer=memory is not None and found.update_time_s > memory.saved_at_s,
        )

    def _still_open(self) -> list[str]:
        """Processes that were told to end and may still hold the library or a device file."""
        hosts = [*self._reaper.pids(), *self._gateway_reaper.pids(), *self._switch_reaper.pids()]
        tools = [] if self._tool is None else self._tool.pids()
        return [f"driver host with pid {pid}" for pid in hosts] + [f"hccn_tool with pid {pid}" for pid in tools]

    def _take_in(self, observations: Sequence[Observation]) -> None:
        """From the chips and links; the switches look on, and speak later than the inventory that they see here."""
        self.core.submit(observations)
        self._switches.observe(observations)

    def _name_of(self, code: int) -> str:
        record = self.core.config.table.lookup(code)
        return record.name_en if record is not None else ""

    def _hand_on(self, view: NodeView) -> None:
        self._start_check.seen(view.product)
        self.publisher.submit(view)
        if self._cluster is not None:
            self._cluster.submit(view)

    def _start_publisher(self) -> None:
        if self._cluster is not None:
            self._cluster.begin()
        if not self._publisher_started:
            self._publisher_started = True
            self.publisher.start()

    def _report(self) -> None:
        while not self._stopping.wait(METRICS_PERIOD_S):
            self._status.measure()
            log.info("metrics %s", self.metrics.summary())
