"""Small text files at the edge, so that policy code only ever gets text and a label."""

import stat
from pathlib import Path

from nodeagent.core.errors import NodeAgentError, TableError

LIMIT_BYTES = 10 * 1024 * 1024
"""Upper bound of a configuration file; upstream reads its own with the same limit (chip-faults 6.1)."""

SHIPPED_TABLES = ("chip.yaml", "link.yaml")
"""Fault tables of the package, in loading order."""
SHIPPED_SWITCHES = "switch.yaml"
"""Levels and names of switch faults (docs/switches.md)."""
SHIPPED_NODES = "node.yaml"
"""Levels and names of node faults (docs/fault-tables.md)."""
SHIPPED_RULES = "rules.yaml"
"""Rules on top of the levels (docs/rules.md)."""
VOCABULARY = "vocabulary.yaml"
"""The words that name unlisted codes; only `explain` and `table` need it."""


def read_text(path: str | Path, limit_bytes: int = LIMIT_BYTES, error: type[NodeAgentError] = NodeAgentError) -> str:
    """The UTF-8 text of a regular file, without a byte-order mark.

    path: file to read; symbolic links are followed (a mounted ConfigMap consists of them).
    limit_bytes: largest size accepted, in bytes.
    error: class that is raised for a file that is missing, not readable, not a regular file, empty,
    larger than the limit, or not UTF-8 text. The sentence names the file.
    """
    name = str(path)
    try:
        # Asked before opening: opening a pipe would wait for a writer.
        regular = stat.S_ISREG(Path(path).stat().st_mode)
        content = b""
        if regular:
            with open(path, "rb") as stream:
                content = stream.read(limit_bytes + 1)
    except FileNotFoundError:
        raise error(f"{name} does not exist") from None
    except (OSError, ValueError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) and problem.strerror else str(problem)
        raise error(f"{name} cannot be read: {reason}") from problem
    if not regular:
        raise error(f"{name} is not a regular file")
    if len(content) > limit_bytes:
        raise error(f"{name} is larger than the limit of {_size_text(limit_bytes)}")
    if not content.strip():
        raise error(f"{name} is empty")
    if b"\0" in content:
        raise error(f"{name} is binary, not text")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = content.count(b"\n", 0, problem.start) + 1
        raise error(f"{name} is not UTF-8 text (line {line})") from None


def replace_text(path: Path, text: str) -> None:
    """Write a file in one step, its folder first if need be. Raises OSError; then the old content stands.

    Not synced: it survives a kill of the program, not for sure a power cut.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(text)
    temporary.replace(path)


def read_shipped(name: str) -> tuple[str, str]:
    """Label and text of a file that comes with the package, for `load_table` and `load_vocabulary`.

    name: one of SHIPPED_TABLES, SHIPPED_SWITCHES, SHIPPED_NODES, SHIPPED_RULES or VOCABULARY. Raises TableError when
    the installation lacks it.
    """
    package = Path(__file__).resolve().parent.parent
    installed = package / "fault_codes" / name
    path = installed if installed.exists() else package.parent / "fault_codes" / name
    return f"fault_codes/{name}", read_text(path, error=TableError)


def _size_text(size_bytes: int) -> str:
    if size_bytes >= 1024 * 1024:
        return f"{size_bytes / (1024 * 1024):g} MiB"
    return f"{size_bytes} bytes"
