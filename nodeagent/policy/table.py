"""The fault table: which level a code has, what it is called, and what to do with codes nobody listed.

A table is immutable; a reload makes a new one (chip-faults 12.4, R17). It is built from texts; the reading of
files is the caller's (nodeagent.core.files).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from nodeagent.core.codes import plain_text
from nodeagent.core.levels import Level, Plane, Severity, plane_of
from nodeagent.policy.table_merge import Content, Merger, allow_for_plane, digest, serious
from nodeagent.policy.table_records import (
    BadTableError,
    FaultRecord,
    Finding,
    Place,
    Suppression,
    UnknownRules,
)

Document = tuple[str, str]
"""Label (file name or object key, for messages) and text of one table file."""


@dataclass(frozen=True, slots=True)
class LevelDecision:
    """The level of one code by itself.

    plane: where it counts. known: a table lists it with a level. place: what says so.
    severity: that of the event; it decided only when the code is not known.
    """

    level: Level
    plane: Plane
    known: bool
    place: Place
    severity: Severity | None

    @property
    def reason(self) -> str:
        """One sentence for logs and for `explain`, with the file and line that decided."""
        if self.known:
            return f"listed as {self.level.text} at {self.place}"
        if self.plane is Plane.NETWORK:
            case = "parameter plane"
        elif self.severity is None:
            case = "severity unknown"
        else:
            case = f"severity {self.severity.name.lower()}"
        return f"in no table, {case}: {self.level.text} by the rule at {self.place}"


@dataclass(frozen=True, slots=True)
class LevelEntry:
    """A level from outside the YAML tables, for `FaultTable.with_levels`."""

    code: int
    text: str
    level: Level
    place: Place


class FaultTable:
    """Immutable answer to all questions about codes. Made by `load_table`, `overlaid` and `with_levels`."""

    __slots__ = ("_content",)

    def __init__(self, content: Content) -> None:
        self._content = content

    @property
    def version(self) -> str:
        """Eight hex digits, a checksum of all texts the table was made from."""
        return self._content.version

    @property
    def unknown(self) -> UnknownRules:
        """The rule for codes that no table lists (chip-faults 3.4)."""
        return self._content.unknown

    @property
    def suppressions(self) -> tuple[Suppression, ...]:
        """What the site wants suppressed, expired entries included; the caller compares with its clock."""
        return self._content.suppressions

    def lookup(self, code: int) -> FaultRecord | None:
        """The record of a code or alias, None when no table has it."""
        return self._content.index.get(code)

    def records(self) -> tuple[FaultRecord, ...]:
        """All records in the order of the files, each once."""
        return tuple(record for code, record in self._content.index.items() if code == record.code)

    def level_of(self, code: int, severity: Severity | None) -> LevelDecision:
        """The level of one code by itself, independent of others on the chip (chip-faults 12.4, R3).

        severity: of the event, None when nobody told it (chip-faults 12.4, R2). It matters only for codes
        that no table lists; a listed level is never derived from severity (fault-catalogue 3.4).
        """
        plane = plane_of(code)
        record = self._content.index.get(code)
        if record is not None and record.level is not None:
            return LevelDecision(record.level, plane, True, record.level_place, severity)
        ruling = self._content.unknown.ruling(plane, severity)
        return LevelDecision(ruling.level, plane, False, ruling.place, severity)

    def text_of(self, code: int) -> str:
        """How the code is published: the table's spelling, upper case; plain hex when unlisted (chip-faults 3.2)."""
        record = self._content.index.get(code)
        return record.text if record is not None and record.code == code else plain_text(code)

    def overlaid(self, documents: Sequence[Document], texts: bool = True) -> "tuple[FaultTable, tuple[Finding, ...]]":
        """A new table with the documents on top of this one, and their warnings.

        Parameters and errors as in `load_table`.
        """
        merger = Merger(self._content, texts)
        for label, text in documents:
            merger.add(label, text)
        if serious(merger.findings):
            raise BadTableError(merger.findings)
        return FaultTable(merger.content), tuple(merger.findings)

    def with_levels(self, entries: Iterable[LevelEntry]) -> "tuple[FaultTable, tuple[Finding, ...]]":
        """A new table whose levels are those of `entries` and no others, while texts stay; and warnings.

        For the JSON document of upstream, which replaces all levels below it (chip-faults 6.2). A code without
        an entry becomes unlisted. A later entry of the same code replaces an earlier one. Spelling: the first
        ever registered stays (chip-faults 3.2).
        """
        content = self._content.copy()
        findings: list[Finding] = []
        for code, record in content.index.items():
            content.index[code] = replace(record, level=None)
        parts: list[str] = []
        for entry in entries:
            old = content.index.get(entry.code) or FaultRecord(
                entry.code, entry.text.upper(), entry.place, entry.place, None, plane=plane_of(entry.code)
            )
            leveled = replace(old, level=entry.level, level_place=entry.place)
            leveled = allow_for_plane(leveled, entry.level, findings)
            for code in (leveled.code, *leveled.aliases):
                content.index[code] = leveled
            parts.append(f"{entry.code:X}={entry.level.text};")
        content.version = digest(content.version, parts)
        return FaultTable(content), tuple(findings)


def load_table(documents: Sequence[Document], texts: bool = True) -> tuple[FaultTable, tuple[Finding, ...]]:
    """A table from YAML texts, later documents on top of earlier ones (fault-catalogue 12.3), and its warnings.

    documents: label and text of each file. Files that say `layer: builtin` are the shipped tables: their
    records are complete and a code may stand in one of them only. All others change single fields.
    texts: false drops Chinese names, advice, notes, sources and products, which only `explain` shows.

    Raises BadTableError, a TableError whose `findings` hold every problem of all documents.
    """
    return FaultTable(Content()).overlaid(documents, texts)


def lint(label: str, text: str, base: FaultTable | None = None) -> list[Finding]:
    """Every problem of one table file, warnings included, in line order; an empty list when it is clean.

    base: the table below, which a site file needs where it changes only some fields of a record.
    """
    return lint_all([(label, text)], base)


def lint_all(documents: Sequence[Document], base: FaultTable | None = None) -> list[Finding]:
    """As `lint`, for several files of which each goes on top of those before it; file by file."""
    merger = Merger(Content() if base is None else base._content, texts=False)
    found: list[Finding] = []
    for label, text in documents:
        before = len(merger.findings)
        merger.add(label, text)
        found += sorted(merger.findings[before:], key=lambda finding: finding.place.line)
    return found
