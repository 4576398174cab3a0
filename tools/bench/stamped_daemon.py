"""The daemon as it is, with one addition: it stamps each acknowledgement.

Usage: stamped_daemon.py FD COMMAND ...; the arguments of `nodeagent` follow FD, an open file to which a line goes
with the monotonic nanosecond of each acknowledgement, as soon as the answer of the API server was understood.
"""

import os
import sys
import time

from nodeagent.cli.main import entry
from nodeagent.core.instant import Instant
from nodeagent.daemon.core_loop import CoreLoop


def main() -> None:
    """Run the command."""
    fd = int(sys.argv.pop(1))
    acknowledge = CoreLoop.acknowledge

    def stamped(loop: CoreLoop, generation: int, at: Instant) -> None:
        os.write(fd, b"%d\n" % time.monotonic_ns())
        acknowledge(loop, generation, at)

    CoreLoop.acknowledge = stamped  # type: ignore[method-assign]
    entry()


if __name__ == "__main__":
    main()
