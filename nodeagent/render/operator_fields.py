"""The two fields that outlive us and that an operator may edit: manual separation and upgrade reasons (device-info 6).

Tolerant towards single names, strict towards the whole: a field that is missing or no text says nothing, and
nothing is never a lift (R8).
"""

import json
import re
from collections.abc import Mapping

from nodeagent.core.levels import Level
from nodeagent.core.model import Reason, UpgradeType
from nodeagent.render.reading import INT64

_NAME = re.compile(r"(?:Ascend910|Ascend310P|Ascend310|npu)-(\d{1,9})")
_KEY = re.compile(r"[A-Za-z0-9]+-(\d{1,9})")


def manual_ids(data: Mapping[str, object]) -> frozenset[int] | None:
    """Physical ids named in `ManuallySeparateNPU`; None when the field is missing or no text.

    A name counts by its beginning, as upstream matches it; malformed names are left out, doubled ones count once.
    """
    text = data.get("ManuallySeparateNPU")
    if not isinstance(text, str):
        return None
    found = (_NAME.match(name.strip()) for name in text.split(","))
    return frozenset(int(match.group(1)) for match in found if match)


def upgrade_reasons(data: Mapping[str, object]) -> tuple[tuple[int, Reason], ...]:
    """(physical id, reason) of `UpgradeFaultReason`; empty when any part of it is not as written by a device plugin.

    Bad JSON or a bad key discards the whole object (chip-faults 7.4).
    """
    text = data.get("UpgradeFaultReason")
    if not isinstance(text, str):
        return ()
    try:
        document = json.loads(text)
        return tuple((_physical_id(key), _reason(entry)) for key, entries in document.items() for entry in entries)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ()


def _physical_id(key: str) -> int:
    match = _KEY.fullmatch(key)
    if match is None:
        raise ValueError(f"{key!r} is no device name")
    return int(match.group(1))


def _reason(entry: Mapping[str, object]) -> Reason:
    upgrade_time_ms, code_text = entry["upgrade_time"], entry["fault_code"]
    if type(upgrade_time_ms) is not int or upgrade_time_ms not in INT64 or not isinstance(code_text, str):
        raise ValueError("a reason has a time and a code")
    level = Level.parse(str(entry["fault_level"]))
    if level is Level.NORMAL:
        raise ValueError("nothing is raised to no fault")
    return Reason(upgrade_time_ms, code_text, level, UpgradeType(entry["upgrade_type"]))
