/*
 * The shim of the switch library under fire, see under_fire.h; meanwhile another thread queries. The threads of the
 * library have small stacks. Run under the sanitizers.
 */
#include "under_fire.h"

#include "lq_shim.h"

#define ROOM 128u

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

static unsigned int take(uint64_t *dropped)
{
    static struct na_switch_event events[BATCH];
    const unsigned int n = na_lq_drain(events, BATCH, dropped);

    for (unsigned int i = 0; i < n; i++) {
        const struct LqDcmiEvent *e = &events[i].event;

        check_event(e->eventType, e->switchChipid,
                    e->switchPortid == LQ_DCMI_WHOLE_CHIP_PORT && events[i].mono_ns != 0 && events[i].wall_ms != 0);
    }
    return n;
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
    struct under_fire shim = { na_lq_subscribe, na_lq_event_fd, take, query };

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
    return burst_twice(&shim);
}
