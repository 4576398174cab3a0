"""`nodeagent scan`: one look at all chips of this node."""

import argparse
import contextlib
import json
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from nodeagent.cli import scan_node, scan_storage, scan_switches
from nodeagent.cli.common import add_settings_flags, pretended, settings_of
from nodeagent.cli.flags import add_output_flag
from nodeagent.core.errors import NodeAgentError
from nodeagent.core.settings import Settings
from nodeagent.daemon.build import configuration
from nodeagent.daemon.oneshot import look_at_node
from nodeagent.daemon.oneshot_node_faults import look_at_node_faults
from nodeagent.daemon.socket_api import NoDaemonError, ask
from nodeagent.policy.listing import LibraryFacts, node_json
from nodeagent.policy.rules import Configuration
from nodeagent.policy.state import NodeState

HEALTHY, FAULTS, UNKNOWN = 0, 1, 2

_EPILOG = """\
Asks the running daemon, which knows since when things are so and disturbs no driver. Where none listens, with
--once and with --dry-run it opens the driver library and asks the chips itself, and on an Atlas A3 the LingQu library
for its switches; it asks the BMC for alarms of the board (`ipmi.transport`) and reads the files of storage clients.
A LingQu library, a BMC or a client that is not there is said; each is normal on some boards. Without a driver library
board and storage clients are shown all the same.

Exit codes: 0 everything answered and nothing has a fault, 1 at least one fault of a chip, a switch, the board or a
storage client, 2 could not tell (a chip, a library, the BMC or a file gave no answer, and nothing else has a fault).

examples:
  nodeagent scan
  nodeagent scan --once
  nodeagent scan --dry-run --node a3
  nodeagent scan --output json | jq '.chips[] | select(.healthy | not)'
  nodeagent scan --output json | jq '.board.devices'
"""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the program's parser."""
    parser = subparsers.add_parser(
        "scan",
        help="look at chips, switches, board and storage clients once",
        description="Print the faults of every chip, on an Atlas A3 of every switch, of the board and of storage"
        " clients, as the daemon, the driver and the BMC tell them. Needs no cluster.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--once", action="store_true", help="ask library and BMC itself, not the running daemon")
    add_settings_flags(parser)
    add_output_flag(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the result; returns the exit code of the epilog."""
    settings = settings_of(arguments)
    found = None if arguments.dry_run or arguments.once else _from_daemon(settings)
    if found is None:
        found = _from_library(settings, dry_run=arguments.dry_run)
    no_library = found["source"] == "library" and found["product"] is None
    if no_library:
        print(f"nodeagent: {'; '.join(found['problems'])}", file=sys.stderr)
    if arguments.output == "json":
        print(json.dumps(found, ensure_ascii=False, indent=2))
    else:
        print(as_text({**found, "problems": []} if no_library else found))
    switches = found.get("switches") or scan_switches.NOTHING
    board, storage = scan_node.verdict(found["board"]), found["storage"]
    chips_ill = any(chip["faults"] for chip in found["chips"])
    if switches["faults"] or chips_ill or board == FAULTS or scan_storage.has_fault(storage):
        return FAULTS
    sure = (
        switches["silent_since_ms"] is None
        and found["product"] is not None
        and not found["problems"]
        and all(chip["answered"] for chip in found["chips"])
        and board != UNKNOWN
        and not scan_storage.is_unknown(storage)
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
        chips = _chips(settings, config)
        _progress("asking the BMC of the board")
        rest = look_at_node_faults(settings)
    return {**chips, "board": rest.board, "storage": rest.storage}


def _chips(settings: Settings, config: Configuration) -> dict[str, Any]:
    """Chips and switches; without a library why there are none, since board and storage clients need no library."""
    try:
        found = look_at_node(settings, config, _progress)
    except NodeAgentError as error:
        return node_json(NodeState(), config, LibraryFacts(problems=(str(error),)), "library")
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
    more = [
        *scan_switches.lines(found.get("switches")),
        *scan_node.lines(found["board"]),
        *scan_storage.lines(found["storage"]),
    ]
    return "\n".join([_head(found), *(shown if found["chips"] else []), *more, *_problems(found)])


def _head(found: dict[str, Any]) -> str:
    product, who = found["product"], ", as the daemon knows it" if found["source"] == "daemon" else ""
    if product is None and found["source"] == "library":
        return "no chips: the driver library cannot be used"
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
