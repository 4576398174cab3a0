/*
 * Prototypes of libdcmi.so, declared by us from the fact sheet (numbers in comments are its sections).
 *
 * Two API generations live in one library: dcmi_* (all products before Ascend 950) and dcmiv2_* (950 only).
 * v1 addresses a chip by card and device id, v2 by its logic id (dev_id). 0 is success.
 * Watch the argument order where it differs: dcmi_get_device_logic_id has its result first,
 * dcmiv2_get_device_list its list first. The subscribe calls take their filter by value.
 */
#ifndef NA_DCMI_H
#define NA_DCMI_H

#include "na_dcmi_types.h"

/* 2.3, 5 enumeration and identity */
int dcmi_init(void);
int dcmi_get_dcmi_version(char *dcmi_ver, unsigned int len);
int dcmi_get_card_list(int *card_num, int *card_list, int list_len);
int dcmi_get_card_num_list(int *card_num, int *card_list, int list_len);
int dcmi_get_device_num_in_card(int card_id, int *device_num);
int dcmi_get_device_id_in_card(int card_id, int *device_id_max, int *mcu_id, int *cpu_id);
int dcmi_get_device_type(int card_id, int device_id, int *device_type);
int dcmi_get_device_logic_id(int *device_logic_id, int card_id, int device_id);
int dcmi_get_card_id_device_id_from_logicid(int *card_id, int *device_id, unsigned int device_logic_id);
int dcmi_get_card_id_device_id_from_phyid(int *card_id, int *device_id, unsigned int device_phy_id);
int dcmi_get_device_phyid_from_logicid(unsigned int logicid, unsigned int *phyid);
int dcmi_get_device_logicid_from_phyid(unsigned int phyid, unsigned int *logicid);
int dcmi_get_all_device_count(int *all_device_count);
int dcmi_get_device_chip_info(int card_id, int device_id, struct dcmi_chip_info *chip_info);
int dcmi_get_device_chip_info_v2(int card_id, int device_id, struct dcmi_chip_info_v2 *chip_info);
int dcmi_get_device_board_info(int card_id, int device_id, struct dcmi_board_info *board_info);
int dcmi_get_mainboard_id(int card_id, int device_id, unsigned int *mainboard_id);
int dcmi_get_product_type(int card_id, int device_id, char *product_type_str, int buf_size);
int dcmi_get_device_die_v2(int card_id, int device_id, int input_type, struct dcmi_die_id *die_id);
int dcmi_get_device_pcie_info_v2(int card_id, int device_id, struct dcmi_pcie_info_all *pcie_info);
int dcmi_get_card_elabel_v2(int card_id, struct dcmi_elabel_info *elabel_info);
int dcmi_get_npu_work_mode(int card_id, unsigned char *work_mode);
int dcmi_get_affinity_cpu_info_by_device_id(int card_id, int device_id, char *affinity_cpu, int *length);
int dcmi_get_multi_die_policy(unsigned int *policy);
int dcmi_set_multi_die_policy(unsigned int policy);

/* 6 health and fault codes */
int dcmi_get_device_health(int card_id, int device_id, unsigned int *health);
int dcmi_get_driver_health(unsigned int *health);
int dcmi_get_device_network_health(int card_id, int device_id, int *result);
int dcmi_get_device_errorcode_v2(int card_id, int device_id, int *error_count, unsigned int *error_code_list,
    unsigned int list_len);
int dcmi_get_device_errorcode(int card_id, int device_id, int *error_count, unsigned int *error_code,
    int *error_width);
int dcmi_get_device_errorcode_string(int card_id, int device_id, unsigned int error_code,
    unsigned char *error_info, int buf_size);
int dcmi_get_driver_errorcode(int *error_count, unsigned int *error_code_list, unsigned int list_len);
int dcmi_get_fault_device_num_in_card(int card_id, int *device_num);

/* 7 fault events */
int dcmi_subscribe_fault_event(int card_id, int device_id, struct dcmi_event_filter filter,
    dcmi_fault_event_handler handler);
int dcmi_get_fault_event(int card_id, int device_id, int timeout_ms, struct dcmi_event_filter filter,
    struct dcmi_event *event);
int dcmi_get_device_current_fault_event(int card_id, int device_id, struct dcmi_event *buf, int buf_len,
    int *count);

/* 8 HCCS pingmesh */
int dcmi_start_hccsping_mesh(int card_id, int device_id, int port_id,
    struct dcmi_hccsping_mesh_operate *hccsping_mesh);
int dcmi_stop_hccsping_mesh(int card_id, int device_id, int port_id, unsigned int task_id);
int dcmi_get_hccsping_mesh_info(int card_id, int device_id, int port_id, unsigned int task_id,
    struct dcmi_hccsping_mesh_info *hccsping_mesh_reply);
