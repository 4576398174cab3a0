"""`nodeagent shadow diff`: how the live object of another program and our shadow differ."""

import argparse
import json
import os
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from nodeagent.cli.clusters import add_kubeconfig_flag, client_of
from nodeagent.cli.common import add_settings_flags, settings_of
from nodeagent.cli.flags import add_output_flag
from nodeagent.cluster.calls import NOT_FOUND, Call, RefusalError
from nodeagent.cluster.client import ApiClient
from nodeagent.core.errors import ReadBackError, SettingsError
from nodeagent.core.files import read_text
from nodeagent.core.settings import Settings
from nodeagent.core.settings_load import check_node_name
from nodeagent.daemon.shadow import difference_as_json, side_as_json
from nodeagent.daemon.socket_api import ask
from nodeagent.publish.manifest import from_yaml
from nodeagent.render.comparison import compare
from nodeagent.render.device_info import NAMESPACE, object_name

SAME, DIFFERENT, UNKNOWN = 0, 1, 2

_EPILOG = """\
Without arguments the running daemon is asked, which has compared both objects since its start. With --kubeconfig the
two objects of a node are read from the cluster: no daemon is needed, and differences that are seconds old are told
too. With two files those are compared, as `kubectl get configmap ... -o yaml` saves them: first the device plugin's.

exit codes: 0 both say the same, 1 they differ, 2 could not tell

examples:
  kubectl exec -n mindx-dl POD -- nodeagent shadow diff
  nodeagent shadow diff --kubeconfig ~/.kube/config --node-name worker-1
  nodeagent shadow diff theirs.yaml ours.yaml
  nodeagent shadow diff --output json | jq '.differences[] | select(.explanation == "")'
"""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the program's parser."""
    parser = subparsers.add_parser("shadow", help="compare shadow mode's object with the live one")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    diff = actions.add_parser(
        "diff",
        help="say how the live object and ours differ",
        description="Say field by field how the device-info object of another program and ours differ, and why.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    diff.add_argument("files", nargs="*", metavar="THEIRS OURS", help="two files instead of a cluster")
    add_kubeconfig_flag(diff)
    add_output_flag(diff)
    add_settings_flags(diff, dry_run=False)
    diff.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the differences; returns the exit code of the epilog."""
    settings = settings_of(arguments)
    if len(arguments.files) not in (0, 2):
        raise SettingsError("two files are compared, or none", "nodeagent shadow diff THEIRS.yaml OURS.yaml")
    if arguments.files:
        theirs, ours = (_object(name) for name in arguments.files)
        found = _compared("files", theirs, ours, settings)
    elif arguments.kubeconfig or any(each.startswith("publish.kubeconfig=") for each in arguments.overrides):
        found = _from_cluster(client_of(arguments, settings), settings)
    else:
        found = {"source": "daemon", **ask(Path(settings.daemon.socket), ask="shadow")}
    settled = [each for each in found.get("differences", ()) if each.get("settled", True)]
    found["same"] = None if found["problem"] else not settled
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    print(json.dumps(found, ensure_ascii=False, indent=2) if arguments.output == "json" else as_text(found, colour))
    if found["problem"]:
        return UNKNOWN
    return DIFFERENT if settled else SAME


def _from_cluster(client: ApiClient, settings: Settings) -> dict[str, Any]:
    node_name = check_node_name(settings.node.name, shadow=True)
    try:
        theirs, ours = (_get(client, object_name(node_name, shadow)) for shadow in (False, True))
    finally:
        client.close()
    if theirs is None and ours is None:
        problem = f"node {node_name} has neither a live object nor a shadow in {NAMESPACE}"
        return {"source": "cluster", "problem": problem, "differences": []}
    return _compared("cluster", theirs, ours, settings)


def _get(client: ApiClient, name: str) -> dict[str, Any] | None:
    try:
        return client.send(Call("get", "configmaps", "device_info", NAMESPACE, name))
    except RefusalError as refusal:
        if refusal.status == NOT_FOUND:
            return None
        raise


def _object(name: str) -> dict[str, Any]:
    """A ConfigMap of a file. Raises ReadBackError."""
    try:
        obj = from_yaml(read_text(name, error=ReadBackError))
    except ReadBackError as error:
        sentence = error.sentence if name in error.sentence else f"{name}: {error.sentence}"
        raise ReadBackError(sentence, error.hint) from error
    if obj.get("kind") != "ConfigMap":
        raise ReadBackError(f"{name} holds no ConfigMap", "save one with `kubectl get configmap NAME -o yaml`")
    return obj


def _compared(
    source: str, theirs: dict[str, Any] | None, ours: dict[str, Any] | None, settings: Settings
) -> dict[str, Any]:
    comparison = compare(theirs, ours, int(settings.shadow.time_tolerance_s * 1000))
    return {
        "source": source,
        "problem": "",
        "theirs": side_as_json(theirs),
        "ours": side_as_json(ours),
        "differences": [difference_as_json(each) for each in comparison.differences],
        "volatile": [difference_as_json(each) for each in comparison.volatile],
        "left_out": comparison.left_out,
    }


def as_text(found: dict[str, Any], colour: bool) -> str:
    """The result for people: the two objects, a table, below each line its known cause, and the day so far."""
    if "theirs" not in found:
        return f"could not tell: {found['problem']}"
    lines = [_side("theirs", found["theirs"]), _side("ours", found["ours"])]
    if found["problem"]:
        lines.append(f"could not tell: {found['problem']}")
    if found["differences"]:
        lines += ["", *_table(found["differences"], colour)]
    lines += ["", _verdict(found)]
    if volatile := [each["field"] for each in found["volatile"]]:
        lines.append(f"differs, and means nothing: {', '.join(volatile)}")
    if found.get("day"):
        lines.append(_day(found["day"]))
    return "\n".join(lines)


def _table(differences: list[dict[str, Any]], colour: bool) -> list[str]:
    rows = [("KIND", "FIELD", "THEIRS", "OURS", "SINCE")]
    rows += [(d["kind"], d["field"], d["theirs"], d["ours"], _since(d)) for d in differences]
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    head, *shown = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines = [head]
    for text, difference in zip(shown, differences, strict=True):
        if colour and not difference["explanation"]:
            text = f"\033[33m{text}\033[0m"
        lines.append(text)
        if difference["explanation"]:
            lines.append(f"  known cause: {difference['explanation']}")
    return lines


def _since(difference: dict[str, Any]) -> str:
    if "age_s" not in difference:
        return ""
    return _duration(difference["age_s"]) + ("" if difference["settled"] else ", settling")


def _verdict(found: dict[str, Any]) -> str:
    if found["problem"]:
        return "The differences above were there when both objects were last read." if found["differences"] else ""
    settled = [each for each in found["differences"] if each.get("settled", True)]
    young = len(found["differences"]) - len(settled)
    more = f" {young} more may settle within {found['settle_s']:g} s." if young else ""
    if not settled:
        return f"Both say the same.{more}"
    unexplained = sum(not each["explanation"] for each in settled)
    left_out = f", and {found['left_out']} more" if found["left_out"] else ""
    return f"Differences: {len(settled)}{left_out}, without a known cause: {unexplained}.{more}"


def _side(who: str, side: dict[str, Any] | None) -> str:
    if side is None:
        return f"{who:<7} no object"
    if not side["writer"]:
        return f"{who:<7} {side['name']}"
    return f"{who:<7} {side['name']}, last written by {side['writer']} at {_time(side['written_at_ms'])}"


def _time(unix_ms: int) -> str:
    return datetime.fromtimestamp(unix_ms / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")


def _day(day: dict[str, Any]) -> str:
    """How much both sides agreed since the last daily summary."""
    compared_ms = day["compared_ms"]
    if not compared_ms:
        return "since the last summary: nothing was compared yet"
    share = 100 * day["agreed_ms"] / compared_ms
    longest = f", longest difference {_duration(day['longest_ms'] // 1000)}: {day['longest']}" if day["longest"] else ""
    # Rounded down: "100.00 %" must mean all of it.
    return (
        f"since the last summary: compared for {_duration(compared_ms // 1000)}, the same for"
        f" {int(share * 100) / 100:.2f} % of it{longest}"
    )


def _duration(seconds: int) -> str:
    if seconds < 120:
        return f"{seconds} s"
    minutes = seconds // 60
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
