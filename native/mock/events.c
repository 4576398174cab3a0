/*
 * The subscription (native-abi 7.4): one per process, served by a detached thread of the library that calls the
 * handler synchronously with a buffer on its own stack and overwrites that buffer after every call.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "mock.h"

#define POISON 0xA5

struct subscription {
    struct na_connection *connection;
    dcmi_fault_event_handler handler;
    sem_t *first_read; /* posted once, when the events of before are delivered */
};

/* Whether this process has a subscription, or has spoilt its chance by running out of slots (7.4). */
static int started;

static long long now_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (long long)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* `event <token> <hex>`: call the handler, answer `ack <token> <monotonic ns> <wall ns>`. */
static int deliver(const struct subscription *subscription, struct dcmi_event *event, const char *line)
{
    char ack[96];
    char *hex;
    long long token = strtoll(line + 6, &hex, 10);
    long long mono_ns;
    long long wall_ns;

    memset(event, 0, sizeof *event);
    na_decode(hex + (*hex == ' '), event, sizeof *event);
    mono_ns = now_ns(CLOCK_MONOTONIC);
    wall_ns = now_ns(CLOCK_REALTIME);
    subscription->handler(event);
    memset(event, POISON, sizeof *event);
    __asm__ volatile("" : : "r"(event) : "memory"); /* keep the overwriting, a late reader shall see it */
    snprintf(ack, sizeof ack, "ack %lld %lld %lld\n", token, mono_ns, wall_ns);
    return na_send(subscription->connection, ack, strlen(ack));
}

static void *event_thread(void *argument)
{
    struct subscription subscription = *(struct subscription *)argument;
    struct dcmi_event event; /* in this frame, so that the poison stays until the next event */
    char *line;

    /* The kernel keeps 15 characters of it. */
    prctl(PR_SET_NAME, "fault_event_subscribe", 0, 0, 0);
    while ((line = na_receive(subscription.connection)) != NULL) {
        if (strcmp(line, "ready") == 0) {
            sem_post(subscription.first_read);
            subscription.first_read = NULL;
        } else if (strncmp(line, "event ", 6) == 0 && deliver(&subscription, &event, line) != 0) {
            break;
        }
    }
    if (subscription.first_read)
        sem_post(subscription.first_read); /* the server died in between: do not keep the subscriber waiting */
    na_close(subscription.connection);
    return NULL;
}

/* Registers a connection with the server for events; the code of the server. */
static int enlist(struct na_connection *connection, const char *where, struct dcmi_event_filter filter)
{
    char line[192];
    char *answer;

    snprintf(line, sizeof line, "subscribe %d %s %lld %u %u %u\n", (int)getpid(), where,
        (long long)filter.filter_flag, filter.event_id, filter.severity, filter.node_type);
    if (na_send(connection, line, strlen(line)) != 0 || (answer = na_receive(connection)) == NULL)
        return DCMI_ERR_CODE_INNER_ERR;
    return strncmp(answer, "rc ", 3) == 0 ? atoi(answer + 3) : DCMI_ERR_CODE_INNER_ERR;
}

static int start(const char *where, struct dcmi_event_filter filter, dcmi_fault_event_handler handler)
{
    sem_t first_read;
    struct subscription subscription = { na_open(), handler, &first_read };
    pthread_t thread;
    int code;

    if (!subscription.connection)
        return DCMI_ERR_CODE_INNER_ERR;
    code = enlist(subscription.connection, where, filter);
    if (code != DCMI_OK) {
        na_close(subscription.connection);
        return code;
    }
    sem_init(&first_read, 0, 0);
    if (pthread_create(&thread, NULL, event_thread, &subscription) != 0) {
        na_close(subscription.connection);
        sem_destroy(&first_read);
        return DCMI_ERR_CODE_MEM_OPERATE_FAIL;
    }
    pthread_detach(thread);
    while (sem_wait(&first_read) != 0)
        ; /* interrupted by a signal */
    sem_destroy(&first_read);
    return DCMI_OK;
}

/* The common part of both generations; `checked` is what the server thinks of the call. */
static int subscribe(int checked, int no_slot, const char *where, struct dcmi_event_filter filter,
    dcmi_fault_event_handler handler)
{
    if (no_slot)
        __atomic_store_n(&started, 1, __ATOMIC_RELEASE);
    if (checked != DCMI_OK)
        return checked;
    if (__atomic_exchange_n(&started, 1, __ATOMIC_ACQ_REL))
        return DCMI_ERR_CODE_RESOURCE_OCCUPIED;
    checked = start(where, filter, handler);
    if (checked != DCMI_OK && checked != DCMI_ERR_CODE_RESOURCE_OCCUPIED)
        __atomic_store_n(&started, 0, __ATOMIC_RELEASE);
    return checked;
}

static int check(const char *function, const long long *args, size_t count, int *no_slot)
{
    const struct na_out outs[] = { { NULL, 0 }, NA_OUT(no_slot) };

    return na_call(function, args, count, NA_NOTHING, outs, NA_COUNT(outs));
}

int dcmi_subscribe_fault_event(int card_id, int device_id, struct dcmi_event_filter filter,
    dcmi_fault_event_handler handler)
{
    const long long args[] = { 0, card_id, device_id };
    char where[48];
    int no_slot = 0;
    int code;

    if (!handler)
        return DCMI_ERR_CODE_INVALID_PARAMETER; /* there is no unsubscribe (7.3) */
    code = check("dcmi_subscribe_fault_event", args, NA_COUNT(args), &no_slot);
    snprintf(where, sizeof where, "%d,%d", card_id, device_id);
    return subscribe(code, no_slot, where, filter, handler);
}

int dcmiv2_subscribe_fault_event(int dev_id, struct dcmi_event_filter filter, dcmi_fault_event_handler handler)
{
    const long long args[] = { 0, dev_id };
    char where[24];
    int no_slot = 0;
    int code;

    if (!handler)
        return DCMI_ERR_CODE_INVALID_PARAMETER;
    code = check("dcmiv2_subscribe_fault_event", args, NA_COUNT(args), &no_slot);
    snprintf(where, sizeof where, "%d", dev_id);
    return subscribe(code, no_slot, where, filter, handler);
}
