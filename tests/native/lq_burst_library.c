/* A switch library for the stress program: subscribe starts threads that call the handler as fast as they can. */
#include <pthread.h>
#include <string.h>

#include "na_lingqu.h"

#define PUBLIC __attribute__((visibility("default")))
#define STACK_BYTES (256 * 1024) /* that of the vendor's thread, native-abi 16.7 */
#define PER_THREAD 20000

static lq_dcmi_fault_event_handler handler;

PUBLIC int lq_dcmi_init(void) { return 0; }

static void *burst(void *arg)
{
    const unsigned int me = (unsigned int)(size_t)arg;

    for (unsigned int i = 0; i < PER_THREAD; i++) {
        struct LqDcmiEvent event;

        memset(&event, 0, sizeof event);
        event.eventType = me << 24 | i;
        event.subType = LQ_DCMI_NO_SUBTYPE;
        event.switchChipid = (unsigned short)me;
        event.switchPortid = LQ_DCMI_WHOLE_CHIP_PORT;
        event.assertion = 1;
        handler(&event);
        memset(&event, 0xA5, sizeof event);
    }
    return NULL;
}

/* Waits for its threads, so that a sanitizer sees every access before the program ends. */
PUBLIC int lq_dcmi_subscribe_fault_event(struct lq_dcmi_event_filter filter, lq_dcmi_fault_event_handler h)
{
    pthread_t threads[4];
    pthread_attr_t small;

    if (filter.filterFlag != 0 || filter.eventTypeId != 0 || filter.eventId != 0 || filter.severity != 0
        || filter.chipId != 0 || h == NULL)
        return -8015;
    handler = h;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK_BYTES);
    for (size_t i = 0; i < 4; i++)
        if (pthread_create(&threads[i], &small, burst, (void *)(i + 1)) != 0)
            return -8007;
    for (size_t i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    pthread_attr_destroy(&small);
    return 0;
}

/* Without WITHOUT_QUERY defined it has all that is needed; with it the query is missing. */
#ifndef WITHOUT_QUERY
PUBLIC int lq_dcmi_get_fault_info(unsigned int list_len, unsigned int *count, struct LqDcmiEvent *list)
{
    for (unsigned int i = 0; i < list_len; i++) {
        memset(&list[i], 0, sizeof list[i]);
        list[i].eventType = i;
    }
    *count = list_len;
    return 0;
}
#endif
