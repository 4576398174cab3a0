/*
 * A client of the DCMI ABI, written against the headers alone. It walks the start-up order of a device plugin
 * (native-abi 2.3, 5.4, 7, 18.1 "Order at start", 19) on the product named in argv[1], checks every answer, then
 * subscribes and waits for one event, then for the end of its input. Prints what it saw; exit code 0 when all was as expected, 1 when not.
 *
 * Usage: plugin_client PROFILE [wait_s]
 */
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "na_abi_sizes.h"

#define UNTOUCHED 0x5A5A5A5Au

/* What section 19 and the profiles of docs/mock.md promise; the codes are the return codes of the calls. */
struct product {
    const char *profile;
    int v2;
    int cards;
    int devices_per_card;
    const char *chip_name;
    unsigned int board_id;
    int main_board;
    int subscription;
    int gateway;
    int address;
    int super_pod;
    int hccs_ping;
    int product_type;
    int affinity;
    int hbm;
    int boot;
};

#define NO DCMI_ERR_CODE_NOT_SUPPORT

static const struct product products[] = {
    /* profile  v2 cards dev name       board main subs gate addr spod ping type aff  hbm  boot */
    { "310",     0, 1,  4, "310",       0x00, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO },
    { "310p",    0, 2,  2, "310P3",     0x00, NO, NO, NO, NO, NO, NO, 0,  NO, NO, 0 },
    { "910a",    0, 8,  1, "910A",      0x00, NO, 0,  0,  0,  NO, NO, NO, NO, 0,  0 },
    { "a2",      0, 8,  1, "910B4",     0x30, 0,  0,  0,  0,  NO, NO, NO, 0,  0,  0 },
    { "a2-card", 0, 2,  1, "910B4",     0x28, 0,  0,  NO, NO, NO, NO, NO, 0,  0,  0 },
    { "a3",      0, 8,  2, "910_9391",  0xB0, 0,  0,  0,  0,  0,  0,  NO, NO, 0,  0 },
    { "950",     1, 8,  1, "Ascend950", 0x00, 0,  0,  0,  NO, 0,  NO, NO, 0,  0,  0 },
};

static int failures;
static sem_t event_came;
static struct dcmi_event last_event;

static void expect(const char *what, long long seen, long long wanted)
{
    if (seen == wanted)
        return;
    failures++;
    printf("FAILED %s: got %lld, expected %lld\n", what, seen, wanted);
}

static void on_event(struct dcmi_event *event)
{
    last_event = *event;
    sem_post(&event_came);
}

static void check_before_init(const struct product *product)
{
    int ids[DCMI_MAX_CARD_NUM];
    int count;
    unsigned int phy_id;

    expect("card list before init", dcmi_get_card_list(&count, ids, DCMI_MAX_CARD_NUM),
        product->v2 ? NO : DCMI_ERR_CODE_INNER_ERR);
    expect("physical id before init", dcmi_get_device_phyid_from_logicid(0, &phy_id),
        product->v2 ? NO : DCMI_ERR_CODE_NOT_REDAY);
    expect("v2 list before init", dcmiv2_get_device_list(ids, &count, DCMI_MAX_CARD_NUM),
        product->v2 ? DCMI_ERR_CODE_INNER_ERR : NO);
}

static void check_init(const struct product *product)
{
    for (int round = 0; round < 2; round++) { /* a plugin initialises twice (18.1) */
        expect("dcmi_init", dcmi_init(), product->v2 ? NO : DCMI_OK);
        expect("dcmiv2_init", dcmiv2_init(), product->v2 ? DCMI_OK : NO);
    }
}

static void check_chip_info(const struct product *product, int code, const struct dcmi_chip_info_v2 *info)
{
    expect("chip info", code, 0);
    expect("chip name", strncmp((const char *)info->chip_name, product->chip_name, sizeof info->chip_name), 0);
    expect("chip type", strncmp((const char *)info->chip_type, "Ascend", sizeof info->chip_type), 0);
    expect("core count given", info->aicore_cnt > 0, 1);
}

static void check_code_list(int code, int count, const unsigned int *codes)
{
    expect("error codes", code, 0);
    expect("error count", count, 0);
    expect("entries beyond the count", codes[0], UNTOUCHED);
}

