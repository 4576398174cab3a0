"""The functions of the DCMI ABI as a table: twins of the two generations, support by product.

Those of the switch library, group "lq", are rows as well: calls of both travel the same way.
The names are those of native-abi sections 5 to 13, 15 and 16; the support matrix is section 19. Where the sheet has
no fact ("–") the mock says "not supported", and a node description can say otherwise.
"""

from dataclasses import dataclass
from enum import Enum

OK = 0
INVALID_PARAMETER = -8001
NOT_PERMITTED = -8002
INNER_ERROR = -8005
TIME_OUT = -8006
NOT_EXIST = -8008
NOT_READY = -8012
OCCUPIED = -8020
NOT_SUPPORTED = -8255
TOO_MANY_PROCESSES, TOO_MANY_SUBSCRIPTIONS = -8010, -8014
"""Of the switch library, where the numbers mean this (3.2)."""
RAW_NOT_SUPPORTED = 65534
"""What the HCCS pingmesh calls leak instead of -8255 (3.1)."""

PRODUCTS = ("310", "310p", "910a", "a2", "a2-card", "a3", "950")


class Address(Enum):
    """Which leading integers of a call name its subject."""

    NONE = 0
    """None: the call is about the node, or maps one id to another."""
    CHIP = 1
    """card and device id in v1, logic id in v2."""
    CARD = 2
    """card id in v1, logic id in v2."""


@dataclass(frozen=True, slots=True)
class Function:
    """One operation of the ABI under its name in either generation ("" where it has none)."""

    v1: str
    v2: str
    group: str
    address: Address
    privileged: bool = False

    @property
    def name(self) -> str:
        """The name by which rules and logs know the operation: v1 if there is one."""
        return self.v1 or self.v2


_SUPPORT: dict[str, str] = {
    #                310 310p 910a a2 card a3 950
    "base":         "Y   Y    Y    Y  Y    Y  Y",
    "v1 base":      "Y   Y    Y    Y  Y    Y  N",
    "old codes":    "Y   Y    Y    N  N    N  N",
    "subscription": "N   N    Y    Y  Y    Y  Y",
    "snapshot":     "N   N    N    N  N    N  Y",
    "gateway":      "N   N    Y    Y  N    Y  Y",
    "address":      "N   N    Y    Y  N    Y  N",
    "spod info":    "N   N    N    N  N    Y  Y",
    "spod status":  "N   N    N    N  N    Y  N",
    "hccs ping":    "N   N    N    N  N    Y  N",
    "hccs":         "N   N    N    Y  Y    Y  N",
    "sio":          "N   N    N    N  N    Y  Y",
    "dies":         "N   N    N    N  N    Y  N",
    "out of band":  "N   N    N    N  Y    Y  Y",
    "reset":        "Y   Y    Y    Y  Y    Y  Y",
    "boot":         "N   Y    Y    Y  Y    Y  Y",
    "main board":   "N   N    N    Y  Y    Y  Y",
    "product type": "N   Y    N    N  N    N  N",
    "work mode":    "N   N    Y    N  N    N  N",
    "affinity":     "N   N    N    Y  Y    N  Y",
    "hbm":          "N   N    Y    Y  Y    Y  Y",
    "ddr":          "Y   Y    Y    N  N    N  N",
    "mcu power":    "N   Y    N    N  N    N  N",
    "pcie rate":    "N   N    N    Y  Y    N  N",
    "ub":           "N   N    N    N  N    N  Y",
    "vnpu":         "N   N    N    N  N    N  N",
    "vnpu info":    "N   Y    Y    Y  Y    Y  Y",
    "lq":           "N   N    N    N  N    Y  N",
}  # fmt: skip


def group_supported(group: str, product: str) -> bool:
    """Whether a product has a function group (section 19)."""
    return _SUPPORT[group].split()[PRODUCTS.index(product)] == "Y"


_N, _CHIP, _CARD = Address.NONE, Address.CHIP, Address.CARD

