// Joint states that make no sense: which leap is one too far, when leaps are a fault, and
// when a new place is believed. And the rate. In virtual time.
#include "tests/unit/intake_fixture.h"

// ---- sense ---------------------------------------------------------------------------

// 125 ms after the last one lift may be 1.5 * 2 * 0.125 + 0.25 = 0.625 rad away, turn 1.
static void test_bound_of_a_leap(void **state)
{
    const struct {
        double lift, turn;
        int joint; // -1 = accepted
    } row[] = {{0.625, 0, -1},
               {-0.625, 0, -1},
               {nextafter(0.625, 1), 0, 0},
               {nextafter(-0.625, -1), 0, 0},
               {0, 1, -1},
               {0, -1, -1},
               {0, nextafter(1, 2), 1},
               {0.625, -1, -1},
               {0.7, 1.1, 0},
               {1e5, 0, 0}};

    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct rig *r = *state;

        armed(r, i % 2);
        at(r, 0);
        r->now += 125 * MS;
        make(r, WALL + r->now, row[i].lift, row[i].turn, true);
        take(r);
        counts(r, row[i].joint < 0 ? 2 : 1, row[i].joint >= 0, row[i].joint >= 0);
        if (row[i].joint >= 0) {
            last_was(r, REASON_JOINTS_JUMP, row[i].joint, CODEC_IMPOSSIBLE,
                     row[i].joint ? " in 125 ms, by 1 at most"
                                  : " in 125 ms, by 0.625 at most");
            assert_true(r->mark->refused_value ==
                        (row[i].joint ? row[i].turn : row[i].lift));
        }
        assert_int_equal(teardown(state), 0);
        assert_int_equal(setup(state), 0);
    }
}

// What counts is when it was measured, not when it came: after 3 s in the queue 10 ms
// have passed for the arm. And two of one instant may differ by max_jump.
static void test_time_of_a_leap(void **state)
{
    struct rig *r = *state;

    armed(r, true);
    many(r, 3, 0);
    r->now += 400 * MS;
    stamped(r, WALL + 4 * PERIOD, 0.25 + 0.031);
    counts(r, 3, 1, 1);
    stamped(r, WALL + 5 * PERIOD, 0.25 + 0.059);
    counts(r, 4, 1, 1);
    // Without stamps all of a drain are of one instant.
    assert_int_equal(teardown(state), 0);
    assert_int_equal(setup(state), 0);
    r = *state;
    r->now = NS_PER_S;
    stamped(r, 0, 0);
    stamped(r, 0, 0.25);
    counts(r, 2, 0, 0);
    stamped(r, 0, 0.25 + 0.2501);
    counts(r, 2, 1, 1);
}

// One leap, and two in a row, are refused and forgotten; the arm was at rest meanwhile.
static void test_one_and_two_leaps(void **state)
{
    struct rig *r = *state;

    armed(r, true);
    many(r, 5, 0);
    at(r, 10);
    counts(r, 5, 1, 1);
    at(r, 0);
    counts(r, 6, 1, 1); // alone it ends nothing
    at(r, 0);
    counts(r, 7, 1, 0);
    many(r, 3, 0); // forgotten
    at(r, 10);
    counts(r, 10, 2, 1);
    at(r, -10);
    counts(r, 10, 3, 2);
    at(r, 0);
    counts(r, 11, 3, 2);
    at(r, 0);
    counts(r, 12, 3, 0);
    at(r, 10);
    at(r, NAN); // of another kind
    counts(r, 12, 5, 2);
    at(r, 0);
    counts(r, 13, 5, 0);
}

static void test_three_leaps(void **state)
{
    struct rig *r = *state;

    armed(r, true);
    many(r, 5, 0);
    for (uint32_t i = 1; i <= 300; i++) { // after 3.25 s an arm could be there
        at(r, 10);
        counts(r, 5, i, i);
    }
    assert_true(newest(r).pos[0] == 0);
    armed(r, false);
    at(r, 10);
    counts(r, 6, 300, 0);
    assert_true(newest(r).pos[0] == 10);
}

// Two drivers on one endpoint, 10 rad apart: a fault with the third message after the
// first that was one too many, armed or not, and never a believed leap.
static void test_two_drivers(void **state)
{
    for (int is_armed = 0; is_armed < 2; is_armed++) {
        struct rig *r = *state;

        armed(r, is_armed);
        many(r, 5, 0);
        for (int i = 0; i < 1000; i++) {
            at(r, i % 2 ? 0 : 10);
            assert_true(newest(r).pos[0] == 0);
            assert_int_equal(r->mark->refused_in_a_row >= INTAKE_BAD_IN_A_ROW, i >= 2);
        }
        assert_int_equal(r->mark->refused_for, REASON_JOINTS_JUMP);
        at(r, 0); // the second one in a row: the other driver is gone
        counts(r, 506, 500, 0);
        assert_int_equal(teardown(state), 0);
        assert_int_equal(setup(state), 0);
    }
}