int dcmi_get_hccsping_mesh_info_v2(int card_id, int device_id, int port_id, unsigned int task_id,
    struct dcmi_hccsping_mesh_info_v2 *hccsping_mesh_reply);
int dcmi_get_hccsping_mesh_state(int card_id, int device_id, int port_id, unsigned int task_id,
    unsigned int *state);

/* 9 UB pingmesh, URMA devices */
int dcmi_start_ub_ping_mesh(int card_id, int device_id, int count, struct dcmi_ub_ping_mesh_operate *ubping_mesh);
int dcmi_stop_ub_ping_mesh(int card_id, int device_id, int task_id);
int dcmi_get_ub_ping_mesh_info(int card_id, int device_id, int task_id,
    struct dcmi_ub_ping_mesh_info *ubping_mesh_reply, int mesh_reply_size, int *count);
int dcmi_get_ub_ping_mesh_state(int card_id, int device_id, int task_id, unsigned int *state);
int dcmi_get_urma_device_cnt(int card_id, int device_id, unsigned int *dev_cnt);
int dcmi_get_eid_list_by_urma_dev_index(int card_id, int device_id, unsigned int dev_index,
    dcmi_urma_eid_info_t *eid_list, unsigned int *eid_cnt);

/* 10 super-pod, 11 links */
int dcmi_get_device_info(int card_id, int device_id, int main_cmd, unsigned int sub_cmd, void *buf,
    unsigned int *size);
int dcmi_get_spod_node_status(int card_id, int device_id, unsigned int sdid, unsigned int *status);
int dcmi_set_spod_node_status(int card_id, int device_id, unsigned int sdid, unsigned int status);
int dcmi_get_hccs_link_bandwidth_info(int card_id, int device_id, struct dcmi_hccs_bandwidth_info *info);
int dcmi_get_pcie_link_bandwidth_info(int card_id, int device_id, struct dcmi_pcie_link_bandwidth_info *info);
int dcmi_get_device_ip(int card_id, int device_id, int input_type, int port_id, struct dcmi_ip_addr *ip,
    struct dcmi_ip_addr *mask);
int dcmi_get_device_gateway(int card_id, int device_id, int input_type, int port_id,
    struct dcmi_ip_addr *gateway);

/* 12 reset */
int dcmi_set_device_reset(int card_id, int device_id, int channel_type);
int dcmi_pre_reset_soc(int card_id, int device_id);
int dcmi_rescan_soc(int card_id, int device_id);
int dcmi_get_device_outband_channel_state(int card_id, int device_id, int *channel_state);
int dcmi_get_netdev_brother_device(int card_id, int device_id, int *brother_card_id);
int dcmi_get_device_boot_status(int card_id, int device_id, int *boot_status);

/* 13 metrics and processes */
int dcmi_get_device_utilization_rate(int card_id, int device_id, int input_type,
    unsigned int *utilization_rate);
int dcmi_get_device_multi_utilization_rate(int card_id, int device_id,
    struct dcmi_multi_utilization_info *utilization_info);
int dcmi_get_device_multi_utilization_rate_period(int card_id, int device_id,
    struct dcmi_multi_utilization_info *utilization_info, int period);
int dcmi_get_device_temperature(int card_id, int device_id, int *temperature);
int dcmi_get_device_voltage(int card_id, int device_id, unsigned int *voltage);
int dcmi_get_device_power_info(int card_id, int device_id, int *power);
int dcmi_mcu_get_power_info(int card_id, int *power);
int dcmi_get_device_frequency(int card_id, int device_id, int input_type, unsigned int *frequency);
int dcmi_get_device_hbm_info(int card_id, int device_id, struct dcmi_hbm_info *hbm_info);
int dcmi_get_device_memory_info_v3(int card_id, int device_id, struct dcmi_get_memory_info_stru *memory_info);
int dcmi_get_memory_info(int card_id, int device_id, struct dcmi_memory_info_stru *memory_info);
int dcmi_get_device_ecc_info(int card_id, int device_id, int input_type, struct dcmi_ecc_info *ecc_info);
int dcmi_get_device_resource_info(int card_id, int device_id, struct dcmi_proc_mem_info *proc_info,
    int *proc_num);

/* 14 vNPU */
int dcmi_create_vdevice(int card_id, int device_id, struct dcmi_create_vdev_res_stru *vdev,
    struct dcmi_create_vdev_out *out);
int dcmi_set_destroy_vdevice(int card_id, int device_id, unsigned int vdev_id);

