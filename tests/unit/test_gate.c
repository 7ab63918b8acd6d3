// gate: each check alone, at its bound and one step beyond it, and with nothing else wrong.
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/gate.h"

#define DT  0.005
#define TTL (20 * NS_PER_MS)

// Two joints, so that the second is looked at as well as the first.
static const struct guard_limits limits = {
    .n = 2,
    .min = {-1, -2},
    .max = {1.5, 2},
    .velocity = {2, 4},
    .acceleration = {8, 8},
};

static enum gate_verdict check(int joint, double previous, double command,
                               double velocity, ns_t ttl, int *culprit)
{
    double before[2] = {0, 0}, now[2] = {0, 0}, vel[2] = {0, 0};

    before[joint] = previous;
    now[joint] = command;
    vel[joint] = velocity;
    return gate_check(&limits, DT, before, now, vel, ttl, culprit);
}

static void expect(enum gate_verdict want, double previous, double command,
                   double velocity, ns_t ttl)
{
    int culprit = 99;

    assert_int_equal(check(0, previous, command, velocity, ttl, &culprit), want);
    assert_int_equal(culprit, want == GATE_PASSED || want == GATE_TTL ? -1 : 0);
}

static void passes(void **state)
{
    (void)state;
    expect(GATE_PASSED, 0, 0, 0, TTL);
    expect(GATE_PASSED, 0.5, 0.505, 1, TTL);
    expect(GATE_PASSED, -1, -1, 0, TTL); // at the limits
    expect(GATE_PASSED, 1.5, 1.5, 0, TTL);
    expect(GATE_PASSED, 0, 0.01, 2, TTL); // the longest step, at top speed
    expect(GATE_PASSED, 0, -0.01, -2, TTL);
    expect(GATE_PASSED, 0, 0.01 + 5e-10, 2 + 5e-10, TTL); // rounding
    expect(GATE_PASSED, 0, -0.01 - 5e-10, -2 - 5e-10, TTL);
    expect(GATE_PASSED, 0, -0.0, -0.0, TTL);
}

static void not_finite(void **state)
{
    (void)state;
    const double bad[] = {NAN, -NAN, INFINITY, -INFINITY};

    for (int i = 0; i < 4; i++) {
        expect(GATE_NOT_FINITE, 0, bad[i], 0, TTL);
        expect(GATE_NOT_FINITE, 0, 0, bad[i], TTL);
        expect(GATE_STEP, bad[i], 0, 0, TTL); // the one before can not be judged
    }
    expect(GATE_POSITION, 0, DBL_MAX, 0, TTL);
    expect(GATE_POSITION, 0, -DBL_MAX, 0, TTL);
    expect(GATE_VELOCITY, 0, 0, DBL_MAX, TTL);
    expect(GATE_VELOCITY, 0, 0, -DBL_MAX, TTL);
}

static void position(void **state)
{
    (void)state;
    expect(GATE_POSITION, 1.5, nextafter(1.5, 2), 0, TTL);
    expect(GATE_POSITION, -1, nextafter(-1, -2), 0, TTL);
}

static void velocity(void **state)
{
    (void)state;
    expect(GATE_VELOCITY, 0, 0, 2 + 1e-8, TTL);
    expect(GATE_VELOCITY, 0, 0, -2 - 1e-8, TTL);
    expect(GATE_PASSED, 0, 0, 2 + 2.9e-9, TTL); // relative and absolute slack
    expect(GATE_VELOCITY, 0, 0, 2 + 3.1e-9, TTL);
}

static void step(void **state)
{
    (void)state;
    expect(GATE_STEP, 0, 0.01 + 1e-8, 0, TTL);
    expect(GATE_STEP, 0, -0.01 - 1e-8, 0, TTL);
    expect(GATE_PASSED, 0, 0.01 + 1.009e-9, 0, TTL);
    expect(GATE_STEP, 0, 0.01 + 1.02e-9, 0, TTL);
    expect(GATE_STEP, 1, -0.5, 0, TTL);
}

static void time_to_live(void **state)
{
    (void)state;
    expect(GATE_TTL, 0, 0, 0, 0);
    expect(GATE_TTL, 0, 0, 0, -1);
    expect(GATE_PASSED, 0, 0, 0, 1);
    expect(GATE_PASSED, 0, 0, 0, 10 * NS_PER_S);
    expect(GATE_TTL, 0, 0, 0, 10 * NS_PER_S + 1);
    expect(GATE_TTL, 0, 0, 0, INT64_MAX);
}

static void every_joint(void **state)
{
    (void)state;
    int culprit;

    assert_int_equal(check(1, 0, 2.5, 0, TTL, &culprit), GATE_POSITION);
    assert_int_equal(culprit, 1);
    assert_int_equal(check(1, 0, 0.02, 4, TTL, &culprit), GATE_PASSED); // its own limits
    assert_int_equal(check(1, 0, 0.021, 4, TTL, &culprit), GATE_STEP);
    assert_int_equal(check(1, 0, 0, 4.1, TTL, &culprit), GATE_VELOCITY);
    assert_int_equal(check(1, 0, NAN, 0, TTL, &culprit), GATE_NOT_FINITE);
}

static void names(void **state)
{
    (void)state;
    assert_string_equal(gate_verdict_name(GATE_PASSED), "passed");
    assert_string_equal(gate_verdict_name(GATE_TTL), "its time to live");
    assert_string_equal(gate_verdict_name((enum gate_verdict)GATE_VERDICTS), "?");
    assert_string_equal(gate_verdict_name((enum gate_verdict) - 1), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes),      cmocka_unit_test(not_finite),
        cmocka_unit_test(position),    cmocka_unit_test(velocity),
        cmocka_unit_test(step),        cmocka_unit_test(time_to_live),
        cmocka_unit_test(every_joint), cmocka_unit_test(names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
