"""Chip fault codes as numbers and as text (chip-faults 3.2, fault-catalogue 3).

Codes are carried as integers of up to 40 bits: three of the synthetic codes need more than 32.
"""

import re

_HEX = re.compile(r"[0-9A-Fa-f]{1,10}")

CARD_DROPPED = 0x40F84E00
"""Host lost the card; made from the health answer -8012 (native-abi 6.3)."""
RESET_FINISHED = 0x8C2FA009
"""Device OS start or reset finished: never reported, asks for a fresh read of the chip's codes (2.2)."""
LINK_DOWN = 0x81078603
"""RoCE port down."""
UBOE_PORT_DOWN = 0x81078607
UBOE_DOWN = 0x110001024
UBOE_DEGRADED = 0x110000002
UB_PORT_DOWN = 0x81B18603
UB_DOWN = 0x020001002
UB_DEGRADED = 0x020000002
HANG = 0x200001002

NETWORK_CODES = frozenset({LINK_DOWN, UBOE_PORT_DOWN, UBOE_DOWN, UBOE_DEGRADED})
"""The parameter-plane set (device-info vocabulary; chip-faults 2.6)."""
HYPERPLANE_CODES = frozenset({UB_PORT_DOWN, UB_DOWN, UB_DEGRADED})
"""The UB set of the 950; published among the chip faults."""
SYNTHETIC_CODES = frozenset({CARD_DROPPED, UBOE_DOWN, UBOE_DEGRADED, UB_DOWN, UB_DEGRADED, HANG})
"""Codes the driver's list cannot know (except 40F84E00, which the source appends itself)."""


def parse_code(text: str) -> int:
    """The number of a hexadecimal code text, any letter case, optional `0x`, blanks around it.

    Raises ValueError for anything else, signs included.
    """
    stripped = text.strip()
    if stripped[:2] in ("0x", "0X"):
        stripped = stripped[2:]
    if not _HEX.fullmatch(stripped):
        raise ValueError(f"not a hexadecimal fault code: {text!r}")
    return int(stripped, 16)


def plain_text(code: int) -> str:
    """How consumers see a code that no table spells: upper-case hex without padding (device-info 4.3)."""
    return f"{code:X}"
