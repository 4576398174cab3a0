"""`nodeagent why switch SWITCH[/PORT]`: what is wrong with a switch, and what that does to the node."""

import argparse
import contextlib
import json
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from nodeagent.cli.common import pretended
from nodeagent.core.settings import Settings
from nodeagent.daemon.build import configuration
from nodeagent.daemon.oneshot import look_at_node
from nodeagent.daemon.socket_api import ask

HEALTHY, FAULTS, UNKNOWN = 0, 1, 2


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print the report; returns the exit code of `nodeagent why`. arguments.switch: switch, and port or None."""
    chip, port = arguments.switch
    if arguments.dry_run or arguments.once:
        report = _look(arguments, settings, chip, port)
    else:
        report = ask(Path(settings.daemon.socket), ask="why_switch", switch_chip=chip, port=port)
    if report is None:
        print("nodeagent: this node has no switches, or its driver has not listed the chips yet", file=sys.stderr)
        return UNKNOWN
    print(json.dumps(report, ensure_ascii=False, indent=2) if arguments.output == "json" else as_text(report))
    if not report["known"] or report["silent_since_ms"] is not None:
        return UNKNOWN
    return FAULTS if report["faults"] or report["plane"]["down"] else HEALTHY


def _look(arguments: argparse.Namespace, settings: Settings, chip: int, port: int | None) -> dict[str, Any] | None:
    config, _ = configuration(settings)
    with contextlib.ExitStack() as stack:
        if arguments.dry_run:
            settings = stack.enter_context(pretended(settings))
        found = look_at_node(settings, config, lambda _: None)
    return found.why_switch(chip, port, config)


def as_text(report: dict[str, Any]) -> str:
    """The report for people."""
    if not report["known"]:
        return f"{report['place']}: nothing is known of switches, {why_unknown(report)}"
    plane = report["plane"]
    lines = [
        report["place"],
        f"  node level     {report['node_level'] or 'none'} -> {report['node_status']}, for the whole node",
    ]
    if report["silent_since_ms"] is not None:
        since = time_text(report["silent_since_ms"])
        lines.append(f"  the library gives no answer since {since} ({report['why_silent']}); what is shown may be old")
    state = "down" if plane["down"] else "up"
    lines.append(
        f"  L1-L2 plane    {state}: {plane['ports_with_faults']} of its ports have faults, {plane['needed']} are down"
    )
    lines.append("faults" if report["faults"] else "faults: none")
    for fault in report["faults"]:
        place = "whole chip" if fault["port"] is None else f"port {fault['port']}"
        peer = f" towards {fault['peer']}" if fault["peer"] else ""
        once = ", shown once" if fault["once"] else ""
        lines.append(f"  {fault['code']} {fault['level']}  {place}{peer}: {fault['name']}")
        lines.append(f"    since {time_text(fault['since_ms'])}{once}; {fault['said_by']}")
    lines.append("published")
    lines += [f"  {key}: {what}" for key, what in report["fields"].items()]
    configured = report["configuration"]
    lines.append(f"configuration {configured['version']} from {', '.join(configured['layers'])}")
    return "\n".join(lines)


def why_unknown(switches: dict[str, Any]) -> str:
    """Why nothing is known of switches, from an answer of `scan` or `why`."""
    if switches["watched"] is False:
        return "there is no LingQu library" + (f": {switches['why_absent']}" if switches["why_absent"] else "")
    if switches["why_silent"]:
        return f"the LingQu library gives no answer: {switches['why_silent']}"
    return "the LingQu library has not answered yet"


def time_text(unix_ms: int) -> str:
    """A moment for people; one that no calendar has as its number."""
    try:
        return datetime.fromtimestamp(unix_ms / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return f"{unix_ms} ms"
