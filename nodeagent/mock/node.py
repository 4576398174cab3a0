"""The pretended node: topology, hardware state, and everything that can be done to it.

Pure Python over a passed clock: no sockets, no threads, no locks. A caller that shares a node between threads
brings its own lock. Events are handed to the listeners synchronously by the action that makes them. What happens
later by itself (end of a reset, a storm) needs `pump()`; its answer says when to call it next.
"""

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass

from nodeagent.core.clock import Clock
from nodeagent.core.codes import RESET_FINISHED
from nodeagent.core.errors import MockError
from nodeagent.mock.bmc import BmcState
from nodeagent.mock.board import MockBoard
from nodeagent.mock.chip import Chip, Fault
from nodeagent.mock.events import HINT, MAJOR, OCCURRENCE, ONE_OFF, RECOVERY, MockEvent, Module
from nodeagent.mock.functions import NOT_EXIST, NOT_SUPPORTED, OCCUPIED, TOO_MANY_SUBSCRIPTIONS
from nodeagent.mock.pingmesh import PingmeshTasks
from nodeagent.mock.rules import CallRules, Disturbance
from nodeagent.mock.spec import NodeSpec, is_supported
from nodeagent.mock.state import describe
from nodeagent.mock.storage import MockStorage
from nodeagent.mock.storm import Storm
from nodeagent.mock.switches import MockSwitches

Listener = Callable[[MockEvent], None]

_ROCE = Module(node_type=0x5D)
_MAX_U16, _MAX_U32 = 0xFFFF, 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Topology:
    """What an `*_init` sees and keeps (2.3): the cards that are there, in the order of their numbers."""

    card_ids: tuple[int, ...]


