"""docs/errors.md has every error code."""

import importlib
import pkgutil
import re
from pathlib import Path

import nodeagent
from nodeagent.core.errors import NodeAgentError

PAGE = Path(__file__).parents[2] / "docs" / "errors.md"
# The only import of the compiled module; the adapter behind it has no errors of its own.
COMPILED = ("nodeagent.drivers.gate", "nodeagent.drivers.dcmi_adapter", "nodeagent.drivers._gate")


def codes() -> set[str]:
    """The code of every error class of the package."""
    for module in pkgutil.walk_packages(nodeagent.__path__, "nodeagent."):
        if module.name not in COMPILED:
            importlib.import_module(module.name)
    found: set[str] = set()
    waiting: list[type[NodeAgentError]] = [NodeAgentError]
    while waiting:
        error = waiting.pop()
        waiting += error.__subclasses__()
        if error.__module__.startswith("nodeagent."):
            found.add(error.code)
    return found


def test_every_code_is_explained_once_and_no_other() -> None:
    text = PAGE.read_text(encoding="utf-8")
    headings = re.findall(r"^## (NA\d{3}) ", text, re.MULTILINE)
    assert headings == sorted(codes())
    assert re.findall(r'^<a id="(NA\d{3})"></a>$', text, re.MULTILINE) == headings
