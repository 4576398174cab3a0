"""What hccn_tool prints, read strictly (native-abi 11.5). Pure: text in, facts or ToolError out.

A text that is not what the sheet describes is an error, and an error means unknown (R15): a complaint of the tool
must not look like a table without ports that are down.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from nodeagent.core.errors import DriverError

_MIN_COLUMNS = 5
_SEPARATORS = 3
_SHOWN = 80


class ToolError(DriverError):
    """hccn_tool was not run, did not answer, or printed something that is no answer: the link state is unknown."""


@dataclass(frozen=True, slots=True)
class Port:
    """One port of a 950 chip. kind: `ETH` (UBoE bonding port), `UB`, or what else the tool says. down: exactly DOWN."""

    udie: int
    port: int
    kind: str
    down: bool


def read_link(text: str) -> bool:
    """True for `link status: UP`, False for `link status: DOWN`; raises ToolError for anything else."""
    words = text.replace("\r", "").replace("\n", "").split(" ")
    words = [w for w in words if w]
    if len(words) != 3 or words[:2] != ["link", "status:"] or words[2] not in ("UP", "DOWN"):
        raise ToolError(f"hccn_tool printed {shortened(text)!r}, not a link status")
    return words[2] == "UP"


def read_ports(text: str) -> list[Port]:
    """Ports with a link state in the first table of `-dev_info`, by the rules of the down-port counter.

    Only rows that say up or down in any letter case count; a malformed one of them spoils the whole answer. A
    table without such rows is an answer (no ports), a text without a table is none. Raises ToolError.
    """
    found = []
    for line in _first_table(text):
        if "up" not in line.lower() and "down" not in line.lower():
            continue
        cells = [c.strip() for c in line.strip().strip("|").split("|")]
        if len(cells) < _MIN_COLUMNS or not cells[3] or not cells[4]:
            raise ToolError(f"hccn_tool printed a damaged port row: {shortened(line)!r}")
        try:
            udie, port = int(cells[0]), int(cells[1])
        except ValueError:
            raise ToolError(f"hccn_tool printed a port row without numbers: {shortened(line)!r}") from None
        found.append(Port(udie, port, cells[3], cells[4] == "DOWN"))
    return found


def _first_table(text: str) -> Iterator[str]:
    """Rows of the first table: they begin with `|`; the third separator line (`+-`) ends it."""
    separators = 0
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("+-"):
            separators += 1
            if separators == _SEPARATORS:
                return
        elif line.startswith("|"):
            yield line
    if separators == 0:
        raise ToolError(f"hccn_tool printed {shortened(text)!r}, not a port table")


def read_port_enabled(text: str) -> bool:
    """Whether `-port_info` says `port_enable: on`, that is, wired. Raises ToolError when it does not say at all."""
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon and key.strip() == "port_enable":
            return value.strip() == "on"
    raise ToolError(f"hccn_tool printed {shortened(text)!r}, without port_enable")


def shortened(text: str) -> str:
    """A text as it can stand in a log line."""
    plain = " ".join(text.split())
    return plain if len(plain) <= _SHOWN else plain[:_SHOWN] + "…"
