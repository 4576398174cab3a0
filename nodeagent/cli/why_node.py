"""`nodeagent why node`: which alarm of the board makes the node what it is, and what ends it."""

from typing import Any

from nodeagent.cli.scan_node import count_text, device_text
from nodeagent.cli.why_switch import time_text

MAX_UNLISTED = 20
"""Alarms without a level that are shown one by one; of more, their number."""


def as_text(report: dict[str, Any]) -> str:
    """The report of `explain_board` for people."""
    lines = [f"board, asked through {report['transport']}" + _serial(report)]
    if not report["known"]:
        lines.append(f"  nothing is known, {report['why_unknown']}")
    else:
        lines.append(f"  node level     {report['level'] or 'none'} -> {report['status']}, for the whole node")
    if report["silent_since_ms"] is not None:
        old = "what is shown may be old" if report["stale"] else "this is not told to anybody before the third failure"
        since = time_text(report["silent_since_ms"])
        lines.append(f"  the BMC gives no answer since {since} ({report['why_silent']}); {old}")
    if (tried := report["last_try"]) is not None:
        result = "good" if tried["good"] else f"failed, number {tried['failed_in_a_row']} in a row"
        lines.append(f"  last poll      {result}, {tried['age_s']:.0f} s ago")
    if report["known"]:
        lines += _faults(report) + _unlisted(report["unlisted"])
    if report["ends"]:
        lines.append(f"ends: {report['ends']}")
    lines.append("published")
    lines += [f"  {key}: {what}" for key, what in report["published"].items()]
    if (configured := report["configuration"]) is not None:
        lines.append(f"configuration {configured['version']} from {', '.join(configured['layers'])}")
    return "\n".join(lines)


def _serial(report: dict[str, Any]) -> str:
    return f", serial number {report['serial_number']}" if report["serial_number"] else ""


def _faults(report: dict[str, Any]) -> list[str]:
    lines = ["faults" if report["faults"] else "faults: none"]
    # What decides comes first; else the order stays that of devices and codes.
    for fault in sorted(report["faults"], key=lambda fault: not fault["decides"]):
        decides = "  <- decides" if fault["decides"] else ""
        lines.append(f"  {fault['code']} {fault['level']}  {device_text(fault)}: {fault['name']}{decides}")
        lines.append(f"    {_times(fault)}; {fault['said_by']}")
        if fault["advice"]:
            lines.append(f"    {fault['advice']}")
    return lines


def _unlisted(alarms: list[dict[str, Any]]) -> list[str]:
    if not alarms:
        return []
    lines = [f"left out: {count_text(len(alarms), 'alarm')} in no table of node faults, published nowhere"]
    for alarm in alarms[:MAX_UNLISTED]:
        lines.append(f"  {alarm['code']}  {device_text(alarm)}: {alarm['name']}")
        lines.append(f"    {_times(alarm)}")
    if (more := len(alarms) - MAX_UNLISTED) > 0:
        lines.append(f"  and {more} more")
    return lines


def _times(alarm: dict[str, Any]) -> str:
    seen = "" if alarm["since_ms"] is None else f"seen since {time_text(alarm['since_ms'])}, "
    return f"{seen}raised {time_text(alarm['raised_ms'])} by the clock of the BMC, {alarm['severity']}"
