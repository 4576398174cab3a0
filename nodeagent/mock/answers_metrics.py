"""Answers about metrics and processes (native-abi 13)."""

import struct

from nodeagent.mock.call import Answer, Call, Handler, i32, ok, refuse, u32
from nodeagent.mock.functions import INVALID_PARAMETER, NOT_SUPPORTED

_UTILISATION_TYPES = frozenset({1, 2, 3, 4, 5, 6, 10, 12, 13, 14})
_FREQUENCIES_MHZ = {1: 1600, 2: 1900, 6: 1600, 7: 1650, 9: 1800, 12: 1650}
_VOLTAGE = 80
"""0.80 V in hundredths."""
_HBM_MEMORY = 2
_MEMORY_TYPES = frozenset({0, 1, 2, 3, 0xFF})
_VENDOR_ECC_WORDS = 7
"""The vendor's struct ends here; the two words that upstream declares behind it are not written (13)."""
_MAX_PROCESSES = 32


def _utilisation(call: Call) -> Answer:
    if call.args[0] not in _UTILISATION_TYPES:
        return refuse(INVALID_PARAMETER)
    return ok(u32(call.the_chip.spec.utilization_percent))


def _all_utilisations(call: Call) -> Answer:
    percent = call.the_chip.spec.utilization_percent
    return ok(u32(percent, percent, percent, percent) + bytes(32))


def _utilisations_of_period(call: Call) -> Answer:
    return _all_utilisations(call) if call.args[0] == 1 else refuse(INVALID_PARAMETER)


def _temperature(call: Call) -> Answer:
    return ok(i32(call.the_chip.spec.temperature_c))


def _voltage(_call: Call) -> Answer:
    return ok(u32(_VOLTAGE))


def _power(call: Call) -> Answer:
    return ok(i32(round(call.the_chip.spec.power_w * 10)))


def _frequency(call: Call) -> Answer:
    mhz = _FREQUENCIES_MHZ.get(call.args[0])
    return refuse(INVALID_PARAMETER) if mhz is None else ok(u32(mhz))


def _hbm(call: Call) -> Answer:
    total_mb = call.node.spec.hbm_mb
    own = call.the_chip.spec
    return ok(struct.pack("<QI4xQiI", total_mb, 1600, own.hbm_used_mb, own.temperature_c, 0))


def _memory(call: Call) -> Answer:
    total_mb = call.node.spec.product.ddr_mb
    free_mb = total_mb - total_mb // 10
    return ok(struct.pack("<QQI4xQQQI60x", total_mb, free_mb, 1600, 2048, 0, 0, 10))


def _old_memory(call: Call) -> Answer:
    return ok(struct.pack("<QII", call.node.spec.product.ddr_mb, 1600, 10))


def _ecc(call: Call) -> Answer:
    """Only HBM has counters where there is HBM (13)."""
    kind = call.args[0]
    if kind not in _MEMORY_TYPES:
        return refuse(INVALID_PARAMETER)
    if kind != _HBM_MEMORY:
        return refuse(NOT_SUPPORTED)
    return ok(u32(1, *[0] * (_VENDOR_ECC_WORDS - 1)))


def _processes(call: Call) -> Answer:
    """At most 32 entries; no list length is passed, so the caller must have room for them."""
    entries = call.the_chip.spec.processes[:_MAX_PROCESSES]
    return ok(b"".join(struct.pack("<i4xQ", pid, used) for pid, used in entries), i32(len(entries)))


HANDLERS: dict[str, Handler] = {
    "dcmi_get_device_utilization_rate": _utilisation,
    "dcmi_get_device_multi_utilization_rate": _all_utilisations,
    "dcmi_get_device_multi_utilization_rate_period": _utilisations_of_period,
    "dcmi_get_device_temperature": _temperature,
    "dcmi_get_device_voltage": _voltage,
    "dcmi_get_device_power_info": _power,
    "dcmi_mcu_get_power_info": _power,
    "dcmi_get_device_frequency": _frequency,
    "dcmi_get_device_hbm_info": _hbm,
    "dcmi_get_device_memory_info_v3": _memory,
    "dcmi_get_memory_info": _old_memory,
    "dcmi_get_device_ecc_info": _ecc,
    "dcmi_get_device_resource_info": _processes,
}
