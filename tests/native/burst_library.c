/* A vendor library for the stress program: subscribe starts threads that call the handler as fast as they can. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "na_dcmi.h"

#define PUBLIC __attribute__((visibility("default")))

static dcmi_fault_event_handler handler;
static atomic_int stop;
static int per_thread = 20000;

PUBLIC int dcmi_init(void) { return 0; }

static void *burst(void *arg)
{
    const unsigned int me = (unsigned int)(size_t)arg;

    for (int i = 0; i < per_thread && !atomic_load(&stop); i++) {
        struct dcmi_event event;

        memset(&event, 0, sizeof event);
        event.event_t.dms_event.event_id = me << 24 | (unsigned int)i;
        event.event_t.dms_event.deviceid = (unsigned short)me;
        event.event_t.dms_event.assertion = 1;
        handler(&event);
        memset(&event, 0xA5, sizeof event);
    }
    return NULL;
}

/* Waits for its threads, so that a sanitizer sees every access before the program ends. */
PUBLIC int dcmi_subscribe_fault_event(int card_id, int device_id, struct dcmi_event_filter filter,
                                      dcmi_fault_event_handler h)
{
    pthread_t threads[4];

    if (card_id != -1 || device_id != -1 || filter.filter_flag != 0 || h == NULL)
        return DCMI_ERR_CODE_INVALID_PARAMETER;
    handler = h;
    for (size_t i = 0; i < 4; i++)
        if (pthread_create(&threads[i], NULL, burst, (void *)(i + 1)) != 0)
            return DCMI_ERR_CODE_INNER_ERR;
    for (size_t i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
