// Geometry of the simulated arm: names, limits, forward and inverse kinematics in closed form.
//
// shoulder_pan turns about z; shoulder_lift, elbow_flex and wrist_flex about y; wrist_roll about the
// tool. At all zeros the upper arm stands up, forearm and tool point forward (+x). Positive angles
// pan to the left and lean, bend and pitch downwards:
//
//            elbow o=======o wrist_flex ---> tip          r = SHOULDER_R + U sin(l)
//                  ‖ F          T                             + F cos(l+e) + T cos(l+e+w)
//                U ‖                                      z = SHOULDER_Z + U cos(l)
//     shoulder_lift o                                         - F sin(l+e) - T sin(l+e+w)
//                   | z
#ifndef ACTD_SIM_ARM_H
#define ACTD_SIM_ARM_H

enum arm_joint {
    ARM_PAN,
    ARM_LIFT,
    ARM_ELBOW,
    ARM_WRIST,
    ARM_ROLL,
    ARM_GRIPPER,
    ARM_JOINTS
};

#define ARM_SHOULDER_R_M 0.02  // shoulder_lift axis: distance from the pan axis
#define ARM_SHOULDER_Z_M 0.115 // and height over the table
#define ARM_UPPER_M      0.165
#define ARM_FORE_M       0.165
#define ARM_TOOL_M       0.11 // wrist_flex axis to the tip between the fingers

extern const char *const arm_name[ARM_JOINTS];
extern const double arm_min_rad[ARM_JOINTS];
extern const double arm_max_rad[ARM_JOINTS];
extern const double arm_rest_rad[ARM_JOINTS];

// Where the tool is, in cylindrical coordinates round the pan axis. With pitch pi/2 (straight
// down), yaw is the direction in which the fingers open, 0 = along world y.
struct arm_pose {
    double r_m, azimuth_rad, z_m, pitch_rad, yaw_rad;
};

// Joints (the gripper aside) to tool pose. Pure.
void arm_forward(const double *q, struct arm_pose *pose);

// Tool pose to q[0..ARM_ROLL], elbow up, one solution only; q[ARM_GRIPPER] is left alone. Pure.
// Returns 0, or -ERANGE when out of reach or outside the joints' limits.
int arm_inverse(const struct arm_pose *pose, double *q);

#endif
