"""`nodeagent table`: check, list, compare and convert fault tables and rules; offline."""

import argparse
import json
import sys
from collections.abc import Iterable

from nodeagent.cli import table_convert, table_diff
from nodeagent.cli.documents import configuration_of, documents_at, node_configuration_of
from nodeagent.cli.flags import add_output_flag, add_site_file_flag
from nodeagent.core.alarms import NodeLevel
from nodeagent.core.errors import NodeAgentError, TableError
from nodeagent.core.levels import Level
from nodeagent.core.switch_codes import SwitchLevel
from nodeagent.policy.configuration import ClusterDocuments
from nodeagent.policy.configuration_lint import DocumentKind, kind_of, lint_documents
from nodeagent.policy.node_table import NodeConfiguration, NodeFaultRecord
from nodeagent.policy.rules import Configuration
from nodeagent.policy.switch_table import SwitchFaultRecord
from nodeagent.policy.table import Document
from nodeagent.policy.table_merge import serious
from nodeagent.policy.table_records import BadTableError, FaultRecord, Finding
from nodeagent.policy.vocabulary import load_vocabulary
from nodeagent.sources.config_documents import shipped, shipped_nodes

CLEAN, FOUND, UNREADABLE = 0, 1, 2
"""Exit codes of `table lint`."""

