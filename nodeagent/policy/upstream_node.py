"""Upstream's NodeDConfiguration.json, read and written (node-faults 7.2).

Read as upstream means it: what it passes over is a warning here, a code that is none or that stands in two lists
refuses the document. Upstream's start takes the latter and then knows no level at all (7.3).
"""

import json
from collections.abc import Iterable

from nodeagent.core.alarms import NodeLevel
from nodeagent.policy.node_document import NEVER_MATCHES, can_be_reported, node_code_text
from nodeagent.policy.node_table import NodeEntry, NodeTable
from nodeagent.policy.table_yaml import shown
from nodeagent.policy.upstream_document import Document, LevelsRead, texts, typed
from nodeagent.policy.upstream_json import BadJson

NODE_CODES_KEY = "NodeDConfiguration.json"
"""Key of the ConfigMap, and name of the file, with the levels of node faults."""
NODE_TOP = "FaultTypeCode"
"""The object inside that has the lists."""
_LISTS = {level.upstream_key: level for level in NodeLevel}


def read_node_levels(label: str, text: str) -> LevelsRead[NodeEntry]:
    """The levels of a NodeDConfiguration.json, for `NodeTable.with_levels`. label: for places. Never raises.

    Codes come out in upper case. A list that is missing or null is empty; FaultTypeCode must be there.
    """
    document = Document(label, text)
    entries: dict[str, NodeEntry] = {}
    try:
        root = document.root()
        found = dict(document.fields(root, {NODE_TOP.lower(): NODE_TOP}))
        inside = typed(found[NODE_TOP], "object", NODE_TOP) if NODE_TOP in found else None
        if inside is None:
            raise BadJson(root.offset, f"{NODE_TOP} is missing or null")
        lists = dict(document.fields(inside, {name.lower(): name for name in _LISTS}))
        for name, level in _LISTS.items():
            for written, offset in texts(lists[name], name) if name in lists else ():
                _take(document, entries, level, written, offset)
    except BadJson as bad:
        document.refuse(bad)
    document.findings.sort(key=lambda finding: finding.place.line)
    if any(finding.serious for finding in document.findings):
        entries = {}
    return LevelsRead(list(entries.values()), document.findings)


def node_levels_json(table: NodeTable) -> str:
    """A NodeDConfiguration.json with the level of every code that has one."""
    lists: dict[str, list[str]] = {name: [] for name in _LISTS}
    for text, level in sorted(table.levels().items()):
        lists[level.upstream_key].append(text)
    return json.dumps({NODE_TOP: lists}, indent=2) + "\n"


def node_levels_yaml(entries: Iterable[NodeEntry], table: NodeTable, source: str) -> str:
    """A file of our format that stands for the document.

    table: names the codes in comments. source: what is converted, for the heading.
    """
    name = " ".join(source.split())
    lines = [
        f"# Levels of {name}, converted by `nodeagent table convert`. Format: docs/fault-tables.md.",
        "version: 1",
        "",
        "# Alarms of the BMC that are not listed here are published nowhere, whatever the shipped table says.",
        "replace: [node_levels]",
        "",
        "node:",
        "  faults:",
    ]
    ordered = sorted(entries, key=lambda each: each.level)
    for entry in ordered:
        english = " ".join(table.name_of(entry.text).split())
        comment = f"  # {english}" if english else ""
        lines.append(f'    - {{code: "{entry.text}", level: {entry.level.text}}}{comment}')
    if not ordered:
        lines[-1] = "  faults: []"
    return "\n".join(lines) + "\n"


def _take(document: Document, entries: dict[str, NodeEntry], level: NodeLevel, written: str, offset: int) -> None:
    """Add one listed code; what refuses the document is found and told for every code."""
    code = node_code_text(written)
    # Upstream knows no `0x` and no blanks around a code.
    if code is None or len(written) != len(code):
        document.drop(offset, "", f"{shown(written)} in {level.upstream_key} is no code of eight letters and digits")
        return
    old = entries.get(code)
    if old is None:
        entries[code] = NodeEntry(code, level, document.place(offset))
        if not can_be_reported(code):
            document.warn(offset, code, NEVER_MATCHES)
    elif old.level is level:
        document.warn(offset, code, f"is listed twice as {level.text}")
    else:
        document.drop(offset, code, f"is in two lists: as {level.text} here, as {old.level.text} at {old.place}")
