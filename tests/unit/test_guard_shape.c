// guard: what a motion looks like: untouched when it keeps the limits, quick and without
// overshoot when it does not.
#include "tests/unit/guard_help.h"

// ---- transparency: a target that keeps the limits comes out to the bit ------------------------

static void transparent_for(double jerk, double hz, bool with_velocity, double amplitude,
                            double omega)
{
    struct guard_limits lim = one_joint(jerk);
    struct guard g;
    double zero = amplitude; // a cosine starts at rest

    guard_init(&g, &lim, 1 / hz);
    guard_reset(&g, &zero);
    for (int k = 0; k < 5000; k++) {
        // Amplitude ramps the acceleration in: jerk must be kept at the start as well.
        double t = k / hz, x = t * omega, in = x < 6.2831853 ? 0 : 1;
        double w = in > 0 ? amplitude * cos(x) : amplitude;
        double v = in > 0 ? -amplitude * omega * sin(x) : 0;
        struct guard_result r;

        if (jerk > 0) { // a sine whose acceleration starts from zero: x - sin x
            double y = fmin(x, 6.2831853);
            w = amplitude + 0.1 * amplitude * (y - sin(y));
            v = x < 6.2831853 ? 0.1 * amplitude * omega * (1 - cos(y)) : 0;
        }
        assert_int_equal(guard_apply(&g, &w, with_velocity ? &v : NULL, 1, &r), 0);
        if (r.pos[0] != w || r.limit[0] != GUARD_NONE)
            fail_msg("tick %d at %g Hz: %.17g became %.17g (%d)", k, hz, w, r.pos[0],
                     r.limit[0]);
    }
}

static void transparent(void **state)
{
    (void)state;
    static const double rate[] = {50, 200, 1000};

    for (int i = 0; i < 3; i++)
        for (int with = 0; with < 2; with++) {
            transparent_for(0, rate[i], with, 0.7, 2.5);  // 1.75 rad/s, 4.4 rad/s²
            transparent_for(0, rate[i], with, 0.19, 6.2); // 7.3 rad/s²
            transparent_for(80, rate[i], with, 0.9, 2.5);
            transparent_for(40, rate[i], with, 0.5, 1.0);
        }
}

// A ramp at exactly the velocity limit, reached within the acceleration limit, is not "limited".
static void transparent_at_the_limit(void **state)
{
    (void)state;
    struct guard_limits lim = one_joint(0);
    double dt = 0.005, p = -1.9, v = 0;
    struct guard g;

    guard_init(&g, &lim, dt);
    guard_reset(&g, &p);
    for (int k = 0; k < 300; k++) {
        struct guard_result r;

        v = fmin(v + 8 * dt, 2);
        p += v * dt;
        assert_int_equal(guard_apply(&g, &p, &v, 1, &r), 0);
        assert_true(r.pos[0] == p && r.limit[0] == GUARD_NONE);
    }
}

// ---- shape -----------------------------------------------------------------------------------

static void step_response(double jerk, double hz, double target, double overshoot,
                          double longest)
{
    struct guard_limits lim = one_joint(jerk);
    double zero = 0, arrived = 0, dt = 1 / hz;
    struct guard g;

    guard_init(&g, &lim, dt);
    guard_reset(&g, &zero);
    for (int k = 0; k < (int)(4 * hz); k++) {
        struct guard_result r;

        assert_int_equal(guard_apply(&g, &target, &zero, 1, &r), 0);
        assert_true(r.pos[0] <= target + overshoot);
        if (fabs(r.pos[0] - target) > 1e-5)
            arrived = (k + 1) * dt;
    }
    if (arrived > longest)
        fail_msg("%g Hz, jerk %g: %g s to %g", hz, jerk, arrived, target);
}

static void steps_are_not_overshot(void **state)
{
    (void)state;
    for (double hz = 100; hz <= 1000; hz *= 3) {
        step_response(0, hz, 1, 0, 0.76);    // ideal: 1/2 + 2/8 = 0.75 s
        step_response(0, hz, 0.01, 0, 0.09); // ideal: 2 sqrt(0.01/8) = 0.071 s
        step_response(0, hz, 2, 0, 1.26);    // the position limit itself
        step_response(80, hz, 1, 1e-5, 1.0); // ideal: 0.85 s
        step_response(80, hz, 2, 0, 1.6);
    }
}

