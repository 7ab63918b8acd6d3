// The scripted expert: knows where the goal is and goes there in a minimum-jerk motion of the tool
// in cylindrical coordinates, with a small arc upwards, turning the tool straight down and the
// fingers along the cube's faces. One picture has one answer, so it can be learnt.
#ifndef ACTD_SIM_EXPERT_H
#define ACTD_SIM_EXPERT_H

#include "daemon/sim/arm.h"

struct expert {
    struct arm_pose from, to;
    double gripper_from;
    double lift_m;
    double duration_s;
};

// Plans from the joints' present place q[ARM_JOINTS], at rest, to goal_m. Pure.
void expert_plan(struct expert *e, const double *q, const double *goal_m);

// Where to be t_s after the start; holds the goal after duration_s. Writes q[ARM_JOINTS].
// Returns 0, or -ERANGE when the arm cannot be there (then q is partly written).
int expert_at(const struct expert *e, double t_s, double *q);

#endif
