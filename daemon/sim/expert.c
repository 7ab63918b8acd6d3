#include "daemon/sim/expert.h"

#include <math.h>

#define GRIPPER_TRAVEL_RAD 0.15 // nearly closed on the way
#define GRIPPER_OPEN_RAD   0.60 // over the cube: 9 cm between the fingertips
#define HALF_PI            1.5707963267948966

// Position along a minimum-jerk motion from 0 to 1 (Flash and Hogan 1985).
static double smooth(double s)
{
    s = fmin(fmax(s, 0), 1);
    return s * s * s * (10 + s * (6 * s - 15));
}

void expert_plan(struct expert *e, const double *q, const double *goal_m)
{
    double to[ARM_JOINTS], most = 0;

    arm_forward(q, &e->from);
    e->to = (struct arm_pose){.r_m = hypot(goal_m[0], goal_m[1]),
                              .azimuth_rad = atan2(goal_m[1], goal_m[0]),
                              .z_m = goal_m[2],
                              .pitch_rad = HALF_PI,
                              .yaw_rad = 0};
    e->gripper_from = q[ARM_GRIPPER];
    if (arm_inverse(&e->to, to) == 0)
        for (int i = 0; i < ARM_GRIPPER; i++)
            most = fmax(most, fabs(to[i] - q[i]));
    // Peak velocity of a minimum-jerk motion is 1.875 travel / duration: below 2.2 rad/s.
    e->duration_s = fmin(fmax(0.9 + 0.45 * most, 1.0), 1.8);
    e->lift_m = fmin(0.03, 0.2 * most);
}

int expert_at(const struct expert *e, double t_s, double *q)
{
    double s = t_s / e->duration_s, u = smooth(s), v = 1 - u;
    struct arm_pose p = {
        .r_m = v * e->from.r_m + u * e->to.r_m,
        .azimuth_rad = v * e->from.azimuth_rad + u * e->to.azimuth_rad,
        .z_m = v * e->from.z_m + u * e->to.z_m + e->lift_m * 16 * u * u * v * v,
        .pitch_rad = v * e->from.pitch_rad + u * e->to.pitch_rad,
        .yaw_rad = v * e->from.yaw_rad + u * e->to.yaw_rad,
    };
    double close = smooth(2 * s), open = smooth(2 * s - 1);
    q[ARM_GRIPPER] = e->gripper_from + (GRIPPER_TRAVEL_RAD - e->gripper_from) * close +
                     (GRIPPER_OPEN_RAD - GRIPPER_TRAVEL_RAD) * open;
    return arm_inverse(&p, q);
}