// The other driver's clock is 20 ms ahead: the first one's messages are older then, and
// what is left is refused.
static void test_two_drivers_with_clocks(void **state)
{
    struct rig *r = *state;

    armed(r, true);
    many(r, 5, 0);
    for (uint32_t i = 1; i <= 50; i++) {
        r->now += PERIOD;
        stamped(r, WALL + r->now + 20 * MS, 10);
        counts(r, 5, i, i);
        stamped(r, WALL + r->now, 0);
        assert_int_equal(r->mark->out_of_order, i);
    }
}

// Disarmed somebody moves the arm while the driver sleeps: the third that agrees is
// believed.
static void test_new_place(void **state)
{
    struct rig *r = *state;

    many(r, 5, 0);
    for (uint64_t i = 1; i <= 20; i++) {
        at(r, 10 + (double)i / 64);
        counts(r, 5 + (i < 3 ? 0 : i - 2), i < 2 ? 1 : 2, i < 3 ? (uint32_t)i : 0);
    }
    assert_true(newest(r).pos[0] == 10 + 20.0 / 64);
    // The rule between them is the same: three that leap themselves are not believed.
    for (int i = 1; i <= 30; i++) {
        at(r, i % 2 ? 20 : 30);
        counts(r, 23, 2 + (uint64_t)i, (uint32_t)i);
    }
    // Two agree, then another kind of refusal: it counts from one again.
    at(r, 40);
    at(r, 40);
    at(r, NAN);
    at(r, 40);
    at(r, 40);
    counts(r, 23, 37, 35);
    at(r, 40);
    counts(r, 24, 37, 0);
}

// Two agree, then a good one: the same.
static void test_new_place_interrupted(void **state)
{
    struct rig *r = *state;

    many(r, 5, 0);
    for (int i = 0; i < 10; i++) {
        at(r, 10);
        at(r, 10);
        at(r, 0);
        assert_true(newest(r).pos[0] == 0);
    }
    assert_int_equal(r->mark->received, 15);
    assert_int_equal(r->mark->refused, 20);
}

// After a long silence any place is possible.
static void test_after_a_gap(void **state)
{
    struct rig *r = *state;

    many(r, 5, 0);
    r->now += 4 * NS_PER_S;
    at(r, 12);
    counts(r, 6, 0, 0);
    assert_int_equal(r->mark->clock_jumps, 0);
}

// Over random walks the verdicts are those of a twin that keeps all samples.
static void test_leaps_twin(void **state)
{
    struct rig *r = *state;
    uint64_t random = 3;
    double last[JOINTS] = {0, 0};
    ns_t last_ns = 0;
    uint64_t accepted = 0, refused = 0;

    armed(r, true);
    for (int i = 0; i < 20000; i++) {
        double q[JOINTS];
        bool good = true;

        random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        r->now += 1 + (ns_t)(random >> 33) % (40 * MS);
        for (int j = 0; j < JOINTS; j++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
            q[j] = last[j] + ((double)(random >> 33) / (double)(1u << 31) - 0.5) * 0.9;
            if (accepted > 0 &&
                fabs(q[j] - last[j]) >
                    1.5 * config.velocity[j] * ((double)(r->now - last_ns) / 1e9) + 0.25)
                good = false;
        }
        make(r, WALL + r->now, q[0], q[1], i % 2);
        take(r);
        accepted += good;
        refused += !good;
        if (good) {
            memcpy(last, q, sizeof last);
            last_ns = r->now;
        }
        assert_int_equal(r->mark->received, accepted);
        assert_int_equal(r->mark->refused, refused);
    }
    assert_true(accepted > 2000 && refused > 2000);
}

// ---- rate ----------------------------------------------------------------------------

static void test_slow(void **state)
{
    struct rig *r = *state;

    many(r, 200, 0);
    assert_false(r->mark->slow);
    for (int i = 0; i < 200; i++) {
        r->now += PERIOD * 9 / 91; // 91 %
        at(r, 0);
        assert_false(r->mark->slow);
    }
    for (int i = 0; i < 200; i++) {
        r->now += PERIOD * 11 / 89; // 89 %
        at(r, 0);
    }
    assert_true(r->mark->slow);
    many(r, 100, 0);
    assert_false(r->mark->slow);
    // The right rate, but every second one says nothing new.
    for (int i = 0; i < 200; i++) {
        at(r, 0);
        stamped(r, WALL + r->now, 0);
        r->now += PERIOD;
    }
    assert_true(r->mark->slow);
    assert_int_equal(r->mark->duplicate, 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_bound_of_a_leap),
        TEST(test_time_of_a_leap),
        TEST(test_one_and_two_leaps),
        TEST(test_three_leaps),
        TEST(test_two_drivers),
        TEST(test_two_drivers_with_clocks),
        TEST(test_new_place),
        TEST(test_new_place_interrupted),
        TEST(test_after_a_gap),
        TEST(test_leaps_twin),
        TEST(test_slow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
