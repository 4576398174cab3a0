/*
 * Data structures of the DCMI C ABI, declared by us from the fact sheet (numbers in comments are its sections).
 *
 * Platforms: Linux LP64. Nothing is packed; na_abi_sizes.h proves every size and offset at compile time.
 * The ABI's enumerations are plain ints here, so that a value the driver invents is still a value.
 * Text fields are raw bytes: a NUL ends them only when the text is shorter than the field.
 */
#ifndef NA_DCMI_TYPES_H
#define NA_DCMI_TYPES_H

/* Return codes (3.1). */
#define DCMI_OK 0
#define DCMI_ERR_CODE_INVALID_PARAMETER (-8001)
#define DCMI_ERR_CODE_OPER_NOT_PERMITTED (-8002)
#define DCMI_ERR_CODE_MEM_OPERATE_FAIL (-8003)
#define DCMI_ERR_CODE_SECURE_FUN_FAIL (-8004)
#define DCMI_ERR_CODE_INNER_ERR (-8005)
#define DCMI_ERR_CODE_TIME_OUT (-8006)
#define DCMI_ERR_CODE_INVALID_DEVICE_ID (-8007)
#define DCMI_ERR_CODE_DEVICE_NOT_EXIST (-8008)
#define DCMI_ERR_CODE_IOCTL_FAIL (-8009)
#define DCMI_ERR_CODE_SEND_MSG_FAIL (-8010)
#define DCMI_ERR_CODE_RECV_MSG_FAIL (-8011)
#define DCMI_ERR_CODE_NOT_REDAY (-8012)
#define DCMI_ERR_CODE_NOT_SUPPORT_IN_CONTAINER (-8013)
#define DCMI_ERR_CODE_FILE_OPERATE_FAIL (-8014)
#define DCMI_ERR_CODE_RESET_FAIL (-8015)
#define DCMI_ERR_CODE_ABORT_OPERATE (-8016)
#define DCMI_ERR_CODE_IS_UPGRADING (-8017)
#define DCMI_ERR_CODE_RESOURCE_OCCUPIED (-8020)
#define DCMI_ERR_CODE_PARTITION_NOT_RIGHT (-8022)
#define DCMI_ERR_CODE_CONFIG_INFO_NOT_EXIST (-8023)
#define DCMI_ERR_CODE_NOT_SUPPORT (-8255)
#define DCMI_RAW_NOT_SUPPORT 65534 /* leaks from the HCCS pingmesh calls, means -8255 (3.1) */

/* Capacities (4, 8, 9). */
#define DCMI_MAX_CARD_NUM 64
#define DCMI_MAX_DEVICE_NUM_IN_CARD 4
#define DCMI_MAX_ERROR_CODES 128
#define DCMI_MAX_PROC_NUM 32
#define DCMI_MAX_HCCS_PCS 16
#define DCMI_MAX_PING_DESTINATIONS 48
#define DCMI_MAX_UB_ADDRESSES 64
#define DCMI_EID_BYTES 16

/* 5.3 identity */
struct dcmi_chip_info {
    unsigned char chip_type[32];
    unsigned char chip_name[32];
    unsigned char chip_ver[32];
    unsigned int aicore_cnt;
};

struct dcmi_chip_info_v2 {
    unsigned char chip_type[32];
    unsigned char chip_name[32];
    unsigned char chip_ver[32];
    unsigned int aicore_cnt;
    unsigned char npu_name[32];
};

struct dcmi_board_info {
    unsigned int board_id;
    unsigned int pcb_id;
    unsigned int bom_id;
    unsigned int slot_id;
};

struct dcmi_pcie_info_all {
    unsigned int venderid;
    unsigned int subvenderid;
    unsigned int deviceid;
    unsigned int subdeviceid;
    int domain;
    unsigned int bdf_busid;
    unsigned int bdf_deviceid;
    unsigned int bdf_funcid;
    unsigned char reserve[32];
};

struct dcmi_die_id {
    unsigned int soc_die[5];
};

