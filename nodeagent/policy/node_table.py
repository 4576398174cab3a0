"""The table of node faults: level and texts of each alarm code of the BMC (node-faults 7).

Immutable; a reload makes a new one. A white list: a code without a level is published nowhere. Codes are keyed by
text, because upstream's syntax allows letters that no alarm can have (7.2).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from nodeagent.core.alarms import NodeLevel
from nodeagent.policy.table_records import Place


@dataclass(frozen=True, slots=True)
class NodeFaultRecord:
    """All that the tables say of one code. text: eight upper-case letters and digits. level None: described only.

    place: where the record begins. level_place: where its level was said last. Texts that nobody gave are empty.
    """

    text: str
    place: Place
    level_place: Place
    level: NodeLevel | None = None
    name_en: str = ""
    name_zh: str = ""
    advice_en: str = ""
    advice_zh: str = ""
    notes: str = ""
    name_basis: str = ""


@dataclass(frozen=True, slots=True)
class NodeEntry:
    """A level from upstream's document, for `NodeTable.with_levels`."""

    text: str
    level: NodeLevel
    place: Place


@dataclass(frozen=True, slots=True)
class NodeTable:
    """records: by text of the code."""

    records: Mapping[str, NodeFaultRecord] = field(default_factory=dict)

    def lookup(self, text: str) -> NodeFaultRecord | None:
        """The record of a code; None when no table has it."""
        return self.records.get(text)

    def level_of(self, text: str) -> NodeLevel | None:
        """The level of a code; None when no table lists it, so that it is left out (7.1)."""
        record = self.records.get(text)
        return None if record is None else record.level

    def name_of(self, text: str) -> str:
        """English name, empty when nobody gave one."""
        record = self.records.get(text)
        return "" if record is None else record.name_en

    def overlaid(self, records: Iterable[NodeFaultRecord]) -> "NodeTable":
        """A new table with complete records over those of this one."""
        return NodeTable(dict(self.records) | {record.text: record for record in records})

    def with_levels(self, entries: Iterable[NodeEntry]) -> "NodeTable":
        """A new table whose levels are those of `entries` and no others, while texts stay (decision 12)."""
        records = {text: replace(record, level=None) for text, record in self.records.items()}
        for entry in entries:
            old = records.get(entry.text) or NodeFaultRecord(entry.text, entry.place, entry.place)
            records[entry.text] = replace(old, level=entry.level, level_place=entry.place)
        return NodeTable(records)

    def levels(self) -> dict[str, NodeLevel]:
        """Every listed code with its level, in the order of the documents."""
        return {text: record.level for text, record in self.records.items() if record.level is not None}


@dataclass(frozen=True, slots=True)
class NodeConfiguration:
    """The table of node faults in force. version: digest of what it was made from. layers: documents, lowest first."""

    table: NodeTable
    version: str
    layers: tuple[str, ...] = ()
