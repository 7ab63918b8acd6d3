// The loop under a clock the test owns: a small world of one driver, one camera and a policy
// that answers late, and the commands that come out, tick for tick.
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

#define MS     NS_PER_MS
#define JOINTS 3
#define ROWS   40
#define TICK   (5 * MS)
#define STEP   (20 * MS)

// ---- allocations are counted while `counting` (not under sanitizers: they own malloc) ---------
static volatile int counting;
static volatile long allocations;
#if defined(__has_feature) // clang's way to tell
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#if !defined(__SANITIZE_ADDRESS__)
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void __libc_free(void *);
void *malloc(size_t n)
{
    allocations += counting;
    return __libc_malloc(n);
}
void *calloc(size_t n, size_t m)
{
    allocations += counting;
    return __libc_calloc(n, m);
}
void *realloc(void *p, size_t n)
{
    allocations += counting;
    return __libc_realloc(p, n);
}
void free(void *p)
{
    allocations += counting;
    __libc_free(p);
}
#endif

// ---- the world -------------------------------------------------------------------------------
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
    bool fuzzy;        // positions need not be checked for steps (after an arming)
};

static ns_t virtual_now;
static ns_t virtual_clock(void)
{
    return virtual_now;
}

static struct loop_config default_config(void)
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

static void world_start(struct world *w, const struct loop_config *cfg)
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

static void world_end(struct world *w)
{
    loop_free(w->loop);
    board_free(&w->board);
}

static void send_joints(struct world *w)
{
    struct joint_sample s = {
        .number = ++w->samples, .received_ns = w->now, .capture_ns = w->now, .n = JOINTS};

    memcpy(s.pos, w->measured, sizeof w->measured);
    slot_write(&w->board.joints, &s);
}

static void send_frame(struct world *w)
{
    atomic_store(&w->board.camera[0].capture_ns, w->now);
    atomic_store(&w->board.camera[0].received_ns, w->now);
}

// A chunk from an observation at `anchor`: from the measured pose to the goal at 0.5 rad/s.
static void send_chunk(struct world *w, ns_t anchor)
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
    ring_commit(&w->board.chunks);
}

static void take_commands(struct world *w)
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
static void step_skip(struct world *w, uint64_t skip)
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
    counting = 1;
    loop_tick(w->loop, w->tick, w->now, 0, virtual_clock);
    counting = 0;
    w->tick++;
    take_commands(w);
    assert_int_equal(loop_last(w->loop)->ticks_run + loop_last(w->loop)->skipped,
                     w->tick);
}

static void step(struct world *w)
{
    step_skip(w, 0);
}

static enum ladder_state mode(const struct world *w)
{
    return loop_last(w->loop)->mode;
}

static enum ladder_reason reason(const struct world *w)
{
    return loop_last(w->loop)->reason;
}

static void request(struct world *w, uint32_t bits)
{
    atomic_fetch_or(&w->board.requests, bits);
}

// Steps until the mode is reached; how many it took. Fails after `most`.
static int until(struct world *w, enum ladder_state s, int most)
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

static void to_running(struct world *w)
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

// ---- tests -----------------------------------------------------------------------------------

static void cold_start(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();

    world_start(&w, &cfg);
    w.joints_off = w.camera_off = w.policy_off = true;
    for (int i = 0; i < 10; i++)
        step(&w);
    assert_int_equal(mode(&w), LADDER_INIT);
    assert_int_equal(reason(&w), REASON_JOINTS_MISSING);
    assert_int_equal(w.got, 0); // nothing is known: nothing is published
    w.joints_off = false;
    while (w.samples == 0)
        step(&w);
    assert_int_equal(w.last_got, 1);
    for (int i = 0; i < 100;
         i++) { // the measured pose is echoed, wherever it is moved by hand
        w.stuck = true;
        w.measured[1] = 0.3 + 0.01 * i;
        step(&w);
        assert_int_equal(w.last_got, 1);
        assert_true(w.last.vel[1] == 0 && w.last.first_joint == -1);
    }
    assert_true(fabs(w.last.pos[1] - w.measured[1]) <= 0.011);
    w.stuck = false;
    w.joints_off =
        true; // a pose of long ago is not echoed: the arm may be elsewhere by now
    for (int i = 0; i < 30; i++)
        step(&w);
    assert_int_equal(w.last_got, 0);
    w.joints_off = false;
    step(&w);
    step(&w);
    assert_int_equal(w.last_got, 1);
    atomic_store(&w.board.started, true);
    step(&w);
    assert_int_equal(mode(&w), LADDER_WAITING);
    assert_int_equal(reason(&w), REASON_CAMERA_MISSING);
    request(&w, BOARD_ARM);
    step(&w);
    assert_int_equal(mode(&w), LADDER_WAITING);
    w.camera_off = false;
    while (atomic_load(&w.board.camera[0].received_ns) == 0)
        step(&w);
    // This tick was the first of 50 with everything fresh; an ARM before was not stored up.
    for (int i = 1; i < 49; i++)
        step(&w);
    assert_int_equal(mode(&w), LADDER_WAITING);
    assert_int_equal(reason(&w), REASON_STARTING);
    step(&w);
    assert_int_equal(mode(&w), LADDER_READY);
    for (int i = 0; i < 500; i++)
        step(&w);
    assert_int_equal(mode(&w), LADDER_READY);
    world_end(&w);
}

