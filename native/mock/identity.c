/* Enumeration and identity (native-abi 2.3, 5, 15). */
#include "mock.h"

#define AFFINITY_BYTES 33 /* what the ABI wants of the caller, although no length says so (4) */

int dcmi_init(void)
{
    return na_init("dcmi_init");
}

int dcmiv2_init(void)
{
    return na_init("dcmiv2_init");
}

NA_SAME(dcmi_get_dcmi_version, dcmiv2_get_dcmi_version, (char *dcmi_ver, unsigned int len), (len), NA_NOTHING,
    NA_BYTES(dcmi_ver, len))

int dcmi_get_card_list(int *card_num, int *card_list, int list_len)
{
    NA_CALL("dcmi_get_card_list", (list_len), NA_NOTHING, NA_OUT(card_num), NA_ARRAY(card_list, list_len));
}

int dcmi_get_card_num_list(int *card_num, int *card_list, int list_len)
{
    NA_CALL("dcmi_get_card_num_list", (list_len), NA_NOTHING, NA_OUT(card_num), NA_ARRAY(card_list, list_len));
}

/* The list comes first here (20 row 12). */
int dcmiv2_get_device_list(int *dev_list, int *dev_num, int list_len)
{
    NA_CALL("dcmiv2_get_device_list", (list_len), NA_NOTHING, NA_OUT(dev_num), NA_ARRAY(dev_list, list_len));
}

NA_SAME(dcmi_get_all_device_count, dcmiv2_get_all_device_count, (int *all_device_count), (), NA_NOTHING,
    NA_OUT(all_device_count))

NA_CARD(dcmi_get_device_num_in_card, (, int *device_num), (), NA_NOTHING, NA_OUT(device_num))
NA_CARD(dcmi_get_device_id_in_card, (, int *device_id_max, int *mcu_id, int *cpu_id), (), NA_NOTHING,
    NA_OUT(device_id_max), NA_OUT(mcu_id), NA_OUT(cpu_id))

/* The result comes first here (5.2). */
int dcmi_get_device_logic_id(int *device_logic_id, int card_id, int device_id)
{
    NA_CALL("dcmi_get_device_logic_id", (card_id, device_id), NA_NOTHING, NA_OUT(device_logic_id));
}

int dcmi_get_card_id_device_id_from_logicid(int *card_id, int *device_id, unsigned int device_logic_id)
{
    NA_CALL("dcmi_get_card_id_device_id_from_logicid", (device_logic_id), NA_NOTHING, NA_OUT(card_id),
        NA_OUT(device_id));
}

int dcmi_get_card_id_device_id_from_phyid(int *card_id, int *device_id, unsigned int device_phy_id)
{
    NA_CALL("dcmi_get_card_id_device_id_from_phyid", (device_phy_id), NA_NOTHING, NA_OUT(card_id),
        NA_OUT(device_id));
}

NA_SAME(dcmi_get_device_phyid_from_logicid, dcmiv2_get_chip_phy_id_by_dev_id,
    (unsigned int logicid, unsigned int *phyid), (logicid), NA_NOTHING, NA_OUT(phyid))
NA_SAME(dcmi_get_device_logicid_from_phyid, dcmiv2_get_dev_id_by_chip_phy_id,
    (unsigned int phyid, unsigned int *logicid), (phyid), NA_NOTHING, NA_OUT(logicid))

NA_TWINS(dcmi_get_device_type, dcmiv2_get_device_type, (, int *device_type), (), NA_NOTHING, NA_OUT(device_type))
NA_V1(dcmi_get_device_chip_info, (, struct dcmi_chip_info *chip_info), (), NA_NOTHING, NA_OUT(chip_info))
NA_TWINS(dcmi_get_device_chip_info_v2, dcmiv2_get_device_chip_info, (, struct dcmi_chip_info_v2 *chip_info), (),
    NA_NOTHING, NA_OUT(chip_info))
NA_TWINS(dcmi_get_device_board_info, dcmiv2_get_device_board_info, (, struct dcmi_board_info *board_info), (),
    NA_NOTHING, NA_OUT(board_info))
NA_TWINS(dcmi_get_mainboard_id, dcmiv2_get_mainboard_id, (, unsigned int *mainboard_id), (), NA_NOTHING,
    NA_OUT(mainboard_id))
NA_V1(dcmi_get_product_type, (, char *product_type_str, int buf_size), (, buf_size), NA_NOTHING,
    NA_BYTES(product_type_str, buf_size))
NA_TWINS(dcmi_get_device_die_v2, dcmiv2_get_device_die_id, (, int input_type, struct dcmi_die_id *die_id),
    (, input_type), NA_NOTHING, NA_OUT(die_id))
NA_TWINS(dcmi_get_device_pcie_info_v2, dcmiv2_get_device_pcie_info, (, struct dcmi_pcie_info_all *pcie_info), (),
    NA_NOTHING, NA_OUT(pcie_info))
NA_CARD(dcmi_get_card_elabel_v2, (, struct dcmi_elabel_info *elabel_info), (), NA_NOTHING, NA_OUT(elabel_info))
NA_V2(dcmiv2_get_device_elabel_info, (, struct dcmi_elabel_info *elabel_info), (), NA_NOTHING, NA_OUT(elabel_info))
NA_CARD(dcmi_get_npu_work_mode, (, unsigned char *work_mode), (), NA_NOTHING, NA_OUT(work_mode))
NA_TWINS(dcmi_get_affinity_cpu_info_by_device_id, dcmiv2_get_affinity_cpu_info_by_dev_id,
    (, char *affinity_cpu, int *length), (), NA_NOTHING, NA_BYTES(affinity_cpu, AFFINITY_BYTES), NA_OUT(length))

int dcmi_get_multi_die_policy(unsigned int *policy)
{
    NA_CALL("dcmi_get_multi_die_policy", (), NA_NOTHING, NA_OUT(policy));
}

int dcmi_set_multi_die_policy(unsigned int policy)
{
    NA_CALL("dcmi_set_multi_die_policy", (policy), NA_NOTHING);
}