struct dcmi_elabel_info {
    char product_name[256];
    char model[256];
    char manufacturer[256];
    char manufacturer_date[256];
    char serial_number[256];
};

/* 7.1 and 7.2 fault events */
struct dcmi_dms_fault_event {
    unsigned int event_id;
    unsigned short deviceid;
    unsigned char node_type;
    unsigned char node_id;
    unsigned char sub_node_type;
    unsigned char sub_node_id;
    unsigned char severity;  /* 0 hint, 1 minor, 2 major, 3 critical */
    unsigned char assertion; /* 0 recovery, 1 occurrence, 2 one-off event */
    int event_serial_num;
    int notify_serial_num;
    unsigned long long alarm_raised_time; /* milliseconds since the epoch */
    char event_name[256];
    char additional_info[32];
    unsigned char resv[32];
};

struct dcmi_event {
    int type; /* 0 = DMS fault event, the only value */
    union {
        struct dcmi_dms_fault_event dms_event;
    } event_t;
};

struct dcmi_event_filter {
    unsigned long long filter_flag; /* 0 all; bit 0 event_id, bit 1 severity and above, bit 2 node_type */
    unsigned int event_id;
    unsigned char severity;
    unsigned char node_type;
    unsigned char resv[32];
};

typedef void (*dcmi_fault_event_handler)(struct dcmi_event *event);

/* 8 HCCS pingmesh */
struct dcmi_hccsping_mesh_operate {
    char dst_addr_list[1024]; /* comma-separated; the library tokenises it in place */
    int pkt_size;             /* bytes, 1792..3000 */
    int pkt_send_num;         /* 1..1000 */
    int pkt_interval;         /* milliseconds, 0..1000 */
    int timeout;              /* reserved */
    int task_interval;        /* seconds, 1..60 */
    int task_id;              /* 0 inside the node, 1 between nodes */
};

struct dcmi_hccsping_mesh_info {
    char dst_addr[DCMI_MAX_PING_DESTINATIONS][16];
    unsigned int suc_pkt_num[DCMI_MAX_PING_DESTINATIONS];
    unsigned int fail_pkt_num[DCMI_MAX_PING_DESTINATIONS];
    long max_time[DCMI_MAX_PING_DESTINATIONS]; /* the unit of the four times is not documented (21) */
    long min_time[DCMI_MAX_PING_DESTINATIONS];
    long avg_time[DCMI_MAX_PING_DESTINATIONS];
    long tp95_time[DCMI_MAX_PING_DESTINATIONS];
    int reply_stat_num[DCMI_MAX_PING_DESTINATIONS];
    unsigned long long ping_total_num[DCMI_MAX_PING_DESTINATIONS];
    int dest_num;
};

struct dcmi_hccsping_mesh_info_v2 {
    struct dcmi_hccsping_mesh_info info;
    unsigned char l1_plane_check_res[DCMI_MAX_PING_DESTINATIONS];
    unsigned char reserved[DCMI_MAX_PING_DESTINATIONS];
};

/* 9 UB pingmesh and URMA devices (950) */
struct dcmi_ub_ping_mesh_operate {
    char src_eid[DCMI_EID_BYTES];
    char dst_eid_list[DCMI_MAX_UB_ADDRESSES * DCMI_EID_BYTES];
    int dst_num;
    int pkt_size;      /* bytes */
    int pkt_send_num;
    int pkt_interval;  /* milliseconds */
    int timeout;
    int task_interval; /* seconds */
    int task_id;
};

struct dcmi_ub_ping_mesh_info {
    char src_eid[DCMI_EID_BYTES];
    char dst_eid_list[DCMI_MAX_UB_ADDRESSES * DCMI_EID_BYTES];
    unsigned int suc_pkt_num[DCMI_MAX_PING_DESTINATIONS];
    unsigned int fail_pkt_num[DCMI_MAX_PING_DESTINATIONS];
    long max_time[DCMI_MAX_PING_DESTINATIONS];
    long min_time[DCMI_MAX_PING_DESTINATIONS];
    long avg_time[DCMI_MAX_PING_DESTINATIONS];
    long tp95_time[DCMI_MAX_PING_DESTINATIONS];
    int reply_stat_num[DCMI_MAX_PING_DESTINATIONS];
    unsigned long long ping_total_num[DCMI_MAX_PING_DESTINATIONS];
    int dest_num;
    unsigned long occur_time; /* milliseconds */
};

