"""What the state files of storage clients say (node-faults 11.1, 12). Pure: bytes in, instances out, or an error.

The text is taken whole or not at all: a part of it must not look like a shorter list, which would be a recovery.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType

from nodeagent.core.errors import StorageStateError
from nodeagent.core.storage import StorageClient, StorageFault, StorageInstance

MAX_INSTANCES = 21
"""Instances that are looked at (11.1): nothing that comes after them is read, whatever it is."""
MAX_DIGITS = 18
"""Digits that a number may have, so that it fits 64 bits; no sheet says a limit."""

_INSTANCE = re.compile(r"\[instidx=([0-9]+)\]")
_VALUE = re.compile(r"([0-9A-Za-z_]+):[\t\f\r ]*(-?[0-9]+)")
_ROWS: Mapping[StorageClient, tuple[tuple[str, int, StorageFault], ...]] = MappingProxyType(
    {
        StorageClient.DPC: (
            ("DPC_INTERNAL_ERROR", -12, StorageFault.DPC_MEMORY),  # -12 is ENOMEM
            ("DPC_PROCESS_ERROR", -1, StorageFault.DPC_PROCESS),
        ),
        StorageClient.DTFS: (
            ("DTFS_PROCESS_ERROR", -1, StorageFault.DTFS_PROCESS),
            ("DTFS_LINK_ERROR", -1, StorageFault.DTFS_LINK),
        ),
    }
)
"""The lines of a group behind its first, in their order: key, the one value beside 0, and the fault that it means."""
_SHOWN = 60


def parse_state(client: StorageClient, content: bytes) -> tuple[StorageInstance, ...]:
    """The instances of a state file, sorted by number, each once.

    content: the whole file; a CR before LF is tolerated, and the last line needs no end. Empty: no instances for DPC,
    an error for DTFS (12). An instance that is listed twice has the faults of both: no sheet forbids it, and a fault
    of one of its groups must not be hidden by the other. Raises StorageStateError, which names the line.
    """
    if not content and client is StorageClient.DTFS:
        raise StorageStateError("it is empty, which for DTFS is no state")
    # Latin-1 never fails, and no letter beyond ASCII fits a pattern.
    lines = content.decode("latin-1").split("\n")
    if not lines[-1]:
        lines.pop()
    rows = _ROWS[client]
    length = 1 + len(rows)
    found: dict[int, frozenset[StorageFault]] = {}
    for start in range(0, min(len(lines), MAX_INSTANCES * length), length):
        group = lines[start : start + length]
        number = _instance(group[0], start + 1)
        if len(group) < length:
            raise StorageStateError(f"line {len(lines)}: it ends inside of instance {number}")
        faults = {
            fault
            for offset, (key, bad, fault) in enumerate(rows, 1)
            if _value(group[offset], start + 1 + offset, key, bad)
        }
        found[number] = found.get(number, frozenset()) | faults
    return tuple(StorageInstance(number, found[number]) for number in sorted(found))


def _instance(line: str, at: int) -> int:
    match = _INSTANCE.fullmatch(_without_cr(line))
    if match is None or len(match[1]) > MAX_DIGITS:
        raise StorageStateError(f"line {at}: {_shown(line)} where `[instidx=NUMBER]` belongs")
    return int(match[1])


def _value(line: str, at: int, key: str, bad: int) -> bool:
    """The flag is set; 0 and `bad` are all the values there are."""
    match = _VALUE.fullmatch(_without_cr(line))
    value = None if match is None or match[1] != key or len(match[2]) > MAX_DIGITS else int(match[2])
    if value not in (0, bad):
        raise StorageStateError(f"line {at}: {_shown(line)} where `{key}: 0` or `{key}: {bad}` belongs")
    return value == bad


def _without_cr(line: str) -> str:
    return line.removesuffix("\r")


def _shown(line: str) -> str:
    """For people: printable ASCII, and not too much of it."""
    text = ascii(_without_cr(line))
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
