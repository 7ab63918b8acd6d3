// The task "reach": bring the tip to the middle of the red cube's top face and stay there.
//
// Episodes are chained: when one ends only the cubes move, the arm goes on from where it stands,
// so a live controller never sees the arm jump.
#ifndef ACTD_SIM_TASK_H
#define ACTD_SIM_TASK_H

#include <stdbool.h>

#include "daemon/sim/rng.h"
#include "daemon/sim/scene.h"

#define TASK_RADIUS_M    0.025 // within this of the goal counts as there
#define TASK_HOLD_S      0.4   // and so long without leaving it
#define TASK_TIME_S      6.0   // an episode fails after this
#define TASK_MIN_START_M 0.06  // a new goal is at least this far from the tip

enum { TASK_EPISODES_MAX = 10000 };

enum task_event { TASK_GOES_ON, TASK_SUCCEEDED, TASK_FAILED };

struct task {
    struct rng rng;
    double goal_m[3];
    double started_s, entered_s; // sim time; entered_s < 0 while outside the radius
    double distance_m, best_m;
    unsigned episode, succeeded, failed; // episode counts from 0
};

void task_init(struct task *t, uint64_t seed);

// Draws new places for the three cubes and starts an episode at sim time now_s. The red one can
// be reached by the arm, is far enough from the tip, and no other cube stands before it in `front`.
void task_start(struct task *t, struct scene *s, double now_s);

// Judges the tip's place after each physics step. On success or failure the counters are already
// updated; the caller starts the next episode.
enum task_event task_update(struct task *t, const struct scene *s, double now_s);

#endif
