/* Pingmesh, HCCS and UB, and URMA devices (native-abi 8, 9). */
#include "mock.h"

int dcmi_start_hccsping_mesh(int card_id, int device_id, int port_id,
    struct dcmi_hccsping_mesh_operate *hccsping_mesh)
{
    const long long args[] = { 0, card_id, device_id, port_id };
    const struct na_out outs[] = { { NULL, 0 } };
    struct na_in in = { hccsping_mesh, sizeof *hccsping_mesh };
    int code;

    if (!hccsping_mesh)
        return DCMI_ERR_CODE_INVALID_PARAMETER;
    code = na_call("dcmi_start_hccsping_mesh", args, NA_COUNT(args), in, outs, NA_COUNT(outs));
    /* The vendor library leaves the list cut into words (8.4): a caller that uses it again shall notice. */
    for (size_t i = 0; i < sizeof hccsping_mesh->dst_addr_list; i++) {
        if (hccsping_mesh->dst_addr_list[i] == ',')
            hccsping_mesh->dst_addr_list[i] = '\0';
    }
    return code;
}

NA_V1(dcmi_stop_hccsping_mesh, (, int port_id, unsigned int task_id), (, port_id, task_id), NA_NOTHING)
NA_V1(dcmi_get_hccsping_mesh_info, (, int port_id, unsigned int task_id, struct dcmi_hccsping_mesh_info *reply),
    (, port_id, task_id), NA_NOTHING, NA_OUT(reply))
NA_V1(dcmi_get_hccsping_mesh_info_v2,
    (, int port_id, unsigned int task_id, struct dcmi_hccsping_mesh_info_v2 *reply), (, port_id, task_id),
    NA_NOTHING, NA_OUT(reply))
NA_V1(dcmi_get_hccsping_mesh_state, (, int port_id, unsigned int task_id, unsigned int *state),
    (, port_id, task_id), NA_NOTHING, NA_OUT(state))

#define ENTRIES(array, count) ((struct na_in) NA_ARRAY(array, (count) > DCMI_MAX_UB_ADDRESSES ? 0 : (count)))

NA_TWINS(dcmi_start_ub_ping_mesh, dcmiv2_start_ub_ping_mesh,
    (, int count, struct dcmi_ub_ping_mesh_operate *ubping_mesh), (, count), ENTRIES(ubping_mesh, count))
NA_TWINS(dcmi_stop_ub_ping_mesh, dcmiv2_stop_ub_ping_mesh, (, int task_id), (, task_id), NA_NOTHING)
NA_TWINS(dcmi_get_ub_ping_mesh_info, dcmiv2_get_ub_ping_mesh_info,
    (, int task_id, struct dcmi_ub_ping_mesh_info *reply, int reply_size, int *count), (, task_id, reply_size),
    NA_NOTHING, NA_ARRAY(reply, reply_size), NA_OUT(count))
NA_TWINS(dcmi_get_ub_ping_mesh_state, dcmiv2_get_ub_ping_mesh_state, (, int task_id, unsigned int *state),
    (, task_id), NA_NOTHING, NA_OUT(state))

NA_TWINS(dcmi_get_urma_device_cnt, dcmiv2_get_urma_device_cnt, (, unsigned int *dev_cnt), (), NA_NOTHING,
    NA_OUT(dev_cnt))
/* eid_cnt is the capacity on the way in (9.4). */
NA_TWINS(dcmi_get_eid_list_by_urma_dev_index, dcmiv2_get_eid_list_by_urma_dev_index,
    (, unsigned int dev_index, dcmi_urma_eid_info_t *eid_list, unsigned int *eid_cnt),
    (, dev_index, eid_cnt ? *eid_cnt : 0), NA_NOTHING, NA_ARRAY(eid_list, eid_cnt ? *eid_cnt : 0), NA_OUT(eid_cnt))
