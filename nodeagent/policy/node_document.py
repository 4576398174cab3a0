"""The section `node` of one YAML document: levels and texts of node faults (docs/fault-tables.md).

It may stand beside a fault table and rules, which others read. A site's entry changes single fields of a shipped one; a
mistake anywhere in the section refuses what the document says of node faults, and nothing else.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from nodeagent.core.alarms import NodeLevel
from nodeagent.policy.node_table import NodeFaultRecord, NodeTable
from nodeagent.policy.rules_load import NODE_LEVELS
from nodeagent.policy.table_document import NODE_SECTION, REPLACE_KEY, TOP_KEYS
from nodeagent.policy.table_draft import NAME_BASES, nearest, read_choice, read_word, two_languages
from nodeagent.policy.table_records import Finding, Place
from nodeagent.policy.table_yaml import BrokenText, Items, Node, Pairs, Piece, Scalar, repeated_keys, shown, walk

_RECORD_KEYS = ("code", "level", "name", "advice", "notes", "name_basis")
_CODE = re.compile(r"[A-Z0-9]{8}")
_PREFIXED = re.compile(r"0X[A-Z0-9]{8}")
_HEX = re.compile(r"[0-9A-F]{8}")


@dataclass(slots=True)
class NodeDraft:
    """What one entry says; None = nothing. text: the code, eight upper-case letters and digits."""

    text: str
    place: Place
    level: NodeLevel | None = None
    fields: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class NodeRead:
    """What one document says of node faults. findings: a serious one refuses it.

    present: it has a section or replaces levels. builtin: a shipped table. replaces: no lower level counts.
    """

    drafts: dict[str, NodeDraft] = field(default_factory=dict)
    present: bool = False
    builtin: bool = False
    replaces: bool = False
    findings: list[Finding] = field(default_factory=list)

    @property
    def usable(self) -> bool:
        """False: the document must be refused."""
        return not any(finding.serious for finding in self.findings)


def read_node_section(label: str, text: str, alone: bool = False) -> NodeRead:
    """The section of one YAML document; nothing where there is none. Never raises: every problem is a finding.

    label: file name or object key, for places. alone: nobody else reads the document, so that what stands beside the
    section is looked at too; otherwise it is the business of the reader of fault tables.
    """
    reader = _Reader(label, alone)
    reader.read(text)
    return reader.found


def overlaid_nodes(below: NodeTable, read: NodeRead) -> tuple[NodeTable, list[Finding]]:
    """The table with one document on top, and what only shows beside the layers below: incomplete new entries."""
    findings: list[Finding] = []
    merged: list[NodeFaultRecord] = []
    if read.replaces:
        below = below.with_levels(())
    for draft in read.drafts.values():
        old = below.lookup(draft.text)
        if draft.level is None and (old is None or old.level is None):
            findings.append(Finding(draft.place, draft.text, "the entry has no level"))
        if read.builtin and (
            missing := [key for key in ("name_en", "name_zh", "name_basis") if key not in draft.fields]
        ):
            findings.append(Finding(draft.place, draft.text, f"the entry lacks {', '.join(missing)}"))
        record = old or NodeFaultRecord(draft.text, draft.place, draft.place)
        if draft.level is not None:
            record = replace(record, level=draft.level, level_place=draft.place)
        merged.append(_with_texts(record, draft.fields))
    return below.overlaid(merged), findings


def node_code_text(written: str) -> str | None:
    """A code as it is compared: eight upper-case letters and digits (node-faults 7.2). `0x` before them is dropped.

    None for any other text. Upstream takes letters beyond F too; no alarm has such a code (`can_be_reported`).
    """
    upper = written.strip().upper()
    if _PREFIXED.fullmatch(upper):
        upper = upper[2:]
    return upper if _CODE.fullmatch(upper) else None


def can_be_reported(text: str) -> bool:
    """Whether an alarm can have this code: four bytes, written as eight hex digits (node-faults 3.2)."""
    return _HEX.fullmatch(text) is not None


NEVER_MATCHES = "no alarm can have this code: alarm codes are hexadecimal"
"""Of a code that is accepted as upstream accepts it."""


def _with_texts(record: NodeFaultRecord, said: Mapping[str, str]) -> NodeFaultRecord:
    return replace(
        record,
        name_en=said.get("name_en", record.name_en),
        name_zh=said.get("name_zh", record.name_zh),
        advice_en=said.get("advice_en", record.advice_en),
        advice_zh=said.get("advice_zh", record.advice_zh),
        notes=said.get("notes", record.notes),
        name_basis=said.get("name_basis", record.name_basis),
    )


class _Reader:
    """One document, piece by piece."""

    def __init__(self, label: str, alone: bool) -> None:
        self.found = NodeRead()
        self._label = label
        self._alone = alone
        self._code = ""
        self._section_key: Scalar | None = None

    def read(self, text: str) -> None:
        beside = self._complain if self._alone else lambda _line, _sentence: None
        try:
            for piece in walk(text, beside):
                if piece.key.text == NODE_SECTION:
                    self._section(piece)
                elif piece.key.text == "layer" and isinstance(piece.node, Scalar):
                    self.found.builtin = piece.node.text == "builtin"
                elif piece.key.text == REPLACE_KEY:
                    self._replace(piece)
                elif self._alone:
                    self._beside(piece)
        except BrokenText as broken:
            self._complain(broken.line, broken.sentence)

    def _replace(self, piece: Piece) -> None:
        """Other words are read by the reader of rules; where nobody else reads there are none."""
        node = piece.node
        if isinstance(node, Scalar) and piece.in_list and node.text == NODE_LEVELS:
            self.found.replaces = self.found.present = True
        elif self._alone and not piece.empty:
            self._complain(node.line, f"{REPLACE_KEY} must be a list of the word {NODE_LEVELS} here")

    def _beside(self, piece: Piece) -> None:
        """What stands beside the section in a document of which nobody reads anything else."""
        key = piece.key
        if key.text == "version":
            read_choice(piece.node, key.text, ["1"], self._complain)
        elif key.text not in TOP_KEYS:
            self._complain(key.line, f"unknown key {shown(key.text)}{nearest(key.text, TOP_KEYS)}")
        elif key.text != "layer":
            sentence = f"{shown(key.text)} is not read here, only {shown(NODE_SECTION)} is"
            warning = Finding(self._place(key.line), "", sentence, serious=False)
            if warning not in self.found.findings:
                self.found.findings.append(warning)

    def _section(self, piece: Piece) -> None:
        node, key = piece.node, piece.key
        # Items of a list come with the very key that they belong to.
        if self._section_key is not None and self._section_key is not key:
            if not self._alone:  # else `walk` has told it
                self._complain(key.line, f"key {shown(key.text)} stands twice")
            return
        self._section_key = key
        self.found.present = True
        if piece.empty:
            return
        if piece.in_list or not isinstance(node, Pairs):
            self._complain(node.line, f"{NODE_SECTION} must be a mapping")
            return
        for repeated in repeated_keys(node):
            self._complain(repeated.line, f"key {shown(repeated.text)} stands twice")
        for name, value in node.pairs:
            if name.text != "faults":
                self._complain(name.line, f"unknown key {shown(name.text)} in node{nearest(name.text, ['faults'])}")
            elif not isinstance(value, Items):
                self._complain(value.line, "node.faults must be a list of mappings")
            else:
                for each in value.nodes:
                    self._fault(each)
                    self._code = ""

    def _fault(self, node: Node) -> None:
        if not isinstance(node, Pairs):
            self._complain(node.line, "an entry of node.faults must be a mapping")
            return
        nodes = {key.text: value for key, value in node.pairs}
        if "code" not in nodes:
            self._complain(node.line, "the entry has no code")
            return
        text = self._text_of(nodes["code"])
        draft = NodeDraft(text or "", self._place(node.line))
        for key, value in node.pairs:
            self._field(draft, key, value)
        if text is None:
            return
        if (first := self.found.drafts.get(text)) is not None:
            self._complain(node.line, f"listed twice (first at {first.place})")
            return
        self.found.drafts[text] = draft

    def _text_of(self, node: Node) -> str | None:
        if not isinstance(node, Scalar):
            self._complain(node.line, "the code must be one quoted text")
            return None
        self._code = shown(node.text)[1:-1]
        if not node.quoted:
            self._complain(node.line, f'the code must be quoted: write "{self._code}"')
            return None
        text = node_code_text(node.text)
        if text is None:
            self._complain(node.line, f"{shown(node.text)} has not the shape of an alarm code, eight hex digits")
            return None
        self._code = text
        if not can_be_reported(text):
            self.found.findings.append(Finding(self._place(node.line), text, NEVER_MATCHES, serious=False))
        return text

    def _field(self, draft: NodeDraft, key: Scalar, node: Node) -> None:
        said: Mapping[str, str | None] = {}
        if key.text == "level":
            draft.level = self._level(node)
        elif key.text in ("name", "advice"):
            english, chinese = two_languages(key, node, self._complain)
            said = {f"{key.text}_en": english, f"{key.text}_zh": chinese}
        elif key.text == "notes":
            said = {"notes": read_word(node, key.text, self._complain)}
        elif key.text == "name_basis":
            said = {"name_basis": read_choice(node, key.text, NAME_BASES, self._complain)}
        elif key.text != "code":
            self._complain(key.line, f"unknown key {shown(key.text)}{nearest(key.text, _RECORD_KEYS)}")
        draft.fields |= {name: text for name, text in said.items() if text is not None}

    def _level(self, node: Node) -> NodeLevel | None:
        word = read_word(node, "level", self._complain)
        if word is None:
            return None
        try:
            return NodeLevel.parse(word)
        except ValueError:
            hint = nearest(word, [each.text for each in NodeLevel])
            self._complain(node.line, f"level {shown(word)} is no level of node faults{hint}")
            return None

    def _place(self, line: int) -> Place:
        return Place(self._label, line)

    def _complain(self, line: int, sentence: str) -> None:
        self.found.findings.append(Finding(self._place(line), self._code, sentence))
