// A loop in a world of chance, for keyframes and replays: what is put on the board in a tick is
// one struct, drawn from a seed, that can be put on any number of boards. Most ticks are of a robot
// that works, for otherwise the arm would never move; faults of all kinds come in between.
#ifndef ACTD_LOOP_RANDOM_H
#define ACTD_LOOP_RANDOM_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/chunks_impl.h"
#include "daemon/keyframe.h"
#include "daemon/loop_impl.h"

#define R_JOINTS  4
#define R_CAMERAS 2
#define R_ROWS    30
#define R_PERIOD  (5 * NS_PER_MS)
#define R_STEP    (20 * NS_PER_MS)
#define R_CHUNKS  2 // in one tick at most

// ---- chance ----------------------------------------------------------------------------------

static inline uint64_t draw(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}
static inline double part(uint64_t *seed) // [0, 1)
{
    return (double)(draw(seed) >> 11) / (double)(UINT64_C(1) << 53);
}
static inline bool happens(uint64_t *seed, double p)
{
    return part(seed) < p;
}

// ---- what is put on a board before a tick ----------------------------------------------------

struct random_chunk { // struct chunk, with room
    uint64_t id;
    ns_t anchor_ns, oldest_ns, ready_ns, step_ns;
    uint32_t generation;
    int32_t rows, joints;
    float row[R_ROWS * R_JOINTS];
};

struct stimulus {
    ns_t now, lateness, made, reported, worked;
    uint64_t tick;
    bool joints_new;
    struct joint_sample joints;
    uint32_t refused_in_a_row;
    int refused_for, refused_joint;
    double refused_value;
    bool joints_slow;
    struct tick_camera camera[R_CAMERAS];
    int chunks;
    struct random_chunk chunk[R_CHUNKS];
    uint32_t requests, stalls, failures;
    bool inferring, started;
    int starved;
    bool taken; // the bus has had the command before, and
    bool lost;  // did not send it
};

// One loop and all that it needs.
struct rig {
    struct board board;
    struct tape *tape;
    struct loop *loop;
    uint64_t sequence; // of the newest command that the bus took
    struct command command;
    bool got; // in this tick
};

static inline struct loop_config random_config(uint64_t *seed)
{
    struct loop_config c;

    memset(&c, 0, sizeof c);
    c.control_hz = 200;
    c.joints = R_JOINTS;
    c.following_ticks = 10;
    c.joints_period_ns = 10 * NS_PER_MS;
    c.n_cameras = R_CAMERAS;
    c.hold_ns = 200 * NS_PER_MS;
    c.ttl_ns = 20 * NS_PER_MS;
    c.tick_gap_ns = 100 * NS_PER_MS;
    c.fresh_ticks = 20;
    c.approach_scale = 0.5;
    c.approach_tolerance = 0.02;
    c.has_home = true;
    c.limits.n = R_JOINTS;
    for (int i = 0; i < R_CAMERAS; i++) {
        c.camera_period_ns[i] = 33 * NS_PER_MS;
        c.frozen_stops[i] = i == 0;
        c.frozen_warns[i] = true;
    }
    for (int i = 0; i < R_JOINTS; i++) {
        c.limits.min[i] = -2;
        c.limits.max[i] = 2;
        c.limits.velocity[i] = 2;
        c.limits.acceleration[i] = 10;
        c.limits.stop_acceleration[i] = 20;
        c.limits.jerk[i] = i == 1 ? 200 : 0;
        c.following_error[i] = 0.2;
        c.chunks.blend[i] = i != R_JOINTS - 1;
    }
    for (int b = 0; b < BOARD_BUDGETS; b++)
        c.budget_ns[b] = 3 * NS_PER_MS;
    c.budget_ns[BOARD_CHUNK] = 200 * NS_PER_MS;
    c.budget_ns[BOARD_SENSOR] = 40 * NS_PER_MS;
    c.chunks.mode = (enum chunk_mode)(draw(seed) % (CHUNK_CONSERVATIVE + 1));
    c.chunks.interpolation = (enum chunk_interpolation)(draw(seed) % 3);
    c.chunks.rows = R_ROWS - (int)(draw(seed) % 5);
    c.chunks.joints = R_JOINTS;
    c.chunks.capacity = 3 + (int)(draw(seed) % 8);
    c.chunks.step_ns = R_STEP;
    c.chunks.fade_ns = 60 * NS_PER_MS;
    c.chunks.bridge_ns = 200 * NS_PER_MS;
    c.chunks.ensemble_coeff = 0.01;
    return c;
}

