// The loop under a clock the test owns, to the tick: an arm that does not follow or is
// where it must not be, and the way home.
#include "tests/unit/loop_world.h"

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
        cmocka_unit_test(following_error),
        cmocka_unit_test(normal_lag_is_no_following_error),
        cmocka_unit_test(outside_the_limits),
        cmocka_unit_test(goes_home),
        cmocka_unit_test(home_needs_a_rest_pose),
        cmocka_unit_test(a_late_stream_ends_the_way_home),
        cmocka_unit_test(lost_outside_the_limits),
        cmocka_unit_test(chattering_contact),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
