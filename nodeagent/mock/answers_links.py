"""Answers about super-pod, links, addresses and reset (native-abi 10, 11, 12)."""

import struct
from collections.abc import Callable

from nodeagent.mock.call import Answer, Call, Handler, i32, ok, refuse, u32
from nodeagent.mock.functions import INVALID_PARAMETER, NOT_EXIST, NOT_SUPPORTED, group_supported

PROFILING_MS: dict[str, tuple[int, int]] = {
    "dcmi_get_hccs_link_bandwidth_info": (1, 1000),
    "dcmi_get_pcie_link_bandwidth_info": (0, 2000),
}
"""Calls that block for the time the caller names, with its bounds in milliseconds (11.2, 11.3)."""

_CONFIG_ABSENT = -8023
_OUT_OF_BAND, _IN_BAND = 0, 1
_ROCE = 1
_UB_PORTS, _UB_PORT_SLOTS = 9, 36
_HCCS_LINKS = range(1, 8)


def _spod_info(call: Call) -> Answer:
    spec = call.node.spec
    words = (spec.super_pod_size, spec.super_pod_id, spec.server_id, spec.chassis_id, spec.super_pod_type)
    return ok(u32(call.the_chip.sdid, *words, *[0] * 6))


def _spod_status_by_info(call: Call) -> Answer:
    sdid = int.from_bytes(call.blob[:4], "little")
    return ok(u32(call.the_chip.peer_status.get(sdid, 0)))


def _hccs_statistics(width: str) -> Callable[[Call], Answer]:
    """Counters of 16 links, those of A2 and A3 on indexes 1..7 (11.1)."""

    def answer(_call: Call) -> Answer:
        traffic = [100_000 + link if link in _HCCS_LINKS else 0 for link in range(16)]
        values = traffic + traffic + [0] * 16 + [0] * 16 + [0] * 64
        return ok(struct.pack(f"<{len(values)}{width}", *values))

    return answer


def _sio_errors(_call: Call) -> Answer:
    return ok(bytes(12))


def _vnpu_total(call: Call) -> Answer:
    """A chip that is not cut into vNPUs (14)."""
    head = struct.pack("<36I", 0, *[0] * 32, 0, 0, 0)
    return ok(head + bytes(64) + _computing(call) + bytes(56))


def _vnpu_free(call: Call) -> Answer:
    return ok(u32(0, 0) + bytes(64) + _computing(call) + bytes(56))


def _computing(call: Call) -> bytes:
    cores = call.node.spec.aicore_count
    return struct.pack("<ff16xQ64x", cores, cores, call.node.spec.hbm_mb)


_INFO: dict[tuple[int, int], tuple[str, int, Callable[[Call], Answer]]] = {
    (12, 1): ("spod info", 48, _spod_info),
    (12, 2): ("spod status", 4, _spod_status_by_info),
    (16, 3): ("hccs", 512, _hccs_statistics("I")),
    (16, 5): ("hccs", 1024, _hccs_statistics("Q")),
    (52, 1): ("vnpu info", 360, _vnpu_total),
    (52, 2): ("vnpu info", 224, _vnpu_free),
    (56, 0): ("sio", 12, _sio_errors),
}
"""Main and sub command to function group, buffer size in bytes, answer (11.1)."""


def _device_info(call: Call) -> Answer:
    main, sub, capacity = call.args
    entry = _INFO.get((main, sub))
    if entry is None:
        return refuse(NOT_SUPPORTED)
    group, size_bytes, answer = entry
    if not group_supported(group, call.node.spec.profile):
        return refuse(NOT_SUPPORTED)
    if capacity < size_bytes:
        return refuse(INVALID_PARAMETER)
    _, (buffer,) = answer(call)
    return ok(buffer, u32(size_bytes))


def _get_peer_status(call: Call) -> Answer:
    return ok(u32(call.the_chip.peer_status.get(call.args[0], 0)))


def _set_peer_status(call: Call) -> Answer:
    sdid, status = call.args
    if status not in (0, 1):
        return refuse(INVALID_PARAMETER)
    call.the_chip.peer_status[sdid] = status
    return ok()


def _hccs_bandwidth(call: Call) -> Answer:
    time_ms = call.args[0]
    if not 1 <= time_ms <= 1000:
        return refuse(INVALID_PARAMETER)
    rates = [1.5 if link in _HCCS_LINKS else 0.0 for link in range(16)]
    return ok(struct.pack("<i4x34d", time_ms, sum(rates), sum(rates), *rates, *rates))


