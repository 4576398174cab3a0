/* One ABI call as a line: arguments out, then directives (sleep, die) and the answer in. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mock.h"

/* Number of the topology that init saw, -1 before init (18.2 rows 1 and 3). */
static int session = -1;

static void sleep_ms(long long ms)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += ms % 1000 * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

/* Ends the process on the calling thread as a fault inside the vendor library would. */
static void die(int number)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, number);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    signal(number, SIG_DFL);
    raise(number);
}

static int nibble(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

size_t na_decode(const char *hex, void *data, size_t size)
{
    unsigned char *bytes = data;
    size_t n = 0;

    while (n < size && nibble(hex[0]) >= 0 && nibble(hex[1]) >= 0) {
        bytes[n++] = (unsigned char)(nibble(hex[0]) << 4 | nibble(hex[1]));
        hex += 2;
    }
    return n;
}

/* `call <pid> <session> <function> <integers> x<hex>`; NULL without memory. The caller frees it. */
static char *request(const char *function, const long long *args, size_t arg_count, struct na_in in, size_t *length)
{
    static const char digits[] = "0123456789abcdef";
    size_t capacity = strlen(function) + 24 * (arg_count + 2) + 2 * in.size + 16;
    char *line = malloc(capacity);
    size_t n;

    if (!line)
        return NULL;
    n = (size_t)snprintf(line, capacity, "call %d %d %s", (int)getpid(), __atomic_load_n(&session, __ATOMIC_ACQUIRE),
        function);
    for (size_t i = 1; i < arg_count; i++)
        n += (size_t)snprintf(line + n, capacity - n, " %lld", args[i]);
    if (in.size > 0) {
        const unsigned char *bytes = in.data;

        line[n++] = ' ';
        line[n++] = 'x';
        for (size_t i = 0; i < in.size; i++) {
            line[n++] = digits[bytes[i] >> 4];
            line[n++] = digits[bytes[i] & 15];
        }
    }
    line[n++] = '\n';
    *length = n;
    return line;
}

/* `rc <code> <hex> <hex> …`, a lone dash for an empty buffer. */
static int unpack(const char *answer, const struct na_out *outs, size_t out_count)
{
    char *rest;
    int code = (int)strtol(answer + 3, &rest, 10);

    for (size_t i = 1; i < out_count && *rest == ' '; i++) {
        rest++;
        na_decode(rest, outs[i].data, outs[i].size);
        rest += strcspn(rest, " ");
    }
    return code;
}

/* Obeys directives until the answer comes; NULL when the server is gone. */
static char *answer(struct na_connection *connection)
{
    for (;;) {
        char *line = na_receive(connection);

        if (!line || strncmp(line, "rc ", 3) == 0)
            return line;
        if (strncmp(line, "crash ", 6) == 0) {
            die(atoi(line + 6));
        } else if (strncmp(line, "hang ", 5) == 0) {
            sleep_ms(atoll(line + 5));
            if (na_send(connection, "go\n", 3) != 0)
                return NULL;
        } else {
            return NULL;
        }
    }
}

int na_call(const char *function, const long long *args, size_t arg_count, struct na_in in,
    const struct na_out *outs, size_t out_count)
{
    struct na_connection *connection;
    size_t length;
    char *line;
    char *text = NULL;

    for (size_t i = 1; i < out_count; i++) {
        if (!outs[i].data)
            return DCMI_ERR_CODE_INVALID_PARAMETER;
    }
    if (in.size > 0 && !in.data)
        return DCMI_ERR_CODE_INVALID_PARAMETER;
    connection = na_mine();
    if (!connection)
        return DCMI_ERR_CODE_INNER_ERR;
    line = request(function, args, arg_count, in, &length);
    if (!line)
        return DCMI_ERR_CODE_MEM_OPERATE_FAIL;
    if (na_send(connection, line, length) == 0)
        text = answer(connection);
    free(line);
    if (!text) {
        na_drop_mine();
        return DCMI_ERR_CODE_INNER_ERR;
    }
    return unpack(text, outs, out_count);
}

int na_init(const char *function)
{
    const long long args[] = { 0 };
    int seen = -1;
    int before_init = -1;
    const struct na_out outs[] = { { NULL, 0 }, NA_OUT(&seen) };
    int code = na_call(function, args, 1, NA_NOTHING, outs, 2);

    /* A second init without reloading the library keeps the first topology (18.2 row 3). */
    if (code == DCMI_OK)
        __atomic_compare_exchange_n(&session, &before_init, seen, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    return code;
}
