"""hccn_tool: the link state of the chips, where the site wants it asked (chip-faults 4.3, 4.4; native-abi 11.5).

Optional. Every error is a ToolError and means unknown, never down (R15). Used by one thread, one run at a time.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from nodeagent.core.clock import monotonic_s
from nodeagent.core.errors import LibraryError
from nodeagent.drivers.command import CommandRunner
from nodeagent.drivers.hccn_text import Port, ToolError, read_link, read_port_enabled, read_ports
from nodeagent.drivers.library import check_ownership

DEFAULT_PATH = "/usr/local/Ascend/driver/tools/hccn_tool"
ENABLED_S = 3600.0
"""How long the answer whether a port is wired is believed; a card may be cabled anew."""


@dataclass(frozen=True, slots=True)
class PortCount:
    """Ports of one 950 chip whose link is down. bonding: UBoE (`ETH`) ports. ub: enabled UB ports."""

    bonding: int
    ub: int


def tool_path(setting: str) -> str | None:
    """The path that the setting `links.hccn_tool` means: empty = off, `auto` = the driver's tool if it is there."""
    if setting == "auto":
        return DEFAULT_PATH if os.path.lexists(DEFAULT_PATH) else None
    return setting or None


class HccnTool:
    """The tool at `path`. trust: skip the ownership check, for dry runs and tests. deadline_s: real, per question."""

    def __init__(self, path: str, deadline_s: float, environ: Mapping[str, str], *, trust: bool = False) -> None:
        self._path = path
        self._deadline_s = deadline_s
        self._trust = trust
        self._runner = CommandRunner(environ)
        self._enabled: dict[tuple[int, int, int], tuple[bool, float]] = {}

    def link_up(self, physical_id: int) -> bool:
        """Whether the RoCE port of a chip is up (910A, A2, A3)."""
        return read_link(self._run(["-i", str(physical_id), "-link", "-g"], monotonic_s() + self._deadline_s))

    def ports_down(self, logic_id: int) -> PortCount:
        """How many ports of a 950 chip are down. All questions about wiring together keep the one deadline."""
        until_s = monotonic_s() + self._deadline_s
        down = [p for p in read_ports(self._run(["-g", "-dev_info", "-i", str(logic_id)], until_s)) if p.down]
        wired = sum(1 for p in down if p.kind == "UB" and self._is_enabled(logic_id, p, until_s))
        return PortCount(sum(1 for p in down if p.kind == "ETH"), wired)

    def stop(self) -> None:
        """Kill a question that runs, and refuse further ones; from any thread."""
        self._runner.stop()

    def resume(self) -> None:
        """Answer questions again after `stop`."""
        self._runner.resume()

    def pids(self) -> list[int]:
        """Processes of questions that have not ended; from any thread."""
        return self._runner.pids()

    def _is_enabled(self, logic_id: int, port: Port, until_s: float) -> bool:
        """A port that does not tell counts as enabled; only a told answer is remembered."""
        key = (logic_id, port.udie, port.port)
        known = self._enabled.get(key)
        if known is not None and monotonic_s() - known[1] < ENABLED_S:
            return known[0]
        question = ["-g", "-port_info", "-i", str(logic_id), "-u", str(port.udie), "-p", str(port.port)]
        try:
            enabled = read_port_enabled(self._run(question, until_s))
        except ToolError:
            return True
        self._enabled[key] = (enabled, monotonic_s())
        return enabled

    def _run(self, arguments: list[str], until_s: float) -> str:
        left_s = until_s - monotonic_s()
        if left_s <= 0:
            raise ToolError("hccn_tool needed all its time for earlier questions")
        return self._runner.run([self._checked_path(), *arguments], left_s)

    def _checked_path(self) -> str:
        """The path, checked at every use: what it names can change while we run."""
        path = os.path.abspath(self._path)
        if os.path.realpath(path) != path:
            raise ToolError(f"{path} leads through a symbolic link and is not run", "name the file itself")
        if not os.path.isfile(path):
            raise ToolError(f"{path} does not exist or is no file", "correct links.hccn_tool, or leave it empty")
        if self._trust:
            return path
        try:
            return check_ownership(path)
        except (LibraryError, OSError) as error:
            raise ToolError(f"{path} is not run: {error}") from error
