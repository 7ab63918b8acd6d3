// The loop under a clock the test owns: one fault at a time, to the tick.
#include "tests/unit/loop_world.h"

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
    assert_int_equal(reason(&w), REASON_CAMERA_CORRUPT);
    assert_true(
        loop_last(w.loop)->wants_inference); // or no frame would ever be tried again
    assert_event(&w, 0, REASON_CAMERA_CORRUPT, 0, 0);
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
    for (int j = 0; j < JOINTS;
         j++) { // at 20 rad/s^2 over 5 ms, and on from where it was
        double way = w.last.pos[j] - before.pos[j];

        assert_true(fabs(way / 0.005 - before.vel[j]) <= 20 * 0.005 + 1e-9);
    }
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

// ---- streams that send what can not be used ---------------------------------------------------

static void refuse_joints(struct world *w, uint32_t in_a_row, enum ladder_reason why)
{
    struct joints_mark *m = &w->board.joint_mark;

    atomic_store(&m->refused_for, (int)why);
    atomic_store(&m->refused_joint, why == REASON_JOINTS_JUMP ? 1 : -1);
    atomic_store(&m->refused_value, 9.5);
    atomic_store(&m->refused_in_a_row, in_a_row);
}

// Two refusals are bad luck, three in a row are a fault, each with its own reason.
static void refused_joint_states(void **state)
{
    (void)state;
    const enum ladder_reason why[] = {REASON_JOINTS_INVALID, REASON_JOINTS_NOT_FINITE,
                                      REASON_JOINTS_JUMP, REASON_JOINTS_CLOCK};

    for (int i = 0; i < 4; i++) {
        struct world w;
        struct loop_config cfg = default_config();

        world_start(&w, &cfg);
        to_running(&w);
        refuse_joints(&w, 2, why[i]);
        step(&w);
        assert_int_equal(mode(&w), LADDER_RUNNING);
        refuse_joints(&w, 3, why[i]);
        step(&w);
        assert_int_equal(mode(&w), LADDER_STOPPING);
        assert_int_equal(reason(&w), why[i]);
        assert_int_equal(w.last.reason, why[i]);
        if (why[i] == REASON_JOINTS_JUMP)
            assert_event(&w, 0, REASON_JOINTS_JUMP, 1, 9.5);
        until(&w, LADDER_STOPPED, 400);
        request(&w, BOARD_RESET); // refused while the cause is there
        step(&w);
        assert_int_equal(mode(&w), LADDER_STOPPED);
        refuse_joints(&w, 0, REASON_NONE);
        for (int k = 0; k < 50; k++)
            step(&w);
        assert_int_equal(mode(&w), LADDER_STOPPED); // latched though it is gone
        assert_true((loop_last(w.loop)->faults.latched >> why[i]) & 1);
        request(&w, BOARD_RESET);
        step(&w);
        assert_int_equal(mode(&w), LADDER_WAITING);
        assert_int_equal(loop_last(w.loop)->faults.latched, 0);
        assert_int_equal(loop_last(w.loop)->faults.of[why[i]].episodes, 1);
        world_end(&w);
    }
}

static void a_refusal_of_unknown_kind_is_invalid(void **state)
{
    (void)state;
    const int why[] = {-1, LADDER_REASONS, REASON_NONE, REASON_TICK_GAP};

    for (int i = 0; i < 4; i++) {
        struct world w;
        struct loop_config cfg = default_config();

        world_start(&w, &cfg);
        to_running(&w);
        refuse_joints(&w, 3, (enum ladder_reason)why[i]);
        step(&w);
        assert_int_equal(reason(&w), REASON_JOINTS_INVALID);
        world_end(&w);
    }
}

static void frames_that_are_refused(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();
    int n;

    world_start(&w, &cfg);
    to_running(&w);
    w.camera_off = true;
    atomic_store(&w.board.camera[0].refused_in_a_row, 1);
    n = until(&w, LADDER_STOPPING, 200);
    assert_in_range(n, 94,
                    107); // 500 ms after the last good one, which came 0 to 33 ms ago
    assert_int_equal(reason(&w), REASON_CAMERA_INVALID);
    world_end(&w);
}

