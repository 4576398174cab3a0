/* The shim of DCMI under fire, see under_fire.h. Run under AddressSanitizer and ThreadSanitizer. */
#include "under_fire.h"

#include "dcmi_shim.h"

static unsigned int take(uint64_t *dropped)
{
    static struct na_event events[BATCH];
    const unsigned int n = na_dcmi_drain(events, BATCH, dropped);

    for (unsigned int i = 0; i < n; i++) {
        const struct dcmi_dms_fault_event *e = &events[i].event.event_t.dms_event;

        check_event(e->event_id, e->deviceid, events[i].mono_ns != 0);
    }
    return n;
}

int main(int argc, char **argv)
{
    struct under_fire shim = { .subscribe = na_dcmi_subscribe, .event_fd = na_dcmi_event_fd, .take = take };

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
    return burst_twice(&shim);
}
