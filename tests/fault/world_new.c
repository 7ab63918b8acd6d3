// A world's beginning and end, and what a scenario does with one.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/tape.h"
#include "tests/fault/world_impl.h"

#define MS NS_PER_MS

static void default_loop(struct loop_config *c)
{
    *c = (struct loop_config){.control_hz = 200,
                              .joints = 3,
                              .following_ticks = 10,
                              .has_home = true,
                              .joints_period_ns = 10 * MS,
                              .n_cameras = WORLD_CAMERAS,
                              .camera_period_ns = {40 * MS, 40 * MS},
                              .frozen_stops = {true, true},
                              .frozen_warns = {true, true},
                              .budget_ns = {5 * MS, 5 * MS / 2, 1600 * MS, 100 * MS},
                              .hold_ns = 200 * MS,
                              .ttl_ns = 20 * MS,
                              .tick_gap_ns = 100 * MS,
                              .fresh_ticks = 50,
                              .approach_scale = 0.25,
                              .approach_tolerance = 0.05};
    c->limits.n = c->joints;
    for (int i = 0; i < c->joints; i++) {
        c->limits.min[i] = -2;
        c->limits.max[i] = 2;
        c->limits.velocity[i] = 2;
        c->limits.acceleration[i] = 10;
        c->limits.stop_acceleration[i] = 20;
        c->following_error[i] = 0.2;
        c->chunks.blend[i] = true;
    }
    c->chunks.mode = CHUNK_CROSSFADE;
    c->chunks.interpolation = CHUNK_LINEAR;
    c->chunks.rows = 80;
    c->chunks.joints = c->joints;
    c->chunks.capacity = 16;
    c->chunks.step_ns = 20 * MS;
    c->chunks.fade_ns = 150 * MS;
}

struct world_config world_defaults(void)
{
    struct world_config c = {.joints_hz = 100,
                             .camera_hz = {25, 25},
                             .rows = 80,
                             .brain = BRAIN_SINE,
                             .latency_ns = 30 * MS,
                             .tick_work_ns = 20 * NS_PER_US,
                             .wire_ns = MS,
                             .every_rows = 20,
                             .max_skew_ns = 50 * MS,
                             .amplitude = 0.4,
                             .frequency_hz = 0.15,
                             .goal_speed = 0.5,
                             .max_jump = 0.1,
                             .monitor = true,
                             .seed = 1};

    default_loop(&c.loop);
    c.plant.joints = c.loop.joints;
    c.plant.lag_s = 0.02;
    for (int i = 0; i < c.plant.joints; i++) {
        snprintf(c.plant.name[i], sizeof c.plant.name[i], "joint%d", i);
        c.plant.speed[i] = 3;
        c.plant.acceleration[i] = 40;
        c.plant.start[i] = 0.1 * i;
    }
    return c;
}

static int new_intake(struct world *w)
{
    const struct intake_config c = world_intake(&w->cfg);
    const char *name[ACTD_MAX_JOINTS];

    for (int i = 0; i < c.joints; i++)
        name[i] = w->plant.cfg.name[i];
    return intake_new(&w->in->intake, &c, name, &w->board);
}

static int new_cameras(struct world *w)
{
    int rc = 0;

    for (int i = 0; i < w->cfg.loop.n_cameras && rc == 0; i++) {
        rc = camera_new(&w->camera[i], &w->board.camera[i], 0);
        if (rc == 0)
            camera_declare(w->camera[i], w->cfg.camera_hz[i], &w->board.armed);
        if (rc == 0)
            camera_record(w->camera[i], w->tape, 1 + i);
        if (rc == 0 && w->cfg.expects)
            camera_expect(w->camera[i], WORLD_SIDE, WORLD_SIDE);
    }
    return rc;
}

