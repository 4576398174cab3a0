"""The table of switch faults: level and texts of each code, by its exact text (lingqu-switch-faults 5).

Immutable; a reload makes a new one. Apart from the chip table because nothing is common but the idea: codes are texts,
levels are others, and there is no rule by severity.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from nodeagent.core.switch_codes import OLD_PORT_ALARM, PORT_ALARM, SwitchCode, SwitchLevel
from nodeagent.policy.table_records import Place

_NOWHERE = Place("built-in rule", 0)


@dataclass(frozen=True, slots=True)
class SwitchFaultRecord:
    """All that the tables say of one code. text: exact, as consumers compare it. level None: described, not listed.

    place: where the record begins. level_place: where its level was said last. Texts that nobody gave are empty.
    """

    text: str
    place: Place
    level_place: Place
    level: SwitchLevel | None = None
    name_en: str = ""
    name_zh: str = ""
    advice_en: str = ""
    advice_zh: str = ""
    notes: str = ""
    name_basis: str = ""


@dataclass(frozen=True, slots=True)
class SwitchEntry:
    """A level from upstream's document, for `SwitchTable.with_levels`."""

    text: str
    level: SwitchLevel
    place: Place


@dataclass(frozen=True, slots=True)
class SwitchDecision:
    """The level of one code. known: a table lists it. twin: the code that was looked up in its place, if another."""

    level: SwitchLevel
    known: bool
    place: Place
    twin: str = ""

    @property
    def reason(self) -> str:
        """One sentence for `why` and `explain`."""
        if not self.known:
            return "in no table: NotHandle, and not named in FaultCode"
        return f"listed as {self.level.text} at {self.place}" + (f", as {self.twin}" if self.twin else "")


@dataclass(frozen=True, slots=True)
class SwitchTable:
    """records: by exact text. alias_old_ids: a code with the old alarm id counts as its twin (5.1)."""

    records: Mapping[str, SwitchFaultRecord] = field(default_factory=dict)
    alias_old_ids: bool = True

    def lookup(self, code: SwitchCode) -> SwitchFaultRecord | None:
        """The record of a code, or of its twin where old ids are aliases; None when no table has either."""
        own = self.records.get(code.text)
        if own is not None and own.level is not None:
            return own
        return (self.records.get(_twin(code).text) if self.alias_old_ids else None) or own

    def level_of(self, code: SwitchCode) -> SwitchDecision:
        """The level of a code by itself; a code in no table is NotHandle and not listed (6)."""
        record = self.lookup(code)
        if record is None or record.level is None:
            return SwitchDecision(SwitchLevel.NOT_HANDLE, False, _NOWHERE)
        twin = record.text if record.text != code.text else ""
        return SwitchDecision(record.level, True, record.level_place, twin)

    def name_of(self, code: SwitchCode) -> str:
        """English name, empty when nobody gave one."""
        record = self.lookup(code)
        return "" if record is None else record.name_en

    def overlaid(self, records: Iterable[SwitchFaultRecord], alias_old_ids: bool | None) -> "SwitchTable":
        """A new table with complete records over those of this one; alias_old_ids None = as it is."""
        merged = dict(self.records) | {record.text: record for record in records}
        return SwitchTable(merged, self.alias_old_ids if alias_old_ids is None else alias_old_ids)

    def with_levels(self, entries: Iterable[SwitchEntry]) -> "SwitchTable":
        """A new table whose levels are those of `entries` and no others, while texts stay (5, "replaces")."""
        records = {text: replace(record, level=None) for text, record in self.records.items()}
        for entry in entries:
            old = records.get(entry.text) or SwitchFaultRecord(entry.text, entry.place, entry.place)
            records[entry.text] = replace(old, level=entry.level, level_place=entry.place)
        return SwitchTable(records, self.alias_old_ids)

    def levels(self) -> dict[str, SwitchLevel]:
        """Every listed code with its level, in the order of the documents."""
        return {text: record.level for text, record in self.records.items() if record.level is not None}


def _twin(code: SwitchCode) -> SwitchCode:
    """The code under the alarm id of today."""
    return code._replace(alarm_id=PORT_ALARM) if code.alarm_id == OLD_PORT_ALARM else code
