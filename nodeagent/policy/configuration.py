"""One complete configuration from layers of documents: shipped < site file < folder < ConfigMap (chip-faults 6).

Pure: texts in, `Configuration` out. Every layer is complete or refused as a whole, so what is in force never is a
mixture of an old and a new version of it (chip-faults 12.4, R17, R18).
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from nodeagent.policy.rules import Configuration, RuleSet
from nodeagent.policy.rules_load import RulesRead, overlaid_rules, read_rules
from nodeagent.policy.switch_document import overlaid_switches, read_switch_section
from nodeagent.policy.table import Document, FaultTable, load_table
from nodeagent.policy.table_records import BadTableError, Finding, Place
from nodeagent.policy.upstream import (
    FAULT_CODES_KEY,
    POLL_INTERVAL_KEY,
    POLL_INTERVAL_S,
    read_levels,
    read_poll_interval,
)
from nodeagent.policy.upstream_rules import CUSTOMIZATION_KEY, read_customization
from nodeagent.policy.upstream_switch import SWITCH_CODES_KEY, read_switch_levels

OUR_KEY = "nodeagent.yaml"
"""Key of the ConfigMap, and name of the file, with our own format: tables and rules, on top of upstream's documents."""
DOCUMENT_KEYS = (FAULT_CODES_KEY, CUSTOMIZATION_KEY, SWITCH_CODES_KEY, POLL_INTERVAL_KEY, OUR_KEY)
"""All keys that are read, in the order in which they go on top of each other."""


class BadConfigurationError(BadTableError):
    """A layer is refused. findings: every problem, warnings included; what was in force before stays in force."""


