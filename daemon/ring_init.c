// The part of ring that allocates; ring.c holds rt functions only.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/ring.h"

#define LINE 64 // bytes of a cache line: neighbours do not share one

int ring_init(struct ring *r, size_t size, size_t capacity)
{
    size_t n = 1;

    memset(r, 0, sizeof *r);
    while (n < capacity)
        n *= 2;
    r->size = size;
    r->stride = (size + LINE - 1) / LINE * LINE;
    r->mask = n - 1;
    r->data = aligned_alloc(LINE, n * r->stride);
    if (r->data == NULL)
        return -ENOMEM;
    memset(r->data, 0, n * r->stride); // touched now, not by the first tick
    return 0;
}

void ring_free(struct ring *r)
{
    free(r->data);
    r->data = NULL;
}
