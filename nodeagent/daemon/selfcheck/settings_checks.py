"""Verdicts on settings, fault tables and rules, and the line of versions. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nodeagent.core.errors import NodeAgentError
from nodeagent.core.model import Product
from nodeagent.daemon.selfcheck.check import Check, fail, failed, ok, shortened, warn
from nodeagent.policy.rules import Configuration
from nodeagent.policy.table_records import BadTableError, Finding

SETTINGS, FAULT_TABLES, FAULT_CONFIGMAP, VERSIONS = "settings", "fault-tables", "fault-configmap", "versions"
Judged = tuple[Configuration, tuple[Finding, ...]]
"""A configuration and what was found in its documents, as `build_configuration` gives it."""


@dataclass(frozen=True, slots=True)
class Versions:
    """Our side of what must fit together. Empty = not known here."""

    nodeagent: str
    python: str
    cffi: str
    kubernetes: str
    kernel: str
    api_server: str = ""


def check_settings(file: str) -> Check:
    """file: the settings file in use, empty = none. A wrong one ends the command before any check."""
    return ok(SETTINGS, file or "no file: defaults, environment and flags")


def check_tables(judged: Judged | NodeAgentError) -> Check:
    """The layers that lie on this node: shipped, site file, folder."""
    lint = "`nodeagent table lint FILE` lists every problem"
    if isinstance(judged, NodeAgentError):
        return _refused(FAULT_TABLES, "they are refused, and the daemon does not start", judged, lint)
    config, findings = judged
    return _with_findings(FAULT_TABLES, f"version {config.version}: {', '.join(config.layers)}", findings, lint)


def check_fault_object(where: str, present: bool, judged: Judged | NodeAgentError) -> Check:
    """The ConfigMap on top of them. where: NAMESPACE/NAME. present: it is there."""
    namespace, _, name = where.partition("/")
    lint = f"`kubectl get configmap -n {namespace} {name} -o yaml > FILE`, then `nodeagent table lint FILE`"
    if isinstance(judged, NodeAgentError):
        return _refused(FAULT_CONFIGMAP, f"{where} is refused: what was in force stays", judged, lint)
    if not present:
        return ok(FAULT_CONFIGMAP, f"{where} is not there: the tables of this node are in force")
    config, findings = judged
    return _with_findings(FAULT_CONFIGMAP, f"{where}, with it version {config.version}", findings, lint)


def words_of(versions: Versions, product: Product | None, library: str) -> Mapping[str, str]:
    """The versions by name, in the order in which they are shown; unknown ones left out."""
    words = {
        "nodeagent": versions.nodeagent,
        "python": versions.python,
        "cffi": versions.cffi,
        "kubernetes": versions.kubernetes,
        "kernel": versions.kernel,
        "api_server": versions.api_server,
        "driver": product.driver_version if product is not None else "",
        "dcmi": product.generation if product is not None else "",
        "product": product.family.value if product is not None else "",
        "chip": product.chip_name if product is not None else "",
        "library": library,
    }
    return {name: word for name, word in words.items() if word}


def compatibility_line(words: Mapping[str, str]) -> str:
    """One line of `name=value`, as logs have it."""
    return " ".join(f"{name}={word!r}" if " " in word else f"{name}={word}" for name, word in words.items())


def check_versions(words: Mapping[str, str]) -> Check:
    """Shown, not judged: which versions fit together nobody has written down."""
    return ok(VERSIONS, compatibility_line(words))


def _refused(name: str, detail: str, error: NodeAgentError, lint: str) -> Check:
    if isinstance(error, BadTableError):
        lines = shortened([str(finding) for finding in error.findings if finding.serious])
        return fail(name, "\n".join([detail, *lines]), lint)
    return failed(name, error)


def _with_findings(name: str, detail: str, findings: Sequence[Finding], lint: str) -> Check:
    if not findings:
        return ok(name, detail)
    dropped = [f"{finding} (dropped)" for finding in findings if finding.serious]
    others = [str(finding) for finding in findings if not finding.serious]
    return warn(name, "\n".join([detail, *shortened(dropped + others)]), lint)