@dataclass(frozen=True, slots=True)
class ClusterDocuments:
    """What a ConfigMap or a folder holds for us.

    where: its name, for places. texts: the text of each document that is present, by its key; an absent key leaves what
    lies below in force, a present one with an empty text is bad content. problems: what is wrong with the container
    itself; a serious one refuses the layer. alone: nobody else reads the documents, so that what is of no use to us is
    of no use at all.
    """

    where: str
    texts: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[Finding, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    alone: bool = False

    def label(self, key: str) -> str:
        """The name of one document in places: that of `labels`, else `where/key`."""
        return self.labels.get(key) or f"{self.where}/{key}"

    @property
    def poll_interval_s(self) -> int:
        """Seconds between two reads, 30..3600; 300 where the key is absent or says nothing usable."""
        text = self.texts.get(POLL_INTERVAL_KEY)
        return POLL_INTERVAL_S if text is None else read_poll_interval("", text)[0]

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits that change with any document, `PollInterval` included, and with any problem."""
        parts = [part for key in sorted(self.texts) for part in (key, self.texts[key])]
        return fingerprint([*parts, *(str(problem) for problem in self.problems)])


def shipped_configuration(
    tables: Sequence[Document], rules: Sequence[Document], texts: bool = False, switches: Sequence[Document] = ()
) -> Configuration:
    """The lowest layer. tables, rules, switches: label and text of the shipped files. texts: as in `load_table`.

    Raises BadConfigurationError for any mistake in them: then the installation is damaged.
    """
    table, findings = load_table([*tables, *rules, *switches], texts)
    assembly = _Assembly(Configuration(table, RuleSet(), ""), texts)
    assembly.findings += findings
    for label, text in rules:
        read = read_rules(label, text)
        assembly.rules_on_top(read)
        assembly.bad = assembly.bad or any(finding.serious for finding in read.findings)
    for label, text in switches:
        assembly.switches_on_top(label, text)
    documents = [*tables, *rules, *switches]
    return assembly.finish([part for each in documents for part in each], [label for label, _ in documents])[0]


def build_configuration(
    shipped: Configuration,
    site: Sequence[Document] = (),
    clusters: Sequence[ClusterDocuments] = (),
    texts: bool = False,
) -> tuple[Configuration, tuple[Finding, ...]]:
    """The shipped configuration with a site's files and the cluster's documents on top, and what was found.

    shipped: from `shipped_configuration`. site: label and text of each file. clusters: folder and ConfigMap, lower
    one first. texts: keep texts that only `explain` shows.

    Among the documents of one cluster layer upstream's come first: faultCode.json replaces all levels below it (texts
    stay), faultCustomization.json all frequency and duration rules, SwitchFaultCode.json all levels of switch faults,
    and nodeagent.yaml merges on top of all.

    A serious finding beside a result tells of a group of rules that was dropped. The version changes exactly when
    the content does: not with names of files, not with PollInterval.

    Raises BadConfigurationError when any layer must be refused; its findings hold every problem.
    """
    assembly = _Assembly(shipped, texts)
    parts: list[str] = [shipped.version]
    for label, text in site:
        assembly.ours(label, text)
        parts += ["site", text]
    for documents in clusters:
        assembly.cluster(documents)
        if contents := [part for key in _keys(documents) for part in (key, documents.texts[key])]:
            parts += ["cluster", *contents]
    return assembly.finish(
        parts, [label for label, _ in site] + [label for each in clusters for label in _labels(each)]
    )


def fingerprint(parts: Iterable[str]) -> str:
    """Sixteen hex digits that change with any part or its bounds.

    Two checksums of different kinds instead of a cryptographic hash, which would load OpenSSL: 3.7 MiB resident.
    Nobody gains from a collision here.
    """
    crc, adler = 0, 1
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        for piece in (f"{len(data)}:".encode(), data):
            crc, adler = zlib.crc32(piece, crc), zlib.adler32(piece, adler)
    return f"{crc:08x}{adler:08x}"


class _Assembly:
    """Puts documents on top of each other and collects findings. bad: something must be refused."""

    def __init__(self, base: Configuration, texts: bool) -> None:
        self.findings: list[Finding] = []
        self.bad = False
        self._base = base
        self._table = base.table
        self._rules = base.rules
        self._switches = base.switches
        self._texts = texts

    def ours(self, label: str, text: str) -> None:
        """A document of our format: fault table, rules and switch faults in one."""
        read = read_rules(label, text)
        if "levels" in read.replaced:
            self._table, _ = self._table.with_levels(())
        if "switch_levels" in read.replaced:
            self._switches = self._switches.with_levels(())
        try:
            self._table, findings = self._table.overlaid([(label, text)], self._texts)
            self.findings += findings
        except BadTableError as error:
            self.findings += error.findings
            self.bad = True
        self.rules_on_top(read)
        self.switches_on_top(label, text)

    def cluster(self, documents: ClusterDocuments) -> None:
        """The documents of a ConfigMap or a folder."""
        self.findings += documents.problems
        self.bad = self.bad or any(problem.serious for problem in documents.problems)
        for key in _keys(documents):
            label, text = documents.label(key), documents.texts[key]
            if key == FAULT_CODES_KEY:
                levels = read_levels(label, text)
                self.findings += levels.findings
                self.bad = self.bad or not levels.usable
                self._table, findings = self._table.with_levels(levels.entries)
                self.findings += findings
            elif key == CUSTOMIZATION_KEY:
                self.rules_on_top(read_customization(label, text))
            elif key == SWITCH_CODES_KEY:
                switches = read_switch_levels(label, text)
                self.findings += switches.findings
                self.bad = self.bad or not switches.usable
                self._switches = self._switches.with_levels(switches.entries)
            else:
                self.ours(label, text)
        if POLL_INTERVAL_KEY in documents.texts:
            label, text = documents.label(POLL_INTERVAL_KEY), documents.texts[POLL_INTERVAL_KEY]
            self.findings += read_poll_interval(label, text)[1]

    def rules_on_top(self, read: RulesRead) -> None:
        """Rules that were read from one document."""
        self.findings += read.findings
        self.bad = self.bad or not read.usable
        self._rules, findings = overlaid_rules(self._rules, read)
        self.findings += findings

    def switches_on_top(self, label: str, text: str) -> None:
        """The section of switch faults of one document."""
        read = read_switch_section(label, text)
        self._switches, findings = overlaid_switches(self._switches, read)
        self.findings += [*read.findings, *findings]
        self.bad = self.bad or any(finding.serious for finding in [*read.findings, *findings])

    def finish(self, parts: Sequence[str], labels: Sequence[str] = ()) -> tuple[Configuration, tuple[Finding, ...]]:
        """The configuration and all findings, each once: a broken text is found by both readers."""
        findings = tuple(dict.fromkeys([*self.findings, *unknown_codes(self._table, self._rules)]))
        if self.bad:
            raise BadConfigurationError(findings)
        layers = (*self._base.layers, *labels)
        return Configuration(self._table, self._rules, fingerprint(parts), layers, self._switches), findings


def unknown_codes(table: FaultTable, rules: RuleSet) -> Iterator[Finding]:
    """A warning for each rule on a code that no table describes: most likely the code is misspelled."""
    places: dict[tuple[int, Place], str] = {}
    for section in (rules.frequency, rules.duration, rules.ports):
        for code, rule in section.items():
            places[code, rule.place] = "has a rule"
    for association in rules.association:
        for code in (association.trigger, *sorted(association.held)):
            places[code, association.place] = "has an association rule"
    for port in rules.ports.values():
        for code in (*port.by_down.values(), port.always, port.when_all):
            if code:
                places[code, port.place] = "is added by a port rule"
    for (code, place), what in places.items():
        if table.lookup(code) is None:
            yield Finding(place, f"{code:X}", f"{what}, but no table knows this code", serious=False)


def _keys(documents: ClusterDocuments) -> list[str]:
    """Keys with content that makes up a configuration, in the order of their layers."""
    return [key for key in DOCUMENT_KEYS if key in documents.texts and key != POLL_INTERVAL_KEY]


def _labels(documents: ClusterDocuments) -> list[str]:
    return [documents.label(key) for key in _keys(documents)]
