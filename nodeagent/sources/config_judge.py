"""What becomes of a new content of the layers: it is put in force, or refused and told once.

Bad content leaves the last good configuration in force (R17, R18). At the start there is none: then the layers that are
good count (node-faults 19, T9).
"""

import logging
from collections.abc import Callable, Sequence
from typing import Generic

from nodeagent.core.telemetry import Event, EventReason, EventSink, Metrics
from nodeagent.policy.configuration import BadConfigurationError, ClusterDocuments
from nodeagent.policy.table import Document
from nodeagent.policy.table_records import Finding
from nodeagent.sources.config_kinds import ConfigKind, Content

log = logging.getLogger("nodeagent.configuration")

_SHOWN_FINDINGS = 5


class Judge(Generic[Content]):
    """Keeps what is in force. Parameters as in `LayeredSource`; for one thread."""

    def __init__(
        self,
        kind: ConfigKind[Content],
        shipped: Content,
        in_force: Content,
        site: Sequence[Document],
        on_configuration: Callable[[Content], None],
        events: EventSink,
        metrics: Metrics,
    ) -> None:
        self.good_map: ClusterDocuments | None = None
        """The ConfigMap as it was when it was good; None when it was not there then, or never good."""
        self._kind = kind
        self._shipped = shipped
        self._in_force = in_force
        self._on_configuration = on_configuration
        self._events = events
        self._metrics = metrics
        self._good_site = tuple(site)
        self._good_folder: ClusterDocuments | None = None
        self._was_good = False
        metrics.set(kind.version_info, 1, version=in_force.version)

    def judge(
        self, site: tuple[Document, ...], folder: ClusterDocuments | None, config_map: ClusterDocuments | None
    ) -> None:
        """One new content of all layers; None = the layer is not there."""
        kind = self._kind
        layers = [each for each in (folder, config_map) if each is not None]
        try:
            configuration, findings = kind.build(self._shipped, site, layers)
        except BadConfigurationError as error:
            self._metrics.set(kind.stale, 1)
            self._tell(kind.name, f"{kind.refused}: {error.sentence}")
            if not self._was_good:
                self._fall_back(site, folder, config_map)
            return
        self._metrics.set(kind.stale, 0)
        self._was_good = True
        self._good_site, self._good_folder, self.good_map = site, folder, config_map
        dropped = [finding for finding in findings if finding.serious]
        if dropped:
            others = f" (and {len(dropped) - 1} more)" if len(dropped) > 1 else ""
            self._tell(kind.dropped_what, f"{kind.dropped}: {dropped[0]}{others}")
        self._log_warnings([finding for finding in findings if not finding.serious])
        self._take(configuration)

    def _fall_back(
        self, site: tuple[Document, ...], folder: ClusterDocuments | None, config_map: ClusterDocuments | None
    ) -> None:
        """As long as all layers together were never good, each counts as it was when it was, and not before."""
        if self._builds(site, []):
            self._good_site = site
        self._good_folder = self._better([], folder, self._good_folder)
        lower = [self._good_folder] if self._good_folder else []
        self.good_map = self._better(lower, config_map, self.good_map)
        layers = [*lower, *([self.good_map] if self.good_map else [])]
        self._take(self._kind.build(self._shipped, self._good_site, layers)[0])

    def _better(
        self, lower: Sequence[ClusterDocuments], now: ClusterDocuments | None, before: ClusterDocuments | None
    ) -> ClusterDocuments | None:
        """A layer as it is now if it is good on top of the lower ones, else as it was; None when it is not there."""
        tried = () if now is None else (now, before)
        good = (each for each in tried if each is not None and self._builds(self._good_site, [*lower, each]))
        return next(good, None)

    def _builds(self, site: Sequence[Document], layers: Sequence[ClusterDocuments]) -> bool:
        try:
            self._kind.build(self._shipped, site, layers)
        except BadConfigurationError:
            return False
        return True

    def _take(self, configuration: Content) -> None:
        """Put a configuration in force, and hand it over when it is another one."""
        before, self._in_force = self._in_force, configuration
        if configuration.version == before.version:
            return
        self._metrics.set(self._kind.version_info, 0, version=before.version)
        self._metrics.set(self._kind.version_info, 1, version=configuration.version)
        layers = ", ".join(configuration.layers)
        log.info("%s in force version=%s layers=%r", self._kind.name, configuration.version, layers)
        self._on_configuration(configuration)

    def _tell(self, what: str, message: str) -> None:
        """One Event, one count and one line about one bad version."""
        hint = "`nodeagent table lint FILE` lists every problem"
        log.error("bad %s problem=%r hint=%r", self._kind.name, message, hint)
        self._metrics.count("configuration_rejected_total", what=what)
        self._events.emit(Event(EventReason.BAD_CONFIGURATION, message, warning=True, subject=self._kind.name))

    def _log_warnings(self, warnings: Sequence[Finding]) -> None:
        if warnings:
            others = f" (and {len(warnings) - _SHOWN_FINDINGS} more)" if len(warnings) > _SHOWN_FINDINGS else ""
            shown = "; ".join(map(str, warnings[:_SHOWN_FINDINGS]))
            log.warning("%s has warnings: %s%s", self._kind.name, shown, others)
