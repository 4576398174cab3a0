/*
 * Compile-time proof of the ABI layout. Include it once in every C program that uses na_dcmi.h or na_lingqu.h.
 *
 * Sizes: every row of the fact sheet's section 18.3. Offsets: every table marked "layout:" there, plus the
 * offsets that sections 9.4, 11, 13 and 14 give in running text.
 */
#ifndef NA_ABI_SIZES_H
#define NA_ABI_SIZES_H

#include <stddef.h>

#include "na_dcmi.h"
#include "na_lingqu.h"

#define NA_SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), "size of " #type)
#define NA_AT(type, field, offset) _Static_assert(offsetof(type, field) == (offset), "offset of " #field)

NA_SIZE(int, 4);
NA_SIZE(long, 8);
NA_SIZE(void *, 8);

/* 18.3 */
NA_SIZE(struct dcmi_chip_info, 100);
NA_SIZE(struct dcmi_chip_info_v2, 132);
NA_SIZE(struct dcmi_pcie_info_all, 64);
NA_SIZE(struct dcmi_die_id, 20);
NA_SIZE(struct dcmi_ecc_info, 36);
NA_SIZE(struct dcmi_hbm_info, 32);
NA_SIZE(struct dcmi_get_memory_info_stru, 112);
NA_SIZE(struct dcmi_ip_addr, 20);
NA_SIZE(struct dcmi_board_info, 16);
NA_SIZE(struct dcmi_elabel_info, 1280);
NA_SIZE(struct dcmi_pcie_link_bandwidth_info, 88);
NA_SIZE(struct dcmi_hccs_statistic_info, 512);
NA_SIZE(struct dcmi_hccs_statistic_info_u64, 1024);
NA_SIZE(struct dcmi_hccs_bandwidth_info, 280);
NA_SIZE(struct dcmi_sio_crc_err_statistic_info, 12);
NA_SIZE(struct dcmi_soc_total_resource, 360);
NA_SIZE(struct dcmi_hccsping_mesh_operate, 1048);
NA_SIZE(struct dcmi_hccsping_mesh_info, 3272);
NA_SIZE(struct dcmi_ub_ping_mesh_operate, 1068);
NA_SIZE(struct dcmi_ub_ping_mesh_info, 3552);
NA_SIZE(struct dcmi_spod_info, 48);
NA_SIZE(struct dcmi_dms_fault_event, 352);
NA_SIZE(struct dcmi_event, 360);
NA_SIZE(struct dcmi_event_filter, 48);
NA_SIZE(struct dcmi_proc_mem_info, 16);
NA_SIZE(struct dcmi_multi_utilization_info, 48);
NA_SIZE(dcmi_urma_eid_info_t, 24);
NA_SIZE(struct dcmi_port_pkt_stats_info, 520);
NA_SIZE(struct LqDcmiEvent, 112);
NA_SIZE(struct lq_dcmi_event_filter, 20);
NA_SIZE(struct dcmi_vdev_query_stru, 264);
NA_SIZE(struct dcmi_soc_free_resource, 224);

/* dcmi_chip_info_v2 */
NA_AT(struct dcmi_chip_info_v2, chip_type, 0);
NA_AT(struct dcmi_chip_info_v2, chip_name, 32);
NA_AT(struct dcmi_chip_info_v2, chip_ver, 64);
NA_AT(struct dcmi_chip_info_v2, aicore_cnt, 96);
NA_AT(struct dcmi_chip_info_v2, npu_name, 100);

/* dcmi_pcie_info_all */
NA_AT(struct dcmi_pcie_info_all, venderid, 0);
NA_AT(struct dcmi_pcie_info_all, subvenderid, 4);
NA_AT(struct dcmi_pcie_info_all, deviceid, 8);
NA_AT(struct dcmi_pcie_info_all, subdeviceid, 12);
NA_AT(struct dcmi_pcie_info_all, domain, 16);
NA_AT(struct dcmi_pcie_info_all, bdf_busid, 20);
NA_AT(struct dcmi_pcie_info_all, bdf_deviceid, 24);
NA_AT(struct dcmi_pcie_info_all, bdf_funcid, 28);
NA_AT(struct dcmi_pcie_info_all, reserve, 32);

