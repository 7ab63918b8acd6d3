// The part of blackbox that allocates; blackbox.c holds rt functions only.
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/blackbox_impl.h"

#define LINE    64  // bytes of a cache line
#define HZ_MOST 1e5 // far beyond any loop; bounds the memory
#define ROOM_S  6.0 // BLACKBOX_NS and a second in which to copy them
#define SPARE   2   // records: one being written, one that can not be told from it

_Static_assert(sizeof(struct blackbox_record) % sizeof(uint64_t) == 0 &&
                   sizeof(struct blackbox_joint) % sizeof(uint64_t) == 0,
               "a record is whole words");

// Touched now, not by the first tick.
static void *zeroed(size_t bytes)
{
    void *p = aligned_alloc(LINE, (bytes + LINE - 1) / LINE * LINE);

    if (p != NULL)
        memset(p, 0, bytes);
    return p;
}

int blackbox_new(struct blackbox **out, int joints, int cameras, double control_hz)
{
    size_t bytes = sizeof(struct blackbox_record);
    struct blackbox *b;

    *out = NULL;
    if (joints < 1 || joints > ACTD_MAX_JOINTS || cameras < 0 ||
        cameras > POLICY_MAX_CAMERAS || !(control_hz > 0) || control_hz > HZ_MOST)
        return -EINVAL;
    b = zeroed(sizeof *b);
    if (b == NULL)
        return -ENOMEM;
    bytes += (size_t)joints * sizeof(struct blackbox_joint);
    b->words = bytes / sizeof(uint64_t);
    b->capacity = (uint64_t)ceil(ROOM_S * control_hz) + SPARE;
    b->joints = joints;
    b->cameras = cameras;
    b->staging = zeroed(bytes);
    b->memory = zeroed(b->capacity * bytes);
    b->ring = b->memory;
    if (b->staging == NULL || b->memory == NULL) {
        blackbox_free(b);
        return -ENOMEM;
    }
    *out = b;
    return 0;
}

void blackbox_free(struct blackbox *b)
{
    if (b == NULL)
        return;
    free(b->staging);
    free(b->memory);
    free(b);
}
