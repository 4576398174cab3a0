/*
 * Internal interface of the mock libraries, libdcmi and liblingqu-dcmi. They hold no hardware state: every ABI
 * function sends its arguments to the mock node server and copies the answer into the caller's buffers (docs/mock.md).
 *
 * Only the ABI symbols are exported; everything else is hidden by -fvisibility=hidden.
 */
#ifndef NA_MOCK_H
#define NA_MOCK_H

#include <stddef.h>

#pragma GCC visibility push(default)
#include "na_dcmi.h"
#pragma GCC visibility pop

/* A buffer of the caller: how much fits. A NULL pointer with a size is a parameter error. */
struct na_out {
    void *data;
    size_t size;
};

/* An input buffer of the caller, sent along with the integers. */
struct na_in {
    const void *data;
    size_t size;
};

/* A connection to the server with its receive buffer. */
struct na_connection;

/*
 * Calls `function` with `args` and fills `outs` in order. The first element of both arrays is a placeholder,
 * so that empty lists are still arrays. Returns the code of the server; INNER_ERR without a server,
 * INVALID_PARAMETER for a NULL buffer. May sleep or end the process when the server wants it to.
 */
int na_call(const char *function, const long long *args, size_t arg_count, struct na_in in,
    const struct na_out *outs, size_t out_count);

/* The init of either generation: keeps the topology number that the first success brought. */
int na_init(const char *function);

/* Opens a connection of its own; NULL without a server. */
struct na_connection *na_open(void);
void na_close(struct na_connection *connection);

/* The connection of this thread, opened when needed; NULL without a server. */
struct na_connection *na_mine(void);

/* Gives up the connection of this thread after an error, so that the next call opens another. */
void na_drop_mine(void);

/* Sends one line (with its line end); 0 or -1. */
int na_send(struct na_connection *connection, const char *line, size_t length);

/* The next line without its end, valid until the next call; NULL when the server is gone. */
char *na_receive(struct na_connection *connection);

/* Decodes hexadecimal text up to a blank or the end; returns the number of bytes, at most `size`. */
size_t na_decode(const char *hex, void *data, size_t size);

#define NA_LIST(...) __VA_ARGS__
#define NA_COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define NA_OUT(pointer) { (pointer), sizeof *(pointer) }
#define NA_ARRAY(pointer, count) { (pointer), (count) > 0 ? sizeof *(pointer) * (size_t)(count) : 0 }
#define NA_BYTES(pointer, count) { (pointer), (count) > 0 ? (size_t)(count) : 0 }
#define NA_NOTHING ((struct na_in) { NULL, 0 })

/* One call: name, (integers), input buffer, output buffers. */
#define NA_CALL(function, arguments, in, ...) \
    do { \
        const long long args_[] = { 0, NA_LIST arguments }; \
        const struct na_out outs_[] = { { NULL, 0 }, __VA_ARGS__ }; \
        return na_call(function, args_, NA_COUNT(args_), in, outs_, NA_COUNT(outs_)); \
    } while (0)

/*
 * Function definitions. `params` and `arguments` are parenthesised lists that follow the ids, each with its
 * leading comma: NA_TWINS(v1 name, v2 name, (, int type, int *out), (, type), NA_NOTHING, NA_OUT(out)).
 */
#define NA_V1(name, params, arguments, in, ...) \
    int name(int card_id, int device_id NA_LIST params) \
    { \
        NA_CALL(#name, (card_id, device_id NA_LIST arguments), in, __VA_ARGS__); \
    }
#define NA_V2(name, params, arguments, in, ...) \
    int name(int dev_id NA_LIST params) \
    { \
        NA_CALL(#name, (dev_id NA_LIST arguments), in, __VA_ARGS__); \
    }
#define NA_CARD(name, params, arguments, in, ...) \
    int name(int card_id NA_LIST params) \
    { \
        NA_CALL(#name, (card_id NA_LIST arguments), in, __VA_ARGS__); \
    }
#define NA_TWINS(v1_name, v2_name, params, arguments, in, ...) \
    NA_V1(v1_name, params, arguments, in, __VA_ARGS__) \
    NA_V2(v2_name, params, arguments, in, __VA_ARGS__)
/* Twins whose parameters name no chip. */
#define NA_SAME(v1_name, v2_name, params, arguments, in, ...) \
    int v1_name params \
    { \
        NA_CALL(#v1_name, arguments, in, __VA_ARGS__); \
    } \
    int v2_name params \
    { \
        NA_CALL(#v2_name, arguments, in, __VA_ARGS__); \
    }

#endif
