"""Documents of tables and rules from the command line: files, folders, saved ConfigMaps, or what is shipped."""

import re
from collections.abc import Iterable
from pathlib import Path

from nodeagent.core.errors import TableError
from nodeagent.core.files import read_text
from nodeagent.policy.configuration import (
    OUR_KEY,
    ClusterDocuments,
    build_configuration,
)
from nodeagent.policy.configuration_lint import DocumentKind, kind_of
from nodeagent.policy.node_configuration import build_node_configuration
from nodeagent.policy.node_table import NodeConfiguration
from nodeagent.policy.rules import Configuration
from nodeagent.policy.table import Document
from nodeagent.policy.table_records import Finding
from nodeagent.publish.manifest import from_yaml
from nodeagent.sources.config_documents import ALL_KEYS, documents_of_object, read_folder, shipped, shipped_nodes

SHIPPED = "shipped"
"""The word for "nothing on top of the shipped documents"."""
_OBJECT_MARK = re.compile(r"^kind:\s*[\"']?ConfigMap\b", re.MULTILINE)
_KEYS = {
    DocumentKind.LEVELS: DocumentKind.LEVELS.value,
    DocumentKind.CUSTOMIZATION: DocumentKind.CUSTOMIZATION.value,
    DocumentKind.SWITCH_LEVELS: DocumentKind.SWITCH_LEVELS.value,
    DocumentKind.NODE_LEVELS: DocumentKind.NODE_LEVELS.value,
    DocumentKind.POLL_INTERVAL: DocumentKind.POLL_INTERVAL.value,
    DocumentKind.OURS: OUR_KEY,
}


def documents_at(name: str) -> ClusterDocuments | Document:
    """What lies at a path: a folder or a saved ConfigMap (their documents by key), or one file (its text).

    Raises TableError, one sentence, when it cannot be read.
    """
    path = Path(name)
    if path.is_dir():
        found = read_folder(path, ALL_KEYS)
        if found is None or not (found.texts or found.problems):
            raise TableError(f"{name} holds none of the documents", "see docs/rules.md for their names")
        return found
    text = read_text(path, error=TableError)
    if _OBJECT_MARK.search(text):
        return documents_of_object(from_yaml(text), name, ALL_KEYS)
    return name, text


def configuration_of(names: Iterable[str], texts: bool = False) -> tuple[Configuration, tuple[Finding, ...]]:
    """The shipped configuration with the documents of these paths on top, in the order given, and the warnings.

    Our own files go below, as site files do; folders, ConfigMaps and upstream's JSON above them. Raises TableError.
    """
    return build_configuration(shipped(texts), *_layers_of(names), texts)


def node_configuration_of(names: Iterable[str]) -> tuple[NodeConfiguration, tuple[Finding, ...]]:
    """As `configuration_of`, of what the same documents say of node faults. Raises TableError."""
    return build_node_configuration(shipped_nodes(), *_layers_of(names))


def _layers_of(names: Iterable[str]) -> tuple[list[Document], list[ClusterDocuments]]:
    """The documents of these paths: site files, and what goes on top of them."""
    site: list[Document] = []
    clusters: list[ClusterDocuments] = []
    for name in names:
        if name == SHIPPED:
            continue
        found = documents_at(name)
        if isinstance(found, ClusterDocuments):
            clusters.append(found)
        elif (kind := kind_of(*found)) is DocumentKind.OURS:
            site.append(found)
        elif (key := _KEYS.get(kind)) is not None:
            clusters.append(ClusterDocuments(name, {key: found[1]}, labels={key: name}))
        else:
            raise TableError(f"{name} is no table and no rules: it is {kind.value}")
    return site, clusters
