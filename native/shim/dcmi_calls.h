/*
 * The calls of the shim and the event that it hands out, for C and for Python alike: dcmi_shim.h includes this for
 * the compiler, gate.cdef.h for cffi. So it has no includes of its own and nothing but declarations.
 */
#ifndef NA_DCMI_CALLS_H
#define NA_DCMI_CALLS_H

/* One fault event with the time at which the callback was entered. */
struct na_event {
    uint64_t mono_ns;
    int64_t wall_ms;
    struct dcmi_event event;
};

/* 0 or NA_NOT_LOADED with the loader's sentence in na_dcmi_load_error(). The library is never unloaded again:
 * its own threads would run in unmapped code (native-abi 2.3). */
int na_dcmi_open(const char *path);
const char *na_dcmi_load_error(void);

/* 1 when the loaded library exports this name. */
int na_dcmi_has(const char *symbol);

/* generation 1 or 2; the one whose init succeeded is used by all other calls. */
int na_dcmi_init(int generation);

int na_dcmi_version(char *text, unsigned int text_bytes);
int na_dcmi_card_list(int *count, int *ids, int room);
int na_dcmi_device_list(int *count, int *ids, int room);
int na_dcmi_device_num_in_card(int card, int *count);
int na_dcmi_logic_id(int card, int device, int *logic);
int na_dcmi_physical_id(int logic, unsigned int *physical);
int na_dcmi_chip_info(int card, int device, int logic, struct dcmi_chip_info_v2 *info);
int na_dcmi_board_info(int card, int device, int logic, struct dcmi_board_info *info);
int na_dcmi_mainboard_id(int card, int device, int logic, unsigned int *id);
int na_dcmi_super_pod(int card, int device, int logic, struct dcmi_spod_info *info);
int na_dcmi_hbm_info(int card, int device, int logic, struct dcmi_hbm_info *info);
/* Address of the RoCE port (native-abi 11.4). ip_type 0 IPv4, 1 IPv6. v1 only. */
int na_dcmi_roce_address(int card, int device, int ip_type, struct dcmi_ip_addr *address);
/* v1 only. text gets the first text_bytes - 1 bytes at most. */
int na_dcmi_product_type(int card, int device, char *text, unsigned int text_bytes);
int na_dcmi_health(int card, int device, int logic, unsigned int *health);
/* Result of the gateway detection, 0..8. May hang for long after a card drop (native-abi 6.2). */
int na_dcmi_network_health(int card, int device, int logic, int *result);
int na_dcmi_error_codes(int card, int device, int logic, int *count, unsigned int *codes, unsigned int room);

/* Wildcard subscription with an all-zero filter. The handler ends in the ring. Once per process. */
int na_dcmi_subscribe(void);
/* The eventfd of the ring; -1 before na_dcmi_open. */
int na_dcmi_event_fd(void);
unsigned int na_dcmi_drain(struct na_event *events, unsigned int room, uint64_t *dropped);

#endif
