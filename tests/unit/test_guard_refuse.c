// guard: vectors that are refused whole, and what a refusal leaves untouched.
#include "tests/unit/guard_help.h"

#include <errno.h>
#include <float.h>

#define DT (1 / 128.0)

static struct guard_limits four(void)
{
    struct guard_limits l = {.n = JOINTS};

    for (int i = 0; i < JOINTS; i++) {
        l.min[i] = -1;
        l.max[i] = 2;
        l.velocity[i] = 2;
        l.acceleration[i] = l.stop_acceleration[i] = 8;
    }
    return l;
}

struct scene {
    struct guard g, before;
    struct guard_result r, kept;
    double wanted[JOINTS], vel[JOINTS];
};

static void begin(struct scene *s, const struct guard_limits *l)
{
    double pos[JOINTS] = {0};

    memset(s, 0, sizeof *s);
    guard_init(&s->g, l, DT);
    guard_reset(&s->g, pos);
    assert_int_equal(guard_apply(&s->g, s->wanted, s->vel, 1, &s->r), 0);
    s->before = s->g;
    s->kept = s->r;
}

// The only traces are the count and the joint.
static void refused(struct scene *s, const double *vel, int rc, int joint)
{
    assert_int_equal(guard_apply(&s->g, s->wanted, vel, 1, &s->r), rc);
    if (rc == -EDOM)
        s->before.refused++;
    else
        s->before.out_of_range++;
    s->before.refused_joint = joint;
    assert_memory_equal(&s->before, &s->g, sizeof s->g);
    assert_memory_equal(&s->kept, &s->r, sizeof s->r);
}

static void not_finite(void **state)
{
    (void)state;
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    struct guard_limits l = four();
    struct scene s;

    begin(&s, &l);
    assert_int_equal(s.g.refused_joint, -1);
    for (int i = 0; i < JOINTS; i++)
        for (int b = 0; b < 6; b++) {
            double *x = b < 3 ? &s.wanted[i] : &s.vel[i], good = *x;

            *x = bad[b % 3];
            refused(&s, s.vel, -EDOM, i);
            if (b < 3)
                refused(&s, NULL, -EDOM, i);
            *x = good;
        }
    assert_int_equal(s.g.refused, 9 * JOINTS);
    assert_int_equal(s.g.out_of_range, 0);
    assert_int_equal(guard_apply(&s.g, s.wanted, s.vel, 1, &s.r), 0);
    assert_int_equal(s.g.refused_joint, JOINTS - 1); // the last one, until the next
}

static void beyond_a_hard_limit(void **state)
{
    (void)state;
    struct guard_limits l = four();
    struct scene s;

    l.hard_min[1] = -1.5;
    l.hard_max[1] = 2.25;
    l.hard_max[2] = 2.5; // a hard limit at 0 is set when the other one is
    l.min[2] = 0.5;
    l.hard_min[3] = -2;
    l.max[3] = -0.5;
    begin(&s, &l);
    static const double lo[] = {-4, -1.5, 0, -2}, hi[] = {5, 2.25, 2.5, 0};
    for (int i = 0; i < JOINTS; i++) {
        s.wanted[i] = nextafter(lo[i], -9);
        refused(&s, s.vel, -ERANGE, i);
        s.wanted[i] = nextafter(hi[i], 9);
        refused(&s, NULL, -ERANGE, i);
        s.wanted[i] = -DBL_MAX;
        refused(&s, s.vel, -ERANGE, i);
        s.wanted[i] = lo[i]; // just there: limited as ever
        assert_int_equal(guard_apply(&s.g, s.wanted, s.vel, 1, &s.r), 0);
        assert_true(s.r.limit[i] != GUARD_NONE);
        s.wanted[i] = hi[i];
        assert_int_equal(guard_apply(&s.g, s.wanted, s.vel, 1, &s.r), 0);
        assert_true(s.r.limit[i] != GUARD_NONE);
        s.wanted[i] = 0;
        s.before = s.g;
        s.kept = s.r;
    }
    assert_int_equal(s.g.out_of_range, 3 * JOINTS);
    assert_int_equal(s.g.refused, 0);
}

// Not set: the position limits and their width again on either side, for these joints alone.
static void hard_limits_filled_in(void **state)
{
    (void)state;
    struct guard_limits l = four();
    struct guard g;

    l.hard_min[1] = -0.5;
    l.hard_max[2] = 0.5;
    l.hard_min[3] = -7;
    l.hard_max[3] = 7;
    l.max[4] = 1; // no joint
    memset(&g, 0xa5, sizeof g);
    guard_init(&g, &l, DT);
    assert_true(g.lim.hard_min[0] == -4 && g.lim.hard_max[0] == 5);
    assert_true(g.lim.hard_min[1] == -0.5 && g.lim.hard_max[1] == 0);
    assert_true(g.lim.hard_min[2] == 0 && g.lim.hard_max[2] == 0.5);
    assert_true(g.lim.hard_min[3] == -7 && g.lim.hard_max[3] == 7);
    assert_true(g.lim.hard_min[4] == 0 && g.lim.hard_max[4] == 0);
    assert_true(g.lim.n == JOINTS && g.lim.max[3] == 2 && g.period_s == DT);
    assert_true(g.refused == 0 && g.out_of_range == 0 && g.refused_joint == -1);
    assert_true(g.jerk_broken == 0 && g.limited[0][GUARD_POSITION] == 0);
}

// Several things wrong: the first joint decides, and for one joint what is no number at all.
static void the_first_joint_refused(void **state)
{
    (void)state;
    struct guard_limits l = four();
    struct scene s;

    begin(&s, &l);
    s.wanted[1] = 100;
    s.wanted[2] = NAN;
    refused(&s, s.vel, -ERANGE, 1);
    s.vel[1] = INFINITY;
    refused(&s, s.vel, -EDOM, 1);
    s.vel[0] = 1e300; // however fast a target moves is its own business
    refused(&s, s.vel, -EDOM, 1);
    s.wanted[0] = -100;
    refused(&s, s.vel, -ERANGE, 0);
    s.g.lim.n = 0; // no joints, nothing wrong
    assert_int_equal(guard_apply(&s.g, s.wanted, s.vel, 1, &s.r), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(not_finite),
        cmocka_unit_test(beyond_a_hard_limit),
        cmocka_unit_test(hard_limits_filled_in),
        cmocka_unit_test(the_first_joint_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
