"""`nodeagent run`: the daemon, in the foreground until SIGTERM or SIGINT."""

import argparse
import contextlib
import logging
import signal
import threading
from dataclasses import replace
from pathlib import Path

from nodeagent.cli.common import add_settings_flags, pretended, settings_of
from nodeagent.cli.last_words import leave_last_words
from nodeagent.core.clock import AcceleratedClock, Clock, SystemClock
from nodeagent.core.errors import NodeAgentError, SettingsError
from nodeagent.core.settings import DaemonSettings, Settings
from nodeagent.core.settings_load import check_node_name
from nodeagent.daemon.app import Daemon
from nodeagent.daemon.build import site_documents
from nodeagent.daemon.logs import set_up_logging
from nodeagent.daemon.parts import Layers
from nodeagent.drivers.hardware import npu_traces
from nodeagent.policy.configuration import build_configuration
from nodeagent.sources.config_documents import shipped

log = logging.getLogger("nodeagent.run")

DRY_RUN_DIRECTORY = "nodeagent-dry-run"
DRY_RUN_NODE = "dry-run-node"

_EPILOG = """\
examples:
  nodeagent run --dry-run                                  a pretended A2 node, files in ./nodeagent-dry-run/
  nodeagent run --dry-run --node a3 --timeline faults.yaml
  NODE_NAME=worker-1 nodeagent run --config /etc/nodeagent/config.yaml

While a dry run lives, break its hardware from another terminal with the socket that its first line names:
  NODEAGENT_MOCK_SOCKET=… nodeagent mock raise --chip 3 --code 80E18005

Exit codes: 0 stopped by a signal, 2 could not start (one sentence says why).
"""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the program's parser."""
    parser = subparsers.add_parser(
        "run",
        help="run the daemon",
        description="Watch the chips of this node and publish what is wrong with them, until SIGTERM or Ctrl-C.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_settings_flags(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Start the daemon and wait for a signal. What keeps it from starting is also left for the status of the pod."""
    try:
        return _run(arguments)
    except NodeAgentError as error:
        leave_last_words(str(error))
        raise


def _run(arguments: argparse.Namespace) -> int:
    settings = settings_of(arguments)
    if arguments.dry_run:
        settings = dry_run_defaults(settings)
        _check_pretending(settings)
    check_node_name(settings.node.name, settings.publish.mode == "shadow")
    set_up_logging(settings.log.level, settings.log.format)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with contextlib.ExitStack() as stack:
        clock: Clock = SystemClock()
        if arguments.dry_run:
            settings = stack.enter_context(pretended(settings))
            clock = _policy_clock(settings)
            log.info("dry run mock_node=%s NODEAGENT_MOCK_SOCKET=%s", settings.mock.node, settings.mock.socket)
        lowest, site = shipped(), site_documents(settings)
        config, warnings = build_configuration(lowest, site)
        for warning in warnings:
            log.warning("fault table: %s", warning)
        daemon = Daemon(settings, Layers(lowest, config, tuple(site)), clock, stop)
        log.info("starting node=%s target=%s configuration=%s", settings.node.name, daemon.where, config.version)
        if daemon.start():
            stop.wait()
        daemon.stop()
    return 0


def _check_pretending(settings: Settings) -> None:
    """Pretended faults of a node with real NPUs would take these out of use. Raises SettingsError."""
    publish = settings.publish
    if publish.target != "kubernetes" or publish.mode == "shadow" or settings.mock.on_real_node == "publish":
        return
    if traces := npu_traces():
        raise SettingsError(
            f"a dry run would publish pretended faults of a machine that has real NPUs: {', '.join(traces)}",
            "use publish.mode=shadow, or say mock.on_real_node=publish if that is what you want",
        )


def _policy_clock(settings: Settings) -> Clock:
    """Accelerated where the settings say so."""
    mock = settings.mock
    if mock.time_factor == 1:
        return SystemClock()
    return AcceleratedClock(mock.time_factor, None, int(mock.time_anchor_s * 1000) or None)


def dry_run_defaults(settings: Settings) -> Settings:
    """Where nothing else was said: a folder beside us, files of our own in it, a name of its own."""
    publish, node = settings.publish, settings.node
    if not node.name:
        node = replace(node, name=DRY_RUN_NODE)
    if publish.target == "kubernetes":
        return replace(settings, node=node)
    publish = replace(publish, directory=publish.directory or DRY_RUN_DIRECTORY)
    own, defaults = settings.daemon, DaemonSettings()
    folder = Path(publish.directory or DRY_RUN_DIRECTORY)
    if own.state_dir == defaults.state_dir:
        own = replace(own, state_dir=str(folder / ".nodeagent"))
    if own.lock == defaults.lock:
        own = replace(own, lock=str(folder / ".nodeagent" / "lock"))
    if own.socket == defaults.socket:
        own = replace(own, socket=str(folder / ".nodeagent" / "socket"))
    return replace(settings, publish=publish, node=node, daemon=own)
