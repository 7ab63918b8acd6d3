// The loop under a clock the test owns, to the tick: the loop itself late, away or
// stalled, its guard broken, and what it remembers of faults.
#include "tests/unit/loop_world.h"

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

// A guard whose limits were overwritten: the gate still knows them.
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

// The monitor has cut the output: the first tick that knows stops, and its commands
// count again.
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

// Whatever the budget: one tick in 30 that works for 60 ms loses 11 more.
static void what_is_skipped_is_lost(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();
    int n;

    cfg.budget_ns[BOARD_WAKEUP] = 100 * MS;
    world_start(&w, &cfg);
    to_running(&w);
    for (n = 0; n < 300 && mode(&w) == LADDER_RUNNING; n++)
        step_skip(&w, n % 30 == 29 ? 11 : 0);
    assert_int_equal(mode(&w), LADDER_STOPPING);
    assert_int_equal(reason(&w), REASON_LATE_WAKEUPS);
    world_end(&w);
}

// What is wrong with a camera does not stop the way home, and so it must not latch.
static void a_fault_that_stops_nothing_does_not_latch(void **state)
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
    step(&w);
    w.camera_off = true;
    for (int i = 0; i < 130; i++)
        step(&w);
    assert_int_equal(mode(&w), LADDER_HOMING);
    assert_true((loop_last(w.loop)->faults.active >> REASON_CAMERA_STALE) & 1);
    assert_int_equal(loop_last(w.loop)->faults.latched, 0);
    world_end(&w);
}

// A guard that goes wrong while the arm rests is still one that must not be armed.
static void a_refusal_at_rest_latches(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();

    world_start(&w, &cfg);
    to_running(&w);
    request(&w, BOARD_DISARM);
    until(&w, LADDER_READY, 400);
    w.loop->guard.pos[1] += 1; // somebody wrote there
    step(&w);
    step(&w);
    assert_int_equal(mode(&w), LADDER_STOPPING);
    assert_int_equal(reason(&w), REASON_INTERNAL);
    until(&w, LADDER_STOPPED, 5);
    assert_int_equal(loop_last(w.loop)->faults.latched, UINT64_C(1) << REASON_INTERNAL);
    world_end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_are_kept),
        cmocka_unit_test(tick_gaps),
        cmocka_unit_test(gate_catches_a_broken_guard),
        cmocka_unit_test(a_stall_stops),
        cmocka_unit_test(late_wakeups),
        cmocka_unit_test(skipped_ticks_are_late_ones),
        cmocka_unit_test(what_is_skipped_is_lost),
        cmocka_unit_test(a_fault_that_stops_nothing_does_not_latch),
        cmocka_unit_test(a_refusal_at_rest_latches),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
