"""`nodeagent scan`: one look at all chips of this node."""

import argparse
import contextlib
import json
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from nodeagent.cli import scan_switches
from nodeagent.cli.common import add_settings_flags, pretended, settings_of
from nodeagent.cli.flags import add_output_flag
from nodeagent.core.settings import Settings
from nodeagent.daemon.build import configuration
from nodeagent.daemon.oneshot import look_at_node
from nodeagent.daemon.socket_api import NoDaemonError, ask
from nodeagent.policy.listing import LibraryFacts, node_json

HEALTHY, FAULTS, UNKNOWN = 0, 1, 2

_EPILOG = """\
Asks the running daemon, which knows since when things are so and disturbs no driver. Where none listens, with
--once and with --dry-run it opens the driver library and asks the chips itself, and on an Atlas A3 the LingQu library
for its switches. A missing LingQu library is said; it is normal on boards without switches.

Exit codes: 0 every chip answered and none has a fault, 1 at least one fault of a chip or a switch, 2 could not tell
(a chip or a library gave no answer).

examples:
  nodeagent scan
  nodeagent scan --once
  nodeagent scan --dry-run --node a3
  nodeagent scan --output json | jq '.chips[] | select(.healthy | not)'
"""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the program's parser."""
    parser = subparsers.add_parser(
        "scan",
        help="look at all chips once",
        description="Print the faults of every chip and, on an Atlas A3, of every switch, as the daemon or the driver"
        " tells them. Needs no cluster.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--once", action="store_true", help="ask the driver library itself, not the running daemon")
    add_settings_flags(parser)
    add_output_flag(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the result; returns the exit code of the epilog."""
    settings = settings_of(arguments)
    found = None if arguments.dry_run or arguments.once else _from_daemon(settings)
    if found is None:
        found = _from_library(settings, dry_run=arguments.dry_run)
    print(json.dumps(found, ensure_ascii=False, indent=2) if arguments.output == "json" else as_text(found))
    switches = found.get("switches") or scan_switches.NOTHING
    if switches["faults"] or any(chip["faults"] for chip in found["chips"]):
        return FAULTS
    sure = (
        switches["silent_since_ms"] is None
        and found["product"] is not None
        and not found["problems"]
        and all(chip["answered"] for chip in found["chips"])
    )
    return HEALTHY if sure else UNKNOWN


def _from_daemon(settings: Settings) -> dict[str, Any] | None:
    """What the running daemon knows; None when none listens. Raises SocketError when one does not answer."""
    if not settings.daemon.socket:
        return None
    try:
        found: dict[str, Any] = ask(Path(settings.daemon.socket), ask="state")
    except NoDaemonError:
        return None
    return found


def _from_library(settings: Settings, *, dry_run: bool) -> dict[str, Any]:
    config, _ = configuration(settings)
    with contextlib.ExitStack() as stack:
        if dry_run:
            settings = stack.enter_context(pretended(settings))
        found = look_at_node(settings, config, _progress)
    return node_json(found.state, config, LibraryFacts(found.library, found.problems, found.switches_absent), "library")


def _progress(text: str) -> None:
    """One line that replaces itself, on a terminal only."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text} ...", end="\r", file=sys.stderr, flush=True)


def as_text(found: dict[str, Any]) -> str:
    """The result for people: one line a chip, further lines for its faults."""
    rows = [("CHIP", "PHY", "CARD", "NAME", "HEALTH", "LEVEL", "FAULTS")]
    for chip in found["chips"]:
        place = f"{chip['card_id']}/{chip['device_id']}" if chip["card_id"] >= 0 else "-"
        start = (str(chip["logic_id"]), str(chip["physical_id"]), place, chip["name"])
        lines = [_fault(f) for f in chip["faults"]] + [f"suppressed: {text}" for text in chip["suppressed"]]
        if chip["answered"]:
            rows.append((*start, _health(chip), chip["level"], lines[0] if lines else "-"))
            lines = lines[1:]
        else:
            rows.append((*start, "unknown", "-", chip["why_silent"] + _since(chip["silent_since_ms"])))
            lines = [f"before that: {line}" for line in lines]
        rows += [("", "", "", "", "", "", line) for line in lines]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    shown = [
        "  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[-1]]).rstrip() for row in rows
    ]
    return "\n".join([_head(found), *shown, *scan_switches.lines(found.get("switches")), *_problems(found)])


def _head(found: dict[str, Any]) -> str:
    product, who = found["product"], ", as the daemon knows it" if found["source"] == "daemon" else ""
    if product is None:
        return f"the driver has not listed its chips yet{who}"
    driver, library = product["driver_version"] or "unknown", product["library"] or "no library open"
    return f"{product['family']}, chip {product['chip_name']}, driver {driver}, {library}{who}"


def _problems(found: dict[str, Any]) -> list[str]:
    is_open = found["product"] is not None and found["product"]["library"]
    return [f"{'not identified' if is_open else 'no library is open'}: {problem}" for problem in found["problems"]]


def _fault(fault: dict[str, Any]) -> str:
    return f"{fault['code']} {fault['level']}: {fault['name']}{_since(fault['since_ms'])}"


def _since(unix_ms: int | None) -> str:
    if unix_ms is None:
        return ""
    return datetime.fromtimestamp(unix_ms / 1000, timezone.utc).strftime(", since %Y-%m-%d %H:%M:%S UTC")


def _health(chip: dict[str, Any]) -> str:
    if not chip["healthy"]:
        return "unhealthy"
    return "healthy" if chip["network_healthy"] else "net-unhealthy"
