"""The daemon as it is, with one addition: it stamps each poll of the board.

Usage: stamped_polls.py FD COMMAND ...; the arguments of `nodeagent` follow FD, an open file to which a line goes after
each good poll: the monotonic nanoseconds of its first question and of its last answer, and the number of alarms.
"""

import os
import sys
import time
from collections.abc import Callable

from nodeagent.cli.main import entry
from nodeagent.core.alarms import Alarm
from nodeagent.daemon import node_faults
from nodeagent.drivers.ipmi_alarms import poll_alarms

Raw = Callable[[int, int, bytes], bytes]


def main() -> None:
    """Run the command."""
    fd = int(sys.argv.pop(1))

    def stamped(raw: Raw, pause: Callable[[], None]) -> tuple[Alarm, ...]:
        answered_ns = asked_ns = time.monotonic_ns()

        def ask(netfn: int, command: int, data: bytes) -> bytes:
            nonlocal answered_ns
            answer = raw(netfn, command, data)
            answered_ns = time.monotonic_ns()
            return answer

        alarms = poll_alarms(ask, pause)
        os.write(fd, b"%d %d %d\n" % (asked_ns, answered_ns, len(alarms)))
        return alarms

    node_faults.poll_alarms = stamped
    entry()


if __name__ == "__main__":
    main()
