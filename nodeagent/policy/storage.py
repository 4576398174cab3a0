"""Faults of a storage client from its readings (node-faults 11.2, 11.3, 12): state and reading in, state out. Pure.

Intervals are those of the monotonic clock. Nothing ends by time alone: a timer ends with the first good reading at or
after its end, so its end is the moment for which `due_ms` asks for one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from nodeagent.core.instant import Instant
from nodeagent.core.storage import (
    StorageClient,
    StorageFact,
    StorageFault,
    StorageInstance,
    StorageSeen,
    StorageUnread,
    StorageVerdict,
)

DEBOUNCE_MS = 600_000
"""How long a shortage of memory must last, and must be gone, without a break (11.3)."""
GAP_MS = 60_000
"""Longest distance of two good readings across which a state counts as unbroken.

Sixty seconds are upstream's distance of two hand-overs (11.2), so it never saw more than that at once either; longer
than a reload of the module takes, much shorter than the debounce. A longer gap makes the timers begin anew, which can
only delay a verdict. Upstream lets them run on through any time without readings.
"""
GONE_READINGS = 3
"""Readings in a row without a file, after which a client that was there is gone (11.4 leaves the number open)."""
DEBOUNCED = frozenset({StorageFault.DPC_MEMORY})

Flags = Mapping[StorageFault, bool]


@dataclass(frozen=True, slots=True)
class Streak:
    """A flag of an instance that has had one value in every reading since a moment."""

    value: bool
    since: Instant


@dataclass(frozen=True, slots=True)
class Pending:
    """A timer: the fault becomes `becomes` with the first good reading from `due_ms` (monotonic) on."""

    fault: StorageFault
    becomes: bool
    due_ms: int


@dataclass(frozen=True, slots=True)
class StorageTimes:
    """Milliseconds; see the constants. gap_ms must exceed the period of readings."""

    debounce_ms: int = DEBOUNCE_MS
    gap_ms: int = GAP_MS


@dataclass(frozen=True, slots=True)
class StorageState:
    """All that is known of a client.

    present: None = not known. since: when a value of `present` was seen first; none for one that is only believed.
    instances: of the last good reading, by number. seen: moment of the last good reading. problem: why the last
    reading was not good; empty = it was. problem_since: the first bad one in a row. missing: readings without a file
    in a row. was_there: there was a file once. gone_since: the client is gone.
    """

    client: StorageClient
    present: Mapping[StorageFault, bool | None]
    since: Mapping[StorageFault, Instant] = field(default_factory=lambda: MappingProxyType({}))
    instances: Mapping[int, Mapping[StorageFault, Streak]] = field(default_factory=lambda: MappingProxyType({}))
    seen: Instant | None = None
    problem: str = ""
    problem_since: Instant | None = None
    missing: int = 0
    was_there: bool = False
    gone_since: Instant | None = None

    def verdict(self, at: Instant) -> StorageVerdict:
        """What there is to tell others."""
        return StorageVerdict(self.client, self.present, at)


def begin(client: StorageClient, believed: Flags = MappingProxyType({})) -> StorageState:
    """The state before the first reading.

    believed: what was known before a restart; it stays until readings say otherwise, which for a debounced fault takes
    the whole debounce (11.4). A fault that is believed makes the client one that was there: should its file be
    missing, people hear that nobody sees its end.
    """
    present = {fault: believed.get(fault) for fault in client.faults}
    return StorageState(client, MappingProxyType(present), was_there=any(present.values()))


def step(state: StorageState, fact: StorageFact, times: StorageTimes = StorageTimes()) -> StorageState:
    """Take in one reading; they come in the order of their moments."""
    return _unread(state, fact) if isinstance(fact, StorageUnread) else _seen(state, fact, times)


def pending(state: StorageState, times: StorageTimes = StorageTimes()) -> tuple[Pending, ...]:
    """Timers that run; one whose end is past waits for a good reading."""
    return tuple(timer for fault in state.client.faults if (timer := _pending(state, fault, times)) is not None)


def due_ms(state: StorageState, times: StorageTimes = StorageTimes()) -> int | None:
    """Monotonic milliseconds at which a reading would end a timer; None = no timer runs. May be past."""
    return min((timer.due_ms for timer in pending(state, times)), default=None)


def _unread(state: StorageState, fact: StorageUnread) -> StorageState:
    """What is known stays."""
    missing = state.missing + 1 if fact.missing else 0
    was_there = state.was_there or not fact.missing
    failed = replace(
        state,
        problem=fact.why,
        problem_since=state.problem_since or fact.at,
        missing=missing,
        was_there=was_there,
        gone_since=state.gone_since if fact.missing else None,
    )
    if failed.gone_since is None and was_there and missing >= GONE_READINGS:
        # Instances of a module that is loaded again later have nothing but their numbers in common with these.
        return replace(failed, gone_since=fact.at, instances=MappingProxyType({}))
    return failed


def _seen(state: StorageState, fact: StorageSeen, times: StorageTimes) -> StorageState:
    at = fact.at
    broken = state.seen is None or at.mono_ms - state.seen.mono_ms > times.gap_ms
    instances = {
        instance.number: _streaks(state, instance, at, None if broken else state.instances.get(instance.number))
        for instance in fact.instances
    }
    seen = replace(
        state,
        instances=MappingProxyType(instances),
        seen=at,
        problem="",
        problem_since=None,
        missing=0,
        was_there=True,
        gone_since=None,
    )
    present, since = dict(state.present), dict(state.since)
    for fault in state.client.faults:
        value = _judge(seen, fault, at, times)
        if value is not None and (value is not present[fault] or fault not in since):
            present[fault], since[fault] = value, at
    return replace(seen, present=MappingProxyType(present), since=MappingProxyType(since))


def _streaks(
    state: StorageState, instance: StorageInstance, at: Instant, before: Mapping[StorageFault, Streak] | None
) -> Mapping[StorageFault, Streak]:
    streaks = {}
    for fault in state.client.faults:
        value = fault in instance.faults
        same = before is not None and before[fault].value is value
        streaks[fault] = before[fault] if before is not None and same else Streak(value, at)
    return MappingProxyType(streaks)


def _of_all(state: StorageState, fault: StorageFault) -> Iterable[Streak]:
    return [streaks[fault] for streaks in state.instances.values()]


def _judge(state: StorageState, fault: StorageFault, at: Instant, times: StorageTimes) -> bool | None:
    """What a good reading settles; None = nothing, the value stays."""
    streaks = _of_all(state, fault)
    wait_ms = times.debounce_ms if fault in DEBOUNCED else 0
    lasting = [at.mono_ms - streak.since.mono_ms >= wait_ms for streak in streaks]
    if any(streak.value and long for streak, long in zip(streaks, lasting, strict=True)):
        return True
    if all(not streak.value and long for streak, long in zip(streaks, lasting, strict=True)):
        return False  # so without any instance
    return None


def _pending(state: StorageState, fault: StorageFault, times: StorageTimes) -> Pending | None:
    streaks = list(_of_all(state, fault))
    if fault not in DEBOUNCED or not streaks:
        return None
    bad = [streak.since.mono_ms for streak in streaks if streak.value]
    began_ms = min(bad) if bad else max(streak.since.mono_ms for streak in streaks)
    becomes = bool(bad)
    if state.present[fault] is becomes:
        return None
    return Pending(fault, becomes, began_ms + times.debounce_ms)
