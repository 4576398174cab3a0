"""`nodeagent release`: make the running daemon let go of the driver for an upgrade, and take it back."""

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

from nodeagent.cli.common import add_settings_flags, settings_of
from nodeagent.cli.flags import add_output_flag
from nodeagent.core.clock import monotonic_s, pause_s
from nodeagent.daemon.release import MAX_S, MIN_S, text_of
from nodeagent.daemon.socket_api import SocketError, ask

DONE, STILL_OPEN = 0, 1
"""Exit codes; 2 when no daemon answers or an argument is wrong."""

CLOSE_LIMIT_S = 10.0
"""Longest wait for processes to end; a killed one that takes longer hangs in the kernel."""
_QUIET_S = 2.0
_LOOK_S = 0.1
_UNITS_S = {"s": 1, "m": 60, "h": 3600}

_EPILOG = """\
The daemon closes the driver's library and its device files, publishes what it knew last, and sees nothing new. At the
end of the time, or with --end, it opens the library again and queries every chip. A daemon that is restarted meanwhile
stays released. A second release moves the end.

exit codes: 0 released, returned, or told; 1 something is still open; 2 no daemon answers, or a wrong argument

examples:
  nodeagent release --for 30m         before the upgrade
  nodeagent release --status          how long it still takes
  nodeagent release --end             after the upgrade
"""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the program's parser."""
    parser = subparsers.add_parser(
        "release",
        help="let go of the driver for an upgrade",
        description="Make the running daemon let go of the driver, so that it can be upgraded (docs/operations.md).",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--for",
        dest="duration_s",
        type=duration_s,
        default=duration_s("30m"),
        metavar="DURATION",
        help="how long at most, such as 90s, 30m or 2h; 1 minute to 4 hours (30m)",
    )
    what.add_argument("--end", action="store_true", help="take the driver back now")
    what.add_argument("--status", action="store_true", help="only say whether it is released, and until when")
    add_output_flag(parser)
    add_settings_flags(parser, dry_run=False)
    parser.set_defaults(run=run)


def duration_s(text: str) -> int:
    """Seconds of a duration such as `90s`, `30m`, `2h`. Raises ArgumentTypeError, also outside the bounds."""
    found = re.fullmatch(r"([0-9]{1,6})([smh])", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration; write 90s, 30m or 2h")
    seconds = int(found[1]) * _UNITS_S[found[2]]
    if not MIN_S <= seconds <= MAX_S:
        raise argparse.ArgumentTypeError(f"{text} is outside 1 minute to 4 hours")
    return seconds


def run(arguments: argparse.Namespace) -> int:
    """Ask the daemon, wait until everything is closed, print; returns the exit code of the epilog."""
    path = Path(settings_of(arguments).daemon.socket)
    if arguments.status:
        status = _ask(path, do="status")
    elif arguments.end:
        status = _ask(path, do="end")
    else:
        status = _closed(path, _ask(path, do="begin", duration_s=arguments.duration_s))
    print(json.dumps(status, indent=2) if arguments.output == "json" else _text(status, ending=arguments.end))
    return STILL_OPEN if status["open"] else DONE


def _ask(path: Path, **what: object) -> dict[str, Any]:
    try:
        status = ask(path, ask="release", **what)
    except SocketError as error:
        hint = "only the running daemon can let go; name its socket with --set daemon.socket=PATH"
        raise SocketError(error.sentence, hint) from error
    if not isinstance(status, dict) or "open" not in status:
        raise SocketError(f"the daemon at {path} refuses the release: {status}", "are both of the same version?")
    return status


def _closed(path: Path, status: dict[str, Any]) -> dict[str, Any]:
    """The status once nothing is open any more, or after CLOSE_LIMIT_S; on a terminal a long wait is told."""
    began_s = monotonic_s()
    told = not sys.stderr.isatty()
    while status["open"] and (waited_s := monotonic_s() - began_s) < CLOSE_LIMIT_S:
        if not told and waited_s >= _QUIET_S:
            told = True
            print(f"waiting for {', '.join(status['open'])} (at most {CLOSE_LIMIT_S:g} s) ...", file=sys.stderr)
        pause_s(_LOOK_S)
        status = _ask(path, do="status")
    return status


def _text(status: dict[str, Any], *, ending: bool) -> str:
    if not status["released"]:
        if status["ended"]:
            return "The daemon opens the driver again and queries every chip; the result is published by itself."
        return "The driver is not released" + ("; there is nothing to end." if ending else ".")
    minutes, seconds = divmod(status["left_s"], 60)
    lines = [f"The driver is released until {text_of(status['until_s'])}, {minutes} min {seconds} s from now."]
    if status["open"]:
        lines.append(f"Still open: {', '.join(status['open'])}. Do not upgrade the driver yet:")
        lines.append("a process that does not end hangs in the kernel, and may need a reset of its chip or a reboot.")
    else:
        lines.append("The daemon has no library and no device file open. What was published stays as it is.")
        lines.append("Next: upgrade the driver, then `nodeagent release --end`; a further release moves the end.")
    if not status["kept"]:
        lines.append("The end could not be written to daemon.state_dir: a restart of the daemon would end the release.")
    return "\n".join(lines)
