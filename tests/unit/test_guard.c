// guard: properties of what it publishes, checked by a checker that knows nothing of how.
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/guard.h"
#include "daemon/limit.h"

#define JOINTS 4

static uint64_t seed = 88172645463325252u;
static double rnd(void) // [0, 1)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (double)(seed >> 11) * 0x1p-53;
}
static double between(double lo, double hi)
{
    return lo + (hi - lo) * rnd();
}

// ---- the checker: differences of published positions, nothing else --------------------------
struct check {
    struct guard_limits lim;
    double dt, p[JOINTS], v[JOINTS], a[JOINTS];
    double worst_v, worst_a, worst_j;
    uint64_t ticks, jerk_over;
    int loose; // ticks for which jerk is not asked for: a hard brake and the one after
};

static void check_start(struct check *c, const struct guard_limits *lim, double dt,
                        const double *pos)
{
    memset(c, 0, sizeof *c);
    c->lim = *lim;
    c->dt = dt;
    for (int i = 0; i < lim->n; i++)
        c->p[i] = pos[i];
    c->loose = 1;
}

static void check_tick(struct check *c, const struct guard_result *r, int hard)
{
    if (hard)
        c->loose = 2;
    c->ticks++;
    for (int i = 0; i < c->lim.n; i++) {
        double p = r->pos[i], v = (p - c->p[i]) / c->dt, a = (v - c->v[i]) / c->dt;
        double j = (a - c->a[i]) / c->dt;
        double eps_a = 1e-11 / (c->dt * c->dt), eps_j = 4e-11 / (c->dt * c->dt * c->dt);
        double A = c->lim.acceleration[i];

        if (hard && c->lim.stop_acceleration[i] > A)
            A = c->lim.stop_acceleration[i];
        assert_true(isfinite(p) && isfinite(r->vel[i]));
        assert_true(p >= c->lim.min[i] && p <= c->lim.max[i]);
        assert_true(fabs(r->vel[i] - v) < 1e-9);
        if (fabs(v) > c->lim.velocity[i] * (1 + 1e-9) + 1e-11 / c->dt)
            fail_msg("joint %d velocity %.12g over %g", i, v, c->lim.velocity[i]);
        if (fabs(a) > A * (1 + 1e-7) + eps_a)
            fail_msg("joint %d tick %lu acceleration %.12g over %g", i,
                     (unsigned long)c->ticks, a, A);
        if (c->lim.jerk[i] > 0 && c->loose == 0 &&
            fabs(j) > c->lim.jerk[i] * (1 + 1e-7) + eps_j)
            c->jerk_over++;
        c->p[i] = p;
        c->v[i] = v;
        c->a[i] = a;
    }
    if (c->loose > 0)
        c->loose--;
}

// ---- wanted ----------------------------------------------------------------------------------
enum shape { NOISE, STEPS, RAMP, SINE, WALK, HUGE_VALUES, SHAPES };
struct want {
    enum shape shape;
    double base[JOINTS], amp[JOINTS], freq, t;
    int left;
};

static void want_next(struct want *w, const struct guard_limits *lim, double dt,
                      double *out, double *vel)
{
    if (w->left-- <= 0) {
        w->shape = (enum shape)(rnd() * SHAPES);
        w->left = (int)between(1, 400);
        w->freq = between(0.1, 30);
        for (int i = 0; i < JOINTS; i++) {
            w->base[i] = between(lim->min[i] - 0.5, lim->max[i] + 0.5);
            w->amp[i] = between(-3, 3);
        }
    }
    w->t += dt;
    for (int i = 0; i < JOINTS; i++) {
        vel[i] = 0;
        switch (w->shape) {
        case NOISE:
            out[i] = w->base[i] + between(-0.3, 0.3);
            break;
        case STEPS:
            if (rnd() < 0.01)
                w->base[i] = between(lim->min[i] - 0.5, lim->max[i] + 0.5);
            out[i] = w->base[i];
            break;
        case RAMP:
            out[i] = w->base[i] += w->amp[i] * dt;
            vel[i] = w->amp[i];
            break;
        case SINE:
            out[i] = w->base[i] + w->amp[i] * sin(6.28 * w->freq * w->t);
            vel[i] = w->amp[i] * 6.28 * w->freq * cos(6.28 * w->freq * w->t);
            break;
        case WALK:
            out[i] = w->base[i] += between(-0.02, 0.02);
            break;
        default:
            out[i] = rnd() < 0.5 ? 1e300 * between(-1, 1) : w->base[i];
            break;
        }
    }
}

