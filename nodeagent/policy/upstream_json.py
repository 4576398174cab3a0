"""JSON with the place of every value, read as upstream's decoder reads it (chip-faults 3.2).

The standard parser forgets where a value stood, accepts NaN, and ends in RecursionError on deep nesting. This one
keeps offsets, so that a finding names line and column, and it never raises anything but BadJson.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from json.decoder import JSONDecodeError, scanstring  # type: ignore[attr-defined]
from typing import Final

from nodeagent.policy.table_yaml import shown

_BLANKS = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WORDS: Final = {"null": None, "true": True, "false": False}
_MAX_DEPTH = 32
_MAX_DIGITS = 19
_INT64 = range(-(2**63), 2**63)


class Wide:
    """A number that is no 64-bit integer: a fraction, an exponent, or too many digits. Upstream takes none of them."""


Value = str | int | bool | None | Wide | list["Node"] | list[tuple[str, int, "Node"]]


@dataclass(frozen=True, slots=True)
class Node:
    """One value. kind: null, boolean, number, string, list or object. offset: of its first letter in the text.

    value: of an object key, offset of the key and node in file order, duplicates included.
    """

    kind: str
    value: Value
    offset: int

    def items(self) -> "list[Node]":
        """Members of a list; none for other kinds."""
        return [each for each in self.value if isinstance(each, Node)] if isinstance(self.value, list) else []

    def pairs(self) -> "Iterator[tuple[str, int, Node]]":
        """Keys, their offsets and values of an object; none for other kinds."""
        for each in self.value if isinstance(self.value, list) else ():
            if isinstance(each, tuple):
                yield each


class BadJson(Exception):
    """The text cannot be used. offset: where; sentence: why, without place."""

    def __init__(self, offset: int, sentence: str) -> None:
        super().__init__(sentence)
        self.offset = offset
        self.sentence = sentence


class Lines:
    """Turns offsets of a text into lines and columns, both from 1."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def line(self, offset: int) -> int:
        """The line of an offset."""
        return bisect_right(self._starts, offset)

    def column(self, offset: int) -> int:
        """The column of an offset, in letters."""
        return offset - self._starts[self.line(offset) - 1] + 1


def parse(text: str) -> Node:
    """The one value of a JSON text. Raises BadJson for everything that is not exactly one JSON value."""
    reader = _Reader(text)
    try:
        node, end = reader.value(reader.blanks(0), 0)
    except JSONDecodeError as error:
        raise BadJson(error.pos, error.msg[0].lower() + error.msg[1:]) from None
    end = reader.blanks(end)
    if end != len(text):
        raise BadJson(end, "something follows after the end of the document")
    return node


def folded(key: str) -> str:
    """A key without letter case, as upstream compares it: a letter that would become two fits no name."""
    without_case = key.casefold()
    return without_case if len(without_case) == len(key) else key


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text

    def blanks(self, offset: int) -> int:
        match = _BLANKS.match(self._text, offset)
        return match.end() if match else offset

    def value(self, offset: int, depth: int) -> tuple[Node, int]:
        letter = self._text[offset : offset + 1]
        if letter == '"':
            string, end = scanstring(self._text, offset + 1, True)
            return Node("string", string, offset), end
        if letter in ("[", "{"):
            if depth >= _MAX_DEPTH:
                raise BadJson(offset, "nested too deeply")
            return self._list(offset, depth) if letter == "[" else self._object(offset, depth)
        for word, constant in _WORDS.items():
            if self._text.startswith(word, offset):
                return Node("null" if constant is None else "boolean", constant, offset), offset + len(word)
        return self._number(offset)

    def _number(self, offset: int) -> tuple[Node, int]:
        match = _NUMBER.match(self._text, offset)
        if match is None:
            found = self._text[offset : offset + 1]
            raise BadJson(offset, f"a value is due here, not {shown(found)}" if found else "the text ends too early")
        number: Value = Wide()
        if match[1] is None and match[2] is None and len(match[0]) <= _MAX_DIGITS + 1:
            whole = int(match[0])
            number = whole if whole in _INT64 else number
        return Node("number", number, offset), match.end()

    def _list(self, start: int, depth: int) -> tuple[Node, int]:
        nodes: list[Node] = []
        offset = self.blanks(start + 1)
        if self._text.startswith("]", offset):
            return Node("list", nodes, start), offset + 1
        while True:
            node, offset = self.value(offset, depth + 1)
            nodes.append(node)
            offset, ended = self._separator(offset, "]")
            if ended:
                return Node("list", nodes, start), offset

    def _object(self, start: int, depth: int) -> tuple[Node, int]:
        pairs: list[tuple[str, int, Node]] = []
        offset = self.blanks(start + 1)
        if self._text.startswith("}", offset):
            return Node("object", pairs, start), offset + 1
        while True:
            if not self._text.startswith('"', offset):
                raise BadJson(offset, "a key in double quotes is due here")
            at = offset
            key, offset = scanstring(self._text, offset + 1, True)
            offset = self.blanks(offset)
            if not self._text.startswith(":", offset):
                raise BadJson(offset, "a colon is due here")
            node, offset = self.value(self.blanks(offset + 1), depth + 1)
            pairs.append((key, at, node))
            offset, ended = self._separator(offset, "}")
            if ended:
                return Node("object", pairs, start), offset

    def _separator(self, offset: int, closing: str) -> tuple[int, bool]:
        """Past a comma and blanks, or past the closing bracket and true."""
        offset = self.blanks(offset)
        letter = self._text[offset : offset + 1]
        if letter == closing:
            return offset + 1, True
        if letter != ",":
            raise BadJson(offset, f"a comma or {shown(closing)} is due here" if letter else "the text ends too early")
        return self.blanks(offset + 1), False
