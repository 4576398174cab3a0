"""What a fault table holds: records, the rule for unlisted codes, suppressions, and findings about a file."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from nodeagent.core.errors import TableError
from nodeagent.core.levels import Level, Plane, Severity


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is written. label: file name or object key; line: from 1, 0 when there is no line."""

    label: str
    line: int

    def __str__(self) -> str:
        return f"{self.label}:{self.line}" if self.line else self.label


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong in a table file.

    code: the fault code concerned as written, or empty.
    sentence: what is wrong, without place and code.
    serious: false for a warning: the table is used nevertheless.
    """

    place: Place
    code: str
    sentence: str
    serious: bool = True

    def __str__(self) -> str:
        code = f"code {self.code}: " if self.code else ""
        return f"{self.place}: {code}{self.sentence}"


class BadTableError(TableError):
    """A table file is refused. findings: every problem found in it, warnings included, in file order."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        serious = [finding for finding in findings if finding.serious]
        others = f" (and {len(serious) - 1} more)" if len(serious) > 1 else ""
        super().__init__(f"{serious[0]}{others}", "`nodeagent table lint FILE` lists every problem")
        self.findings = tuple(findings)


class Kind(Enum):
    """How a code is reported (fault-catalogue 1, event_kind)."""

    OCCUR_RECOVER = "occur_recover"
    ONCE = "once"
    RECOVER = "recover"


class Domain(Enum):
    """Whether a code tells of the chip or of one of its ports or paths (fault-catalogue 1)."""

    CHIP = "chip"
    LINK = "link"


@dataclass(frozen=True, slots=True)
class FaultRecord:
    """All that the tables say of one code.

    code: the number, up to 40 bits. text: its spelling, upper case, leading zeros kept (chip-faults 3.2).
    level: effective level, or None for a code that is described but levelled by the rule for unlisted codes.
    severity: only a default for display; the severity of the live event wins (fault-catalogue 12.1).
    twins: codes under which the same physical fault may be reported too (fault-catalogue 3.5).
    aliases: further codes that share this record.
    place: where the record begins; level_place: where its level was last said.
    Texts that nobody gave are empty.
    """

    code: int
    text: str
    place: Place
    level_place: Place
    level: Level | None
    domain: Domain = Domain.CHIP
    plane: Plane = Plane.CHIP
    name_en: str = ""
    name_zh: str = ""
    module: str = ""
    kind: Kind = Kind.OCCUR_RECOVER
    severity: Severity | None = None
    category: str = ""
    advice_en: str = ""
    advice_zh: str = ""
    notes: str = ""
    name_basis: str = ""
    refs: tuple[str, ...] = ()
    products: tuple[str, ...] = ()
    twins: tuple[int, ...] = ()
    aliases: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Suppression:
    """A site's wish not to have a code reported (decision of the project: reason and end date are due).

    chips: physical ids of the chips concerned, or None for all.
    until_ms: wall time in Unix milliseconds at which it ends: the end of the day `until`, UTC.
    """

    code: int
    text: str
    chips: frozenset[int] | None
    reason: str
    until: str
    until_ms: int
    place: Place

    def applies(self, chip: int, wall_ms: int) -> bool:
        """Whether the code is suppressed on the chip with physical id `chip` at Unix milliseconds `wall_ms`."""
        return wall_ms < self.until_ms and (self.chips is None or chip in self.chips)


@dataclass(frozen=True, slots=True)
class Ruling:
    """A level of the rule for unlisted codes, and where it is written."""

    level: Level
    place: Place


_BUILT_IN = Place("built-in rule", 0)


@dataclass(frozen=True, slots=True)
class UnknownRules:
    """Levels of codes that no table lists (chip-faults 3.4, fault-catalogue 9).

    by_severity: one ruling for each severity, in the order of `Severity`.
    severity_unknown: for codes found by a sweep or by polling, whose severity nobody told. NotHandleFault,
    because a driver upgrade that brings new notices must not isolate a fleet; a site may set SeparateNPU.
    parameter_plane: for codes of the parameter plane, whatever their severity.
    """

    by_severity: tuple[Ruling, Ruling, Ruling, Ruling] = (
        Ruling(Level.NOT_HANDLE, _BUILT_IN),
        Ruling(Level.NOT_HANDLE, _BUILT_IN),
        Ruling(Level.SEPARATE, _BUILT_IN),
        Ruling(Level.SEPARATE, _BUILT_IN),
    )
    severity_unknown: Ruling = Ruling(Level.NOT_HANDLE, _BUILT_IN)
    parameter_plane: Ruling = Ruling(Level.PRE_SEPARATE, _BUILT_IN)

    def ruling(self, plane: Plane, severity: Severity | None) -> Ruling:
        """The ruling for an unlisted code of that plane; severity None where nobody told it."""
        if plane is Plane.NETWORK:
            return self.parameter_plane
        return self.severity_unknown if severity is None else self.by_severity[severity]
