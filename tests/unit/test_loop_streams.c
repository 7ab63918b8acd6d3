// The loop under a clock the test owns, to the tick: joint states and cameras that are
// late, silent, wrong, frozen or slow.
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

// What the codec should have refused, and a sample for another robot: as if
// nothing had come.
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stale_joints),
        cmocka_unit_test(stale_joints_at_their_own_rate),
        cmocka_unit_test(hold_ends_when_the_cause_does),
        cmocka_unit_test(hold_in_approach),
        cmocka_unit_test(stale_camera),
        cmocka_unit_test(corrupt_camera),
        cmocka_unit_test(the_stale_camera_is_named),
        cmocka_unit_test(bad_samples_are_not_taken),
        cmocka_unit_test(refused_joint_states),
        cmocka_unit_test(a_refusal_of_unknown_kind_is_invalid),
        cmocka_unit_test(frames_that_are_refused),
        cmocka_unit_test(the_same_picture),
        cmocka_unit_test(slow_streams_are_only_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