/* 15 v2: enumeration and identity */
int dcmiv2_init(void);
int dcmiv2_get_dcmi_version(char *dcmi_ver, unsigned int len);
int dcmiv2_get_device_list(int *dev_list, int *dev_num, int list_len);
int dcmiv2_get_all_device_count(int *all_device_count);
int dcmiv2_get_device_type(int dev_id, int *device_type);
int dcmiv2_get_chip_phy_id_by_dev_id(unsigned int dev_id, unsigned int *phyid);
int dcmiv2_get_dev_id_by_chip_phy_id(unsigned int phyid, unsigned int *dev_id);
int dcmiv2_get_device_chip_info(int dev_id, struct dcmi_chip_info_v2 *chip_info);
int dcmiv2_get_device_board_info(int dev_id, struct dcmi_board_info *board_info);
int dcmiv2_get_mainboard_id(int dev_id, unsigned int *mainboard_id);
int dcmiv2_get_device_die_id(int dev_id, int input_type, struct dcmi_die_id *die_id);
int dcmiv2_get_device_pcie_info(int dev_id, struct dcmi_pcie_info_all *pcie_info);
int dcmiv2_get_device_elabel_info(int dev_id, struct dcmi_elabel_info *elabel_info);
int dcmiv2_get_affinity_cpu_info_by_dev_id(int dev_id, char *affinity_cpu, int *length);

/* 15 v2: health, codes, events */
int dcmiv2_get_device_health(int dev_id, unsigned int *health);
int dcmiv2_get_device_network_health(int dev_id, int *result);
int dcmiv2_get_device_error_code_list(int dev_id, int *error_count, unsigned int *error_code_list,
    unsigned int list_len);
int dcmiv2_get_device_error_info(int dev_id, unsigned int error_code, unsigned char *error_info, int buf_size);
int dcmiv2_subscribe_fault_event(int dev_id, struct dcmi_event_filter filter, dcmi_fault_event_handler handler);
int dcmiv2_get_fault_event(int dev_id, int timeout_ms, struct dcmi_event_filter filter,
    struct dcmi_event *event);
int dcmiv2_get_device_current_fault_event(int dev_id, struct dcmi_event *buf, int buf_len, int *count);

/* 9, 15 v2: UB */
int dcmiv2_start_ub_ping_mesh(int dev_id, int count, struct dcmi_ub_ping_mesh_operate *ubping_mesh);
int dcmiv2_stop_ub_ping_mesh(int dev_id, int task_id);
int dcmiv2_get_ub_ping_mesh_info(int dev_id, int task_id, struct dcmi_ub_ping_mesh_info *ubping_mesh_reply,
    int mesh_reply_size, int *count);
int dcmiv2_get_ub_ping_mesh_state(int dev_id, int task_id, unsigned int *state);
int dcmiv2_get_urma_device_cnt(int dev_id, unsigned int *dev_cnt);
int dcmiv2_get_eid_list_by_urma_dev_index(int dev_id, unsigned int dev_index, dcmi_urma_eid_info_t *eid_list,
    unsigned int *eid_cnt);
int dcmiv2_get_port_pkt_stats_info(int dev_id, struct dcmi_ub_port_info *port_info,
    struct dcmi_port_pkt_stats_info *pkt_stats);
int dcmiv2_get_ub_port_link_status(int dev_id, struct dcmi_ub_port_link_status *link_status);

/* 15 v2: links, reset */
int dcmiv2_get_device_info(int dev_id, int main_cmd, unsigned int sub_cmd, void *buf, unsigned int *size);
int dcmiv2_get_pcie_link_bandwidth_info(int dev_id, struct dcmi_pcie_link_bandwidth_info *info);
int dcmiv2_reset_device(int dev_id, int channel_type);
int dcmiv2_pre_reset_device(int dev_id);
int dcmiv2_rescan_device(int dev_id);
int dcmiv2_get_device_outband_channel_state(int dev_id, int *channel_state);
int dcmiv2_get_device_boot_status(int dev_id, int *boot_status);

/* 13, 15 v2: metrics and processes */
int dcmiv2_get_device_utilization_rate(int dev_id, int input_type, unsigned int *utilization_rate);
int dcmiv2_get_device_multi_utilization_rate(int dev_id, struct dcmi_multi_utilization_info *utilization_info);
int dcmiv2_get_device_multi_utilization_rate_period(int dev_id,
    struct dcmi_multi_utilization_info *utilization_info, int period);
int dcmiv2_get_device_temperature(int dev_id, int *temperature);
int dcmiv2_get_device_voltage(int dev_id, unsigned int *voltage);
int dcmiv2_get_device_power_info(int dev_id, int *power);
int dcmiv2_get_device_frequency(int dev_id, int input_type, unsigned int *frequency);
int dcmiv2_get_device_hbm_info(int dev_id, struct dcmi_hbm_info *hbm_info);
int dcmiv2_get_device_ecc_info(int dev_id, int input_type, struct dcmi_ecc_info *ecc_info);
int dcmiv2_get_device_proc_mem_info(int dev_id, struct dcmi_proc_mem_info *proc_info, int *proc_num);

#endif
