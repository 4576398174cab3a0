"""Who and what a node is, and what is known of it: frozen records shared by all layers.

`NodeView` is the only thing that rendering sees; `Observation`s (nodeagent.core.observation) are the only
thing that policy sees.
"""

from dataclasses import dataclass
from enum import Enum

from nodeagent.core.codes import parse_code
from nodeagent.core.levels import Level, Plane
from nodeagent.core.switch import SwitchRecord
from nodeagent.core.switch_codes import HEALTHY_STATUS, SwitchLevel


class Family(Enum):
    """Product family, by the card type that consumers know (device-info vocabulary, native-abi 5.6)."""

    A310 = "Ascend310"
    A310B = "Ascend310B"
    A310P = "Ascend310P"
    A910 = "Ascend910"
    A2 = "Ascend910B"
    A3 = "Ascend910A3"
    A5 = "Ascend910A5"

    @property
    def resource(self) -> str:
        """Key of the device list, e.g. `huawei.com/Ascend910` (device-info 4.1)."""
        return f"huawei.com/{self.prefix}"

    @property
    def prefix(self) -> str:
        """First part of a device name, e.g. `Ascend910` in `Ascend910-3`; `npu` on the 950."""
        return _PREFIX[self]

    @property
    def has_network_plane(self) -> bool:
        """Run mode Ascend910: network lists exist and network health is judged (device-info 4.1)."""
        return self in _TRAINING

    @property
    def has_switch_key(self) -> bool:
        """`SwitchInfoCfg` is part of the object (device-info 2)."""
        return self in (Family.A3, Family.A5)

    @property
    def subscribes(self) -> bool:
        """Fault events can be subscribed; the 310 families are polled (chip-faults 2.1)."""
        return self in _TRAINING


_TRAINING = frozenset({Family.A910, Family.A2, Family.A3, Family.A5})
_PREFIX = {
    Family.A310: "Ascend310",
    Family.A310B: "Ascend310",
    Family.A310P: "Ascend310P",
    Family.A910: "Ascend910",
    Family.A2: "Ascend910",
    Family.A3: "Ascend910",
    Family.A5: "npu",
}


@dataclass(frozen=True, slots=True, order=True)
class ChipId:
    """One chip in all naming schemes (native-abi 5.1); always shown together (lesson 97).

    On the 950 the library knows neither card nor device: both are -1.
    """

    logic_id: int
    physical_id: int
    card_id: int
    device_id: int

    def __str__(self) -> str:
        place = f", card {self.card_id}/{self.device_id}" if self.card_id >= 0 else ""
        return f"chip {self.logic_id} (phy {self.physical_id}{place})"


@dataclass(frozen=True, slots=True)
class SuperPod:
    """Super-pod identity as published: signed 32-bit, -1 = driver says none, -2 = no answer (device-info 3)."""

    super_pod_id: int = -2
    server_index: int = -2
    rack_id: int = -2
    pod_type: int = 0


@dataclass(frozen=True, slots=True)
class Product:
    """What the library said about the node at start."""

    family: Family
    chip_name: str
    board_id: int = 0
    mainboard_id: int = 0
    driver_version: str = ""
    generation: str = "v1"
    super_pod: SuperPod = SuperPod()


@dataclass(frozen=True, slots=True)
class Inventory:
    """The chips of this node in the driver's order, and the product they make up."""

    product: Product
    chips: tuple[ChipId, ...]


class UpgradeType(Enum):
    """Why a code stands at a higher level than its own (device-info 6.2)."""

    DURATION = "FaultDuration"
    FREQUENCY = "FaultFrequency"
    AUTOFILL = "FaultAutofill"


@dataclass(frozen=True, slots=True)
class Reason:
    """One upgrade reason of one chip. code_text is lower-case hex as in the rule, or `AutofillFaultCode`."""

    upgrade_time_ms: int
    code_text: str
    level: Level
    upgrade_type: UpgradeType

    @property
    def code(self) -> int | None:
        """The code; None for `AutofillFaultCode`, which is no code at all (chip-faults 12.4, R7)."""
        try:
            return parse_code(self.code_text)
        except ValueError:
            return None


@dataclass(frozen=True, slots=True)
class FaultView:
    """One code of one chip as it will be published.

    text: upper-case spelling of the table. since_ms: Unix ms. known: listed in the table. once: a notice that
    leaves with the next report after an acknowledged one (decision 3).
    """

    code: int
    text: str
    plane: Plane
    since_ms: int
    level: Level
    known: bool = True
    once: bool = False


@dataclass(frozen=True, slots=True)
class ChipView:
    """One chip as it will be published.

    faults: in order of arrival; hyper-plane codes count as chip faults. vnpus: full names of the vNPUs cut from
    this chip, empty for a whole chip. suppressed: present codes that the site does not want reported, with reason.
    silent_since_ms: Unix ms since when the chip gives no answer, None = it does.
    """

    chip: ChipId
    faults: tuple[FaultView, ...] = ()
    chip_level: Level = Level.NORMAL
    network_level: Level = Level.NORMAL
    healthy: bool = True
    network_healthy: bool = True
    used: bool = False
    recovering: bool = False
    manually_separated: bool = False
    reasons: tuple[Reason, ...] = ()
    vnpus: tuple[str, ...] = ()
    suppressed: tuple[str, ...] = ()
    silent_since_ms: int | None = None


@dataclass(frozen=True, slots=True)
class SwitchFaultView:
    """One fault of a LingQu switch. record: its `raised_ms` is what is published. text: its exact code.

    known: listed in the table; others are published nowhere, but they count for the node (lingqu-switch-faults 6).
    """

    record: SwitchRecord
    text: str
    level: SwitchLevel
    known: bool = True


@dataclass(frozen=True, slots=True)
class SwitchView:
    """LingQu switch state for `SwitchInfoCfg`. known=False is the zero value (device-info 2).

    faults: in order of arrival. level: of the node, None = no fault. planes_down: chips whose L1-L2 plane is down.
    silent_since_ms: Unix ms since when queries fail, None = they work.
    """

    known: bool = False
    faults: tuple[SwitchFaultView, ...] = ()
    level: SwitchLevel | None = None
    planes_down: tuple[int, ...] = ()
    silent_since_ms: int | None = None

    @property
    def fault_level(self) -> str:
        """`FaultLevel`: empty without a fault."""
        return "" if self.level is None else self.level.text

    @property
    def node_status(self) -> str:
        """`NodeStatus`: empty while nothing is known."""
        if not self.known:
            return ""
        return HEALTHY_STATUS if self.level is None else self.level.status


@dataclass(frozen=True, slots=True)
class NodeView:
    """Everything there is to publish about the node at one moment.

    generation: grows by one with every view; an acknowledgement names the generation it covers.
    """

    generation: int
    product: Product
    chips: tuple[ChipView, ...]
    switch: SwitchView = SwitchView()


def device_name(family: Family, physical_id: int) -> str:
    """Published name of a whole chip, e.g. `Ascend910-3`, `npu-3`."""
    return f"{family.prefix}-{physical_id}"
