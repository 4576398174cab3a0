#include "dcmi_shim.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "na_abi_sizes.h"
#include "shim_common.h"

#define RING_CAPACITY 4096 /* four seconds of the largest storm we promise to survive */
#define MAIN_CMD_CHIP_INF 12
#define SUB_CMD_SPOD_INFO 1
#define PORT_ROCE 1
#define PRODUCT_TYPE_BYTES 65 /* what upstream passes (native-abi 4); the vendor asks for 32 at least */

/* Every function that is looked up, by its exact name; the types come from our ABI header. */
#define FUNCTIONS(X)                                                                                        \
    X(dcmi_init)                                                                                            \
    X(dcmi_get_dcmi_version)                                                                                \
    X(dcmi_get_card_list)                                                                                   \
    X(dcmi_get_device_num_in_card)                                                                          \
    X(dcmi_get_device_logic_id)                                                                             \
    X(dcmi_get_device_phyid_from_logicid)                                                                   \
    X(dcmi_get_device_chip_info)                                                                            \
    X(dcmi_get_device_chip_info_v2)                                                                         \
    X(dcmi_get_device_board_info)                                                                           \
    X(dcmi_get_mainboard_id)                                                                                \
    X(dcmi_get_device_info)                                                                                 \
    X(dcmi_get_device_hbm_info)                                                                             \
    X(dcmi_get_device_ip)                                                                                   \
    X(dcmi_get_product_type)                                                                                \
    X(dcmi_get_device_health)                                                                               \
    X(dcmi_get_device_network_health)                                                                       \
    X(dcmi_get_device_errorcode_v2)                                                                         \
    X(dcmi_subscribe_fault_event)                                                                           \
    X(dcmiv2_init)                                                                                          \
    X(dcmiv2_get_dcmi_version)                                                                              \
    X(dcmiv2_get_device_list)                                                                               \
    X(dcmiv2_get_chip_phy_id_by_dev_id)                                                                     \
    X(dcmiv2_get_device_chip_info)                                                                          \
    X(dcmiv2_get_device_board_info)                                                                         \
    X(dcmiv2_get_mainboard_id)                                                                              \
    X(dcmiv2_get_device_info)                                                                               \
    X(dcmiv2_get_device_hbm_info)                                                                           \
    X(dcmiv2_get_device_health)                                                                             \
    X(dcmiv2_get_device_network_health)                                                                     \
    X(dcmiv2_get_device_error_code_list)                                                                    \
    X(dcmiv2_subscribe_fault_event)

static struct {
#define POINTER(name) __typeof__(name) *name;
    FUNCTIONS(POINTER)
#undef POINTER
} api;

static struct na_shim shim;
static int generation = 1;

#define CALL(name, ...) (api.name ? api.name(__VA_ARGS__) : NA_NO_SYMBOL)
/* The same call in the generation that is in use. */
#define EITHER(v1_call, v2_call) (generation == 1 ? (v1_call) : (v2_call))
/* A zeroed answer buffer with room for a driver that writes more than it should. */
#define ROOMY(type)                                                                                         \
    union {                                                                                                 \
        type answer;                                                                                        \
        unsigned char room[sizeof(type) + 512];                                                             \
    }

static void on_fault(struct dcmi_event *event)
{
    struct na_event item;

    memset(&item, 0, sizeof item);
    na_shim_stamp(&item.mono_ns, &item.wall_ms);
    item.event = *event; /* the library reuses the buffer as soon as we return */
    na_ring_push(&shim.ring, &item);
}

int na_dcmi_open(const char *path)
{
    if (na_shim_open(&shim, path, sizeof(struct na_event), RING_CAPACITY) != 0)
        return NA_NOT_LOADED;
#define RESOLVE(name) *(void **)&api.name = dlsym(shim.library, #name);
    FUNCTIONS(RESOLVE)
#undef RESOLVE
    return 0;
}

const char *na_dcmi_load_error(void)
{
    return shim.load_error;
}

int na_dcmi_has(const char *symbol)
{
    return shim.library != NULL && dlsym(shim.library, symbol) != NULL;
}

int na_dcmi_init(int wanted)
{
    int rc = wanted == 1 ? CALL(dcmi_init) : CALL(dcmiv2_init);

    if (rc == 0)
        generation = wanted;
    return rc;
}

int na_dcmi_version(char *text, unsigned int text_bytes)
{
    char answer[256] = { 0 };
    int rc = EITHER(CALL(dcmi_get_dcmi_version, answer, sizeof answer),
                    CALL(dcmiv2_get_dcmi_version, answer, sizeof answer));

    snprintf(text, text_bytes, "%.*s", (int)sizeof answer - 1, answer);
    return rc;
}

int na_dcmi_card_list(int *count, int *ids, int room)
{
    return CALL(dcmi_get_card_list, count, ids, room);
}

int na_dcmi_device_list(int *count, int *ids, int room)
{
    return CALL(dcmiv2_get_device_list, ids, count, room);
}

int na_dcmi_device_num_in_card(int card, int *count)
{
    return CALL(dcmi_get_device_num_in_card, card, count);
}

int na_dcmi_logic_id(int card, int device, int *logic)
{
    return CALL(dcmi_get_device_logic_id, logic, card, device);
}

