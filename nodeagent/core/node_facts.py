"""What the driver tells of a node beside its faults: the facts that labels and annotations are made of.

They say what the node is, so they change seldom; policy never sees them.
"""

from dataclasses import dataclass
from enum import Enum

from nodeagent.core.model import ChipId, Product

DUO_PRODUCT_TYPE = "Atlas 300I Duo"
"""Product type text of the card with two 310P chips (native-abi 5.2)."""


class FactKind(Enum):
    """One question about one chip; which product has which: `nodeagent.drivers.facts`."""

    CORES = "cores"
    MEMORY = "memory"
    ADDRESS = "address"
    SUPER_DEVICE = "super_device"
    PRODUCT_TYPE = "product_type"


@dataclass(frozen=True, slots=True)
class ChipFacts:
    """One chip. None = not known: the product does not have it, or the driver has never told it.

    aicore_count: AI cores (native-abi 5.3). memory_gib: on-chip memory in whole GiB (13).
    address: IPv4 or IPv6 address of the RoCE port as text (11.4). super_device_id: SDID, unsigned 32-bit (10.1).
    product_type: text of the driver, e.g. `Atlas 300I Duo` (5.2).
    vnpus: full names of the vNPUs cut from this chip, empty for a whole chip.
    """

    chip: ChipId
    aicore_count: int | None = None
    memory_gib: int | None = None
    address: str | None = None
    super_device_id: int | None = None
    product_type: str | None = None
    vnpus: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """The node: its product and its chips in the driver's order."""

    product: Product
    chips: tuple[ChipFacts, ...]

    @property
    def aicore_count(self) -> int | None:
        """AI cores of the first chip that is known to have some; all chips of a node are alike."""
        return next((c.aicore_count for c in self.chips if c.aicore_count is not None), None)

    @property
    def memory_gib(self) -> int | None:
        """On-chip memory of the first chip of which it is known, in whole GiB."""
        return next((c.memory_gib for c in self.chips if c.memory_gib is not None), None)

    @property
    def all_duo(self) -> bool:
        """Every chip is known to sit on an Atlas 300I Duo; one that does not tell leaves it open, which is no."""
        return bool(self.chips) and all(c.product_type == DUO_PRODUCT_TYPE for c in self.chips)
