"""Everything that is wrong or useless in a set of documents of all kinds (`nodeagent table lint`)."""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum

from nodeagent.policy.configuration import unknown_codes
from nodeagent.policy.node_document import overlaid_nodes, read_node_section
from nodeagent.policy.node_table import NodeConfiguration, NodeTable
from nodeagent.policy.rules import Configuration, RuleSet
from nodeagent.policy.rules_load import NODE_LEVELS, RulesRead, overlaid_rules, read_rules
from nodeagent.policy.switch_document import overlaid_switches, read_switch_section
from nodeagent.policy.switch_table import SwitchTable
from nodeagent.policy.table import Document, FaultTable, lint_all, load_table
from nodeagent.policy.table_document import RULE_SECTIONS
from nodeagent.policy.table_document import Document as TableReader
from nodeagent.policy.table_draft import Draft
from nodeagent.policy.table_records import BadTableError, Finding, Place
from nodeagent.policy.upstream import (
    CHIP_LISTS,
    FAULT_CODES_KEY,
    NETWORK_LISTS,
    POLL_INTERVAL_KEY,
    read_levels,
    read_poll_interval,
)
from nodeagent.policy.upstream_node import NODE_CODES_KEY, NODE_TOP, read_node_levels
from nodeagent.policy.upstream_rules import CUSTOMIZATION_KEY, DURATION, FREQUENCY, GRACE, read_customization
from nodeagent.policy.upstream_switch import SWITCH_CODES_KEY, SWITCH_LISTS, read_switch_levels


class DocumentKind(Enum):
    """What a document is."""

    OURS = "our YAML: fault table and rules"
    VOCABULARY = "vocabulary"
    LEVELS = FAULT_CODES_KEY
    CUSTOMIZATION = CUSTOMIZATION_KEY
    SWITCH_LEVELS = SWITCH_CODES_KEY
    NODE_LEVELS = NODE_CODES_KEY
    POLL_INTERVAL = POLL_INTERVAL_KEY
    UNCLEAR = "neither faultCode.json nor faultCustomization.json nor SwitchFaultCode.json nor NodeDConfiguration.json"


_VOCABULARY_MARK = re.compile(r"^vocabulary:", re.MULTILINE)
_CUSTOMIZATION_MARK = re.compile(rf'"(?:{GRACE}|{FREQUENCY}|{DURATION})"\s*:', re.IGNORECASE)
_LEVELS_MARK = re.compile(rf'"(?:{"|".join((*CHIP_LISTS, *NETWORK_LISTS))})"\s*:', re.IGNORECASE)
_SWITCH_MARK = re.compile(rf'"(?:{"|".join(SWITCH_LISTS.keys() - CHIP_LISTS.keys())})"\s*:|"\[0x', re.IGNORECASE)
_NODE_MARK = re.compile(rf'"{NODE_TOP}"\s*:', re.IGNORECASE)
_Key = tuple[str, int | str]


def kind_of(label: str, text: str) -> DocumentKind:
    """The kind of a document by its name, and where that says nothing by its content."""
    name = label.rpartition("/")[2]
    if name == POLL_INTERVAL_KEY:
        return DocumentKind.POLL_INTERVAL
    if not name.endswith((".yaml", ".yml")) and (name.endswith(".json") or text.lstrip()[:1] in ("{", "[")):
        if name == CUSTOMIZATION_KEY or _CUSTOMIZATION_MARK.search(text):
            return DocumentKind.CUSTOMIZATION
        if name == FAULT_CODES_KEY:
            return DocumentKind.LEVELS
        # Its lists have names that lists of switches have too.
        if name == NODE_CODES_KEY or (name != SWITCH_CODES_KEY and _NODE_MARK.search(text)):
            return DocumentKind.NODE_LEVELS
        # Both have lists of the same names, so the ones that only switches have must be looked for first.
        if name == SWITCH_CODES_KEY or _SWITCH_MARK.search(text):
            return DocumentKind.SWITCH_LEVELS
        if _LEVELS_MARK.search(text):
            return DocumentKind.LEVELS
        return DocumentKind.UNCLEAR
    return DocumentKind.VOCABULARY if _VOCABULARY_MARK.search(text) else DocumentKind.OURS


def lint_documents(
    documents: Sequence[Document], shipped: Configuration | None, nodes: NodeConfiguration | None = None
) -> list[Finding]:
    """Every problem of documents that go on top of each other in the given order, warnings included.

    documents: label and text; vocabularies are not among them. shipped, nodes: what lies below; None = nothing does.
    The findings are in order of documents and lines. Serious ones: the document would be refused, or a group of its
    rules would be dropped.
    """
    linter = _Linter(shipped, nodes)
    for label, text in documents:
        linter.add(label, text)
    return linter.finish([label for label, _ in documents])


@dataclass(slots=True)
class _Stated:
    """What one document says. levels and rules: where; replaces: members of REPLACEABLE."""

    label: str
    places: dict[_Key, Place] = field(default_factory=dict)
    replaces: frozenset[str] = frozenset()


