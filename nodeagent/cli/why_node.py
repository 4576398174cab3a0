"""`nodeagent why node`: which alarm of the board makes the node what it is, and what ends it."""

import argparse
import contextlib
import json
from pathlib import Path
from typing import Any

from nodeagent.cli import scan_storage
from nodeagent.cli.common import pretended
from nodeagent.cli.scan_node import count_text, device_text
from nodeagent.cli.why_switch import time_text
from nodeagent.core.settings import Settings
from nodeagent.daemon.oneshot_node_faults import look_at_node_faults
from nodeagent.daemon.socket_api import ask

MAX_UNLISTED = 20
"""Alarms without a level that are shown one by one; of more, their number."""


HEALTHY, FAULTS, UNKNOWN = 0, 1, 2


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print the report; returns the exit code of `nodeagent why`."""
    report = _look(arguments, settings)
    board, storage = report["board"], report["storage"]
    if arguments.output == "json":
        print(json.dumps(report, ensure_ascii=False, indent=2))
    else:
        said = "board: not asked (ipmi.transport=off)" if board is None else as_text(board)
        print("\n".join([said, *scan_storage.lines(storage, everything=True)]))
    if scan_storage.has_fault(storage) or (board is not None and board["faults"]):
        return FAULTS
    sure = board is None or (board["known"] and not board["stale"])
    return HEALTHY if sure and not scan_storage.is_unknown(storage) else UNKNOWN


def _look(arguments: argparse.Namespace, settings: Settings) -> dict[str, Any]:
    """What the daemon says, or one look. Raises SocketError when there is no daemon."""
    if not arguments.dry_run and not arguments.once:
        report: dict[str, Any] = ask(Path(settings.daemon.socket), ask="why_node")
        return report
    with contextlib.ExitStack() as stack:
        if arguments.dry_run:
            settings = stack.enter_context(pretended(settings))
        found = look_at_node_faults(settings)
    return {"board": found.why, "storage": found.storage}


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
