// What a keyframe of the bus is made of, for the two files that write and read it. Flags are
// numbers here: what is read back may be damaged, and a bool that is neither 0 nor 1 is no value.
#ifndef ACTD_KEYFRAME_BUS_IMPL_H
#define ACTD_KEYFRAME_BUS_IMPL_H

#include "daemon/camera_impl.h"
#include "daemon/intake_impl.h"
#include "daemon/keyframe.h"

struct keyframe_pace { // without what is configured
    uint64_t count;
    ns_t at_ns[PACE_SAMPLES];
};

struct keyframe_joints { // struct intake, and its mark on the board
    struct codec_stamp stamp;
    struct keyframe_pace pace;
    struct joint_history history;
    struct joint_sample elsewhere;
    uint64_t received, refused, duplicate, out_of_order, clock_jumps;
    double refused_value;
    uint32_t in_a_row, refused_in_a_row, alone, slow;
    int32_t agreed, verdict, refused_for, refused_joint;
};

struct keyframe_camera { // struct camera, and its mark
    struct codec_stamp stamp;
    struct content content;
    struct keyframe_pace pace;
    uint64_t passed_over, superseded;
    ns_t capture_ns, received_ns, changed_ns;
    uint64_t received, refused, corrupt, duplicate, out_of_order, clock_jumps, same;
    uint32_t corrupt_in_a_row, refused_in_a_row, same_in_a_row, slow;
    int32_t last_refusal;
};

struct keyframe_bus {
    struct keyframe_head head;
    struct keyframe_joints joints;
    struct keyframe_camera camera[]; // (head.cameras)
};

static inline size_t keyframe_bus_size(int cameras)
{
    return sizeof(struct keyframe_bus) + (size_t)cameras * sizeof(struct keyframe_camera);
}

// io. All of it but the head's build and number, which the tape's owner knows.
void keyframe_bus_fill(struct keyframe_bus *k, const struct intake *in,
                       struct camera *const *cameras, int n, ns_t now);

#endif
