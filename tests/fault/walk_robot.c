// Any robot: as many joints, rates, limits and ways of blending as a configuration may have.
#include "tests/fault/walk_impl.h"

#include <math.h>
#include <stdio.h>

#define MS NS_PER_MS

uint32_t walk_pick(struct walk *k, uint32_t n)
{
    return (injector_random32(&k->random) >> 7) % n;
}

double walk_between(struct walk *k, double least, double most)
{
    return least + (most - least) * injector_random01(&k->random);
}

bool walk_chance(struct walk *k, double part)
{
    return injector_random01(&k->random) < part;
}

static double one_of(struct walk *k, const double *list, uint32_t n)
{
    return list[walk_pick(k, n)];
}
#define ONE_OF(k, ...)                       \
    one_of(k, (const double[]){__VA_ARGS__}, \
           sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

static void random_joint(struct walk *k, struct world_config *c, int i, double jerk)
{
    struct guard_limits *l = &c->loop.limits;
    struct plant_config *p = &c->plant;

    l->min[i] = -walk_between(k, 0.4, 3);
    l->max[i] = walk_between(k, 0.4, 3);
    l->velocity[i] = walk_between(k, 0.4, 3);
    l->acceleration[i] = walk_between(k, 2, 30);
    l->stop_acceleration[i] = l->acceleration[i] * walk_between(k, 1, 4);
    l->jerk[i] = jerk > 0 && !walk_chance(k, 0.2) ? jerk * walk_between(k, 0.3, 3) : 0;
    if (walk_chance(k, 0.3)) {
        l->hard_min[i] = l->min[i] - 0.5;
        l->hard_max[i] = l->max[i] + 0.5;
    }
    c->loop.following_error[i] = walk_chance(k, 0.8) ? walk_between(k, 0.2, 0.6) : 0;
    c->loop.home[i] = walk_between(k, l->min[i], l->max[i]);
    c->loop.chunks.blend[i] = walk_chance(k, 0.85);
    snprintf(p->name[i], sizeof p->name[i], "joint%d", i);
    p->speed[i] = 1.5 * l->velocity[i];
    p->acceleration[i] = 4 * l->stop_acceleration[i];
    p->start[i] = walk_between(k, 0.9 * l->min[i], 0.9 * l->max[i]);
    if (walk_chance(k, 0.02))
        p->start[i] = l->max[i] + walk_between(k, 0, 0.004); // half of them too far out
}

static void random_joints(struct walk *k, struct world_config *c)
{
    double jerk = walk_chance(k, 0.5) ? ONE_OF(k, 30, 100, 300, 1000, 3000) : 0;
    int n = 1 + (int)walk_pick(k, 14);

    c->loop.joints = c->loop.limits.n = c->loop.chunks.joints = c->plant.joints = n;
    for (int i = 0; i < n; i++)
        random_joint(k, c, i, jerk);
}

// As config_loop derives them from a configuration.
static void random_chunks(struct walk *k, struct world_config *c)
{
    struct chunks_config *q = &c->loop.chunks;
    int alive;

    q->mode = (enum chunk_mode)walk_pick(k, 7);
    q->interpolation = (enum chunk_interpolation)walk_pick(k, 3);
    q->step_ns = clock_period_ns(ONE_OF(k, 10, 15, 20, 25, 30, 50, 60));
    c->rows = 8 + (int)walk_pick(k, 60);
    q->rows =
        walk_chance(k, 0.7) ? c->rows : 4 + (int)walk_pick(k, (uint32_t)c->rows - 3);
    c->every_rows = 1 + (int)walk_pick(k, (uint32_t)q->rows);
    if (walk_chance(k, 0.6)) // mostly such that chunks overlap
        c->every_rows = 1 + c->every_rows / 2;
    alive = q->rows / c->every_rows + 2;
    q->capacity = alive < 4 ? 4 : alive;
    q->fade_ns = (ns_t)walk_pick(k, 400) * MS;
    q->ensemble_coeff = 0.01;
    q->max_age_ns =
        walk_chance(k, 0.5)
            ? (ns_t)(walk_between(k, 0.3, 2) * (double)q->rows * (double)q->step_ns)
            : 0;
    q->bridge_ns = walk_chance(k, 0.2) ? 0 : (ns_t)walk_pick(k, 700) * MS;
    c->latency_ns =
        (ns_t)(walk_between(k, 0.02, 0.4) * (double)q->rows * (double)q->step_ns);
    if (c->latency_ns > 150 * MS)
        c->latency_ns = 150 * MS;
}

static void random_streams(struct walk *k, struct world_config *c)
{
    c->joints_hz = ONE_OF(k, 30, 50, 100, 125, 200, 250, 500);
    c->loop.joints_period_ns = clock_period_ns(c->joints_hz);
    c->loop.n_cameras = 1 + (int)walk_pick(k, WORLD_CAMERAS);
    c->camera_hz[0] = ONE_OF(k, 10, 15, 25, 30, 60);
    c->camera_hz[1] = walk_chance(k, 0.7) ? c->camera_hz[0] : ONE_OF(k, 10, 25, 30);
    for (int i = 0; i < WORLD_CAMERAS; i++) {
        c->loop.camera_period_ns[i] = clock_period_ns(c->camera_hz[i]);
        c->loop.frozen_stops[i] = walk_chance(k, 0.5);
        c->loop.frozen_warns[i] = c->loop.frozen_stops[i] || walk_chance(k, 0.5);
    }
    c->max_skew_ns = (ns_t)walk_between(k, 20, 120) * MS;
    c->jpeg = walk_chance(k, 0.4);
    c->max_jump = walk_between(k, 0.05, 0.2);
    c->wire_ns = (ns_t)walk_pick(k, 5000) * NS_PER_US;
}

static void random_loop(struct walk *k, struct world_config *c)
{
    struct loop_config *l = &c->loop;
    ns_t period, stale;

    l->control_hz = ONE_OF(k, 50, 60, 100, 125, 200, 250, 333.3, 500, 1000);
    period = clock_period_ns(l->control_hz);
    c->tick_work_ns = (ns_t)walk_pick(k, (uint32_t)(period / 8));
    l->following_ticks = 3 + (int)walk_pick(k, 20);
    l->has_home = walk_chance(k, 0.9);
    l->hold_ns = (ns_t)walk_between(k, 50, 400) * MS;
    l->ttl_ns = 3 * period > 20 * MS ? 3 * period : 20 * MS;
    l->tick_gap_ns = 100 * MS;
    l->fresh_ticks = 5 + (int)walk_pick(k, 46);
    l->approach_scale = walk_between(k, 0.1, 0.6);
    l->approach_tolerance = walk_between(k, 0.02, 0.1);
    stale = 5 * l->joints_period_ns > 100 * MS ? 5 * l->joints_period_ns : 100 * MS;
    l->budget_ns[BOARD_WAKEUP] = period;
    l->budget_ns[BOARD_TICK] = period / 2;
    l->budget_ns[BOARD_SENSOR] = walk_chance(k, 0.7) ? stale : 3 * l->joints_period_ns;
}

void walk_robot(struct walk *k, struct world_config *c)
{
    *c = world_defaults();
    random_joints(k, c);
    random_loop(k, c);
    random_chunks(k, c);
    random_streams(k, c);
    c->loop.budget_ns[BOARD_CHUNK] =
        c->loop.chunks.rows * c->loop.chunks.step_ns / (walk_chance(k, 0.8) ? 1 : 3);
    c->brain = BRAIN_SINE; // the rows are written over anyway
    c->seed = k->random;
}