class _Linter:
    def __init__(self, shipped: Configuration | None, nodes: NodeConfiguration | None) -> None:
        self._table: FaultTable = shipped.table if shipped else load_table([])[0]
        self._rules: RuleSet = shipped.rules if shipped else RuleSet()
        self._switches: SwitchTable = shipped.switches if shipped else SwitchTable()
        self._nodes: NodeTable = nodes.table if nodes else NodeTable()
        self._waiting: list[Document] = []
        self._findings: list[Finding] = []
        self._stated: list[_Stated] = []

    def add(self, label: str, text: str) -> None:
        kind = kind_of(label, text)
        stated = _Stated(label)
        if kind is DocumentKind.OURS:
            self._waiting.append((label, text))
            self._add_rules(read_rules(label, text), stated)
            for piece in TableReader(label, text, lambda _finding: None).pieces():
                if isinstance(piece, Draft) and piece.level_given:
                    stated.places["levels", piece.code] = piece.place
            self._add_switches(label, text, stated)
            self._add_nodes(label, text, stated)
        elif kind is DocumentKind.LEVELS:
            self._flush()
            levels = read_levels(label, text)
            self._findings += levels.findings
            if levels.usable:
                self._table, _ = self._table.with_levels(levels.entries)
                stated.places = {("levels", entry.code): entry.place for entry in levels.entries}
                stated.replaces = frozenset({"levels"})
        elif kind is DocumentKind.CUSTOMIZATION:
            self._add_rules(read_customization(label, text), stated)
        elif kind is DocumentKind.SWITCH_LEVELS:
            switches = read_switch_levels(label, text)
            self._findings += switches.findings
            if switches.usable:
                self._switches = self._switches.with_levels(switches.entries)
                stated.places = {("switch_levels", entry.text): entry.place for entry in switches.entries}
                stated.replaces = frozenset({"switch_levels"})
        elif kind is DocumentKind.NODE_LEVELS:
            nodes = read_node_levels(label, text)
            self._findings += nodes.findings
            if nodes.usable:
                self._nodes = self._nodes.with_levels(nodes.entries)
                stated.places = {(NODE_LEVELS, entry.text): entry.place for entry in nodes.entries}
                stated.replaces = frozenset({NODE_LEVELS})
        elif kind is DocumentKind.POLL_INTERVAL:
            self._findings += read_poll_interval(label, text)[1]
        else:
            self._findings.append(Finding(Place(label, 1), "", f"this document is {kind.value}"))
        self._stated.append(stated)

    def finish(self, labels: Sequence[str]) -> list[Finding]:
        self._flush()
        known = set(labels)
        self._findings += [each for each in unknown_codes(self._table, self._rules) if each.place.label in known]
        self._findings += _shadowed(self._stated)
        order = {label: number for number, label in enumerate(labels)}
        return sorted(
            dict.fromkeys(self._findings), key=lambda each: (order.get(each.place.label, -1), each.place.line)
        )

    def _flush(self) -> None:
        """Check the tables that wait: together, since a code may stand in one shipped table only."""
        self._findings += lint_all(self._waiting, self._table)
        # A refused table is in the findings already; later documents are checked without it.
        with suppress(BadTableError):
            self._table, _ = self._table.overlaid(self._waiting, texts=False)
        self._waiting = []

    def _add_switches(self, label: str, text: str, stated: _Stated) -> None:
        """The section of switch faults; one of a shipped table replaces the installed one instead of going on top."""
        read = read_switch_section(label, text)
        if read.builtin or "switch_levels" in stated.replaces:
            self._switches = self._switches.with_levels(())
        self._switches, findings = overlaid_switches(self._switches, read)
        self._findings += [*read.findings, *findings]
        for draft in read.drafts.values():
            if draft.level is not None:
                stated.places["switch_levels", draft.text] = draft.place

    def _add_nodes(self, label: str, text: str, stated: _Stated) -> None:
        """The section of node faults; one of the shipped table replaces the installed one instead of going on top."""
        read = read_node_section(label, text)
        if read.builtin and read.present:
            self._nodes = self._nodes.with_levels(())
        self._nodes, findings = overlaid_nodes(self._nodes, read)
        self._findings += [*read.findings, *findings]
        for draft in read.drafts.values():
            if draft.level is not None:
                stated.places[NODE_LEVELS, draft.text] = draft.place

    def _add_rules(self, read: RulesRead, stated: _Stated) -> None:
        self._findings += read.findings
        self._rules, findings = overlaid_rules(self._rules, read)
        self._findings += findings
        stated.replaces |= read.replaced
        for section in RULE_SECTIONS:
            for code, rule in read.section(section).items():
                stated.places[section, code] = rule.place


_REPLACED = (
    ("levels", ("levels",)),
    ("rules", ("frequency", "duration")),
    ("switch_levels", ("switch_levels",)),
    (NODE_LEVELS, (NODE_LEVELS,)),
)
"""What a document may replace, and the sections that it then empties."""


def _shadowed(documents: Sequence[_Stated]) -> list[Finding]:
    """Warnings about what a later document of the set makes useless."""
    findings: list[Finding] = []
    for number, lower in enumerate(documents):
        left = dict(lower.places)
        for upper in documents[number + 1 :]:
            for what, sections in _REPLACED:
                gone = [key for key in left if key[0] in sections and what in upper.replaces]
                if gone:
                    words = what.replace("_", " ")
                    sentence = f"all its {words} ({len(gone)}) are shadowed by {upper.label}, which replaces {words}"
                    findings.append(Finding(Place(lower.label, 0), "", sentence, serious=False))
                for key in gone:
                    del left[key]
            for key in [key for key in left if key in upper.places]:
                what = "level" if key[0] in ("levels", "switch_levels", NODE_LEVELS) else f"{key[0]} rule"
                sentence = f"its {what} is shadowed by {upper.places[key]}"
                code = key[1] if isinstance(key[1], str) else f"{key[1]:X}"
                findings.append(Finding(left.pop(key), code, sentence, serious=False))
    return findings
