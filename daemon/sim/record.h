// Writes demonstrations of the scripted expert for policy/train.
//
// One file per episode, little-endian, no padding:
//
//   char     magic[8]        "ACTDEP02"
//   uint32   steps, joints, cameras, rate_hz
//   cameras x { char name[16]; uint32 width, height; }
//   float32  goal_m[3]
//   float32  state[steps][joints]       rad, measured at the step
//   float32  action[steps][joints]      rad, absolute: where to be one step later (no noise)
//   cameras x uint8 frames[steps][height][width][3]   RGB at the step
//
// What is executed is the action plus a slow random error, what is written is the action without
// it, so the learner sees how to come back (Laskey et al., DART, 2017).
#ifndef ACTD_SIM_RECORD_H
#define ACTD_SIM_RECORD_H

#include <stdint.h>

enum { RECORD_RATE_HZ = 25, RECORD_FRONT_PX = 96, RECORD_WRIST_PX = 64 };

struct record_options {
    const char *dir; // must exist
    unsigned episodes;
    uint64_t seed;
    double noise_rad; // standard deviation of the error of the four large joints
};

// Records all episodes and prints a line now and then. plain thread.
// Returns 0 or -errno; *why is then a sentence.
int record_run(const struct record_options *o, const char **why);

#endif
