/* What Python sees of C. Run through the preprocessor at build time, so the ABI structs come from the one header. */
#include "na_dcmi_types.h"

/* Sizes only, until the switch source arrives. */
struct LqDcmiEvent { ...; };
struct lq_dcmi_event_filter { ...; };

struct na_event { uint64_t mono_ns; int64_t wall_ms; struct dcmi_event event; };

int na_dcmi_open(const char *path);
const char *na_dcmi_load_error(void);
int na_dcmi_has(const char *symbol);
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
int na_dcmi_health(int card, int device, int logic, unsigned int *health);
int na_dcmi_network_health(int card, int device, int logic, int *result);
int na_dcmi_error_codes(int card, int device, int logic, int *count, unsigned int *codes, unsigned int room);
int na_dcmi_subscribe(void);
int na_dcmi_event_fd(void);
unsigned int na_dcmi_drain(struct na_event *events, unsigned int room, uint64_t *dropped);