FUNCTIONS: tuple[Function, ...] = (
    Function("dcmi_init", "dcmiv2_init", "base", _N),
    Function("dcmi_get_dcmi_version", "dcmiv2_get_dcmi_version", "base", _N),
    Function("dcmi_get_card_list", "", "base", _N),
    Function("dcmi_get_card_num_list", "", "base", _N),
    Function("", "dcmiv2_get_device_list", "base", _N),
    Function("dcmi_get_all_device_count", "dcmiv2_get_all_device_count", "base", _N, privileged=True),
    Function("dcmi_get_device_num_in_card", "", "base", _CARD),
    Function("dcmi_get_device_id_in_card", "", "base", _CARD),
    Function("dcmi_get_device_type", "dcmiv2_get_device_type", "base", _CHIP),
    Function("dcmi_get_device_logic_id", "", "base", _CHIP),
    Function("dcmi_get_card_id_device_id_from_logicid", "", "base", _N),
    Function("dcmi_get_card_id_device_id_from_phyid", "", "base", _N),
    Function("dcmi_get_device_phyid_from_logicid", "dcmiv2_get_chip_phy_id_by_dev_id", "base", _N),
    Function("dcmi_get_device_logicid_from_phyid", "dcmiv2_get_dev_id_by_chip_phy_id", "base", _N),
    Function("dcmi_get_device_chip_info", "", "base", _CHIP),
    Function("dcmi_get_device_chip_info_v2", "dcmiv2_get_device_chip_info", "base", _CHIP),
    Function("dcmi_get_device_board_info", "dcmiv2_get_device_board_info", "base", _CHIP),
    Function("dcmi_get_mainboard_id", "dcmiv2_get_mainboard_id", "main board", _CHIP),
    Function("dcmi_get_product_type", "", "product type", _CHIP),
    Function("dcmi_get_device_die_v2", "dcmiv2_get_device_die_id", "base", _CHIP),
    Function("dcmi_get_device_pcie_info_v2", "dcmiv2_get_device_pcie_info", "base", _CHIP),
    Function("dcmi_get_card_elabel_v2", "dcmiv2_get_device_elabel_info", "base", _CARD),
    Function("dcmi_get_npu_work_mode", "", "work mode", _CARD),
    Function("dcmi_get_affinity_cpu_info_by_device_id", "dcmiv2_get_affinity_cpu_info_by_dev_id", "affinity", _CHIP),
    Function("dcmi_get_multi_die_policy", "", "dies", _N),
    Function("dcmi_set_multi_die_policy", "", "dies", _N, privileged=True),
    Function("dcmi_get_device_health", "dcmiv2_get_device_health", "base", _CHIP),
    Function("dcmi_get_driver_health", "", "base", _N),
    Function("dcmi_get_device_network_health", "dcmiv2_get_device_network_health", "gateway", _CHIP),
    Function("dcmi_get_device_errorcode_v2", "dcmiv2_get_device_error_code_list", "base", _CHIP),
    Function("dcmi_get_device_errorcode", "", "old codes", _CHIP),
    Function("dcmi_get_device_errorcode_string", "dcmiv2_get_device_error_info", "base", _CHIP),
    Function("dcmi_get_driver_errorcode", "", "base", _N),
    Function("dcmi_get_fault_device_num_in_card", "", "base", _CARD),
    Function("dcmi_subscribe_fault_event", "dcmiv2_subscribe_fault_event", "subscription", _N),
    Function("dcmi_get_fault_event", "dcmiv2_get_fault_event", "subscription", _CHIP),
    Function("dcmi_get_device_current_fault_event", "dcmiv2_get_device_current_fault_event", "snapshot", _CHIP),
    Function("dcmi_start_hccsping_mesh", "", "hccs ping", _CHIP, privileged=True),
    Function("dcmi_stop_hccsping_mesh", "", "hccs ping", _CHIP, privileged=True),
    Function("dcmi_get_hccsping_mesh_info", "", "hccs ping", _CHIP, privileged=True),
    Function("dcmi_get_hccsping_mesh_info_v2", "", "hccs ping", _CHIP, privileged=True),
    Function("dcmi_get_hccsping_mesh_state", "", "hccs ping", _CHIP, privileged=True),
    Function("dcmi_start_ub_ping_mesh", "dcmiv2_start_ub_ping_mesh", "ub", _CHIP, privileged=True),
    Function("dcmi_stop_ub_ping_mesh", "dcmiv2_stop_ub_ping_mesh", "ub", _CHIP, privileged=True),
    Function("dcmi_get_ub_ping_mesh_info", "dcmiv2_get_ub_ping_mesh_info", "ub", _CHIP, privileged=True),
    Function("dcmi_get_ub_ping_mesh_state", "dcmiv2_get_ub_ping_mesh_state", "ub", _CHIP, privileged=True),
    Function("dcmi_get_urma_device_cnt", "dcmiv2_get_urma_device_cnt", "ub", _CHIP),
    Function("dcmi_get_eid_list_by_urma_dev_index", "dcmiv2_get_eid_list_by_urma_dev_index", "ub", _CHIP),
    Function("", "dcmiv2_get_port_pkt_stats_info", "ub", _CHIP),
    Function("", "dcmiv2_get_ub_port_link_status", "ub", _CHIP),
    Function("dcmi_get_device_info", "dcmiv2_get_device_info", "base", _CHIP),
    Function("dcmi_get_spod_node_status", "", "spod status", _CHIP),
    Function("dcmi_set_spod_node_status", "", "spod status", _CHIP, privileged=True),
    Function("dcmi_get_hccs_link_bandwidth_info", "", "hccs", _CHIP),
    Function("dcmi_get_pcie_link_bandwidth_info", "dcmiv2_get_pcie_link_bandwidth_info", "pcie rate", _CHIP),
    Function("dcmi_get_device_ip", "", "address", _CHIP),
    Function("dcmi_get_device_gateway", "", "address", _CHIP),
    Function("dcmi_set_device_reset", "dcmiv2_reset_device", "reset", _CHIP, privileged=True),
    Function("dcmi_pre_reset_soc", "dcmiv2_pre_reset_device", "out of band", _CHIP, privileged=True),
    Function("dcmi_rescan_soc", "dcmiv2_rescan_device", "out of band", _CHIP, privileged=True),
    Function(
        "dcmi_get_device_outband_channel_state",
        "dcmiv2_get_device_outband_channel_state",
        "out of band",
        _CHIP,
        privileged=True,
    ),
    Function("dcmi_get_netdev_brother_device", "", "dies", _CHIP),
    Function("dcmi_get_device_boot_status", "dcmiv2_get_device_boot_status", "boot", _CHIP, privileged=True),
    Function("dcmi_get_device_utilization_rate", "dcmiv2_get_device_utilization_rate", "base", _CHIP),
    Function("dcmi_get_device_multi_utilization_rate", "dcmiv2_get_device_multi_utilization_rate", "base", _CHIP),
    Function(
        "dcmi_get_device_multi_utilization_rate_period",
        "dcmiv2_get_device_multi_utilization_rate_period",
        "base",
        _CHIP,
    ),
    Function("dcmi_get_device_temperature", "dcmiv2_get_device_temperature", "base", _CHIP),
    Function("dcmi_get_device_voltage", "dcmiv2_get_device_voltage", "base", _CHIP),
    Function("dcmi_get_device_power_info", "dcmiv2_get_device_power_info", "base", _CHIP),
    Function("dcmi_mcu_get_power_info", "", "mcu power", _CARD),
    Function("dcmi_get_device_frequency", "dcmiv2_get_device_frequency", "base", _CHIP),
    Function("dcmi_get_device_hbm_info", "dcmiv2_get_device_hbm_info", "hbm", _CHIP),
    Function("dcmi_get_device_memory_info_v3", "", "ddr", _CHIP),
    Function("dcmi_get_memory_info", "", "ddr", _CHIP),
    Function("dcmi_get_device_ecc_info", "dcmiv2_get_device_ecc_info", "hbm", _CHIP),
    Function("dcmi_get_device_resource_info", "dcmiv2_get_device_proc_mem_info", "base", _CHIP),
    Function("dcmi_create_vdevice", "", "vnpu", _CHIP),
    Function("dcmi_set_destroy_vdevice", "", "vnpu", _CHIP),
    Function("lq_dcmi_init", "", "lq", _N),
    Function("lq_dcmi_subscribe_fault_event", "", "lq", _N),
    Function("lq_dcmi_get_fault_info", "", "lq", _N),
    Function("lq_dcmi_get_fault_nums", "", "lq", _N),
    Function("lq_dcmi_get_version", "", "lq", _N),
)

BY_NAME: dict[str, Function] = {name: function for function in FUNCTIONS for name in (function.v1, function.v2) if name}


def is_v2(name: str) -> bool:
    """Whether an ABI name belongs to the second generation."""
    return name.startswith("dcmiv2_")


def canonical(name: str) -> str:
    """The name both twins are known by.

    Raises ValueError with a list of near names for one that is not in the ABI.
    """
    function = BY_NAME.get(name)
    if function is None:
        tail = name.rsplit("_", 1)[-1]
        near = ", ".join(sorted(known for known in BY_NAME if tail and tail in known)[:4])
        raise ValueError(f"{name!r} is not a function of the DCMI ABI" + (f"; near: {near}" if near else ""))
    return function.name
