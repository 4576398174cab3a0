"""The vocabulary file as lists of words in English and Chinese; what they mean is `nodeagent.policy.vocabulary`."""

from dataclasses import dataclass, field
from typing import TypeVar

from nodeagent.core.levels import Severity
from nodeagent.policy.table_draft import SEVERITIES, read_choice, read_word
from nodeagent.policy.table_records import BadTableError, Finding, Place
from nodeagent.policy.table_yaml import BrokenText, Items, Node, Pairs, repeated_keys, shown, walk

NUMBERED_SECTIONS = (
    "classes",
    "blocks",
    "threshold_states",
    "sensors",
    "black_box_modules",
    "exception_types",
)
"""Sections whose ids are numbers of bit fields."""
WORDED_SECTIONS = ("kinds", "severities", "planes", "levels", "categories", "name_bases")
"""Sections whose ids are words of the fault tables."""
_ENTRY_KEYS = ("id", "en", "zh", "ras_en", "ras_zh", "threshold", "states", "severity")
_Key = TypeVar("_Key", int, str)


@dataclass(frozen=True, slots=True)
class Words:
    """One thing in both languages.

    severity: of a sensor state, the driver's default. ras: the name under the RAS sensor where it differs.
    """

    en: str
    zh: str
    severity: Severity | None = None
    ras: "Words | None" = None


@dataclass(frozen=True, slots=True)
class Sensor:
    """A sensor with the meanings of its states; threshold: a state only makes sense behind the sensor's name."""

    words: Words
    threshold: bool
    states: dict[int, Words]


@dataclass(slots=True)
class WordLists:
    """All sections of a vocabulary file by section name and id."""

    numbered: dict[str, dict[int, Words]] = field(default_factory=dict)
    worded: dict[str, dict[str, Words]] = field(default_factory=dict)
    sensors: dict[int, Sensor] = field(default_factory=dict)


@dataclass(slots=True)
class _Entry:
    id: str
    line: int
    words: Words
    threshold: bool
    states: Node | None


def read_words(label: str, text: str) -> WordLists:
    """The lists of one vocabulary file. label: file name for messages.

    Raises BadTableError with every problem found: wrong form, unknown or missing keys, ids that stand twice.
    """
    reader = _Reader(label)
    reader.read(text)
    if reader.findings:
        raise BadTableError(reader.findings)
    return reader.lists


class _Reader:
    def __init__(self, label: str) -> None:
        self.findings: list[Finding] = []
        self.lists = WordLists(
            {section: {} for section in NUMBERED_SECTIONS}, {section: {} for section in WORDED_SECTIONS}
        )
        self._label = label

    def read(self, text: str) -> None:
        try:
            for piece in walk(text, self._complain):
                key, node = piece.key, piece.node
                for repeated in repeated_keys(node):
                    self._complain(repeated.line, f"key {shown(repeated.text)} stands twice")
                if key.text == "vocabulary":
                    read_choice(node, key.text, ["1"], self._complain)
                elif key.text in WORDED_SECTIONS:
                    if (entry := self._entry(node)) is not None:
                        self._put(self.lists.worded[key.text], entry.id, entry)
                elif key.text in NUMBERED_SECTIONS:
                    entry, number = self._numbered(node, self.lists.numbered[key.text])
                    if key.text == "sensors" and entry is not None and number is not None:
                        self.lists.sensors[number] = self._sensor(entry)
                else:
                    self._complain(key.line, f"unknown key {shown(key.text)}")
        except BrokenText as broken:
            self._complain(broken.line, broken.sentence)

    def _complain(self, line: int, sentence: str) -> None:
        self.findings.append(Finding(Place(self._label, line), "", sentence))

    def _sensor(self, entry: _Entry) -> Sensor:
        if entry.threshold:
            return Sensor(entry.words, True, self.lists.numbered["threshold_states"])
        states: dict[int, Words] = {}
        for node in entry.states.nodes if isinstance(entry.states, Items) else ():
            self._numbered(node, states)
        return Sensor(entry.words, False, states)

    def _numbered(self, node: Node, words: dict[int, Words]) -> tuple[_Entry | None, int | None]:
        entry = self._entry(node)
        if entry is None:
            return None, None
        try:
            number = int(entry.id, 0)
        except ValueError:
            self._complain(entry.line, f"id {shown(entry.id)} is not a number")
            return entry, None
        self._put(words, number, entry)
        return entry, number

    def _put(self, words: dict[_Key, Words], key: _Key, entry: _Entry) -> None:
        if key in words:
            self._complain(entry.line, f"id {shown(entry.id)} stands twice in this list")
        words[key] = entry.words

    def _entry(self, node: Node) -> _Entry | None:
        if not isinstance(node, Pairs):
            self._complain(node.line, "an entry must be a mapping with id, en and zh")
            return None
        nodes = {key.text: value for key, value in node.pairs}
        for key in nodes:
            if key not in _ENTRY_KEYS:
                self._complain(node.line, f"unknown key {shown(key)}")
        texts = {
            key: read_word(nodes[key], key, self._complain)
            for key in ("id", "en", "zh", "ras_en", "ras_zh")
            if key in nodes
        }
        name, english, chinese = texts.get("id"), texts.get("en"), texts.get("zh")
        if name is None or english is None or chinese is None:
            self._complain(node.line, "an entry needs id, en and zh")
            return None
        ras_en, ras_zh = texts.get("ras_en"), texts.get("ras_zh")
        ras = Words(ras_en, ras_zh) if ras_en is not None and ras_zh is not None else None
        severity = None
        if "severity" in nodes:
            word = read_choice(nodes["severity"], "severity", SEVERITIES, self._complain)
            severity = None if word is None else SEVERITIES[word]
        return _Entry(
            name, node.line, Words(english, chinese, severity, ras), "threshold" in nodes, nodes.get("states")
        )
