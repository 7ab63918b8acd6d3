// A small world for the loop under a clock the test owns: one driver, one camera (or
// several), and a policy that answers late. Allocations are counted around every tick.
#ifndef ACTD_LOOP_WORLD_H
#define ACTD_LOOP_WORLD_H

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/chunks_impl.h"
#include "daemon/loop_impl.h"
#include "tests/unit/count_allocations.h"

#define MS     NS_PER_MS
#define JOINTS 3
#define ROWS   40
#define TICK   (5 * MS)
#define STEP   (20 * MS)

// ---- the world ------------------------------------------------------------------------
struct world {
    struct board board;
    struct loop_config cfg;
    struct loop *loop;
    ns_t now, next_joints, next_frame;
    uint64_t tick, samples, chunk_id, sequence;
    double measured[JOINTS];
    bool joints_off, camera_off, policy_off, stuck; // stuck: the arm does not follow
    ns_t latency;                                   // of the policy
    int every;                                      // ticks between inferences
    double goal;                                    // where the policy drives all joints
    struct command last;
    uint64_t got;      // commands
    uint64_t last_got; // in this tick
    ns_t lateness;     // of the next wake-up
    bool wild;         // the policy wants what is out of range, in one row
    bool fuzzy;        // positions need not be checked for steps (after an arming)
};

static ns_t virtual_now;
static inline ns_t virtual_clock(void)
{
    return virtual_now;
}

static inline struct loop_config default_config(void)
{
    struct loop_config c = {.control_hz = 200,
                            .joints = JOINTS,
                            .following_ticks = 10,
                            .joints_period_ns = 10 * MS,
                            .n_cameras = 1,
                            .camera_period_ns = {33 * MS},
                            .hold_ns = 200 * MS,
                            .ttl_ns = 20 * MS,
                            .tick_gap_ns = 100 * MS,
                            .fresh_ticks = 50,
                            .approach_scale = 0.25,
                            .approach_tolerance = 0.02};

    c.limits.n = JOINTS;
    for (int i = 0; i < JOINTS; i++) {
        c.limits.min[i] = -2;
        c.limits.max[i] = 2;
        c.limits.velocity[i] = 2;
        c.limits.acceleration[i] = 10;
        c.limits.stop_acceleration[i] = 20;
        c.following_error[i] = 0.2;
        c.chunks.blend[i] = true;
    }
    c.chunks.mode = CHUNK_CROSSFADE;
    c.chunks.interpolation = CHUNK_CUBIC;
    c.chunks.rows = ROWS;
    c.chunks.joints = JOINTS;
    c.chunks.capacity = 16;
    c.chunks.step_ns = STEP;
    c.chunks.fade_ns = 60 * MS;
    return c;
}

static inline void world_start(struct world *w, const struct loop_config *cfg)
{
    memset(w, 0, sizeof *w);
    w->cfg = *cfg;
    assert_int_equal(board_init(&w->board, cfg->n_cameras, ROWS, JOINTS), 0);
    assert_int_equal(loop_new(&w->loop, cfg, &w->board), 0);
    w->now = 1000 * NS_PER_S;
    w->next_joints = w->next_frame = w->now;
    w->latency = 30 * MS;
    w->every = 20;
    w->goal = 0.5;
    for (int i = 0; i < JOINTS; i++)
        w->measured[i] = 0.1 * i;
}

static inline void world_end(struct world *w)
{
    loop_free(w->loop);
    board_free(&w->board);
}

static inline void send_joints(struct world *w)
{
    struct joint_sample s = {
        .number = ++w->samples, .received_ns = w->now, .capture_ns = w->now, .n = JOINTS};

    memcpy(s.pos, w->measured, sizeof w->measured);
    slot_write(&w->board.joints, &s);
}

static inline void send_frame(struct world *w)
{
    atomic_store(&w->board.camera[0].capture_ns, w->now);
    atomic_store(&w->board.camera[0].received_ns, w->now);
}

