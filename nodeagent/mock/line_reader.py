"""YAML that is checked to the line: every complaint about a value names file, line and key."""

from typing import Any, NoReturn

import yaml

from nodeagent.core.errors import ScenarioError
from nodeagent.mock.kinds import Kind, ValueProblem

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Parts = dict[str, tuple[yaml.Node, yaml.Node]]
"""A mapping: for each key its own node and that of its value."""


class LineReader:
    """Walks the YAML nodes of one file, so that every complaint knows its line."""

    def __init__(self, file: str) -> None:
        self._file = file

    def root(self, text: str) -> yaml.Node:
        """The outermost node of the file. Raises ScenarioError for an empty one and for what is not YAML."""
        self._loader = _Loader(text)
        try:
            root: yaml.Node | None = self._loader.get_single_node()
        except yaml.YAMLError as problem:
            mark = getattr(problem, "problem_mark", None)
            line = mark.line + 1 if mark else 1
            what = getattr(problem, "problem", None) or "not YAML"
            raise ScenarioError(f"{self._file}:{line}: {what}") from None
        if root is None:
            raise ScenarioError(f"{self._file}:1: the file is empty", "it needs a key node or timeline")
        return root

    def values(
        self,
        parts: Parts,
        kinds: dict[str, Kind],
        what: str,
        required: tuple[str, ...] = (),
        root: yaml.Node | None = None,
    ) -> dict[str, Any]:
        """The typed values of a mapping. required: keys it must have; root: where to complain when one is missing."""
        for key, (key_node, _) in parts.items():
            if key not in kinds:
                self.complain(key_node, key, f"{what} has no such key; known: {', '.join(kinds)}")
        for key in required:
            if key not in parts:
                self.complain(root, key, f"{what} needs it")
        return {key: self.value(value, key, kinds[key]) for key, (_, value) in parts.items()}

    def value(self, node: yaml.Node, key: str, kind: Kind) -> Any:
        """The typed value of a node."""
        if kind.quoted:
            self.must_be_quoted(node, key)
        try:
            return kind.check(key, self.raw(node, key))
        except ValueProblem as problem:
            self.complain(node, key, problem.sentence)

    def raw(self, node: yaml.Node, key: str) -> object:
        """The value as YAML has it."""
        try:
            return self._loader.construct_object(node, deep=True)
        except (yaml.YAMLError, ValueError) as problem:
            self.complain(node, key, str(getattr(problem, "problem", problem)))

    def must_be_quoted(self, node: yaml.Node, key: str) -> None:
        """Complain about a text, or one in a list, that YAML may take for a number."""
        scalars = node.value if isinstance(node, yaml.SequenceNode) else [node]
        for scalar in scalars:
            if isinstance(scalar, yaml.ScalarNode) and scalar.style not in ("'", '"'):
                self.complain(scalar, key, f'write it in quotes, "{scalar.value}": YAML may read it as a number')

    def mapping(self, node: yaml.Node, what: str) -> Parts:
        """The keys of a mapping, each once."""
        if not isinstance(node, yaml.MappingNode):
            self.complain(node, what, "must be a mapping of keys to values")
        parts: Parts = {}
        for key_node, value_node in node.value:
            if key_node.value in parts:
                self.complain(key_node, str(key_node.value), "is there twice")
            parts[str(key_node.value)] = (key_node, value_node)
        return parts

    def items(self, node: yaml.Node, what: str) -> list[yaml.Node]:
        """The entries of a list."""
        if not isinstance(node, yaml.SequenceNode):
            self.complain(node, what, "must be a list")
        return list(node.value)

    def complain(self, node: yaml.Node | None, key: str, sentence: str) -> NoReturn:
        """Raise the ScenarioError."""
        line = node.start_mark.line + 1 if node is not None else 1
        raise ScenarioError(f"{self._file}:{line}: {key}: {sentence}")