// The same picture: told, or as late at once and as off after 500 ms; or nothing.
static void the_same_picture(void **state)
{
    (void)state;
    for (int how = 0; how < 3; how++) { // ignore, warn, stop
        struct world w;
        struct loop_config cfg = default_config();
        struct camera_mark *m = &w.board.camera[0];
        int n = 0;

        cfg.frozen_warns[0] = how >= 1;
        cfg.frozen_stops[0] = how == 2;
        world_start(&w, &cfg);
        to_running(&w);
        atomic_store(&m->changed_ns, w.now);
        atomic_store(&m->same_in_a_row, BOARD_STUCK - 1);
        step(&w);
        assert_true(loop_last(w.loop)->wants_inference);
        assert_int_equal(loop_last(w.loop)->faults.active, 0);
        atomic_store(&m->same_in_a_row, BOARD_STUCK);
        step(&w);
        assert_int_equal((loop_last(w.loop)->faults.active >> REASON_CAMERA_FROZEN) & 1,
                         how >= 1);
        assert_int_equal(loop_last(w.loop)->wants_inference, how < 2);
        assert_int_equal(loop_last(w.loop)->degraded, how == 2);
        while (n++ < 150 && mode(&w) != LADDER_STOPPING)
            step(&w);
        assert_int_equal(mode(&w) == LADDER_STOPPING, how == 2);
        if (how == 2) {
            assert_int_equal(n,
                             100); // the tick after 500 ms, two ticks of which are above
            assert_int_equal(reason(&w), REASON_CAMERA_FROZEN);
            assert_event(&w, 0, REASON_CAMERA_FROZEN, 0, 0);
        }
        world_end(&w);
    }
}

static void slow_streams_are_only_told(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();

    world_start(&w, &cfg);
    to_running(&w);
    atomic_store(&w.board.joint_mark.slow, true);
    atomic_store(&w.board.camera[0].slow, true);
    for (int i = 0; i < 50; i++)
        step(&w);
    assert_int_equal(mode(&w), LADDER_RUNNING);
    assert_int_equal(reason(&w), REASON_NONE);
    assert_int_equal(loop_last(w.loop)->faults.active,
                     UINT64_C(1) << REASON_JOINTS_SLOW | UINT64_C(1)
                                                             << REASON_CAMERA_SLOW);
    assert_int_equal(loop_last(w.loop)->faults.latched, 0);
    world_end(&w);
}

// ---- what keeps chunks from coming ------------------------------------------------------------

static void no_chunk_says_why(void **state)
{
    (void)state;
    const struct {
        bool inferring;
        int starved;
        enum ladder_reason reason;
    } of[] = {{false, BOARD_FED, REASON_NO_CHUNK},
              {true, BOARD_FED, REASON_POLICY_SLOW},
              {false, BOARD_SKEW, REASON_CAMERA_SKEW},
              {false, BOARD_NO_JOINTS, REASON_NO_CHUNK}};

    for (int i = 0; i < 8; i++) { // rows that end, and rows that are too old before
        struct world w;
        struct loop_config cfg = default_config();

        cfg.chunks.max_age_ns = i < 4 ? 10 * NS_PER_S : 0;
        world_start(&w, &cfg);
        to_running(&w);
        w.policy_off = true;
        atomic_store(&w.board.inferring_since_ns, of[i % 4].inferring ? w.now : 0);
        atomic_store(&w.board.starved, of[i % 4].starved);
        until(&w, LADDER_HOLD, 400);
        enum ladder_reason why = of[i % 4].reason;
        if (why == REASON_NO_CHUNK && i >= 4)
            why = REASON_CHUNK_TOO_OLD;
        assert_int_equal(w.last.reason, why);
        until(&w, LADDER_STOPPING, 100);
        if (why != REASON_CHUNK_TOO_OLD) // by then its rows have ended as well
            assert_int_equal(reason(&w), why);
        world_end(&w);
    }
}

// ---- the loop itself --------------------------------------------------------------------------

