// guard: the vector. Each joint gets what limit says, from the state that was published; counts,
// refusals and the joint to blame are right.
#include "tests/unit/guard_help.h"

#include <errno.h>

#include "daemon/limit.h"

#define DT (1 / 128.0)

// Three joints of which the last has jerk; the fourth is none.
static struct guard_limits three(void)
{
    struct guard_limits l = {.n = 3};

    for (int i = 0; i < 4; i++) {
        l.min[i] = -1 - i;
        l.max[i] = 2 + i;
        l.velocity[i] = 1 + i;
        l.acceleration[i] = 8 + i;
        l.stop_acceleration[i] = 16 + i;
    }
    l.jerk[2] = 64;
    return l;
}

static void start(struct guard *g, const struct guard_limits *l, const double *pos)
{
    memset(g, 0xa5, sizeof *g);
    guard_init(g, l, DT);
    guard_reset(g, pos);
}

// ---- against limit, one joint at a time ------------------------------------------------------

struct follow { // what guard keeps of a joint
    struct limit_state s;
    double wanted, vel;
};

static void fill_joint(const struct guard_limits *l, int i, struct limit_joint *j)
{
    *j = (struct limit_joint){l->min[i],          l->max[i],  l->velocity[i],
                              l->acceleration[i], l->jerk[i], DT};
}

static struct limit_step follow_apply(const struct limit_joint *j, struct follow *f,
                                      double wanted, const double *vel, double scale)
{
    double in = wanted < j->min ? j->min : wanted > j->max ? j->max : wanted;
    double v = vel ? *vel : (in - f->wanted) / DT, a;

    v = v > j->velocity ? j->velocity : v < -j->velocity ? -j->velocity : v;
    a = (v - f->vel) / DT;
    f->wanted = in;
    f->vel = v;
    return limit_towards(j, &f->s, wanted, v, a, scale);
}

static struct limit_step follow_brake(const struct limit_joint *j, struct follow *f,
                                      double stop, bool hard)
{
    struct limit_step o = limit_brake(j, &f->s, hard ? stop : j->acceleration, hard);

    f->wanted = o.pos;
    f->vel = o.vel;
    return o;
}

static void after(struct follow *f, const struct limit_step *o)
{
    f->s.acc = (o->vel - f->s.vel) / DT;
    f->s.vel = o->vel;
    f->s.pos = o->pos;
}

static void each_joint_as_limit_says(void **state)
{
    (void)state;
    struct guard_limits l = three();
    double pos[4] = {0, 0.5, -0.5, 7}, wanted[4] = {0}, vel[4] = {0}, broken = 0;
    uint64_t limited[3][GUARD_LIMITS] = {{0}};
    struct follow f[3] = {0};
    struct guard_result r;
    struct guard g;

    start(&g, &l, pos);
    assert_true(g.pos[3] == 0);
    g.vel[3] = 0.5; // stays what it is: there is no such joint
    for (int i = 0; i < 3; i++)
        f[i].s.pos = f[i].wanted = pos[i];
    for (int k = 0; k < 20000; k++) {
        bool brake = k % 500 > 490, hard = k % 1000 > 900, given = k % 3000 < 1500;
        double scale = k % 700 < 350 ? 1 : 0.3;
        int first = -1;

        for (int i = 0; i < 3; i++) {
            if (rnd() < 0.02) {
                wanted[i] = between(l.min[i] - 0.2, l.max[i] + 0.2);
                vel[i] = rnd() < 0.3 ? 0 : between(-1.5, 1.5) * l.velocity[i];
            }
            wanted[i] = fmax(fmin(wanted[i] + vel[i] * DT, l.max[i] + 1), l.min[i] - 1);
        }
        memset(&r, 0xa5, sizeof r);
        if (brake)
            guard_brake(&g, hard, &r);
        else
            assert_int_equal(guard_apply(&g, wanted, given ? vel : NULL, scale, &r), 0);
        for (int i = 0; i < 3; i++) {
            struct limit_joint j;
            struct limit_step o;

            fill_joint(&l, i, &j);
            o = brake ? follow_brake(&j, &f[i], l.stop_acceleration[i], hard)
                      : follow_apply(&j, &f[i], wanted[i], given ? &vel[i] : NULL, scale);
            after(&f[i], &o);
            assert_true(r.pos[i] == o.pos && r.vel[i] == o.vel && r.limit[i] == o.limit);
            assert_true(g.pos[i] == o.pos && g.vel[i] == o.vel && g.acc[i] == f[i].s.acc);
            assert_true(g.wanted[i] == f[i].wanted && g.wanted_vel[i] == f[i].vel);
            broken += o.jerk_broken;
            if (o.limit != GUARD_NONE) {
                limited[i][o.limit]++;
                first = first < 0 ? i : first;
            }
        }
        assert_int_equal(r.first_joint, first);
        assert_int_equal(r.first, first < 0 ? GUARD_NONE : r.limit[first]);
        for (int i = 3; i < ACTD_MAX_JOINTS; i++)
            assert_true(r.pos[i] == 0 && r.vel[i] == 0 && r.limit[i] == GUARD_NONE);
    }
    assert_true(g.vel[3] == 0.5);
    assert_memory_equal(g.limited, limited, sizeof limited);
    assert_true(broken > 0 && broken == (double)g.jerk_broken);
    assert_true(limited[0][GUARD_POSITION] > 0 && limited[0][GUARD_VELOCITY] > 0);
    assert_true(limited[1][GUARD_ACCELERATION] > 0 && limited[2][GUARD_JERK] > 0);
    assert_true(g.refused == 0 && g.out_of_range == 0 && g.refused_joint == -1);
}

