"""Writes what is in force as upstream's JSON documents, and what those say as our YAML (`nodeagent table convert`).

Loss-free means: the same effective level for every code, the same rules, GraceTolerance carried through; a duplicate
has become the one entry that counts. The texts are made for people to go on editing.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nodeagent.core.levels import Level
from nodeagent.policy.rules import NEVER_S, DurationRule, FrequencyRule, RuleSet
from nodeagent.policy.rules_load import RulesRead
from nodeagent.policy.table import FaultTable, LevelEntry
from nodeagent.policy.table_draft import TABLE_LEVELS, is_code_text
from nodeagent.policy.upstream import CHIP_LISTS
from nodeagent.policy.upstream_rules import DURATION, FREQUENCY, GRACE

_CODES_IN_LINE = 9


def levels_json(table: FaultTable) -> str:
    """A faultCode.json with the level of every code that has one, in the order of the codes; aliases included."""
    lists: dict[str, list[str]] = {f"{level.text}Codes": [] for level in TABLE_LEVELS}
    for record in sorted(table.records(), key=lambda each: each.code):
        if record.level is not None:
            lists[f"{record.level.text}Codes"] += [table.text_of(code) for code in (record.code, *record.aliases)]
    return json.dumps(lists, indent=2) + "\n"


def customization_json(rules: RuleSet, table: FaultTable, grace: Mapping[str, int] | None) -> str:
    """A faultCustomization.json with all frequency and duration rules, equal ones in a group. table: spells codes."""
    document: dict[str, Any] = {GRACE: dict(grace)} if grace is not None else {}
    document[FREQUENCY] = [
        {"EventId": [table.text_of(rule.code) for rule in group]} | _frequency_fields(group[0])
        for group in _grouped(rules.frequency.values())
    ]
    document[DURATION] = [
        {
            "EventId": [table.text_of(rule.code) for rule in group],
            "FaultTimeout": group[0].fault_s,
            "RecoverTimeout": group[0].recover_s,
            "FaultHandling": group[0].handling.text,
        }
        for group in _grouped(rules.duration.values())
    ]
    return json.dumps(document, indent=2) + "\n"


def levels_yaml(entries: Iterable[LevelEntry], table: FaultTable, source: str) -> tuple[str, list[str]]:
    """A table of our format that stands for a faultCode.json, and the texts of codes that cannot be part of it.

    table: spells codes, and names them in comments. source: what is converted, for the heading. The table replaces
    all levels below it, as the JSON document does.
    """
    lines = [
        f"# Levels of {_one_line(source)}, converted by `nodeagent table convert`. Format: docs/fault-tables.md.",
        "version: 1",
        "",
        "# Codes that are not listed here are unlisted, whatever the shipped tables say.",
        "replace: [levels]",
        "",
        "faults:",
    ]
    left_out: list[str] = []
    by_level: dict[Level, list[LevelEntry]] = {}
    for entry in entries:
        by_level.setdefault(entry.level, []).append(entry)
    for level in reversed(CHIP_LISTS.values()):
        for entry in by_level.get(level, ()):
            if not is_code_text(text := _spelled(entry.code, table, entry.text)):
                left_out.append(text)
                continue
            record = table.lookup(entry.code)
            name = f"  # {_one_line(record.name_en)}" if record is not None and record.name_en else ""
            lines += [f'  - {{code: "{text}", level: {level.text}}}{name}']
    if not by_level:
        lines[-1] = "faults: []"
    return "\n".join(lines) + "\n", left_out


def rules_yaml(read: RulesRead, table: FaultTable, source: str) -> tuple[str, list[str]]:
    """Rules of our format that stand for a faultCustomization.json; arguments and answer as in `levels_yaml`."""
    lines = [
        f"# Rules of {_one_line(source)}, converted by `nodeagent table convert`. Format: docs/rules.md.",
        "version: 1",
        "",
        "# Frequency and duration rules that are not listed here do not exist, whatever the shipped rules say.",
        "replace: [rules]",
    ]
    left_out: list[str] = []

    def codes(group: Sequence[FrequencyRule] | Sequence[DurationRule]) -> list[str]:
        spelled = [_spelled(rule.code, table, f"{rule.code:X}") for rule in group]
        left_out.extend(text for text in spelled if not is_code_text(text))
        return _code_lines([text for text in spelled if is_code_text(text)])

    sections: list[tuple[str, list[list[str]]]] = [
        ("frequency", [codes(g) + _frequency_lines(g[0]) for g in _grouped(read.frequency.values())]),
        ("duration", [codes(g) + _duration_lines(g[0]) for g in _grouped(read.duration.values())]),
    ]
    for section, groups in sections:
        written = [group for group in groups if group[0].strip() != "- codes: []"]
        lines += ["", f"{section}:" if written else f"{section}: []"]
        lines += [line for group in written for line in group]
    if read.grace is not None:
        lines += ["", "grace_tolerance:" if read.grace else "grace_tolerance: {}"]
        lines += [f"  {name}: {seconds}" for name, seconds in read.grace.items()]
    return "\n".join(lines) + "\n", left_out


def _frequency_fields(rule: FrequencyRule) -> dict[str, object]:
    fields: dict[str, object] = {
        "TimeWindow": rule.window_s,
        "Times": rule.times,
        "FaultHandling": rule.handling.text,
    }
    # A handling that ends by itself needs the number even where it means never (chip-faults 5.2).
    if rule.release_s != NEVER_S or rule.handling is not Level.MANUALLY_SEPARATE:
        fields["ReleaseTimeWindow"] = rule.release_s
    return fields


def _frequency_lines(rule: FrequencyRule) -> list[str]:
    never = rule.release_s == NEVER_S and rule.handling is Level.MANUALLY_SEPARATE
    return [
        f"    window_s: {rule.window_s}",
        f"    times: {rule.times}",
        f"    handling: {rule.handling.text}",
        f"    release_s: {'never' if never else rule.release_s}",
    ]


def _duration_lines(rule: DurationRule) -> list[str]:
    return [
        f"    fault_s: {rule.fault_s}",
        f"    recover_s: {rule.recover_s}",
        f"    handling: {rule.handling.text}",
    ]


def _code_lines(texts: list[str]) -> list[str]:
    quoted = [f'"{text}"' for text in texts]
    rows = [", ".join(quoted[i : i + _CODES_IN_LINE]) for i in range(0, len(quoted), _CODES_IN_LINE)]
    if len(rows) < 2:
        return [f"  - codes: [{''.join(rows)}]"]
    return [
        "  - codes:",
        *(f"      {'[' if n == 0 else ' '}{row}{']' if n == len(rows) - 1 else ','}" for n, row in enumerate(rows)),
    ]


def _grouped(rules: "Iterable[FrequencyRule] | Iterable[DurationRule]") -> list[list[Any]]:
    """Rules that differ in nothing but the code, together, in the order of their first ones."""
    groups: dict[object, list[FrequencyRule | DurationRule]] = {}
    for rule in rules:
        if isinstance(rule, FrequencyRule):
            key: object = (rule.window_s, rule.times, rule.handling, rule.release_s)
        else:
            key = (rule.fault_s, rule.recover_s, rule.handling)
        groups.setdefault(key, []).append(rule)
    return list(groups.values())


def _spelled(code: int, table: FaultTable, written: str) -> str:
    """The table's spelling; of a code that it does not know the written one."""
    return table.text_of(code) if table.lookup(code) is not None else written


def _one_line(text: str) -> str:
    return " ".join(text.split())