class MockNode:
    """A node of Ascend chips. Every action returns the events it made, in order."""

    def __init__(self, spec: NodeSpec, clock: Clock) -> None:
        self.spec = spec
        self.clock = clock
        self.rules = CallRules(clock)
        self.pings = PingmeshTasks(clock)
        self.switches = MockSwitches(clock, present=spec.profile == "a3")
        bmc = BmcState(serial=spec.serial_number, vendor=spec.manufacturer, page=spec.alarm_page)
        self.board = MockBoard(clock, bmc, spec.alarms, present=spec.bmc)
        self.storage = MockStorage(dict(spec.storage))
        self.chips: dict[int, Chip] = {logic_id: Chip(spec, logic_id) for logic_id in range(spec.chips)}
        self.multi_die_policy = 0
        self.storms: list[Storm] = []
        self._listeners: list[Listener] = []
        self._token = 0
        self._serial = 0
        for fault in spec.faults:
            self.chips[fault.chip].put(self._new_fault(fault.code, fault.severity, fault.module, None))
        for switch_fault in spec.switch_faults:
            self.switches.put(switch_fault)
        for failure in spec.failing:
            self.fail(failure.function, failure.chip, failure.rc, failure.times)
        if spec.subscribe_failures:
            self.fail("dcmi_subscribe_fault_event", None, OCCUPIED, spec.subscribe_failures)
        if spec.switch_subscribe_failures:
            name = "lq_dcmi_subscribe_fault_event"
            self.fail(name, None, TOO_MANY_SUBSCRIPTIONS, spec.switch_subscribe_failures)

    # Topology

    def topology(self) -> Topology:
        """The cards that answer now."""
        present = {chip.card_id for chip in self.chips.values() if not chip.dropped}
        return Topology(tuple(card for card in self.spec.card_ids if card in present))

    def chip_at(self, card_id: int, device_id: int) -> Chip | None:
        """The chip at a place, None for an empty one or the management controller."""
        for chip in self.chips.values():
            if chip.card_id == card_id and chip.device_id == device_id:
                return chip
        return None

    def chips_of(self, card_id: int) -> list[Chip]:
        """The chips of a card in device order."""
        return [chip for chip in self.chips.values() if chip.card_id == card_id]

    def supports(self, function: str) -> bool:
        """Whether the node has a function (v1 or v2 name)."""
        return is_supported(self.spec, function)

    # Queries; each obeys the failing rules, none the hanging and crashing ones (see `disturbance`)

    def health(self, logic_id: int) -> tuple[int, int]:
        """Return code and health 0..3 of `dcmi_get_device_health` (6.1)."""
        code = self._refusal("dcmi_get_device_health", logic_id)
        return (code, 0) if code else self.chips[logic_id].health_answer(self.clock.now().mono_ms)

    def error_codes(self, logic_id: int) -> tuple[int, tuple[int, ...]]:
        """Return code and codes of `dcmi_get_device_errorcode_v2` (6.1)."""
        code = self._refusal("dcmi_get_device_errorcode_v2", logic_id)
        return (code, ()) if code else self.chips[logic_id].codes_answer(self.clock.now().mono_ms)

    def network_health(self, logic_id: int) -> tuple[int, int]:
        """Return code and result 0..8 or 255 of `dcmi_get_device_network_health` (6.2)."""
        code = self._refusal("dcmi_get_device_network_health", logic_id)
        return (code, 0) if code else self.chips[logic_id].network_answer()

    def boot_status(self, logic_id: int) -> int:
        """Boot status 1, 2, 3 or 16 (12)."""
        return self._chip(logic_id).boot_status(self.clock.now().mono_ms)

    def forced_code(self, function: str, logic_id: int | None) -> int | None:
        """The return code a failing rule wants for this call, counted as used."""
        return self.rules.forced_code(function, logic_id)

    def disturbance(self, function: str, logic_id: int | None) -> Disturbance:
        """The hang or crash that meets this call, counted as used; ask before the query itself."""
        return self.rules.disturbance(function, logic_id)

    # Events

    def add_listener(self, listener: Listener) -> None:
        """Have `listener` called with every event from now on."""
        self._listeners.append(listener)

    def remove_listener(self, listener: Listener) -> None:
        """End what `add_listener` began; ValueError if it never began."""
        self._listeners.remove(listener)

    def present_events(self) -> list[MockEvent]:
        """The active faults as occurrence events, by chip; not sent to the listeners (7.3 snapshot, 7.4 early)."""
        return [
            self._event(chip.logic_id, fault, OCCURRENCE)
            for chip in self.chips.values()
            for fault in chip.faults.values()
        ]

    @property
    def event_count(self) -> int:
        """How many events there were so far, those nobody listened to included."""
        return self._token

    # Actions

    def raise_fault(
        self,
        logic_id: int,
        code: int,
        *,
        severity: int = MAJOR,
        module: Module | None = None,
        time_ms: int | None = None,
        name: str = "",
        info: bytes = b"",
        listed: bool = True,
        event: bool = True,
    ) -> list[MockEvent]:
        """Let a fault occur.

        logic_id: 0..65535; for one the node does not have there is only an event. code: 0..0xFFFFFFFF.
        time_ms: Unix milliseconds, None = now. listed=False: the code list does not show it; event=False:
        no event tells of it. Raising an active fault again gives another event (a repeated report).
        """
        fault = self._new_fault(code, severity, module or Module(), time_ms)
        chip = self.chips.get(logic_id)
        if chip is not None and listed:
            chip.put(fault)
        return self._emit([self._event(logic_id, fault, OCCURRENCE, name, info)] if event else [])

    def clear_fault(
        self, logic_id: int, code: int, *, listed: bool = True, event: bool = True, name: str = ""
    ) -> list[MockEvent]:
        """Let a fault recover; a code that is not active still gives its recovery event.

        listed=False: the code list keeps it; event=False: no event tells of it.
        """
        chip = self.chips.get(logic_id)
        until_ms = self.clock.now().mono_ms + self.spec.recovery_lag_ms
        fault = None
        if chip is not None:
            fault = chip.take(code, until_ms) if listed else chip.faults.get(code)
        fault = fault or self._new_fault(code, MAJOR, Module(), None)
        return self._emit([self._event(logic_id, fault, RECOVERY, name)] if event else [])

    def notice(
        self, logic_id: int, code: int, *, severity: int = HINT, module: Module | None = None, name: str = ""
    ) -> list[MockEvent]:
        """Send a one-off event; the code list never shows it."""
        fault = self._new_fault(code, severity, module or Module(), None)
        return self._emit([self._event(logic_id, fault, ONE_OFF, name)])

    def drop_card(self, card_id: int) -> list[MockEvent]:
        """Lose a card: all its chips answer health -8012 and most other calls -8005, without an event (6.4)."""
        for chip in self._card(card_id):
            chip.dropped = True
        return []

    def return_card(self, card_id: int) -> list[MockEvent]:
        """Bring a lost card back with the faults it had."""
        for chip in self._card(card_id):
            chip.dropped = False
        return []

    def set_gateway(self, logic_id: int, value: int) -> list[MockEvent]:
        """Set the result of the gateway detection, 0..8 or 255 (6.2)."""
        self._chip(logic_id).gateway = value
        return []

    def set_address(self, logic_id: int, ip: str) -> list[MockEvent]:
        """Give the RoCE port another IPv4 or IPv6 address; empty takes it away (11.4)."""
        self._chip(logic_id).ip = ipaddress.ip_address(ip) if ip else None
        return []

    def set_link(self, logic_id: int, *, up: bool) -> list[MockEvent]:
        """Take the network port down (raises 81078603, on a 950 81078607) or bring it up (clears it)."""
        chip = self._chip(logic_id)
        if chip.link_up == up:
            return []
        chip.link_up = up
        code = self.spec.product.link_code
        return self.clear_fault(logic_id, code) if up else self.raise_fault(logic_id, code, module=_ROCE)

    def fail(self, function: str, logic_id: int | None, rc: int, times: int | None = None) -> list[MockEvent]:
        """Answer `rc` in place of the function's answer; see `CallRules.fail`."""
        self._known(logic_id)
        self.rules.fail(function, logic_id, rc, times)
        return []

    def hang(self, function: str, logic_id: int | None, seconds: float, times: int | None = None) -> list[MockEvent]:
        """Let calls of the next `seconds` sleep until these are over; see `CallRules.hang`."""
        self._known(logic_id)
        self.rules.hang(function, logic_id, seconds, times)
        return []

    def crash(self, function: str, logic_id: int | None, signal: int = 11) -> list[MockEvent]:
        """End the process that makes the next such call with a signal."""
        self._known(logic_id)
        self.rules.crash(function, logic_id, signal)
        return []

    def storm(
        self,
        events_per_s: float,
        seconds: float,
        *,
        logic_id: int | None = None,
        codes: tuple[int, ...] = (0x80E18005,),
        leave_raised: bool = False,
    ) -> Storm:
        """Start a storm of events over all chips or one; `pump` sends what is due. See `Storm` for its end state."""
        self._known(logic_id)
        chips = tuple(self.chips) if logic_id is None else (logic_id,)
        started = Storm(self.clock.now().mono_ms, events_per_s, seconds, chips, codes, leave_raised)
        self.storms = [storm for storm in self.storms if not storm.finished] + [started]
        return started

    def reset(self, logic_id: int) -> list[MockEvent]:
        """Reset a chip: faults recover without events, pingmesh tasks stop, boot status runs 1, 2, 3, 16.

        The event 8C2FA009 follows when the boot is over (6.3, 12).
        """
        chip = self._chip(logic_id)
        now_ms = self.clock.now().mono_ms
        for code in list(chip.faults):
            chip.take(code, now_ms)
        chip.link_up = True
        self.pings.chip_was_reset(logic_id)
        chip.start_reset(now_ms)
        return []

    def state(self) -> dict[str, object]:
        """The node as plain JSON values; see `nodeagent.mock.state`."""
        return describe(self)

    def pump(self) -> int | None:
        """Let happen what is due by now; returns the milliseconds until something is due again, None for never."""
        now_ms = self.clock.now().mono_ms
        waits_ms: list[int] = []
        for chip in self.chips.values():
            end_ms = chip.reset_end_ms()
            if end_ms is not None and end_ms > now_ms:
                waits_ms.append(end_ms - now_ms)
            elif end_ms is not None:
                chip.finish_reset()
                self.notice(chip.logic_id, RESET_FINISHED)
        for storm in self.storms:
            for step in storm.due(now_ms):
                if step.occurs:
                    self.raise_fault(step.logic_id, step.code)
                else:
                    self.clear_fault(step.logic_id, step.code)
            if not storm.finished:
                waits_ms.append(storm.wait_ms(now_ms))
        return min(waits_ms, default=None)

    def _emit(self, events: list[MockEvent]) -> list[MockEvent]:
        for event in events:
            for listener in list(self._listeners):
                listener(event)
        return events

    def _event(self, logic_id: int, fault: Fault, assertion: int, name: str = "", info: bytes = b"") -> MockEvent:
        if not 0 <= logic_id <= _MAX_U16:
            raise MockError(f"no event can name chip {logic_id}", "the field has 16 bits (native-abi 7.1)")
        self._token += 1
        return MockEvent(
            token=self._token,
            logic_id=logic_id,
            code=fault.code,
            severity=fault.severity,
            assertion=assertion,
            module=fault.module,
            event_serial_num=fault.serial,
            notify_serial_num=self._token & 0x7FFFFFFF,
            raised_time_ms=fault.raised_time_ms,
            name=name or f"mock fault {fault.code:08X}",
            additional_info=info[:32],
        )

    def _new_fault(self, code: int, severity: int, module: Module, time_ms: int | None) -> Fault:
        if not 0 <= code <= _MAX_U32:
            raise MockError(f"{code:X} is not a driver code", "codes of the driver have 32 bits (native-abi 6.3)")
        self._serial += 1
        wall_ms = self.clock.now().wall_ms if time_ms is None else time_ms
        return Fault(code, severity, module, wall_ms, self._serial & 0x7FFFFFFF)

    def _refusal(self, function: str, logic_id: int) -> int:
        forced = self.forced_code(function, logic_id)
        if forced is not None:
            return forced
        if not self.supports(function):
            return NOT_SUPPORTED
        return 0 if logic_id in self.chips else NOT_EXIST

    def _known(self, logic_id: int | None) -> None:
        if logic_id is not None:
            self._chip(logic_id)

    def _chip(self, logic_id: int) -> Chip:
        chip = self.chips.get(logic_id)
        if chip is None:
            raise MockError(f"the node has no chip {logic_id}", f"its logic ids are 0..{self.spec.chips - 1}")
        return chip

    def _card(self, card_id: int) -> list[Chip]:
        chips = self.chips_of(card_id)
        if not chips:
            raise MockError(f"the node has no card {card_id}", f"its cards are {list(self.spec.card_ids)}")
        return chips
