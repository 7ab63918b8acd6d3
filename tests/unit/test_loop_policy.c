// The loop under a clock the test owns, to the tick: a policy that fails, is late, says
// nothing or wants what can not be.
#include "tests/unit/loop_world.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hold_expires),        cmocka_unit_test(policy_fails),
        cmocka_unit_test(target_not_finite),   cmocka_unit_test(no_chunk_says_why),
        cmocka_unit_test(chunks_out_of_range),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