/* dcmi_dms_fault_event */
NA_AT(struct dcmi_dms_fault_event, event_id, 0);
NA_AT(struct dcmi_dms_fault_event, deviceid, 4);
NA_AT(struct dcmi_dms_fault_event, node_type, 6);
NA_AT(struct dcmi_dms_fault_event, node_id, 7);
NA_AT(struct dcmi_dms_fault_event, sub_node_type, 8);
NA_AT(struct dcmi_dms_fault_event, sub_node_id, 9);
NA_AT(struct dcmi_dms_fault_event, severity, 10);
NA_AT(struct dcmi_dms_fault_event, assertion, 11);
NA_AT(struct dcmi_dms_fault_event, event_serial_num, 12);
NA_AT(struct dcmi_dms_fault_event, notify_serial_num, 16);
NA_AT(struct dcmi_dms_fault_event, alarm_raised_time, 24);
NA_AT(struct dcmi_dms_fault_event, event_name, 32);
NA_AT(struct dcmi_dms_fault_event, additional_info, 288);
NA_AT(struct dcmi_dms_fault_event, resv, 320);

/* dcmi_event_filter */
NA_AT(struct dcmi_event_filter, filter_flag, 0);
NA_AT(struct dcmi_event_filter, event_id, 8);
NA_AT(struct dcmi_event_filter, severity, 12);
NA_AT(struct dcmi_event_filter, node_type, 13);
NA_AT(struct dcmi_event_filter, resv, 14);

/* dcmi_hccsping_mesh_operate */
NA_AT(struct dcmi_hccsping_mesh_operate, dst_addr_list, 0);
NA_AT(struct dcmi_hccsping_mesh_operate, pkt_size, 1024);
NA_AT(struct dcmi_hccsping_mesh_operate, pkt_send_num, 1028);
NA_AT(struct dcmi_hccsping_mesh_operate, pkt_interval, 1032);
NA_AT(struct dcmi_hccsping_mesh_operate, timeout, 1036);
NA_AT(struct dcmi_hccsping_mesh_operate, task_interval, 1040);
NA_AT(struct dcmi_hccsping_mesh_operate, task_id, 1044);

/* dcmi_hccsping_mesh_info */
NA_AT(struct dcmi_hccsping_mesh_info, dst_addr, 0);
NA_AT(struct dcmi_hccsping_mesh_info, suc_pkt_num, 768);
NA_AT(struct dcmi_hccsping_mesh_info, fail_pkt_num, 960);
NA_AT(struct dcmi_hccsping_mesh_info, max_time, 1152);
NA_AT(struct dcmi_hccsping_mesh_info, min_time, 1536);
NA_AT(struct dcmi_hccsping_mesh_info, avg_time, 1920);
NA_AT(struct dcmi_hccsping_mesh_info, tp95_time, 2304);
NA_AT(struct dcmi_hccsping_mesh_info, reply_stat_num, 2688);
NA_AT(struct dcmi_hccsping_mesh_info, ping_total_num, 2880);
NA_AT(struct dcmi_hccsping_mesh_info, dest_num, 3264);

/* dcmi_ub_ping_mesh_operate */
NA_AT(struct dcmi_ub_ping_mesh_operate, src_eid, 0);
NA_AT(struct dcmi_ub_ping_mesh_operate, dst_eid_list, 16);
NA_AT(struct dcmi_ub_ping_mesh_operate, dst_num, 1040);
NA_AT(struct dcmi_ub_ping_mesh_operate, pkt_size, 1044);
NA_AT(struct dcmi_ub_ping_mesh_operate, pkt_send_num, 1048);
NA_AT(struct dcmi_ub_ping_mesh_operate, pkt_interval, 1052);
NA_AT(struct dcmi_ub_ping_mesh_operate, timeout, 1056);
NA_AT(struct dcmi_ub_ping_mesh_operate, task_interval, 1060);
NA_AT(struct dcmi_ub_ping_mesh_operate, task_id, 1064);

