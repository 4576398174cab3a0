"""The kinds of configuration that a source can follow: of chips, and of node faults.

Both come from the same kinds of places; what differs is which documents are read, what is made of them, and how it is
called.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from nodeagent.policy.configuration import DOCUMENT_KEYS, ClusterDocuments, build_configuration
from nodeagent.policy.node_configuration import NODE_DOCUMENT_KEYS, build_node_configuration
from nodeagent.policy.node_table import NodeConfiguration
from nodeagent.policy.rules import Configuration
from nodeagent.policy.table import Document
from nodeagent.policy.table_records import Finding


class Versioned(Protocol):
    """What every configuration tells of itself."""

    @property
    def version(self) -> str:
        """Changes exactly when the content does."""

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the documents it was made of, lowest first."""


Content = TypeVar("Content", bound=Versioned)
Build = Callable[[Content, Sequence[Document], Sequence[ClusterDocuments]], tuple[Content, tuple[Finding, ...]]]
"""Shipped layer, the site's documents, folder and ConfigMap -> what they make, and findings that do not refuse it.

Raises BadConfigurationError when a layer must be refused.
"""


@dataclass(frozen=True, slots=True)
class ConfigKind(Generic[Content]):
    """One kind.

    name: in the log, as `subject` of Events, as `what` and `source` of metrics. keys: documents of a folder and of a
    ConfigMap. refused, dropped: how a sentence begins about a bad version, and about one that lacks something. stale,
    version_info: names of its metrics. alone: nobody else reads its ConfigMap.
    """

    name: str
    keys: tuple[str, ...]
    build: Build[Content]
    refused: str
    dropped: str
    dropped_what: str
    stale: str
    version_info: str
    alone: bool = False


CHIPS: ConfigKind[Configuration] = ConfigKind(
    name="configuration",
    keys=DOCUMENT_KEYS,
    build=build_configuration,
    refused="tables and rules are refused, the last good ones stay",
    dropped="rules are in force without a group of them",
    dropped_what="group",
    stale="configuration_stale",
    version_info="configuration_version_info",
)
"""Tables and rules of chips and switches (docs/rules.md)."""
NODES: ConfigKind[NodeConfiguration] = ConfigKind(
    name="node configuration",
    keys=NODE_DOCUMENT_KEYS,
    build=build_node_configuration,
    refused="levels of node faults are refused, the last good ones stay",
    dropped="levels of node faults lack a document",
    dropped_what="node configuration",
    stale="node_configuration_stale",
    version_info="node_configuration_version_info",
    alone=True,
)
"""Levels of node faults (docs/fault-tables.md)."""
