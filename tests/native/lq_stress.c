/*
 * The shim of the switch library under fire: four threads with small stacks call the handler 80,000 times while one
 * reader drains and another thread queries. Every event is either read once, in the order of its thread, or counted
 * as dropped; then once more without a reader, so that the ring must overflow. Run under the sanitizers.
 */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lq_shim.h"

#define EXPECTED 80000u
#define ROOM 128u

static atomic_int finished;
static unsigned int last[5];

static void *subscribe(void *unused)
{
    (void)unused;
    if (na_lq_subscribe() != 0) {
        fprintf(stderr, "subscribe failed\n");
        exit(1);
    }
    atomic_store(&finished, 1);
    return NULL;
}

static void *query(void *unused)
{
    (void)unused;
    do {
        struct LqDcmiEvent list[ROOM];
        unsigned int count = 0;

        if (na_lq_faults(ROOM, &count, list) != 0 || count != ROOM || list[ROOM - 1].eventType != ROOM - 1) {
            fprintf(stderr, "query failed\n");
            exit(1);
        }
    } while (!atomic_load(&finished));
    return NULL;
}

static void take(const struct na_switch_event *events, unsigned int n)
{
    for (unsigned int i = 0; i < n; i++) {
        const struct LqDcmiEvent *e = &events[i].event;
        const unsigned int from = e->eventType >> 24, number = (e->eventType & 0xFFFFFFu) + 1;

        if (from < 1 || from > 4 || e->switchChipid != from || e->switchPortid != LQ_DCMI_WHOLE_CHIP_PORT
            || number <= last[from] || events[i].mono_ns == 0 || events[i].wall_ms == 0) {
            fprintf(stderr, "event out of order or damaged: %08x\n", e->eventType);
            exit(1);
        }
        last[from] = number;
    }
}

static unsigned long run(int read_while_bursting, uint64_t dropped_before, uint64_t *dropped)
{
    static struct na_switch_event events[256];
    struct pollfd wake = { .fd = na_lq_event_fd(), .events = POLLIN };
    pthread_t threads[2];
    unsigned long read_total = 0;
    unsigned int n;
    uint64_t counter;

    memset(last, 0, sizeof last);
    atomic_store(&finished, 0);
    if (pthread_create(&threads[0], NULL, subscribe, NULL) != 0 || pthread_create(&threads[1], NULL, query, NULL) != 0)
        exit(1);
    while (read_while_bursting && !atomic_load(&finished)) {
        if (poll(&wake, 1, 10) == 1 && read(wake.fd, &counter, sizeof counter) < 0)
            exit(1);
        n = na_lq_drain(events, 256, dropped);
        take(events, n);
        read_total += n;
    }
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    while ((n = na_lq_drain(events, 256, dropped)) > 0) {
        take(events, n);
        read_total += n;
    }
    if (read_total + (*dropped - dropped_before) != EXPECTED) {
        fprintf(stderr, "%lu read and %lu dropped are not %u\n", read_total,
                (unsigned long)(*dropped - dropped_before), EXPECTED);
        exit(1);
    }
    return read_total;
}

/* A library without the query: named, and its call says so. */
static int run_incomplete(const char *path)
{
    unsigned int count = 7;
    struct LqDcmiEvent list[1];
    const char *missing;

    if (na_lq_open(path) != 0)
        return 1;
    missing = na_lq_missing();
    if (!missing || strcmp(missing, "lq_dcmi_get_fault_info") != 0)
        return 1;
    return na_lq_faults(1, &count, list) != NA_NO_SYMBOL || count != 7;
}

int main(int argc, char **argv)
{
    uint64_t first = 0, second = 0;
    unsigned long n, with_reader;

    if (argc == 3 && strcmp(argv[1], "incomplete") == 0)
        return run_incomplete(argv[2]);
    if (argc != 2 || na_lq_event_fd() != -1 || na_lq_open("/nowhere/liblingqu-dcmi.so") != NA_NOT_LOADED
        || !*na_lq_load_error() || na_lq_init() != NA_NO_SYMBOL || na_lq_open(argv[1]) != 0) {
        fprintf(stderr, "usage: lq_stress [incomplete] LIBRARY (%s)\n", na_lq_load_error());
        return 1;
    }
    if (na_lq_missing() != NULL || na_lq_init() != 0) {
        fprintf(stderr, "look-up is wrong\n");
        return 1;
    }
    with_reader = run(1, 0, &first);
    n = run(0, first, &second);
    if (second == first) {
        fprintf(stderr, "the ring did not overflow\n");
        return 1;
    }
    printf("with reader: %lu read, %lu dropped; without: %lu read, %lu dropped\n", with_reader,
           (unsigned long)first, n, (unsigned long)(second - first));
    return 0;
}
