"""`nodeagent config`: check a settings file, show what is in force, print the reference page."""

import argparse
from dataclasses import fields
from typing import Any

from nodeagent.cli.common import add_settings_flags, settings_of
from nodeagent.core.errors import SettingsError
from nodeagent.core.files import read_text
from nodeagent.core.settings import Settings
from nodeagent.core.settings_docs import configuration_page
from nodeagent.core.settings_load import check_node_name, load_settings

_EPILOG = """\
examples:
  nodeagent config check /etc/nodeagent/config.yaml
  nodeagent config show --set publish.target=directory
  nodeagent config docs > docs/configuration.md

Exit codes: 0 fine, 2 something is wrong (file, line and key are named).
"""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the program's parser."""
    parser = subparsers.add_parser(
        "config",
        help="check and show settings",
        description="Check a settings file, show the settings in force, or print the reference page.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    check = actions.add_parser(
        "check",
        help="check one file",
        description="Check one settings file: every key, its type and its range. Environment and flags do not count."
        " Exit codes: 0 fine, 2 something is wrong.",
    )
    check.add_argument("file", metavar="FILE", help="YAML file with settings (docs/configuration.md)")
    check.set_defaults(run=run_check)
    show = actions.add_parser(
        "show",
        help="print the settings in force, from all sources",
        description="Print every setting as YAML, from file, environment and flags; `# set` marks what is no default.",
    )
    add_settings_flags(show)
    show.set_defaults(run=run_show)
    docs = actions.add_parser(
        "docs",
        help="print docs/configuration.md",
        description="Print the reference page: every setting with its meaning, unit, range and default.",
    )
    docs.set_defaults(run=run_docs)


def run_check(arguments: argparse.Namespace) -> int:
    """Load the file alone; the node name is only checked when the file sets one."""
    from nodeagent.daemon.http_api import place_of

    settings = load_settings(read_text(arguments.file, error=SettingsError), arguments.file, {})
    if settings.node.name:
        check_node_name(settings.node.name)
    if settings.publish.target == "directory" and not settings.publish.directory:
        raise SettingsError(f"{arguments.file}: publish.target is directory, but publish.directory is empty")
    try:
        place_of(settings.http.address, settings.http.port)
    except SettingsError as error:
        raise SettingsError(f"{arguments.file}: {error.sentence}", error.hint) from None
    print(f"{arguments.file}: fine")
    return 0


def run_show(arguments: argparse.Namespace) -> int:
    """Print every setting as YAML, marked where it is not the default."""
    settings = settings_of(arguments)
    defaults = Settings()
    for area in fields(Settings):
        print(f"{area.name}:")
        part, default = getattr(settings, area.name), getattr(defaults, area.name)
        for key in fields(part):
            value = getattr(part, key.name)
            mark = "" if value == getattr(default, key.name) else "  # set"
            print(f"  {key.name}: {_yaml(value)}{mark}")
    return 0


def run_docs(_: argparse.Namespace) -> int:
    """Print the reference page."""
    print(configuration_page(), end="")
    return 0


def _yaml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, int | float) else f'"{value}"'
