#include "lq_shim.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "na_abi_sizes.h"
#include "ring.h"

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

static void *library;
static char load_error[512];
static struct na_ring ring;
static int ring_ready;

#define CALL(name, ...) (api.name ? api.name(__VA_ARGS__) : NA_NO_SYMBOL)

/* Runs on the library's thread, whose stack is small: nothing but the copy. */
static void on_event(struct LqDcmiEvent *event)
{
    struct na_switch_event item;
    struct timespec mono, wall;

    clock_gettime(CLOCK_MONOTONIC, &mono);
    clock_gettime(CLOCK_REALTIME, &wall);
    memset(&item, 0, sizeof item);
    item.mono_ns = (uint64_t)mono.tv_sec * 1000000000u + (uint64_t)mono.tv_nsec;
    item.wall_ms = (int64_t)wall.tv_sec * 1000 + wall.tv_nsec / 1000000;
    item.event = *event; /* the library reuses the memory as soon as we return */
    na_ring_push(&ring, &item);
}

int na_lq_open(const char *path)
{
    const char *reason;

    if (library != NULL)
        return 0;
    if (!ring_ready) {
        if (na_ring_init(&ring, sizeof(struct na_switch_event), RING_CAPACITY) != 0) {
            snprintf(load_error, sizeof load_error, "no memory or no eventfd for the event ring");
            return NA_NOT_LOADED;
        }
        ring_ready = 1;
    }
    library = dlopen(path, RTLD_LAZY | RTLD_GLOBAL);
    if (library == NULL) {
        reason = dlerror();
        snprintf(load_error, sizeof load_error, "%s", reason ? reason : "the loader gave no reason");
        return NA_NOT_LOADED;
    }
#define RESOLVE(name) *(void **)&api.name = dlsym(library, #name);
    FUNCTIONS(RESOLVE)
#undef RESOLVE
    return 0;
}

const char *na_lq_load_error(void)
{
    return load_error;
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
    return ring_ready ? ring.wake_fd : -1;
}

unsigned int na_lq_drain(struct na_switch_event *events, unsigned int room, uint64_t *dropped)
{
    *dropped = 0;
    return ring_ready ? na_ring_drain(&ring, events, room, dropped) : 0;
}
