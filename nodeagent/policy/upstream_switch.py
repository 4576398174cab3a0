"""Upstream's SwitchFaultCode.json, read and written (lingqu-switch-faults 5).

Read as upstream reads it: what it drops is a warning here, a member that is no list of texts refuses the document.
"""

import json
from collections.abc import Iterable

from nodeagent.core.switch_codes import MAX_CODE_LETTERS, SwitchLevel, parse_switch_code
from nodeagent.policy.switch_table import SwitchEntry, SwitchTable
from nodeagent.policy.table_yaml import shown
from nodeagent.policy.upstream_document import Document, LevelsRead, read_lists

SWITCH_CODES_KEY = "SwitchFaultCode.json"
"""Key of the ConfigMap, and name of the file, with the levels of switch faults."""
SWITCH_LISTS = {
    "SeparateFaultCodes": SwitchLevel.SEPARATE,
    "ResetFaultCodes": SwitchLevel.SEPARATE,
    "PreSeparateFaultCodes": SwitchLevel.PRE_SEPARATE,
    "RestartRequestFaultCodes": SwitchLevel.RESTART_REQUEST,
    "SubHealthFaultCodes": SwitchLevel.SUB_HEALTH,
    "NotHandleFaultCodes": SwitchLevel.NOT_HANDLE,
}
"""Members, the most serious level first: that one wins; what must be reset is separated."""


def read_switch_levels(label: str, text: str) -> LevelsRead[SwitchEntry]:
    """The levels of a SwitchFaultCode.json, for `SwitchTable.with_levels`. label: for places. Never raises."""
    return read_lists(label, text, SWITCH_LISTS, _take)


def switch_levels_json(table: SwitchTable) -> str:
    """A SwitchFaultCode.json with the level of every code that has one; ResetFaultCodes is empty, as shipped."""
    lists: dict[str, list[str]] = {name: [] for name in reversed(SWITCH_LISTS)}
    names = {level: name for name, level in SWITCH_LISTS.items() if name != "ResetFaultCodes"}
    for text, level in sorted(table.levels().items()):
        lists[names[level]].append(text)
    return json.dumps(lists, indent=2) + "\n"


def switch_levels_yaml(entries: Iterable[SwitchEntry], table: SwitchTable, source: str) -> tuple[str, list[str]]:
    """A file of our format that stands for the document, and the codes that cannot be part of it: none reports them.

    table: names the codes in comments. source: what is converted, for the heading.
    """
    lines = [
        f"# Levels of {' '.join(source.split())}, converted by `nodeagent table convert`. Format: docs/switches.md.",
        "version: 1",
        "",
        "# Switch codes that are not listed here are unlisted, whatever the shipped table says.",
        "replace: [switch_levels]",
        "",
        "switch:",
        "  faults:",
    ]
    left_out: list[str] = []
    written = 0
    for entry in sorted(entries, key=lambda each: each.level):
        if not is_exact(entry.text):
            left_out.append(entry.text)
            continue
        written += 1
        record = table.records.get(entry.text)
        name = f"  # {' '.join(record.name_en.split())}" if record is not None and record.name_en else ""
        lines.append(f'    - {{code: "{entry.text}", level: {entry.level.text}}}{name}')
    if not written:
        lines[-1] = "  faults: []"
    return "\n".join(lines) + "\n", left_out


def is_exact(text: str) -> bool:
    """Whether a code has exactly the text that a switch can report; comparisons are exact (4)."""
    try:
        return parse_switch_code(text).text == text
    except ValueError:
        return False


def _take(
    document: Document, entries: dict[str, SwitchEntry], name: str, level: SwitchLevel, written: str, offset: int
) -> None:
    """Add one listed code, unless upstream drops it (5) or it has a level at least as serious."""
    if len(written) > MAX_CODE_LETTERS:
        document.warn(offset, "", f"{shown(written)} in {name} has more than {MAX_CODE_LETTERS} letters and is skipped")
        return
    if not written.startswith("[") or not written.endswith("]") or written.count(",") != 3:
        document.warn(offset, "", f"{shown(written)} in {name} is not four parts in brackets and is skipped")
        return
    if not is_exact(written):
        document.warn(offset, written, f"never matches: no switch reports {shown(written)}, letters and blanks count")
    old = entries.get(written)
    entry = SwitchEntry(written, level, document.place(offset))
    if old is None:
        entries[written] = entry
    elif old.level is level:
        document.warn(offset, written, f"is listed twice as {level.text}")
    else:
        document.warn(offset, written, f"is listed as {level.text} too; {old.level.text} at {old.place} counts")
