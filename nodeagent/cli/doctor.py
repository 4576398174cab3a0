"""`nodeagent doctor`: is everything there that the daemon of this node needs?"""

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Iterable
from typing import Any

from nodeagent.cli.common import add_settings_flags, pretended, settings_file, settings_of
from nodeagent.cli.flags import add_output_flag
from nodeagent.cli.run import dry_run_defaults
from nodeagent.core.errors import SettingsError
from nodeagent.daemon.selfcheck.check import Check, Verdict, worst
from nodeagent.daemon.selfcheck.doctor import Doctor

FINE, WARNINGS, FAILED = 0, 1, 2
_EXIT = {Verdict.OK: FINE, Verdict.WARN: WARNINGS, Verdict.FAIL: FAILED}
_COLOURS = {Verdict.OK: 32, Verdict.SKIPPED: 90, Verdict.WARN: 33, Verdict.FAIL: 31}

_EPILOG = """\
Takes the settings of `nodeagent run` and changes nothing: not in the cluster, not on the node. It may run beside the
daemon. Every check is explained in docs/doctor.md.

examples:
  kubectl exec -n mindx-dl POD -- nodeagent doctor
  NODE_NAME=worker-1 nodeagent doctor --set publish.kubeconfig=/root/.kube/config
  nodeagent doctor --only rights --only clock
  nodeagent doctor --dry-run
  nodeagent doctor --output json | jq '.checks[] | select(.verdict == "fail")'

Exit codes: 0 all is well or skipped, 1 at least one warning, 2 at least one failure (or settings that cannot be read).
"""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the program's parser."""
    parser = subparsers.add_parser(
        "doctor",
        help="check whether the daemon of this node has all it needs",
        description="Check settings, tables, cluster, rights, driver, chips and folders; say what to do about each.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="CHECK", help="make only this check; may be repeated"
    )
    add_output_flag(parser)
    add_settings_flags(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the checks; returns the exit code of the epilog. Raises SettingsError."""
    settings = settings_of(arguments)
    with contextlib.ExitStack() as stack:
        if arguments.dry_run:
            settings = stack.enter_context(pretended(dry_run_defaults(settings)))
        doctor = Doctor(settings, settings_file=str(settings_file(arguments) or ""), progress=_progress)
        stack.callback(doctor.close)
        chosen = doctor.examinations()
        if arguments.only:
            chosen = [each for each in chosen if each.name in arguments.only]
            known = [each.name for each in doctor.examinations()]
            if unknown := [name for name in arguments.only if name not in known]:
                raise SettingsError(f"there is no check {unknown[0]!r}", f"there are {', '.join(known)}")
        checks = []
        for examination in chosen:
            _progress(examination.what)
            checks.append(examination.run())
        _progress("")
    print(as_json(checks) if arguments.output == "json" else as_text(checks, colour=_wants_colour()))
    return _EXIT[worst(checks)]


def as_json(checks: Iterable[Check]) -> str:
    """The checks for machines."""
    checks = list(checks)
    body: dict[str, Any] = {
        "verdict": worst(checks).value,
        "checks": [
            {"name": c.name, "verdict": c.verdict.value, "detail": c.detail.splitlines(), "hint": c.hint}
            for c in checks
        ],
    }
    return json.dumps(body, ensure_ascii=False, indent=2)


def as_text(checks: Iterable[Check], colour: bool) -> str:
    """The checks for people: a table, and below it what to do about each that is not well."""
    checks = list(checks)
    name_width = max(len("CHECK"), *(len(check.name) for check in checks))
    verdict_width = max(len(verdict.value) for verdict in Verdict)
    indent = " " * (name_width + verdict_width + 4)
    lines = [f"{'CHECK':<{name_width}}  {'VERDICT':<{verdict_width}}  DETAIL"]
    for check in checks:
        first, *rest = check.detail.splitlines() or [""]
        verdict = check.verdict.value.ljust(verdict_width)
        if colour:
            verdict = f"\033[{_COLOURS[check.verdict]}m{verdict}\033[0m"
        lines += [f"{check.name:<{name_width}}  {verdict}  {first}".rstrip(), *(indent + line for line in rest)]
    hints = [f"  {check.name}: {check.hint}" for check in checks if check.hint and check.verdict is not Verdict.OK]
    return "\n".join([*lines, *(["", "What to do:", *hints] if hints else [])])


def _wants_colour() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def _progress(text: str) -> None:
    """One line that replaces itself, on a terminal only; an empty text removes it."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text} ..." if text else "\r\033[K", end="\r", file=sys.stderr, flush=True)
