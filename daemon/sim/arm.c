#include "daemon/sim/arm.h"

#include <errno.h>
#include <math.h>

const char *const arm_name[ARM_JOINTS] = {"shoulder_pan", "shoulder_lift", "elbow_flex",
                                          "wrist_flex",   "wrist_roll",    "gripper"};
const double arm_min_rad[ARM_JOINTS] = {-1.9, -1.7, -1.6, -1.6, -2.7, 0.0};
const double arm_max_rad[ARM_JOINTS] = {1.9, 1.7, 1.6, 1.9, 2.7, 1.0};
const double arm_rest_rad[ARM_JOINTS] = {0.0, -0.9, 0.9, 0.6, 0.0, 0.0};

void arm_forward(const double *q, struct arm_pose *pose)
{
    double l = q[ARM_LIFT], le = l + q[ARM_ELBOW], lew = le + q[ARM_WRIST];

    pose->r_m = ARM_SHOULDER_R_M + ARM_UPPER_M * sin(l) + ARM_FORE_M * cos(le) +
                ARM_TOOL_M * cos(lew);
    pose->z_m = ARM_SHOULDER_Z_M + ARM_UPPER_M * cos(l) - ARM_FORE_M * sin(le) -
                ARM_TOOL_M * sin(lew);
    pose->azimuth_rad = q[ARM_PAN];
    pose->pitch_rad = lew;
    pose->yaw_rad = q[ARM_PAN] - q[ARM_ROLL];
}

int arm_inverse(const struct arm_pose *pose, double *q)
{
    double rw = pose->r_m - ARM_SHOULDER_R_M - ARM_TOOL_M * cos(pose->pitch_rad);
    double zw = pose->z_m - ARM_SHOULDER_Z_M + ARM_TOOL_M * sin(pose->pitch_rad);
    double sin_e =
        (ARM_UPPER_M * ARM_UPPER_M + ARM_FORE_M * ARM_FORE_M - rw * rw - zw * zw) /
        (2 * ARM_UPPER_M * ARM_FORE_M);
    if (!(fabs(sin_e) <= 1.0))
        return -ERANGE;
    double e = asin(sin_e);
    // The wrist seen from the shoulder is `a` along the upper arm and `b` across it.
    double a = ARM_UPPER_M - ARM_FORE_M * sin_e, b = ARM_FORE_M * cos(e);
    double l = atan2(a * rw - b * zw, a * zw + b * rw);

    q[ARM_PAN] = pose->azimuth_rad;
    q[ARM_LIFT] = l;
    q[ARM_ELBOW] = e;
    q[ARM_WRIST] = pose->pitch_rad - l - e;
    q[ARM_ROLL] = pose->azimuth_rad - pose->yaw_rad;
    for (int i = 0; i < ARM_GRIPPER; i++)
        if (!(q[i] >= arm_min_rad[i] && q[i] <= arm_max_rad[i]))
            return -ERANGE;
    return 0;
}
