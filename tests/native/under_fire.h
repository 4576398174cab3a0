/*
 * What the stress programs of the shims share: the threads of a library call the handler 80,000 times while one
 * reader drains. Every event is either read once, in the order of its thread, or counted as dropped; then once more
 * without a reader, so that the ring must overflow.
 */
#ifndef NA_UNDER_FIRE_H
#define NA_UNDER_FIRE_H

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPECTED 80000u
#define BATCH 256u /* events of one drain */

/* One shim. take: drain once and check each event; the number of them. meanwhile: NULL, or the body of a further
 * thread, which makes calls until `finished`. */
struct under_fire {
    int (*subscribe)(void);
    int (*event_fd)(void);
    unsigned int (*take)(uint64_t *dropped);
    void *(*meanwhile)(void *unused);
};

static atomic_int finished;
static unsigned int last[5];

/* An event of the burst library: thread 1..4 in the first byte of its id, a running number in the others. `well`: the
 * rest of it is as it was sent. */
static inline void check_event(unsigned int id, unsigned int thread, int well)
{
    const unsigned int from = id >> 24, number = (id & 0xFFFFFFu) + 1;

    if (from < 1 || from > 4 || thread != from || number <= last[from] || !well) {
        fprintf(stderr, "event out of order or damaged: %08x\n", id);
        exit(1);
    }
    last[from] = number;
}

static void *subscribe(void *shim)
{
    if (((const struct under_fire *)shim)->subscribe() != 0) {
        fprintf(stderr, "subscribe failed\n");
        exit(1);
    }
    atomic_store(&finished, 1);
    return NULL;
}

static unsigned long run(struct under_fire *shim, int read_while_bursting, uint64_t dropped_before, uint64_t *dropped)
{
    struct pollfd wake = { .fd = shim->event_fd(), .events = POLLIN };
    pthread_t burst, other;
    unsigned long read_total = 0;
    unsigned int n;
    uint64_t counter;

    memset(last, 0, sizeof last);
    atomic_store(&finished, 0);
    if (pthread_create(&burst, NULL, subscribe, shim) != 0)
        exit(1);
    if (shim->meanwhile && pthread_create(&other, NULL, shim->meanwhile, NULL) != 0)
        exit(1);
    while (read_while_bursting && !atomic_load(&finished)) {
        if (poll(&wake, 1, 10) == 1 && read(wake.fd, &counter, sizeof counter) < 0)
            exit(1);
        read_total += shim->take(dropped);
    }
    pthread_join(burst, NULL);
    if (shim->meanwhile)
        pthread_join(other, NULL);
    while ((n = shim->take(dropped)) > 0)
        read_total += n;
    if (read_total + (*dropped - dropped_before) != EXPECTED) {
        fprintf(stderr, "%lu read and %lu dropped are not %u\n", read_total,
                (unsigned long)(*dropped - dropped_before), EXPECTED);
        exit(1);
    }
    return read_total;
}

/* Both runs; the exit code of the program. */
static inline int burst_twice(struct under_fire *shim)
{
    uint64_t first = 0, second = 0;
    const unsigned long with_reader = run(shim, 1, 0, &first);
    const unsigned long without = run(shim, 0, first, &second);

    if (second == first) {
        fprintf(stderr, "the ring did not overflow\n");
        return 1;
    }
    printf("with reader: %lu read, %lu dropped; without: %lu read, %lu dropped\n", with_reader,
           (unsigned long)first, without, (unsigned long)(second - first));
    return 0;
}

#endif
