"""What people and metrics hear of a storage client: changes, not repetitions (lesson 81)."""

import logging

from nodeagent.core.storage import StorageFact, StorageFault, StorageSeen, StorageUnread
from nodeagent.core.telemetry import Event, EventReason, EventSink, Metrics
from nodeagent.policy.storage import StorageState
from nodeagent.policy.storage_listing import AUTO, ON, ClientStanding, is_watched

log = logging.getLogger("nodeagent.storage")

MAX_LINES = 3
"""Lines in the log about readings that fail, until one succeeds (node-faults 11.1)."""


class StorageNews:
    """Told by the source's loop after every reading; has no clock and no thread of its own."""

    def __init__(self, events: EventSink, metrics: Metrics) -> None:
        self._events = events
        self._metrics = metrics
        self._lines = 0
        self._unreadable = False
        self._absence_said = False

    def counted(self, standing: ClientStanding, result: str) -> None:
        """A reading has ended. result: `ok`, `missing`, `bad`, or `late` where its answer was of no use any more."""
        self._metrics.count("storage_reads_total", client=standing.client.value, result=result)

    def after(self, before: ClientStanding, standing: ClientStanding, fact: StorageFact) -> None:
        """A fact was taken in, which made `standing` of `before`."""
        self._of_presence(before.state, standing)
        if isinstance(fact, StorageSeen):
            self._of_success(standing, fact)
        else:
            self._of_failure(standing, fact)
        for fault in standing.client.faults:
            self._of_fault(before.state, standing.state, fault)

    def _of_presence(self, before: StorageState, standing: ClientStanding) -> None:
        state, client = standing.state, standing.client
        if state.was_there:
            self._metrics.set("storage_file_gone", state.gone_since is not None, client=client.value)
        if before.gone_since is None and state.gone_since is not None:
            message = f"{standing.file} was there and is gone; the faults stay as they are, nobody sees them change"
            self._say(standing, EventReason.STORAGE_GONE, message, warning=True)
        elif before.gone_since is not None and state.gone_since is None:
            self._say(standing, EventReason.STORAGE_RETURNED, f"{standing.file} is there again")

    def _of_success(self, standing: ClientStanding, fact: StorageSeen) -> None:
        client = standing.client.value
        self._metrics.set("source_last_success_timestamp_seconds", fact.at.wall_ms / 1000, source=client)
        if self._lines:
            log.info("state of the storage client is read again client=%s", client)
        self._lines = 0
        if self._unreadable:
            self._unreadable = False
            self._say(standing, EventReason.STORAGE_READABLE, f"{standing.file} is read again")

    def _of_failure(self, standing: ClientStanding, fact: StorageUnread) -> None:
        client = standing.client.value
        if not is_watched(standing):
            if not self._absence_said:
                self._absence_said = True
                log.info(
                    "the storage client is watched once its file is there client=%s file=%s", client, standing.file
                )
            return
        if self._lines < MAX_LINES:
            self._lines += 1
            last = ", further failures are not logged until one succeeds" if self._lines == MAX_LINES else ""
            log.warning("state of the storage client is not read client=%s problem=%r%s", client, fact.why, last)
        if fact.missing and standing.state.was_there:
            return  # said as gone, after some more readings
        if not self._unreadable:
            self._unreadable = True
            message = f"{fact.why}; what is known of the client stays"
            if fact.missing and standing.feature == ON:
                message = f"{fact.why}, though storage.{client} is {ON}; with {AUTO} watching begins once it is there"
            self._say(standing, EventReason.STORAGE_UNREADABLE, message, warning=True)

    def _of_fault(self, before: StorageState, state: StorageState, fault: StorageFault) -> None:
        old, new = before.present[fault], state.present[fault]
        if new is not None:
            self._metrics.set("storage_fault", new, client=state.client.value, fault=fault.value)
        if bool(old) is bool(new):
            return  # a first knowledge of health is no news
        message = f"{fault.code} {fault.about}, level {fault.level_at_clusterd} at ClusterD"
        reason = EventReason.FAULT_OCCURRED if new else EventReason.FAULT_RECOVERED
        if new and (numbers := [number for number, streaks in state.instances.items() if streaks[fault].value]):
            message += f", instance{'' if len(numbers) == 1 else 's'} {', '.join(map(str, numbers))}"
        self._events.emit(Event(reason, message, warning=bool(new), subject=f"storage client {state.client.name}"))

    def _say(self, standing: ClientStanding, reason: EventReason, message: str, *, warning: bool = False) -> None:
        self._events.emit(Event(reason, message, warning, f"storage client {standing.client.name}"))
