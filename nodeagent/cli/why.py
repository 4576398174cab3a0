"""`nodeagent why CHIP`: why a chip has the level it has; `why switch CHIP/PORT`, `why node`: the same for a switch and
for the board with its storage clients."""

import argparse
import contextlib
import json
import re
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from nodeagent.cli import why_node, why_switch
from nodeagent.cli.common import add_settings_flags, pretended, settings_of
from nodeagent.cli.flags import add_output_flag
from nodeagent.core.settings import Settings
from nodeagent.daemon.build import configuration, connect_dcmi
from nodeagent.daemon.oneshot import look
from nodeagent.daemon.release import text_of
from nodeagent.daemon.socket_api import ask
from nodeagent.drivers.host import Reaper
from nodeagent.policy.why import as_json

HEALTHY, FAULTS, UNKNOWN = 0, 1, 2

_EPILOG = """\
Asks the running daemon, which alone knows counters and timers. With --dry-run or --once it looks at the chips, or
the switches, itself: then there are levels, but no history.

A switch is named by its number, a port of it by both: 2/17. Only Atlas A3 nodes have switches. `node` is the board, by
the alarms of its BMC, and the storage clients.

Exit codes: 0 the chip is at NormalNPU (the switch, the node has no fault), 1 something raises it, 2 could not tell.

examples:
  nodeagent why 3
  nodeagent why switch 2/17
  nodeagent why switch 2
  nodeagent why switch 2/17 --once
  nodeagent why node
  nodeagent why node --once
  nodeagent why 3 --output json
  nodeagent why 3 --dry-run --node a3
"""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the program's parser."""
    parser = subparsers.add_parser(
        "why",
        help="say why a chip has its level, or what is wrong with a switch or with the board",
        description="From the raw codes to the published field: table line, rules, timers with the time left.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "what",
        nargs="+",
        action=_What,
        metavar="CHIP | switch SWITCH[/PORT] | node",
        help="logic id of the chip, as `nodeagent scan` shows it; or `switch` and the switch, with or without port; or"
        " `node`",
    )
    parser.add_argument("--once", action="store_true", help="look at the node now instead of asking the daemon")
    add_output_flag(parser)
    add_settings_flags(parser)
    parser.set_defaults(run=run)


class _What(argparse.Action):
    """Fills `chip`, or `switch` with switch and port (None = all of them), or `node`."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: "str | Sequence[Any] | None",
        option_string: str | None = None,
    ) -> None:
        words = [str(value) for value in values or ()]
        namespace.chip, namespace.switch, namespace.node_itself = None, None, words == ["node"]
        if words[0] == "switch" and len(words) == 2 and (found := _PLACE.fullmatch(words[1])):
            namespace.switch = int(found[1]), None if found[2] is None else int(found[2])
        elif len(words) == 1 and words[0].isascii() and words[0].isdigit():
            namespace.chip = int(words[0])
        elif not namespace.node_itself:
            parser.error(f"{' '.join(words)!r} is no chip and no switch: write for example `3`, `switch 2/17`, `node`")


_PLACE = re.compile(r"([0-9]{1,5})(?:/([0-9]{1,5}))?")


def run(arguments: argparse.Namespace) -> int:
    """Print the report; returns the exit code of the epilog."""
    settings = settings_of(arguments)
    if arguments.switch is not None:
        return why_switch.run(arguments, settings)
    if arguments.node_itself:
        return why_node.run(arguments, settings)
    released_until_s = None
    if arguments.dry_run or arguments.once:
        report = _look(arguments, settings)
    else:
        path = Path(settings.daemon.socket)
        report = ask(path, ask="why", logic_id=arguments.chip)
        released_until_s = ask(path, ask="release", do="status")["until_s"]
    if report is None and released_until_s is not None:
        until = text_of(released_until_s)
        print(f"nodeagent: no chip was seen yet, the driver is released until {until}", file=sys.stderr)
        return UNKNOWN
    if report is None:
        print(f"nodeagent: there is no chip {arguments.chip}; `nodeagent scan` lists the chips", file=sys.stderr)
        return UNKNOWN
    report["driver_released_until_s"] = released_until_s
    print(json.dumps(report, ensure_ascii=False, indent=2) if arguments.output == "json" else as_text(report))
    if report["silent_since_ms"] is not None:
        return UNKNOWN
    return FAULTS if report["codes"] or any(r["raises"] for r in report["rules"]) else HEALTHY


def _look(arguments: argparse.Namespace, settings: Settings) -> dict[str, Any] | None:
    config, _ = configuration(settings)
    with contextlib.ExitStack() as stack:
        if arguments.dry_run:
            settings = stack.enter_context(pretended(settings))
        found = look(connect_dcmi(settings, Reaper()), config, lambda _: None)
    report = found.why(arguments.chip, config)
    return None if report is None else as_json(report)


def as_text(report: dict[str, Any]) -> str:
    """The report for people."""
    place = f", card {report['card_id']}/{report['device_id']}" if report["card_id"] >= 0 else ""
    health = "healthy" if report["healthy"] else "unhealthy"
    network = "healthy" if report["network_healthy"] else "unhealthy"
    lines = [
        f"{report['name']}: chip {report['logic_id']} (phy {report['physical_id']}{place})",
        f"  chip level     {report['chip_level']} -> {health}" + (", used by a pod" if report["used"] else ""),
        f"  network level  {report['network_level']} -> {network}",
    ]
    if report["silent_since_ms"] is not None:
        lines.append(f"  gives no answer since {_time(report['silent_since_ms'])}; what is shown may be old")
    if report["driver_released_until_s"] is not None:
        until = text_of(report["driver_released_until_s"])
        lines.append(f"  the driver is released until {until}; what is shown was known before")
    lines.append("codes" if report["codes"] else "codes: none")
    for code in report["codes"]:
        once = ", shown once" if code["once"] else ""
        lines.append(f"  {code['code']} {code['level']}  {code['name']}")
        lines.append(f"    since {_time(code['since_ms'])}{once}; {code['said_by']}")
    lines.append("rules" if report["rules"] else "rules: none is counting or raising")
    for rule in report["rules"]:
        effect = f"raises to {rule['level']}" if rule["raises"] else "raises nothing yet"
        left = "" if rule["left_s"] is None else f", {rule['left_s']:.1f} s left"
        where = f" [{rule['place']}]" if rule["place"] else ""
        lines.append(f"  {rule['code']} {rule['kind']}: {rule['state']}{left}; {effect}")
        if rule["rule"]:
            lines.append(f"    {rule['rule']}{where}")
    lines += [f"suppressed by the site: {text}" for text in report["suppressed"]]
    lines += [f"hint: {text}" for text in report.get("hints", [])]
    lines.append("published" if report["fields"] else "published: nowhere")
    lines += [f"  {key}: {what}" for key, what in report["fields"].items()]
    configured = report["configuration"]
    lines.append(f"configuration {configured['version']} from {', '.join(configured['layers'])}")
    return "\n".join(lines)


def _time(unix_ms: int) -> str:
    return datetime.fromtimestamp(unix_ms / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
