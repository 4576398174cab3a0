"""YAML as a stream of small marked pieces: every scalar keeps its line and whether it was quoted.

The tables are read from the parser's events, one record at a time, so that no tree of a whole file is ever
held, and so that an unquoted code is seen as such even where YAML would make a string of it (fault-catalogue
12.2). Anchors, aliases and tags are refused: a table needs none, and aliases can multiply a small text
without bound.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import yaml

_MAX_DEPTH = 6
_SHOWN_LETTERS = 60
_NOT_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_PARSER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(slots=True)
class Scalar:
    """One value as written. quoted: it stood in single or double quotes."""

    text: str
    line: int
    quoted: bool


@dataclass(slots=True)
class Items:
    """A list."""

    nodes: "list[Node]"
    line: int


@dataclass(slots=True)
class Pairs:
    """A mapping in file order, keys not yet checked for duplicates."""

    pairs: "list[tuple[Scalar, Node]]"
    line: int


Node = Scalar | Items | Pairs
Complain = Callable[[int, str], None]
"""Takes a line (from 1) and a sentence of what is wrong there."""


@dataclass(slots=True)
class Piece:
    """One value below a top-level key. in_list: it is an item of that key's list."""

    key: Scalar
    node: Node
    in_list: bool

    @property
    def empty(self) -> bool:
        """The key has no value, or an empty list."""
        node = self.node
        return not self.in_list and (not node.nodes if isinstance(node, Items) else _is_void(node))


class BrokenText(Exception):
    """The text cannot be read further. line: from 1; sentence: why, without file and line."""

    def __init__(self, line: int, sentence: str) -> None:
        super().__init__(sentence)
        self.line = line
        self.sentence = sentence


def walk(text: str, complain: Complain) -> Iterator[Piece]:
    """The top-level mapping of one YAML document, piece by piece.

    text: the whole document.
    complain: called for a top-level key that stands twice; for keys further down see `repeated_keys`.

    Yields each value; of a value that is a list each item by itself, an empty list as such.
    Raises BrokenText where reading cannot go on: empty, binary, not YAML, not a mapping at the top, an anchor,
    alias or tag, too deep a nesting, or a second document.
    """
    if not text.strip():
        raise BrokenText(1, "the file is empty")
    if found := _NOT_TEXT.search(text):
        raise BrokenText(text.count("\n", 0, found.start()) + 1, "this is not text: it has a control character")
    stream = _Stream(text)
    try:
        yield from stream.top(complain)
    finally:
        stream.close()


def repeated_keys(node: Node) -> Iterator[Scalar]:
    """Keys that stand twice in the same mapping, at any depth."""
    if isinstance(node, Items):
        for each in node.nodes:
            yield from repeated_keys(each)
    elif isinstance(node, Pairs):
        seen: set[str] = set()
        for key, value in node.pairs:
            if key.text in seen:
                yield key
            seen.add(key.text)
            yield from repeated_keys(value)


def shown(text: str) -> str:
    """A text as it is quoted in sentences: one line, not endless."""
    return repr(text if len(text) <= _SHOWN_LETTERS else text[:_SHOWN_LETTERS] + "...")


def _is_void(node: Node) -> bool:
    return isinstance(node, Scalar) and not node.quoted and not node.text


class _Stream:
    """The parser's events turned into nodes."""

    def __init__(self, text: str) -> None:
        try:
            self._parser = _PARSER(text)
        except (yaml.YAMLError, ValueError) as problem:
            raise _broken(problem, 1) from None
        self._line = 1

    def close(self) -> None:
        """Break the cycles inside the pure-Python parser."""
        self._parser.dispose()

    def top(self, complain: Complain) -> Iterator[Piece]:
        event = self._content_event()
        if event is None or (isinstance(event, yaml.ScalarEvent) and not event.value and not event.style):
            raise BrokenText(1, "the file has no content")
        if not isinstance(event, yaml.MappingStartEvent):
            kind = "a list" if isinstance(event, yaml.SequenceStartEvent) else "a single value"
            raise BrokenText(self._line, f"the file holds {kind} where a mapping is due")
        self._refuse_marks(event)
        seen: dict[str, int] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            key = self._scalar(event)
            if key.text in seen:
                complain(key.line, f"key {shown(key.text)} stands twice (first in line {seen[key.text]})")
            seen.setdefault(key.text, key.line)
            yield from self._value(key)
        if self._content_event() is not None:
            raise BrokenText(self._line, "a second YAML document begins here; one file holds one document")

    def _value(self, key: Scalar) -> Iterator[Piece]:
        event = self._next()
        if not isinstance(event, yaml.SequenceStartEvent):
            yield Piece(key, self._node(event, 1), in_list=False)
            return
        self._refuse_marks(event)
        line = self._line
        empty = True
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            empty = False
            yield Piece(key, self._node(event, 2), in_list=True)
        if empty:
            yield Piece(key, Items([], line), in_list=False)

    def _content_event(self) -> Any:
        """The first event inside the next document, or None at the end of the text."""
        while True:
            event = self._next()
            if isinstance(event, yaml.StreamEndEvent):
                return None
            if not isinstance(event, yaml.StreamStartEvent | yaml.DocumentStartEvent | yaml.DocumentEndEvent):
                return event

    def _node(self, event: Any, depth: int) -> Node:
        if depth > _MAX_DEPTH:
            raise BrokenText(self._line, "nested too deeply")
        if not isinstance(event, yaml.CollectionStartEvent):
            return self._scalar(event)
        self._refuse_marks(event)
        line = self._line
        if isinstance(event, yaml.SequenceStartEvent):
            nodes: list[Node] = []
            while not isinstance(event := self._next(), yaml.SequenceEndEvent):
                nodes.append(self._node(event, depth + 1))
            return Items(nodes, line)
        pairs: list[tuple[Scalar, Node]] = []
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            key = self._scalar(event)
            pairs.append((key, self._node(self._next(), depth + 1)))
        return Pairs(pairs, line)

    def _scalar(self, event: Any) -> Scalar:
        self._refuse_marks(event)
        if not isinstance(event, yaml.ScalarEvent):
            raise BrokenText(self._line, "a key is a list or a mapping; keys are single words")
        text = event.value
        # Escapes can write what the text itself may not hold.
        if not text.isprintable() and _NOT_TEXT.search(text):
            raise BrokenText(self._line, "an escape writes a control character")
        return Scalar(text, self._line, event.style in ("'", '"'))

    def _refuse_marks(self, event: Any) -> None:
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise BrokenText(self._line, "anchors and aliases of YAML are not accepted in a table")
        if event.tag is not None:
            raise BrokenText(self._line, f"tags of YAML such as {shown(event.tag)} are not accepted in a table")

    def _next(self) -> Any:
        try:
            event = self._parser.get_event()
        # Bad escapes and huge numbers in directives surface as plain ValueError in the pure-Python parser.
        except (yaml.YAMLError, ValueError, OverflowError) as problem:
            raise _broken(problem, self._line) from None
        self._line = event.start_mark.line + 1
        return event


def _broken(problem: Exception, line: int) -> BrokenText:
    mark = getattr(problem, "problem_mark", None)
    if mark is not None:
        line = mark.line + 1
    reason = getattr(problem, "problem", None) or getattr(problem, "reason", None) or "malformed text"
    return BrokenText(line, f"the file is not YAML: {reason}")
