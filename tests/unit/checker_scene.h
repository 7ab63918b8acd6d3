// A tiny daemon that does what it should, for the tests of the checker: it arms, runs, holds,
// disarms, sags, runs again with ticks skipped, stops, goes home and has an emergency stop, in
// 640 ticks. A spoil changes what the checker gets to see of it. One test includes this once.
#ifndef ACTD_TESTS_CHECKER_SCENE_H
#define ACTD_TESTS_CHECKER_SCENE_H

#include <math.h>
#include <stdint.h>
#include <string.h>

// The checker belongs to the tests, so no library has it.
#include "tests/fault/checker.c"        // NOLINT
#include "tests/fault/checker_chunks.c" // NOLINT
#include "tests/fault/checker_ladder.c" // NOLINT

#define JOINTS   2
#define PERIOD   INT64_C(5000000) // ns: 200 Hz
#define STEP     INT64_C(20000000)
#define ROWS     60
#define START    INT64_C(1000000000)
#define END_TICK 640

enum {
    NONE_MODE,
    INIT,
    WAITING,
    READY,
    APPROACH,
    RUNNING,
    HOLD,
    STOPPING,
    STOPPED,
    ESTOP,
    DISARMING,
    HOMING
};

struct scene; // the stream: a tiny daemon that does what it should
struct spoil {
    enum checker_rule rule;
    uint64_t at; // tick, 0 = every
    void (*tick)(struct scene *s, struct checker_tick *t, struct checker_command *m);
    void (*chunk)(struct checker_config *cfg, int *rows, int *joints, float *row);
    void (*sent)(uint64_t *sequence, int64_t *ttl, int64_t *now);
    void (*heard)(struct checker_command *m);
    void (*obeyed)(uint64_t *sequence, int64_t *now);
    void (*config)(struct checker_config *cfg);
};

struct scene {
    struct checker *checker;
    struct checker_config cfg;
    const struct spoil *spoil;
    int mode;
    uint64_t skipped, sequence, running_tick;
    double pos[JOINTS], vel[JOINTS], measured[JOINTS];
    uint64_t chunk_id;
    int64_t anchor_ns;
};

static struct checker_config config(void)
{
    struct checker_config c = {
        .joints = JOINTS,
        .min = {-1, -1},
        .max = {1, 1},
        .velocity = {1, 1},
        .acceleration = {10, 10},
        .jerk = {0, 200},
        .stop_acceleration = {20, 20},
        .blend = {true, false},
        .approach_scale = 0.25,
        .outside = 0.002,
        .period_ns = PERIOD,
        .hold_ns = 200000000,
        .ttl_ns = 20000000,
        .joints_period_ns = 10000000,
        .gap_ns = 100000000,
        .following_error = {0.15, 0},
        .following_ticks = 3,
        .cameras = 1,
        .camera_period_ns = {40000000},
        .interpolation = CHECKER_LINEAR,
        .rows = ROWS,
        .step_ns = STEP,
    };
    return c;
}

static int64_t due(uint64_t tick)
{
    return START + (int64_t)tick * PERIOD;
}

// What the policy wants of joint 0: it rests at 0.2, swings to 0.8 and back in 5 s.
static double wish(const struct scene *s, int64_t at)
{
    double t = (double)(at - due(s->running_tick)) / 1e9;

    return s->running_tick && t > 0 ? 0.5 - 0.3 * cos(1.2566 * t) : 0.2;
}

static void offer(struct scene *s, uint64_t tick, int64_t anchor)
{
    float row[(ROWS + 1) * (JOINTS + 1)];
    int rows = ROWS, joints = JOINTS;
    const struct spoil *x = s->spoil;

    for (int k = 0; k < ROWS; k++) {
        row[k * JOINTS] = (float)wish(s, anchor + k * STEP);
        row[k * JOINTS + 1] = 0.5f;
    }
    s->chunk_id++;
    if (x && x->chunk && x->at == s->chunk_id)
        x->chunk(&s->cfg, &rows, &joints, row);
    if (rows > 0) // else it is never offered
        checker_chunk(s->checker, s->chunk_id, anchor, rows, joints, row, due(tick));
    s->anchor_ns = anchor;
}

// Modes by tick, and what was asked for.
struct scripted {
    uint64_t tick;
    int mode;
    unsigned requests;
};
static const struct scripted script[] = {
    {0, WAITING, 0},
    {10, READY, 0},
    {20, APPROACH, CHECKER_ARM},
    {30, RUNNING, 0},
    {130, HOLD, 0},
    {140, RUNNING, 0},
    {200, DISARMING, CHECKER_DISARM},
    {260, READY, 0},
    {300, APPROACH, CHECKER_ARM},
    {310, RUNNING, 0},
    {400, STOPPING, CHECKER_STOP},
    {404, STOPPED, 0},
    {450, WAITING, CHECKER_RESET},
    {460, READY, 0},
    {470, HOMING, CHECKER_HOME},
    {500, DISARMING, 0},
    {540, READY, 0},
    {550, ESTOP, CHECKER_ESTOP},
    {580, WAITING, CHECKER_RESET},
};

static unsigned follow_script(struct scene *s, uint64_t tick)
{
    for (size_t i = 0; i < sizeof script / sizeof *script; i++)
        if (script[i].tick == tick) {
            s->mode = script[i].mode;
            return script[i].requests;
        }
    return 0;
}

