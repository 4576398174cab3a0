/*
 * What the shims of all vendor libraries have in common: one library that is loaded once and for good, and the ring
 * in which its events end. Each shim has one of these and the functions that it looks up.
 */
#ifndef NA_SHIM_COMMON_H
#define NA_SHIM_COMMON_H

#include <stddef.h>
#include <stdint.h>

#include "ring.h"
#include "shim_codes.h"

/* All zero at first. */
struct na_shim {
    void *library; /* NULL until it is loaded */
    char load_error[512];
    struct na_ring ring;
    int ring_ready;
};

/* Make the ring, then load the library: 0, or NA_NOT_LOADED with a sentence in load_error. 0 at once when it is
 * loaded already, whatever the path. */
int na_shim_open(struct na_shim *shim, const char *path, size_t item_bytes, unsigned int capacity);

/* The time at which a callback was entered: both clocks. Any thread. */
void na_shim_stamp(uint64_t *mono_ns, int64_t *wall_ms);

/* The eventfd of the ring; -1 before na_shim_open. */
int na_shim_event_fd(const struct na_shim *shim);

/* As na_ring_drain; nothing before na_shim_open. */
unsigned int na_shim_drain(struct na_shim *shim, void *items, unsigned int room, uint64_t *dropped);

#endif
