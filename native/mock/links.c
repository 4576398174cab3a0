/* Super-pod, links, addresses, reset (native-abi 10, 11, 12). */
#include "mock.h"

#define INFO_INPUT_BYTES 4 /* the commands that read the buffer read one word: SDID or vNPU id (11.1) */

#define FIRST_WORD(buf, size) ((struct na_in) { (buf), (size) && *(size) >= INFO_INPUT_BYTES ? INFO_INPUT_BYTES : 0 })

NA_TWINS(dcmi_get_device_info, dcmiv2_get_device_info,
    (, int main_cmd, unsigned int sub_cmd, void *buf, unsigned int *size), (, main_cmd, sub_cmd, size ? *size : 0),
    FIRST_WORD(buf, size), NA_BYTES(buf, size ? *size : 0), NA_OUT(size))

NA_V1(dcmi_get_spod_node_status, (, unsigned int sdid, unsigned int *status), (, sdid), NA_NOTHING, NA_OUT(status))
NA_V1(dcmi_set_spod_node_status, (, unsigned int sdid, unsigned int status), (, sdid, status), NA_NOTHING)

NA_V1(dcmi_get_hccs_link_bandwidth_info, (, struct dcmi_hccs_bandwidth_info *info),
    (, info ? info->profiling_time : 0), NA_NOTHING, NA_OUT(info))
NA_TWINS(dcmi_get_pcie_link_bandwidth_info, dcmiv2_get_pcie_link_bandwidth_info,
    (, struct dcmi_pcie_link_bandwidth_info *info), (, info ? info->profiling_time : 0), NA_NOTHING, NA_OUT(info))

/* ip->ip_type says on the way in which family is wanted (11.4). */
NA_V1(dcmi_get_device_ip, (, int input_type, int port_id, struct dcmi_ip_addr *ip, struct dcmi_ip_addr *mask),
    (, input_type, port_id, ip ? ip->ip_type : 0), NA_NOTHING, NA_OUT(ip), NA_OUT(mask))
NA_V1(dcmi_get_device_gateway, (, int input_type, int port_id, struct dcmi_ip_addr *gateway),
    (, input_type, port_id), NA_NOTHING, NA_OUT(gateway))

NA_V2(dcmiv2_get_ub_port_link_status, (, struct dcmi_ub_port_link_status *link_status), (), NA_NOTHING,
    NA_OUT(link_status))
NA_V2(dcmiv2_get_port_pkt_stats_info,
    (, struct dcmi_ub_port_info *port_info, struct dcmi_port_pkt_stats_info *pkt_stats), (),
    ((struct na_in) NA_OUT(port_info)), NA_OUT(pkt_stats))

NA_TWINS(dcmi_set_device_reset, dcmiv2_reset_device, (, int channel_type), (, channel_type), NA_NOTHING)
NA_TWINS(dcmi_pre_reset_soc, dcmiv2_pre_reset_device, (), (), NA_NOTHING)
NA_TWINS(dcmi_rescan_soc, dcmiv2_rescan_device, (), (), NA_NOTHING)
NA_TWINS(dcmi_get_device_outband_channel_state, dcmiv2_get_device_outband_channel_state, (, int *channel_state), (),
    NA_NOTHING, NA_OUT(channel_state))
NA_V1(dcmi_get_netdev_brother_device, (, int *brother_card_id), (), NA_NOTHING, NA_OUT(brother_card_id))
NA_TWINS(dcmi_get_device_boot_status, dcmiv2_get_device_boot_status, (, int *boot_status), (), NA_NOTHING,
    NA_OUT(boot_status))
