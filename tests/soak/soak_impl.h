// What the soak's robot is made of: shared by soak_robot.c (sockets, streams, trouble) and
// soak_wire.c (messages, pictures).
#ifndef SOAK_IMPL_H
#define SOAK_IMPL_H

#include <turbojpeg.h>

#include "tests/soak/soak.h"

#define SOAK_MESSAGE (64 * 1024) // bytes, any message

struct soak_picture {
    int width, height;
    uint8_t *rgb[SOAK_PICTURES];
};

struct soak_robot {
    uint64_t random;
    char runtime[PATH_MAX];
    void *context, *states, *commands, *idle, *frames[SOAK_CAMERAS];
    struct soak_picture picture[SOAK_CAMERAS];
    tjhandle jpeg;
    double pose[SOAK_JOINTS];
    double target[SOAK_JOINTS]; // rad, the newest command
    ns_t moved_ns;
    ns_t silent_until[1 + SOAK_CAMERAS], next_frame[SOAK_CAMERAS], next_trouble;
    ns_t nan_until, swapped_until, clock_until, corrupt_until;
    int64_t last_stamp_ns;
    bool was_bad[1 + SOAK_CAMERAS];
    uint8_t message[SOAK_MESSAGE], old[SOAK_MESSAGE];
    size_t old_size;
    struct soak_counts n;
};

uint64_t soak_dice(struct soak_robot *r, uint64_t n); // 0 … n-1

// Each writes into r->message and returns the size.
size_t soak_pack_states(struct soak_robot *r, ns_t now, int joints, bool nan, bool swap);
size_t soak_pack_raw(struct soak_robot *r, int camera, uint8_t *rgb, ns_t now);
size_t soak_pack_jpeg(struct soak_robot *r, int camera, uint8_t *rgb, ns_t now,
                      bool corrupt);
// Pictures of the simulator in `build`. 0 or -errno.
int soak_photograph(struct soak_robot *r, const char *build);

#endif