static void random_limits(struct guard_limits *l, int with_jerk)
{
    memset(l, 0, sizeof *l);
    l->n = JOINTS;
    for (int i = 0; i < JOINTS; i++) {
        l->min[i] = between(-3, -0.05);
        l->max[i] = between(0.05, 3);
        l->velocity[i] = exp(between(log(0.1), log(6)));
        l->acceleration[i] = exp(between(log(0.5), log(60)));
        l->jerk[i] = with_jerk ? exp(between(log(5), log(3000))) : 0;
        l->stop_acceleration[i] = l->acceleration[i] * between(0.5, 3);
    }
}

static uint64_t run_random(int rounds, int ticks, int with_jerk, int hard_brakes)
{
    uint64_t over = 0, broken = 0;

    for (int round = 0; round < rounds; round++) {
        static const double rate[] = {50, 100, 200, 500, 1000};
        struct guard_limits lim;
        struct guard g;
        struct check c;
        struct want w = {0};
        double dt = 1 / rate[(int)(rnd() * 5)], pos[JOINTS], wanted[JOINTS], vel[JOINTS];
        int braking = 0, hard = 0;

        random_limits(&lim, with_jerk);
        guard_init(&g, &lim, dt);
        for (int i = 0; i < JOINTS; i++)
            pos[i] = between(lim.min[i], lim.max[i]);
        guard_reset(&g, pos);
        check_start(&c, &lim, dt, pos);
        for (int k = 0; k < ticks; k++) {
            struct guard_result r;

            if (braking == 0 && rnd() < 0.003) {
                braking = (int)between(1, 200);
                hard = hard_brakes && rnd() < 0.5;
            }
            if (braking == 0 && rnd() < 0.0005) { // as on arming
                for (int i = 0; i < JOINTS; i++)
                    pos[i] = between(lim.min[i], lim.max[i]);
                guard_reset(&g, pos);
                over += c.jerk_over;
                check_start(&c, &lim, dt, pos);
            }
            want_next(&w, &lim, dt, wanted, vel);
            if (braking > 0) {
                braking--;
                guard_brake(&g, hard, &r);
                check_tick(&c, &r, hard);
                continue;
            }
            if (rnd() < 0.002)
                wanted[(int)(rnd() * JOINTS)] = rnd() < 0.5 ? NAN : INFINITY;
            double scale = w.left % 50 == 0 ? 0.3 : 1;
            if (guard_apply(&g, wanted, rnd() < 0.5 ? vel : NULL, scale, &r) != 0) {
                guard_brake(&g, 0, &r);
            }
            check_tick(&c, &r, 0);
        }
        over += c.jerk_over;
        broken += g.jerk_broken;
    }
    if (with_jerk && !hard_brakes)
        assert_int_equal(broken, 0); // the guard's own count agrees
    if (with_jerk)
        printf("jerk over its limit in %lu joint-ticks, the guard says %lu\n",
               (unsigned long)over, (unsigned long)broken);
    return over;
}

static void random_without_jerk(void **state)
{
    (void)state;
    run_random(300, 2000, 0, 1);
}

static void random_with_jerk(void **state)
{
    (void)state;
    assert_int_equal(run_random(150, 2000, 1, 0), 0);
}

// After a hard brake jerk may give way, but nothing else.
static void random_with_jerk_and_hard_brakes(void **state)
{
    (void)state;
    run_random(50, 2000, 1, 1);
}

// ---- transparency: a target that keeps the limits comes out to the bit ------------------------

