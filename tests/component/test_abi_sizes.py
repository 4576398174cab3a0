"""Layout of the ABI as Python sees it through cffi: every size of native-abi 18.3, and the offsets we rely on."""

import pytest

from nodeagent.drivers.gate import ffi

SIZES = {
    "struct dcmi_chip_info": 100,
    "struct dcmi_chip_info_v2": 132,
    "struct dcmi_pcie_info_all": 64,
    "struct dcmi_die_id": 20,
    "struct dcmi_ecc_info": 36,
    "struct dcmi_hbm_info": 32,
    "struct dcmi_get_memory_info_stru": 112,
    "struct dcmi_ip_addr": 20,
    "struct dcmi_board_info": 16,
    "struct dcmi_elabel_info": 1280,
    "struct dcmi_pcie_link_bandwidth_info": 88,
    "struct dcmi_hccs_statistic_info": 512,
    "struct dcmi_hccs_statistic_info_u64": 1024,
    "struct dcmi_hccs_bandwidth_info": 280,
    "struct dcmi_sio_crc_err_statistic_info": 12,
    "struct dcmi_soc_total_resource": 360,
    "struct dcmi_hccsping_mesh_operate": 1048,
    "struct dcmi_hccsping_mesh_info": 3272,
    "struct dcmi_ub_ping_mesh_operate": 1068,
    "struct dcmi_ub_ping_mesh_info": 3552,
    "struct dcmi_spod_info": 48,
    "struct dcmi_dms_fault_event": 352,
    "struct dcmi_event": 360,
    "struct dcmi_event_filter": 48,
    "struct dcmi_proc_mem_info": 16,
    "struct dcmi_multi_utilization_info": 48,
    "dcmi_urma_eid_info_t": 24,
    "struct dcmi_port_pkt_stats_info": 520,
    "struct LqDcmiEvent": 112,
    "struct lq_dcmi_event_filter": 20,
    "struct dcmi_vdev_query_stru": 264,
    "struct dcmi_soc_free_resource": 224,
}

OFFSETS = {
    # 7.1
    ("struct dcmi_dms_fault_event", "event_id"): 0,
    ("struct dcmi_dms_fault_event", "deviceid"): 4,
    ("struct dcmi_dms_fault_event", "node_type"): 6,
    ("struct dcmi_dms_fault_event", "node_id"): 7,
    ("struct dcmi_dms_fault_event", "severity"): 10,
    ("struct dcmi_dms_fault_event", "assertion"): 11,
    ("struct dcmi_dms_fault_event", "alarm_raised_time"): 24,
    ("struct dcmi_dms_fault_event", "event_name"): 32,
    ("struct dcmi_dms_fault_event", "additional_info"): 288,
    ("struct dcmi_event", "event_t"): 8,
    # 7.2
    ("struct dcmi_event_filter", "event_id"): 8,
    ("struct dcmi_event_filter", "severity"): 12,
    ("struct dcmi_event_filter", "node_type"): 13,
    # 16.2
    ("struct LqDcmiEvent", "eventType"): 0,
    ("struct LqDcmiEvent", "subType"): 4,
    ("struct LqDcmiEvent", "peerportDevice"): 8,
    ("struct LqDcmiEvent", "peerportId"): 10,
    ("struct LqDcmiEvent", "switchChipid"): 12,
    ("struct LqDcmiEvent", "switchPortid"): 14,
    ("struct LqDcmiEvent", "severity"): 16,
    ("struct LqDcmiEvent", "assertion"): 17,
    ("struct LqDcmiEvent", "alarmRaisedTime"): 32,
    ("struct LqDcmiEvent", "additionalInfo"): 80,
    # 16.3
    ("struct lq_dcmi_event_filter", "eventTypeId"): 4,
    ("struct lq_dcmi_event_filter", "eventId"): 8,
    ("struct lq_dcmi_event_filter", "severity"): 12,
    ("struct lq_dcmi_event_filter", "chipId"): 16,
    # 5.3
    ("struct dcmi_chip_info_v2", "chip_name"): 32,
    ("struct dcmi_chip_info_v2", "chip_ver"): 64,
}


@pytest.mark.parametrize("name", SIZES)
def test_size(name: str) -> None:
    assert ffi.sizeof(name) == SIZES[name]


@pytest.mark.parametrize(("name", "field"), OFFSETS)
def test_offset(name: str, field: str) -> None:
    assert ffi.offsetof(name, field) == OFFSETS[name, field]


def test_the_event_with_its_time_lies_as_the_shim_writes_it() -> None:
    assert ffi.sizeof("struct na_event") == 8 + 8 + 360
    assert ffi.offsetof("struct na_event", "event") == 16
    assert ffi.sizeof("struct na_switch_event") == 8 + 8 + 112
    assert ffi.offsetof("struct na_switch_event", "event") == 16
