"""IPMI commands over the socket of a mock node.

Line protocol. A program says `ipmi <pid>` and gets `rc 0`, or `rc -1` where there is no way to a BMC. Then it says
`<number> <netfn> <command> <hex>` and gets `<number> <hex>`: the number it chose, completion code and payload. That
comes at once, late or never; `gone` comes in its place when the BMC is no longer there. A lone dash is no data.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from nodeagent.core.clock import monotonic_ns
from nodeagent.mock.calllog import LoggedCall

if TYPE_CHECKING:  # clients need the words of the protocol, not the model
    from nodeagent.mock.runtime import Runtime

NO_BMC = -1
"""Answer to `ipmi` where there is no way to a BMC."""
NO_ANSWER = -1
"""Result in the call log of a command that the BMC does not answer."""


def answer_ipmi(runtime: "Runtime", pid: int, lines: Iterable[bytes], send: Callable[[bytes], None]) -> None:
    """Talk on one connection until its end. A BMC that is late makes only this connection wait.

    Raises ValueError for a line of another language.
    """
    with runtime.lock:
        present = runtime.node.board.present
    send(b"rc %d\n" % (0 if present else NO_BMC))
    if not present:
        return
    for line in lines:
        number, netfn, command, blob = line.decode("ascii").split()
        data = b"" if blob == "-" else bytes.fromhex(blob)
        with runtime.lock:
            reply = runtime.node.board.ask(int(netfn), int(command), data)
        if reply is None:
            send(b"gone\n")
            return
        if runtime.log.on:
            code = NO_ANSWER if reply.data is None else reply.data[0]
            name = f"ipmi {int(netfn):02X}/{int(command):02X}"
            runtime.log.add(LoggedCall(monotonic_ns(), runtime.node.clock.now().wall_ms, pid, name, tuple(data), code))
        if reply.delay_ms and not runtime.rest(reply.delay_ms / 1000):
            return
        if reply.data is not None:
            send(f"{number} {reply.data.hex()}\n".encode())
