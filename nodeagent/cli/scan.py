"""`nodeagent scan`: one look at all chips of this node."""

import argparse
import contextlib
import json
import sys
from typing import Any

from nodeagent.cli.common import add_settings_flags, pretended, settings_of
from nodeagent.cli.flags import add_output_flag
from nodeagent.core.model import ChipView, FaultView, device_name
from nodeagent.daemon.build import configuration, connect_dcmi
from nodeagent.daemon.oneshot import Look, look
from nodeagent.drivers.host import Reaper
from nodeagent.policy.table import FaultTable

HEALTHY, FAULTS, UNKNOWN = 0, 1, 2

_EPILOG = """\
Exit codes: 0 every chip answered and none has a fault, 1 at least one fault, 2 could not tell (a chip or the
library gave no answer).

examples:
  nodeagent scan
  nodeagent scan --dry-run --node a3
  nodeagent scan --output json | jq '.chips[] | select(.healthy | not)'
"""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the program's parser."""
    parser = subparsers.add_parser(
        "scan",
        help="look at all chips once",
        description="Ask the driver once for the faults of every chip and print them. Needs no cluster.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_settings_flags(parser)
    add_output_flag(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the result; returns the exit code of the epilog."""
    settings = settings_of(arguments)
    config, _ = configuration(settings)
    table = config.table
    with contextlib.ExitStack() as stack:
        if arguments.dry_run:
            settings = stack.enter_context(pretended(settings))
        found = look(connect_dcmi(settings, Reaper()), config, _progress)
    print(
        json.dumps(as_json(found, table), ensure_ascii=False, indent=2)
        if arguments.output == "json"
        else as_text(found, table)
    )
    if any(chip.faults for chip in found.view.chips):
        return FAULTS
    return UNKNOWN if found.silent or found.problems else HEALTHY


def _progress(text: str) -> None:
    """One line that replaces itself, on a terminal only."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text} ...", end="\r", file=sys.stderr, flush=True)


def as_json(found: Look, table: FaultTable) -> dict[str, Any]:
    """The result for machines."""
    product = found.view.product
    return {
        "product": {
            "family": product.family.value,
            "chip_name": product.chip_name,
            "driver_version": product.driver_version,
            "generation": product.generation,
            "library": found.library,
        },
        "chips": [_chip_json(chip, found, table) for chip in found.view.chips],
        "problems": list(found.problems),
    }


def _chip_json(chip: ChipView, found: Look, table: FaultTable) -> dict[str, Any]:
    names = chip.chip
    return {
        "name": device_name(found.view.product.family, names.physical_id),
        "logic_id": names.logic_id,
        "physical_id": names.physical_id,
        "card_id": names.card_id,
        "device_id": names.device_id,
        "answered": names.logic_id not in found.silent,
        "why_silent": found.silent.get(names.logic_id),
        "healthy": chip.healthy,
        "network_healthy": chip.network_healthy,
        "suppressed": list(chip.suppressed),
        "level": max(chip.chip_level, chip.network_level).text,
        "faults": [
            {"code": f.text, "name": _name(f, table), "level": f.level.text, "plane": f.plane.value, "known": f.known}
            for f in chip.faults
        ],
    }


def as_text(found: Look, table: FaultTable) -> str:
    """The result for people: one line a chip, further lines for its faults."""
    view = found.view
    rows = [("CHIP", "PHY", "CARD", "NAME", "HEALTH", "LEVEL", "FAULTS")]
    for chip in view.chips:
        ids = chip.chip
        place = f"{ids.card_id}/{ids.device_id}" if ids.card_id >= 0 else "-"
        start = (str(ids.logic_id), str(ids.physical_id), place, device_name(view.product.family, ids.physical_id))
        if ids.logic_id in found.silent:
            rows.append((*start, "unknown", "-", found.silent[ids.logic_id]))
            continue
        level = max(chip.chip_level, chip.network_level).text
        lines = [f"{f.text} {f.level.text}: {_name(f, table)}" for f in chip.faults]
        lines = [*lines, *(f"suppressed: {text}" for text in chip.suppressed)] or ["-"]
        rows.append((*start, _health(chip), level, lines[0]))
        rows += [("", "", "", "", "", "", line) for line in lines[1:]]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    shown = [
        "  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[-1]]).rstrip() for row in rows
    ]
    product = view.product
    driver = product.driver_version or "unknown"
    head = f"{product.family.value}, chip {product.chip_name}, driver {driver}, {found.library}"
    return "\n".join([head, *shown, *(f"not identified: {p}" for p in found.problems)])


def _health(chip: ChipView) -> str:
    if not chip.healthy:
        return "unhealthy"
    return "healthy" if chip.network_healthy else "net-unhealthy"


def _name(fault: FaultView, table: FaultTable) -> str:
    record = table.lookup(fault.code)
    return record.name_en if record is not None else "not in the fault table"
