"""`nodeagent table diff`: which codes change level, and which rules change, between two sets of documents."""

import argparse
import json

from nodeagent.cli.documents import SHIPPED, configuration_of
from nodeagent.core.levels import Level
from nodeagent.policy.table_diff import Differences, LevelChange, differences

SAME, DIFFERENT = 0, 1
"""Exit codes; 2 when something cannot be read or is refused."""

_EPILOG = f"""\
OLD and NEW are each a file, a folder with faultCode.json, faultCustomization.json and nodeagent.yaml, a ConfigMap
saved with `kubectl get configmap ... -o yaml`, or the word `{SHIPPED}`. Both are laid over the shipped documents.

examples:
  nodeagent table diff {SHIPPED} /etc/nodeagent/faults.yaml
  nodeagent table diff old/ new/ --site-file /etc/nodeagent/faults.yaml
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
    parser.add_argument("--output", choices=("text", "json"), default="text", help="form of the answer (text)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the differences; returns the exit code of the epilog. Raises TableError."""
    old, _ = configuration_of([*arguments.site_file, arguments.old])
    new, _ = configuration_of([*arguments.site_file, arguments.new])
    found = differences(old, new)
    if arguments.output == "json":
        print(json.dumps(as_data(found), ensure_ascii=False, indent=2))
    else:
        print("\n".join(as_lines(found)))
    return SAME if found.none else DIFFERENT


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
