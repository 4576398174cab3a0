/*
 * A bounded ring between a thread of a vendor library and Python.
 *
 * Writers are callbacks on foreign threads, with small stacks and no right to wait: push copies the item, adds 1
 * to an eventfd and returns. A full ring drops the new item and counts it; the reader then asks for a full query.
 */
#ifndef NA_RING_H
#define NA_RING_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

struct na_ring {
    pthread_mutex_t lock;
    unsigned char *items;
    size_t item_bytes;
    unsigned int capacity;
    unsigned int count;
    unsigned int next;      /* slot of the oldest item */
    uint64_t dropped;       /* since the ring was made; never reset */
    int wake_fd;            /* eventfd, readable while items wait or drops are untold */
};

/* 0, or -1 when memory or the eventfd is not to be had. */
int na_ring_init(struct na_ring *ring, size_t item_bytes, unsigned int capacity);
void na_ring_free(struct na_ring *ring);

/* Any thread. 1 when taken, 0 when dropped. */
int na_ring_push(struct na_ring *ring, const void *item);

/* One reader. Copies up to `room` items, oldest first; tells the total of drops. */
unsigned int na_ring_drain(struct na_ring *ring, void *items, unsigned int room, uint64_t *dropped);

#endif
