"""The `nodeagent` command: finds the sub-command, runs it, turns errors into one sentence and an exit code."""

import argparse
import io
import os
import sys
from collections.abc import Sequence

from nodeagent import __version__
from nodeagent.cli import config, explain, mock, run, scan, table, why
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
    for module in (run, scan, why, explain, table, config, mock):
        module.register(subparsers)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code. Errors of ours end here, as one sentence on stderr."""
    arguments = parser().parse_args(argv)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # Chinese names on a terminal that cannot show them
    try:
        return int(arguments.run(arguments))
    except NodeAgentError as error:
        print(f"nodeagent: {error}", file=sys.stderr)
        return EXIT_ERROR
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of a pipe went away (`| head`); point stdout elsewhere so that the exit stays quiet.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def entry() -> None:
    """Entry point of the installed script."""
    sys.exit(main())
