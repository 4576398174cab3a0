#include "ring.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

int na_ring_init(struct na_ring *ring, size_t item_bytes, unsigned int capacity)
{
    memset(ring, 0, sizeof *ring);
    ring->item_bytes = item_bytes;
    ring->capacity = capacity;
    ring->items = calloc(capacity, item_bytes);
    ring->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (ring->items == NULL || ring->wake_fd < 0 || pthread_mutex_init(&ring->lock, NULL) != 0) {
        free(ring->items);
        if (ring->wake_fd >= 0)
            close(ring->wake_fd);
        return -1;
    }
    return 0;
}

void na_ring_free(struct na_ring *ring)
{
    pthread_mutex_destroy(&ring->lock);
    close(ring->wake_fd);
    free(ring->items);
    memset(ring, 0, sizeof *ring);
}

int na_ring_push(struct na_ring *ring, const void *item)
{
    const uint64_t one = 1;
    int taken;

    pthread_mutex_lock(&ring->lock);
    taken = ring->count < ring->capacity;
    if (taken) {
        const unsigned int slot = (ring->next + ring->count) % ring->capacity;
        memcpy(ring->items + (size_t)slot * ring->item_bytes, item, ring->item_bytes);
        ring->count++;
    } else {
        ring->dropped++;
    }
    pthread_mutex_unlock(&ring->lock);
    if (write(ring->wake_fd, &one, sizeof one) < 0)
        return taken; /* the counter is at its limit, so the reader is awake anyway */
    return taken;
}

unsigned int na_ring_drain(struct na_ring *ring, void *items, unsigned int room, uint64_t *dropped)
{
    unsigned char *out = items;
    unsigned int n = 0;

    pthread_mutex_lock(&ring->lock);
    while (n < room && ring->count > 0) {
        memcpy(out + (size_t)n * ring->item_bytes, ring->items + (size_t)ring->next * ring->item_bytes,
               ring->item_bytes);
        ring->next = (ring->next + 1) % ring->capacity;
        ring->count--;
        n++;
    }
    *dropped = ring->dropped;
    pthread_mutex_unlock(&ring->lock);
    return n;
}
