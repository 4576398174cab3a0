"""One pretended chip: its faults, link, gateway and boot phase, and what the driver would say of them."""

import ipaddress
from dataclasses import dataclass

from nodeagent.mock.events import Module
from nodeagent.mock.functions import INNER_ERROR, NOT_READY, OK
from nodeagent.mock.spec import MAX_CODES, NodeSpec

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
BOOT_PHASES = (1, 2, 3, 16)
"""BIOS, OS starting, OS started, management service started (12); 16 is a chip at work."""
BOOTED = 16


@dataclass(frozen=True, slots=True)
class Fault:
    """An active fault: severity 0..3, Unix milliseconds of its occurrence, its alarm serial number."""

    code: int
    severity: int
    module: Module
    raised_time_ms: int
    serial: int


class Chip:
    """State of one chip. Times are passed in; nothing here reads a clock."""

    def __init__(self, spec: NodeSpec, logic_id: int) -> None:
        own = spec.chip_spec(logic_id)
        product = spec.product
        self.spec = own
        self.logic_id = logic_id
        self.card_id = spec.card_ids[logic_id // spec.chips_per_card]
        self.device_id = logic_id % spec.chips_per_card
        self.phy_id = logic_id if own.phy_id is None else own.phy_id
        self.chip_name = own.chip_name or spec.chip_name
        self.board_id = spec.board_id if own.board_id is None else own.board_id
        self.mainboard_id = spec.mainboard_id if own.mainboard_id is None else own.mainboard_id
        self.product_type = spec.product_type if own.product_type is None else own.product_type
        self.ip: Address | None = ipaddress.ip_address(
            own.ip or f"192.168.{100 + logic_id // 250}.{1 + logic_id % 250}"
        )
        self.serial_number = own.serial_number or f"MOCK{self.card_id:08d}"
        self.affinity = own.affinity if own.affinity is not None else f"{logic_id * 24}-{logic_id * 24 + 23}"
        # SDID bit fields of section 10.1; the chip index there is the module, the device index counts dies.
        self.sdid = (
            spec.server_id << 22 | (logic_id // spec.chips_per_card % 8) << 18 | self.device_id << 16 | (logic_id % 16)
        )
        self.has_roce = product.network == 1
        self.dropped = self.card_id in spec.dropped_cards
        self.gateway = own.gateway
        self.link_up = True
        self.faults: dict[int, Fault] = {}
        self.peer_status: dict[int, int] = {}
        self._lingering: dict[int, tuple[Fault, int]] = {}
        self._boot_step_ms = spec.boot_step_ms
        self._reset_at_ms: int | None = None

    def put(self, fault: Fault) -> None:
        """Make a fault active; a code that still lingers is simply active again."""
        self._lingering.pop(fault.code, None)
        self.faults[fault.code] = fault

    def take(self, code: int, until_ms: int) -> Fault | None:
        """End a fault, keeping its code in the answers until `until_ms`; None if it is not active."""
        fault = self.faults.pop(code, None)
        if fault is not None:
            self._lingering[code] = (fault, until_ms)
        return fault

    def visible(self, now_ms: int) -> list[Fault]:
        """What the queries see: active faults and those whose recovery the driver has not digested (7.5)."""
        if self._lingering:
            self._lingering = {code: entry for code, entry in self._lingering.items() if entry[1] > now_ms}
        return [*self.faults.values(), *(entry[0] for entry in self._lingering.values())]

    def health_answer(self, now_ms: int) -> tuple[int, int]:
        """Return code and health: the most severe visible alarm wins (6.1); -8012 when dropped (18.2 row 5)."""
        if self.dropped:
            return NOT_READY, 0
        return OK, max((fault.severity for fault in self.visible(now_ms)), default=0)

    def codes_answer(self, now_ms: int) -> tuple[int, tuple[int, ...]]:
        """Return code and at most 128 codes; -8005 when dropped (18.2 row 5)."""
        if self.dropped:
            return INNER_ERROR, ()
        return OK, tuple(fault.code for fault in self.visible(now_ms))[:MAX_CODES]

    def network_answer(self) -> tuple[int, int]:
        """Return code and gateway detection result (6.2)."""
        return (INNER_ERROR, 0) if self.dropped else (OK, self.gateway)

    def start_reset(self, now_ms: int) -> None:
        """Begin a reset: the boot phases run from now."""
        self._reset_at_ms = now_ms

    def reset_end_ms(self) -> int | None:
        """When the running reset is over; None without one."""
        if self._reset_at_ms is None:
            return None
        return self._reset_at_ms + self._boot_step_ms * (len(BOOT_PHASES) - 1)

    def finish_reset(self) -> None:
        """The chip works again."""
        self._reset_at_ms = None

    def boot_status(self, now_ms: int) -> int:
        """1, 2, 3 for one boot step each after a reset, then 16 (18.2 row 10)."""
        if self._reset_at_ms is None:
            return BOOTED
        phase = (now_ms - self._reset_at_ms) // max(1, self._boot_step_ms)
        return BOOT_PHASES[min(phase, len(BOOT_PHASES) - 1)]