static void approach_and_run(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();
    double before[JOINTS], fastest = 0;

    world_start(&w, &cfg);
    w.goal = 1.0;
    atomic_store(&w.board.started, true);
    until(&w, LADDER_READY, 200);
    memcpy(before, w.measured, sizeof before);
    request(&w, BOARD_ARM);
    step(&w);
    assert_int_equal(mode(&w), LADDER_APPROACH);
    for (int j = 0; j < JOINTS; j++) // the first command after arming starts at the pose
        assert_true(fabs(w.last.pos[j] - before[j]) <= 0.25 * 10 * 0.005 * 0.005 + 1e-12);
    while (mode(&w) == LADDER_APPROACH) {
        step(&w);
        if (mode(&w) == LADDER_APPROACH)
            for (int j = 0; j < JOINTS; j++)
                fastest = fmax(fastest, fabs(w.last.vel[j]));
        assert_true(w.tick < 3000);
    }
    assert_true(fastest <= 0.5 + 1e-9); // a quarter of 2 rad/s
    assert_int_equal(mode(&w), LADDER_RUNNING);
    assert_true(w.last.chunk_row == 0); // nothing executed yet: nothing skipped
    for (int i = 0; i < 1500; i++)
        step(&w);
    assert_int_equal(mode(&w), LADDER_RUNNING);
    for (int j = 0; j < JOINTS; j++)
        assert_true(fabs(w.measured[j] - 1.0) < 0.01);
    assert_true(loop_last(w.loop)->seam_max_rad == 0); // crossfade
    assert_true(w.last.frame_age_ns > 0 && w.last.chunk_id > 0 &&
                w.last.ttl_ns == 20 * MS);
    assert_int_equal(w.last.margin_ns, TICK - 20 * NS_PER_US);
    world_end(&w);
}

static void replace_has_seams_and_a_number_for_them(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();

    cfg.chunks.mode = CHUNK_REPLACE;
    world_start(&w, &cfg);
    to_running(&w);
    for (int i = 0; i < 100; i++) {
        w.goal = i % 2 ? 1.0 : -1.0;
        step(&w);
    }
    assert_true(loop_last(w.loop)->seam_max_rad > 0.01);
    world_end(&w);
}

// Chunks early, late, out of order, too old, not finite: counted, and the arm goes on smoothly.
static void chunks_of_every_kind(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();

    cfg.chunks.max_age_ns = 500 * MS;
    world_start(&w, &cfg);
    to_running(&w);
    w.policy_off = true;
    uint64_t used = loop_last(w.loop)->verdict[CHUNK_USED];
    for (int i = 0; i < 400; i++) {
        if (i % 10 == 0)
            send_chunk(&w, w.now - (i % 50) * MS); // sometimes older than the one before
        if (i % 40 == 5)
            send_chunk(&w, w.now - 600 * MS);
        step(&w);
        assert_int_equal(mode(&w), LADDER_RUNNING);
    }
    const struct loop_report *r = loop_last(w.loop);
    assert_true(r->verdict[CHUNK_USED] > used + 20);
    assert_true(r->verdict[CHUNK_OUT_OF_ORDER] >= 10);
    assert_int_equal(r->chunks_seen, r->verdict[0] + r->verdict[1] + r->verdict[2] +
                                         r->verdict[3] + r->verdict[4] + r->verdict[5]);
    // One chunk with a NaN is refused and the running one goes on; the second in a row stops.
    for (int k = 0; k < 2; k++) {
        struct chunk *c = ring_reserve(&w.board.chunks);

        memset(c, 0, chunk_bytes(ROWS, JOINTS));
        c->id = ++w.chunk_id;
        c->anchor_ns = w.now;
        c->rows = ROWS;
        c->joints = JOINTS;
        c->row[7] = NAN;
        ring_commit(&w.board.chunks);
        step(&w);
        assert_int_equal(mode(&w), k == 0 ? LADDER_RUNNING : LADDER_STOPPING);
    }
    assert_int_equal(reason(&w), REASON_NOT_FINITE);
    assert_int_equal(r->verdict[CHUNK_NOT_FINITE], 2);
    world_end(&w);
}

