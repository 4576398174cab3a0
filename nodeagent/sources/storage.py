"""The storage source: reads the state files of DPC and DTFS and tells what holds (node-faults 11, 12).

A file of a sick kernel module may hang its reader for ever. So every client has a thread that makes one reading at a
time, and the loop never waits for it: the other client goes on, and a reading that hangs is told once and not joined
by a second one.
"""

import queue
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from nodeagent.core.clock import Clock
from nodeagent.core.errors import StorageStateError
from nodeagent.core.instant import Instant
from nodeagent.core.settings import StorageSettings
from nodeagent.core.storage import (
    StorageClient,
    StorageFact,
    StorageFault,
    StorageInstance,
    StorageSeen,
    StorageUnread,
    StorageVerdict,
)
from nodeagent.core.telemetry import EventSink, Metrics
from nodeagent.drivers.storage_files import StorageFileMissingError, read_client, state_file
from nodeagent.policy.storage import GAP_MS, Flags, StorageTimes, begin, due_ms, step
from nodeagent.policy.storage_listing import OFF, ClientStanding
from nodeagent.sources.storage_news import StorageNews

HANG_MS = 10_000
"""A reading that takes longer is said to hang. The file is made in memory; what commands to the BMC get is plenty."""

ReadClient = Callable[[Path, StorageClient], tuple[StorageInstance, ...]]
"""Reads one state file; raises StorageStateError. May hang."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """The end of a reading: what it found, or the error that nobody foresaw."""

    client: StorageClient
    found: StorageFact | Exception


class _Reader:
    """The thread of one client, and when it is to read."""

    def __init__(self, standing: ClientStanding, now: Instant, news: StorageNews) -> None:
        self.standing = standing
        self.news = news
        self.tasks: queue.SimpleQueue[Instant | None] = queue.SimpleQueue()
        self.thread: threading.Thread | None = None
        self.asked: Instant | None = None  # of the reading under way
        self.hangs = False
        self.next_ms = now.mono_ms

    def due_ms(self) -> int | None:
        """When the loop has something to do here: begin a reading, or say that one hangs."""
        if self.asked is None:
            return self.next_ms
        return None if self.hangs else self.asked.mono_ms + HANG_MS


def storage_times(settings: StorageSettings) -> StorageTimes:
    """The gap grows with the period, so that one failed reading of a slow site does not begin the timers anew."""
    return StorageTimes(gap_ms=max(GAP_MS, int(3000 * settings.read_period_s)))


def standing_of(
    client: StorageClient, settings: StorageSettings, believed: Flags = MappingProxyType({})
) -> ClientStanding:
    """A client before its first reading."""
    feature = settings.dpc if client is StorageClient.DPC else settings.dtfs
    file = str(state_file(Path(settings.proc), client))
    return ClientStanding(client, feature, file, begin(client, believed), storage_times(settings))


def read_fact(read: ReadClient, proc: Path, client: StorageClient, asked: Instant) -> StorageFact:
    """Read once. asked: the present moment. May hang; raises only what nobody foresaw."""
    try:
        return StorageSeen(read(proc, client), asked)
    except StorageStateError as error:
        return StorageUnread(error.sentence, asked, missing=isinstance(error, StorageFileMissingError))


class StorageSource:
    """Follows both clients, for ever.

    emit: takes a verdict after the first good reading of a client and after each change, from the source's thread;
    never blocks long. believed: what was known before a restart, by fault; absent = nothing. read: for tests.
    """

    def __init__(
        self,
        settings: StorageSettings,
        clock: Clock,
        emit: Callable[[StorageVerdict], None],
        events: EventSink,
        metrics: Metrics,
        believed: Mapping[StorageFault, bool] = MappingProxyType({}),
        read: ReadClient = read_client,
    ) -> None:
        self._proc = Path(settings.proc)
        self._period_ms = int(1000 * settings.read_period_s)
        self._clock = clock
        self._emit = emit
        self._read = read
        self._inbox: queue.SimpleQueue[_Answer | None] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._readers = {
            client: _Reader(standing_of(client, settings, believed), clock.now(), StorageNews(events, metrics))
            for client in StorageClient
        }
        self._used = [reader for reader in self._readers.values() if reader.standing.feature != OFF]

    def standings(self) -> tuple[ClientStanding, ...]:
        """Everything known, for `storage_json`; from any thread."""
        return tuple(reader.standing for reader in self._readers.values())

    def run(self) -> None:
        """Work until `stop`; the supervisor calls this again should it ever raise. One reading under way goes on."""
        try:
            while not self._stopping.is_set():
                self._dispatch()
                answer = self._next()
                if answer is not None:
                    self._take(answer)
        finally:
            if self._stopping.is_set():
                for reader in self._used:
                    reader.tasks.put(None)

    def stop(self) -> None:
        """Make `run` return; a reading that hangs is left to itself."""
        self._stopping.set()
        self._inbox.put(None)

    # -- the loop -----------------------------------------------------------------

    def _dispatch(self) -> None:
        now = self._clock.now()
        for reader in self._used:
            due = reader.due_ms()
            if due is None or due > now.mono_ms:
                continue
            if reader.asked is None:
                self._begin(reader, now)
            else:
                reader.hangs = True
                why = f"{reader.standing.file} has not been read for {HANG_MS // 1000} s, its kernel module may hang"
                self._follow(reader, StorageUnread(why, now))

    def _begin(self, reader: _Reader, now: Instant) -> None:
        if reader.thread is None:
            name = f"storage.{reader.standing.client.value}"
            reader.thread = threading.Thread(target=self._make_readings, args=(reader,), name=name, daemon=True)
            reader.thread.start()
        reader.asked, reader.hangs = now, False
        reader.tasks.put(now)

    def _make_readings(self, reader: _Reader) -> None:
        """Body of a client's thread."""
        client = reader.standing.client
        while (asked := reader.tasks.get()) is not None:
            try:
                self._inbox.put(_Answer(client, read_fact(self._read, self._proc, client, asked)))
            except Exception as error:  # noqa: BLE001 - border of a thread; the loop raises it
                self._inbox.put(_Answer(client, error))

    def _next(self) -> _Answer | None:
        due = min((due for reader in self._used if (due := reader.due_ms()) is not None), default=None)
        timeout_s = None if due is None else self._clock.real_s((due - self._clock.now().mono_ms) / 1000)
        try:
            return self._inbox.get(timeout=timeout_s)
        except queue.Empty:
            return None

    # -- answers ------------------------------------------------------------------

    def _take(self, answer: _Answer) -> None:
        reader, fact = self._readers[answer.client], answer.found
        asked = reader.asked
        assert asked is not None  # nobody answers without being asked
        reader.asked = None
        reader.next_ms = asked.mono_ms + self._period_ms
        if isinstance(fact, Exception):
            raise fact
        fact, result = self._judged(reader.standing, fact, asked)
        reader.news.counted(reader.standing, result)
        self._follow(reader, fact)
        timer_ms = due_ms(reader.standing.state, reader.standing.times)
        if timer_ms is not None and timer_ms > asked.mono_ms:
            reader.next_ms = min(reader.next_ms, timer_ms)  # a timer ends at its moment, not up to a period later

    def _judged(self, standing: ClientStanding, fact: StorageFact, asked: Instant) -> tuple[StorageFact, str]:
        if isinstance(fact, StorageUnread):
            return fact, "missing" if fact.missing else "bad"
        now = self._clock.now()
        took_ms = now.mono_ms - asked.mono_ms
        if took_ms > standing.times.gap_ms:
            # Nobody can say of which moment it speaks; the next reading follows at once.
            return StorageUnread(f"{standing.file} took {took_ms // 1000} s to read, which is of no use", now), "late"
        return fact, "ok"

    def _follow(self, reader: _Reader, fact: StorageFact) -> None:
        before = reader.standing
        state = step(before.state, fact, before.times)
        reader.standing = replace(before, state=state)
        reader.news.after(before, reader.standing, fact)
        first = before.state.seen is None and state.seen is not None
        if first or state.present != before.state.present:
            self._emit(state.verdict(fact.at))