int na_dcmi_physical_id(int logic, unsigned int *physical)
{
    return EITHER(CALL(dcmi_get_device_phyid_from_logicid, (unsigned int)logic, physical),
                  CALL(dcmiv2_get_chip_phy_id_by_dev_id, (unsigned int)logic, physical));
}

int na_dcmi_chip_info(int card, int device, int logic, struct dcmi_chip_info_v2 *info)
{
    ROOMY(struct dcmi_chip_info_v2) new_form = { .room = { 0 } };
    ROOMY(struct dcmi_chip_info) old_form = { .room = { 0 } };
    int rc;

    memset(info, 0, sizeof *info);
    rc = EITHER(CALL(dcmi_get_device_chip_info_v2, card, device, &new_form.answer),
                CALL(dcmiv2_get_device_chip_info, logic, &new_form.answer));
    if (rc == 0) {
        *info = new_form.answer;
        return 0;
    }
    if (generation != 1)
        return rc;
    rc = CALL(dcmi_get_device_chip_info, card, device, &old_form.answer);
    if (rc == 0)
        memcpy(info, &old_form.answer, sizeof old_form.answer); /* the old form is the beginning of the new one */
    return rc;
}

int na_dcmi_board_info(int card, int device, int logic, struct dcmi_board_info *info)
{
    ROOMY(struct dcmi_board_info) out = { .room = { 0 } };
    int rc = EITHER(CALL(dcmi_get_device_board_info, card, device, &out.answer),
                    CALL(dcmiv2_get_device_board_info, logic, &out.answer));

    *info = out.answer;
    return rc;
}

int na_dcmi_mainboard_id(int card, int device, int logic, unsigned int *id)
{
    return EITHER(CALL(dcmi_get_mainboard_id, card, device, id), CALL(dcmiv2_get_mainboard_id, logic, id));
}

int na_dcmi_super_pod(int card, int device, int logic, struct dcmi_spod_info *info)
{
    ROOMY(struct dcmi_spod_info) out = { .room = { 0 } };
    unsigned int size = sizeof out.answer;
    int rc = EITHER(CALL(dcmi_get_device_info, card, device, MAIN_CMD_CHIP_INF, SUB_CMD_SPOD_INFO, &out, &size),
                    CALL(dcmiv2_get_device_info, logic, MAIN_CMD_CHIP_INF, SUB_CMD_SPOD_INFO, &out, &size));

    *info = out.answer;
    return rc;
}

int na_dcmi_hbm_info(int card, int device, int logic, struct dcmi_hbm_info *info)
{
    ROOMY(struct dcmi_hbm_info) out = { .room = { 0 } };
    int rc = EITHER(CALL(dcmi_get_device_hbm_info, card, device, &out.answer),
                    CALL(dcmiv2_get_device_hbm_info, logic, &out.answer));

    *info = out.answer;
    return rc;
}

int na_dcmi_roce_address(int card, int device, int ip_type, struct dcmi_ip_addr *address)
{
    ROOMY(struct dcmi_ip_addr) ip = { .room = { 0 } };
    ROOMY(struct dcmi_ip_addr) mask = { .room = { 0 } };
    int rc;

    ip.answer.ip_type = ip_type; /* the caller says which family it wants */
    mask.answer.ip_type = ip_type;
    rc = EITHER(CALL(dcmi_get_device_ip, card, device, PORT_ROCE, 0, &ip.answer, &mask.answer), NA_NO_SYMBOL);
    *address = ip.answer;
    return rc;
}

int na_dcmi_product_type(int card, int device, char *text, unsigned int text_bytes)
{
    char answer[PRODUCT_TYPE_BYTES + 512] = { 0 };
    int rc = EITHER(CALL(dcmi_get_product_type, card, device, answer, PRODUCT_TYPE_BYTES), NA_NO_SYMBOL);

    snprintf(text, text_bytes, "%.*s", PRODUCT_TYPE_BYTES, answer);
    return rc;
}

int na_dcmi_health(int card, int device, int logic, unsigned int *health)
{
    return EITHER(CALL(dcmi_get_device_health, card, device, health), CALL(dcmiv2_get_device_health, logic, health));
}

int na_dcmi_network_health(int card, int device, int logic, int *result)
{
    return EITHER(CALL(dcmi_get_device_network_health, card, device, result),
                  CALL(dcmiv2_get_device_network_health, logic, result));
}

int na_dcmi_error_codes(int card, int device, int logic, int *count, unsigned int *codes, unsigned int room)
{
    return EITHER(CALL(dcmi_get_device_errorcode_v2, card, device, count, codes, room),
                  CALL(dcmiv2_get_device_error_code_list, logic, count, codes, room));
}

int na_dcmi_subscribe(void)
{
    struct dcmi_event_filter everything;

    memset(&everything, 0, sizeof everything);
    return EITHER(CALL(dcmi_subscribe_fault_event, -1, -1, everything, on_fault),
                  CALL(dcmiv2_subscribe_fault_event, -1, everything, on_fault));
}

int na_dcmi_event_fd(void)
{
    return na_shim_event_fd(&shim);
}

unsigned int na_dcmi_drain(struct na_event *events, unsigned int room, uint64_t *dropped)
{
    return na_shim_drain(&shim, events, room, dropped);
}