static inline void rig_start(struct rig *r, const struct loop_config *cfg)
{
    struct tape_sizes sizes = {{4096, 4096, 4096, 4096, 1 << 20}};

    memset(r, 0, sizeof *r);
    assert_int_equal(board_init(&r->board, R_CAMERAS, R_ROWS, R_JOINTS), 0);
    assert_int_equal(tape_new(&r->tape, &sizes), 0);
    r->board.tape = r->tape;
    assert_int_equal(loop_new(&r->loop, cfg, &r->board), 0);
}

static inline void rig_end(struct rig *r)
{
    loop_free(r->loop);
    tape_free(r->tape);
    board_free(&r->board);
}

// ---- drawing ---------------------------------------------------------------------------------

struct chance { // what the world remembers
    uint64_t seed;
    struct stimulus s;
    double measured[R_JOINTS];
    uint64_t samples, chunk_id;
    uint32_t generation;
    int joints_away, camera_away[R_CAMERAS], policy_away; // ticks to come
    double goal[R_JOINTS];
    int pushed, pushed_joint; // for so many ticks
    double pushed_by;         // rad from the command; > 2: to there
};

static inline void chance_start(struct chance *w, uint64_t seed)
{
    memset(w, 0, sizeof *w);
    w->seed = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    w->s.now = 1000 * NS_PER_S;
    w->generation = 1;
}

static inline void draw_joints(struct chance *w, const struct rig *r)
{
    struct stimulus *s = &w->s;
    uint64_t *d = &w->seed;

    if (r->got)
        memcpy(w->measured, r->command.pos, sizeof w->measured);
    if (happens(d, 0.001))
        w->joints_away = (int)(draw(d) % 60);
    if (happens(d, 0.001)) { // pushed, or lifted out of its limits
        w->pushed = (int)(draw(d) % 100);
        w->pushed_joint = (int)(draw(d) % R_JOINTS);
        w->pushed_by = happens(d, 0.2) ? 2.1 : part(d) - 0.5;
    }
    if (w->pushed > 0 && w->pushed--)
        w->measured[w->pushed_joint] =
            w->pushed_by > 2 ? w->pushed_by
                             : r->command.pos[w->pushed_joint] + w->pushed_by;
    s->joints_slow = happens(d, 0.01);
    s->refused_in_a_row = happens(d, 0.002) ? (uint32_t)(draw(d) % 6) : 0;
    s->refused_for = REASON_JOINTS_INVALID + (int)(draw(d) % 4);
    s->refused_joint = (int)(draw(d) % R_JOINTS);
    s->refused_value = part(d);
    s->joints_new = w->joints_away == 0 && s->tick % 2 == 0;
    if (w->joints_away > 0)
        w->joints_away--;
    if (!s->joints_new)
        return;
    memset(&s->joints, 0, sizeof s->joints);
    s->joints.number = ++w->samples;
    s->joints.received_ns = s->now;
    s->joints.capture_ns = s->now - (ns_t)(part(d) * 3e6);
    s->joints.n = R_JOINTS;
    for (int i = 0; i < R_JOINTS; i++) {
        s->joints.pos[i] = w->measured[i] + 1e-3 * part(d);
        s->joints.vel[i] = part(d);
    }
}

static inline void draw_cameras(struct chance *w)
{
    struct stimulus *s = &w->s;
    uint64_t *d = &w->seed;

    for (int i = 0; i < R_CAMERAS; i++) {
        struct tick_camera *c = &s->camera[i];

        if (happens(d, 0.0005))
            w->camera_away[i] = (int)(draw(d) % 150);
        if (w->camera_away[i] > 0)
            w->camera_away[i]--;
        else if (s->tick % 7 == 0)
            c->received_ns = c->changed_ns = s->now;
        c->slow = happens(d, 0.01);
        c->corrupt_in_a_row = happens(d, 0.001) ? (uint32_t)(draw(d) % 8) : 0;
        c->refused_in_a_row = happens(d, 0.01) ? 1 : 0;
        c->same_in_a_row = happens(d, 0.002) ? (uint32_t)(draw(d) % 20) : 0;
    }
}

