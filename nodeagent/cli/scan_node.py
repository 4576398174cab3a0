"""The part of `nodeagent scan` about the board of the node, for people."""

from typing import Any

from nodeagent.cli.why_switch import time_text

HEALTHY, FAULTS, UNKNOWN = 0, 1, 2
_HEAD = ("DEVICE", "LEVEL", "ALARM")
UNLISTED = "in no table"
"""Shown in place of the level of an alarm that is published nowhere."""


def verdict(board: dict[str, Any] | None) -> int:
    """What the board means for the exit code of `scan`; None: node faults are not watched."""
    if board is None:
        return HEALTHY
    if board["devices"]:
        return FAULTS
    if not board["known"] and board["no_way"]:
        return HEALTHY  # a board without a BMC that can be asked is no riddle; it is said
    return UNKNOWN if board["stale"] or not board["known"] else HEALTHY


def lines(board: dict[str, Any] | None) -> list[str]:
    """Lines of text; none where node faults are not watched."""
    if board is None:
        return []
    if not board["known"]:
        return [f"board: nothing is known, {board['why_unknown']}"]
    alarms = board["alarms"]
    text = f"board: {count_text(len(alarms), 'alarm')}, node {board['status']}"
    if board["level"]:
        text += f" ({board['level']})"
    if unlisted := sum(alarm["level"] is None for alarm in alarms):
        text += f", {unlisted} {UNLISTED}"
    text += silence_text(board)
    rows = [_HEAD] + [_row(alarm) for alarm in alarms]
    if len(rows) == 1:
        return [text]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_HEAD) - 1)]
    return [text] + ["  ".join([*(c.ljust(w) for c, w in zip(row, widths, strict=False)), row[-1]]) for row in rows]


def silence_text(board: dict[str, Any]) -> str:
    """Since when polls fail and why, beginning with a comma; empty while they are good."""
    if board["silent_since_ms"] is None:
        return ""
    return f", no answer since {time_text(board['silent_since_ms'])}: {board['why_silent']}"


def device_text(alarm: dict[str, Any]) -> str:
    """The device of an alarm, as the BMC numbers it."""
    return f"{alarm['device_type']} {alarm['device_id']}"


def count_text(count: int, noun: str) -> str:
    """A number and its noun."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _row(alarm: dict[str, Any]) -> tuple[str, str, str]:
    since = "" if alarm["since_ms"] is None else f", since {time_text(alarm['since_ms'])}"
    return device_text(alarm), alarm["level"] or UNLISTED, f"{alarm['code']} {alarm['name']}{since}"
