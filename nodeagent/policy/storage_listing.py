"""Storage clients as JSON for `/state`, `nodeagent scan` and `nodeagent why`. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from nodeagent.core.instant import Instant
from nodeagent.core.storage import StorageClient, StorageFault
from nodeagent.policy.storage import Pending, StorageState, StorageTimes, pending

OFF, AUTO, ON = "off", "auto", "on"
"""The settings `storage.dpc` and `storage.dtfs`."""


@dataclass(frozen=True, slots=True)
class ClientStanding:
    """One client as its source has it. feature: OFF, AUTO or ON. file: where its state is read."""

    client: StorageClient
    feature: str
    file: str
    state: StorageState
    times: StorageTimes


def storage_json(standings: Iterable[ClientStanding], now: Instant) -> list[dict[str, Any]]:
    """One object for each client.

    watched: its file is there, or was and is missed. why: one sentence, always. problem: why the last reading was not
    good, null = it was, or there is nothing to read. All `_ms` are Unix milliseconds, all `_s` seconds from now.
    """
    return [_client_json(standing, now) for standing in standings]


def is_watched(standing: ClientStanding) -> bool:
    """Whether a missing or bad file is worth a word: with `auto` only once there was one."""
    return standing.feature == ON or (standing.feature == AUTO and standing.state.was_there)


def _client_json(standing: ClientStanding, now: Instant) -> dict[str, Any]:
    client, state = standing.client, standing.state
    watched = is_watched(standing)
    timers = {timer.fault: timer for timer in pending(state, standing.times)}
    return {
        "client": client.value,
        "name": client.name,
        "file": standing.file,
        "feature": standing.feature,
        "watched": watched,
        "why": _why(standing),
        "known": all(value is not None for value in state.present.values()),
        "problem": (state.problem or None) if watched else None,
        "problem_since_ms": state.problem_since.wall_ms if watched and state.problem_since is not None else None,
        "gone_since_ms": None if state.gone_since is None else state.gone_since.wall_ms,
        "last_read_ms": None if state.seen is None else state.seen.wall_ms,
        "last_read_age_s": None if state.seen is None else _seconds(now.mono_ms - state.seen.mono_ms),
        "faults": [_fault_json(state, fault, timers.get(fault), now) for fault in client.faults],
        "instances": [
            {
                "number": number,
                "faults": [
                    {"fault": fault.value, "about": fault.about, "since_ms": streak.since.wall_ms}
                    for fault, streak in streaks.items()
                    if streak.value
                ],
            }
            for number, streaks in sorted(state.instances.items())
        ],
    }


def _fault_json(state: StorageState, fault: StorageFault, timer: Pending | None, now: Instant) -> dict[str, Any]:
    """present: null = not known. remembered: of before the restart, and not confirmed since."""
    present, since = state.present[fault], state.since.get(fault)
    return {
        "fault": fault.value,
        "code": fault.code,
        "about": fault.about,
        "level_at_clusterd": fault.level_at_clusterd,
        "present": present,
        "remembered": present is not None and since is None,
        "since_ms": None if since is None else since.wall_ms,
        "pending": None
        if timer is None
        else {"becomes": timer.becomes, "in_s": max(0.0, _seconds(timer.due_ms - now.mono_ms))},
    }


def _why(standing: ClientStanding) -> str:
    client, state = standing.client, standing.state
    if standing.feature == OFF:
        return f"storage.{client.value} is off"
    if state.gone_since is not None:
        return f"{standing.file} was there and is gone, the faults stay as they were"
    if not is_watched(standing):
        return f"{standing.file} is not there; watching begins when it is"
    if state.problem:
        return f"the last reading failed: {state.problem}"
    if state.seen is None:
        return f"{standing.file} was not read yet"
    return f"{standing.file} is read"


def _seconds(ms: int) -> float:
    return round(ms / 1000, 1)