// The newest but `back` step of the ladder.
static void assert_event(const struct world *w, uint64_t back, enum ladder_reason reason,
                         int index, double value)
{
    const struct loop_report *r = loop_last(w->loop);
    const struct loop_event *e = &r->event[(r->events - 1 - back) % BOARD_EVENTS];

    assert_int_equal(e->reason, reason);
    assert_int_equal(e->index, index);
    assert_true(fabs(e->value - value) < 1e-9);
}

// Joint states at 100 Hz: flag after 2 periods, HOLD after 3, STOPPING after 100 ms.
static void stale_joints(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();
    ns_t last, age;

    world_start(&w, &cfg);
    to_running(&w);
    while (w.now % (10 * MS) != 0 || w.next_joints != w.now + 10 * MS)
        step(&w);
    last = w.now; // a sample came in this very tick
    w.joints_off = true;
    for (;;) {
        step(&w);
        age = w.now - last;
        assert_int_equal(loop_last(w.loop)->degraded, age > 20 * MS);
        if (age <= 30 * MS)
            assert_int_equal(mode(&w), LADDER_RUNNING);
        else if (age <= 100 * MS)
            assert_int_equal(mode(&w), LADDER_HOLD);
        else
            break;
        assert_int_equal(w.last.joint_age_ns, age);
    }
    assert_int_equal(age, 105 * MS); // the first tick after 100 ms
    assert_true(mode(&w) == LADDER_STOPPING);
    assert_int_equal(reason(&w), REASON_JOINTS_STALE);
    assert_event(&w, 1, REASON_JOINTS_STALE, -1, 35); // HOLD
    assert_event(&w, 0, REASON_JOINTS_STALE, -1, 105);
    until(&w, LADDER_STOPPED, 100);
    assert_event(&w, 0, REASON_JOINTS_STALE, -1, 105); // what led here, not how it is now
    request(&w, BOARD_RESET);                          // refused while the cause is there
    step(&w);
    assert_int_equal(mode(&w), LADDER_STOPPED);
    assert_int_equal(reason(&w), REASON_JOINTS_STALE);
    w.joints_off = false;
    for (int i = 0; i < 5; i++)
        step(&w);
    assert_int_equal(mode(&w), LADDER_STOPPED); // it does not come back by itself
    request(&w, BOARD_RESET);
    step(&w);
    assert_int_equal(mode(&w), LADDER_WAITING);
    to_running(&w);
    world_end(&w);
}

// At 20 Hz of its own: HOLD after 150 ms, STOPPING after 5 periods.
static void stale_joints_at_their_own_rate(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();
    ns_t held = 0, stopped = 0;

    cfg.joints_period_ns = 50 * MS;
    cfg.hold_ns = 10 * NS_PER_S;
    world_start(&w, &cfg);
    to_running(&w);
    while (w.next_joints != w.now + 10 * MS)
        step(&w);
    ns_t last = w.now;
    w.joints_off = true;
    while (stopped == 0) {
        step(&w);
        if (held == 0 && mode(&w) == LADDER_HOLD)
            held = w.now - last;
        if (mode(&w) == LADDER_STOPPING)
            stopped = w.now - last;
        assert_true(w.now - last < NS_PER_S);
    }
    assert_int_equal(held, 155 * MS);
    assert_int_equal(stopped, 255 * MS);
    world_end(&w);
}

static void hold_ends_when_the_cause_does(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();

    world_start(&w, &cfg);
    to_running(&w);
    w.joints_off = true;
    until(&w, LADDER_HOLD, 20);
    for (int i = 0; i < 5; i++)
        step(&w);
    w.joints_off = false;
    until(&w, LADDER_RUNNING, 3);
    assert_int_equal(reason(&w), REASON_NONE);
    world_end(&w);
}

// A hold in the middle of an approach goes back to the approach, not to full speed.
static void hold_in_approach(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();

    world_start(&w, &cfg);
    atomic_store(&w.board.started, true);
    until(&w, LADDER_READY, 200);
    for (int j = 0; j < JOINTS; j++)
        w.measured[j] = -1; // row 0 is near, so let the policy want something far
    w.goal = 1;
    w.policy_off = true;
    send_chunk(&w, w.now);
    for (int j = 0; j < JOINTS; j++)
        w.measured[j] = -1.5;
    for (int i = 0; i < 3; i++)
        step(&w);
    w.fuzzy = true;
    request(&w, BOARD_ARM);
    step(&w);
    w.fuzzy = false;
    assert_int_equal(mode(&w), LADDER_APPROACH);
    for (int i = 0; i < 10; i++)
        step(&w);
    w.joints_off = true;
    until(&w, LADDER_HOLD, 20);
    w.joints_off = false;
    while (mode(&w) == LADDER_HOLD)
        step(&w);
    assert_int_equal(mode(&w), LADDER_APPROACH);
    world_end(&w);
}

