"""One port-down code of one chip: what speaks for it, and what the engine has been told (R23). No I/O."""

from dataclasses import dataclass

from nodeagent.core.instant import Instant
from nodeagent.core.levels import Severity
from nodeagent.core.observation import FaultOccurred, FaultRecovered

LinkFact = FaultOccurred | FaultRecovered


@dataclass(slots=True)
class LinkState:
    """A RoCE port, or the UB ports of a 950 chip: bad while event, query or gateway say so.

    event: the driver's last word, by an event or a full query. query: hccn_tool's. gateway: the detection's.
    told: what the engine was told last; turned_ms: when that turned; stamp: time of the last fact told.
    driver_ms: time of the last event.
    """

    logic_id: int
    code: int
    event: bool = False
    query: bool = False
    gateway: bool = False
    told: bool = False
    turned_ms: int | None = None
    stamp: Instant | None = None
    driver_ms: int | None = None

    @property
    def bad(self) -> bool:
        """R23: any of the three."""
        return self.event or self.query or self.gateway

    def told_at(self, asked_ms: int) -> bool:
        """What the engine knew when a query began that is answered only now: a newer transition outranks it."""
        turned_since = self.turned_ms is not None and self.turned_ms > asked_ms
        return self.told != turned_since

    def driver_says(self, down: bool, at: Instant) -> None:
        """An event."""
        self.event = down
        self.driver_ms = at.mono_ms

    def list_says(self, down: bool, asked_ms: int) -> None:
        """A full query, unless an event came while it ran."""
        if self.driver_ms is None or self.driver_ms <= asked_ms:
            self.event = down

    def express(self, at: Instant, severity: Severity | None = None) -> list[LinkFact]:
        """The transition that the engine has not been told yet, if there is one."""
        if self.bad == self.told:
            return []
        return self._tell([self.bad], at, severity)

    def _tell(self, turns: list[bool], at: Instant, severity: Severity | None) -> list[LinkFact]:
        """Occurrences (True) and recoveries that end in the present state, all of one moment.

        Times of one link never run backwards: a sample may be handed over after an event that came later.
        """
        if self.stamp is not None and self.stamp.mono_ms > at.mono_ms:
            at = self.stamp
        self.stamp = at
        if self.bad != self.told:
            self.told, self.turned_ms = self.bad, at.mono_ms
        return [
            FaultOccurred(self.logic_id, self.code, severity, at)
            if bad
            else FaultRecovered(self.logic_id, self.code, at)
            for bad in turns
        ]


@dataclass(slots=True)
class BondState(LinkState):
    """The UBoE ports of a 950 chip, of which some may be down (4.5).

    bonding: how many are down, None = never learnt. While it is known it stands for event and query: the driver's
    code alone does not say how many. counted: the number that the engine holds.
    """

    bonding: int | None = None
    counted: int = 0

    @property
    def bad(self) -> bool:
        """A known count decides; without one the driver's word. The gateway speaks beside both."""
        return self.gateway or (self.event if self.bonding is None else self.bonding > 0)

    def express(self, at: Instant, severity: Severity | None = None) -> list[LinkFact]:
        """Transitions, and changes of the count while the link stays bad.

        More ports down is another occurrence. Fewer is a recovery, after which the engine lets the code occur anew
        with the ports that are left (W28); with none left but a bad gateway the bare code occurs again.
        """
        down = self.bonding or 0
        if self.bad == self.told and (not self.bad or down == self.counted):
            return []
        better = self.told and (not self.bad or down < self.counted)
        self.counted = down
        bare = better and self.bad and down == 0
        return self._tell([not better, True] if bare else [not better], at, severity)
