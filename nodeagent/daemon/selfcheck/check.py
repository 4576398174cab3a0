"""What one check says. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from nodeagent.core.errors import NodeAgentError


class Verdict(Enum):
    """How a thing stands. SKIPPED: it could not be asked, or does not apply here; that is no trouble by itself."""

    OK = "ok"
    SKIPPED = "skipped"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """One answer. detail: what was found, one or more lines. hint: what to do; empty when there is nothing to do."""

    name: str
    verdict: Verdict
    detail: str
    hint: str = ""

    @property
    def troubled(self) -> bool:
        """Somebody should look at it."""
        return self.verdict in (Verdict.WARN, Verdict.FAIL)


def ok(name: str, detail: str) -> Check:
    """All is well."""
    return Check(name, Verdict.OK, detail)


def skipped(name: str, why: str, hint: str = "") -> Check:
    """Not asked. why: the reason."""
    return Check(name, Verdict.SKIPPED, why, hint)


def warn(name: str, detail: str, hint: str = "") -> Check:
    """The daemon runs, but not as it should."""
    return Check(name, Verdict.WARN, detail, hint)


def fail(name: str, detail: str, hint: str = "") -> Check:
    """The daemon cannot do its work."""
    return Check(name, Verdict.FAIL, detail, hint)


def failed(name: str, error: NodeAgentError) -> Check:
    """A check that ended in an error of ours."""
    return fail(name, f"{error.code}: {error.sentence}", error.hint)


def worst(checks: Iterable[Check]) -> Verdict:
    """FAIL if any failed, else WARN if any warns, else OK: what was skipped is no trouble."""
    found = {check.verdict for check in checks}
    return next((verdict for verdict in (Verdict.FAIL, Verdict.WARN) if verdict in found), Verdict.OK)


def shortened(lines: list[str], limit: int = 5) -> list[str]:
    """At most `limit` lines, and one that counts the rest."""
    return lines if len(lines) <= limit else [*lines[:limit], f"and {len(lines) - limit} more"]