static void prepare(struct scene *s, uint64_t tick)
{
    if (tick == 19 || tick == 299) {
        s->running_tick = 0;
        offer(s, tick, due(tick - 5));
    }
    if (tick == 30 || tick == 310) {
        s->running_tick = tick;
        offer(s, tick, due(tick)); // seen only now, so it replaces what rested
    }
    if (tick == 100 || tick == 360)
        offer(s, tick, due(tick - 4));
    if (tick == 290)
        s->measured[0] -= 0.1; // sagged while idle: it arms from where it is held
    if (tick == 462)
        s->measured[0] -= 0.16; // moved by hand: held there from tick 468 on
    if (tick == 20 || tick == 468)
        for (int j = 0; j < JOINTS; j++) {
            s->pos[j] = s->measured[j];
            s->vel[j] = 0;
        }
}

// Joint 0 only; joint 1 stands still. Towards `to` at most at v and a.
static void towards(struct scene *s, double to, double v, double a)
{
    double dt = 0.005, want = (to - s->pos[0]) / dt,
           most = sqrt(2 * a * fabs(to - s->pos[0]));

    want = fmin(fmax(want, -fmin(v, most)), fmin(v, most));
    want = fmin(fmax(want, s->vel[0] - a * dt), s->vel[0] + a * dt);
    s->vel[0] = want;
    s->pos[0] += want * dt;
}

static void brake(struct scene *s, double a)
{
    s->vel[0] -= fmin(fmax(s->vel[0], -a * 0.005), a * 0.005);
    s->pos[0] += s->vel[0] * 0.005;
}

static void move(struct scene *s, uint64_t tick)
{
    switch (s->mode) {
    case APPROACH:
        towards(s, wish(s, 0), 0.2, 5);
        break;
    case RUNNING:
        towards(s, wish(s, due(tick)), 0.9, 9);
        break;
    case HOMING:
        towards(s, 0, 0.2, 5);
        break;
    case HOLD:
    case DISARMING:
        brake(s, 9);
        break;
    default:
        brake(s, 19);
    }
}

static struct checker_offer *offered(const struct scene *s)
{
    struct checker *c = s->checker;

    for (size_t i = 0; i < c->n_chunks; i++)
        if (c->chunk[i].id == s->chunk_id)
            return &c->chunk[i];
    return NULL;
}

static void fill(struct scene *s, uint64_t tick, struct checker_command *m)
{
    bool follows = s->mode == APPROACH || s->mode == RUNNING;
    double before[JOINTS];

    memcpy(before, s->pos, sizeof before);
    move(s, tick);
    *m = (struct checker_command){.sequence = ++s->sequence,
                                  .tick = tick,
                                  .made_ns = due(tick) + 1000,
                                  .ttl_ns = 20000000,
                                  .mode = s->mode,
                                  .reason = s->mode == RUNNING ? 0 : 12};
    for (int j = 0; j < JOINTS; j++) {
        m->pos[j] = m->wanted[j] = s->pos[j];
        m->vel[j] = (s->pos[j] - before[j]) / 0.005;
    }
    if (!follows)
        return;
    m->chunk_id = s->chunk_id;
    m->wanted[1] = 0.5;
    m->wanted[0] = (double)(float)wish(s, 0);
    if (s->mode == RUNNING) {
        struct checker_offer *o = offered(s);

        m->chunk_row = (double)(due(tick) - s->anchor_ns) / (double)STEP;
        if (o && o->usable && m->chunk_row < o->rows)
            m->wanted[0] = wants(s->checker, o, due(tick), 0);
    }
}

static void hear(struct scene *s, const struct checker_command *m)
{
    struct checker_command got = *m;
    int64_t sent = m->made_ns + 100000, now = m->made_ns + 300000;
    int64_t then = m->made_ns + 4000000, ttl = m->ttl_ns - 100000;
    uint64_t sequence = m->sequence;
    const struct spoil *x = s->spoil;
    bool here = x && (x->at == m->tick);

    if (here && x->sent)
        x->sent(&sequence, &ttl, &sent);
    checker_sent(s->checker, sequence, ttl, sent);
    sequence = m->sequence;
    got.ttl_ns = ttl;
    if (here && x->heard)
        x->heard(&got);
    checker_received(s->checker, &got, now);
    if (here && x->obeyed)
        x->obeyed(&sequence, &then);
    checker_obeyed(s->checker, sequence, then);
}

static void step(struct scene *s, uint64_t tick)
{
    unsigned requests = follow_script(s, tick);
    struct checker_command m;
    const struct spoil *x = s->spoil;
    double measured[JOINTS];
    struct checker_tick t = {.tick = tick,
                             .now_ns = due(tick) + 0,
                             .mode = s->mode,
                             .requests = requests,
                             .measured = measured,
                             .captured_ns = due(tick) - 4000000,
                             .frame_ns = {due(tick) - 400000000},
                             .command = &m};

    if (tick >= 351 && tick <= 353) { // never ran
        s->skipped++;
        return;
    }
    prepare(s, tick);
    memcpy(measured, s->measured, sizeof measured);
    fill(s, tick, &m);
    if (s->mode != HOMING && tick != 290 && s->mode != READY)
        memcpy(s->measured, s->pos, sizeof s->measured);
    t.skipped = s->skipped;
    if (x && x->tick && (x->at == tick || x->at == 0))
        x->tick(s, &t, &m);
    checker_tick(s->checker, &t);
    if (t.command && m.sequence == s->sequence)
        hear(s, &m);
}

static struct checker *play(const struct spoil *spoil)
{
    struct scene s = {.cfg = config(),
                      .spoil = spoil,
                      .mode = INIT,
                      .pos = {0.2, 0.5},
                      .measured = {0.2, 0.5}};

    if (spoil && spoil->config)
        spoil->config(&s.cfg);
    assert_int_equal(checker_new(&s.checker, &s.cfg), 0);
    for (uint64_t tick = 0; tick < END_TICK; tick++)
        step(&s, tick);
    return s.checker;
}

#endif
