"""One look at the switches of an A3 node: open the LingQu library in a driver host of its own, ask once, close."""

from dataclasses import dataclass

from nodeagent.core.clock import Clock
from nodeagent.core.errors import HostError, NodeAgentError
from nodeagent.core.observation import SwitchFact, SwitchLibraryFound, SwitchListSeen, SwitchSilent
from nodeagent.drivers.switches import ConnectSwitches, SwitchNews


@dataclass(frozen=True, slots=True)
class SwitchLook:
    """What one look found. absent: why the library does not serve this node, one sentence; empty = it does."""

    facts: tuple[SwitchFact, ...] = ()
    absent: str = ""


def look_at_switches(connect: ConnectSwitches | None, clock: Clock) -> SwitchLook:
    """Ask once; no error of the library is one of the look. connect: None = it is not to be used.

    As for the daemon (decision 68): a library that is missing or refuses to begin is absent, and one that gives no
    answer is silent; nothing is known then.
    """
    if connect is None:
        return SwitchLook((SwitchLibraryFound(False, clock.now()),), "switches.enabled is false")
    driver = connect(_ignore)
    try:
        try:
            driver.open()
        except HostError as error:
            return SwitchLook((SwitchSilent(error.sentence, clock.now()),))
        except NodeAgentError as error:
            return SwitchLook((SwitchLibraryFound(False, clock.now()),), error.sentence)
        asked = clock.now()
        found = SwitchLibraryFound(True, asked)
        try:
            return SwitchLook((found, SwitchListSeen(driver.faults(), asked)))
        except NodeAgentError as error:
            return SwitchLook((found, SwitchSilent(error.sentence, clock.now())))
    finally:
        driver.close()


def _ignore(_: SwitchNews) -> None:
    """One look subscribes to nothing."""
