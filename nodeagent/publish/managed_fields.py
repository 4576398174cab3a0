"""Who wrote what of an object, by its `managedFields`. Pure.

The API server keeps for each manager the fields that it set last. A manager of ours is called by our user agent.
"""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Manager:
    """One manager of a field. at_ms: its last write of anything, Unix milliseconds. Empty or 0 = not told."""

    name: str
    at_ms: int = 0


def is_recorded(metadata: Mapping[str, Any]) -> bool:
    """The server keeps a record of who wrote what of this object."""
    entries = metadata.get("managedFields")
    return isinstance(entries, list) and bool(entries)


def owners(metadata: Mapping[str, Any], *path: str) -> tuple[Manager, ...]:
    """Who owns a field, latest writer first; empty when nobody does or the server keeps no record.

    path: as `managedFields` spells it, e.g. `f:data`, `f:DeviceInfoCfg`.
    """
    found = [
        Manager(_name(entry.get("manager")), _ms(entry.get("time")))
        for entry in _entries(metadata)
        if _has(entry.get("fieldsV1"), path)
    ]
    return tuple(sorted(found, key=lambda manager: -manager.at_ms))


def names_below(metadata: Mapping[str, Any], manager: str, *path: str) -> set[str]:
    """Names of the members of a map, or keys of a list, that a manager owns, as `managedFields` spells them."""
    names: set[str] = set()
    for entry in _entries(metadata):
        fields: Any = entry.get("fieldsV1")
        for part in path:
            fields = fields.get(part) if isinstance(fields, dict) else None
        if entry.get("manager") == manager and isinstance(fields, dict):
            names |= {str(name) for name in fields if name != "."}
    return names


def _entries(metadata: Mapping[str, Any]) -> list[dict[str, Any]]:
    entries = metadata.get("managedFields")
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def _name(manager: object) -> str:
    return manager if isinstance(manager, str) else ""


def _has(fields: Any, path: tuple[str, ...]) -> bool:
    for part in path:
        if not isinstance(fields, dict) or part not in fields:
            return False
        fields = fields[part]
    return True


def _ms(text: object) -> int:
    if isinstance(text, str):
        with contextlib.suppress(ValueError, OverflowError):
            return int(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000)
    return 0
