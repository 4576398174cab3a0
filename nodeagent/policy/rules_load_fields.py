"""One group of a rules document: its fields read one by one, each with the line of what is wrong."""

from collections.abc import Mapping

from nodeagent.policy.rules_load_checks import Violation
from nodeagent.policy.table_draft import nearest, read_code, read_word
from nodeagent.policy.table_yaml import Items, Node, Pairs, Scalar, shown

NEVER = "never"
"""Value of `release_s` for a raise that only an operator ends."""
_MAX_WINDOW_S = 60.0
_MAX_PORTS = 64
_MAX_DIGITS = 12


class DroppedGroupError(Exception):
    """The group cannot be used. line: from 1; sentence: why, without place. Stays within the loader."""

    def __init__(self, line: int, sentence: str) -> None:
        super().__init__(sentence)
        self.line = line
        self.sentence = sentence


class Group:
    """The fields of one rule. Every method raises DroppedGroupError for a value that is missing or wrong."""

    def __init__(self, pairs: Pairs) -> None:
        self.line = pairs.line
        self._pairs = pairs
        self._nodes = {key.text: node for key, node in pairs.pairs}

    @property
    def only_code(self) -> str:
        """The code as written when the group has one code only, so that findings can name it; else empty."""
        node = self._nodes.get("codes") or self._nodes.get("code") or self._nodes.get("trigger")
        if isinstance(node, Items) and len(node.nodes) == 1:
            node = node.nodes[0]
        return shown(node.text)[1:-1] if isinstance(node, Scalar) else ""

    def allow(self, *keys: str) -> None:
        """Refuse all other keys: a misspelled one would silently leave its value at a default."""
        for key, _ in self._pairs.pairs:
            if key.text not in keys:
                raise DroppedGroupError(key.line, f"unknown key {shown(key.text)}{nearest(key.text, keys)}")

    def line_of(self, key: str) -> int:
        """Where the value of a key stands; the group's line when it has none."""
        node = self._nodes.get(key)
        return self.line if node is None else node.line

    def refuse(self, violation: Violation | None) -> None:
        """Turn a violation of a range into the end of the group."""
        if violation is not None:
            raise DroppedGroupError(self.line_of(violation[0]), f"{violation[0]} {violation[1]}")

    def word(self, key: str, words: tuple[str, ...]) -> str:
        """A text; whether it is one of `words` is checked with the other fields, here it only helps the hint."""
        word = read_word(self._needed(key), key, _dropping)
        assert word is not None
        if word not in words and (hint := nearest(word, words)):
            raise DroppedGroupError(self.line_of(key), f"{key} {shown(word)} is not a level that fits here{hint}")
        return word

    def number(self, key: str) -> int:
        """A whole number; its range is checked with the other fields."""
        node = self._needed(key)
        text = node.text if isinstance(node, Scalar) and not node.quoted else ""
        digits = text.removeprefix("-")
        # Longer than any bound: such a number is out of range whatever its digits are.
        if not digits.isascii() or not digits.isdigit() or len(digits) > _MAX_DIGITS:
            raise DroppedGroupError(node.line, f"{key} must be a whole number{_as_written(node)}")
        return int(text)

    def release(self, key: str) -> int | None:
        """Seconds, or None where the field is missing, `never` or 0."""
        node = self._nodes.get(key)
        if node is None or (isinstance(node, Scalar) and node.text == NEVER):
            return None
        return self.number(key) or None

    def window_ms(self, key: str) -> int:
        """Seconds, fractions allowed, more than 0 and at most 60; as milliseconds."""
        node = self._needed(key)
        text = node.text if isinstance(node, Scalar) and not node.quoted else ""
        whole, _, fraction = text.partition(".")
        if (whole + fraction).isascii() and (whole + fraction).isdigit() and len(text) <= _MAX_DIGITS:
            window_s = float(text)
            if 0.001 <= window_s <= _MAX_WINDOW_S:
                return round(window_s * 1000)
        raise DroppedGroupError(
            node.line, f"{key} must be a number of seconds from 0.001 to {_MAX_WINDOW_S:g}{_as_written(node)}"
        )

    def truth(self, key: str) -> bool:
        """true or false; false where the field is missing."""
        node = self._nodes.get(key)
        if node is None:
            return False
        if isinstance(node, Scalar) and not node.quoted and node.text in ("true", "false"):
            return node.text == "true"
        raise DroppedGroupError(node.line, f"{key} must be true or false")

    def code(self, key: str) -> tuple[int, int]:
        """A quoted code and its line."""
        return _code(self._needed(key))

    def optional_code(self, key: str) -> int:
        """A quoted code, 0 where the field is missing."""
        node = self._nodes.get(key)
        return 0 if node is None else _code(node)[0]

    def codes(self, key: str) -> list[tuple[int, int]]:
        """Quoted codes with their lines, at least one."""
        node = self._needed(key)
        if not isinstance(node, Items) or not node.nodes:
            raise DroppedGroupError(node.line, f"{key} must be a list of at least one quoted code")
        return [_code(each) for each in node.nodes]

    def numbered_codes(self, key: str) -> Mapping[int, int]:
        """Quoted codes by number of ports; empty where the field is missing."""
        node = self._nodes.get(key)
        if node is None:
            return {}
        if not isinstance(node, Pairs) or not node.pairs:
            raise DroppedGroupError(node.line, f"{key} must be a mapping of numbers of ports to quoted codes")
        found: dict[int, int] = {}
        for number, value in node.pairs:
            ports = int(number.text) if number.text.isascii() and number.text.isdigit() and len(number.text) < 4 else 0
            if not 1 <= ports <= _MAX_PORTS or ports in found:
                raise DroppedGroupError(
                    number.line, f"{shown(number.text)} in {key} must be a number of ports, 1..{_MAX_PORTS}, each once"
                )
            found[ports] = _code(value)[0]
        return dict(sorted(found.items()))

    def _needed(self, key: str) -> Node:
        node = self._nodes.get(key)
        if node is None:
            raise DroppedGroupError(self.line, f"{key} is missing")
        return node


def _code(node: Node) -> tuple[int, int]:
    code = read_code(node, _dropping)
    assert code is not None
    return code[0], node.line


def _dropping(line: int, sentence: str) -> None:
    raise DroppedGroupError(line, sentence)


def _as_written(node: Node) -> str:
    return f", not {shown(node.text)}" if isinstance(node, Scalar) else ""
