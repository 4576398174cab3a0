/*
 * Lines over a UNIX stream socket. Every calling thread has a connection of its own, so a call that hangs blocks
 * no other thread; a forked child gets a fresh one.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "mock.h"

#define FIRST_BUFFER_BYTES 4096

struct na_connection {
    int fd;
    pid_t owner;
    char *buffer;
    size_t capacity;
    size_t start; /* where the unread text begins */
    size_t end;
    struct na_connection *next; /* in the list of thread connections */
};

static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static int key_made;
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct na_connection *list;

static void complain(const char *problem, const char *detail)
{
    static int said;

    if (__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED))
        return; /* a client that retries for minutes shall not fill its log */
    fprintf(stderr, "mock driver library: %s%s: start `nodeagent mock serve` and export NODEAGENT_MOCK_SOCKET\n", problem,
        detail);
}

struct na_connection *na_open(void)
{
    const char *path = getenv("NODEAGENT_MOCK_SOCKET");
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct na_connection *connection;

    if (!path || !*path || strlen(path) >= sizeof address.sun_path) {
        complain("NODEAGENT_MOCK_SOCKET is not set or too long", "");
        return NULL;
    }
    strcpy(address.sun_path, path);
    connection = calloc(1, sizeof *connection);
    if (!connection)
        return NULL;
    connection->owner = getpid();
    connection->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connection->fd < 0 || connect(connection->fd, (struct sockaddr *)&address, sizeof address) != 0) {
        complain("no mock node server at ", path);
        na_close(connection);
        return NULL;
    }
    return connection;
}

void na_close(struct na_connection *connection)
{
    if (connection->fd >= 0)
        close(connection->fd);
    free(connection->buffer);
    free(connection);
}

int na_send(struct na_connection *connection, const char *line, size_t length)
{
    while (length > 0) {
        ssize_t sent = send(connection->fd, line, length, MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return -1;
        line += sent;
        length -= (size_t)sent;
    }
    return 0;
}

/* Makes room behind the unread text; 0 or -1. */
static int make_room(struct na_connection *c)
{
    if (c->start > 0) {
        memmove(c->buffer, c->buffer + c->start, c->end - c->start);
        c->end -= c->start;
        c->start = 0;
    }
    if (c->end == c->capacity) {
        size_t capacity = c->capacity ? c->capacity * 2 : FIRST_BUFFER_BYTES;
        char *buffer = realloc(c->buffer, capacity);

        if (!buffer)
            return -1;
        c->buffer = buffer;
        c->capacity = capacity;
    }
    return 0;
}

char *na_receive(struct na_connection *c)
{
    size_t seen = c->start;

    for (;;) {
        char *stop = c->end > seen ? memchr(c->buffer + seen, '\n', c->end - seen) : NULL;
        ssize_t got;

        if (stop) {
            char *line = c->buffer + c->start;

            *stop = '\0';
            c->start = (size_t)(stop - c->buffer) + 1;
            return line;
        }
        seen = c->end - c->start;
        if (make_room(c) != 0)
            return NULL;
        got = recv(c->fd, c->buffer + c->end, c->capacity - c->end, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return NULL;
        c->end += (size_t)got;
    }
}

static void unlist(struct na_connection *connection)
{
    struct na_connection **link;

    pthread_mutex_lock(&list_lock);
    for (link = &list; *link; link = &(*link)->next) {
        if (*link == connection) {
            *link = connection->next;
            break;
        }
    }
    pthread_mutex_unlock(&list_lock);
}

static void end_of_thread(void *value)
{
    unlist(value);
    na_close(value);
}

static void make_key(void)
{
    key_made = pthread_key_create(&key, end_of_thread) == 0;
}


struct na_connection *na_mine(void)
{
    struct na_connection *connection;

    pthread_once(&key_once, make_key);
    if (!key_made)
        return NULL;
    connection = pthread_getspecific(key);
    if (connection && connection->owner != getpid()) {
        /* After fork the parent's thread goes on with this socket: close only our copy of the number. */
        unlist(connection);
        na_close(connection);
        connection = NULL;
        pthread_setspecific(key, NULL);
    }
    if (connection)
        return connection;
    connection = na_open();
    if (!connection)
        return NULL;
    pthread_mutex_lock(&list_lock);
    connection->next = list;
    list = connection;
    pthread_mutex_unlock(&list_lock);
    pthread_setspecific(key, connection);
    return connection;
}


void na_drop_mine(void)
{
    struct na_connection *connection = pthread_getspecific(key);

    pthread_setspecific(key, NULL);
    if (connection)
        end_of_thread(connection);
}

/*
 * dlclose and exit: threads that end later must not run end_of_thread, which is unmapped by then. Connections
 * of other threads are only shut down, for these threads may still be inside a call.
 */
__attribute__((destructor)) static void unload(void)
{
    struct na_connection *mine;

    if (!key_made)
        return;
    mine = pthread_getspecific(key);
    pthread_key_delete(key);
    if (mine) {
        unlist(mine);
        na_close(mine);
    }
    pthread_mutex_lock(&list_lock);
    for (struct na_connection *other = list; other; other = other->next)
        shutdown(other->fd, SHUT_RDWR);
    pthread_mutex_unlock(&list_lock);
}