static void check_v1_chip(const struct product *product, int card, int device, int logic_id)
{
    struct dcmi_chip_info_v2 info;
    struct dcmi_chip_info old_info;
    struct dcmi_board_info board;
    struct dcmi_ip_addr ip = { .ip_type = 0 };
    struct dcmi_ip_addr mask = { .ip_type = 0 };
    struct dcmi_spod_info pod;
    struct dcmi_soc_total_resource total;
    struct dcmi_soc_free_resource unused;
    struct dcmi_hbm_info hbm;
    struct dcmi_proc_mem_info processes[DCMI_MAX_PROC_NUM];
    unsigned int codes[DCMI_MAX_ERROR_CODES];
    unsigned int size;
    unsigned int word = 0;
    char text[65];
    int value = -1;
    int other = -1;

    expect("physical id", dcmi_get_device_phyid_from_logicid((unsigned int)logic_id, &word), 0);
    expect("logic id of physical id", dcmi_get_device_logicid_from_phyid(word, &word), 0);
    expect("logic id", word, logic_id);
    expect("place of logic id", dcmi_get_card_id_device_id_from_logicid(&value, &other, (unsigned int)logic_id), 0);
    expect("card of logic id", value, card);
    expect("device of logic id", other, device);
    expect("device type", dcmi_get_device_type(card, device, &value), 0);
    expect("is an NPU", value, 0);
    check_chip_info(product, dcmi_get_device_chip_info_v2(card, device, &info), &info);
    expect("old chip info", dcmi_get_device_chip_info(card, device, &old_info), 0);
    expect("both chip infos agree", memcmp(&old_info, &info, sizeof old_info), 0);
    expect("board info", dcmi_get_device_board_info(card, device, &board), 0);
    expect("board id", board.board_id, product->board_id);
    expect("main board id", dcmi_get_mainboard_id(card, device, &word), product->main_board);
    expect("product type", dcmi_get_product_type(card, device, text, sizeof text), product->product_type);
    expect("address", dcmi_get_device_ip(card, device, 1, 0, &ip, &mask), product->address);
    if (product->address == 0)
        expect("address is IPv4", ip.ip_type == 0 && ip.u_addr.ip4[0] == 192 && mask.u_addr.ip4[0] == 255, 1);
    expect("affinity", dcmi_get_affinity_cpu_info_by_device_id(card, device, text, &value), product->affinity);
    if (product->affinity == 0)
        expect("affinity length", value, (long long)strlen(text));
    size = sizeof pod;
    expect("super-pod info", dcmi_get_device_info(card, device, 12, 1, &pod, &size), product->super_pod);
    if (product->super_pod == 0)
        expect("die in the SDID", pod.sdid >> 16 & 3, device);
    size = sizeof total;
    expect("total resources", dcmi_get_device_info(card, device, 52, 1, &total, &size),
        strcmp(product->profile, "310") == 0 ? NO : 0);
    size = sizeof unused;
    expect("free resources", dcmi_get_device_info(card, device, 52, 2, &unused, &size),
        strcmp(product->profile, "310") == 0 ? NO : 0);
    expect("HBM info", dcmi_get_device_hbm_info(card, device, &hbm), product->hbm);
    expect("boot status", dcmi_get_device_boot_status(card, device, &value), product->boot);
    if (product->boot == 0)
        expect("management service runs", value, 16);
    expect("network health", dcmi_get_device_network_health(card, device, &value), product->gateway);
    if (product->gateway == 0)
        expect("gateway", value, 0);
    expect("processes", dcmi_get_device_resource_info(card, device, processes, &value), 0);
    expect("process count", value, 0);
    expect("health", dcmi_get_device_health(card, device, &word), 0);
    expect("healthy", word, 0);
    for (int i = 0; i < DCMI_MAX_ERROR_CODES; i++)
        codes[i] = UNTOUCHED;
    check_code_list(dcmi_get_device_errorcode_v2(card, device, &value, codes, DCMI_MAX_ERROR_CODES), value, codes);
}

static void walk_v1(const struct product *product)
{
    int cards[DCMI_MAX_CARD_NUM];
    int count = 0;
    int devices = 0;
    int logic_id = -1;
    int chips = 0;
    unsigned int state;
    char version[33];

    expect("card list too short", dcmi_get_card_list(&count, cards, product->cards - 1),
        DCMI_ERR_CODE_INVALID_PARAMETER);
    expect("card list", dcmi_get_card_list(&count, cards, DCMI_MAX_CARD_NUM), 0);
    expect("cards", count, product->cards);
    expect("version", dcmi_get_dcmi_version(version, sizeof version), 0);
    expect("version is text", memchr(version, 0, sizeof version) != NULL, 1);
    printf("profile %s, DCMI %s, %d cards\n", product->profile, version, count);
    for (int i = 0; i < count; i++) {
        expect("devices of card", dcmi_get_device_num_in_card(cards[i], &devices), 0);
        expect("devices", devices, product->devices_per_card);
        for (int device = 0; device < devices; device++) {
            expect("logic id", dcmi_get_device_logic_id(&logic_id, cards[i], device), 0);
            check_v1_chip(product, cards[i], device, logic_id);
            chips++;
        }
    }
    expect("chip that is not there", dcmi_get_device_logic_id(&logic_id, 60, 0), DCMI_ERR_CODE_DEVICE_NOT_EXIST);
    expect("pingmesh state", dcmi_get_hccsping_mesh_state(0, 0, 0, 0, &state), product->hccs_ping);
    expect("NULL", dcmi_get_device_health(0, 0, NULL), DCMI_ERR_CODE_INVALID_PARAMETER);
    printf("%d chips of %s walked\n", chips, product->chip_name);
}