def _pcie_bandwidth(call: Call) -> Answer:
    time_ms = call.args[0]
    if not 0 <= time_ms <= 2000:
        return refuse(INVALID_PARAMETER)
    return ok(i32(time_ms) + u32(*[1, 3, 2] * 7))


def _ip(call: Call) -> Answer:
    """Address and mask of the RoCE port; the caller says which family it wants (11.4)."""
    port_type, port, family = call.args
    chip = call.the_chip
    if port_type not in (0, _ROCE) or port != 0:
        return refuse(INVALID_PARAMETER)
    wants_v6 = family == 1
    if port_type != _ROCE or not chip.has_roce or chip.ip is None or wants_v6 != (chip.ip.version == 6):
        return refuse(_CONFIG_ABSENT)
    mask = b"\xff" * 8 + bytes(8) if wants_v6 else b"\xff\xff\xff\0"
    return ok(_address(chip.ip.packed), _address(mask))


def _gateway(call: Call) -> Answer:
    port_type, port = call.args
    chip = call.the_chip
    if port_type != _ROCE or port != 0:
        return refuse(INVALID_PARAMETER)
    if not chip.has_roce or chip.ip is None:
        return refuse(_CONFIG_ABSENT)
    return ok(_address(chip.ip.packed[:-1] + b"\xfe"))


def _address(packed: bytes) -> bytes:
    return packed.ljust(16, b"\0") + i32(1 if len(packed) == 16 else 0)


def _reset(call: Call) -> Answer:
    """In-band on every product, out-of-band where section 19 has it; without a chip: the whole node (12)."""
    channel = call.args[0]
    if channel not in (_OUT_OF_BAND, _IN_BAND):
        return refuse(INVALID_PARAMETER)
    if channel == _OUT_OF_BAND and not call.node.supports("dcmi_pre_reset_soc"):
        return refuse(NOT_SUPPORTED)
    if channel == _OUT_OF_BAND and call.chip is None:
        return refuse(NOT_EXIST)
    for chip in [call.chip] if call.chip else call.node.chips.values():
        call.node.reset(chip.logic_id)
    return ok()


def _done(_call: Call) -> Answer:
    return ok()


def _channel_usable(_call: Call) -> Answer:
    return ok(i32(1))


def _brother(call: Call) -> Answer:
    """Modules share network ports in pairs here; -1 for one without a neighbour (12)."""
    neighbour = call.ids[0] ^ 1
    return ok(i32(neighbour if call.node.chips_of(neighbour) else -1))


def _boot_status(call: Call) -> Answer:
    return ok(i32(call.the_chip.boot_status(call.now_ms)))


def _ub_ports(call: Call) -> Answer:
    """All ports linked, or the first one not (15)."""
    first, overall = (1, 1) if call.the_chip.link_up else (3, 2)
    ports = [first] + [1] * (_UB_PORTS - 1) + [0] * (_UB_PORT_SLOTS - _UB_PORTS)
    return ok(i32(overall, *ports))


def _port_counters(call: Call) -> Answer:
    die, port = struct.unpack("<ii", call.blob)
    if die not in (0, 1) or not 0 <= port < _UB_PORTS:
        return refuse(INVALID_PARAMETER)
    return ok(i32(0) + bytes(4) + struct.pack("<48Q", *range(1000, 1048)) + bytes(128))


HANDLERS: dict[str, Handler] = {
    "dcmi_get_device_info": _device_info,
    "dcmi_get_spod_node_status": _get_peer_status,
    "dcmi_set_spod_node_status": _set_peer_status,
    "dcmi_get_hccs_link_bandwidth_info": _hccs_bandwidth,
    "dcmi_get_pcie_link_bandwidth_info": _pcie_bandwidth,
    "dcmi_get_device_ip": _ip,
    "dcmi_get_device_gateway": _gateway,
    "dcmi_set_device_reset": _reset,
    "dcmi_pre_reset_soc": _done,
    "dcmi_rescan_soc": _done,
    "dcmi_get_device_outband_channel_state": _channel_usable,
    "dcmi_get_netdev_brother_device": _brother,
    "dcmi_get_device_boot_status": _boot_status,
    "dcmiv2_get_ub_port_link_status": _ub_ports,
    "dcmiv2_get_port_pkt_stats_info": _port_counters,
}
