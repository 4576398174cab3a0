"""Link events, link queries and gateway samples become one state per chip (chip-faults 4.3-4.6, R15, R23). No I/O.

Sits between the chip source and the engine: every observation passes through, and the port-down codes in it are
replaced by the merged state, in events and in code lists alike. Times are passed in; one thread owns it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from nodeagent.core.codes import LINK_DOWN, UB_PORT_DOWN, UBOE_PORT_DOWN
from nodeagent.core.errors import SettingsError
from nodeagent.core.instant import Instant
from nodeagent.core.model import ChipId, Family, Inventory, Product
from nodeagent.core.observation import (
    ChipCodes,
    FaultNoticed,
    FaultOccurred,
    FaultRecovered,
    InventorySeen,
    Observation,
    PortsDown,
)
from nodeagent.drivers.hccn import PortCount
from nodeagent.sources.link_state import BondState, LinkFact, LinkState

UBOE_BOARDS = frozenset({0x23, 0x25, 0x27})
"""Main boards of the 950 with UBoE ports, as upstream has them; the vendor's list differs (native-abi 20, row 26)."""
_AGAIN_MS = 5_000
"""Least distance of two queries that a recovery asks for, so that a flapping port does not start a storm of tools."""
_HELD_AGAIN_MS = 1_000
"""The same while events wait for the count of ports."""

_CodeFact = FaultOccurred | FaultRecovered | FaultNoticed


@dataclass(frozen=True, slots=True)
class LinkTimes:
    """Periods of one chip in seconds.

    gateway: its gateway samples. query: questions to hccn_tool at rest. down: while its link is believed down.
    """

    gateway_s: float = 5.0
    query_s: float = 300.0
    down_s: float = 30.0


@dataclass(slots=True)
class _Track:
    """One chip: its links by code, when hccn_tool is to be asked, and events that wait for its count of ports.

    news_ms: when the driver last told what an answer of the tool that was asked for before may not know.
    """

    chip: ChipId
    links: dict[int, LinkState]
    due_ms: int
    news_ms: int = 0
    asked_ms: int | None = None
    ub: int | None = None
    held: list[_CodeFact] = field(default_factory=list)


def parse_boards(text: str) -> frozenset[int]:
    """Main board ids of the setting `links.uboe_boards`, e.g. `0x23,0x25`; empty = no board has UBoE ports.

    Raises SettingsError.
    """
    try:
        return frozenset(int(word, 16) for word in text.split(",") if word.strip())
    except ValueError:
        raise SettingsError(
            f"links.uboe_boards must be hexadecimal numbers with commas between them, not {text!r}"
        ) from None


