"""What product this node is, from what the library says (native-abi 5.5, 5.6). Pure."""

import re

from nodeagent.core.errors import DriverError
from nodeagent.core.model import Family, SuperPod

INVALID_ID = 0xFFFFFFFF
_A3_BOARDS = frozenset({0xB0, 0xB1, 0xB2, 0xB3, 0xB4, 0x81, 0x83, 0xD1, 0xD3})
_NAME_MAX = 32
_A310P_NAME = re.compile(r"310P\d?|I2\d?")
_A2_NAME = re.compile(r"910B\d|A2G\d")


def family_of(chip_name: str, board_id: int) -> Family:
    """Product family by chip name and board id, rules 1-8 of native-abi 5.6 in their order.

    A board id of the A3 list counts only together with a chip name of the 910 series: 0x81 and 0x83 are
    not unique enough to outrank a name that says otherwise. Raises DriverError for an unknown chip.
    """
    if board_id in _A3_BOARDS and "910" in chip_name:
        return Family.A3
    if chip_name.startswith("Ascend950") and len(chip_name) <= _NAME_MAX:
        return Family.A5
    if _A310P_NAME.match(chip_name):
        return Family.A310P
    if "310B" in chip_name:
        return Family.A310B
    if "310" in chip_name:
        return Family.A310
    if _A2_NAME.match(chip_name):
        return Family.A2
    if chip_name.startswith("910"):
        return Family.A910
    raise DriverError(
        f"chip {chip_name!r} with board id 0x{board_id:x} is no product that nodeagent knows",
        "a newer version may know it",
    )


def super_pod_of(super_pod_id: int, server_index: int, rack_id: int, pod_type: int, family: Family) -> SuperPod | None:
    """Super-pod identity as published, or None when this chip's answer does not count (native-abi 10.1).

    Inputs are unsigned 32-bit. On the 950 a chassis id with bit 31 set disqualifies the answer.
    """
    if family is Family.A5 and rack_id & 0x80000000:
        return None
    rack, kind = (_signed(rack_id), pod_type) if family is Family.A5 else (-2, 0)
    return SuperPod(_signed(super_pod_id), _signed(server_index), rack, kind)


def _signed(value: int) -> int:
    """Unsigned 32-bit as the signed number that consumers parse: 0xFFFFFFFF is -1 (device-info 3)."""
    return value - (1 << 32) if value & 0x80000000 else value
