"""Layers of table files on top of each other: built-in tables, then site files, by code and by field.

Order built-in < site file < ConfigMap, fault-catalogue 12.3.
"""

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from nodeagent.core.levels import Level, Plane, Severity, plane_of
from nodeagent.policy.table_document import Document, Header, UnknownPart
from nodeagent.policy.table_draft import NETWORK_LEVELS, SEVERITIES, Draft
from nodeagent.policy.table_records import (
    Domain,
    FaultRecord,
    Finding,
    Kind,
    Place,
    Suppression,
    UnknownRules,
)


@dataclass(slots=True)
class Content:
    """What a table consists of. index: every code and alias to its record; built once, never changed after."""

    index: dict[int, FaultRecord] = field(default_factory=dict)
    unknown: UnknownRules = field(default_factory=UnknownRules)
    suppressions: tuple[Suppression, ...] = ()
    version: str = ""

    def copy(self) -> "Content":
        """A content that can be changed without touching this one; records are shared."""
        return Content(dict(self.index), self.unknown, self.suppressions, self.version)


class Merger:
    """Puts files one after the other onto a content and collects findings."""

    def __init__(self, base: Content, texts: bool) -> None:
        """base: what lies below; it is not changed. texts: keep Chinese names, advice, notes and origins."""
        self.content = base.copy()
        self.findings: list[Finding] = []
        self._texts = texts
        self._builtin: dict[int, Place] = {}
        self._header = Header(builtin=False, defaults=Draft(Place("", 0)))
        self._file: dict[int, Place] = {}

    def add(self, label: str, text: str) -> None:
        """Merge one file; its problems are in `findings` afterwards."""
        content = self.content
        suppressions: list[Suppression] = []
        self._file = {}
        for piece in Document(label, text, self.findings.append).pieces():
            if isinstance(piece, Header):
                self._header = piece
            elif isinstance(piece, Draft):
                self._fault(piece)
            elif isinstance(piece, UnknownPart):
                content.unknown = _with_part(content.unknown, piece)
            else:
                suppressions.append(piece)
        spoken_for = {suppression.code for suppression in suppressions}
        kept = [old for old in content.suppressions if old.code not in spoken_for]
        content.suppressions = (*kept, *suppressions)
        content.version = digest(content.version, [text])

    def _fault(self, draft: Draft) -> None:
        if not self._is_new_here(draft):
            return
        old = None if self._header.builtin else self.content.index.get(draft.code)
        self._check(draft, old)
        record = _merged(old, draft, self._header.defaults, self._texts)
        if draft.level_given and draft.level is not None:
            record = allow_for_plane(record, draft.level, self.findings)
        for code in (record.code, *record.aliases):
            self.content.index[code] = record

    def _is_new_here(self, draft: Draft) -> bool:
        """False, with a finding, when the code or one of its aliases was already listed where it may not be."""
        for code in (draft.code, *(draft.aliases or ())):
            first = self._file.get(code) or (self._builtin.get(code) if self._header.builtin else None)
            if first is not None:
                self._find(draft, f"listed twice (first at {first})")
                return False
        for alias in draft.aliases or ():
            owner = self.content.index.get(alias)
            if owner is not None and owner.code != draft.code:
                self._find(draft, f"the alias {alias:X} is a code of its own (at {owner.place})")
                return False
            if plane_of(alias) is not plane_of(draft.code):
                self._find(draft, f"the alias {alias:X} belongs to another plane")
                return False
        for code in (draft.code, *(draft.aliases or ())):
            self._file[code] = draft.place
            if self._header.builtin:
                self._builtin[code] = draft.place
        return True

    def _check(self, draft: Draft, old: FaultRecord | None) -> None:
        """Completeness, and fields that are fixed by the code itself."""
        defaults = self._header.defaults
        plane = draft.plane or (defaults.plane if old is None else None)
        if plane is not None and plane is not plane_of(draft.code):
            self._find(draft, f"the plane of this code is {plane_of(draft.code).value}, not {plane.value}")
        if old is None and not draft.level_given:
            self._find(draft, "the entry has no level")
        if not self._header.builtin and draft.level_null:
            self._find(draft, "a site file must name a level; leave the key away to keep the level below")
        if self._header.builtin:
            needed = {
                "name.en": draft.name_en,
                "name.zh": draft.name_zh,
                "module": draft.module or defaults.module,
                "name_basis": draft.name_basis or defaults.name_basis,
            }
            missing = [key for key, value in needed.items() if value is None]
            if missing:
                self._find(draft, f"the entry lacks {', '.join(missing)}")

    def _find(self, draft: Draft, sentence: str) -> None:
        self.findings.append(Finding(draft.place, draft.text, sentence))