// The streams start together, a tick and a half after the loop, and stay in phase.
static void start_clocks(struct world *w)
{
    w->now = WORLD_START_NS;
    w->wall_offset_ns = WORLD_WALL_NS - WORLD_START_NS;
    world_current = w;
    plant_init(&w->plant, &w->cfg.plant, w->now);
    schedule_start(&w->schedule, w->now + clock_period_ns(w->cfg.loop.control_hz),
                   clock_period_ns(w->cfg.loop.control_hz));
    for (int i = 0; i <= w->cfg.loop.n_cameras; i++)
        w->in->sender[i].next_ns = w->schedule.next_ns;
    w->in->command_at_ns = NEVER;
    w->in->next_look_ns = w->now + MONITOR_LOOK_NS;
}

int world_new(struct world **out, const struct world_config *cfg)
{
    struct world *w = calloc(1, sizeof *w);
    int rc = -ENOMEM;

    *out = NULL;
    if (w)
        w->in = calloc(1, sizeof *w->in);
    if (!w || !w->in) {
        free(w);
        return rc;
    }
    w->cfg = *cfg;
    injector_init(&w->injector, cfg->seed);
    start_clocks(w);
    rc = board_init(&w->board, cfg->loop.n_cameras, cfg->rows, cfg->loop.joints);
    if (rc == 0)
        rc = world_record_begin(w);
    if (rc == 0)
        rc = new_intake(w);
    if (rc == 0)
        rc = new_cameras(w);
    if (rc == 0)
        rc = loop_new(&w->loop, &w->cfg.loop, &w->board);
    if (rc == 0)
        rc = brain_new(w);
    if (rc != 0) {
        world_free(w);
        return rc;
    }
    atomic_store(&w->board.started, true);
    *out = w;
    return 0;
}

void world_free(struct world *w)
{
    if (!w)
        return;
    world_record_end(w);
    brain_free(w);
    for (int i = 0; i < WORLD_CAMERAS; i++)
        camera_stop(w->camera[i]);
    loop_free(w->loop);
    intake_free(w->in->intake);
    board_free(&w->board);
    tape_free(w->tape);
    while (w->in->letters > 0)
        letter_free(w, 0);
    for (int i = 0; i <= WORLD_CAMERAS; i++)
        free(w->in->sender[i].kept.bytes);
    if (world_current == w)
        world_current = NULL;
    free(w->in);
    free(w);
}

bool world_scratch(char out[WORLD_PATH], const char *name)
{
    const char *in = getenv("TMPDIR");

    snprintf(out, WORLD_PATH, "%.80s/actd-fault-%.16s.XXXXXX", in ? in : "/tmp", name);
    return mkdtemp(out) != NULL;
}

void world_run(struct world *w, uint64_t ticks)
{
    uint64_t until = w->schedule.tick + ticks;

    while (w->schedule.tick < until)
        world_step(w);
}

bool world_until(struct world *w, enum ladder_state s, int most)
{
    for (int i = 0; i < most && world_mode(w) != s; i++)
        world_step(w);
    return world_mode(w) == s;
}

bool world_to_running(struct world *w)
{
    if (!world_until(w, LADDER_READY, 400))
        return false;
    world_request(w, BOARD_ARM);
    world_step(w);
    if (!world_until(w, LADDER_RUNNING, 3000))
        return false;
    world_run(w, 200);
    while (w->schedule.tick % WORLD_PHASE_TICKS != 0)
        world_step(w);
    return world_mode(w) == LADDER_RUNNING;
}

void world_request(struct world *w, uint32_t bits)
{
    atomic_fetch_or(&w->board.requests, bits);
}

void world_inject(struct world *w, struct injection one)
{
    one.from += w->schedule.tick;
    (void)injector_add(&w->injector, &one, w->schedule.tick);
}

const struct loop_report *world_report(const struct world *w)
{
    return loop_last(w->loop);
}

enum ladder_state world_mode(const struct world *w)
{
    return loop_last(w->loop)->mode;
}

enum ladder_reason world_reason(const struct world *w)
{
    return loop_last(w->loop)->reason;
}