class LinkPlan:
    """Owned by one thread. tool: hccn_tool is there to be asked. uboe_boards: main boards with UBoE ports."""

    def __init__(self, times: LinkTimes, *, tool: bool, uboe_boards: frozenset[int] = UBOE_BOARDS) -> None:
        self._times = times
        self._tool = tool
        self._boards = uboe_boards
        self._tracks: dict[int, _Track] = {}
        self._counting = False
        self._released = False

    # -- what the chip source saw ------------------------------------------------------

    def take(self, observations: Iterable[Observation], now: Instant) -> list[Observation]:
        """Observations of the chip source in their order, with the merged link state in place of the driver's.

        An event that needs the count of ports first is kept back until `on_ports`; others never wait for it.
        """
        found: list[Observation] = []
        for observation in observations:
            if isinstance(observation, InventorySeen):
                self._inventory(observation.inventory, now)
                found.append(observation)
            elif isinstance(observation, ChipCodes):
                found += self._codes(observation, now.mono_ms)
            elif isinstance(observation, _CodeFact):
                found += self._code_fact(observation)
            else:
                found.append(observation)
        return found

    def _inventory(self, inventory: Inventory, now: Instant) -> None:
        product = inventory.product
        self._counting = self._tool and product.family is Family.A5
        for chip in inventory.chips:
            track = self._tracks.get(chip.logic_id)
            if track is not None:
                track.chip = chip
            else:
                links = {link.code: link for link in self._links_of(product, chip.logic_id)}
                self._tracks[chip.logic_id] = _Track(chip, links, now.mono_ms)

    def _links_of(self, product: Product, logic_id: int) -> list[LinkState]:
        """Only links that the product has are watched (lesson 6)."""
        if product.family is not Family.A5:
            return [LinkState(logic_id, LINK_DOWN)] if product.family.has_network_plane else []
        links = [LinkState(logic_id, UB_PORT_DOWN)]
        if product.mainboard_id in self._boards:
            links.append(BondState(logic_id, UBOE_PORT_DOWN))
        return links

    def _code_fact(self, fact: _CodeFact) -> list[Observation]:
        track = self._tracks.get(fact.logic_id)
        link = track.links.get(fact.code) if track is not None else None
        if track is None or link is None:
            return [fact]
        if self._counting and not self._released and (track.held or _needs_count(fact)):
            track.held.append(fact)
            return []
        return self._apply(track, link, fact)

    def _apply(self, track: _Track, link: LinkState, fact: _CodeFact) -> list[Observation]:
        if isinstance(fact, FaultNoticed):
            return [fact]  # visible once, and no state
        down = isinstance(fact, FaultOccurred)
        link.driver_says(down, fact.at)
        if not down:
            track.news_ms = max(track.news_ms, fact.at.mono_ms)
            if link.query:
                track.due_ms = min(track.due_ms, fact.at.mono_ms)  # the tool's word is older than the recovery
        return self._express(track, link, fact.at, fact)

    def _codes(self, answer: ChipCodes, now_ms: int) -> list[Observation]:
        """The list says what the driver knows; the engine gets it with the state that is merged from all."""
        track = self._tracks.get(answer.logic_id)
        if track is None or not track.links:
            return [answer]
        found: list[Observation] = []
        for link in track.links.values():
            was = link.event
            link.list_says(link.code in answer.codes, answer.at.mono_ms)
            if self._counting and link.event != was:
                track.due_ms, track.news_ms = min(track.due_ms, now_ms), now_ms  # only a later count is surely younger
            found += self._express(track, link, answer.at)
        codes = tuple(c for c in answer.codes if c not in track.links)
        codes += tuple(link.code for link in track.links.values() if link.told_at(answer.at.mono_ms))
        return [*found, replace(answer, codes=codes)]

    # -- samples ------------------------------------------------------------------------

    def on_gateway(self, logic_id: int, bad: bool | None, at: Instant) -> list[Observation]:
        """A gateway sample, taken at `at`; None = an error, which changes nothing (4.6)."""
        track = self._tracks.get(logic_id)
        link = self._gateway_link(track) if track is not None else None
        if track is None or link is None or bad is None:
            return []
        link.gateway = bad
        return self._express(track, link, at)

    def on_link(self, logic_id: int, up: bool | None, asked: Instant) -> list[Observation]:
        """hccn_tool told the state of the RoCE port; None = an error, which changes nothing (R15)."""
        track = self._tracks.get(logic_id)
        if track is None:
            return []
        track.asked_ms = asked.mono_ms
        link = track.links.get(LINK_DOWN)
        found: list[Observation] = []
        if link is not None and up is not None:
            link.query = not up
            found = self._express(track, link, asked)
        self._plan_query(track, asked.mono_ms)
        return found

    def on_ports(self, logic_id: int, count: PortCount | None, asked: Instant) -> list[Observation]:
        """hccn_tool counted the ports of a 950 chip; None = an error.

        Events that came before the question go on, refined by the answer. After an error the last count stands,
        but for one that contradicts the driver: then nothing is known, and the event counts as it is (R15).
        """
        track = self._tracks.get(logic_id)
        if track is None:
            return []
        track.asked_ms = asked.mono_ms
        bond, ub = track.links.get(UBOE_PORT_DOWN), track.links.get(UB_PORT_DOWN)
        released = [f for f in track.held if f.at.mono_ms <= asked.mono_ms]
        track.held = [f for f in track.held if f.at.mono_ms > asked.mono_ms]
        if count is not None:
            track.ub = count.ub
            if ub is not None:
                ub.query = count.ub > 0
        if isinstance(bond, BondState):
            if count is not None:
                bond.bonding = count.bonding
            elif bond.bonding == 0 and any(f.code == bond.code and isinstance(f, FaultOccurred) for f in released):
                bond.bonding = None
        found: list[Observation] = []
        for fact in released:
            found += self._apply(track, track.links[fact.code], fact)
        for link in track.links.values():
            found += self._express(track, link, asked)
        self._plan_query(track, asked.mono_ms)
        return found

    # -- when hccn_tool is asked ------------------------------------------------------------

    @property
    def counting(self) -> bool:
        """The chips of this node are asked for counts of ports, not for the state of one."""
        return self._counting

    def next_query(self, now_ms: int) -> ChipId | None:
        """The chip that is to be asked now: one whose events wait first, then the longest overdue. None = none."""
        due = [(not t.held, self._due_ms(t), i) for i, t in self._asked() if self._due_ms(t) <= now_ms]
        return self._tracks[min(due)[2]].chip if due else None

    def next_due_ms(self) -> int | None:
        """Monotonic time of the next query; None when nothing is ever asked."""
        return min((self._due_ms(t) for _, t in self._asked()), default=None)

    def release(self, now: Instant) -> list[Observation]:
        """hccn_tool is not asked until `resume`; events that wait for its count go on as they are."""
        self._released = True
        found: list[Observation] = []
        for logic_id, track in self._tracks.items():
            if track.held:
                found += self.on_ports(logic_id, None, now)
        return found

    def resume(self, now: Instant) -> None:
        """hccn_tool may be asked again, and is, about every chip."""
        self._released = False
        for track in self._tracks.values():
            track.due_ms, track.asked_ms = now.mono_ms, None

    def _asked(self) -> Iterable[tuple[int, _Track]]:
        return ((i, t) for i, t in self._tracks.items() if self._tool and t.links and not self._released)

    def _due_ms(self, track: _Track) -> int:
        wanted, distance_ms = (track.held[0].at.mono_ms, _HELD_AGAIN_MS) if track.held else (track.due_ms, _AGAIN_MS)
        return wanted if track.asked_ms is None else max(wanted, track.asked_ms + distance_ms)

    def _plan_query(self, track: _Track, asked_ms: int) -> None:
        """After the period; without it when the driver told meanwhile what an answer may not know, unless it agrees."""
        bad = any(link.bad for link in track.links.values())
        doubted = track.news_ms > asked_ms and (bad or self._counting)
        period_s = self._times.down_s if bad else self._times.query_s
        track.due_ms = track.news_ms if doubted else asked_ms + int(period_s * 1000)

    # -- the gateway ------------------------------------------------------------------------

    def gateway_chips(self) -> tuple[ChipId, ...]:
        """Chips with a port that has a gateway: families with a parameter plane, of the 950 the UBoE boards."""
        return tuple(t.chip for t in self._tracks.values() if self._gateway_link(t) is not None)

    @staticmethod
    def _gateway_link(track: _Track) -> LinkState | None:
        return track.links.get(LINK_DOWN) or track.links.get(UBOE_PORT_DOWN)

    @property
    def bad_links(self) -> int:
        """Chips whose merged link state is bad, for the metric."""
        return sum(1 for t in self._tracks.values() if any(link.told for link in t.links.values()))

    # -- inside -------------------------------------------------------------------------------

    def _express(self, track: _Track, link: LinkState, at: Instant, fact: _CodeFact | None = None) -> list[Observation]:
        facts = link.express(at, fact.severity if isinstance(fact, FaultOccurred) else None)
        if facts and link.told:
            track.due_ms = min(track.due_ms, at.mono_ms + int(self._times.down_s * 1000))
        return [*self._counts(track, facts), *facts]

    def _counts(self, track: _Track, facts: list[LinkFact]) -> list[Observation]:
        """What is known of the ports, just before the facts that it refines."""
        bond = track.links.get(UBOE_PORT_DOWN)
        bonding = bond.bonding if isinstance(bond, BondState) else None
        if not facts or not self._counting or (bonding is None and track.ub is None):
            return []
        return [PortsDown(track.chip.logic_id, bonding, track.ub, facts[0].at)]


def _needs_count(fact: _CodeFact) -> bool:
    """UBoE codes are refined by the count when they come and when they go, UB codes when they go (4.5)."""
    return isinstance(fact, FaultRecovered) or (isinstance(fact, FaultOccurred) and fact.code == UBOE_PORT_DOWN)
