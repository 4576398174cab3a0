"""`nodeagent table convert`: upstream's JSON documents to our YAML, and what is in force to upstream's JSON."""

import argparse
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from nodeagent.cli.documents import SHIPPED, configuration_of, documents_at, node_configuration_of
from nodeagent.core.errors import TableError
from nodeagent.core.files import SHIPPED_RULES, read_shipped, read_text
from nodeagent.policy.configuration import OUR_KEY, BadConfigurationError, ClusterDocuments
from nodeagent.policy.configuration_lint import DocumentKind, kind_of
from nodeagent.policy.rules_load import read_rules
from nodeagent.policy.table_records import Finding
from nodeagent.policy.upstream import FAULT_CODES_KEY, read_levels
from nodeagent.policy.upstream_node import NODE_CODES_KEY, node_levels_json, node_levels_yaml, read_node_levels
from nodeagent.policy.upstream_rules import CUSTOMIZATION_KEY, read_customization
from nodeagent.policy.upstream_switch import (
    SWITCH_CODES_KEY,
    read_switch_levels,
    switch_levels_json,
    switch_levels_yaml,
)
from nodeagent.policy.upstream_write import customization_json, levels_json, levels_yaml, rules_yaml
from nodeagent.sources.config_documents import shipped, shipped_nodes

COMPLETE, INCOMPLETE = 0, 1
"""Exit codes; 2 when something cannot be read or is refused."""
_YAML = "yaml"
_JSON = (FAULT_CODES_KEY, CUSTOMIZATION_KEY, SWITCH_CODES_KEY, NODE_CODES_KEY)
_OTHER_WAY = f"--to {', '.join(_JSON[:-1])} or {_JSON[-1]}"

_EPILOG = f"""\
To YAML: one faultCode.json, faultCustomization.json, SwitchFaultCode.json or NodeDConfiguration.json becomes a file of
our format that means the same.
To JSON: the shipped documents with FILEs on top, as they are in force together, become one document of upstream's.
A JSON document has no place for texts, suppressions, the rule for unlisted codes, association and port rules.

examples:
  nodeagent table convert faultCode.json > faults.yaml
  nodeagent table convert faultCustomization.json > rules.yaml
  nodeagent table convert {SHIPPED} --to {FAULT_CODES_KEY}
  nodeagent table convert {SHIPPED} --to {SWITCH_CODES_KEY}
  nodeagent table convert {SHIPPED} --to {NODE_CODES_KEY}
  nodeagent table convert /etc/nodeagent/faults.yaml --to {CUSTOMIZATION_KEY}

exit codes: 0 all was carried over, 1 groups or codes that are wrong were left out (stderr names them),
2 something cannot be read or would be refused
"""


def register(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the action to `table`."""
    parser = actions.add_parser(
        "convert",
        help="turn upstream's JSON documents into YAML, or what is in force into them",
        description="Turn the JSON documents of upstream into YAML and back.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help=f"document, folder, or the word `{SHIPPED}`")
    parser.add_argument("--to", choices=(_YAML, *_JSON), default=_YAML, help="form (yaml)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the converted document, findings on stderr; returns the exit code of the epilog. Raises TableError."""
    if arguments.to == _YAML:
        return _to_yaml(arguments.files)
    if arguments.to == NODE_CODES_KEY:
        nodes, findings = node_configuration_of(arguments.files)
        _say(findings)
        print(node_levels_json(nodes.table), end="")
        return COMPLETE
    configuration, findings = configuration_of(arguments.files)
    _say(findings)
    if arguments.to == FAULT_CODES_KEY:
        print(levels_json(configuration.table), end="")
    elif arguments.to == SWITCH_CODES_KEY:
        print(switch_levels_json(configuration.switches), end="")
    else:
        print(customization_json(configuration.rules, configuration.table, grace_of(arguments.files)), end="")
    return INCOMPLETE if any(finding.serious for finding in findings) else COMPLETE


def grace_of(names: Iterable[str]) -> Mapping[str, int] | None:
    """GraceTolerance of the highest document that says one; the shipped rules are the lowest."""
    grace = read_rules(*read_shipped(SHIPPED_RULES)).grace
    for label, text in _texts(names):
        kind = kind_of(label, text)
        if kind is DocumentKind.CUSTOMIZATION:
            grace = read_customization(label, text).grace or grace
        elif kind is DocumentKind.OURS:
            grace = read_rules(label, text).grace or grace
    return grace


def _texts(names: Iterable[str]) -> Iterable[tuple[str, str]]:
    for name in names:
        if name == SHIPPED:
            continue
        found = documents_at(name)
        if isinstance(found, ClusterDocuments):
            yield from ((key, found.texts[key]) for key in (CUSTOMIZATION_KEY, OUR_KEY) if key in found.texts)
        else:
            yield found


def _to_yaml(files: list[str]) -> int:
    if len(files) != 1:
        raise TableError("only one document at a time can become YAML", "convert each of them by itself")
    name = files[0]
    if name == SHIPPED:
        raise TableError("the shipped documents are YAML already", _OTHER_WAY)
    text = read_text(name, error=TableError)
    kind = kind_of(name, text)
    below = shipped()
    table = below.table
    if kind is DocumentKind.LEVELS:
        levels = read_levels(name, text)
        findings, usable = levels.findings, levels.usable
        converted, left_out = levels_yaml(levels.entries, table, Path(name).name)
    elif kind is DocumentKind.CUSTOMIZATION:
        read = read_customization(name, text)
        findings, usable = read.findings, read.usable
        converted, left_out = rules_yaml(read, table, Path(name).name)
    elif kind is DocumentKind.SWITCH_LEVELS:
        switches = read_switch_levels(name, text)
        findings, usable = switches.findings, switches.usable
        converted, left_out = switch_levels_yaml(switches.entries, below.switches, Path(name).name)
    elif kind is DocumentKind.NODE_LEVELS:
        nodes = read_node_levels(name, text)
        findings, usable, left_out = nodes.findings, nodes.usable, []
        converted = node_levels_yaml(nodes.entries, shipped_nodes().table, Path(name).name)
    else:
        raise TableError(f"{name} is no JSON document of upstream's", f"{_OTHER_WAY} for the other way")
    if not usable:
        raise BadConfigurationError(findings)
    _say(findings)
    for code in left_out:
        who = "switch" if kind is DocumentKind.SWITCH_LEVELS else "chip"
        print(f"{name}: code {code}: no {who} can report it; it is left out", file=sys.stderr)
    print(converted, end="")
    return INCOMPLETE if left_out or any(finding.serious for finding in findings) else COMPLETE


def _say(findings: Iterable[Finding]) -> None:
    for finding in findings:
        print(finding if finding.serious else f"{finding} (warning)", file=sys.stderr)