// A chunk from an observation at `anchor`: from the measured pose to the goal
// at 0.5 rad/s.
static inline void send_chunk(struct world *w, ns_t anchor)
{
    struct chunk *c = ring_reserve(&w->board.chunks);

    if (c == NULL)
        return;
    c->id = ++w->chunk_id;
    c->anchor_ns = c->oldest_ns = anchor;
    c->ready_ns = w->now;
    c->rows = ROWS;
    c->joints = JOINTS;
    for (int k = 0; k < ROWS; k++)
        for (int j = 0; j < JOINTS; j++) {
            double way = w->goal - w->measured[j], reach = 0.5 * 0.02 * (k + 1);

            c->row[k * JOINTS + j] =
                (float)(w->measured[j] + fmax(-reach, fmin(reach, way)));
        }
    if (w->wild)
        c->row[5 * JOINTS + 1] = 6.01f;
    ring_commit(&w->board.chunks);
}

static inline void take_commands(struct world *w)
{
    struct command c;

    w->last_got = 0;
    while (ring_pop(&w->board.commands, &c)) {
        assert_int_equal(c.sequence, w->sequence + 1); // none lost, none twice
        w->sequence = c.sequence;
        for (int j = 0; j < JOINTS; j++) {
            assert_true(isfinite(c.pos[j]) && fabs(c.pos[j]) <= 2);
            if (w->got > 0 && !w->fuzzy && c.mode > LADDER_READY)
                assert_true(fabs(c.pos[j] - w->last.pos[j]) <= 2 * 0.005 + 1e-9);
            if (!w->stuck)
                w->measured[j] = c.pos[j];
        }
        w->last = c;
        w->got++;
        w->last_got++;
    }
}

// One tick of everything. skip: ticks that the loop was away before this one.
static inline void step_skip(struct world *w, uint64_t skip)
{
    w->now += (ns_t)(skip + 1) * TICK;
    w->tick += skip;
    if (w->now >= w->next_joints) {
        if (!w->joints_off)
            send_joints(w);
        while (w->next_joints <= w->now)
            w->next_joints += 10 * MS;
    }
    if (w->now >= w->next_frame) {
        if (!w->camera_off)
            send_frame(w);
        while (w->next_frame <= w->now)
            w->next_frame += 33 * MS;
    }
    if (!w->policy_off && w->tick % (uint64_t)w->every == 0)
        send_chunk(w, w->now - w->latency);
    virtual_now = w->now + 20 * NS_PER_US;
    counting = true;
    loop_tick(w->loop, w->tick, w->now, w->lateness, virtual_clock);
    counting = false;
    w->tick++;
    take_commands(w);
    assert_int_equal(loop_last(w->loop)->ticks_run + loop_last(w->loop)->skipped,
                     w->tick);
}

static inline void step(struct world *w)
{
    step_skip(w, 0);
}

static inline enum ladder_state mode(const struct world *w)
{
    return loop_last(w->loop)->mode;
}

static inline enum ladder_reason reason(const struct world *w)
{
    return loop_last(w->loop)->reason;
}

static inline void request(struct world *w, uint32_t bits)
{
    atomic_fetch_or(&w->board.requests, bits);
}

// Steps until the mode is reached; how many it took. Fails after `most`.
static inline int until(struct world *w, enum ladder_state s, int most)
{
    for (int i = 0; i < most; i++) {
        if (mode(w) == s)
            return i;
        step(w);
    }
    if (mode(w) != s)
        fail_msg("tick %lu: %s instead of %s (%s)", (unsigned long)w->tick,
                 ladder_state_name(mode(w)), ladder_state_name(s),
                 ladder_reason_name(reason(w)));
    return most;
}

static inline void to_running(struct world *w)
{
    atomic_store(&w->board.started, true);
    until(w, LADDER_READY, 200);
    w->fuzzy = true;
    request(w, BOARD_ARM);
    step(w);
    w->fuzzy = false;
    assert_int_equal(mode(w), LADDER_APPROACH);
    until(w, LADDER_RUNNING, 2000);
}

// The newest but `back` step of the ladder.
static inline void assert_event(const struct world *w, uint64_t back,
                                enum ladder_reason reason, int index, double value)
{
    const struct loop_report *r = loop_last(w->loop);
    const struct loop_event *e = &r->event[(r->events - 1 - back) % BOARD_EVENTS];

    assert_int_equal(e->reason, reason);
    assert_int_equal(e->index, index);
    assert_true(fabs(e->value - value) < 1e-9);
}

#endif