// The monitor has cut the output: the first tick that knows stops, and its commands count again.
static void a_stall_stops(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();

    world_start(&w, &cfg);
    to_running(&w);
    assert_int_equal(w.last.stalls, 0);
    atomic_store(&w.board.stalls, 1);
    step(&w);
    assert_int_equal(mode(&w), LADDER_STOPPING);
    assert_int_equal(reason(&w), REASON_LOOP_STALLED);
    assert_int_equal(w.last.stalls, 1);
    assert_int_equal(loop_last(w.loop)->stalls, 1);
    until(&w, LADDER_STOPPED, 400);
    request(&w, BOARD_RESET);
    step(&w);
    assert_int_equal(mode(&w), LADDER_WAITING);
    world_end(&w);
}

// 100 ticks are 500 ms: 10 late ones are 10 %, the 11th is a fault.
static void late_wakeups(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();

    cfg.budget_ns[BOARD_WAKEUP] = 2 * MS;
    world_start(&w, &cfg);
    to_running(&w);
    for (int i = 0; i < 10; i++) {
        w.lateness = 3 * MS;
        step(&w);
        w.lateness = 2 * MS; // exactly the budget is kept
        step(&w);
        assert_int_equal(mode(&w), LADDER_RUNNING);
    }
    w.lateness = 2 * MS + 1;
    step(&w); // judged with the next tick
    w.lateness = 0;
    step(&w);
    assert_int_equal(mode(&w), LADDER_STOPPING);
    assert_int_equal(reason(&w), REASON_LATE_WAKEUPS);
    assert_int_equal(loop_last(w.loop)->budget[BOARD_WAKEUP].missed, 11);
    assert_int_equal(loop_last(w.loop)->budget[BOARD_WAKEUP].worst_ns, 3 * MS);
    world_end(&w);
}

static void skipped_ticks_are_late_ones(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();

    cfg.budget_ns[BOARD_WAKEUP] = 2 * MS;
    world_start(&w, &cfg);
    to_running(&w);
    step_skip(&w, 11);
    step(&w);
    assert_int_equal(mode(&w), LADDER_STOPPING);
    assert_int_equal(reason(&w), REASON_LATE_WAKEUPS);
    world_end(&w);
}

// A budget of many periods is missed only by those that were that late.
static void skipped_within_a_long_budget(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();

    cfg.budget_ns[BOARD_WAKEUP] = 40 * MS;
    cfg.tick_gap_ns = NS_PER_S;
    cfg.joints_period_ns = 200 * MS; // of no concern
    cfg.camera_period_ns[0] = 400 * MS;
    world_start(&w, &cfg);
    to_running(&w);
    w.lateness = 40 * MS; // and the 8 ticks of these 40 ms are skipped
    step(&w);
    w.lateness = 0;
    step_skip(&w, 8);
    assert_int_equal(loop_last(w.loop)->budget[BOARD_WAKEUP].missed, 0);
    w.lateness =
        55 * MS; // this one, and of the 11 after it those that were 41 ms late or more
    step(&w);
    w.lateness = 0;
    step_skip(&w, 11);
    assert_int_equal(loop_last(w.loop)->budget[BOARD_WAKEUP].missed, 1 + 3);
    world_end(&w);
}

// ---- the policy's range -----------------------------------------------------------------------

// Two chunks in a row beyond the hard limits; one is refused and forgotten.
static void chunks_out_of_range(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();
    double goal;

    world_start(&w, &cfg);
    to_running(&w);
    goal = w.goal;
    w.wild = true; // one row of each chunk lies beyond 6 rad
    until(&w, LADDER_STOPPING, 400);
    assert_int_equal(reason(&w), REASON_POLICY_OUT_OF_RANGE);
    assert_int_equal(loop_last(w.loop)->verdict[CHUNK_OUT_OF_RANGE], 2);
    assert_event(&w, 0, REASON_POLICY_OUT_OF_RANGE, 1, (double)6.01f);
    assert_true(w.goal == goal);
    world_end(&w);
}

// ---- going home -------------------------------------------------------------------------------

