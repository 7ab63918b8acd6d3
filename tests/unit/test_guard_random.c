// guard: properties of what it publishes, checked by a checker that knows nothing of how.
#include "tests/unit/guard_help.h"

#include <stdio.h>

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
        l->hard_min[i] = -1e301; // anything finite is asked for here
        l->hard_max[i] = 1e301;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_without_jerk),
        cmocka_unit_test(random_with_jerk),
        cmocka_unit_test(random_with_jerk_and_hard_brakes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
