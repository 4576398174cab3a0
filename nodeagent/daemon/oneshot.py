"""One look at the node: open the library, ask every chip once, judge, close. For `nodeagent scan`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nodeagent.core.clock import Clock, SystemClock
from nodeagent.core.codes import CARD_DROPPED
from nodeagent.core.errors import HostError, NodeAgentError
from nodeagent.core.instant import Instant
from nodeagent.core.model import Family, NodeView
from nodeagent.core.observation import ChipCodes, ChipSilent, FaultOccurred, InventorySeen, Observation, SourceComplete
from nodeagent.core.settings import Settings
from nodeagent.daemon.build import connect_dcmi, connect_switches
from nodeagent.daemon.oneshot_switches import SwitchLook, look_at_switches
from nodeagent.drivers.chips import ChipDriver, Connect, DriverNews, Opened
from nodeagent.drivers.host import HostGoneError, HostStuckError, Reaper
from nodeagent.policy.engine import step
from nodeagent.policy.rules import Configuration
from nodeagent.policy.state import NodeState
from nodeagent.policy.switch_why import explain_switch
from nodeagent.policy.why import ChipWhy, explain_chip


@dataclass(frozen=True, slots=True)
class Look:
    """What one look found. silent: logic id -> why a chip could not be judged. problems: unidentified parts.

    switches_absent: why no LingQu library serves an A3 node, empty where one does or nobody asked.
    """

    state: NodeState
    at: Instant
    silent: dict[int, str]
    problems: tuple[str, ...]
    library: str
    switches_absent: str = ""

    @property
    def view(self) -> NodeView:
        """The node as it would be published. Raises HostError when there is nothing to show."""
        if self.state.view is None:
            raise HostError("the look at the node gave no result")
        return self.state.view

    def why(self, logic_id: int, config: Configuration) -> ChipWhy | None:
        """Why a chip has its level; None when there is no such chip."""
        return explain_chip(self.state, logic_id, config, self.at)

    def why_switch(self, chip_id: int, port_id: int | None, config: Configuration) -> dict[str, Any] | None:
        """The same for a switch or one of its ports; None when the node has no switches."""
        return explain_switch(self.state, chip_id, port_id, config, self.switches_absent)


def look(
    connect: Connect,
    config: Configuration,
    progress: Callable[[str], None],
    switches: Callable[[Clock], SwitchLook] | None = None,
) -> Look:
    """Ask every chip once. A chip that hangs or fails is told as silent, the others are asked all the same.

    switches: asked at last, on an A3; None = not asked. Raises NodeAgentError when the library cannot be opened at all.
    """
    clock = SystemClock()
    progress("opening the driver library")
    driver, opened = _open(connect, frozenset())
    try:
        facts: list[Observation] = [InventorySeen(opened.inventory, clock.now())]
        silent: dict[int, str] = {}
        for number, chip in enumerate(opened.inventory.chips, 1):
            progress(f"asking chip {number} of {len(opened.inventory.chips)}")
            at = clock.now()
            try:
                answer = driver.codes(chip)
            except NodeAgentError as error:
                silent[chip.logic_id] = error.sentence
                facts.append(ChipSilent(chip.logic_id, error.sentence, at))
                if isinstance(error, HostStuckError | HostGoneError):
                    driver.close()
                    driver, _ = _open(connect, frozenset(silent))
                continue
            if answer.codes is None:
                facts.append(FaultOccurred(chip.logic_id, CARD_DROPPED, None, at))
            else:
                facts.append(ChipCodes(chip.logic_id, answer.codes, at))
    finally:
        driver.close()
    seen = SwitchLook()
    if switches is not None and opened.inventory.product.family is Family.A3:
        progress("asking the switches")
        seen = switches(clock)
    now = clock.now()
    state = step(NodeState(), [*facts, *seen.facts, SourceComplete(now)], now, config).state
    return Look(state, now, silent, opened.problems, opened.library, seen.absent)


def look_at_node(settings: Settings, config: Configuration, progress: Callable[[str], None]) -> Look:
    """`look` at chips and switches, with the libraries that the settings name."""
    switches = connect_switches(settings, Reaper())
    return look(connect_dcmi(settings, Reaper()), config, progress, lambda clock: look_at_switches(switches, clock))


def _open(connect: Connect, avoid: frozenset[int]) -> tuple[ChipDriver, Opened]:
    driver = connect(_ignore)
    try:
        return driver, driver.open(avoid)
    except NodeAgentError:
        driver.close()
        raise


def _ignore(_: DriverNews) -> None:
    """One look subscribes to nothing."""
