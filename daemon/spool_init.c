// The part of spool that allocates; spool.c holds rt functions only.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/spool.h"

#define LINE  64   // bytes of a cache line
#define PAGE  4096 // the smallest there is; larger ones are touched more than once
#define LEAST 4096
#define MOST  (SIZE_MAX / 4)

int spool_init(struct spool *s, size_t capacity)
{
    size_t n = LEAST;

    memset(s, 0, sizeof *s);
    if (capacity > MOST)
        return -ENOMEM;
    while (n < capacity)
        n *= 2;
    s->data = aligned_alloc(LINE, n);
    if (s->data == NULL)
        return -ENOMEM;
    s->capacity = n;
    return 0;
}

void spool_free(struct spool *s)
{
    free(s->data);
    s->data = NULL;
}

// What waits in it stays: each page is written with what it holds.
void spool_touch(struct spool *s)
{
    volatile unsigned char *p = s->data;

    for (uint64_t i = 0; i < s->capacity; i += PAGE) {
        unsigned char b = p[i];

        p[i] = b;
    }
}
