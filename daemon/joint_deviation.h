// joint_deviation: how far a policy in another precision than float32 was from itself in float32
// (policy_info.deviation), at this robot's joints; and whether that is too far. All functions are
// plain.
//
// The bound, policy.max_deviation, is a share of what a joint may move: one number that means the
// same to a shoulder in radians, a gripper from 0 to 1 and a slide in metres.
// 2 % is the default: the shipped policy is off by 0.2 to 0.5 % in 8 bits, whatever the processor,
// a full-size network of random weights by 7 % of a standard deviation at worst, 1.4 % of a range of
// five.
#ifndef ACTD_JOINT_DEVIATION_H
#define ACTD_JOINT_DEVIATION_H

#include "daemon/config.h"

struct joint_deviation {
    int n;                         // joints, in the robot's order
    double wire[ACTD_MAX_JOINTS];  // rad; m of one that slides
    double share[ACTD_MAX_JOINTS]; // of the joint's position range
    const char *unit[ACTD_MAX_JOINTS];
    int worst; // joint with the largest share
};

// False: nothing was measured, it computes in float32.
bool joint_deviation_of(const struct config *cfg, const struct config_sidecar *side,
                        const struct binding *b, const struct policy_info *info,
                        struct joint_deviation *out);

// "int8: furthest from float32 in gripper, 0.0034 rad (0.34 % of its range), on the observation of
// golden.safetensors and 4 made-up ones"; "float32".
const char *joint_deviation_text(const struct config *cfg,
                                 const struct config_sidecar *side,
                                 const struct binding *b, const struct policy_info *info,
                                 char *buf, size_t size);

// 0, or -EDOM with a sentence that names joint, deviation, bound and remedy.
int joint_deviation_check(const struct config *cfg, const struct config_sidecar *side,
                          const struct binding *b, const struct policy_info *info,
                          struct config_error *err);

#endif
