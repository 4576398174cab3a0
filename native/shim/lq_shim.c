#include "lq_shim.h"

#include <dlfcn.h>
#include <string.h>

#include "na_abi_sizes.h"
#include "shim_common.h"

#define RING_CAPACITY 4096 /* four times the largest storm: 7 chips x 48 ports x 3 codes */

/* Every function that is looked up, by its exact name; the types come from our ABI header. */
#define FUNCTIONS(X)                                                                                        \
    X(lq_dcmi_init)                                                                                         \
    X(lq_dcmi_subscribe_fault_event)                                                                        \
    X(lq_dcmi_get_fault_info)

static struct {
#define POINTER(name) __typeof__(name) *name;
    FUNCTIONS(POINTER)
#undef POINTER
} api;

static struct na_shim shim;

#define CALL(name, ...) (api.name ? api.name(__VA_ARGS__) : NA_NO_SYMBOL)

/* Runs on the library's thread, whose stack is small: nothing but the copy. */
static void on_event(struct LqDcmiEvent *event)
{
    struct na_switch_event item;

    memset(&item, 0, sizeof item);
    na_shim_stamp(&item.mono_ns, &item.wall_ms);
    item.event = *event; /* the library reuses the memory as soon as we return */
    na_ring_push(&shim.ring, &item);
}

int na_lq_open(const char *path)
{
    if (na_shim_open(&shim, path, sizeof(struct na_switch_event), RING_CAPACITY) != 0)
        return NA_NOT_LOADED;
#define RESOLVE(name) *(void **)&api.name = dlsym(shim.library, #name);
    FUNCTIONS(RESOLVE)
#undef RESOLVE
    return 0;
}

const char *na_lq_load_error(void)
{
    return shim.load_error;
}

const char *na_lq_missing(void)
{
#define ABSENT(name)                                                                                        \
    if (!api.name)                                                                                          \
        return #name;
    FUNCTIONS(ABSENT)
#undef ABSENT
    return NULL;
}

int na_lq_init(void)
{
    return CALL(lq_dcmi_init);
}

int na_lq_subscribe(void)
{
    struct lq_dcmi_event_filter everything;

    memset(&everything, 0, sizeof everything);
    return CALL(lq_dcmi_subscribe_fault_event, everything, on_event);
}

int na_lq_faults(unsigned int room, unsigned int *count, struct LqDcmiEvent *list)
{
    return CALL(lq_dcmi_get_fault_info, room, count, list);
}

int na_lq_event_fd(void)
{
    return na_shim_event_fd(&shim);
}

unsigned int na_lq_drain(struct na_switch_event *events, unsigned int room, uint64_t *dropped)
{
    return na_shim_drain(&shim, events, room, dropped);
}
