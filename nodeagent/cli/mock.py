"""`nodeagent mock`: serve a pretended node, and do things to it."""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nodeagent.cli.mock_state import state_lines, table_lines
from nodeagent.core.errors import MockError
from nodeagent.mock.action import Action, Param
from nodeagent.mock.actions import ACTIONS
from nodeagent.mock.bmc import ALARM_SEVERITIES
from nodeagent.mock.board_actions import STORAGE_GROUP
from nodeagent.mock.client import Injected, MockControl, MockUnreachable, injected
from nodeagent.mock.events import SEVERITIES
from nodeagent.mock.kinds import ALARM_SEVERITY, FLAG, SEVERITY, UP_DOWN
from nodeagent.mock.launch import SOCKET_VARIABLE, library_dir
from nodeagent.mock.spec import NodeSpec
from nodeagent.mock.switch_actions import GROUP as SWITCH_GROUP

EXIT_OK, EXIT_REFUSED, EXIT_UNREACHABLE = 0, 1, 2

_EPILOG = """\
a first walk, in two terminals:
  nodeagent mock serve --node a2                   prints two lines to export; do so in the other terminal
  nodeagent mock raise --chip 3 --code 80E18005    and see what your program makes of it
  nodeagent mock state

docs/mock.md tells the whole story.
"""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command `mock` with all its sub-commands."""
    top = subparsers.add_parser(
        "mock",
        help="a pretended node for tests and demonstrations",
        description="Serve a pretended Ascend node to any program that uses libdcmi.so, and do things to it.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_serving(commands)
    for action in ACTIONS.values():
        if not action.name.startswith((SWITCH_GROUP, STORAGE_GROUP)):
            _add_action(commands, action, action.name.replace("_", "-"))
    _add_group(
        commands,
        SWITCH_GROUP,
        "faults of the L1 switch chips of an A3 node",
        "Do things to the L1 switch chips of a served A3 node, for programs that use liblingqu-dcmi.so.",
    )
    _add_group(
        commands,
        STORAGE_GROUP,
        "faults of storage clients",
        "Say what the state files of the storage clients of a served node are; they lie below SOCKET.d/proc.",
    )
    _add_reports(commands)


def _command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    text: str,
    example: str,
    run: Callable[[argparse.Namespace], int],
    *,
    socket: bool = True,
) -> argparse.ArgumentParser:
    """A sub-command with its example; handlers get an exit code for refusals and unreachable servers here."""
    parser = commands.add_parser(
        name,
        help=text,
        description=text[0].upper() + text[1:] + ".",
        epilog=f"example:\n  {example}\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if socket:
        parser.add_argument(
            "--socket", default=os.environ.get(SOCKET_VARIABLE, ""), help=f"of the server (default: {SOCKET_VARIABLE})"
        )
    parser.set_defaults(run=run)
    return parser


def _add_serving(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    _command(commands, "path", "print the folder of the mock library", "nodeagent mock path", _path, socket=False)
    serving = _command(
        commands,
        "serve",
        "hold the state of a pretended node and answer the mock library",
        "nodeagent mock serve --node a3 --socket /tmp/a3.sock",
        _serve,
    )
    serving.add_argument(
        "--node", default="", metavar="PROFILE|FILE", help="310, 310p, 910a, a2, a2-card, a3, 950 or a YAML file"
    )
    serving.add_argument("--timeline", default="", metavar="FILE", help="play this timeline from the start")
    serving.add_argument("--log-calls", default="", metavar="FILE", help="append every library call as a JSON line")
    play = _command(
        commands,
        "play",
        "play the timeline of a file on a served node and wait for its end",
        "nodeagent mock play storm.yaml",
        _play,
    )
    play.add_argument("file", metavar="FILE", help="YAML file with a timeline")


def _add_group(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", group: str, text: str, description: str
) -> None:
    """The actions whose names begin with `group`, as commands of a command."""
    members = [action for action in ACTIONS.values() if action.name.startswith(group)]
    top = commands.add_parser(
        group.rstrip("_"),
        help=text,
        description=description,
        epilog="examples:\n" + "".join(f"  {action.example}\n" for action in members),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    inner = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for action in members:
        _add_action(inner, action, action.name.removeprefix(group))


def _add_action(commands: "argparse._SubParsersAction[argparse.ArgumentParser]", action: Action, name: str) -> None:
    parser = _command(commands, name, action.help, action.example, _act)
    parser.set_defaults(action=action)
    for param in action.params:
        _add_parameter(parser, param)


def _add_parameter(parser: argparse.ArgumentParser, param: Param) -> None:
    text = param.help
    if param.kind is FLAG:
        text += f" (default: {'true' if param.default else 'false'})"
    elif param.kind in (SEVERITY, ALARM_SEVERITY):
        words = SEVERITIES if param.kind is SEVERITY else ALARM_SEVERITIES
        text += f" (default: {list(words)[param.default]})"
    parser.add_argument(
        "--" + param.name.replace("_", "-"),
        dest=f"param_{param.name}",
        type=param.kind.from_text,
        required=param.required,
        metavar="up|down" if param.kind is UP_DOWN else param.kind.name.upper(),
        help=text.replace("%", "%%"),
    )


def _add_reports(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    state = _command(
        commands,
        "state",
        "show the chips, board, storage clients, rules and subscribers of a served node",
        "nodeagent mock state",
        _state,
    )
    state.add_argument("--output", choices=("table", "json"), default="table", help="default: table")
    log = _command(commands, "log", "switch the log of library calls", "nodeagent mock log on", _log)
    log.add_argument("switch", choices=("on", "off"))
    calls = _command(
        commands,
        "calls",
        "show logged library calls, oldest first",
        "nodeagent mock calls --function dcmi_get_device_health --count 20",
        _calls,
    )
    calls.add_argument("--count", type=int, default=100, help="the newest so many (default: 100)")
    calls.add_argument("--function", help="only this one, named as it was called")
    calls.add_argument("--clear", action="store_true", help="forget the logged calls afterwards")
    calls.add_argument("--output", choices=("table", "json"), default="table", help="default: table")


def _path(_args: argparse.Namespace) -> int:
    print(library_dir())
    return EXIT_OK


def _serve(args: argparse.Namespace) -> int:
    from nodeagent.mock.serve import serve  # the server is of no use to any other command

    folder = library_dir()
    socket = args.socket or str(Path(tempfile.gettempdir()) / f"nodeagent-mock-{os.getuid()}.sock")

    def ready(spec: NodeSpec) -> None:
        product = spec.product
        print(
            f"serving {product.title} ({spec.profile}, {spec.chips} chips) at {socket}; in the client's shell:\n"
            f"export LD_LIBRARY_PATH={folder}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}} {SOCKET_VARIABLE}={socket}",
            flush=True,
        )

    serve(socket, args.node, args.timeline, args.log_calls, ready)
    return EXIT_OK


def _act(args: argparse.Namespace) -> int:
    action: Action = args.action
    fields = {param.name: getattr(args, f"param_{param.name}") for param in action.params}
    return _with_control(args, lambda control: _report(control.command(action.name, **fields)))


def _report(answer: dict[str, Any]) -> None:
    for event in injected(answer):
        head = f"event {event.token}: {event.code} on {_place_of(event)}"
        if not event.callbacks and not event.missing:
            print(f"{head}, nobody is subscribed")
        for callback in event.callbacks:
            moment = f"{callback.wall_ns / 1e9:.6f}"
            print(f"{head}, callback in process {callback.pid} at {moment} after {callback.delay_ms:.3f} ms")
        if event.missing:
            print(f"{head}, {event.missing} subscribers have not taken it yet")
    if "storm_events" in answer:
        print(f"storm of {answer['storm_events']} events begun; `nodeagent mock state` tells how far it is")


def _place_of(event: Injected) -> str:
    if not event.code.startswith("["):
        return f"chip {event.chip}"
    return f"switch {event.chip}" + ("" if event.port is None else f" port {event.port}")


def _play(args: argparse.Namespace) -> int:
    def play(control: MockControl) -> None:
        answer = control.play(args.file)
        print(f"played {answer['entries']} entries of {args.file}")
        if answer["problems"]:
            raise MockError("; ".join(answer["problems"]))

    return _with_control(args, play)


def _state(args: argparse.Namespace) -> int:
    def show(control: MockControl) -> None:
        state = control.state()
        print(json.dumps(state, indent=2) if args.output == "json" else "\n".join(state_lines(state)))

    return _with_control(args, show)


def _log(args: argparse.Namespace) -> int:
    return _with_control(args, lambda control: control.log_calls(args.switch == "on"))


def _calls(args: argparse.Namespace) -> int:
    def show(control: MockControl) -> None:
        calls = control.calls(args.count, function=args.function, clear=args.clear)
        if args.output == "json":
            print(json.dumps(calls, indent=2))
            return
        rows: list[tuple[str, ...]] = [("wall ms", "process", "function", "arguments", "rc")]
        for call in calls:
            words = " ".join(str(value) for value in call["args"]) or "-"
            rows.append((str(call["wall_ms"]), str(call["pid"]), call["function"], words, str(call["rc"])))
        print("\n".join(table_lines(rows)))

    return _with_control(args, show)


def _with_control(args: argparse.Namespace, use: Callable[[MockControl], None]) -> int:
    """Exit code of something done over a control connection; errors become one sentence on stderr."""
    try:
        if not args.socket:
            raise MockUnreachable("no socket is named", f"give --socket or export {SOCKET_VARIABLE}")
        with MockControl(args.socket) as control:
            use(control)
    except MockUnreachable as error:
        print(f"nodeagent: {error}", file=sys.stderr)
        return EXIT_UNREACHABLE
    except MockError as error:
        print(f"nodeagent: {error}", file=sys.stderr)
        return EXIT_REFUSED
    return EXIT_OK
