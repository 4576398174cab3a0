"""Upstream's documents of levels and of the poll interval (chip-faults 3.2, 3.3, 6.2).

faultCode.json replaces all levels below it. What upstream forgives is a warning here; what it cannot read is a
finding that refuses the document. Nothing in this module raises.
"""

import re

from nodeagent.core.codes import NETWORK_CODES
from nodeagent.core.levels import Level
from nodeagent.policy.table import LevelEntry
from nodeagent.policy.table_draft import NETWORK_LEVELS, TABLE_LEVELS
from nodeagent.policy.table_records import Finding, Place
from nodeagent.policy.table_yaml import shown
from nodeagent.policy.upstream_document import Document, LevelsRead, read_lists

FAULT_CODES_KEY = "faultCode.json"
"""Key of the ConfigMap, and name of the file, with the levels."""
POLL_INTERVAL_KEY = "PollInterval"
"""Key of the ConfigMap with the seconds between two reads of it."""
POLL_INTERVAL_S = 300
"""Seconds between two reads where nothing valid is said (chip-faults 6.2)."""
_POLL_RANGE_S = range(30, 3601)

CHIP_LISTS = {f"{level.text}Codes": level for level in reversed(TABLE_LEVELS)}
"""Keys of the lists of chip codes, the most serious level first: that one wins (chip-faults 3.3)."""
NETWORK_LISTS = {f"{level.text}NetworkCodes": level for level in reversed(NETWORK_LEVELS)}
"""Keys of the lists of the parameter plane, the most serious level first."""
_HEX = re.compile(r"[0-9A-Fa-f]{1,16}")
_MAX_CODE = 2**40


def read_levels(label: str, text: str) -> LevelsRead[LevelEntry]:
    """The levels of a faultCode.json, for `FaultTable.with_levels`.

    label: file name or object key, for places. Keys fit in any letter case, unknown ones and codes that are not
    hexadecimal are passed over with a warning, null is an empty list; a wrong type anywhere refuses the document.
    A code in several lists has the most serious of their levels, a Restart level of a code of the parameter plane
    is NotHandleFault there, both with a warning.
    """
    return read_lists(label, text, CHIP_LISTS | NETWORK_LISTS, _take)


def parse_code_text(written: str) -> int | None:
    """The number of a code in upstream's documents: hexadecimal digits in any letter case, nothing else (3.2).

    None for `0x`, signs, blanks and numbers beyond 40 bits, which no chip can report.
    """
    number = int(written, 16) if _HEX.fullmatch(written) else _MAX_CODE
    return number if number < _MAX_CODE else None


def read_poll_interval(label: str, text: str) -> tuple[int, list[Finding]]:
    """Seconds between two reads of the ConfigMap, 30..3600, and why they are 300 where the text says nothing usable.

    Blanks and line ends around the number do not matter: files have them.
    """
    digits = text.strip()
    if digits.isascii() and digits.isdigit() and len(digits) < 6 and int(digits) in _POLL_RANGE_S:
        return int(digits), []
    bounds = f"{_POLL_RANGE_S[0]}..{_POLL_RANGE_S[-1]}"
    sentence = f"{shown(digits)} is not a number of seconds in {bounds}; {POLL_INTERVAL_S} is used"
    return POLL_INTERVAL_S, [Finding(Place(label, 1), "", sentence, serious=False)]


def _take(
    document: Document, entries: dict[int, LevelEntry], name: str, level: Level, written: str, offset: int
) -> None:
    """Add one listed code, unless it is not one or already has a level at least as serious."""
    code = parse_code_text(written)
    if code is None:
        document.warn(offset, "", f"{shown(written)} in {name} is not a hexadecimal code and is skipped")
        return
    text = written.upper()
    if name in NETWORK_LISTS and code not in NETWORK_CODES:
        document.warn(offset, text, f"is no code of the parameter plane; its place in {name} is ignored")
        return
    if code in NETWORK_CODES and level not in NETWORK_LEVELS:
        document.warn(offset, text, f"level {level.text} does not exist on the parameter plane; NotHandleFault is used")
        level = Level.NOT_HANDLE
    entry = LevelEntry(code, text, level, document.place(offset))
    old = entries.get(code)
    if old is None:
        entries[code] = entry
        return
    winner, loser = (entry, old) if level > old.level else (old, entry)
    entries[code] = winner
    if winner.level is loser.level:
        sentence = f"is listed twice as {level.text}"
    else:
        sentence = f"is listed as {loser.level.text} too; {winner.level.text} at {winner.place} counts"
    document.findings.append(Finding(loser.place, text, sentence, serious=False))