// A moving target that is met late is caught up with and then followed without overshoot.
static void ramps_are_caught_up_with(void **state)
{
    (void)state;
    struct guard_limits lim = one_joint(0);
    double dt = 0.005, zero = -1, vel = 0.8;
    struct guard g;
    int met = 0;

    guard_init(&g, &lim, dt);
    guard_reset(&g, &zero);
    for (int k = 0; k < 300; k++) {
        double w = -0.6 + vel * k * dt;
        struct guard_result r;

        assert_int_equal(guard_apply(&g, &w, &vel, 1, &r), 0);
        assert_true(r.pos[0] <= w + 1e-12);
        met += r.pos[0] == w;
    }
    assert_true(met > 150);
}

// Towards a limit at full speed: it stops on the limit, and never decelerates harder than A.
static void brakes_before_the_limit(void **state)
{
    (void)state;
    for (double hz = 50; hz <= 1000; hz *= 2) {
        struct guard_limits lim = one_joint(0);
        double p = 0, w = 0, v = 2, dt = 1 / hz;
        struct guard_result r = {0};
        struct check c;
        struct guard g;

        guard_init(&g, &lim, dt);
        guard_reset(&g, &p);
        check_start(&c, &lim, dt, &p);
        for (int k = 0; k < 2 * (int)hz; k++) { // up to 4 rad, beyond the limit of 2
            w += v * dt;
            assert_int_equal(guard_apply(&g, &w, &v, 1, &r), 0);
            check_tick(&c, &r, 0);
        }
        assert_true(fabs(r.pos[0] - 2) < 1e-12 && r.limit[0] == GUARD_POSITION);
        assert_true(g.limited[0][GUARD_POSITION] > 0);
    }
}

static void scale_slows_down(void **state)
{
    (void)state;
    for (int j = 0; j < 2; j++) {
        struct guard_limits lim = one_joint(j ? 80 : 0);
        double dt = 0.005, p = -1, w = 1, zero = 0, v0 = 0, fastest = 0, hardest = 0;
        struct guard_result r = {0};
        struct guard g;

        guard_init(&g, &lim, dt);
        guard_reset(&g, &p);
        for (int k = 0; k < 2000; k++) {
            guard_apply(&g, &w, &zero, 0.25, &r);
            fastest = fmax(fastest, fabs(r.vel[0]));
            hardest = fmax(hardest, fabs(r.vel[0] - v0) / dt);
            v0 = r.vel[0];
        }
        assert_true(fastest > 0.4 && fastest <= 0.5 + 1e-9);
        assert_true(hardest > 1.5 && hardest <= 2 + 1e-6);
        assert_true(fabs(r.pos[0] - 1) < 1e-4);
    }
}

static void outside_goes_in_only(void **state)
{
    (void)state;
    struct guard_limits lim = one_joint(0);
    double p = 2.5, w = 3, zero = 0, last = 2.5;
    struct guard_result r = {0};
    struct guard g;

    guard_init(&g, &lim, 0.005);
    guard_reset(&g, &p);
    for (int k = 0; k < 400; k++) {
        assert_int_equal(guard_apply(&g, &w, &zero, 1, &r), 0);
        assert_true(r.pos[0] <= last && fabs(r.vel[0]) <= 2 + 1e-9);
        last = r.pos[0];
    }
    assert_true(last == 2);
    guard_reset(&g, &p);
    guard_brake(&g, true, &r);
    assert_true(r.pos[0] == 2.5 && r.vel[0] == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transparent),
        cmocka_unit_test(transparent_at_the_limit),
        cmocka_unit_test(steps_are_not_overshot),
        cmocka_unit_test(ramps_are_caught_up_with),
        cmocka_unit_test(brakes_before_the_limit),
        cmocka_unit_test(scale_slows_down),
        cmocka_unit_test(outside_goes_in_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
