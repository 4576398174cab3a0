/*
 * The calls of the switch library's shim and the event that it hands out, for C and for Python alike: lq_shim.h
 * includes this for the compiler, gate.cdef.h for cffi. So it has no includes of its own and nothing but declarations.
 */
#ifndef NA_LQ_CALLS_H
#define NA_LQ_CALLS_H

/* One event with the time at which the callback was entered. */
struct na_switch_event {
    uint64_t mono_ns;
    int64_t wall_ms;
    struct LqDcmiEvent event;
};

/* 0 or NA_NOT_LOADED with the loader's sentence in na_lq_load_error(). The library is never unloaded again: a
 * callback may be running in it (lingqu-switch-faults 2.1). */
int na_lq_open(const char *path);
const char *na_lq_load_error(void);

/* The first function that we need and the loaded library lacks; NULL when it has all of them. */
const char *na_lq_missing(void);

int na_lq_init(void);

/* Subscription with an all-zero filter, which is every event. The handler ends in the ring. */
int na_lq_subscribe(void);

/* All faults that are present, at most room of them; *count is what the library says, unchecked. */
int na_lq_faults(unsigned int room, unsigned int *count, struct LqDcmiEvent *list);

/* The eventfd of the ring; -1 before na_lq_open. */
int na_lq_event_fd(void);
unsigned int na_lq_drain(struct na_switch_event *events, unsigned int room, uint64_t *dropped);

#endif
