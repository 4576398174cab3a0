"""What is remembered of public faults over a restart, as a JSON document, and joined with the last object. Pure.

Two witnesses speak of what ClusterD has: our own state file, which is saved before and after each message, and in the
ConfigMap form our last object, which ClusterD reads. The object names the faults of the last message only.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from nodeagent.core.storage import StorageClient, StorageFault
from nodeagent.policy.public_fault import usable_ids
from nodeagent.policy.public_fault_track import FaultMemory

VERSION = 1
_RECENT_MS = 3_600_000
"""A recovery that was told longer ago is not said again: three times within the first hour (decision 28)."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """Of a whole node. faults: those that are known. chips: physical ids, empty = not known."""

    faults: Mapping[StorageFault, FaultMemory] = field(default_factory=dict)
    chips: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Told:
    """One fault as our last object names it. told_wall_ms: time stamp of the message."""

    fault: StorageFault
    present: bool
    fault_wall_ms: int
    told_wall_ms: int
    device_ids: tuple[int, ...]


def to_document(node_name: str, audience: str, remembered: Remembered) -> dict[str, object]:
    """A JSON document. audience: who is told; what one audience knows says nothing of another."""
    return {
        "version": VERSION,
        "node": node_name,
        "audience": audience,
        "chips": list(remembered.chips),
        "faults": {fault.value: _to_members(memory) for fault, memory in remembered.faults.items()},
    }


def from_document(document: object, node_name: str, audience: str, recovers: int) -> Remembered:
    """Read it back. recovers: how often a recovery is said again at most.

    Of another node nothing is taken over, of another audience the times of occurrences and the chips. Raises
    ValueError for a document of another version or form.
    """
    if not isinstance(document, dict) or document.get("version") != VERSION:
        raise ValueError(f"it is no document of version {VERSION}")
    chips, faults = document.get("chips"), document.get("faults")
    if not isinstance(chips, list) or not isinstance(faults, dict):
        raise ValueError("a member is missing or of the wrong kind")
    if document.get("node") != node_name:
        return Remembered()
    found = {}
    for fault in StorageFault:
        if fault.value in faults:
            memory = _from_members(faults[fault.value], recovers)
            if document.get("audience") != audience:
                memory = FaultMemory(None, memory.standing, memory.occurred_wall_ms)
            found[fault] = memory
    return Remembered(found, usable_ids(_integer(number) for number in chips))


def joined(
    client: StorageClient,
    remembered: Mapping[StorageFault, FaultMemory],
    told: Mapping[StorageFault, Told],
    now_ms: int,
) -> dict[StorageFault, FaultMemory]:
    """What is known of a client's faults. told: what our last object names, which is what ClusterD read last.

    now_ms: Unix milliseconds. A fault that neither of the two names is missing: nothing is known of it.
    """
    found = {fault: remembered[fault] for fault in client.faults if fault in remembered}
    for fault in client.faults:
        if fault in told:
            found[fault] = _corrected(found.get(fault), told[fault], now_ms)
    return found


def _corrected(memory: FaultMemory | None, told: Told, now_ms: int) -> FaultMemory:
    """What the object says of belief outranks the file: a message that the file knows as under way was not written."""
    if memory is not None and memory.believed is told.present:
        return memory
    memory = memory or FaultMemory(standing=told.present)
    recent = not told.present and 0 <= now_ms - told.told_wall_ms < _RECENT_MS
    return replace(
        memory,
        believed=told.present,
        occurred_wall_ms=memory.occurred_wall_ms or told.fault_wall_ms,
        recover_wall_ms=memory.recover_wall_ms if told.present else max(memory.recover_wall_ms, told.told_wall_ms),
        recovers_left=1 if recent else 0,
        told_ids=told.device_ids,
        # Chip 0 alone is what is told when the chips are not known.
        provisional=told.device_ids == (0,) or (memory.provisional and memory.told_ids == told.device_ids),
    )


def _to_members(memory: FaultMemory) -> dict[str, object]:
    return {
        "believed": memory.believed,
        "standing": memory.standing,
        "occurred_ms": memory.occurred_wall_ms,
        "recover_ms": memory.recover_wall_ms,
        "recovers_left": memory.recovers_left,
        "told_ids": list(memory.told_ids),
        "provisional": memory.provisional,
    }


def _from_members(members: Any, recovers: int) -> FaultMemory:
    if not isinstance(members, dict) or not isinstance(members.get("told_ids"), list):
        raise ValueError("a fault has another form")
    believed = members.get("believed")
    if believed is not None and not isinstance(believed, bool):
        raise ValueError(f"{believed!r} is no belief")
    return FaultMemory(
        believed,
        members.get("standing") is True,
        max(0, _integer(members.get("occurred_ms"))),
        max(0, _integer(members.get("recover_ms"))),
        min(max(0, _integer(members.get("recovers_left"))), recovers),
        usable_ids(_integer(number) for number in members["told_ids"]),
        members.get("provisional") is True,
    )


def _integer(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{value!r} is no whole number")
    return value