static inline void draw_chunk(struct chance *w, struct random_chunk *c)
{
    uint64_t *d = &w->seed;
    const struct stimulus *s = &w->s;

    memset(c, 0, sizeof *c);
    w->generation += happens(d, 0.05);
    c->id = ++w->chunk_id - (happens(d, 0.02) ? 2 : 0);
    c->generation = w->generation;
    c->anchor_ns = c->oldest_ns = s->now - (ns_t)(part(d) * 80e6);
    if (happens(d, 0.05))
        c->anchor_ns -= (ns_t)(part(d) * 1e9);
    c->ready_ns = s->now;
    c->step_ns = happens(d, 0.2) ? R_STEP / 2 : 0;
    c->rows = R_ROWS - (int)(draw(d) % 8);
    c->joints = R_JOINTS - happens(d, 0.01);
    if (happens(d, 0.1))
        for (int j = 0; j < R_JOINTS; j++)
            w->goal[j] = 3 * (part(d) - 0.5);
    for (int k = 0; k < c->rows; k++)
        for (int j = 0; j < c->joints; j++) {
            double reach = 0.01 * (k + 1), way = w->goal[j] - w->measured[j];

            c->row[k * c->joints + j] =
                (float)(w->measured[j] + fmax(-reach, fmin(reach, way)) +
                        0.002 * part(d));
        }
    if (happens(d, 0.01))
        c->row[draw(d) % 20] = NAN;
    if (happens(d, 0.01))
        c->row[draw(d) % 20] = 100;
}

static inline void draw_policy(struct chance *w)
{
    struct stimulus *s = &w->s;
    uint64_t *d = &w->seed;

    s->chunks = 0;
    if (happens(d, 0.001))
        w->policy_away = (int)(draw(d) % 250);
    if (w->policy_away > 0)
        w->policy_away--;
    else if (s->tick % 17 == 0)
        s->chunks = 1 + happens(d, 0.1);
    for (int i = 0; i < s->chunks; i++)
        draw_chunk(w, &s->chunk[i]);
    s->failures = happens(d, 0.0005) ? 3 : 0;
    s->inferring = happens(d, 0.5);
    s->starved = happens(d, 0.02) ? BOARD_SKEW : BOARD_FED;
    s->started = s->tick > 3 && !happens(d, 0.0002);
}

static inline void draw_requests(struct chance *w, const struct rig *r)
{
    static const struct {
        uint32_t request;
        double p;
    } of[] = {{BOARD_ARM, 0.02},    {BOARD_DISARM, 0.0005}, {BOARD_STOP, 0.0005},
              {BOARD_ESTOP, 0.001}, {BOARD_RESET, 0.02},    {BOARD_HOME, 0.0015}};
    struct stimulus *s = &w->s;

    s->requests = 0;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (happens(&w->seed, of[i].p))
            s->requests |= of[i].request;
    s->stalls += happens(&w->seed, 0.0003);
    s->taken = !happens(&w->seed, 0.01);
    s->lost = r->got && happens(&w->seed, 0.01);
}

static inline void draw_times(struct chance *w)
{
    struct stimulus *s = &w->s;
    uint64_t *d = &w->seed;
    uint64_t skip = happens(d, 0.002) ? draw(d) % 30 : 0;
    ns_t due = s->now - s->lateness + (ns_t)(1 + skip) * R_PERIOD;

    s->tick += 1 + skip;
    s->lateness = (ns_t)(part(d) * (happens(d, 0.01) ? 4e6 : 1e5));
    s->now = due + s->lateness;
    s->made = s->now + 10000 + (ns_t)(part(d) * 1e5);
    s->reported = s->made + 1000 + (ns_t)(part(d) * 1e4);
    s->worked = s->reported - s->now + (ns_t)(part(d) * (happens(d, 0.01) ? 4e6 : 1e4));
}

// The next tick's, after what r did in the one before.
static inline const struct stimulus *chance_next(struct chance *w, const struct rig *r)
{
    draw_times(w);
    draw_joints(w, r);
    draw_cameras(w);
    draw_policy(w);
    draw_requests(w, r);
    return &w->s;
}

