/*
 * The switch library of an A3 node (native-abi 16): liblingqu-dcmi.so. Like libdcmi it holds no hardware state, but it
 * has the vendor's thread: every 300 ms it takes what came into the ring of this process and calls the handlers, on a
 * small stack, with a buffer of its own that is overwritten after every call.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "mock.h"

#pragma GCC visibility push(default)
#include "na_lingqu.h"
#pragma GCC visibility pop

#define POISON 0xA5
#define TICK_MS 300
#define STACK_BYTES (256 * 1024)
#define MAX_SUBSCRIPTIONS 15
#define MAX_CHIP 6
#define MAX_SEVERITY 3

/* native-abi 3.2: the numbers of DCMI with other meanings. */
#define LQ_INVALID_PARAMETER (-8001)
#define LQ_NO_DEVICE_NODE (-8004)
#define LQ_NO_THREAD (-8007)
#define LQ_TOO_MANY_SUBSCRIPTIONS (-8014)
#define LQ_UNKNOWN_FILTER (-8015)
#define LQ_NO_SUCH_SUBSCRIPTION (-8016)

#define BY_TYPE 1u
#define BY_ID 2u
#define BY_SEVERITY 4u
#define BY_CHIP 8u

struct subscription {
    struct lq_dcmi_event_filter filter;
    lq_dcmi_fault_event_handler handler;
};

/* 16.4: the alarms that the library knows; a filter may name no other. */
static const struct {
    unsigned int type, id;
} known[] = {
    { 0x00f1fef5, 155912 }, { 0x00f1fef5, 155913 }, { 0x00f1fef5, 155914 }, { 0x00f103b6, 155908 },
    { 0x00f103b6, 155909 }, { 0x00f1ff06, 155911 }, { 0x00f1ff06, 132134 }, { 0x00f103b0, 155649 },
    { 0x00f103b0, 155904 }, { 0x00f103b0, 155907 }, { 0x08520003, LQ_DCMI_NO_SUBTYPE },
    { 0x00f10509, 132332 }, { 0x00f10509, 132333 },
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct subscription subscriptions[MAX_SUBSCRIPTIONS];
static int subscription_count;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    int started;
    int stop;
} update = { .lock = PTHREAD_MUTEX_INITIALIZER };

static long long now_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (long long)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int matches(const struct lq_dcmi_event_filter *filter, const struct LqDcmiEvent *event)
{
    return !((filter->filterFlag & BY_TYPE && filter->eventTypeId != event->eventType)
        || (filter->filterFlag & BY_ID && filter->eventId != event->subType)
        || (filter->filterFlag & BY_SEVERITY && filter->severity != event->severity)
        || (filter->filterFlag & BY_CHIP && filter->chipId != event->switchChipid));
}

/* `event <token> <hex>`: call every handler whose filter takes it; `ack <token> <mono> <wall>`, or `skip <token>`. */
static int deliver(struct na_connection *ring, struct LqDcmiEvent *event, const char *line)
{
    struct subscription takers[MAX_SUBSCRIPTIONS];
    struct LqDcmiEvent received;
    char ack[96];
    char *hex;
    long long token = strtoll(line + 6, &hex, 10);
    long long mono_ns = 0;
    long long wall_ns = 0;
    int count;

    memset(&received, 0, sizeof received);
    na_decode(hex + (*hex == ' '), &received, sizeof received);
    pthread_mutex_lock(&lock);
    count = subscription_count;
    memcpy(takers, subscriptions, sizeof takers);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < count; i++) {
        if (!matches(&takers[i].filter, &received))
            continue;
        if (mono_ns == 0) {
            mono_ns = now_ns(CLOCK_MONOTONIC);
            wall_ns = now_ns(CLOCK_REALTIME);
        }
        *event = received;
        takers[i].handler(event);
        memset(event, POISON, sizeof *event);
        __asm__ volatile("" : : "r"(event) : "memory"); /* keep the overwriting, a late reader shall see it */
    }
    if (mono_ns)
        snprintf(ack, sizeof ack, "ack %lld %lld %lld\n", token, mono_ns, wall_ns);
    else
        snprintf(ack, sizeof ack, "skip %lld\n", token);
    return na_send(ring, ack, strlen(ack));
}

static int drain(struct na_connection *ring, struct LqDcmiEvent *event)
{
    char *line;

    if (na_send(ring, "tick\n", 5) != 0)
        return -1;
    while ((line = na_receive(ring)) != NULL) {
        if (strcmp(line, "end") == 0)
            return 0;
        if (strncmp(line, "event ", 6) != 0 || deliver(ring, event, line) != 0)
            return -1;
    }
    return -1;
}

/* Waits for the next tick; 0, or 1 when the library is to go. */
static int wait_tick(void)
{
    struct timespec until;
    int stop;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += TICK_MS * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000L;
    }
    pthread_mutex_lock(&update.lock);
    while (!update.stop && pthread_cond_timedwait(&update.changed, &update.lock, &until) != ETIMEDOUT)
        ;
    stop = update.stop;
    pthread_mutex_unlock(&update.lock);
    return stop;
}

