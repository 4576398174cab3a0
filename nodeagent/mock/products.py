"""The products a mock node can pretend to be, with identity values from native-abi 5.5, 5.6 and 10.1.

Values that the sheet does not give (core counts, clock rates, memory of a chip) are made up, but of the right
order of magnitude.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Product:
    """What all chips of a product have in common.

    chips, chips_per_card: default number of chips and how many share a card (device ids 0, 1, …).
    mcu: whether each card has a management controller behind its last chip (5.1).
    network: 0 none, 1 RoCE port with an IPv4 address (11.4), 2 UB ports (15).
    hbm_mb, ddr_mb: memory per chip in MB, 0 where there is none of that kind.
    link_code: fault code that tells that the network port is down (6.3).
    """

    name: str
    title: str
    chip_name: str
    board_id: int
    mainboard_id: int
    chips: int
    chips_per_card: int
    mcu: bool
    network: int
    aicore_count: int
    hbm_mb: int
    ddr_mb: int
    product_type: str = ""
    link_code: int = 0x81078603

    @property
    def v2(self) -> bool:
        """Whether the product speaks dcmiv2_* only (2.2)."""
        return self.name == "950"


PRODUCTS: dict[str, Product] = {
    product.name: product
    for product in (
        Product("310", "Atlas 300I", "310", 0x0, 0x0, 4, 4, True, 0, 2, 0, 8192),
        Product("310p", "Atlas 300I Duo", "310P3", 0x0, 0x0, 4, 2, True, 0, 8, 0, 49152, "Atlas 300I Duo"),
        Product("910a", "Atlas 800 (910A)", "910A", 0x0, 0x0, 8, 1, True, 1, 30, 32768, 15171),
        Product("a2", "Atlas 800T A2", "910B4", 0x30, 0x0, 8, 1, True, 1, 20, 32768, 0),
        Product("a2-card", "Atlas 300I A2", "910B4", 0x28, 0x0, 2, 1, True, 0, 20, 32768, 0),
        Product("a3", "Atlas 900 A3 SuperPoD", "910_9391", 0xB0, 0x18, 16, 2, True, 1, 24, 65536, 0),
        Product("950", "Atlas 950 SuperPoD", "Ascend950", 0x0, 0x03, 8, 1, False, 2, 32, 131072, 0, "", 0x81078607),
    )
}
"""Profile name of a node description to product."""
