// The part of slot that allocates; slot.c holds rt functions only.
#include <errno.h>
#include <stdlib.h>

#include "daemon/slot.h"

int slot_init(struct slot *s, size_t size)
{
    size_t words = (size + sizeof(uint64_t) - 1) / sizeof(uint64_t);

    *s = (struct slot){.size = size, .words = words};
    s->copy = calloc(SLOT_COPIES * words, sizeof *s->copy);
    return s->copy != NULL ? 0 : -ENOMEM;
}

void slot_free(struct slot *s)
{
    union { // free takes no _Atomic, and a cast would drop it
        _Atomic uint64_t *words;
        void *plain;
    } copy = {.words = s->copy};

    free(copy.plain);
    s->copy = NULL;
}
