// The simulated world: a six-joint arm of our own drawing on a table, a red cube to reach, a green
// and a blue one beside it, each on a plinth that rises more or less out of the table, and two
// cameras. The MJCF text is compiled in, so the program works from any directory.
//
// Nothing collides and gravity is off: the servos of the simulated arm compensate it perfectly,
// and the cubes are fixed decorations. A step costs about 20 us.
#ifndef ACTD_SIM_SCENE_H
#define ACTD_SIM_SCENE_H

#include <mujoco/mujoco.h>

#include "daemon/sim/arm.h"

enum {
    SCENE_CUBES = 3,   // red (the goal), green, blue
    SCENE_CAMERAS = 2, // front, wrist
};

#define SCENE_TIMESTEP_S   0.002 // physics step
#define SCENE_CUBE_HALF_M  0.02  // half the edge of a cube
#define SCENE_PLINTH_MAX_M 0.08  // a plinth is sunk into the table down to nothing

// World position of camera `front`, which placements keep free of obstacles in between.
extern const double scene_front_m[3];

struct scene {
    mjModel *m;
    mjData *d;
    int qpos[ARM_JOINTS];    // index of each joint in d->qpos
    int dof[ARM_JOINTS];     // and in d->qvel
    int act_pos[ARM_JOINTS]; // index of its position servo in d->ctrl
    int act_vel[ARM_JOINTS]; // and of its velocity servo
    int tip_site;
    int cube_mocap[SCENE_CUBES];
    int plinth_mocap[SCENE_CUBES];
    int camera[SCENE_CAMERAS];
    int finger_qpos; // the mirrored finger, not a joint of the arm for anybody outside
};

extern const char *const scene_camera_name[SCENE_CAMERAS];

// Compiles the world and puts the arm at rest. plain thread; allocates.
// Returns 0, -ENOMEM, or -EINVAL with MuJoCo's own sentence in `err`.
int scene_open(struct scene *s, char *err, size_t err_len);
void scene_close(struct scene *s);

// Puts the arm there at once, standing still; q[ARM_JOINTS] in rad.
void scene_set_pose(struct scene *s, const double *q);

// Reads positions and velocities of the joints, rad and rad/s; qd may be NULL.
void scene_get_pose(const struct scene *s, double *q, double *qd);

// Puts cube `i` with its top face centred on top_m[3] (x, y, z over the table), on its plinth.
void scene_place_cube(struct scene *s, int i, const double *top_m);

// Position of the tip, between the fingers, world coordinates.
void scene_tip(const struct scene *s, double tip_m[3]);

// One physics step towards these servo references, rad and rad/s, each [ARM_JOINTS].
void scene_step(struct scene *s, const double *q_ref, const double *qd_ref);

#endif
