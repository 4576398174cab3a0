"""What a mock node is before anything happens to it: the description as plain values."""

from dataclasses import dataclass, field

from nodeagent.core.storage import StorageClient
from nodeagent.mock.bmc import MAX_ALARMS, MAX_PAGE
from nodeagent.mock.board import StartAlarm
from nodeagent.mock.events import MAJOR, Module
from nodeagent.mock.functions import BY_NAME, canonical, group_supported
from nodeagent.mock.products import PRODUCTS, Product
from nodeagent.mock.storage import Instances
from nodeagent.mock.switches import StartSwitchFault

MAX_CHIPS = 256
MAX_CODES = 128


@dataclass(frozen=True, slots=True)
class StartFault:
    """A fault that is there before anybody subscribes: in the code list, without an event."""

    chip: int
    code: int
    severity: int = MAJOR
    module: Module = field(default_factory=Module)


@dataclass(frozen=True, slots=True)
class StartFailure:
    """A function that answers `rc` from the start; see `MockNode.fail`."""

    function: str
    rc: int
    chip: int | None = None
    times: int | None = None


@dataclass(frozen=True, slots=True)
class ChipSpec:
    """How one chip differs from its product; None = as the product or derived from the logic id.

    gateway: network health value (6.2). temperature_c: degrees Celsius. power_w: watts.
    utilization_percent: the answer to every utilisation type (13). hbm_used_mb: MB.
    processes: pairs of host process id and bytes of chip memory (13).
    """

    chip: int
    phy_id: int | None = None
    chip_name: str | None = None
    board_id: int | None = None
    mainboard_id: int | None = None
    ip: str | None = None
    product_type: str | None = None
    serial_number: str | None = None
    affinity: str | None = None
    gateway: int = 0
    temperature_c: int = 45
    power_w: float = 90.0
    utilization_percent: int = 0
    hbm_used_mb: int = 2048
    processes: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """A node description. Every field but `profile` has a default that suits the product.

    profile: a name of `products.PRODUCTS`.
    chips: number of chips, 1..256; chips_per_card 1..4.
    card_ids: card numbers in order, not necessarily contiguous; empty = 0, 1, 2, …
    dropped_cards: cards that are lost from the start.
    recovery_lag_ms: how long a cleared code stays in the query answers (18.2 row 7).
    init_delay_s: how long `dcmi_init` takes.
    subscribe_failures: how many subscribe attempts answer -8020 first; subscribe_slots: processes at once (7.4).
    early_events: faults present at subscribe time are delivered as occurrences before subscribe returns.
    queue_events: events that may wait for one subscriber; more are dropped and counted.
    privileged: false = calls that need root answer -8002 (17).
    unsupported, supported: functions that differ from the product's column of section 19.
    strict_pingmesh: more than 48 destinations abort the caller instead of -8001 (18.2 row 9).
    raw_pingmesh: pingmesh answers "not supported" in the raw way (18.2 row 13).
    boot_step_ms: time of each boot phase after a reset (18.2 row 10).
    aicore_count: AI cores of each chip; hbm_mb: on-chip memory of each chip in MB; 0 = as the product.
    super_pod_id, server_id, super_pod_size, super_pod_type, chassis_id: super-pod info (10.1).
    switch_faults: faults of the L1 switches from the start. switch_subscribe_failures: how many subscribe attempts of
    the switch library answer -8014 first.
    bmc: whether there is a way to a BMC. alarms: those it lists from the start. alarm_page: most alarms in one answer,
    1..16. serial_number, manufacturer: of the board; without a serial number pretended nodes cannot be mistaken for one
    another by it. storage: clients of distributed storage and what is wrong with each of their instances.
    """

    profile: str = "a2"
    chips: int = 0
    chips_per_card: int = 0
    card_ids: tuple[int, ...] = ()
    dropped_cards: tuple[int, ...] = ()
    chip_name: str = ""
    board_id: int = -1
    mainboard_id: int = -1
    product_type: str = ""
    aicore_count: int = 0
    hbm_mb: int = 0
    dcmi_version: str = "25.2.0"
    work_mode: int = 0
    recovery_lag_ms: int = 0
    init_delay_s: float = 0.0
    subscribe_failures: int = 0
    subscribe_slots: int = 64
    early_events: bool = False
    queue_events: int = 16384
    privileged: bool = True
    unsupported: tuple[str, ...] = ()
    supported: tuple[str, ...] = ()
    strict_pingmesh: bool = False
    raw_pingmesh: bool = False
    boot_step_ms: int = 1000
    super_pod_id: int = 1
    server_id: int = 0
    super_pod_size: int = 384
    super_pod_type: int = 0
    chassis_id: int = 0
    log_calls: bool = False
    per_chip: tuple[ChipSpec, ...] = ()
    faults: tuple[StartFault, ...] = ()
    failing: tuple[StartFailure, ...] = ()
    switch_faults: tuple[StartSwitchFault, ...] = ()
    switch_subscribe_failures: int = 0
    bmc: bool = True
    alarms: tuple[StartAlarm, ...] = ()
    alarm_page: int = MAX_PAGE
    serial_number: str = ""
    manufacturer: str = "Huawei"
    storage: tuple[tuple[StorageClient, Instances], ...] = ()

    def __post_init__(self) -> None:
        """Fill in the product's defaults; ValueError with one sentence when values do not fit each other."""
        product = PRODUCTS.get(self.profile)
        if product is None:
            raise ValueError(f"there is no profile {self.profile!r}; known: {', '.join(PRODUCTS)}")
        per_card = self.chips_per_card or product.chips_per_card
        chips = self.chips or (len(self.card_ids) * per_card if self.card_ids else product.chips)
        cards = -(-chips // per_card)
        fill = {
            "chips": chips,
            "chips_per_card": per_card,
            "card_ids": self.card_ids or tuple(range(cards)),
            "chip_name": self.chip_name or product.chip_name,
            "board_id": product.board_id if self.board_id < 0 else self.board_id,
            "mainboard_id": product.mainboard_id if self.mainboard_id < 0 else self.mainboard_id,
            "product_type": self.product_type or product.product_type,
            "aicore_count": self.aicore_count or product.aicore_count,
            "hbm_mb": self.hbm_mb or product.hbm_mb,
            "unsupported": tuple(canonical(name) for name in self.unsupported),
            "supported": tuple(canonical(name) for name in self.supported),
        }
        for name, value in fill.items():
            object.__setattr__(self, name, value)
        self._check(cards)

    @property
    def product(self) -> Product:
        """The product this node pretends to be."""
        return PRODUCTS[self.profile]

    def chip_spec(self, logic_id: int) -> ChipSpec:
        """The overrides of a chip, or the defaults."""
        for spec in self.per_chip:
            if spec.chip == logic_id:
                return spec
        return ChipSpec(logic_id)

    def _check(self, cards: int) -> None:
        if not 1 <= self.chips <= MAX_CHIPS:
            raise ValueError(f"chips must be 1..{MAX_CHIPS}, not {self.chips}")
        if not 1 <= self.chips_per_card <= 4:
            raise ValueError(f"chips_per_card must be 1..4, not {self.chips_per_card}")
        if len(self.card_ids) != cards or len(set(self.card_ids)) != cards:
            raise ValueError(f"card_ids must name {cards} different cards for {self.chips} chips")
        if any(card < 0 for card in self.card_ids):
            raise ValueError("card_ids must not be negative")
        lost = set(self.dropped_cards) - set(self.card_ids)
        if lost:
            raise ValueError(f"dropped_cards names card {min(lost)}, which the node does not have")
        named = [spec.chip for spec in self.per_chip] + [fault.chip for fault in self.faults]
        named += [failure.chip for failure in self.failing if failure.chip is not None]
        for chip in named:
            if not 0 <= chip < self.chips:
                raise ValueError(f"chip {chip} is not on a node with chips 0..{self.chips - 1}")
        for failure in self.failing:
            canonical(failure.function)
        if (self.switch_faults or self.switch_subscribe_failures) and self.profile != "a3":
            raise ValueError("only profile a3 has switches")
        if len(self.alarms) > MAX_ALARMS:
            raise ValueError(f"the board has {len(self.alarms)} alarms, the limit is {MAX_ALARMS}")
        phy_ids = [spec.phy_id for spec in self.per_chip if spec.phy_id is not None]
        phy_ids += [chip for chip in range(self.chips) if self.chip_spec(chip).phy_id is None]
        if len(set(phy_ids)) != len(phy_ids):
            raise ValueError("two chips have the same phy_id")


def is_supported(spec: NodeSpec, function: str) -> bool:
    """Whether the node has a function, by its description first and its product's column of section 19 else."""
    entry = BY_NAME[function]
    if entry.name in spec.unsupported:
        return False
    return entry.name in spec.supported or group_supported(entry.group, spec.profile)