/* dcmi_ub_ping_mesh_info */
NA_AT(struct dcmi_ub_ping_mesh_info, src_eid, 0);
NA_AT(struct dcmi_ub_ping_mesh_info, dst_eid_list, 16);
NA_AT(struct dcmi_ub_ping_mesh_info, suc_pkt_num, 1040);
NA_AT(struct dcmi_ub_ping_mesh_info, fail_pkt_num, 1232);
NA_AT(struct dcmi_ub_ping_mesh_info, max_time, 1424);
NA_AT(struct dcmi_ub_ping_mesh_info, min_time, 1808);
NA_AT(struct dcmi_ub_ping_mesh_info, avg_time, 2192);
NA_AT(struct dcmi_ub_ping_mesh_info, tp95_time, 2576);
NA_AT(struct dcmi_ub_ping_mesh_info, reply_stat_num, 2960);
NA_AT(struct dcmi_ub_ping_mesh_info, ping_total_num, 3152);
NA_AT(struct dcmi_ub_ping_mesh_info, dest_num, 3536);
NA_AT(struct dcmi_ub_ping_mesh_info, occur_time, 3544);

/* dcmi_spod_info */
NA_AT(struct dcmi_spod_info, sdid, 0);
NA_AT(struct dcmi_spod_info, scale_type, 4);
NA_AT(struct dcmi_spod_info, super_pod_id, 8);
NA_AT(struct dcmi_spod_info, server_id, 12);
NA_AT(struct dcmi_spod_info, chassis_id, 16);
NA_AT(struct dcmi_spod_info, super_pod_type, 20);
NA_AT(struct dcmi_spod_info, reserve, 24);

/* LqDcmiEvent */
NA_AT(struct LqDcmiEvent, eventType, 0);
NA_AT(struct LqDcmiEvent, subType, 4);
NA_AT(struct LqDcmiEvent, peerportDevice, 8);
NA_AT(struct LqDcmiEvent, peerportId, 10);
NA_AT(struct LqDcmiEvent, switchChipid, 12);
NA_AT(struct LqDcmiEvent, switchPortid, 14);
NA_AT(struct LqDcmiEvent, severity, 16);
NA_AT(struct LqDcmiEvent, assertion, 17);
NA_AT(struct LqDcmiEvent, res, 18);
NA_AT(struct LqDcmiEvent, eventSerialNum, 24);
NA_AT(struct LqDcmiEvent, notifySerialNum, 28);
NA_AT(struct LqDcmiEvent, alarmRaisedTime, 32);
NA_AT(struct LqDcmiEvent, additionalParam, 40);
NA_AT(struct LqDcmiEvent, additionalInfo, 80);

/* lq_dcmi_event_filter */
NA_AT(struct lq_dcmi_event_filter, filterFlag, 0);
NA_AT(struct lq_dcmi_event_filter, eventTypeId, 4);
NA_AT(struct lq_dcmi_event_filter, eventId, 8);
NA_AT(struct lq_dcmi_event_filter, severity, 12);
NA_AT(struct lq_dcmi_event_filter, chipId, 16);

