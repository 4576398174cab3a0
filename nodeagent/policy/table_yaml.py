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


class BrokenText(Exception):
    """The text cannot be read further. line: from 1; sentence: why, without file and line."""

    def __init__(self, line: int, sentence: str) -> None:
        super().__init__(sentence)
        self.line = line
        self.sentence = sentence


def walk(text: str, complain: Complain) -> Iterator[tuple[Scalar, Node]]:
    """The top-level mapping of one YAML document, piece by piece.

    text: the whole document.
    complain: called for problems that reading survives (duplicate keys); each once.

    Yields (key, value); a value that is a list is yielded item by item, each with the same key object.
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

    def top(self, complain: Complain) -> Iterator[tuple[Scalar, Node]]:
        event = self._content_event()
        if event is None:
            raise BrokenText(1, "the file has no content")
        if not isinstance(event, yaml.MappingStartEvent):
            kind = "a list" if isinstance(event, yaml.SequenceStartEvent) else "a single value"
            raise BrokenText(self._line, f"the file holds {kind} where a mapping is due")
        self._refuse_marks(event)
        seen: dict[str, int] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            key = self._key(event)
            if key.text in seen:
                complain(key.line, f"key {key.text!r} stands twice (first in line {seen[key.text]})")
            seen.setdefault(key.text, key.line)
            event = self._next()
            if isinstance(event, yaml.SequenceStartEvent):
                self._refuse_marks(event)
                while not isinstance(event := self._next(), yaml.SequenceEndEvent):
                    yield key, self._node(event, complain, 2)
            else:
                yield key, self._node(event, complain, 1)
        if self._content_event() is not None:
            raise BrokenText(self._line, "a second YAML document begins here; one file holds one document")

    def _content_event(self) -> Any:
        """The first event inside the next document, or None at the end of the text."""
        while True:
            event = self._next()
            if isinstance(event, yaml.StreamEndEvent):
                return None
            if not isinstance(event, yaml.StreamStartEvent | yaml.DocumentStartEvent | yaml.DocumentEndEvent):
                return event

    def _node(self, event: Any, complain: Complain, depth: int) -> Node:
        if depth > _MAX_DEPTH:
            raise BrokenText(self._line, "nested too deeply")
        self._refuse_marks(event)
        line = self._line
        if isinstance(event, yaml.ScalarEvent):
            return Scalar(event.value, line, event.style in ("'", '"'))
        if isinstance(event, yaml.SequenceStartEvent):
            nodes: list[Node] = []
            while not isinstance(event := self._next(), yaml.SequenceEndEvent):
                nodes.append(self._node(event, complain, depth + 1))
            return Items(nodes, line)
        pairs: list[tuple[Scalar, Node]] = []
        seen: set[str] = set()
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            key = self._key(event)
            if key.text in seen:
                complain(key.line, f"key {key.text!r} stands twice")
            seen.add(key.text)
            pairs.append((key, self._node(self._next(), complain, depth + 1)))
        return Pairs(pairs, line)

    def _key(self, event: Any) -> Scalar:
        self._refuse_marks(event)
        if not isinstance(event, yaml.ScalarEvent):
            raise BrokenText(self._line, "a key is a list or a mapping; keys are single words")
        return Scalar(event.value, self._line, event.style in ("'", '"'))

    def _refuse_marks(self, event: Any) -> None:
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise BrokenText(self._line, "anchors and aliases of YAML are not accepted in a table")
        if event.tag is not None:
            raise BrokenText(self._line, f"tags of YAML such as {event.tag!r} are not accepted in a table")

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
