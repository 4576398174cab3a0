"""`nodeagent cleanup`: what the daemons left behind in a cluster and on a host, shown and removed."""

import argparse
import json
import sys
from collections.abc import Iterable
from typing import Any

from nodeagent.cli.clusters import add_kubeconfig_flag, client_of
from nodeagent.cli.common import add_settings_flags, settings_of
from nodeagent.cli.flags import add_output_flag
from nodeagent.core.clock import SystemClock
from nodeagent.core.errors import SettingsError
from nodeagent.core.settings import Settings
from nodeagent.core.settings_load import check_node_name
from nodeagent.daemon.host_files import host_leftovers, remove_host_files
from nodeagent.publish.cleaner import Cleaner
from nodeagent.publish.leftovers import Leftover, What

CLEAN, LEFT = 0, 1
"""Exit codes; 2 when it could not be told."""

_EPILOG = """\
Run it after the DaemonSet is gone, with your own rights. Without --yes it only shows. It finds the device-info,
node-info and public fault ConfigMaps that nodeagent wrote last, and the labels, annotations and conditions of nodes
that the API server's record (managedFields) calls nodeagent's. What another program wrote last is never touched. On a
node, --host-files finds the files of the daemon.

Without the live device-info ConfigMap of a node, ClusterD and Volcano forget its chips until another program writes it:
start the device plugin first, which takes the object over. Without the node-info ConfigMap they take the board for
healthy. Deleting a public fault ConfigMap tells ClusterD nothing: a fault that stands in it is written as recovered
first, and stands for ever if ClusterD is away just then or is told of more than 100 at once.

exit codes: 0 nothing of ours is left, 1 something is (shown only, kept for a daemon that runs, or not removable),
2 could not tell

examples:
  nodeagent cleanup --all-nodes                   what would be removed
  nodeagent cleanup --node worker-1 --yes         remove what is left of one node
  nodeagent cleanup --host-files --yes            on the node: state, lock, socket
  nodeagent cleanup --all-nodes --output json
"""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the program's parser."""
    parser = subparsers.add_parser(
        "cleanup",
        help="remove what the daemons left behind",
        description="Show, and with --yes remove, what stays in a cluster when nodeagent is uninstalled.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    where = parser.add_argument_group("where")
    which = where.add_mutually_exclusive_group()
    which.add_argument(
        "--node", dest="nodes", action="append", default=[], metavar="NAME", help="this node; repeatable"
    )
    which.add_argument("--all-nodes", action="store_true", help="all nodes, and objects of nodes that are gone")
    where.add_argument("--host-files", action="store_true", help="the files of the daemon on this machine")
    parser.add_argument("--yes", action="store_true", help="really remove")
    add_kubeconfig_flag(parser)
    add_output_flag(parser)
    add_settings_flags(parser, dry_run=False)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print what there is and what became of it; returns the exit code of the epilog."""
    settings = settings_of(arguments)
    if not (arguments.nodes or arguments.all_nodes or arguments.host_files):
        raise SettingsError("where is not said", "--node NAME, --all-nodes or --host-files")
    rows: list[dict[str, Any]] = []
    if arguments.nodes or arguments.all_nodes:
        rows += _cluster(arguments, settings)
    if arguments.host_files:
        found = host_leftovers(settings)
        rows += _rows(found, remove_host_files(found) if arguments.yes else [])
    left = [row for row in rows if row["state"] in ("left", "failed")]
    waits = [row for row in rows if row["state"] == "kept" and "still runs" in row["why"]]
    if arguments.output == "json":
        print(json.dumps({"clean": not (left or waits), "found": rows}, ensure_ascii=False, indent=2))
    else:
        print(as_text(rows, every=not arguments.all_nodes))
    if left and not arguments.yes:
        print("Nothing was removed; --yes does it.", file=sys.stderr)
    return LEFT if left or waits else CLEAN


def _cluster(arguments: argparse.Namespace, settings: Settings) -> list[dict[str, Any]]:
    client = client_of(arguments, settings)
    cleaner = Cleaner(client, SystemClock().now().wall_ms)
    try:
        if arguments.all_nodes:
            found = cleaner.of_all()
        else:
            found = [each for name in arguments.nodes for each in cleaner.of_node(check_node_name(name))]
        done = [(each.leftover, each.problem) for each in cleaner.remove(found)] if arguments.yes else []
    finally:
        client.close()
    return _rows(found, done)


def _rows(found: Iterable[Leftover], done: Iterable[tuple[Leftover, str]]) -> list[dict[str, Any]]:
    """One row each. state: kept, left (only shown), removed, failed."""
    problems = dict(done)
    rows = []
    for each in found:
        state, why = ("kept", each.kept) if each.kept else ("left", each.note)
        if each in problems:
            state, why = ("failed", problems[each]) if problems[each] else ("removed", "")
        rows.append({"what": each.what.value, "place": each.place, "name": each.name, "state": state, "why": why})
    return rows


def as_text(rows: list[dict[str, Any]], every: bool) -> str:
    """A table for people. every: with those things of other programs that stay; else only their number."""
    shown = [row for row in rows if every or row["state"] != "kept" or "still runs" in row["why"]]
    lines = []
    if shown:
        table = [("WHAT", "WHERE", "NAME", "STATE", "WHY")]
        table += [(r["what"], r["place"], r["name"] or "-", r["state"], r["why"]) for r in shown]
        widths = [max(len(row[column]) for row in table) for column in range(5)]
        lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in table]
    if hidden := len(rows) - len(shown):
        lines.append(f"{hidden} more belong to other programs and stay.")
    if not any(row["state"] in ("left", "failed", "removed") for row in rows):
        lines.append("Nothing of nodeagent is left to remove.")
    if any(row["what"] == What.FILE.value and row["state"] == "failed" for row in rows):
        lines.append("A folder that is not empty has files that nodeagent did not write.")
    return "\n".join(lines)
