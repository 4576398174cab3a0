"""The `nodeagent` command: finds the sub-command, runs it, turns errors into one sentence and an exit code."""

import argparse
import errno
import io
import os
import signal
import sys
from collections.abc import Sequence

from nodeagent import __version__
from nodeagent.cli import cleanup, config, doctor, explain, mock, release, run, scan, shadow, table, why
from nodeagent.core.errors import NodeAgentError

EXIT_ERROR = 2

_EPILOG = """\
first steps without hardware or cluster:
  nodeagent scan --dry-run            one look at a pretended node of 8 chips
  nodeagent run --dry-run             the daemon on that node, publishing to files
  nodeagent explain 80E01801          what a fault code means

documentation: docs/ in the source tree; every error code is explained in docs/errors.md
"""


def parser() -> argparse.ArgumentParser:
    """The complete command line."""
    top = argparse.ArgumentParser(
        prog="nodeagent",
        description="Reports what is sick on an Ascend node: chip faults to the ConfigMaps of ClusterD and Volcano.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"nodeagent {__version__}")
    subparsers = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in (run, doctor, scan, why, explain, release, shadow, cleanup, table, config, mock):
        module.register(subparsers)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code. Errors of ours end here, as one sentence on stderr."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # Chinese names on a terminal that cannot show them
    try:
        try:
            arguments = parser().parse_args(argv)
        finally:
            sys.stdout.flush()  # of a help text
        status = int(arguments.run(arguments))
        sys.stdout.flush()  # here, where a failure still becomes one sentence
        return status
    except NodeAgentError as error:
        print(f"nodeagent: {error}", file=sys.stderr)
        return EXIT_ERROR
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        _drop_output()  # the reader of a pipe went away (`| head`)
        return 0
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EFBIG):
            raise
        print(f"nodeagent: the output cannot be written: {error.strerror}", file=sys.stderr)
        _drop_output()
        return EXIT_ERROR


def _drop_output() -> None:
    """Point stdout elsewhere, so that the interpreter's own flush at its end stays quiet."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def entry() -> None:
    """Entry point of the installed script."""
    signal.signal(signal.SIGTERM, _leave)
    sys.exit(main())


def _leave(number: int, _frame: object) -> None:
    """End by an exception, so that a pretended node and its folder go with us; `run` and `mock serve` know better."""
    raise SystemExit(128 + number)