_LINT_EPILOG = """\
A file is a table, rules, or both (YAML), a faultCode.json, a faultCustomization.json, a SwitchFaultCode.json, a
NodeDConfiguration.json, a folder with these, or a ConfigMap saved with `kubectl get configmap ... -o yaml`; name and
content tell which.
They are laid over the shipped documents and over each other in the given order, as the daemon does it.
Each problem is one line: FILE:LINE: code CODE: what is wrong. Warnings do not refuse a file.

examples:
  nodeagent table lint /etc/nodeagent/faults.yaml
  nodeagent table lint faults.yaml faultCode.json      one on top of the other: also says what is shadowed
  nodeagent table lint NodeDConfiguration.json         levels of node faults
  nodeagent table lint fault_codes/*.yaml              the documents of the source tree

exit codes: 0 no problem but perhaps warnings, 1 a file or a group of its rules would be refused, 2 a file cannot be
read
"""
_LIST_EPILOG = """\
examples:
  nodeagent table list --level SeparateNPU
  nodeagent table list --module HBM --lang zh
  nodeagent table list --switches
  nodeagent table list --node-faults --level SeparateFault
  nodeagent table list --site-file /etc/nodeagent/faults.yaml --output json
"""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command and its actions to the program's parser."""
    parser = subparsers.add_parser(
        "table",
        help="check, list, compare or convert fault tables and rules",
        description="Check fault tables and rules, list what they hold, compare or convert them.",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    _register_lint(actions)
    _register_list(actions)
    table_diff.register(actions)
    table_convert.register(actions)


def _register_lint(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    lint = actions.add_parser(
        "lint",
        help="say everything that is wrong in tables and rules",
        description="Say everything that is wrong in fault tables, rules, upstream's JSON documents or the vocabulary.",
        epilog=_LINT_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    lint.add_argument("files", nargs="+", metavar="FILE", help="document, folder or ConfigMap to check")
    lint.set_defaults(run=run_lint)


def _register_list(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    listing = actions.add_parser(
        "list",
        help="list the codes of the tables",
        description="List the fault codes of the shipped tables and of site files over them.",
        epilog=_LIST_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    levels = [level.text for level in Level if Level.NORMAL < level < Level.MANUALLY_SEPARATE]
    of_switches = [level.text for level in SwitchLevel]
    of_nodes = [level.text for level in NodeLevel]
    listing.add_argument(
        "--level",
        choices=[*levels, *of_switches, *of_nodes],
        metavar="LEVEL",
        help=f"only this level: {', '.join(levels)}; of switches {', '.join(of_switches)};"
        f" of node faults {', '.join(of_nodes)}",
    )
    which = listing.add_mutually_exclusive_group()
    which.add_argument("--module", metavar="MODULE", help="only this module, any letter case, for example HBM")
    which.add_argument("--switches", action="store_true", help="the codes of LingQu switches (Atlas A3) in their place")
    which.add_argument(
        "--node-faults", action="store_true", help="the codes of node faults (alarms of the BMC) in their place"
    )
    listing.add_argument("--lang", choices=("en", "zh", "both"), default="en", help="language of names (en)")
    add_output_flag(listing)
    add_site_file_flag(listing)
    listing.set_defaults(run=run_list)


def run_lint(arguments: argparse.Namespace) -> int:
    """Print every finding; returns the exit code of the epilog."""
    status = CLEAN
    documents: list[Document] = []
    findings: list[Finding] = []
    for path in arguments.files:
        try:
            found = documents_at(path)
        except NodeAgentError as error:
            print(f"nodeagent: {error}", file=sys.stderr)
            status = UNREADABLE
            continue
        if isinstance(found, ClusterDocuments):
            findings += found.problems
            documents += [(found.label(key), text) for key, text in found.texts.items()]
        elif kind_of(*found) is DocumentKind.VOCABULARY:
            findings += _vocabulary_findings(*found)
        else:
            documents.append(found)
    findings += lint_documents(documents, *_shipped_base())
    for finding in findings:
        print(finding if finding.serious else f"{finding} (warning)")
    return max(status, FOUND if serious(findings) else CLEAN)


def run_list(arguments: argparse.Namespace) -> int:
    """Print the records that fit; returns 0. Raises TableError when a table cannot be read or is wrong."""
    if arguments.node_faults:
        nodes = node_configuration_of(arguments.site_file)[0].table
        return _list_others(nodes.records.values(), arguments)
    config = configuration_of(arguments.site_file, texts=True)[0]
    if arguments.switches:
        return _list_others(config.switches.records.values(), arguments)
    table = config.table
    records = [
        record
        for record in table.records()
        if (arguments.level is None or (record.level is not None and record.level.text == arguments.level))
        and (arguments.module is None or record.module.casefold() == arguments.module.casefold())
    ]
    if arguments.output == "json":
        print(json.dumps([_as_data(record) for record in records], ensure_ascii=False, indent=2))
    else:
        for record in records:
            print(_as_line(record, arguments.lang))
    return 0


def _list_others(records: Iterable[SwitchFaultRecord | NodeFaultRecord], arguments: argparse.Namespace) -> int:
    """The listed codes of switches or of nodes; one that is only described counts as unlisted (lingqu-switch-faults 6,
    node-faults 7.1)."""
    listed = [
        (record, record.level)
        for record in records
        if record.level is not None and arguments.level in (None, record.level.text)
    ]
    if arguments.output == "json":
        data = [
            {
                "code": record.text,
                "level": level.text,
                "node_status": level.status,
                "name": {"en": record.name_en, "zh": record.name_zh},
                "said_at": str(record.level_place),
            }
            for record, level in listed
        ]
        print(json.dumps(data, ensure_ascii=False, indent=2))
        return 0
    width = max((len(record.text) for record, _ in listed), default=0)
    for record, level in listed:
        name = _names(record.name_en, record.name_zh, arguments.lang)
        print(f"{record.text:<{width}}  {level.text:<16}  {name}".rstrip())
    return 0


def _vocabulary_findings(path: str, text: str) -> tuple[Finding, ...]:
    try:
        load_vocabulary(path, text)
    except BadTableError as error:
        return error.findings
    return ()


def _shipped_base() -> tuple[Configuration | None, NodeConfiguration | None]:
    """The shipped documents; None when they are themselves broken, which is said: then files stand alone."""
    try:
        return shipped(), shipped_nodes()
    except TableError as error:
        print(f"nodeagent: the shipped tables are left out: {error}", file=sys.stderr)
        return None, None


def _as_line(record: FaultRecord, language: str) -> str:
    name = _names(record.name_en, record.name_zh, language)
    level = record.level.text if record.level is not None else "-"
    return f"{record.text:<9}  {level:<14}  {record.module:<22}  {name}".rstrip()


def _names(english: str, chinese: str, language: str) -> str:
    return {"en": english, "zh": chinese, "both": f"{english} | {chinese}"}[language]


def _as_data(record: FaultRecord) -> dict[str, object]:
    return {
        "code": record.text,
        "level": record.level.text if record.level is not None else None,
        "plane": record.plane.value,
        "module": record.module,
        "name": {"en": record.name_en, "zh": record.name_zh},
        "kind": record.kind.value,
        "severity": record.severity.name.lower() if record.severity is not None else None,
        "category": record.category or None,
        "said_at": str(record.level_place),
    }
