// The simulated robot as one thing: arm, servos and task, moved on step by step. No threads, no
// clock, no sockets in here, so the live loop, the lock-step loop and the tests share it.
#ifndef ACTD_SIM_PLANT_H
#define ACTD_SIM_PLANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/sim/scene.h"
#include "daemon/sim/servo.h"
#include "daemon/sim/task.h"

enum { PLANT_NQ = ARM_JOINTS + 1, PLANT_MOCAP = 2 * SCENE_CUBES };

// All that a picture depends on; copied from the physics thread to the camera thread.
struct snapshot {
    double time_s;                   // sim time
    int64_t wall_ns;                 // stamp of the picture
    double qpos[PLANT_NQ];           // as in mjData
    double mocap_m[PLANT_MOCAP * 3]; // places of cubes and plinths
    double tip_m[3], goal_m[3];
};

struct plant {
    struct scene scene;
    struct servo servo;
    struct task task;
    unsigned episodes;                // to run; 0 = without end
    bool begun;                       // somebody drives: the episode's clock runs
    bool done;                        // all episodes are over; the last pose is held
    float final_m[TASK_EPISODES_MAX]; // distance at the end of each episode
};

// Compiles the world, puts the arm at rest and draws the first episode. plain; allocates.
// Returns 0 or -errno with a sentence in err.
int plant_open(struct plant *p, uint64_t seed, unsigned episodes, double command_hz,
               char *err, size_t err_len);
void plant_close(struct plant *p);

// One physics step of SCENE_TIMESTEP_S.
void plant_step(struct plant *p);

// Takes the state for a picture, and puts it into another copy of the world (d's positions are
// computed anew). Pure copies.
void plant_snapshot(const struct plant *p, int64_t wall_ns, struct snapshot *snap);
void plant_restore(struct scene *s, const struct snapshot *snap);

#endif
