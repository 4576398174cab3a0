/*
 * The shim under fire: four threads of a library call the handler 80,000 times while one reader drains.
 * Checks that every event is either read once, in the order of its thread, or counted as dropped; then once more
 * without a reader, so that the ring must overflow. Run under AddressSanitizer and ThreadSanitizer.
 */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "dcmi_shim.h"

#define EXPECTED 80000u

static atomic_int finished;

static void *subscribe(void *unused)
{
    (void)unused;
    if (na_dcmi_subscribe() != 0) {
        fprintf(stderr, "subscribe failed\n");
        exit(1);
    }
    atomic_store(&finished, 1);
    return NULL;
}

static unsigned int last[5];

static void take(const struct na_event *events, unsigned int n)
{
    for (unsigned int i = 0; i < n; i++) {
        const struct dcmi_dms_fault_event *e = &events[i].event.event_t.dms_event;
        const unsigned int from = e->event_id >> 24, number = (e->event_id & 0xFFFFFFu) + 1;

        if (from < 1 || from > 4 || e->deviceid != from || number <= last[from] || events[i].mono_ns == 0) {
            fprintf(stderr, "event out of order or damaged: %08x\n", e->event_id);
            exit(1);
        }
        last[from] = number;
    }
}

static unsigned long run(int read_while_bursting, uint64_t dropped_before, uint64_t *dropped)
{
    static struct na_event events[256];
    struct pollfd wake = { .fd = na_dcmi_event_fd(), .events = POLLIN };
    pthread_t thread;
    unsigned long read_total = 0;
    unsigned int n;
    uint64_t counter;

    for (int i = 0; i < 5; i++)
        last[i] = 0;
    atomic_store(&finished, 0);
    if (pthread_create(&thread, NULL, subscribe, NULL) != 0)
        exit(1);
    while (read_while_bursting && !atomic_load(&finished)) {
        if (poll(&wake, 1, 10) == 1 && read(wake.fd, &counter, sizeof counter) < 0)
            exit(1);
        n = na_dcmi_drain(events, 256, dropped);
        take(events, n);
        read_total += n;
    }
    pthread_join(thread, NULL);
    while ((n = na_dcmi_drain(events, 256, dropped)) > 0) {
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

int main(int argc, char **argv)
{
    uint64_t first = 0, second = 0;
    unsigned long n, with_reader;

    if (argc != 2 || na_dcmi_open("/nowhere/libdcmi.so") != NA_NOT_LOADED || na_dcmi_open(argv[1]) != 0) {
        fprintf(stderr, "usage: shim_stress LIBRARY (%s)\n", na_dcmi_load_error());
        return 1;
    }
    if (na_dcmi_init(2) != NA_NO_SYMBOL || na_dcmi_init(1) != 0 || na_dcmi_has("dcmi_get_card_list")) {
        fprintf(stderr, "look-up by generation is wrong\n");
        return 1;
    }
    if (na_dcmi_physical_id(0, &(unsigned int){ 0 }) != NA_NO_SYMBOL) {
        fprintf(stderr, "a missing symbol must be %d\n", NA_NO_SYMBOL);
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
