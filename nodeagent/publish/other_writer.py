"""Who else writes our object. Pure (decision 22).

Upstream's device plugin writes the device-info object, its NodeD the node-info object, and the last writer wins. So
before our first write we look who wrote the object lately; an operator who edits a field with kubectl is no such
writer.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from nodeagent.core.instant import Instant
from nodeagent.publish.managed_fields import is_recorded, owners
from nodeagent.render.device_info import DESCRIPTION, DESCRIPTION_KEY, DEVICE_KEY, KEYS, LABELS, SHADOW_LABELS
from nodeagent.render.node_info import INFO_KEY
from nodeagent.render.reading import published_update_time

OURS = "nodeagent"
RECENT_MS = 15 * 60 * 1000
"""A writer whose last write is older than this has gone (decision 22); upstream writes every five minutes."""
NODE_INFO_RECENT_MS = 35 * 60 * 1000
"""The same for the node-info object, which upstream writes again after 30 minutes (node-faults 4)."""
_PEOPLE = "kubectl"


@dataclass(frozen=True, slots=True)
class OtherWriter:
    """A program that wrote the main key of our object. at_ms: its last write, Unix milliseconds."""

    name: str
    at_ms: int


def other_writer(obj: Mapping[str, object], now_ms: int) -> OtherWriter | None:
    """The latest other program that wrote the object within RECENT_MS before now_ms; None when there is none.

    By `managedFields`; where the server does not keep them, by a text that is not ours with a recent `UpdateTime`.
    """
    metadata = obj.get("metadata")
    recorded = isinstance(metadata, dict) and is_recorded(metadata)
    found = _by_record(metadata, DEVICE_KEY) if isinstance(metadata, dict) and recorded else _by_content(obj)
    return _latest(found, now_ms, RECENT_MS)


def node_info_writer(obj: Mapping[str, object], now_ms: int) -> OtherWriter | None:
    """The same for a node-info object, by `managedFields` alone: its content is the same whoever writes it."""
    metadata = obj.get("metadata")
    found = _by_record(metadata, INFO_KEY) if isinstance(metadata, dict) else []
    return _latest(found, now_ms, NODE_INFO_RECENT_MS)


def _latest(found: list[OtherWriter], now_ms: int, recent_ms: int) -> OtherWriter | None:
    recent = [writer for writer in found if abs(now_ms - writer.at_ms) <= recent_ms]
    return max(recent, key=lambda writer: writer.at_ms, default=None)


def _by_record(metadata: Mapping[str, Any], key: str) -> list[OtherWriter]:
    """Writers of a data key that have a name and a time and are neither we nor people."""
    return [
        OtherWriter(manager.name, manager.at_ms)
        for manager in owners(metadata, "f:data", f"f:{key}")
        if manager.name and manager.at_ms and manager.name != OURS and not manager.name.startswith(_PEOPLE)
    ]


def _by_content(obj: Mapping[str, object]) -> list[OtherWriter]:
    data = obj.get("data")
    if not isinstance(data, dict) or DEVICE_KEY not in data:
        return []
    description = data.get(DESCRIPTION_KEY)
    if isinstance(description, str) and description.startswith(DESCRIPTION):
        return []
    return [OtherWriter("another program", published_update_time(data) * 1000)]


Search = Callable[[Mapping[str, object], int], OtherWriter | None]
"""From an object and Unix milliseconds to its other writer."""


class WriterGuard:
    """Whether we may begin to write. overwrite: the site said in words that the other one does not matter.

    recent_ms: how long a writer must have been quiet to have gone. search: finds it, if it was not quiet so long.
    """

    def __init__(self, overwrite: bool, recent_ms: int = RECENT_MS, search: Search = other_writer) -> None:
        self._overwrite = overwrite
        self._search = search
        self.recent_ms = recent_ms
        self._until_ms = 0
        self._began = False
        self.writer: OtherWriter | None = None

    def look(self, obj: Mapping[str, object], now: Instant) -> bool:
        """Take in an object as the server has it. True when it shows another writer that was not known before."""
        before = self.writer
        self.writer = self._search(obj, now.wall_ms)
        if self.writer is None:
            self._until_ms = 0
            return False
        if not self._began and not self._overwrite:
            self._until_ms = now.mono_ms + self.recent_ms - (now.wall_ms - self.writer.at_ms)
        return before is None or before.name != self.writer.name

    def current(self, now: Instant) -> OtherWriter | None:
        """The other writer, as long as its last write is recent."""
        if self.writer is not None and now.wall_ms - self.writer.at_ms > self.recent_ms:
            self.writer = None
        return self.writer

    def wait_ms(self, now: Instant) -> int:
        """Milliseconds until we may write, 0 = now."""
        wait_ms = max(0, self._until_ms - now.mono_ms)
        if wait_ms == 0 and self._until_ms:
            self._until_ms, self.writer = 0, None
        return wait_ms

    def begin(self) -> None:
        """We write: from now on another writer is told, and does not stop us."""
        self._began = True


def node_info_guard(overwrite: bool) -> WriterGuard:
    """The guard of the node-info object."""
    return WriterGuard(overwrite, NODE_INFO_RECENT_MS, node_info_writer)


def foreign_parts(
    obj: Mapping[str, object],
    shadow: bool = False,
    known_keys: Collection[str] = KEYS,
    known_owners: Collection[str] = (),
) -> list[str]:
    """What somebody put on our object that our next write removes: labels, annotations, owners, data keys.

    known_keys: data keys of ours. known_owners: UIDs of owners of ours. One phrase each, sorted, names only.
    """
    metadata = obj.get("metadata")
    parts: list[str] = []
    if isinstance(metadata, dict):
        ours = SHADOW_LABELS if shadow else LABELS
        parts += [f"label {name}" for name in _names(metadata.get("labels")) if name not in ours]
        parts += [f"annotation {name}" for name in _names(metadata.get("annotations"))]
        owners = metadata.get("ownerReferences")
        if isinstance(owners, list):
            theirs = [o for o in owners if isinstance(o, dict) and o.get("uid") not in known_owners]
            parts += [f"owner {o.get('kind')}/{o.get('name')}" for o in theirs]
    parts += [f"key {name}" for name in _names(obj.get("data")) if name not in known_keys]
    parts += [f"binary key {name}" for name in _names(obj.get("binaryData"))]
    return sorted(parts)


def _names(mapping: object) -> list[str]:
    return [str(name) for name in mapping] if isinstance(mapping, dict) else []
