"""What upstream's JSON documents have in common: typed access with findings, lists of codes (chip-faults 3.2, 5)."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from nodeagent.policy.table_draft import nearest
from nodeagent.policy.table_records import Finding, Place
from nodeagent.policy.table_yaml import shown
from nodeagent.policy.upstream_json import BadJson, Lines, Node, folded, parse

BOM = "\N{ZERO WIDTH NO-BREAK SPACE}"
_KINDS = {"list": "a list", "object": "an object", "string": "a text", "number": "a whole number"}


Code = TypeVar("Code")
Entry = TypeVar("Entry")
Rank = TypeVar("Rank")


class Document:
    """One JSON document that must be an object. findings: in file order, the warnings included."""

    def __init__(self, label: str, text: str) -> None:
        self.findings: list[Finding] = []
        self._label = label
        self._bom = text.startswith(BOM)
        self._text = text.removeprefix(BOM)
        self._lines = Lines(self._text)

    def root(self) -> Node:
        """The object. Raises BadJson for anything else."""
        if self._bom:
            self.warn(0, "", "begins with a byte-order mark, which upstream would refuse; it is passed over")
        if not self._text.strip():
            raise BadJson(0, "the document is empty")
        root = parse(self._text)
        if root.kind != "object":
            raise BadJson(root.offset, f"the document is {_article(root.kind)}, not an object")
        return root

    def place(self, offset: int) -> Place:
        """Label and line of an offset."""
        return Place(self._label, self._lines.line(offset))

    def warn(self, offset: int, code: str, sentence: str) -> None:
        """Add a warning."""
        self.findings.append(Finding(self.place(offset), code, sentence, serious=False))

    def refuse(self, bad: BadJson) -> None:
        """Add the finding that refuses the whole document, with line and column."""
        sentence = f"column {self._lines.column(bad.offset)}: {bad.sentence}"
        self.findings.append(Finding(self.place(bad.offset), "", sentence))

    def drop(self, offset: int, code: str, sentence: str) -> None:
        """Add the finding that drops one group; the document as a whole stays usable."""
        self.findings.append(Finding(self.place(offset), code, sentence))

    def fields(self, node: Node, names: Mapping[str, str]) -> Iterator[tuple[str, Node]]:
        """Known fields of an object, by their proper names; of a key that stands twice the last one counts.

        names: lower-case name -> proper name. Other keys are passed over with a warning.
        """
        last: dict[str, Node] = {}
        for key, offset, value in node.pairs():
            name = names.get(folded(key))
            if name is None:
                self.warn(offset, "", f"unknown key {shown(key)} is ignored{nearest(key, names.values())}")
                continue
            if name in last:
                self.warn(offset, "", f"{name} stands twice; the later one counts")
            last[name] = value
        yield from last.items()


@dataclass(slots=True)
class LevelsRead(Generic[Entry]):
    """What a document of levels says: one entry for each code, in file order of the level that counts.

    findings: a serious one refuses the document; then there are no entries.
    """

    entries: list[Entry] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    @property
    def usable(self) -> bool:
        """False: the document must be refused."""
        return not any(finding.serious for finding in self.findings)


def read_lists(
    label: str,
    text: str,
    lists: Mapping[str, Rank],
    take: Callable[[Document, dict[Code, Entry], str, Rank, str, int], None],
) -> LevelsRead[Entry]:
    """Read an object whose members are lists of codes, one for each level. Never raises.

    lists: the members in the order in which they count, with their levels; their letter case does not matter.
    take: adds one listed code: document, entries so far, member, level, code as written, its offset.
    """
    document = Document(label, text)
    entries: dict[Code, Entry] = {}
    proper = {name.lower(): name for name in lists}
    try:
        found = {name: texts(node, name) for name, node in document.fields(document.root(), proper)}
        for name, level in lists.items():
            for written, offset in found.get(name, ()):
                take(document, entries, name, level, written, offset)
    except BadJson as bad:
        document.refuse(bad)
        entries = {}
    document.findings.sort(key=lambda finding: finding.place.line)
    return LevelsRead(list(entries.values()), document.findings)


def typed(node: Node, kind: str, what: str) -> Node | None:
    """The node, if it has that kind; None for null. Raises BadJson for another kind: that fails the document."""
    if node.kind == "null":
        return None
    if node.kind != kind or (kind == "number" and not isinstance(node.value, int)):
        found = "no whole number of 64 bits" if node.kind == kind else _article(node.kind)
        raise BadJson(node.offset, f"{what} must be {_KINDS[kind]}, this is {found}")
    return node


def texts(node: Node, what: str) -> list[tuple[str, int]]:
    """Members of a list of texts with their offsets; null is an empty list, a member null an empty text."""
    found = typed(node, "list", what)
    members: list[tuple[str, int]] = []
    for each in found.items() if found else ():
        text = typed(each, "string", f"a member of {what}")
        members.append((str(text.value) if text else "", each.offset))
    return members


def _article(kind: str) -> str:
    return kind if kind == "null" else f"{'an' if kind == 'object' else 'a'} {'text' if kind == 'string' else kind}"
