"""The daemon put together: driver -> source -> core loop -> publisher, started and stopped in order."""

import logging
import threading
from collections.abc import Sequence

from nodeagent.core.clock import Clock, SystemClock
from nodeagent.core.errors import ReadBackError
from nodeagent.core.observation import CarriedOver, Observation
from nodeagent.core.settings import Settings
from nodeagent.daemon.build import book_parameters, connect_dcmi
from nodeagent.daemon.core_loop import CoreLoop
from nodeagent.daemon.logs import LogEvents
from nodeagent.daemon.metrics import Registry
from nodeagent.daemon.supervisor import Loop, Supervisor
from nodeagent.drivers.chips import Connect
from nodeagent.drivers.host import Reaper
from nodeagent.policy.table import FaultTable
from nodeagent.publish.publisher import Publisher
from nodeagent.publish.targets import Target
from nodeagent.sources.chips import ChipSource
from nodeagent.sources.plan import ChipTimes

log = logging.getLogger("nodeagent.daemon")

READ_BACK_PAUSES_S = (1.0, 2.0, 5.0, 10.0, 30.0)
METRICS_PERIOD_S = 300.0
STOP_LOOP_S = 0.4
STOP_PUBLISHER_S = 0.6


class Daemon:
    """One node's daemon. `clock` is the policy clock; the publisher and all deadlines stay on real time.

    connect: maker of driver sessions, for tests; None = DCMI in a driver host, as the settings say.
    """

    def __init__(
        self,
        settings: Settings,
        table: FaultTable,
        target: Target,
        clock: Clock,
        connect: Connect | None = None,
    ) -> None:
        self.metrics = Registry()
        self._events = LogEvents(self.metrics)
        self._clock = clock
        self._reaper = Reaper()
        self._supervisor = Supervisor(self.metrics)
        self._stopping = threading.Event()
        self._publisher_started = False
        self.core = CoreLoop(
            clock,
            table,
            lambda code: record.name_en if (record := table.lookup(code)) else "",
            lambda view: self.publisher.submit(view),
            self._start_publisher,
            self._events,
            self.metrics,
        )
        self.publisher = Publisher(
            target,
            settings.node.name,
            SystemClock(),
            self.core.acknowledge,
            self._events,
            self.metrics,
            book_parameters(settings),
        )
        chips = settings.chips
        self._source = ChipSource(
            connect or connect_dcmi(settings, self._reaper),
            clock,
            ChipTimes(chips.health_period_s, chips.poll_period_s, chips.full_query_period_s),
            self._observe,
            self._events,
            self.metrics,
            self._reaper.alive,
        )

    def start(self) -> None:
        """Start everything. Publishing begins when the last published object was read and every chip was asked."""
        self._supervisor.start(Loop("core", self.core.run, self.core.stop))
        threading.Thread(target=self._restore, name="restore", daemon=True).start()
        self._supervisor.start(Loop("chips", self._source.run, self._source.stop))
        threading.Thread(target=self._report, name="report", daemon=True).start()

    def stop(self) -> None:
        """Stop everything within about a second, also while a driver call hangs. Nothing is written or deleted."""
        self._stopping.set()
        late = self._supervisor.stop(STOP_LOOP_S)
        if self._publisher_started and not self.publisher.stop(STOP_PUBLISHER_S):
            late.append("publisher")
        log.info("stopped %s", f"while still busy: {', '.join(late)}" if late else "cleanly")
        log.info("metrics %s", self.metrics.summary())

    def _observe(self, observations: Sequence[Observation]) -> None:
        self.core.submit(observations)

    def _restore(self) -> None:
        """Read our last published object until that succeeds; detection does not wait for it, publishing does."""
        failures = 0
        while not self._stopping.is_set():
            try:
                found = self.publisher.read_back()
            except ReadBackError as error:
                if failures == 0:
                    log.warning("last published object cannot be read, nothing is published before: %s", error)
                pause_s = READ_BACK_PAUSES_S[min(failures, len(READ_BACK_PAUSES_S) - 1)]
                failures += 1
                self._stopping.wait(pause_s)
                continue
            if found.carried.faults:
                log.info("last published object read faults=%d", len(found.carried.faults))
            self.core.submit([CarriedOver(found.carried.faults, self._clock.now())])
            return

    def _start_publisher(self) -> None:
        if not self._publisher_started:
            self._publisher_started = True
            self.publisher.start()

    def _report(self) -> None:
        while not self._stopping.wait(METRICS_PERIOD_S):
            log.info("metrics %s", self.metrics.summary())