typedef struct {
    union {
        unsigned char raw[DCMI_EID_BYTES];
        unsigned long long words[DCMI_EID_BYTES / 8]; /* gives the struct its 8-byte alignment */
    } eid;
    unsigned int eid_index;
} dcmi_urma_eid_info_t;

/* 10 super-pod */
struct dcmi_spod_info {
    unsigned int sdid;
    unsigned int scale_type;
    unsigned int super_pod_id;
    unsigned int server_id;
    unsigned int chassis_id;
    unsigned int super_pod_type;
    unsigned int reserve[6];
};

/* 11 links */
struct dcmi_hccs_statistic_info {
    unsigned int tx_cnt[DCMI_MAX_HCCS_PCS];
    unsigned int rx_cnt[DCMI_MAX_HCCS_PCS];
    unsigned int crc_err_cnt[DCMI_MAX_HCCS_PCS];
    unsigned int retry_cnt[DCMI_MAX_HCCS_PCS];
    unsigned int reserved[64];
};

struct dcmi_hccs_statistic_info_u64 {
    unsigned long long tx_cnt[DCMI_MAX_HCCS_PCS];
    unsigned long long rx_cnt[DCMI_MAX_HCCS_PCS];
    unsigned long long crc_err_cnt[DCMI_MAX_HCCS_PCS];
    unsigned long long retry_cnt[DCMI_MAX_HCCS_PCS];
    unsigned long long reserved[64];
};

struct dcmi_sio_crc_err_statistic_info {
    unsigned short tx_error_count;
    unsigned short rx_error_count;
    unsigned char reserved[8];
};

struct dcmi_hccs_bandwidth_info {
    int profiling_time; /* in, milliseconds, 1..1000: the call blocks that long */
    double total_txbw;  /* GB/s, as are all below */
    double total_rxbw;
    double tx_bandwidth[DCMI_MAX_HCCS_PCS];
    double rx_bandwidth[DCMI_MAX_HCCS_PCS];
};

struct dcmi_pcie_link_bandwidth_info {
    int profiling_time;        /* in, milliseconds, 0..2000: the call blocks that long */
    unsigned int tx_p_bw[3];   /* minimum, maximum, average; MB/ms, as are all below */
    unsigned int tx_np_bw[3];
    unsigned int tx_cpl_bw[3];
    unsigned int tx_np_lantency[3];
    unsigned int rx_p_bw[3];
    unsigned int rx_np_bw[3];
    unsigned int rx_cpl_bw[3];
};

struct dcmi_ip_addr {
    union {
        unsigned char ip6[16];
        unsigned char ip4[4];
    } u_addr;
    int ip_type; /* 0 IPv4, 1 IPv6, 2 any */
};

struct dcmi_ub_port_info {
    int udie_id;
    int port_id;
};

struct dcmi_port_pkt_stats_info {
    int port_mode;                    /* upstream's reading; the vendor has two words here (15) */
    unsigned long long counters[48];  /* order of 15 */
    unsigned char reserved[128];
};

struct dcmi_ub_port_link_status {
    int overall;   /* 0 no link, 1 all, 2 part, 3 not needed */
    int ports[36]; /* 0 no port, 1 full, 2 partial, 3 not linked */
};

/* 13 metrics and processes */
struct dcmi_multi_utilization_info {
    unsigned int aic_util; /* percent, as are all below */
    unsigned int aiv_util;
    unsigned int aicore_util;
    unsigned int npu_util;
    unsigned int reserved[8];
};

struct dcmi_hbm_info {
    unsigned long long memory_size;  /* MB */
    unsigned int freq;               /* MHz */
    unsigned long long memory_usage; /* MB */
    int temp;                        /* degrees Celsius */
    unsigned int bandwith_util_rate; /* percent */
};

