"""The section `switch` of one YAML document: levels and texts of LingQu switch faults (docs/switches.md).

It may stand beside a fault table and rules. A site's entry changes single fields of a shipped one; a mistake anywhere
refuses the whole document, as in a fault table.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from nodeagent.core.switch_codes import SwitchLevel, parse_switch_code
from nodeagent.policy.switch_table import SwitchFaultRecord, SwitchTable
from nodeagent.policy.table_document import SWITCH_SECTION
from nodeagent.policy.table_draft import NAME_BASES, nearest, read_choice, read_word, two_languages
from nodeagent.policy.table_records import Finding, Place
from nodeagent.policy.table_yaml import BrokenText, Items, Node, Pairs, Scalar, shown, walk

_SECTION_KEYS = ("alias_old_ids", "faults")
_RECORD_KEYS = ("code", "level", "name", "advice", "notes", "name_basis")
_TRUTHS = {"true": True, "false": False}


@dataclass(slots=True)
class SwitchDraft:
    """What one entry says; None = nothing. text: exact code."""

    text: str
    place: Place
    level: SwitchLevel | None = None
    fields: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class SwitchRead:
    """What one document says of switches. findings: a serious one refuses the document."""

    drafts: dict[str, SwitchDraft] = field(default_factory=dict)
    alias_old_ids: bool | None = None
    builtin: bool = False
    findings: list[Finding] = field(default_factory=list)

    @property
    def usable(self) -> bool:
        """False: the document must be refused."""
        return not any(finding.serious for finding in self.findings)


def read_switch_section(label: str, text: str) -> SwitchRead:
    """The section of one YAML document; nothing where there is none. Never raises: every problem is a finding.

    label: file name or object key, for places. What is wrong with the document as a whole is found by the reader of
    fault tables.
    """
    reader = _Reader(label)
    reader.read(text)
    return reader.found


def overlaid_switches(below: SwitchTable, read: SwitchRead) -> tuple[SwitchTable, list[Finding]]:
    """The table with one document on top, and what only shows beside the layers below: incomplete new entries."""
    findings: list[Finding] = []
    merged: list[SwitchFaultRecord] = []
    for draft in read.drafts.values():
        old = below.records.get(draft.text)
        if draft.level is None and (old is None or old.level is None):
            findings.append(Finding(draft.place, draft.text, "the entry has no level"))
        if read.builtin and (
            missing := [key for key in ("name_en", "name_zh", "name_basis") if key not in draft.fields]
        ):
            findings.append(Finding(draft.place, draft.text, f"the entry lacks {', '.join(missing)}"))
        record = old or SwitchFaultRecord(draft.text, draft.place, draft.place)
        if draft.level is not None:
            record = replace(record, level=draft.level, level_place=draft.place)
        merged.append(_with_texts(record, draft.fields))
    return below.overlaid(merged, read.alias_old_ids), findings


def _with_texts(record: SwitchFaultRecord, said: Mapping[str, str]) -> SwitchFaultRecord:
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

    def __init__(self, label: str) -> None:
        self.found = SwitchRead()
        self._label = label
        self._code = ""

    def read(self, text: str) -> None:
        try:
            # Other keys, and keys that stand twice, are the business of the reader of fault tables.
            for piece in walk(text, lambda _line, _sentence: None):
                if piece.key.text == "layer" and isinstance(piece.node, Scalar):
                    self.found.builtin = piece.node.text == "builtin"
                elif piece.key.text == SWITCH_SECTION and not piece.empty:
                    self._section(piece.node, piece.in_list)
        except BrokenText as broken:
            self._complain(broken.line, broken.sentence)

    def _section(self, node: Node, in_list: bool) -> None:
        if in_list or not isinstance(node, Pairs):
            self._complain(node.line, f"{SWITCH_SECTION} must be a mapping")
            return
        for key, value in node.pairs:
            if key.text == "alias_old_ids":
                word = read_choice(value, key.text, _TRUTHS, self._complain)
                self.found.alias_old_ids = None if word is None else _TRUTHS[word]
            elif key.text != "faults":
                self._complain(key.line, f"unknown key {shown(key.text)} in switch{nearest(key.text, _SECTION_KEYS)}")
            elif not isinstance(value, Items):
                self._complain(value.line, "switch.faults must be a list of mappings")
            else:
                for each in value.nodes:
                    self._fault(each)
                    self._code = ""

    def _fault(self, node: Node) -> None:
        if not isinstance(node, Pairs):
            self._complain(node.line, "an entry of switch.faults must be a mapping")
            return
        nodes = {key.text: (key, value) for key, value in node.pairs}
        if "code" not in nodes:
            self._complain(node.line, "the entry has no code")
            return
        text = self._text_of(nodes["code"][1])
        draft = SwitchDraft(text or "", Place(self._label, node.line))
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
            self._complain(node.line, 'the code must be one quoted text: write "[0x08520003,na,npu,na]" in quotes')
            return None
        self._code = shown(node.text)[1:-1]
        if not node.quoted:
            self._complain(node.line, f'the code must be quoted: write "{self._code}"')
            return None
        try:
            self._code = parse_switch_code(node.text).text
        except ValueError:
            self._complain(node.line, f"{shown(node.text)} has not the shape of a switch code, [0x08520003,na,npu,na]")
            return None
        return self._code

    def _field(self, draft: SwitchDraft, key: Scalar, node: Node) -> None:
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

    def _level(self, node: Node) -> SwitchLevel | None:
        word = read_word(node, "level", self._complain)
        if word is None:
            return None
        try:
            return SwitchLevel.parse(word)
        except ValueError:
            hint = nearest(word, [each.text for each in SwitchLevel])
            self._complain(node.line, f"level {shown(word)} is no level of switch faults{hint}")
            return None

    def _complain(self, line: int, sentence: str) -> None:
        self.found.findings.append(Finding(Place(self._label, line), self._code, sentence))