// ---- which joint, which limit ----------------------------------------------------------------

static void the_first_joint_limited(void **state)
{
    (void)state;
    struct guard_limits l = three();
    double rest[4] = {0}, far[3] = {1, 1, 1}, still[3] = {0};
    struct guard_result r;
    struct guard g;

    for (int from = 0; from <= 3;
         from++) { // joints from `from` on are asked for too much
        double wanted[3];

        for (int i = 0; i < 3; i++)
            wanted[i] = i < from ? 0 : far[i];
        start(&g, &l, rest);
        assert_int_equal(guard_apply(&g, wanted, still, 1, &r), 0);
        assert_int_equal(r.first_joint, from < 3 ? from : -1);
        assert_int_equal(r.first, from < 2    ? GUARD_ACCELERATION
                                  : from == 2 ? GUARD_JERK
                                              : GUARD_NONE);
        for (int i = 0; i < 3; i++)
            assert_int_equal(g.limited[i][r.limit[i]], r.limit[i] != GUARD_NONE);
    }
    // At rest a brake has nothing to say.
    memset(&r, 0xa5, sizeof r);
    guard_reset(&g, rest);
    guard_brake(&g, false, &r);
    assert_true(r.first == GUARD_NONE && r.first_joint == -1);
}

// ---- braking ---------------------------------------------------------------------------------

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
    lim.velocity[3] = 3;
    lim.stop_acceleration[3] = 4;
    guard_stopping(&lim, 3, &time_s, &distance);
    assert_true(time_s == 0.75 && distance == 1.125);
}

// Any joint in motion is motion; an acceleration counts where it can not vanish at once.
static void at_rest(void **state)
{
    (void)state;
    struct guard_limits l = three();
    double pos[4] = {0};
    struct guard g;

    l.jerk[2] = 0.5; // however little
    start(&g, &l, pos);
    assert_true(guard_at_rest(&g));
    for (int i = 0; i < 3; i++) {
        g.vel[i] = i % 2 ? -0x1p-30 : 0x1p-30;
        assert_false(guard_at_rest(&g));
        g.vel[i] = 0;
        g.acc[i] = i % 2 ? 0x1p-30 : -0x1p-30;
        assert_int_equal(guard_at_rest(&g), i < 2);
        g.acc[i] = 0;
    }
    g.vel[3] = 1; // no such joint
    assert_true(guard_at_rest(&g));
}

// A restart forgets every motion, of the arm and of the target.
static void reset_forgets(void **state)
{
    (void)state;
    struct guard_limits l = three();
    double pos[4] = {0, 0, 0, 7}, far[3] = {0.5, -0.5, 0.5},
           there[4] = {0.25, -0.25, 0.125, 7};
    struct guard_result r;
    struct guard g;

    start(&g, &l, pos);
    for (int k = 0; k < 20; k++)
        assert_int_equal(guard_apply(&g, far, NULL, 1, &r), 0);
    assert_false(guard_at_rest(&g));
    guard_reset(&g, there);
    assert_true(guard_at_rest(&g));
    for (int i = 0; i < 3; i++)
        assert_true(g.pos[i] == there[i] && g.acc[i] == 0 && g.wanted[i] == there[i] &&
                    g.wanted_vel[i] == 0);
    assert_int_equal(guard_apply(&g, there, NULL, 1, &r), 0);
    for (int i = 0; i < 3; i++)
        assert_true(r.pos[i] == there[i] && r.vel[i] == 0 && r.limit[i] == GUARD_NONE);
    guard_reset(&g, pos);
    assert_true(g.pos[0] == 0 && g.wanted[2] == 0 && g.pos[3] == 0);
}

// ---- scale -----------------------------------------------------------------------------------

// A scale that makes no sense is none.
static void scales(void **state)
{
    (void)state;
    static const struct {
        double scale, as;
    } cases[] = {{1, 1}, {0.5, 0.5}, {0x1p-20, 0x1p-20}, {0, 1},   {-1, 1},
                 {2, 1}, {1.5, 1},   {NAN, 1},           {-0.5, 1}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct guard_limits lim = one_joint(0);
        double p = 0, w = 1, zero = 0;
        struct guard_result r;
        struct guard g;

        guard_init(&g, &lim, DT);
        guard_reset(&g, &p);
        assert_int_equal(guard_apply(&g, &w, &zero, cases[i].scale, &r), 0);
        assert_true(r.vel[0] == 8 * DT * cases[i].as);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_joint_as_limit_says),
        cmocka_unit_test(the_first_joint_limited),
        cmocka_unit_test(braking),
        cmocka_unit_test(at_rest),
        cmocka_unit_test(reset_forgets),
        cmocka_unit_test(scales),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
