"""Enumeration and identity answers (native-abi 5, 15)."""

import struct

from nodeagent.mock.call import Answer, Call, Handler, i32, ok, refuse, text, u32, u32_list
from nodeagent.mock.chip import Chip
from nodeagent.mock.functions import INVALID_PARAMETER, NOT_EXIST, NOT_SUPPORTED

_NO_ID = 0xFFFFFFFF
_PCI_VENDOR = 0x19E5
_PCI_DEVICES = {
    "310": 0xD100,
    "310p": 0xD500,
    "910a": 0xD801,
    "a2": 0xD802,
    "a2-card": 0xD802,
    "a3": 0xD803,
    "950": 0xD806,
}
_FIRST_PCI_BUS = 0xC1
_NDIE, _VDIE, _DDIE = 0, 1, 2


def is_controller(call: Call) -> bool:
    """Whether the ids of a v1 call name the management controller of a card that init saw (5.1)."""
    node = call.node
    if call.v2 or call.topology is None or call.ids[0] not in call.topology.card_ids:
        return False
    return node.spec.product.mcu and call.ids[1] == len(node.chips_of(call.ids[0]))


def _version(call: Call) -> Answer:
    raw = call.node.spec.dcmi_version.encode() + b"\0"
    return ok(raw) if len(raw) <= call.args[0] else refuse(INVALID_PARAMETER)


def _seen_cards(call: Call) -> tuple[int, ...]:
    return call.topology.card_ids if call.topology else ()


def _card_list(call: Call) -> Answer:
    return u32_list(_seen_cards(call), call.args[0], INVALID_PARAMETER)


def _device_list(call: Call) -> Answer:
    return u32_list([chip.logic_id for chip in _seen_chips(call)], call.args[0], INVALID_PARAMETER)


def _all_devices(call: Call) -> Answer:
    return ok(i32(len(call.node.chips)))


def _device_num(call: Call) -> Answer:
    return ok(i32(len(call.node.chips_of(call.ids[0]))))


def _device_ids(call: Call) -> Answer:
    count = len(call.node.chips_of(call.ids[0]))
    return ok(i32(count), i32(count if call.node.spec.product.mcu else -1), i32(-1))


def _device_type(call: Call) -> Answer:
    return ok(i32(0 if call.chip else 1))


def _logic_id(call: Call) -> Answer:
    return ok(i32(call.the_chip.logic_id))


def _seen_chips(call: Call) -> list[Chip]:
    seen = _seen_cards(call)
    return [chip for chip in call.node.chips.values() if chip.card_id in seen]


def _place_of_logic(call: Call) -> Answer:
    for chip in _seen_chips(call):
        if chip.logic_id == call.args[0]:
            return ok(i32(chip.card_id), i32(chip.device_id))
    return refuse(NOT_EXIST)


def _place_of_phy(call: Call) -> Answer:
    for chip in _seen_chips(call):
        if chip.phy_id == call.args[0]:
            return ok(i32(chip.card_id), i32(chip.device_id))
    return refuse(NOT_EXIST)


def _phy_of_logic(call: Call) -> Answer:
    for chip in _seen_chips(call):
        if chip.logic_id == call.args[0]:
            return ok(u32(chip.phy_id))
    return refuse(NOT_EXIST)


def _logic_of_phy(call: Call) -> Answer:
    for chip in _seen_chips(call):
        if chip.phy_id == call.args[0]:
            return ok(u32(chip.logic_id))
    return refuse(NOT_EXIST)


def _chip_info(call: Call) -> Answer:
    chip = call.the_chip
    cores = call.node.spec.aicore_count
    return ok(text("Ascend", 32) + text(chip.chip_name, 32) + text("V1", 32) + u32(cores))


def _chip_info_v2(call: Call) -> Answer:
    _, (old,) = _chip_info(call)
    return ok(old + text(call.the_chip.chip_name, 32))


def _board_info(call: Call) -> Answer:
    chip = call.the_chip
    return ok(u32(chip.board_id, _NO_ID, _NO_ID, chip.card_id + 1))


def _mainboard(call: Call) -> Answer:
    return ok(u32(call.the_chip.mainboard_id))


def _product_type(call: Call) -> Answer:
    raw = call.the_chip.product_type.encode() + b"\0"
    return ok(raw) if len(raw) <= call.args[0] else refuse(INVALID_PARAMETER)


def _die(call: Call) -> Answer:
    """v1 knows N and V dies, a 950 answers its D die only (5.2, 15)."""
    kind = call.args[0]
    if kind not in (_NDIE, _VDIE, _DDIE):
        return refuse(INVALID_PARAMETER)
    if (kind == _DDIE) != call.v2:
        return refuse(NOT_SUPPORTED)
    return ok(u32(0x0123ABCD, kind, 0x1F2E3D4C, call.the_chip.logic_id + 1, 0))


def _pcie(call: Call) -> Answer:
    place = _FIRST_PCI_BUS + call.the_chip.logic_id
    device = _PCI_DEVICES[call.node.spec.profile]
    ids = u32(_PCI_VENDOR, 0x0200, device, 0x0100)
    return ok(ids + struct.pack("<iIII", place >> 8, place & 0xFF, 0, 0) + bytes(32))


def _elabel(call: Call) -> Answer:
    """The manufacturing date is not filled (5.2)."""
    chip = call.the_chip
    fields = (call.node.spec.product.title, f"MOCK-{chip.chip_name}", "Mock", "", chip.serial_number)
    return ok(b"".join(text(field, 256) for field in fields))


def _work_mode(call: Call) -> Answer:
    return ok(bytes([call.node.spec.work_mode]))


def _affinity(call: Call) -> Answer:
    raw = call.the_chip.affinity.encode()[:32]
    return ok(raw + b"\0", i32(len(raw)))


def _get_policy(call: Call) -> Answer:
    return ok(u32(call.node.multi_die_policy))


def _set_policy(call: Call) -> Answer:
    if call.args[0] not in (0, 1):
        return refuse(INVALID_PARAMETER)
    call.node.multi_die_policy = call.args[0]
    return ok()


HANDLERS: dict[str, Handler] = {
    "dcmi_get_dcmi_version": _version,
    "dcmi_get_card_list": _card_list,
    "dcmi_get_card_num_list": _card_list,
    "dcmiv2_get_device_list": _device_list,
    "dcmi_get_all_device_count": _all_devices,
    "dcmi_get_device_num_in_card": _device_num,
    "dcmi_get_device_id_in_card": _device_ids,
    "dcmi_get_device_type": _device_type,
    "dcmi_get_device_logic_id": _logic_id,
    "dcmi_get_card_id_device_id_from_logicid": _place_of_logic,
    "dcmi_get_card_id_device_id_from_phyid": _place_of_phy,
    "dcmi_get_device_phyid_from_logicid": _phy_of_logic,
    "dcmi_get_device_logicid_from_phyid": _logic_of_phy,
    "dcmi_get_device_chip_info": _chip_info,
    "dcmi_get_device_chip_info_v2": _chip_info_v2,
    "dcmi_get_device_board_info": _board_info,
    "dcmi_get_mainboard_id": _mainboard,
    "dcmi_get_product_type": _product_type,
    "dcmi_get_device_die_v2": _die,
    "dcmi_get_device_pcie_info_v2": _pcie,
    "dcmi_get_card_elabel_v2": _elabel,
    "dcmi_get_npu_work_mode": _work_mode,
    "dcmi_get_affinity_cpu_info_by_device_id": _affinity,
    "dcmi_get_multi_die_policy": _get_policy,
    "dcmi_set_multi_die_policy": _set_policy,
}
