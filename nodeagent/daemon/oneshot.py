"""One look at the node: open the library, ask every chip once, judge, close. For `nodeagent scan`."""

from collections.abc import Callable
from dataclasses import dataclass

from nodeagent.core.clock import SystemClock
from nodeagent.core.codes import CARD_DROPPED
from nodeagent.core.errors import HostError, NodeAgentError
from nodeagent.core.model import NodeView
from nodeagent.core.observation import ChipCodes, ChipSilent, FaultOccurred, InventorySeen, Observation, SourceComplete
from nodeagent.drivers.chips import ChipDriver, Connect, DriverNews, Opened
from nodeagent.drivers.host import HostGoneError, HostStuckError
from nodeagent.policy.engine import step
from nodeagent.policy.rules import Configuration
from nodeagent.policy.state import NodeState


@dataclass(frozen=True, slots=True)
class Look:
    """What one look found. silent: logic id -> why a chip could not be judged. problems: unidentified parts."""

    view: NodeView
    silent: dict[int, str]
    problems: tuple[str, ...]
    library: str


def look(connect: Connect, config: Configuration, progress: Callable[[str], None]) -> Look:
    """Ask every chip once. A chip that hangs or fails is told as silent, the others are asked all the same.

    Raises NodeAgentError when the library cannot be opened at all.
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
    now = clock.now()
    view = step(NodeState(), [*facts, SourceComplete(now)], now, config).view
    if view is None:
        raise HostError("the look at the node gave no result")
    return Look(view, silent, opened.problems, opened.library)


def _open(connect: Connect, avoid: frozenset[int]) -> tuple[ChipDriver, Opened]:
    driver = connect(_ignore)
    try:
        return driver, driver.open(avoid)
    except NodeAgentError:
        driver.close()
        raise


def _ignore(_: DriverNews) -> None:
    """One look subscribes to nothing."""