struct dcmi_get_memory_info_stru {
    unsigned long long memory_size;      /* MB */
    unsigned long long memory_available; /* MB */
    unsigned int freq;                   /* MHz */
    unsigned long hugepagesize;          /* KB */
    unsigned long hugepages_total;
    unsigned long hugepages_free;
    unsigned int utiliza;                /* percent */
    unsigned char reserve[60];
};

struct dcmi_memory_info_stru {
    unsigned long long memory_size; /* MB */
    unsigned int freq;              /* MHz */
    unsigned int utiliza;           /* percent */
};

struct dcmi_ecc_info {
    int enable_flag;
    unsigned int single_bit_error_cnt;
    unsigned int double_bit_error_cnt;
    unsigned int total_single_bit_error_cnt;
    unsigned int total_double_bit_error_cnt;
    unsigned int single_bit_isolated_pages_cnt;
    unsigned int double_bit_isolated_pages_cnt;
    unsigned int single_bit_next_isolated_pages_cnt; /* from here on not written by the vendor library (13) */
    unsigned int double_bit_next_isolated_pages_cnt;
};

struct dcmi_proc_mem_info {
    int proc_id;                  /* host process id */
    unsigned long proc_mem_usage; /* bytes */
};

/* 14 vNPU */
struct dcmi_base_resource {
    unsigned long long token;
    unsigned long long token_max;
    unsigned long long task_timeout;
    unsigned int vfg_id;
    unsigned char vip_mode;
    unsigned char reserved[31];
};

struct dcmi_computing_resource {
    float aic;
    float aiv;
    unsigned short dsa;
    unsigned short rtsq;
    unsigned short acsq;
    unsigned short cdqm;
    unsigned short c_core;
    unsigned short ffts;
    unsigned short sdma;
    unsigned short pcie_dma;
    unsigned long long memory_size; /* MB */
    unsigned int event_id;
    unsigned int notify_id;
    unsigned int stream_id;
    unsigned int model_id;
    unsigned short topic_schedule_aicpu;
    unsigned short host_ctrl_cpu;
    unsigned short host_aicpu;
    unsigned short device_aicpu;
    unsigned short topic_ctrl_cpu_slot;
    unsigned int vdev_aicore_utilization;
    unsigned long long vdev_memory_total;
    unsigned long long vdev_memory_free;
    unsigned char reserved[12];
};

struct dcmi_media_resource {
    float jpegd;
    float jpege;
    float vpc;
    float vdec;
    float pngd;
    float venc;
    unsigned char reserved[32];
};

struct dcmi_vdev_query_info {
    char name[16];
    unsigned int status;
    unsigned int is_container_used;
    unsigned int vfid;
    unsigned int vfg_id;
    unsigned long long container_id;
    struct dcmi_base_resource base;
    struct dcmi_computing_resource computing;
    struct dcmi_media_resource media;
};

struct dcmi_vdev_query_stru {
    unsigned int vdev_id; /* in */
    struct dcmi_vdev_query_info query_info;
};

struct dcmi_soc_free_resource {
    unsigned int vfg_num;
    unsigned int vfg_bitmap;
    struct dcmi_base_resource base;
    struct dcmi_computing_resource computing;
    struct dcmi_media_resource media;
};

struct dcmi_soc_total_resource {
    unsigned int vdev_num;
    unsigned int vdev_id[32];
    unsigned int vfg_num;
    unsigned int vfg_bitmap;
    struct dcmi_base_resource base;
    struct dcmi_computing_resource computing;
    struct dcmi_media_resource media;
};

struct dcmi_create_vdev_res_stru {
    unsigned int vdev_id;
    unsigned int vfg_id;
    char template_name[32];
    unsigned char reserved[64];
};

struct dcmi_create_vdev_out {
    unsigned int vdev_id;
    unsigned int pcie_bus;
    unsigned int pcie_device;
    unsigned int pcie_func;
    unsigned int vfg_id;
    unsigned char reserved[32];
};

#endif