static void hold_expires(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();

    world_start(&w, &cfg);
    to_running(&w);
    for (int i = 0; i < 200; i++)
        step(&w);
    w.policy_off = true; // the rows run out
    until(&w, LADDER_HOLD, 400);
    assert_int_equal(reason(&w), REASON_NO_CHUNK);
    assert_int_equal(loop_last(w.loop)->chunk_id, 0);
    assert_int_equal(until(&w, LADDER_STOPPING, 100), 40); // 200 ms
    assert_int_equal(reason(&w), REASON_NO_CHUNK);
    until(&w, LADDER_STOPPED, 100);
    world_end(&w);
}

static void stale_camera(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();

    world_start(&w, &cfg);
    to_running(&w);
    while (w.next_frame != w.now + 33 * MS &&
           atomic_load(&w.board.camera[0].received_ns) != w.now)
        step(&w);
    ns_t last = atomic_load(&w.board.camera[0].received_ns);
    w.camera_off = true;
    for (;;) {
        step(&w);
        ns_t age = w.now - last;
        if (age > 500 * MS)
            break;
        assert_int_equal(loop_last(w.loop)->degraded, age > 100 * MS); // max(100, 3 * 33)
        assert_int_equal(loop_last(w.loop)->wants_inference, age <= 100 * MS);
        assert_int_equal(mode(&w), LADDER_RUNNING);
        assert_true(age < NS_PER_S);
    }
    assert_int_equal(mode(&w), LADDER_STOPPING);
    assert_int_equal(reason(&w), REASON_CAMERA_STALE);
    world_end(&w);
}

// A camera that sends, but nothing that can be decoded, is a camera that is not there.
static void corrupt_camera(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();

    world_start(&w, &cfg);
    to_running(&w);
    atomic_store(&w.board.camera[0].corrupt_in_a_row, 4);
    step(&w);
    assert_int_equal(mode(&w), LADDER_RUNNING);
    atomic_store(&w.board.camera[0].corrupt_in_a_row, 5);
    step(&w);
    assert_int_equal(mode(&w), LADDER_STOPPING);
    assert_int_equal(reason(&w), REASON_CAMERA_STALE);
    assert_true(
        loop_last(w.loop)->wants_inference); // or no frame would ever be tried again
    assert_event(&w, 0, REASON_CAMERA_STALE, 0, 0);
    world_end(&w);
}

// Of two cameras the one that stops the arm is named, though the other is late, too.
static void the_stale_camera_is_named(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();

    cfg.n_cameras = 2;
    cfg.camera_period_ns[1] = 33 * MS;
    for (int stale = 0; stale < 2; stale++) {
        world_start(&w, &cfg);
        atomic_store(&w.board.camera[1].received_ns, w.now + 100 * NS_PER_S); // fresh
        to_running(&w);
        w.camera_off = true;
        step(&w);
        atomic_store(&w.board.camera[stale].received_ns, w.now - 504 * MS);
        atomic_store(&w.board.camera[1 - stale].received_ns, w.now - 200 * MS);
        step(&w);
        assert_int_equal(mode(&w), LADDER_STOPPING);
        assert_event(&w, 0, REASON_CAMERA_STALE, stale, 504 + (double)TICK / 1e6);
        world_end(&w);
    }
}

// Every step of the ladder is kept, with the joint behind it, for whoever looks later.
static void events_are_kept(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();
    const struct loop_report *r;

    world_start(&w, &cfg);
    to_running(&w);
    r = loop_last(w.loop);
    uint64_t n = r->events;

    assert_int_equal(r->event[(n - 1) % BOARD_EVENTS].index, -1);
    assert_true(r->event[(n - 1) % BOARD_EVENTS].value == 0);
    assert_true(n >= 4); // INIT, WAITING, READY, APPROACH, RUNNING
    assert_int_equal(r->event[(n - 1) % BOARD_EVENTS].to, LADDER_RUNNING);
    assert_int_equal(r->event[(n - 1) % BOARD_EVENTS].from, LADDER_APPROACH);
    assert_int_equal(r->event[0].from, LADDER_INIT);
    w.camera_off = true;
    until(&w, LADDER_STOPPING, 400);
    r = loop_last(w.loop);
    assert_int_equal(r->events, n + 1);
    assert_int_equal(r->event[n % BOARD_EVENTS].reason, REASON_CAMERA_STALE);
    assert_int_equal(r->event[n % BOARD_EVENTS].index, 0); // the camera
    assert_true(r->event[n % BOARD_EVENTS].value ==
                (double)(w.now - atomic_load(&w.board.camera[0].received_ns)) / 1e6);
    assert_int_equal(r->event[n % BOARD_EVENTS].tick, r->tick);
    world_end(&w);
}