/* sizes and offsets given in running text */
NA_SIZE(struct dcmi_base_resource, 64);
NA_SIZE(struct dcmi_computing_resource, 96);
NA_SIZE(struct dcmi_media_resource, 56);
NA_SIZE(struct dcmi_vdev_query_info, 256);
NA_SIZE(struct dcmi_create_vdev_res_stru, 104);
NA_SIZE(struct dcmi_create_vdev_out, 52);
NA_SIZE(struct dcmi_memory_info_stru, 16);
NA_SIZE(struct dcmi_ub_port_link_status, 148);
NA_SIZE(struct dcmi_hccsping_mesh_info_v2, 3368);
NA_AT(struct dcmi_event, type, 0);
NA_AT(struct dcmi_event, event_t.dms_event, 8);
NA_AT(struct dcmi_hccsping_mesh_info_v2, l1_plane_check_res, 3272);
NA_AT(struct dcmi_hccsping_mesh_info_v2, reserved, 3320);
NA_AT(struct dcmi_hccs_statistic_info, tx_cnt, 0);
NA_AT(struct dcmi_hccs_statistic_info, rx_cnt, 64);
NA_AT(struct dcmi_hccs_statistic_info, crc_err_cnt, 128);
NA_AT(struct dcmi_hccs_statistic_info, retry_cnt, 192);
NA_AT(struct dcmi_hccs_statistic_info, reserved, 256);
NA_AT(struct dcmi_hccs_statistic_info_u64, tx_cnt, 0);
NA_AT(struct dcmi_hccs_statistic_info_u64, rx_cnt, 128);
NA_AT(struct dcmi_hccs_statistic_info_u64, crc_err_cnt, 256);
NA_AT(struct dcmi_hccs_statistic_info_u64, retry_cnt, 384);
NA_AT(struct dcmi_hccs_statistic_info_u64, reserved, 512);
NA_AT(struct dcmi_sio_crc_err_statistic_info, tx_error_count, 0);
NA_AT(struct dcmi_sio_crc_err_statistic_info, rx_error_count, 2);
NA_AT(struct dcmi_sio_crc_err_statistic_info, reserved, 4);
NA_AT(struct dcmi_hccs_bandwidth_info, profiling_time, 0);
NA_AT(struct dcmi_hccs_bandwidth_info, total_txbw, 8);
NA_AT(struct dcmi_hccs_bandwidth_info, total_rxbw, 16);
NA_AT(struct dcmi_hccs_bandwidth_info, tx_bandwidth, 24);
NA_AT(struct dcmi_hccs_bandwidth_info, rx_bandwidth, 152);
NA_AT(struct dcmi_pcie_link_bandwidth_info, tx_p_bw, 4);
NA_AT(struct dcmi_pcie_link_bandwidth_info, tx_np_bw, 16);
NA_AT(struct dcmi_pcie_link_bandwidth_info, tx_cpl_bw, 28);
NA_AT(struct dcmi_pcie_link_bandwidth_info, tx_np_lantency, 40);
NA_AT(struct dcmi_pcie_link_bandwidth_info, rx_p_bw, 52);
NA_AT(struct dcmi_pcie_link_bandwidth_info, rx_np_bw, 64);
NA_AT(struct dcmi_pcie_link_bandwidth_info, rx_cpl_bw, 76);
NA_AT(struct dcmi_ip_addr, u_addr, 0);
NA_AT(struct dcmi_ip_addr, ip_type, 16);
NA_AT(struct dcmi_port_pkt_stats_info, port_mode, 0);
NA_AT(struct dcmi_port_pkt_stats_info, counters, 8);
NA_AT(struct dcmi_port_pkt_stats_info, reserved, 392);
NA_AT(struct dcmi_multi_utilization_info, aic_util, 0);
NA_AT(struct dcmi_multi_utilization_info, aiv_util, 4);
NA_AT(struct dcmi_multi_utilization_info, aicore_util, 8);
NA_AT(struct dcmi_multi_utilization_info, npu_util, 12);
NA_AT(struct dcmi_multi_utilization_info, reserved, 16);
NA_AT(struct dcmi_hbm_info, memory_size, 0);
NA_AT(struct dcmi_hbm_info, freq, 8);
NA_AT(struct dcmi_hbm_info, memory_usage, 16);
NA_AT(struct dcmi_hbm_info, temp, 24);
NA_AT(struct dcmi_hbm_info, bandwith_util_rate, 28);
NA_AT(struct dcmi_get_memory_info_stru, memory_size, 0);
NA_AT(struct dcmi_get_memory_info_stru, memory_available, 8);
NA_AT(struct dcmi_get_memory_info_stru, freq, 16);
NA_AT(struct dcmi_get_memory_info_stru, hugepagesize, 24);
NA_AT(struct dcmi_get_memory_info_stru, hugepages_total, 32);
NA_AT(struct dcmi_get_memory_info_stru, hugepages_free, 40);
NA_AT(struct dcmi_get_memory_info_stru, utiliza, 48);
NA_AT(struct dcmi_get_memory_info_stru, reserve, 52);
NA_AT(struct dcmi_ecc_info, single_bit_error_cnt, 4);
NA_AT(struct dcmi_ecc_info, double_bit_error_cnt, 8);
NA_AT(struct dcmi_ecc_info, total_single_bit_error_cnt, 12);
NA_AT(struct dcmi_ecc_info, total_double_bit_error_cnt, 16);
NA_AT(struct dcmi_ecc_info, single_bit_isolated_pages_cnt, 20);
NA_AT(struct dcmi_ecc_info, double_bit_isolated_pages_cnt, 24);
NA_AT(struct dcmi_ecc_info, single_bit_next_isolated_pages_cnt, 28);
NA_AT(struct dcmi_ecc_info, double_bit_next_isolated_pages_cnt, 32);
NA_AT(struct dcmi_proc_mem_info, proc_id, 0);
NA_AT(struct dcmi_proc_mem_info, proc_mem_usage, 8);
NA_AT(struct dcmi_base_resource, token, 0);
NA_AT(struct dcmi_base_resource, token_max, 8);
NA_AT(struct dcmi_base_resource, task_timeout, 16);
NA_AT(struct dcmi_base_resource, vfg_id, 24);
NA_AT(struct dcmi_base_resource, vip_mode, 28);
NA_AT(struct dcmi_base_resource, reserved, 29);
NA_AT(struct dcmi_computing_resource, aic, 0);
NA_AT(struct dcmi_computing_resource, aiv, 4);
NA_AT(struct dcmi_computing_resource, dsa, 8);
NA_AT(struct dcmi_computing_resource, pcie_dma, 22);
NA_AT(struct dcmi_computing_resource, memory_size, 24);
NA_AT(struct dcmi_computing_resource, event_id, 32);
NA_AT(struct dcmi_computing_resource, model_id, 44);
NA_AT(struct dcmi_computing_resource, topic_schedule_aicpu, 48);
NA_AT(struct dcmi_computing_resource, topic_ctrl_cpu_slot, 56);
NA_AT(struct dcmi_computing_resource, vdev_aicore_utilization, 60);
NA_AT(struct dcmi_computing_resource, vdev_memory_total, 64);
NA_AT(struct dcmi_computing_resource, vdev_memory_free, 72);
NA_AT(struct dcmi_computing_resource, reserved, 80);
NA_AT(struct dcmi_vdev_query_info, name, 0);
NA_AT(struct dcmi_vdev_query_info, status, 16);
NA_AT(struct dcmi_vdev_query_info, is_container_used, 20);
NA_AT(struct dcmi_vdev_query_info, vfid, 24);
NA_AT(struct dcmi_vdev_query_info, vfg_id, 28);
NA_AT(struct dcmi_vdev_query_info, container_id, 32);
NA_AT(struct dcmi_vdev_query_info, base, 40);
NA_AT(struct dcmi_vdev_query_info, computing, 104);
NA_AT(struct dcmi_vdev_query_info, media, 200);
NA_AT(struct dcmi_vdev_query_stru, vdev_id, 0);
NA_AT(struct dcmi_vdev_query_stru, query_info, 8);
NA_AT(struct dcmi_soc_free_resource, vfg_num, 0);
NA_AT(struct dcmi_soc_free_resource, vfg_bitmap, 4);
NA_AT(struct dcmi_soc_free_resource, base, 8);
NA_AT(struct dcmi_soc_free_resource, computing, 72);
NA_AT(struct dcmi_soc_free_resource, media, 168);
NA_AT(struct dcmi_soc_total_resource, vdev_num, 0);
NA_AT(struct dcmi_soc_total_resource, vdev_id, 4);
NA_AT(struct dcmi_soc_total_resource, vfg_num, 132);
NA_AT(struct dcmi_soc_total_resource, vfg_bitmap, 136);
NA_AT(struct dcmi_soc_total_resource, base, 144);
NA_AT(struct dcmi_soc_total_resource, computing, 208);
NA_AT(struct dcmi_soc_total_resource, media, 304);
NA_AT(dcmi_urma_eid_info_t, eid_index, 16);

#undef NA_SIZE
#undef NA_AT

#endif
