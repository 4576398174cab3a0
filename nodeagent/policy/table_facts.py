"""Everything that is known of one code, as plain data for `explain` and for other JSON answers."""

from typing import Any

from nodeagent.core.levels import Severity
from nodeagent.policy.table import FaultTable
from nodeagent.policy.table_records import FaultRecord, Finding
from nodeagent.policy.table_words import Words
from nodeagent.policy.unknown import BlackBoxCode, HealthEvent, recovery_partner
from nodeagent.policy.vocabulary import Description, Vocabulary

Facts = dict[str, Any]


def facts_of(code: int, table: FaultTable, vocabulary: Vocabulary, warnings: tuple[Finding, ...] = ()) -> Facts:
    """All that is known of a code, as the JSON answer shows it; absent facts are null or empty.

    warnings: of the table's loading; those about this code are passed on.
    """
    record = table.lookup(code)
    described = vocabulary.describe(code)
    severity = record.severity if record else described.severity
    severity_name = None if severity is None else severity.name.lower()
    decision = table.level_of(code, None)
    level = decision.level.text if decision.known else None
    partner = recovery_partner(code)
    text = table.text_of(code)
    return {
        "code": text,
        "known": record is not None,
        "name": {
            "en": (record.name_en if record else "") or described.name.en,
            "zh": (record.name_zh if record else "") or described.name.zh,
        },
        "level": level,
        "level_meaning": _meaning(vocabulary, "levels", level),
        "level_at": str(decision.place) if decision.known else None,
        "listed_at": str(record.place) if record else None,
        "if_unlisted": None if level else _at_each_severity(code, table),
        "plane": decision.plane.value,
        "plane_meaning": _meaning(vocabulary, "planes", decision.plane.value),
        "severity": severity_name,
        "severity_meaning": _meaning(vocabulary, "severities", severity_name),
        "opaque": record.name_basis == "opaque" if record else described.opaque,
        "bits": _bits(described),
        "recovers": table.text_of(partner) if partner is not None else None,
        "warnings": [finding.sentence for finding in warnings if finding.code == text],
        "suppressed": [
            {
                "chips": "all" if each.chips is None else sorted(each.chips),
                "reason": each.reason,
                "until": each.until,
                "said_at": str(each.place),
            }
            for each in table.suppressions
            if each.code == code
        ],
        **(_record_facts(record, table, vocabulary) if record else {}),
    }


def _record_facts(record: FaultRecord, table: FaultTable, vocabulary: Vocabulary) -> Facts:
    twins = [(table.text_of(twin), table.lookup(twin)) for twin in record.twins]
    return {
        "module": record.module,
        "kind": record.kind.value,
        "kind_meaning": _meaning(vocabulary, "kinds", record.kind.value),
        "category": record.category or None,
        "category_meaning": _meaning(vocabulary, "categories", record.category),
        "advice": {"en": record.advice_en, "zh": record.advice_zh} if record.advice_en else None,
        "twins": [{"code": text, "level": _level_text(twin)} for text, twin in twins],
        "notes": record.notes or None,
        "products": list(record.products),
        "refs": list(record.refs),
        "name_basis": record.name_basis,
        "name_basis_meaning": _meaning(vocabulary, "name_bases", record.name_basis),
    }


def _at_each_severity(code: int, table: FaultTable) -> Facts:
    """How the rule for unlisted codes levels this one at every severity, the unknown one included."""
    cases: list[Severity | None] = [*Severity, None]
    decisions = {case.name.lower() if case is not None else "unknown": table.level_of(code, case) for case in cases}
    return {name: {"level": decision.level.text, "place": str(decision.place)} for name, decision in decisions.items()}


def _bits(described: Description) -> Facts | None:
    fields = described.fields
    if isinstance(fields, HealthEvent):
        return {
            "form": "health event",
            "side": fields.side.value,
            "node": f"0x{fields.node:02X}",
            "block": _pair(described.block),
            "sensor": f"0x{fields.sensor:02X}",
            "sensor_name": _pair(described.sensor),
            "state": f"0x{fields.state:02X}",
            "state_name": _pair(described.state),
        }
    if isinstance(fields, BlackBoxCode):
        return {
            "form": "black-box code",
            "kind": fields.kind.value,
            "severity": fields.severity.name.lower() if fields.severity is not None else None,
            "module": f"0x{fields.module:02X}",
            "block": _pair(described.block),
            "detail": f"0x{fields.detail:05X}",
        }
    return None


def _pair(words: Words | None) -> dict[str, str] | None:
    return {"en": words.en, "zh": words.zh} if words else None


def _meaning(vocabulary: Vocabulary, section: str, word: str | None) -> dict[str, str] | None:
    return _pair(vocabulary.word(section, word)) if word else None


def _level_text(record: FaultRecord | None) -> str | None:
    return record.level.text if record is not None and record.level is not None else None