static void following_error(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();
    double before = 0;
    int held = 0, i;

    cfg.hold_ns = NS_PER_S;
    world_start(&w, &cfg);
    to_running(&w);
    for (i = 0; i < 20; i++)
        step(&w);
    w.goal = 2;
    w.stuck = true; // the arm has met something: the command goes on, the arm does not
    for (int j = 0; j < JOINTS; j++)
        w.measured[j] -= 0.25;
    for (i = 0; i < 200 && mode(&w) != LADDER_STOPPING; i++) {
        before = loop_last(w.loop)->pos[0];
        step(&w);
        if (mode(&w) == LADDER_HOLD && held == 0)
            held = i;
    }
    assert_int_equal(mode(&w), LADDER_STOPPING);
    assert_int_equal(reason(&w), REASON_FOLLOWING_ERROR);
    assert_int_equal(i - 1 - held, 10); // ten ticks to HOLD, ten more to STOPPING
    assert_event(&w, 0, REASON_FOLLOWING_ERROR, 0,
                 fabs(before - loop_last(w.loop)->measured[0]));
    until(&w, LADDER_STOPPED, 100);
    w.stuck = false;
    w.fuzzy = true;
    step(&w);
    w.fuzzy = false;
    request(&w, BOARD_RESET);
    step(&w);
    assert_int_equal(mode(&w), LADDER_WAITING);
    world_end(&w);
}

static void normal_lag_is_no_following_error(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();

    world_start(&w, &cfg);
    to_running(&w);
    for (int i = 0; i < 1000; i++) {
        w.goal = i % 400 < 200 ? 1.5 : -1.5;
        step(&w);
        assert_int_equal(mode(&w), LADDER_RUNNING);
    }
    world_end(&w);
}

static void disarm_and_rearm(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();
    struct command at_rest;

    world_start(&w, &cfg);
    w.goal = 1.8;
    to_running(&w);
    for (int i = 0; i < 60; i++)
        step(&w);
    double speed =
        fmax(fabs(w.last.vel[0]), fmax(fabs(w.last.vel[1]), fabs(w.last.vel[2])));
    assert_true(speed > 0.1);
    request(&w, BOARD_DISARM);
    step(&w);
    assert_int_equal(mode(&w), LADDER_DISARMING);
    assert_int_equal(reason(&w), REASON_OPERATOR);
    int took = until(&w, LADDER_READY, 100);
    assert_true(took <= 2 + (int)(speed / 10 / 0.005)); // at 10 rad/s²
    at_rest = w.last;
    w.stuck =
        true; // somebody pushes the arm; the idle pose stays what was last commanded
    w.measured[0] -= 0.15;
    for (int i = 0; i < 100; i++) {
        step(&w);
        assert_memory_equal(w.last.pos, at_rest.pos, sizeof at_rest.pos);
        assert_true(w.last.vel[0] == 0);
    }
    w.fuzzy = true;
    request(&w, BOARD_ARM); // and arming starts from where the arm really is
    step(&w);
    assert_int_equal(mode(&w), LADDER_APPROACH);
    assert_true(fabs(w.last.pos[0] - w.measured[0]) < 1e-3);
    world_end(&w);
}

static void requests_and_latches(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();

    world_start(&w, &cfg);
    to_running(&w);
    request(&w, BOARD_STOP);
    step(&w);
    assert_int_equal(mode(&w), LADDER_STOPPING);
    until(&w, LADDER_STOPPED, 100);
    request(&w, BOARD_ARM);
    step(&w);
    assert_int_equal(mode(&w), LADDER_STOPPED);
    request(&w, BOARD_RESET);
    step(&w);
    to_running(&w);
    request(&w, BOARD_ESTOP | BOARD_ARM | BOARD_RESET);
    step(&w);
    assert_int_equal(mode(&w), LADDER_ESTOP);
    assert_int_equal(reason(&w), REASON_ESTOP);
    for (int i = 0; i < 200; i++)
        step(&w);
    assert_int_equal(mode(&w), LADDER_ESTOP);
    assert_true(w.last.vel[0] == 0 && w.last_got == 1); // still published, at rest
    request(&w, BOARD_RESET);
    step(&w);
    assert_int_equal(mode(&w), LADDER_WAITING);
    world_end(&w);
}

