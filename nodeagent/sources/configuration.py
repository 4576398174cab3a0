"""The configuration source: watches the site file, a folder and a ConfigMap of the cluster, and hands over complete
configurations (chip-faults 6.2, R17, R18; node-faults 7.3).

Contents are compared, not times; what becomes of a new content is decided in `config_judge`. A layer that cannot be
read just now keeps what it said last; only a sure "is not there" takes a layer away.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol

from nodeagent.core.clock import SystemClock, monotonic_s
from nodeagent.core.errors import ForbiddenError, NotAskedError, ReadBackError
from nodeagent.core.pauses import backoff_s
from nodeagent.core.telemetry import EventSink, Metrics
from nodeagent.policy.configuration import ClusterDocuments, fingerprint
from nodeagent.policy.node_table import NodeConfiguration
from nodeagent.policy.rules import Configuration
from nodeagent.policy.table import Document
from nodeagent.policy.upstream import POLL_INTERVAL_KEY, POLL_INTERVAL_S
from nodeagent.sources.config_documents import documents_of_object, read_folder, read_site
from nodeagent.sources.config_judge import Judge
from nodeagent.sources.config_kinds import CHIPS, NODES, ConfigKind, Content
from nodeagent.sources.config_watch import FolderWatch

log = logging.getLogger("nodeagent.configuration")

FIRST_PAUSES_S = (5.0, 15.0, 30.0, 60.0, 120.0, 300.0)
"""Pauses between tries to read the ConfigMap while it was never read; afterwards 300 s as upstream."""
SETTLE_S = 0.2
"""A changed file counts when it is the same after this time: an editor may be half way through it."""
_SETTLE_ROUNDS = 25


class ObjectReader(Protocol):
    """What the source needs of a publishing target (nodeagent.publish.targets.Target)."""

    def read(self, namespace: str, name: str) -> dict[str, object] | None:
        """The object; None only when it surely is not there. Raises ReadBackError for everything else."""


@dataclass(frozen=True, slots=True)
class ConfigPlaces:
    """Where the layers lie; None = there is no such layer. config_map: namespace and name."""

    site_file: Path | None = None
    folder: Path | None = None
    config_map: tuple[str, str] | None = None


class LayeredSource(Generic[Content]):
    """Follows all layers of one kind of configuration, for ever.

    shipped: the lowest layer. in_force: what is in force now. site: the site's documents that `in_force` was made of.
    reader: reads the ConfigMap; used by the source's thread alone. on_configuration: takes each new complete
    configuration, from the source's thread; never blocks long. look_period_s: seconds between two looks at files.
    keep_deleted: what the ConfigMap said stays in force when it is deleted, until the daemon ends (decision 12).
    """

    _kind: ConfigKind[Content]

    def __init__(
        self,
        shipped: Content,
        in_force: Content,
        site: Sequence[Document],
        places: ConfigPlaces,
        reader: ObjectReader | None,
        on_configuration: Callable[[Content], None],
        events: EventSink,
        metrics: Metrics,
        look_period_s: float = 5.0,
        keep_deleted: bool = False,
    ) -> None:
        self._judge = Judge(self._kind, shipped, in_force, site, on_configuration, events, metrics)
        self._places = places
        self._reader = reader if places.config_map is not None else None
        self._metrics = metrics
        self._look_period_s = look_period_s
        self._keep_deleted = keep_deleted
        self._site = tuple(site)
        self._folder: ClusterDocuments | None = None
        self._map: ClusterDocuments | None = None
        self._map_kept = False
        self._judged = ""
        self._map_due_s = 0.0
        self._map_failures = 0
        self._map_known = False
        self._troubles: dict[str, str] = {}
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._looked = threading.Event()
        self._known = threading.Event()

    def run(self) -> None:
        """Work until `stop`; the supervisor calls this again should it ever raise."""
        watch = FolderWatch(self._wake.set)
        if folders := self._folders():
            watch.start(folders)
        try:
            while not self._stopping.is_set():
                self.look()
                self._wake.wait(self._pause_s())
                # A folder in which something changes all the time is looked at five times a second, no more.
                self._stopping.wait(SETTLE_S if self._wake.is_set() else 0)
                self._wake.clear()
        finally:
            watch.stop()

    def stop(self) -> None:
        """Make `run` return; a read of the ConfigMap that hangs ends with its own time-out."""
        self._stopping.set()
        self._wake.set()

    def hasten(self) -> None:
        """Read everything soon, the ConfigMap included."""
        self._map_due_s = 0.0
        self._wake.set()

    def wait_first(self, timeout_s: float) -> bool:
        """Wait until every layer was looked at once; false when that took longer than `timeout_s` seconds."""
        return self._looked.wait(timeout_s)

    def wait_known(self, timeout_s: float) -> bool:
        """Wait until the ConfigMap was read, or surely is not there, and what it says is in force."""
        if not self._known.is_set():
            self.hasten()
        return self._known.wait(timeout_s)

    def look(self) -> None:
        """One pass: read what is due, and put a new configuration in force when the content changed and is good."""
        self._look_at_files()
        if self._reader is not None and monotonic_s() >= self._map_due_s:
            self._look_at_map(self._reader)
        content = self._content()
        if content != self._judged:
            self._judged = content
            self._judge.judge(self._site, *self._layers())
        known = self._reader is None or self._map_known
        if known and (self._folders() or self._reader is not None) and not any(self._troubles.values()):
            now_s = SystemClock().now().wall_ms / 1000
            self._metrics.set("source_last_success_timestamp_seconds", now_s, source=self._kind.name)
        self._looked.set()
        if known:
            self._known.set()

    # -- reading ------------------------------------------------------------------

    def _look_at_files(self) -> None:
        """Read site file and folder; a change counts when it has settled."""
        before = self._content()
        self._read_files()
        if not self._looked.is_set():
            return
        for _ in range(_SETTLE_ROUNDS):
            changed = self._content()
            if changed == before or self._stopping.wait(SETTLE_S):
                return
            before = changed
            self._read_files()

    def _read_files(self) -> None:
        if (site_file := self._places.site_file) is not None:
            try:
                self._site = (read_site(site_file),)
            except ReadBackError as error:
                self._trouble("site file", error.sentence)
            else:
                self._trouble("site file", "")
        if (folder := self._places.folder) is not None:
            try:
                self._folder = read_folder(folder, self._kind.keys)
            except ReadBackError as error:
                self._trouble("folder", error.sentence)
            else:
                self._trouble("folder", "")

    def _look_at_map(self, reader: ObjectReader) -> None:
        assert self._places.config_map is not None
        namespace, name = self._places.config_map
        where = f"{namespace}/{name}"
        try:
            found = reader.read(namespace, name)
        except ReadBackError as error:
            if not isinstance(error, NotAskedError):
                self._trouble("ConfigMap", error.sentence)
            if isinstance(error, ForbiddenError):
                self._known.set()  # nobody will tell us soon: the start does not wait for it
            self._map_failures += 1
            pause_s = float(POLL_INTERVAL_S) if self._map_known else backoff_s(FIRST_PAUSES_S, self._map_failures)
            self._map_due_s = monotonic_s() + pause_s
            return
        self._trouble("ConfigMap", "")
        if found is not None:
            self._map = documents_of_object(found, where, self._kind.keys, self._kind.alone)
            self._map_kept = False
        elif self._map is not None or not self._map_known:
            self._map_gone(where)
        self._map_known, self._map_failures = True, 0
        self._map_due_s = monotonic_s() + self._poll_interval_s()

    def _map_gone(self, where: str) -> None:
        """The ConfigMap surely is not there: the layers below it count, or what it said last when it was good."""
        self._map = self._judge.good_map if self._keep_deleted else None
        if self._map is None:
            log.info("there is no ConfigMap, the layers below it are in force name=%s", where)
        elif not self._map_kept:
            self._map_kept = True
            log.warning("the ConfigMap is deleted, what it said stays in force until the next start name=%s", where)

    def _poll_interval_s(self) -> float:
        """Of the highest layer that says one; for a deleted ConfigMap as upstream, 300 s."""
        layers = [each for each in (self._map, self._folder) if each is not None and POLL_INTERVAL_KEY in each.texts]
        return float(layers[0].poll_interval_s if layers else POLL_INTERVAL_S)

    def _trouble(self, layer: str, sentence: str) -> None:
        """Say once that a layer cannot be read, and once that it can be read again."""
        before = self._troubles.get(layer, "")
        self._troubles[layer] = sentence
        if sentence and sentence != before:
            log.warning(
                "%s cannot be read, the last one stays in force layer=%r problem=%r", self._kind.name, layer, sentence
            )
        elif before and not sentence:
            log.info("%s is read again layer=%r", self._kind.name, layer)

    def _layers(self) -> tuple[ClusterDocuments | None, ClusterDocuments | None]:
        return self._folder, self._map

    def _content(self) -> str:
        parts = [text for _, text in self._site]
        return fingerprint([*parts, *(each.fingerprint if each else "" for each in self._layers())])

    # -- waiting ------------------------------------------------------------------

    def _folders(self) -> list[Path]:
        site_file, folder = self._places.site_file, self._places.folder
        return [each for each in (site_file.parent if site_file else None, folder) if each is not None]

    def _pause_s(self) -> float | None:
        """Seconds until something is due; None when only `stop` and `hasten` can wake us."""
        files_s = self._look_period_s if self._folders() else None
        map_s = max(0.0, self._map_due_s - monotonic_s()) if self._reader is not None else None
        return min((each for each in (files_s, map_s) if each is not None), default=None)


class ConfigSource(LayeredSource[Configuration]):
    """Follows tables and rules of chips and switches (docs/rules.md)."""

    _kind = CHIPS


class NodeConfigSource(LayeredSource[NodeConfiguration]):
    """Follows the levels of node faults (docs/fault-tables.md)."""

    _kind = NODES
