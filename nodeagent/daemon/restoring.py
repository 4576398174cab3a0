"""What was known before this start: our last object and the state file, read until that succeeds."""

import logging
import random
import threading
from collections.abc import Callable, Sequence

from nodeagent.cluster.backoff import Backoff
from nodeagent.core.clock import Clock
from nodeagent.core.errors import ReadBackError
from nodeagent.core.instant import Instant
from nodeagent.core.observation import CarriedOver, Observation
from nodeagent.core.telemetry import Metrics
from nodeagent.daemon.health import Conditions
from nodeagent.daemon.state_file import STALE_S, Memory, StateFile
from nodeagent.publish.read_back import ReadBack
from nodeagent.render.operator_fields import manual_ids, upgrade_reasons
from nodeagent.render.switch_reading import carried_switches
from nodeagent.sources.configuration import ConfigSource
from nodeagent.sources.pods import PodSource

log = logging.getLogger("nodeagent.daemon")

CONDITION = "restore"
UNFORESEEN_S = 30.0
FIRST_PAUSE_S = 2.0
"""Bound of the pause after the first failed read; it doubles up to 30 s."""
FIRST_CONFIGURATION_S = 15.0
FIRST_PODS_S = 5.0
"""A restart does not offer chips that pods use for want of a few seconds (decision 7 counts unknown as unused)."""


class Restoring:
    """Runs once. read_back: of the publisher. submit: of the core loop, which lets publishing begin.

    configuration, pods: waited for, so that nothing is published at levels or with a use that they change at once;
    pods None = not followed. clock: of the policy.
    """

    def __init__(
        self,
        read_back: Callable[[], ReadBack],
        submit: Callable[[Sequence[Observation]], None],
        state_file: StateFile,
        configuration: ConfigSource,
        pods: PodSource | None,
        conditions: Conditions,
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        self._read_back = read_back
        self._submit = submit
        self._state_file = state_file
        self._configuration = configuration
        self._pods = pods
        self._conditions = conditions
        self._clock = clock
        self._metrics = metrics

    def run(self, stopping: threading.Event) -> None:
        """Restore, whatever unforeseen stands in the way: without it nothing would ever be published."""
        while not stopping.is_set():
            try:
                self._restore(stopping)
            except Exception:
                log.exception("unforeseen error while restoring, it is tried again")
                self._metrics.count("loop_restarts_total", loop=CONDITION)
                stopping.wait(UNFORESEEN_S)
            else:
                return

    def _restore(self, stopping: threading.Event) -> None:
        """Read our last published object until that succeeds; detection does not wait for it, publishing does."""
        if not self._configuration.wait_first(FIRST_CONFIGURATION_S):
            log.warning("configuration is not read yet, publishing begins with what is in force")
        backoff = Backoff(random.random, base_s=FIRST_PAUSE_S)
        while not stopping.is_set():
            try:
                found = self._read_back()
            except ReadBackError as error:
                if backoff.failures == 0:
                    log.warning("last published object cannot be read, nothing is published before: %s", error)
                self._conditions.hold(CONDITION, f"the last published object cannot be read: {error.sentence}")
                stopping.wait(backoff.failed())
                continue
            # With the API back, the ConfigMap comes too: reasons of its rules must not meet the rules below it.
            if not self._configuration.wait_known(FIRST_CONFIGURATION_S):
                log.warning("ConfigMap with rules is not read yet, reasons are judged by the rules in force")
            if self._pods is not None and not self._pods.wait_first(FIRST_PODS_S):
                log.warning("pods of this node are not known yet, chips count as unused until they are")
            self._submit([carried_over(found, self._state_file.load(), self._clock.now())])
            self._conditions.clear(CONDITION)
            return


def carried_over(found: ReadBack, memory: Memory | None, now: Instant) -> CarriedOver:
    """What the object and the state file say together; one line tells what was carried over (decision 17).

    memory: None = there is none. It is left aside when the object is newer by more than `STALE_S`: then it is of an
    earlier life of this node.
    """
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
    object_newer = memory is not None and found.update_time_s > memory.saved_at_s
    switches = None if data is None else carried_switches(data)
    if memory is not None and memory.switches is not None and not (object_newer and switches is not None):
        switches = memory.switches
    return CarriedOver(
        found.carried.faults,
        now,
        manual,
        reasons,
        {} if memory is None else memory.chips,
        same_boot=memory is not None and memory.same_boot,
        object_newer=object_newer,
        switches=switches,
    )