static void tick_gaps(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();

    world_start(&w, &cfg);
    to_running(&w);
    uint64_t got = w.got;
    step_skip(&w, 5); // 30 ms: skipped, one command, no burst
    assert_int_equal(w.got, got + 1);
    assert_int_equal(loop_last(w.loop)->skipped, 5);
    assert_int_equal(mode(&w), LADDER_RUNNING);
    step_skip(&w, 19); // exactly 100 ms is not longer than 100 ms
    assert_int_equal(mode(&w), LADDER_RUNNING);
    step_skip(&w, 20);
    assert_int_equal(mode(&w), LADDER_STOPPING);
    assert_int_equal(reason(&w), REASON_TICK_GAP);
    assert_int_equal(w.last_got, 1);
    world_end(&w);
}

static void policy_fails(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();

    world_start(&w, &cfg);
    to_running(&w);
    atomic_store(&w.board.policy_failures, 2);
    step(&w);
    assert_int_equal(mode(&w), LADDER_RUNNING);
    atomic_store(&w.board.policy_failures, 3);
    step(&w);
    assert_int_equal(mode(&w), LADDER_STOPPING);
    assert_int_equal(reason(&w), REASON_POLICY_FAILED);
    world_end(&w);
}

static void outside_the_limits(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();

    world_start(&w, &cfg);
    w.stuck = true;
    w.measured[2] = 2.1;
    atomic_store(&w.board.started, true);
    for (int i = 0; i < 200; i++)
        step(&w);
    assert_int_equal(mode(&w), LADDER_WAITING);
    assert_int_equal(reason(&w), REASON_OUT_OF_LIMITS);
    assert_int_equal(w.got, 0); // a command that echoed the pose would break the limits
    assert_int_equal(loop_last(w.loop)->gate_refusals, 0);
    w.measured[2] = 2.001; // rests against its limit: armed from the limit itself
    until(&w, LADDER_READY, 100);
    assert_true(w.last.pos[2] == 2);
    world_end(&w);
}

// What the policy wants lies far away and out of the limits: the limits hold, and say so.
static void limits_are_named(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();

    world_start(&w, &cfg);
    to_running(&w);
    w.policy_off = true;
    for (int i = 0; i < 300; i++) {
        if (i % 20 == 0) {
            double m = w.measured[0];

            w.measured[0] = 4; // what the policy believes
            w.goal = 4;
            send_chunk(&w, w.now);
            w.measured[0] = m;
        }
        step(&w);
    }
    assert_true(w.last.pos[0] <= 2 && w.last.pos[0] > 1.99);
    assert_int_equal(w.last.limit[0], GUARD_POSITION);
    assert_int_equal(w.last.first_joint, 0);
    assert_true(w.last.wanted[0] > 3.9);
    assert_true(loop_last(w.loop)->limited[0][GUARD_VELOCITY] > 0);
    world_end(&w);
}

static void approach_gives_up(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();

    world_start(&w, &cfg);
    w.policy_off = true;
    atomic_store(&w.board.started, true);
    until(&w, LADDER_READY, 200);
    request(&w, BOARD_ARM);
    step(&w);
    for (int i = 0; i < 5990; i++) {
        step(&w);
        assert_int_equal(mode(&w), LADDER_APPROACH);
        assert_int_equal(reason(&w), REASON_NO_CHUNK);
        assert_true(w.last.vel[0] == 0);
    }
    until(&w, LADDER_READY, 30);
    world_end(&w);
}

// A guard that has lost its mind (its limits were overwritten): the gate still knows them.
static void gate_catches_a_broken_guard(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();
    struct command before;

    world_start(&w, &cfg);
    to_running(&w);
    w.goal = 2;
    for (int i = 0; i < 50; i++)
        step(&w);
    for (int j = 0; j < JOINTS; j++)
        w.loop->guard.lim.velocity[j] = w.loop->guard.lim.acceleration[j] = 1e6;
    w.policy_off = true;
    w.measured[0] = -1.5;
    send_chunk(&w, w.now); // a jump, which the guard now lets through
    w.loop->chunks->cfg.fade_ns = 0;
    before = w.last;
    step(&w);
    assert_int_equal(loop_last(w.loop)->gate_refusals, 1);
    assert_int_equal(w.last_got, 0);
    step(&w); // from where it was, braking
    assert_int_equal(mode(&w), LADDER_STOPPING);
    assert_int_equal(reason(&w), REASON_INTERNAL);
    assert_int_equal(w.last_got, 1);
    assert_memory_equal(w.last.pos, before.pos, sizeof before.pos);
    world_end(&w);
}

