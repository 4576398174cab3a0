/* Health, fault codes and the event calls that need no thread of ours (native-abi 6, 7.3). */
#include "mock.h"

NA_TWINS(dcmi_get_device_health, dcmiv2_get_device_health, (, unsigned int *health), (), NA_NOTHING, NA_OUT(health))
NA_TWINS(dcmi_get_device_network_health, dcmiv2_get_device_network_health, (, int *result), (), NA_NOTHING,
    NA_OUT(result))
NA_TWINS(dcmi_get_device_errorcode_v2, dcmiv2_get_device_error_code_list,
    (, int *error_count, unsigned int *error_code_list, unsigned int list_len), (, list_len), NA_NOTHING,
    NA_OUT(error_count), NA_ARRAY(error_code_list, list_len))
NA_V1(dcmi_get_device_errorcode, (, int *error_count, unsigned int *error_code, int *error_width), (), NA_NOTHING,
    NA_OUT(error_count), NA_ARRAY(error_code, DCMI_MAX_ERROR_CODES), NA_OUT(error_width))
NA_TWINS(dcmi_get_device_errorcode_string, dcmiv2_get_device_error_info,
    (, unsigned int error_code, unsigned char *error_info, int buf_size), (, error_code, buf_size), NA_NOTHING,
    NA_BYTES(error_info, buf_size))
NA_CARD(dcmi_get_fault_device_num_in_card, (, int *device_num), (), NA_NOTHING, NA_OUT(device_num))
NA_TWINS(dcmi_get_device_current_fault_event, dcmiv2_get_device_current_fault_event,
    (, struct dcmi_event *buf, int buf_len, int *count), (, buf_len), NA_NOTHING, NA_ARRAY(buf, buf_len),
    NA_OUT(count))
NA_TWINS(dcmi_get_fault_event, dcmiv2_get_fault_event,
    (, int timeout_ms, struct dcmi_event_filter filter, struct dcmi_event *event),
    (, timeout_ms, (long long)filter.filter_flag, filter.event_id, filter.severity, filter.node_type), NA_NOTHING,
    NA_OUT(event))

int dcmi_get_driver_health(unsigned int *health)
{
    NA_CALL("dcmi_get_driver_health", (), NA_NOTHING, NA_OUT(health));
}

int dcmi_get_driver_errorcode(int *error_count, unsigned int *error_code_list, unsigned int list_len)
{
    NA_CALL("dcmi_get_driver_errorcode", (list_len), NA_NOTHING, NA_OUT(error_count),
        NA_ARRAY(error_code_list, list_len));
}
