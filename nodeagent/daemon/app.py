"""The daemon's life: its parts started and stopped in order."""

import logging
import threading
from pathlib import Path

from nodeagent.core.clock import Clock
from nodeagent.core.settings import Settings
from nodeagent.daemon.lock import NodeLock
from nodeagent.daemon.parts import Layers, parts_of
from nodeagent.daemon.restoring import CONDITION as RESTORE
from nodeagent.daemon.supervisor import Loop

log = logging.getLogger("nodeagent.daemon")

METRICS_PERIOD_S = 300.0
STOP_LOOP_S = 0.4
STOP_PUBLISHER_S = 0.6


class Daemon:
    """One node's daemon. `clock` is the policy clock; the publisher and all deadlines stay on real time.

    stopping: ends a start that waits for another daemon of this node; set by `stop`.
    Raises SettingsError when the settings name no place to publish to.
    """

    def __init__(self, settings: Settings, layers: Layers, clock: Clock, stopping: threading.Event) -> None:
        self._parts = parts_of(settings, layers, clock)
        self._ground = self._parts.ground
        self._lock = NodeLock(Path(settings.daemon.lock) if settings.daemon.lock else None)
        self._stopping = stopping

    @property
    def where(self) -> str:
        """Where objects are published to, for people."""
        return self._ground.target.describe()

    def start(self) -> bool:
        """Start everything. Publishing begins when the last published object was read and every chip was asked.

        Waits while another daemon of this node runs; false when `stopping` was set meanwhile.
        """
        ground, publishing, driving = self._ground, self._parts.publishing, self._parts.driving
        following, asking = self._parts.following, self._parts.asking
        start = ground.supervisor.start
        ground.conditions.hold(RESTORE, "the last published object is not read yet")
        ground.conditions.hold("lock", "waits for the end of another daemon of this node")
        if asking.http is not None:
            start(Loop("http", asking.http.run, asking.http.stop))
        if not self._lock.acquire(self._stopping):
            return False
        ground.conditions.clear("lock")
        start(Loop("core", publishing.core.run, publishing.core.stop))
        start(Loop("configuration", following.configuration.run, following.configuration.stop))
        for loop in ground.cluster.loops() if ground.cluster is not None else []:
            start(loop)
        threading.Thread(target=following.restoring.run, args=(self._stopping,), name="restore", daemon=True).start()
        if publishing.node is not None:
            start(Loop("node_object", publishing.node.run, publishing.node.stop))
        driving.release.restore()  # before anything opens the library
        start(Loop("release", driving.release.run, driving.release.stop))
        start(Loop("switches", driving.switches.run, driving.switches.stop))
        start(Loop("links", driving.links.run, driving.links.stop))
        start(Loop("chips", driving.chips.run, driving.chips.stop))
        for loop in self._parts.node_faults.loops():
            start(loop)
        self._parts.node_faults.begin(self._stopping)
        if asking.socket is not None:
            start(Loop("socket", asking.socket.run, asking.socket.stop))
        threading.Thread(target=self._report, name="report", daemon=True).start()
        threading.Thread(target=ground.start_check.run, name="self-check", daemon=True).start()
        return True

    def stop(self) -> None:
        """Stop everything within about a second, also while a driver call hangs. Nothing is written or deleted."""
        ground = self._ground
        self._stopping.set()
        ground.start_check.stop()
        late = ground.supervisor.stop(STOP_LOOP_S)
        if not self._parts.publishing.outlet.stop(STOP_PUBLISHER_S):
            late.append("publisher")
        self._lock.release()
        log.info("stopped %s", f"while still busy: {', '.join(late)}" if late else "cleanly")
        log.info("metrics %s", ground.metrics.summary())

    def _report(self) -> None:
        while not self._stopping.wait(METRICS_PERIOD_S):
            self._parts.asking.status.measure()
            log.info("metrics %s", self._ground.metrics.summary())