static struct guard_limits one_joint(double jerk)
{
    return (struct guard_limits){.n = 1,
                                 .min = {-2},
                                 .max = {2},
                                 .velocity = {2},
                                 .acceleration = {8},
                                 .jerk = {jerk},
                                 .stop_acceleration = {16}};
}

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
        for (int k = 0; k < 3 * (int)hz; k++) {
            w += v * dt;
            assert_int_equal(guard_apply(&g, &w, &v, 1, &r), 0);
            check_tick(&c, &r, 0);
        }
        assert_true(fabs(r.pos[0] - 2) < 1e-12 && r.limit[0] == GUARD_POSITION);
        assert_true(g.limited[0][GUARD_POSITION] > 0);
    }
}

static void braking(void **state)
{
    (void)state;
    struct guard_limits lim = one_joint(0);
    double dt = 0.005, p = -2, w = 2, zero = 0, time_s, distance;
    struct guard_result r;
    struct guard g;

    for (int hard = 0; hard < 2; hard++) {
        guard_init(&g, &lim, dt);
        guard_reset(&g, &p);
        for (int k = 0; k < 100; k++)
            guard_apply(&g, &w, &zero, 1, &r);
        assert_true(fabs(g.vel[0] - 2) < 1e-9 && !guard_at_rest(&g));
        double from = g.pos[0];
        int ticks = 0;
        while (!guard_at_rest(&g)) {
            guard_brake(&g, hard, &r);
            ticks++;
            assert_true(ticks < 100);
        }
        assert_int_equal(ticks, hard ? 25 : 50); // 2 rad/s at 16 or 8 rad/s²
        guard_stopping(&lim, 0, &time_s, &distance);
        assert_true(time_s == 0.125 && distance == 0.125);
        if (hard)
            assert_true(g.pos[0] - from <= distance && ticks * dt <= time_s + 1e-12);
        double rest = g.pos[0];
        guard_brake(&g, hard, &r);
        assert_true(r.pos[0] == rest && r.vel[0] == 0);
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

// A scale that makes no sense is none.
static void bad_scales(void **state)
{
    (void)state;
    static const double bad[] = {0, -1, 2, NAN};

    for (int i = 0; i < 4; i++) {
        struct guard_limits lim = one_joint(0);
        double p = 0, w = 1, zero = 0;
        struct guard_result r;
        struct guard g;

        guard_init(&g, &lim, 0.005);
        guard_reset(&g, &p);
        assert_int_equal(guard_apply(&g, &w, &zero, bad[i], &r), 0);
        assert_true(fabs(r.vel[0] - 8 * 0.005) < 1e-9);
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

static void not_finite_changes_nothing(void **state)
{
    (void)state;
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    struct guard_limits lim;
    struct guard_result r, kept;
    struct guard g, before;
    double p[JOINTS] = {0}, w[JOINTS] = {0.1, 0.1, 0.1, 0.1}, v[JOINTS] = {0};

    random_limits(&lim, 0);
    guard_init(&g, &lim, 0.005);
    guard_reset(&g, p);
    assert_int_equal(guard_apply(&g, w, v, 1, &r), 0);
    for (int i = 0; i < JOINTS; i++)
        for (int b = 0; b < 6; b++) {
            double *x = b < 3 ? &w[i] : &v[i], good = *x;

            before = g;
            kept = r;
            *x = bad[b % 3];
            assert_int_equal(guard_apply(&g, w, v, 1, &r), -EDOM);
            *x = good;
            before.refused++;
            assert_memory_equal(&before, &g, sizeof g);
            assert_memory_equal(&kept, &r, sizeof r);
        }
    assert_int_equal(g.refused, 6 * JOINTS);
}

// A joint stopped mid-way by a jerk-limited brake never goes further than the closed form said.
static void advance_is_an_upper_bound(void **state)
{
    (void)state;
    double closest = 0;

    for (int i = 0; i < 100000; i++) {
        double A = exp(between(log(0.5), log(60))), J = exp(between(log(5), log(3000)));
        double dt = exp(between(log(0.001), log(0.02))),
               V = exp(between(log(0.1), log(6)));
        struct limit_joint j = {-1e9, 1e9, V, A, J, dt};
        struct limit_state s = {0, between(-V, V), between(-A, A)};
        double bound = limit_advance(s.vel, s.acc, A, J, dt), most = 0;

        if (fabs(s.vel + copysign(s.acc * s.acc / (2 * J), s.acc)) > V)
            continue; // such a state is never allowed
        for (int k = 0; k < 20000 && (s.vel != 0 || s.acc != 0); k++) {
            struct limit_step o = limit_brake(&j, &s, A, false);

            s = (struct limit_state){o.pos, o.vel, (o.vel - s.vel) / dt};
            most = fmax(most, s.pos);
        }
        assert_true(most <= bound + 1e-12);
        if (bound > 0)
            closest = fmax(closest, most / bound);
    }
    printf("closest to the bound: %.4f\n", closest);
    assert_true(closest > 0.9); // and it is not so wide as to be useless
}

// The discrete sqrt rule against counting it out.
static void brake_speed_is_exact(void **state)
{
    (void)state;
    for (int i = 0; i < 20000; i++) {
        double A = between(0.5, 50), dt = between(0.001, 0.02),
               room = exp(between(-16, 1));
        double v = limit_brake_speed(room, A, dt), sum = 0;

        for (double x = v; x > 0; x -= A * dt)
            sum += x * dt;
        assert_true(fabs(sum - room) <= 1e-9 * (1 + room));
    }
    assert_true(limit_brake_speed(0, 1, 0.01) == 0 &&
                limit_brake_speed(-1, 1, 0.01) == 0);
}

static void gate(void **state)
{
    (void)state;
    struct guard_limits lim = one_joint(0);
    const double dt = 0.005, zero = 0, nan = NAN, inf = INFINITY;
    struct {
        double before, now, vel;
        bool pass;
    } cases[] = {
        {0, 0, 0, true},
        {0, 0.01, 2, true},
        {0, 0.0101, 2, false},
        {0, -0.0101, -2, false},
        {0, 0.01, 2.001, false},
        {0, -0.01, -2.001, false},
        {2, 2, 0, true},
        {1.999, 2.0000001, 0, false},
        {-1.999, -2.0000001, 0, false},
        {-2, -2, 0, true},
        {0, nan, 0, false},
        {0, 0, nan, false},
        {nan, 0, 0, false},
        {0, inf, 0, false},
        {0, 0, -inf, false},
        {0, -inf, 0, false},
        {inf, 0, 0, false},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(
            guard_gate(&lim, dt, &cases[i].before, &cases[i].now, &cases[i].vel),
            cases[i].pass);
    lim.velocity[0] =
        0.1; // a slow joint at exactly its limit: rounding is forgiven, not more
    const double step = 0.1 * dt, slow = 0.1, over = step + 2e-9, faster = 0.1 + 2e-9;
    assert_true(guard_gate(&lim, dt, &zero, &step, &slow));
    assert_false(guard_gate(&lim, dt, &zero, &over, &slow));
    assert_false(guard_gate(&lim, dt, &zero, &step, &faster));
    lim.min[0] = lim.max[0] = nan; // limits that are not numbers pass nothing
    assert_false(guard_gate(&lim, dt, &zero, &zero, &zero));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_without_jerk),
        cmocka_unit_test(random_with_jerk),
        cmocka_unit_test(random_with_jerk_and_hard_brakes),
        cmocka_unit_test(transparent),
        cmocka_unit_test(transparent_at_the_limit),
        cmocka_unit_test(steps_are_not_overshot),
        cmocka_unit_test(ramps_are_caught_up_with),
        cmocka_unit_test(brakes_before_the_limit),
        cmocka_unit_test(braking),
        cmocka_unit_test(scale_slows_down),
        cmocka_unit_test(bad_scales),
        cmocka_unit_test(outside_goes_in_only),
        cmocka_unit_test(not_finite_changes_nothing),
        cmocka_unit_test(advance_is_an_upper_bound),
        cmocka_unit_test(brake_speed_is_exact),
        cmocka_unit_test(gate),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