// ---- a tick ----------------------------------------------------------------------------------

static inline void put_chunk(struct board *b, const struct random_chunk *from)
{
    struct chunk *c = ring_reserve(&b->chunks);

    assert_non_null(c);
    c->id = from->id;
    c->anchor_ns = from->anchor_ns;
    c->oldest_ns = from->oldest_ns;
    c->ready_ns = from->ready_ns;
    c->step_ns = from->step_ns;
    c->generation = from->generation;
    c->rows = from->rows;
    c->joints = from->joints;
    memcpy(c->row, from->row, (size_t)c->rows * (size_t)c->joints * sizeof *c->row);
    ring_commit(&b->chunks);
}

static inline void put_marks(struct board *b, const struct stimulus *s)
{
    atomic_store(&b->joint_mark.refused_in_a_row, s->refused_in_a_row);
    atomic_store(&b->joint_mark.refused_for, s->refused_for);
    atomic_store(&b->joint_mark.refused_joint, s->refused_joint);
    atomic_store(&b->joint_mark.refused_value, s->refused_value);
    atomic_store(&b->joint_mark.slow, s->joints_slow);
    for (int i = 0; i < R_CAMERAS; i++) {
        const struct tick_camera *c = &s->camera[i];

        atomic_store(&b->camera[i].received_ns, c->received_ns);
        atomic_store(&b->camera[i].changed_ns, c->changed_ns);
        atomic_store(&b->camera[i].corrupt_in_a_row, c->corrupt_in_a_row);
        atomic_store(&b->camera[i].refused_in_a_row, c->refused_in_a_row);
        atomic_store(&b->camera[i].same_in_a_row, c->same_in_a_row);
        atomic_store(&b->camera[i].slow, c->slow);
    }
    atomic_fetch_or(&b->requests, s->requests);
    atomic_store(&b->stalls, s->stalls);
    atomic_store(&b->policy_failures, s->failures);
    atomic_store(&b->inferring_since_ns, s->inferring ? s->now : 0);
    atomic_store(&b->starved, s->starved);
    atomic_store(&b->started, s->started);
}

// The three times of a tick in the order in which the loop asks; the first only where it has just
// made a command.
static const struct stimulus *clock_of;
static struct loop *clock_loop;
static inline ns_t rig_clock(void)
{
    const struct loop *l = clock_loop;

    if (l->in.reported_ns != 0)
        return clock_of->now + clock_of->worked;
    if (l->in.made_ns == 0 && l->filled && l->gate == GATE_PASSED)
        return clock_of->made;
    return clock_of->reported;
}

// Puts it on the board, ticks, and takes the command.
static inline void rig_tick(struct rig *r, const struct stimulus *s)
{
    struct board *b = &r->board;

    if (s->joints_new)
        slot_write(&b->joints, &s->joints);
    put_marks(b, s);
    for (int i = 0; i < s->chunks; i++)
        put_chunk(b, &s->chunk[i]);
    if (r->got && s->lost)
        atomic_store(&b->lost_command, r->sequence);
    if (!s->taken)
        (void)ring_push(&b->commands, &r->command); // something waits
    clock_of = s;
    clock_loop = r->loop;
    loop_tick(r->loop, s->tick, s->now, s->lateness, rig_clock);
    if (!s->taken)
        ring_release(&b->commands);
    r->got = ring_pop(&b->commands, &r->command);
    if (r->got)
        r->sequence = r->command.sequence;
}

// The record of the tick just run, as it is on the tape; states before it are passed over. Good
// until the next call.
static inline const struct tick_record *rig_record(struct rig *r, size_t *size)
{
    static struct tick_record copy[2];
    static int which;
    const struct tape_entry *e = tape_peek(r->tape, TAPE_TICKS);

    while (e != NULL && e->kind == TAPE_LOOP_STATE) {
        tape_release(r->tape, TAPE_TICKS);
        e = tape_peek(r->tape, TAPE_TICKS);
    }
    assert_non_null(e);
    assert_int_equal(e->kind, TAPE_TICK);
    which = !which;
    *size = e->size;
    memcpy(&copy[which], e + 1, e->size);
    tape_release(r->tape, TAPE_TICKS);
    assert_null(tape_peek(r->tape, TAPE_TICKS));
    return &copy[which];
}

#endif
