#include "shim_common.h"

#include <dlfcn.h>
#include <stdio.h>
#include <time.h>

int na_shim_open(struct na_shim *shim, const char *path, size_t item_bytes, unsigned int capacity)
{
    const char *reason;

    if (shim->library != NULL)
        return 0;
    if (!shim->ring_ready) {
        if (na_ring_init(&shim->ring, item_bytes, capacity) != 0) {
            snprintf(shim->load_error, sizeof shim->load_error, "no memory or no eventfd for the event ring");
            return NA_NOT_LOADED;
        }
        shim->ring_ready = 1;
    }
    shim->library = dlopen(path, RTLD_LAZY | RTLD_GLOBAL);
    if (shim->library == NULL) {
        reason = dlerror();
        snprintf(shim->load_error, sizeof shim->load_error, "%s", reason ? reason : "the loader gave no reason");
        return NA_NOT_LOADED;
    }
    return 0;
}

void na_shim_stamp(uint64_t *mono_ns, int64_t *wall_ms)
{
    struct timespec mono, wall;

    clock_gettime(CLOCK_MONOTONIC, &mono);
    clock_gettime(CLOCK_REALTIME, &wall);
    *mono_ns = (uint64_t)mono.tv_sec * 1000000000u + (uint64_t)mono.tv_nsec;
    *wall_ms = (int64_t)wall.tv_sec * 1000 + wall.tv_nsec / 1000000;
}

int na_shim_event_fd(const struct na_shim *shim)
{
    return shim->ring_ready ? shim->ring.wake_fd : -1;
}

unsigned int na_shim_drain(struct na_shim *shim, void *items, unsigned int room, uint64_t *dropped)
{
    *dropped = 0;
    return shim->ring_ready ? na_ring_drain(&shim->ring, items, room, dropped) : 0;
}
