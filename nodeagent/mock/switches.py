"""The L1 switch chips of a mock node: current faults, and the events that the ring of a process gets (native-abi 16).

Edge-triggered as the vendor's library: an event is sent when something changes. What other versions of it do
(repetitions, one-shot notices, an event that got lost) is to be had on request.
"""

from collections.abc import Callable
from dataclasses import dataclass

from nodeagent.core.clock import Clock
from nodeagent.core.errors import MockError
from nodeagent.core.switch import NO_FAULT_ID, NOTICE, OCCURRENCE, RECOVERY, WHOLE_CHIP_PORT
from nodeagent.mock.events import MINOR
from nodeagent.mock.switch_event import PEERS, MockSwitchEvent, SwitchCode

CHIPS, PORTS = 7, 48
"""Switch chips of an A3 node and ports of each (16.2)."""
RING_EVENTS = 1024
"""Events that may wait in the ring of a process; more are dropped (16.7)."""
MAX_PROCESSES = 15
"""Processes that may use the switches at once (3.2)."""
STORM_CODES = (
    SwitchCode(0x08520003, NO_FAULT_ID, "npu"),
    SwitchCode(0x00F10509, 132332, "npu"),
    SwitchCode(0x00F1FEF5, 155912, "npu"),
)
_NOT_APPLICABLE = PEERS["na"]

Listener = Callable[[MockSwitchEvent], None]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a switch fault is. port WHOLE_CHIP_PORT = the whole chip.

    peer: kind of the device at the other end; None = what the code names, else npu for a port and na for a chip.
    peer_id: None = 0 for a port, 0xFFFF where there is no peer.
    """

    chip: int
    port: int = WHOLE_CHIP_PORT
    peer: int | None = None
    peer_id: int | None = None


@dataclass(frozen=True, slots=True)
class StartSwitchFault:
    """A switch fault that is there before anybody looks: in the list, without an event (16.6)."""

    code: SwitchCode
    place: Place
    severity: int = MINOR
    raised_ms: int | None = None


class MockSwitches:
    """Every action returns the events it made, in order; they go to the listeners as well.

    present=False: the node has none, and actions raise MockError.
    """

    def __init__(self, clock: Clock, *, present: bool = True) -> None:
        self._clock = clock
        self._present = present
        self._listeners: list[Listener] = []
        self._token = 0
        self._active: dict[tuple[int, ...], MockSwitchEvent] = {}
        self._claimed: int | None = None

    def add_listener(self, listener: Listener) -> None:
        """Have `listener` called with every event from now on."""
        self._listeners.append(listener)

    @property
    def active(self) -> list[MockSwitchEvent]:
        """Every fault that is present, by arrival."""
        return list(self._active.values())

    @property
    def listed(self) -> list[MockSwitchEvent]:
        """What the library lists: not the port faults of a type that the whole chip has (16.6)."""
        whole = {(e.chip, e.alarm_id, e.fault_id) for e in self.active if e.chip_wide}
        return [e for e in self.active if e.chip_wide or (e.chip, e.alarm_id, e.fault_id) not in whole]

    def answer(self, capacity: int) -> tuple[int, list[MockSwitchEvent]]:
        """Count and records of a query: cut to the capacity without an error, or with the count that was claimed."""
        records = self.listed[:capacity]
        return len(records) if self._claimed is None else self._claimed, records

    def claim_count(self, count: int | None) -> list[MockSwitchEvent]:
        """Let queries say that they return `count` records (a signed 32-bit number), whatever they return.

        None = the truth again.
        """
        self._must_exist()
        self._claimed = count
        return []

    def put(self, fault: StartSwitchFault) -> None:
        """Let a fault be there without an event."""
        event = self._event(fault.code, fault.place, fault.severity, OCCURRENCE, fault.raised_ms)
        self._active[event.identity] = event

    def raise_fault(
        self,
        code: SwitchCode,
        place: Place,
        *,
        severity: int = MINOR,
        raised_ms: int | None = None,
        listed: bool = True,
        event: bool = True,
        repeat: bool = False,
    ) -> list[MockSwitchEvent]:
        """Let a fault occur. raised_ms: Unix milliseconds, 0 = unknown, None = now.

        listed=False: the list does not show it; event=False: the event gets lost. repeat: send it although the fault
        is active already, which the published library does not.
        """
        made = self._event(code, place, severity, OCCURRENCE, raised_ms)
        known = made.identity in self._active
        if listed and not known:
            self._active[made.identity] = made
        return self._emit([made] if event and (repeat or not known) else [])

    def clear_fault(
        self, code: SwitchCode, place: Place, *, listed: bool = True, event: bool = True, repeat: bool = False
    ) -> list[MockSwitchEvent]:
        """Let a fault recover. repeat: send the event although no such fault is active."""
        made = self._event(code, place, MINOR, RECOVERY, None)
        known = self._active.get(made.identity)
        if known is not None:
            made = self._event(code, place, known.severity, RECOVERY, known.raised_ms)
        if listed:
            self._active.pop(made.identity, None)
        return self._emit([made] if event and (repeat or known is not None) else [])

    def notice(self, code: SwitchCode, place: Place, *, severity: int = MINOR) -> list[MockSwitchEvent]:
        """Send a one-shot notice, as other versions of the library do; the list never shows it (3.4)."""
        return self._emit([self._event(code, place, severity, NOTICE, None)])

    def storm(self, chips: int, ports: int, *, leave_raised: bool) -> list[MockSwitchEvent]:
        """Let three codes occur on every port of so many chips at once; unless left raised, they recover at once."""
        places = [Place(chip, port) for chip in range(chips) for port in range(ports)]
        made = [event for place in places for code in STORM_CODES for event in self.raise_fault(code, place)]
        if not leave_raised:
            made += [event for place in places for code in STORM_CODES for event in self.clear_fault(code, place)]
        return made

    def _event(
        self, code: SwitchCode, place: Place, severity: int, assertion: int, raised_ms: int | None
    ) -> MockSwitchEvent:
        self._must_exist()
        whole = place.port == WHOLE_CHIP_PORT
        peer = (
            place.peer if place.peer is not None else PEERS.get(code.peer, _NOT_APPLICABLE if whole else PEERS["npu"])
        )
        peer_id = place.peer_id if place.peer_id is not None else (_NOT_APPLICABLE if peer == _NOT_APPLICABLE else 0)
        for name, value in (("chip", place.chip), ("port", place.port), ("peer", peer), ("peer_id", peer_id)):
            if not 0 <= value <= 0xFFFF:
                raise MockError(f"no switch event can have {name} {value}", "the field has 16 bits (native-abi 16.2)")
        self._token += 1
        wall_ms = self._clock.now().wall_ms if raised_ms is None else raised_ms
        return MockSwitchEvent(
            self._token,
            code.alarm_id,
            code.fault_id,
            place.chip,
            place.port,
            peer,
            peer_id,
            severity,
            assertion,
            wall_ms,
        )

    def _must_exist(self) -> None:
        if not self._present:
            raise MockError("this node has no switches", "serve one of profile a3")

    def _emit(self, events: list[MockSwitchEvent]) -> list[MockSwitchEvent]:
        for event in events:
            for listener in list(self._listeners):
                listener(event)
        return events