// Rows that turn into NaN in our own memory.
static void target_not_finite(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();

    world_start(&w, &cfg);
    to_running(&w);
    for (int i = 0; i < 50; i++)
        step(&w);
    w.policy_off = true;
    for (int i = 0; i < w.loop->chunks->n; i++)
        for (int k = 0; k < ROWS * JOINTS; k++)
            w.loop->chunks->live[i].row[k] = NAN;
    step(&w);
    assert_int_equal(mode(&w), LADDER_HOLD);
    assert_int_equal(reason(&w), REASON_NOT_FINITE);
    assert_int_equal(loop_last(w.loop)->refused_vectors, 1);
    assert_int_equal(until(&w, LADDER_STOPPING, 20), LOOP_BAD_TARGETS - 1);
    assert_int_equal(reason(&w), REASON_NOT_FINITE);
    world_end(&w);
}

// What the codec should have refused, and a sample for another robot: as if nothing had come.
static void bad_samples_are_not_taken(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();

    world_start(&w, &cfg);
    to_running(&w);
    w.joints_off = true;
    for (int i = 0; i < 10; i++) {
        struct joint_sample s = {.number = 1,
                                 .received_ns = w.now + TICK,
                                 .capture_ns = w.now + TICK,
                                 .n = i % 2 ? JOINTS : 2,
                                 .pos = {0, NAN, 0}};

        slot_write(&w.board.joints, &s);
        step(&w);
    }
    assert_int_equal(mode(&w), LADDER_HOLD);
    assert_int_equal(reason(&w), REASON_JOINTS_STALE);
    world_end(&w);
}

// A bus that does not take its commands loses the newest, counted; the loop does not care.
static void full_ring(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();

    world_start(&w, &cfg);
    to_running(&w);
    for (int i = 0; i < 100; i++) {
        w.now += TICK;
        send_joints(&w);
        send_frame(&w);
        virtual_now = w.now;
        loop_tick(w.loop, w.tick++, w.now, 0, virtual_clock);
    }
    assert_int_equal(loop_last(w.loop)->commands_dropped, 100 - BOARD_COMMANDS);
    world_end(&w);
}

// Random faults on everything; published commands checked by differences alone.
static void random_faults(void **state)
{
    (void)state;
    uint32_t seed = 7;
    long visited[LADDER_STATES] = {0};

    for (int round = 0; round < 40; round++) {
        struct world w;
        struct loop_config cfg = default_config();
        double p[JOINTS] = {0}, v[JOINTS] = {0};
        int known = 0;
        bool ever = false; // armed

        cfg.chunks.mode = (enum chunk_mode)(round % 7);
        for (int j = 0; j < JOINTS; j++)
            cfg.limits.jerk[j] = round % 3 == 0 ? 200 : 0;
        world_start(&w, &cfg);
        atomic_store(&w.board.started, true);
        w.fuzzy = true;
        for (int i = 0; i < 5000; i++) {
            enum ladder_state before = mode(&w);
            uint64_t got = w.got;

            seed = seed * 1664525u + 1013904223u;
            uint32_t dice = seed >> 16;
            if (dice % 211 == 0)
                w.joints_off = !w.joints_off && dice % 2;
            if (dice % 307 == 0)
                w.camera_off = !w.camera_off && dice % 2;
            if (dice % 401 == 0)
                w.policy_off = !w.policy_off && dice % 2;
            if (dice % 29 == 0)
                w.goal = (double)(dice % 600) / 100 - 3;
            if (dice % 997 == 0)
                w.measured[dice % JOINTS] += 0.3;
            if (dice % 53 == 0)
                request(&w, BOARD_ARM);
            if (dice % 31 == 0)
                request(&w, BOARD_RESET);
            if (dice % 1009 == 0)
                request(&w, 1u << (dice % 5));
            step_skip(&w, dice % 499 == 0 ? dice % 30 : 0);
            visited[mode(&w)]++;
            if (w.got == got) {
                known = 0; // nothing was published: the next one starts anew
                continue;
            }
            bool idle = mode(&w) == LADDER_WAITING || mode(&w) == LADDER_READY ||
                        mode(&w) == LADDER_INIT || !ever;
            bool armed = before == LADDER_READY && mode(&w) == LADDER_APPROACH;
            ever |= armed;
            for (int j = 0; j < JOINTS; j++) {
                double vel = (w.last.pos[j] - p[j]) / 0.005;

                if (known && !idle && !armed) {
                    assert_true(fabs(vel) <= 2 + 1e-6);
                    assert_true(fabs(vel - v[j]) / 0.005 <= 20 + 1e-6);
                    if (mode(&w) == LADDER_RUNNING || mode(&w) == LADDER_HOLD)
                        assert_true(fabs(vel - v[j]) / 0.005 <= 10 + 1e-6);
                }
                p[j] = w.last.pos[j];
                v[j] = idle || armed ? w.last.vel[j] : vel;
            }
            known = 1;
        }
        world_end(&w);
    }
    for (int s = LADDER_WAITING; s < LADDER_STATES; s++)
        assert_true(visited[s] > 0);
}

