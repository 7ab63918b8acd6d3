#include "daemon/sim/task.h"

#include <math.h>
#include <string.h>

// Reachable with the tool straight down and inside both cameras' view: see arm.h for the lengths.
#define R_MIN_M     0.15
#define R_MAX_M     0.30
#define AZIMUTH_RAD 1.0
#define APART_M     0.075 // between cubes, so that the open fingers fit in between

void task_init(struct task *t, uint64_t seed)
{
    memset(t, 0, sizeof *t);
    t->rng.state = seed * 0x9e3779b97f4a7c15u + 1;
    t->entered_s = -1;
}

static void draw(struct rng *g, double top_m[3])
{
    // The square root makes places uniform over the area of the ring.
    double r = sqrt(rng_uniform(g, R_MIN_M * R_MIN_M, R_MAX_M * R_MAX_M));
    double az = rng_uniform(g, -AZIMUTH_RAD, AZIMUTH_RAD);
    top_m[0] = r * cos(az);
    top_m[1] = r * sin(az);
    top_m[2] = rng_uniform(g, 0, SCENE_PLINTH_MAX_M) + 2 * SCENE_CUBE_HALF_M;
}

// True if the column of cube and plinth under `top` touches the line of sight from the front
// camera to the middle of the goal's cube.
static bool hides(const double *top, const double *goal)
{
    const double *c = scene_front_m;
    double dx = goal[0] - c[0], dy = goal[1] - c[1];
    double s = ((top[0] - c[0]) * dx + (top[1] - c[1]) * dy) / (dx * dx + dy * dy);
    if (s >= 1)
        return false;
    double off = hypot(c[0] + s * dx - top[0], c[1] + s * dy - top[1]);
    double height = c[2] + s * (goal[2] - SCENE_CUBE_HALF_M - c[2]);
    return off < 2.2 * SCENE_CUBE_HALF_M && height < top[2] + SCENE_CUBE_HALF_M;
}

static bool fits(double top[SCENE_CUBES][3], int n)
{
    for (int i = 0; i < n; i++)
        if (hypot(top[i][0] - top[n][0], top[i][1] - top[n][1]) < APART_M)
            return false;
    return n == 0 || !hides(top[n], top[0]);
}

void task_start(struct task *t, struct scene *s, double now_s)
{
    double top[SCENE_CUBES][3], tip[3];

    scene_tip(s, tip);
    do
        draw(&t->rng, top[0]);
    while (mju_dist3(top[0], tip) < TASK_MIN_START_M);
    for (int i = 1; i < SCENE_CUBES; i++)
        do
            draw(&t->rng, top[i]);
        while (!fits(top, i));
    for (int i = 0; i < SCENE_CUBES; i++)
        scene_place_cube(s, i, top[i]);

    mju_copy3(t->goal_m, top[0]);
    t->started_s = now_s;
    t->entered_s = -1;
    t->distance_m = t->best_m = mju_dist3(top[0], tip);
}

enum task_event task_update(struct task *t, const struct scene *s, double now_s)
{
    double tip[3];

    scene_tip(s, tip);
    t->distance_m = mju_dist3(tip, t->goal_m);
    t->best_m = fmin(t->best_m, t->distance_m);
    if (t->distance_m > TASK_RADIUS_M)
        t->entered_s = -1;
    else if (t->entered_s < 0)
        t->entered_s = now_s;

    if (t->entered_s >= 0 && now_s - t->entered_s >= TASK_HOLD_S) {
        t->succeeded++;
        t->episode++;
        return TASK_SUCCEEDED;
    }
    if (now_s - t->started_s >= TASK_TIME_S) {
        t->failed++;
        t->episode++;
        return TASK_FAILED;
    }
    return TASK_GOES_ON;
}
