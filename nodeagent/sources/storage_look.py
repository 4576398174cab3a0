"""One look at the storage clients, for commands that run without a daemon."""

import queue
import threading
from dataclasses import replace
from pathlib import Path

from nodeagent.core.clock import Clock
from nodeagent.core.settings import StorageSettings
from nodeagent.core.storage import StorageClient, StorageFact, StorageUnread
from nodeagent.drivers.storage_files import read_client
from nodeagent.policy.storage import step
from nodeagent.policy.storage_listing import OFF, ClientStanding
from nodeagent.sources.storage import HANG_MS, ReadClient, read_fact, standing_of


def look_at_storage(
    settings: StorageSettings, clock: Clock, read: ReadClient = read_client, wait_s: float = HANG_MS / 1000
) -> tuple[ClientStanding, ...]:
    """Read each client once, for `storage_json`; no error of a client is one of the look.

    Whether memory is short stays unknown, unless a client has no instances: that takes ten minutes of readings.
    wait_s: longest time that the look waits for one client; its thread is left behind if that is too short.
    """
    found = []
    for client in StorageClient:
        standing = standing_of(client, settings)
        if standing.feature != OFF:
            fact = _look(standing, settings, clock, read, wait_s)
            standing = replace(standing, state=step(standing.state, fact, standing.times))
        found.append(standing)
    return tuple(found)


def _look(
    standing: ClientStanding, settings: StorageSettings, clock: Clock, read: ReadClient, wait_s: float
) -> StorageFact:
    asked = clock.now()
    answers: queue.SimpleQueue[StorageFact] = queue.SimpleQueue()
    threading.Thread(
        target=lambda: answers.put(read_fact(read, Path(settings.proc), standing.client, asked)),
        name=f"storage.{standing.client.value}",
        daemon=True,
    ).start()
    try:
        return answers.get(timeout=wait_s)
    except queue.Empty:
        return StorageUnread(f"{standing.file} has not been read for {wait_s:g} s, its kernel module may hang", asked)