static void goes_home(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();
    double top = 0;
    int n;

    cfg.has_home = true;
    for (int j = 0; j < JOINTS; j++)
        cfg.home[j] = 0.3 - 0.2 * j;
    world_start(&w, &cfg);
    atomic_store(&w.board.started, true);
    until(&w, LADDER_READY, 200);
    w.policy_off = true; // of no concern
    request(&w, BOARD_HOME);
    step(&w);
    assert_int_equal(mode(&w), LADDER_HOMING);
    for (n = 0; n < 2000 && mode(&w) == LADDER_HOMING; n++) {
        step(&w);
        for (int j = 0; j < JOINTS; j++)
            top = fmax(top, fabs(w.last.vel[j]));
    }
    assert_true(top > 0.2 && top <= 0.25 * 2 + 1e-9); // as slow as an approach
    until(&w, LADDER_READY, 5);
    for (int j = 0; j < JOINTS; j++)
        assert_true(fabs(w.last.pos[j] - cfg.home[j]) < 1e-9);
    world_end(&w);
}

static void home_needs_a_rest_pose(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();

    world_start(&w, &cfg);
    atomic_store(&w.board.started, true);
    until(&w, LADDER_READY, 200);
    request(&w, BOARD_HOME);
    step(&w);
    assert_int_equal(mode(&w), LADDER_READY);
    world_end(&w);
}

static void a_late_stream_ends_the_way_home(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();

    cfg.has_home = true;
    cfg.home[0] = 1.5;
    world_start(&w, &cfg);
    atomic_store(&w.board.started, true);
    until(&w, LADDER_READY, 200);
    request(&w, BOARD_HOME);
    for (int i = 0; i < 20; i++)
        step(&w);
    w.joints_off = true;
    until(&w, LADDER_DISARMING, 20);
    assert_int_equal(reason(&w), REASON_JOINTS_STALE);
    world_end(&w);
}

// ---- far outside ------------------------------------------------------------------------------

static void lost_outside_the_limits(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();

    for (int j = 0; j < JOINTS; j++)
        cfg.following_error[j] = 0;
    world_start(&w, &cfg);
    to_running(&w);
    w.stuck = true;
    w.measured[1] = 2 + 0.0999;
    for (int i = 0; i < 5; i++)
        step(&w);
    assert_int_equal(mode(&w), LADDER_RUNNING); // a servo that overshoots
    w.measured[1] = 2 + 0.1001;
    for (int i = 0; i < 3; i++)
        step(&w);
    assert_int_equal(mode(&w), LADDER_STOPPING);
    assert_int_equal(reason(&w), REASON_OUT_OF_LIMITS);
    world_end(&w);
}

// Contact that chatters: bad in two ticks of three.
static void chattering_contact(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();
    double at[JOINTS];
    int n;

    cfg.joints_period_ns = TICK;
    world_start(&w, &cfg);
    to_running(&w);
    w.stuck = true;
    memcpy(at, w.measured, sizeof at);
    for (n = 0; n < 200 && mode(&w) == LADDER_RUNNING; n++) {
        for (int j = 0; j < JOINTS; j++)
            w.measured[j] = w.last.pos[j] + (n % 3 != 0 && j == 0 ? 0.21 : 0);
        step(&w);
    }
    assert_int_equal(mode(&w), LADDER_HOLD);
    assert_int_equal(reason(&w), REASON_FOLLOWING_ERROR);
    assert_true(n < 40);
    world_end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
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
        cmocka_unit_test(tick_gaps),
        cmocka_unit_test(policy_fails),
        cmocka_unit_test(outside_the_limits),
        cmocka_unit_test(gate_catches_a_broken_guard),
        cmocka_unit_test(target_not_finite),
        cmocka_unit_test(bad_samples_are_not_taken),
        cmocka_unit_test(refused_joint_states),
        cmocka_unit_test(a_refusal_of_unknown_kind_is_invalid),
        cmocka_unit_test(frames_that_are_refused),
        cmocka_unit_test(the_same_picture),
        cmocka_unit_test(slow_streams_are_only_told),
        cmocka_unit_test(no_chunk_says_why),
        cmocka_unit_test(a_stall_stops),
        cmocka_unit_test(late_wakeups),
        cmocka_unit_test(skipped_ticks_are_late_ones),
        cmocka_unit_test(skipped_within_a_long_budget),
        cmocka_unit_test(chunks_out_of_range),
        cmocka_unit_test(goes_home),
        cmocka_unit_test(home_needs_a_rest_pose),
        cmocka_unit_test(a_late_stream_ends_the_way_home),
        cmocka_unit_test(lost_outside_the_limits),
        cmocka_unit_test(chattering_contact),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
