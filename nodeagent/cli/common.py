"""What several commands share: the settings flags, and the pretended node of a dry run."""

import argparse
import contextlib
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from nodeagent.core.errors import SettingsError
from nodeagent.core.files import read_text
from nodeagent.core.settings import Settings
from nodeagent.core.settings_load import load_settings
from nodeagent.mock.launch import MockServer, library_dir

DEFAULT_CONFIG = Path("/etc/nodeagent/config.yaml")


def add_settings_flags(parser: argparse.ArgumentParser, *, dry_run: bool = True) -> None:
    """`--config`, `--set`, `--node-name`; with dry_run also `--dry-run`, `--node`, `--timeline`."""
    group = parser.add_argument_group("settings")
    group.add_argument("--config", metavar="FILE", help="YAML file with settings (docs/configuration.md)")
    group.add_argument(
        "--set", dest="overrides", action="append", default=[], metavar="AREA.KEY=VALUE", help="one setting; repeatable"
    )
    group.add_argument("--node-name", metavar="NAME", help="name of the Kubernetes node (default: NODE_NAME)")
    if not dry_run:
        parser.set_defaults(dry_run=False, node=None, timeline=None)
        return
    dry = parser.add_argument_group("dry run")
    dry.add_argument(
        "--dry-run",
        action="store_true",
        help="use the mock library, on the node served at NODEAGENT_MOCK_SOCKET, else on a pretended one of its own",
    )
    dry.add_argument(
        "--node", metavar="PROFILE|FILE", help="the pretended node: 310, 310p, 910a, a2, a3, 950 or a YAML file"
    )
    dry.add_argument("--timeline", metavar="FILE", help="what happens to it, and when (docs/mock.md)")


def settings_file(arguments: argparse.Namespace) -> Path | None:
    """The settings file in use: one that is named, else the usual one if it is there."""
    if named := arguments.config or os.environ.get("NODEAGENT_CONFIG"):
        return Path(named)
    return DEFAULT_CONFIG if DEFAULT_CONFIG.exists() else None


def settings_of(arguments: argparse.Namespace) -> Settings:
    """Settings from the file, the environment and the flags. Raises SettingsError."""
    path = settings_file(arguments)
    text = None if path is None else read_text(path, error=SettingsError)
    overrides = list(arguments.overrides)
    for value, key in (
        (arguments.node_name, "node.name"),
        (arguments.node, "mock.node"),
        (arguments.timeline, "mock.timeline"),
    ):
        if value is not None:
            overrides.append(f"{key}={value}")
    base = Settings()
    if arguments.dry_run:
        # Nobody writes pretended faults into a cluster by accident; the target can be named all the same.
        base = replace(base, publish=replace(base.publish, target="directory"))
    return load_settings(text, str(path), os.environ, overrides, base)


@contextlib.contextmanager
def pretended(settings: Settings) -> Iterator[Settings]:
    """Settings pointed at the mock library; starts a mock node unless one is named, and stops it afterwards.

    Raises ScenarioError for a bad node description, MockError when the node does not start.
    """
    driver = replace(settings.driver, library=str(library_dir() / "libdcmi.so"), trust_library=True)
    switches = replace(settings.switches, library=str(library_dir() / "liblingqu-dcmi.so"))
    settings = replace(settings, driver=driver, switches=switches)
    if settings.mock.socket:
        yield settings
        return
    server = MockServer.start(settings.mock.node, settings.mock.timeline or None)
    try:
        yield replace(settings, mock=replace(settings.mock, socket=server.socket))
    finally:
        server.stop()