static void *update_thread(void *ring)
{
    struct LqDcmiEvent event; /* in this frame, so that the poison stays until the next event */

    prctl(PR_SET_NAME, "lq_update", 0, 0, 0);
    while (!wait_tick() && drain(ring, &event) == 0)
        ;
    na_close(ring);
    return NULL;
}

static int start_updates(void)
{
    struct na_connection *ring = na_open();
    pthread_condattr_t monotonic;
    pthread_attr_t small;
    char line[48];
    char *answer;
    int code = LQ_NO_DEVICE_NODE;

    if (!ring)
        return code;
    snprintf(line, sizeof line, "switches %d\n", (int)getpid());
    if (na_send(ring, line, strlen(line)) == 0 && (answer = na_receive(ring)) && strncmp(answer, "rc ", 3) == 0)
        code = atoi(answer + 3);
    if (code != 0) {
        na_close(ring);
        return code;
    }
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&update.changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK_BYTES);
    update.started = pthread_create(&update.thread, &small, update_thread, ring) == 0;
    pthread_attr_destroy(&small);
    if (update.started)
        return 0;
    na_close(ring);
    return LQ_NO_THREAD;
}

/* The vendor's library stops its thread when it is closed, and at exit. */
__attribute__((destructor)) static void stop_updates(void)
{
    if (!update.started)
        return;
    pthread_mutex_lock(&update.lock);
    update.stop = 1;
    pthread_cond_signal(&update.changed);
    pthread_mutex_unlock(&update.lock);
    if (!pthread_equal(pthread_self(), update.thread))
        pthread_join(update.thread, NULL);
}

int lq_dcmi_init(void)
{
    int code;

    if (!na_mine())
        return LQ_NO_DEVICE_NODE;
    code = na_init("lq_dcmi_init");
    return code == 0 ? start_updates() : code;
}

static int is_known(const struct lq_dcmi_event_filter *filter)
{
    const unsigned int flags = filter->filterFlag;
    int type = !(flags & BY_TYPE);
    int id = !(flags & BY_ID);

    for (size_t i = 0; i < NA_COUNT(known); i++) {
        type |= known[i].type == filter->eventTypeId;
        id |= known[i].id == filter->eventId;
    }
    return type && id && !(flags & BY_SEVERITY && filter->severity > MAX_SEVERITY)
        && !(flags & BY_CHIP && filter->chipId > MAX_CHIP);
}

static int same(const struct lq_dcmi_event_filter *a, const struct lq_dcmi_event_filter *b)
{
    return a->filterFlag == b->filterFlag && a->eventTypeId == b->eventTypeId && a->eventId == b->eventId
        && a->severity == b->severity && a->chipId == b->chipId;
}

/* Puts, replaces or (without a handler) takes away the subscription with this filter. */
static int change(struct lq_dcmi_event_filter filter, lq_dcmi_fault_event_handler handler)
{
    int place = 0;

    while (place < subscription_count && !same(&subscriptions[place].filter, &filter))
        place++;
    if (!handler) {
        if (place == subscription_count)
            return LQ_NO_SUCH_SUBSCRIPTION;
        subscriptions[place] = subscriptions[--subscription_count];
        return 0;
    }
    if (place == MAX_SUBSCRIPTIONS)
        return LQ_TOO_MANY_SUBSCRIPTIONS;
    subscriptions[place].filter = filter;
    subscriptions[place].handler = handler;
    if (place == subscription_count)
        subscription_count++;
    return 0;
}

int lq_dcmi_subscribe_fault_event(struct lq_dcmi_event_filter filter, lq_dcmi_fault_event_handler handler)
{
    const long long args[] = { 0, filter.filterFlag, filter.eventTypeId, filter.eventId, filter.severity,
        filter.chipId };
    int code = na_call("lq_dcmi_subscribe_fault_event", args, NA_COUNT(args), NA_NOTHING, NULL, 0);

    if (code != 0)
        return code;
    if (!is_known(&filter))
        return LQ_UNKNOWN_FILTER;
    pthread_mutex_lock(&lock);
    code = change(filter, handler);
    pthread_mutex_unlock(&lock);
    return code;
}

int lq_dcmi_get_fault_info(unsigned int list_len, unsigned int *count, struct LqDcmiEvent *list)
{
    if (list_len > 65535) /* before anything believes that the array is so long */
        return LQ_INVALID_PARAMETER;
    NA_CALL("lq_dcmi_get_fault_info", (list_len), NA_NOTHING, NA_OUT(count), NA_ARRAY(list, list_len));
}

int lq_dcmi_get_version(unsigned int *kernel_version, unsigned int *library_version)
{
    NA_CALL("lq_dcmi_get_version", (), NA_NOTHING, NA_OUT(kernel_version), NA_OUT(library_version));
}

int lq_dcmi_get_fault_nums(unsigned int *count)
{
    NA_CALL("lq_dcmi_get_fault_nums", (), NA_NOTHING, NA_OUT(count));
}