// All of the above ran with allocations counted around every tick.
static void nothing_was_allocated(void **state)
{
    (void)state;
    assert_int_equal(allocations, 0);
#if !defined(__SANITIZE_ADDRESS__)
    counting = 1; // and the counter does count
    void *volatile p = malloc(1);
    free(p);
    counting = 0;
    assert_int_equal(allocations, 2);
#endif
}

static void refuses_bad_settings(void **state)
{
    (void)state;
    struct loop_config cfg = default_config();
    struct board b;
    struct loop *l;

    assert_int_equal(board_init(&b, 17, 4, 3), -EINVAL);
    assert_int_equal(board_init(&b, 1, 4, 3), 0);
    cfg.limits.velocity[1] = 0;
    assert_int_equal(loop_new(&l, &cfg, &b), -EINVAL);
    cfg = default_config();
    cfg.limits.max[2] = NAN;
    assert_int_equal(loop_new(&l, &cfg, &b), -EINVAL);
    cfg = default_config();
    cfg.chunks.capacity = 0;
    assert_int_equal(loop_new(&l, &cfg, &b), -EINVAL);
    board_free(&b);
}

// The real thread, one second of it: accounting exact, commands in order, clean end.
static void thread(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();
    struct loop_thread_config tc = {.priority = 50, .cpu = -1};
    struct loop_thread *t;
    char granted[64] = "";
    uint64_t n = 0, last = 0;
    struct command c;

    world_start(&w, &cfg);
    w.now = clock_now_ns();
    send_joints(&w);
    assert_int_equal(loop_thread_start(&t, w.loop, &tc, granted), 0);
    printf("granted: %s\n", granted);
    assert_true(strncmp(granted, "SCHED_", 6) == 0);
    for (int i = 0; i < 20; i++) {
        usleep(20000);
        while (ring_pop(&w.board.commands, &c)) {
            assert_true(c.sequence == last + 1 && c.margin_ns < TICK);
            last = c.sequence;
            n++;
        }
    }
    loop_thread_stop(t);
    const struct loop_report *r = loop_last(w.loop);
    assert_true(n > 0);
    assert_int_equal(r->ticks_run + r->skipped, r->tick + 1);
    assert_int_equal(hist_summary(&w.board.lateness).count, r->ticks_run);
    uint64_t wakes;
    assert_int_equal(read(w.board.command_fd, &wakes, sizeof wakes), sizeof wakes);
    assert_int_equal(wakes, r->commands);
    world_end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cold_start),
        cmocka_unit_test(approach_and_run),
        cmocka_unit_test(replace_has_seams_and_a_number_for_them),
        cmocka_unit_test(chunks_of_every_kind),
        cmocka_unit_test(stale_joints),
        cmocka_unit_test(stale_joints_at_their_own_rate),
        cmocka_unit_test(hold_ends_when_the_cause_does),
        cmocka_unit_test(hold_in_approach),
        cmocka_unit_test(hold_expires),
        cmocka_unit_test(stale_camera),
        cmocka_unit_test(corrupt_camera),
        cmocka_unit_test(the_stale_camera_is_named),
        cmocka_unit_test(events_are_kept),
        cmocka_unit_test(following_error),
        cmocka_unit_test(normal_lag_is_no_following_error),
        cmocka_unit_test(disarm_and_rearm),
        cmocka_unit_test(requests_and_latches),
        cmocka_unit_test(tick_gaps),
        cmocka_unit_test(policy_fails),
        cmocka_unit_test(outside_the_limits),
        cmocka_unit_test(limits_are_named),
        cmocka_unit_test(approach_gives_up),
        cmocka_unit_test(gate_catches_a_broken_guard),
        cmocka_unit_test(target_not_finite),
        cmocka_unit_test(bad_samples_are_not_taken),
        cmocka_unit_test(full_ring),
        cmocka_unit_test(random_faults),
        cmocka_unit_test(nothing_was_allocated),
        cmocka_unit_test(refuses_bad_settings),
        cmocka_unit_test(thread),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
