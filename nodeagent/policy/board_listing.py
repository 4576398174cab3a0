"""The board as JSON for `nodeagent scan`, `/state` and the socket. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nodeagent.policy.board import AlarmKey, BoardState, Sighting
from nodeagent.policy.node_table import NodeConfiguration, NodeTable

NO_NAME = "no table names it"
_SEVERITIES = ("normal", "minor", "major", "critical")


@dataclass(frozen=True, slots=True)
class BoardAccess:
    """What is known of the BMC beside its alarms. transport: how it is asked, for people, e.g. `/dev/ipmi0`.

    serial_number: of the product; empty while it is not known, and where the board has none.
    """

    transport: str
    serial_number: str = ""


def board_json(
    state: BoardState, config: NodeConfiguration | None, access: BoardAccess, source: str = "daemon"
) -> dict[str, Any]:
    """All that is known of the board. source: `daemon`, or anything else for one look, which has no history.

    known: false before a good poll and a table; then status is null, and `why_unknown` says what is missing. level:
    null without a fault that a table lists. stale: three polls in a row have failed; silent_since_ms and why_silent are
    told from the first failed one on. no_way: nobody could be asked at the last poll, because there is no device, no
    address, no credentials. answered_ms: begin of the last good poll. Times are Unix milliseconds.
    """
    view, silence = state.view, state.silence
    table = None if view is None or config is None else config.table
    return {
        "known": table is not None,
        "why_unknown": None if table is not None else why_unknown(state),
        "transport": access.transport,
        "serial_number": access.serial_number or None,
        "status": None if view is None else view.status,
        "level": None if view is None or view.level is None else view.level.text,
        "stale": state.stale,
        "silent_since_ms": None if silence is None else silence.since.wall_ms,
        "why_silent": None if silence is None else silence.why,
        "no_way": silence is not None and silence.no_way,
        "answered_ms": None if state.answered is None else state.answered.wall_ms,
        "devices": [
            {
                "device_type": device.device_type,
                "device_id": device.device_id,
                "level": device.level.text,
                "codes": list(device.codes),
            }
            for device in (() if view is None else view.devices)
        ],
        "alarms": alarms_json(state, table, source),
    }


def alarms_json(state: BoardState, table: NodeTable | None, source: str) -> list[dict[str, Any]]:
    """Every present alarm, by device and code; none before there is a table to judge by."""
    return [] if table is None else [_alarm(key, seen, state, table, source) for key, seen in state.sightings.items()]


def _alarm(key: AlarmKey, seen: Sighting, state: BoardState, table: NodeTable, source: str) -> dict[str, Any]:
    """level: null = no table lists the code, so it is published nowhere. raised_ms: by the clock of the BMC, which may
    be wrong. since_ms: of the first poll with it."""
    record, level = table.lookup(key.code), level_of(state.levels, key)
    return {
        "code": key.code,
        "name": (record.name_en if record else "") or NO_NAME,
        "name_zh": (record.name_zh if record else "") or None,
        "device_type": key.device_type,
        "device_id": key.device_id,
        "level": level,
        "severity": severity_text(seen.alarm.severity),
        "raised_ms": seen.alarm.raised_s * 1000,
        "since_ms": seen.since.wall_ms if source == "daemon" else None,
    }


def level_of(levels: Mapping[AlarmKey, Any], key: AlarmKey) -> str | None:
    """Spelling of the level in force; None = in no table."""
    level = levels.get(key)
    return None if level is None else str(level.text)


def severity_text(severity: int) -> str:
    """What the BMC says of an alarm (3.2); nothing follows from it."""
    return _SEVERITIES[severity] if 0 <= severity < len(_SEVERITIES) else f"severity {severity}"


def why_unknown(state: BoardState) -> str:
    """What is missing before anything can be said of the board, for people."""
    if state.answered is not None:
        return "the table of node faults is not loaded yet"
    if state.silence is not None:
        return f"the BMC gives no answer: {state.silence.why}"
    return "the BMC has not answered yet"
