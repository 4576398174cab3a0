"""One table file, read piece by piece: header, defaults, rule for unlisted codes, faults, suppressions.

Knows the form of a file (docs/fault-tables.md), not what other files say; that is `table_merge`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone

from nodeagent.core.levels import Level
from nodeagent.policy.table_draft import (
    DEFAULT_KEYS,
    NETWORK_LEVELS,
    RECORD_KEYS,
    SEVERITIES,
    Draft,
    nearest,
    read_choice,
    read_code,
    read_fields,
    read_level,
    read_word,
)
from nodeagent.policy.table_records import Finding, Place, Ruling, Suppression
from nodeagent.policy.table_yaml import BrokenText, Items, Node, Pairs, Scalar, repeated_keys, shown, walk
from nodeagent.policy.table_yaml import Piece as YamlPiece

_HEADER_KEYS = ("version", "layer", "defaults")
_BODY_KEYS = ("unknown", "faults", "suppress")
_SUPPRESS_KEYS = ("code", "chips", "reason", "until")
RULE_SECTIONS = ("frequency", "duration", "association", "ports")
"""Keys of rules, which may stand in the same file; nodeagent.policy.rules_load reads them."""
REMOVE_KEY, REPLACE_KEY, GRACE_KEY = "remove", "replace", "grace_tolerance"
"""Further keys that belong to the reader of rules."""
SWITCH_SECTION = "switch"
"""Key of the faults of LingQu switches; nodeagent.policy.switch_document reads it."""
NODE_SECTION = "node"
"""Key of node faults; nodeagent.policy.node_document reads it, and what is wrong in it concerns nothing else."""
_KEYS_OF_OTHERS = (*RULE_SECTIONS, REMOVE_KEY, REPLACE_KEY, GRACE_KEY, SWITCH_SECTION, NODE_SECTION)
TOP_KEYS = (*_HEADER_KEYS, *_BODY_KEYS, *_KEYS_OF_OTHERS)
"""All keys that may stand at the top of a document."""


@dataclass(slots=True)
class Header:
    """builtin: a shipped table, whose records are complete; otherwise the file goes on top of one."""

    builtin: bool
    defaults: Draft


@dataclass(slots=True)
class UnknownPart:
    """One stated ruling for unlisted codes. key: severity name, `severity_unknown` or `parameter_plane`."""

    key: str
    ruling: Ruling


Piece = Header | Draft | UnknownPart | Suppression


class Document:
    """Reads one file; every problem goes to `report`."""

    def __init__(self, label: str, text: str, report: Callable[[Finding], None]) -> None:
        """label: name of the file for places. text: its content. report: gets every finding in file order."""
        self._label = label
        self._text = text
        self._report = report
        self._code = ""

    def pieces(self) -> Iterator[Piece]:
        """The header first, then each entry as soon as it is read; nothing after the text breaks off."""
        header = Header(builtin=False, defaults=Draft(self._place(0)))
        started = False
        try:
            for piece in walk(self._text, self._complain):
                key = piece.key
                if key.text in _HEADER_KEYS:
                    if started:
                        self._complain(key.line, f"key {shown(key.text)} must stand before {_quoted(_BODY_KEYS)}")
                    self._header(header, piece)
                elif key.text in _BODY_KEYS:
                    if not started:
                        yield header
                        started = True
                    yield from self._body(header, piece)
                elif key.text not in _KEYS_OF_OTHERS:
                    hint = nearest(key.text, TOP_KEYS)
                    self._complain(key.line, f"unknown key {shown(key.text)}{hint}")
                for repeated in repeated_keys(piece.node) if key.text != NODE_SECTION else ():
                    self._complain(repeated.line, f"key {shown(repeated.text)} stands twice")
                self._code = ""
        except BrokenText as broken:
            self._code = ""
            self._complain(broken.line, broken.sentence)
        if not started:
            yield header

    def _place(self, line: int) -> Place:
        return Place(self._label, line)

    def _complain(self, line: int, sentence: str) -> None:
        self._report(Finding(self._place(line), self._code, sentence))

    def _header(self, header: Header, piece: YamlPiece) -> None:
        key, node = piece.key.text, piece.node
        if piece.in_list:
            self._complain(node.line, f"{key} cannot be a list")
        elif key == "version":
            read_choice(node, key, ["1"], self._complain)
        elif key == "layer":
            header.builtin = read_choice(node, key, ["builtin", "site"], self._complain) == "builtin"
        elif isinstance(node, Pairs):
            read_fields(header.defaults, node, DEFAULT_KEYS, self._complain)
        else:
            self._complain(node.line, "defaults must be a mapping")

    def _body(self, header: Header, piece: YamlPiece) -> Iterator[Piece]:
        key, node = piece.key.text, piece.node
        if piece.empty:
            return
        if not isinstance(node, Pairs) or piece.in_list is (key == "unknown"):
            wanted = "a mapping" if key == "unknown" else "a list of mappings"
            self._complain(node.line, f"{key} must be {wanted}")
        elif key == "unknown":
            yield from self._unknown(node)
        elif key == "faults":
            yield from self._fault(node)
        elif header.builtin:
            self._complain(node.line, "a built-in table cannot suppress a code; write it into the site file")
        else:
            yield from self._suppression(node)

    def _unknown(self, pairs: Pairs) -> Iterator[Piece]:
        for key, node in pairs.pairs:
            if key.text == "by_severity" and isinstance(node, Pairs):
                for name, level in node.pairs:
                    if name.text in SEVERITIES:
                        yield from self._unknown_part(name, read_level(level, name.text, self._complain))
                    else:
                        self._complain(
                            name.line, f"unknown severity {shown(name.text)}{nearest(name.text, SEVERITIES)}"
                        )
            elif key.text == "by_severity":
                self._complain(node.line, "by_severity must be a mapping of severities to levels")
            elif key.text == "severity_unknown":
                yield from self._unknown_part(key, read_level(node, key.text, self._complain))
            elif key.text == "parameter_plane":
                yield from self._unknown_part(key, read_level(node, key.text, self._complain, NETWORK_LEVELS))
            else:
                self._complain(key.line, f"unknown key {shown(key.text)} in unknown")

    def _unknown_part(self, key: Scalar, level: Level | None) -> Iterator[Piece]:
        if level is not None:
            yield UnknownPart(key.text, Ruling(level, self._place(key.line)))

    def _fault(self, pairs: Pairs) -> Iterator[Piece]:
        code = self._code_of(pairs)
        draft = Draft(self._place(pairs.line))
        read_fields(draft, pairs, RECORD_KEYS, self._complain)
        if code is not None:
            draft.code, draft.text = code
            yield draft

    def _code_of(self, pairs: Pairs) -> tuple[int, str] | None:
        """Read the code first, so that all findings of the entry name it."""
        for key, node in pairs.pairs:
            if key.text == "code":
                self._code = shown(node.text)[1:-1] if isinstance(node, Scalar) else ""
                return read_code(node, self._complain)
        self._complain(pairs.line, "the entry has no code")
        return None

    def _suppression(self, pairs: Pairs) -> Iterator[Piece]:
        code = self._code_of(pairs)
        values = {key.text: node for key, node in pairs.pairs}
        for key in values:
            if key not in _SUPPRESS_KEYS:
                self._complain(pairs.line, f"unknown key {shown(key)}{nearest(key, _SUPPRESS_KEYS)}")
        missing = [key for key in _SUPPRESS_KEYS[1:] if key not in values]
        if missing:
            self._complain(pairs.line, f"the suppression lacks {_quoted(missing)}")
            return
        chips = self._chips(values["chips"])
        reason = read_word(values["reason"], "reason", self._complain)
        end = self._until(values["until"])
        if code and chips is not None and reason and end:
            number, text = code
            chip_set = frozenset(chips) if chips else None
            yield Suppression(number, text, chip_set, reason, end[0], end[1], self._place(pairs.line))

    def _chips(self, node: Node) -> tuple[int, ...] | None:
        """Physical ids, empty for all chips, None after a complaint."""
        if isinstance(node, Scalar) and node.text == "all":
            return ()
        if isinstance(node, Items) and node.nodes:
            ids = [
                each.text
                for each in node.nodes
                if isinstance(each, Scalar) and each.text.isascii() and each.text.isdigit() and len(each.text) < 5
            ]
            if len(ids) == len(node.nodes):
                return tuple(int(each) for each in ids)
        self._complain(node.line, "chips must be `all` or a list of physical chip ids such as [0, 3]")
        return None

    def _until(self, node: Node) -> tuple[str, int] | None:
        """The date as written and the Unix milliseconds of the end of that day, UTC; None after a complaint."""
        word = read_word(node, "until", self._complain)
        if word is None:
            return None
        try:
            day = date.fromisoformat(word)
            end = datetime(day.year, day.month, day.day, tzinfo=timezone.utc) + timedelta(days=1)
        except (ValueError, OverflowError):
            self._complain(node.line, f"until must be a date such as 2027-03-31, not {shown(word)}")
            return None
        return word, int(end.timestamp()) * 1000


def _quoted(words: tuple[str, ...] | list[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)