def allow_for_plane(record: FaultRecord, level: Level, findings: list[Finding]) -> FaultRecord:
    """The record, with NotHandleFault for a Restart level on the parameter plane (chip-faults 3.3)."""
    if plane_of(record.code) is not Plane.NETWORK or level in NETWORK_LEVELS:
        return record
    sentence = f"level {level.text} does not exist on the parameter plane; NotHandleFault is used"
    findings.append(Finding(record.level_place, record.text, sentence, serious=False))
    return replace(record, level=Level.NOT_HANDLE)


def digest(before: str, parts: Iterable[str]) -> str:
    """Eight hex digits that change with `before` or with any part; they tell tables apart, no more.

    A checksum suffices for that, and hashlib would load OpenSSL: 3.7 MiB resident.
    """
    state = zlib.crc32(before.encode())
    for part in parts:
        state = zlib.crc32(part.encode("utf-8", "surrogatepass"), state)
    return f"{state:08x}"


def serious(findings: Sequence[Finding]) -> bool:
    """Whether one of the findings refuses the file."""
    return any(finding.serious for finding in findings)


def _with_part(rules: UnknownRules, part: UnknownPart) -> UnknownRules:
    if part.key == "severity_unknown":
        return replace(rules, severity_unknown=part.ruling)
    if part.key == "parameter_plane":
        return replace(rules, parameter_plane=part.ruling)
    notice, minor, major, critical = rules.by_severity
    match SEVERITIES[part.key]:
        case Severity.NOTICE:
            notice = part.ruling
        case Severity.MINOR:
            minor = part.ruling
        case Severity.MAJOR:
            major = part.ruling
        case Severity.CRITICAL:
            critical = part.ruling
    return replace(rules, by_severity=(notice, minor, major, critical))


def _merged(old: FaultRecord | None, draft: Draft, defaults: Draft, texts: bool) -> FaultRecord:
    """What the draft says over what the older record says; a new record falls back on the file's defaults."""
    if old is None:
        old = FaultRecord(
            code=draft.code,
            text=draft.text,
            place=draft.place,
            level_place=draft.place,
            level=draft.level,
            domain=defaults.domain or Domain.CHIP,
            plane=plane_of(draft.code),
            module=defaults.module or "",
            kind=defaults.kind or Kind.OCCUR_RECOVER,
            category=defaults.category or "",
            name_basis=defaults.name_basis or "",
            refs=(defaults.refs or ()) if texts else (),
            products=(defaults.products or ()) if texts else (),
        )
    return FaultRecord(
        code=old.code,
        text=old.text,
        place=old.place,
        level_place=draft.place if draft.level_given else old.level_place,
        level=draft.level if draft.level_given else old.level,
        domain=draft.domain or old.domain,
        plane=old.plane,
        name_en=old.name_en if draft.name_en is None else draft.name_en,
        name_zh=old.name_zh if draft.name_zh is None or not texts else draft.name_zh,
        module=old.module if draft.module is None else draft.module,
        kind=draft.kind or old.kind,
        severity=old.severity if draft.severity is None else draft.severity,
        category=old.category if draft.category is None else draft.category,
        advice_en=old.advice_en if draft.advice_en is None or not texts else draft.advice_en,
        advice_zh=old.advice_zh if draft.advice_zh is None or not texts else draft.advice_zh,
        notes=old.notes if draft.notes is None or not texts else draft.notes,
        name_basis=old.name_basis if draft.name_basis is None else draft.name_basis,
        refs=old.refs if draft.refs is None or not texts else draft.refs,
        products=old.products if draft.products is None or not texts else draft.products,
        twins=old.twins if draft.twins is None else draft.twins,
        aliases=old.aliases if draft.aliases is None else draft.aliases,
    )