static void check_v2_chip(const struct product *product, int dev_id)
{
    struct dcmi_chip_info_v2 info;
    struct dcmi_board_info board;
    struct dcmi_spod_info pod;
    struct dcmi_hbm_info hbm;
    struct dcmi_die_id die;
    unsigned int codes[DCMI_MAX_ERROR_CODES];
    unsigned int size = sizeof pod;
    unsigned int word = 0;
    char text[33];
    int value = -1;

    expect("physical id", dcmiv2_get_chip_phy_id_by_dev_id((unsigned int)dev_id, &word), 0);
    expect("logic id of physical id", dcmiv2_get_dev_id_by_chip_phy_id(word, &word), 0);
    expect("logic id", word, dev_id);
    expect("device type", dcmiv2_get_device_type(dev_id, &value), 0);
    check_chip_info(product, dcmiv2_get_device_chip_info(dev_id, &info), &info);
    expect("board info", dcmiv2_get_device_board_info(dev_id, &board), 0);
    expect("main board id", dcmiv2_get_mainboard_id(dev_id, &word), product->main_board);
    expect("super-pod info", dcmiv2_get_device_info(dev_id, 12, 1, &pod, &size), product->super_pod);
    expect("die id", dcmiv2_get_device_die_id(dev_id, 2, &die), 0);
    expect("affinity", dcmiv2_get_affinity_cpu_info_by_dev_id(dev_id, text, &value), product->affinity);
    expect("HBM info", dcmiv2_get_device_hbm_info(dev_id, &hbm), product->hbm);
    expect("boot status", dcmiv2_get_device_boot_status(dev_id, &value), product->boot);
    expect("management service runs", value, 16);
    expect("network health", dcmiv2_get_device_network_health(dev_id, &value), product->gateway);
    expect("health", dcmiv2_get_device_health(dev_id, &word), 0);
    expect("healthy", word, 0);
    expect("health by the old name", dcmi_get_device_health(dev_id, 0, &word), NO);
    for (int i = 0; i < DCMI_MAX_ERROR_CODES; i++)
        codes[i] = UNTOUCHED;
    check_code_list(dcmiv2_get_device_error_code_list(dev_id, &value, codes, DCMI_MAX_ERROR_CODES), value, codes);
}

static void walk_v2(const struct product *product)
{
    int chips[DCMI_MAX_CARD_NUM];
    int count = 0;
    int all = 0;

    expect("device list", dcmiv2_get_device_list(chips, &count, DCMI_MAX_CARD_NUM), 0);
    expect("device count", dcmiv2_get_all_device_count(&all), 0);
    expect("all devices are listed", count, all);
    expect("devices", count, product->cards * product->devices_per_card);
    for (int i = 0; i < count; i++)
        check_v2_chip(product, chips[i]);
    printf("profile %s, %d chips of %s walked\n", product->profile, count, product->chip_name);
}

static int subscribe(const struct product *product, dcmi_fault_event_handler handler)
{
    struct dcmi_event_filter filter;

    memset(&filter, 0, sizeof filter);
    return product->v2 ? dcmiv2_subscribe_fault_event(-1, filter, handler)
                       : dcmi_subscribe_fault_event(-1, -1, filter, handler);
}

static void wait_for_event(long wait_s)
{
    const struct dcmi_dms_fault_event *event = &last_event.event_t.dms_event;
    struct timespec limit;

    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += wait_s;
    if (sem_timedwait(&event_came, &limit) != 0) {
        expect("an event", 0, 1);
        return;
    }
    expect("event type", last_event.type, 0);
    printf("event %08X chip %u severity %u assertion %u time %llu name '%.256s'\n", event->event_id, event->deviceid,
        event->severity, event->assertion, event->alarm_raised_time, event->event_name);
}

int main(int argc, char **argv)
{
    const struct product *product = NULL;
    long wait_s = argc > 2 ? atol(argv[2]) : 30;

    for (size_t i = 0; argc > 1 && i < sizeof products / sizeof *products; i++) {
        if (strcmp(argv[1], products[i].profile) == 0)
            product = &products[i];
    }
    if (!product) {
        fprintf(stderr, "usage: plugin_client PROFILE [wait_s]\n");
        return 2;
    }
    sem_init(&event_came, 0, 0);
    check_before_init(product);
    check_init(product);
    if (product->v2)
        walk_v2(product);
    else
        walk_v1(product);
    expect("subscribing without a handler", subscribe(product, NULL), DCMI_ERR_CODE_INVALID_PARAMETER);
    expect("subscribe", subscribe(product, on_event), product->subscription);
    if (product->subscription == 0) {
        expect("second subscribe", subscribe(product, on_event), DCMI_ERR_CODE_RESOURCE_OCCUPIED);
        printf("subscribed\n");
        fflush(stdout);
        wait_for_event(wait_s);
        while (getchar() != EOF)
            ; /* who injects the event wants to see that the handler returned before we end */
    }
    printf("%d failures\n", failures);
    return failures ? 1 : 0;
}
