"""Serving a mock node from a process of its own: what `nodeagent mock serve` and `launch` have in common."""

import signal
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from nodeagent.core.errors import NodeAgentError
from nodeagent.mock.runtime import Runtime
from nodeagent.mock.scenario import Scenario, load, load_node
from nodeagent.mock.server import Server
from nodeagent.mock.spec import NodeSpec


def serve(
    socket_path: str,
    node: str,
    timeline: str,
    log_calls: str,
    ready: Callable[[NodeSpec], None],
    *,
    until_eof: bool = False,
) -> None:
    """Serve until SIGTERM or SIGINT, with `until_eof` also until standard input ends.

    node: profile, installed description or YAML file; empty = what the timeline file describes, else "a2".
    timeline, log_calls: files, empty = none. A timeline in the node's file is played unless another is named.
    ready: called with the node's description when connections are accepted.
    Raises ScenarioError or MockError before that.
    """
    scenario = _scenario(node, timeline)
    spec = scenario.node or NodeSpec()
    runtime = Runtime(spec, log_path=Path(log_calls) if log_calls else None)
    server = Server(runtime, socket_path)
    wanted_end = threading.Event()

    def end_at_signal(_number: int, _frame: object) -> None:
        wanted_end.set()

    signal.signal(signal.SIGTERM, end_at_signal)
    signal.signal(signal.SIGINT, end_at_signal)
    acceptor = threading.Thread(target=server.serve, name="accept", daemon=True)
    acceptor.start()
    if scenario.timeline:
        runtime.play(scenario.timeline, lambda: None)
    ready(spec)
    if until_eof:
        threading.Thread(target=_end_at_eof, args=(wanted_end,), name="parent", daemon=True).start()
    wanted_end.wait()
    server.stop()
    acceptor.join()


def child(words: Sequence[str]) -> int:
    """Main program of a child that `launch.MockServer` starts: socket, node, timeline, log file."""

    def ready(_spec: NodeSpec) -> None:
        print("ready", flush=True)

    socket_path, node, timeline, log_calls = words
    try:
        serve(socket_path, node, timeline, log_calls, ready, until_eof=True)
    except NodeAgentError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _scenario(node: str, timeline: str) -> Scenario:
    """The node and what happens to it, from up to two files."""
    first = load_node(node) if node else Scenario(None, ())
    if not timeline:
        return first
    second = load(timeline, first.node or NodeSpec())
    return Scenario(first.node or second.node, second.timeline)


def _end_at_eof(wanted_end: threading.Event) -> None:
    for _line in sys.stdin.buffer:
        continue  # the parent says nothing; what counts is the end of it
    wanted_end.set()
