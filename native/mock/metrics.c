/* Metrics, processes and vNPU (native-abi 13, 14). */
#include "mock.h"

NA_TWINS(dcmi_get_device_utilization_rate, dcmiv2_get_device_utilization_rate,
    (, int input_type, unsigned int *utilization_rate), (, input_type), NA_NOTHING, NA_OUT(utilization_rate))
NA_TWINS(dcmi_get_device_multi_utilization_rate, dcmiv2_get_device_multi_utilization_rate,
    (, struct dcmi_multi_utilization_info *utilization_info), (), NA_NOTHING, NA_OUT(utilization_info))
NA_TWINS(dcmi_get_device_multi_utilization_rate_period, dcmiv2_get_device_multi_utilization_rate_period,
    (, struct dcmi_multi_utilization_info *utilization_info, int period), (, period), NA_NOTHING,
    NA_OUT(utilization_info))
NA_TWINS(dcmi_get_device_temperature, dcmiv2_get_device_temperature, (, int *temperature), (), NA_NOTHING,
    NA_OUT(temperature))
NA_TWINS(dcmi_get_device_voltage, dcmiv2_get_device_voltage, (, unsigned int *voltage), (), NA_NOTHING,
    NA_OUT(voltage))
NA_TWINS(dcmi_get_device_power_info, dcmiv2_get_device_power_info, (, int *power), (), NA_NOTHING, NA_OUT(power))
NA_CARD(dcmi_mcu_get_power_info, (, int *power), (), NA_NOTHING, NA_OUT(power))
NA_TWINS(dcmi_get_device_frequency, dcmiv2_get_device_frequency, (, int input_type, unsigned int *frequency),
    (, input_type), NA_NOTHING, NA_OUT(frequency))
NA_TWINS(dcmi_get_device_hbm_info, dcmiv2_get_device_hbm_info, (, struct dcmi_hbm_info *hbm_info), (), NA_NOTHING,
    NA_OUT(hbm_info))
NA_V1(dcmi_get_device_memory_info_v3, (, struct dcmi_get_memory_info_stru *memory_info), (), NA_NOTHING,
    NA_OUT(memory_info))
NA_V1(dcmi_get_memory_info, (, struct dcmi_memory_info_stru *memory_info), (), NA_NOTHING, NA_OUT(memory_info))
NA_TWINS(dcmi_get_device_ecc_info, dcmiv2_get_device_ecc_info, (, int input_type, struct dcmi_ecc_info *ecc_info),
    (, input_type), NA_NOTHING, NA_OUT(ecc_info))
/* No length is passed: the ABI wants room for 32 entries. */
NA_TWINS(dcmi_get_device_resource_info, dcmiv2_get_device_proc_mem_info,
    (, struct dcmi_proc_mem_info *proc_info, int *proc_num), (), NA_NOTHING, NA_ARRAY(proc_info, DCMI_MAX_PROC_NUM),
    NA_OUT(proc_num))

NA_V1(dcmi_create_vdevice, (, struct dcmi_create_vdev_res_stru *vdev, struct dcmi_create_vdev_out *out), (),
    ((struct na_in) NA_OUT(vdev)), NA_OUT(out))
NA_V1(dcmi_set_destroy_vdevice, (, unsigned int vdev_id), (, vdev_id), NA_NOTHING)
