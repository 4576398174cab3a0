"""`nodeagent table diff`: which codes change level, and which rules change, between two sets of documents."""

import argparse
import json
from pathlib import Path

from nodeagent.cli.documents import SHIPPED, configuration_of, node_configuration_of
from nodeagent.cli.flags import add_output_flag
from nodeagent.core.levels import Level, Severity
from nodeagent.daemon.socket_api import ask
from nodeagent.policy.table_diff import (
    ActiveCode,
    Differences,
    Effect,
    LevelChange,
    differences,
    effects,
    node_differences,
)

SAME, DIFFERENT = 0, 1
"""Exit codes; 2 when something cannot be read or is refused."""

_EPILOG = f"""\
OLD and NEW are each a file, a folder with faultCode.json, faultCustomization.json, SwitchFaultCode.json,
NodeDConfiguration.json and nodeagent.yaml, a ConfigMap saved with `kubectl get configmap ... -o yaml`, or the word
`{SHIPPED}`. Both are laid over the shipped documents.

examples:
  nodeagent table diff {SHIPPED} /etc/nodeagent/faults.yaml
  nodeagent table diff old/ new/ --site-file /etc/nodeagent/faults.yaml
  nodeagent table diff {SHIPPED} NodeDConfiguration.json
  nodeagent table diff {SHIPPED} configmap.yaml --output json

exit codes: 0 both mean the same, 1 they differ, 2 something cannot be read or would be refused
"""


def register(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the action to `table`."""
    parser = actions.add_parser(
        "diff",
        help="say which levels and rules differ between two sets of documents",
        description="Say which codes change level, and which rules change, from one set of documents to another.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("old", metavar="OLD", help="what is compared from")
    parser.add_argument("new", metavar="NEW", help="what is compared to")
    parser.add_argument(
        "--site-file", action="append", default=[], metavar="FILE", help="site file below both; may be repeated"
    )
    parser.add_argument(
        "--socket", metavar="PATH", help="of a running daemon: say too what NEW would do to its chips now"
    )
    add_output_flag(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the differences; returns the exit code of the epilog. Raises TableError."""
    names = [[*arguments.site_file, each] for each in (arguments.old, arguments.new)]
    (old, _), (new, _) = (configuration_of(each) for each in names)
    (old_nodes, _), (new_nodes, _) = (node_configuration_of(each) for each in names)
    found = differences(old, new)
    found = Differences(found.levels, found.others + node_differences(old_nodes.table, new_nodes.table))
    chips = None if arguments.socket is None else effects(_active(Path(arguments.socket)), old, new)
    if arguments.output == "json":
        data = as_data(found)
        if chips is not None:
            data["chips"] = [_effect_data(effect) for effect in chips]
        print(json.dumps(data, ensure_ascii=False, indent=2))
    else:
        print("\n".join([*as_lines(found), *([] if chips is None else _effect_lines(chips))]))
    return SAME if found.none else DIFFERENT


def _active(socket: Path) -> list[ActiveCode]:
    """The codes that the daemon's chips have now. Raises SocketError when it does not answer."""
    return [
        ActiveCode(f"chip {chip['logic_id']}", code, None if severity is None else Severity(severity))
        for chip in ask(socket, ask="chips")
        for code, severity in chip["codes"]
    ]


def _effect_lines(chips: tuple[Effect, ...]) -> list[str]:
    """What would change on the chips of the running daemon, for people."""
    if not chips:
        return ["no chip of the running daemon would change"]
    lines = ["on the chips of the running daemon, rules and upgrades apart:"]
    for effect in chips:
        codes = ", ".join(f"{c.text} {c.before.text} => {c.after.text}" for c in effect.codes)
        lines.append(f"  {effect.chip}: {codes}")
    return lines


def _effect_data(effect: Effect) -> dict[str, object]:
    codes = [{"code": c.text, "before": c.before.text, "after": c.after.text} for c in effect.codes]
    return {"chip": effect.chip, "codes": codes}


def as_lines(found: Differences) -> list[str]:
    """The differences for people, and how many there are."""
    lines = [_level_line(change) for change in found.levels]
    lines += [
        f"{change.what} {change.code}: {change.before or '(none)'} => {change.after or '(none)'}"
        for change in found.others
    ]
    if found.none:
        return ["no difference in levels or rules"]
    return [*lines, f"{len(found.levels)} codes change level, {len(found.others)} other differences"]


def as_data(found: Differences) -> dict[str, object]:
    """The differences as plain data; null = there is none."""
    return {
        "levels": [
            {
                "code": change.text,
                "before": _text(change.before),
                "after": _text(change.after),
                "said_at": change.place,
            }
            for change in found.levels
        ],
        "others": [
            {"what": change.what, "code": change.code, "before": change.before, "after": change.after}
            for change in found.others
        ],
    }


def _level_line(change: LevelChange) -> str:
    before, after = (_text(level) or "(unlisted)" for level in (change.before, change.after))
    return f"{change.text:<9}  {before} => {after}  ({change.place})"


def _text(level: Level | None) -> str | None:
    return None if level is None else level.text
