"""The levels of node faults from layers of documents: shipped < site file < folder < ConfigMap (node-faults 7).

Pure, and apart from the configuration of chips: what is wrong with one refuses nothing of the other, even where both
have a section in the same file.
"""

from collections.abc import Sequence

from nodeagent.policy.configuration import OUR_KEY, BadConfigurationError, ClusterDocuments, fingerprint
from nodeagent.policy.node_document import NodeRead, overlaid_nodes, read_node_section
from nodeagent.policy.node_table import NodeConfiguration, NodeTable
from nodeagent.policy.table import Document
from nodeagent.policy.table_records import Finding, Place
from nodeagent.policy.upstream_node import NODE_CODES_KEY, read_node_levels

NODE_DOCUMENT_KEYS = (NODE_CODES_KEY, OUR_KEY)
"""All keys that are read, in the order in which they go on top of each other."""


def shipped_node_configuration(documents: Sequence[Document]) -> NodeConfiguration:
    """The lowest layer. documents: label and text of the shipped files.

    Raises BadConfigurationError for any mistake in them: then the installation is damaged.
    """
    return _assembled(NodeConfiguration(NodeTable(), ""), documents, ())[0]


def build_node_configuration(
    shipped: NodeConfiguration,
    site: Sequence[Document] = (),
    clusters: Sequence[ClusterDocuments] = (),
) -> tuple[NodeConfiguration, tuple[Finding, ...]]:
    """The shipped levels with a site's files and the cluster's documents on top, and what was found.

    shipped: from `shipped_node_configuration`. site: label and text of each file. clusters: folder and ConfigMap, lower
    one first. NodeDConfiguration.json replaces all levels below it (texts stay), nodeagent.yaml merges on top
    (decision 12); an object with neither leaves what lies below in force.

    A serious finding beside a result tells of an object that has neither though it is for nothing else. The version
    changes exactly when a document that says something of node faults does; others are not among the layers.

    Raises BadConfigurationError when any layer must be refused; its findings hold every problem.
    """
    return _assembled(shipped, site, clusters)


def first_node_configuration(
    shipped: NodeConfiguration, site: Sequence[Document]
) -> tuple[NodeConfiguration, tuple[Document, ...]]:
    """What a daemon begins with, and the site's documents in it.

    A bad section is left out here, so that it keeps nothing else from starting; who follows the file tells of it.
    """
    try:
        return build_node_configuration(shipped, site)[0], tuple(site)
    except BadConfigurationError:
        return build_node_configuration(shipped)[0], ()


def _assembled(
    base: NodeConfiguration, site: Sequence[Document], clusters: Sequence[ClusterDocuments]
) -> tuple[NodeConfiguration, tuple[Finding, ...]]:
    assembly = _Assembly(base)
    for label, text in site:
        assembly.ours(label, text, read_node_section(label, text))
    for documents in clusters:
        assembly.cluster(documents)
    return assembly.finish()


class _Assembly:
    """Puts documents on top of each other and collects findings. bad: something must be refused."""

    def __init__(self, base: NodeConfiguration) -> None:
        self._table = base.table
        self._parts = [base.version]
        self._labels = list(base.layers)
        self._findings: list[Finding] = []
        self._bad = False

    def ours(self, label: str, text: str, read: NodeRead) -> None:
        """A document of our format."""
        self._found(read.findings)
        if read.present:
            self._table, findings = overlaid_nodes(self._table, read)
            self._found(findings)
            self._part(label, text)

    def cluster(self, documents: ClusterDocuments) -> None:
        """The documents of a ConfigMap or a folder."""
        self._found(documents.problems)
        if documents.alone and not documents.texts and not any(each.serious for each in documents.problems):
            keys = " nor ".join(NODE_DOCUMENT_KEYS)
            sentence = f"has neither {keys}; the layers below it are in force"
            self._findings.append(Finding(Place(documents.where, 0), "", sentence))
        if NODE_CODES_KEY in documents.texts:
            label, text = documents.label(NODE_CODES_KEY), documents.texts[NODE_CODES_KEY]
            levels = read_node_levels(label, text)
            self._found(levels.findings)
            self._table = self._table.with_levels(levels.entries)
            self._part(label, text)
        if OUR_KEY in documents.texts:
            label, text = documents.label(OUR_KEY), documents.texts[OUR_KEY]
            self.ours(label, text, read_node_section(label, text, documents.alone))

    def finish(self) -> tuple[NodeConfiguration, tuple[Finding, ...]]:
        """The configuration and all findings. Raises BadConfigurationError."""
        findings = tuple(dict.fromkeys(self._findings))
        if self._bad:
            raise BadConfigurationError(findings)
        return NodeConfiguration(self._table, fingerprint(self._parts), tuple(self._labels)), findings

    def _found(self, findings: Sequence[Finding]) -> None:
        self._findings += findings
        self._bad = self._bad or any(finding.serious for finding in findings)

    def _part(self, label: str, text: str) -> None:
        """One more document counts. Which kind it is shows in its text, so that names need not be part of it."""
        self._parts.append(text)
        self._labels.append(label)
