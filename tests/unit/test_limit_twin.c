// limit against its naive twin: the same step, the same limit, from any state towards any
// target, with and without jerk.
#include "tests/unit/guard_help.h"
#include "tests/unit/limit_twin.h"

struct run {
    struct limit_joint j;
    struct limit_state s;
    double wanted, vel, acc, scale, brake;
    int braking;
    bool hard, wild;
};

static struct limit_joint random_joint(int with_jerk)
{
    static const double rate[] = {50, 100, 200, 500, 1000};

    return (struct limit_joint){
        .min = between(-3, -0.05),
        .max = between(0.05, 3),
        .velocity = exp(between(log(0.1), log(6))),
        .acceleration = exp(between(log(0.5), log(60))),
        .jerk = with_jerk ? exp(between(log(20), log(3000))) : 0,
        .period_s = 1 / rate[(int)(rnd() * 5)],
    };
}

// Where limit itself would lead, or anywhere: outside the limits, too fast, too sudden.
static void next_input(struct run *r)
{
    if (rnd() < 0.03) {
        r->wanted = between(r->j.min - 0.3, r->j.max + 0.3);
        r->vel = rnd() < 0.5 ? 0 : between(-1.3, 1.3) * r->j.velocity;
        r->acc = rnd() < 0.5 ? 0 : between(-1.3, 1.3) * r->j.acceleration;
        r->scale = rnd() < 0.5 ? 1 : between(0.1, 1);
    }
    if (rnd() < 0.01) {
        r->braking = (int)between(1, 30);
        r->hard = rnd() < 0.5;
        r->brake = r->hard ? r->j.acceleration * between(0.5, 3) : r->j.acceleration;
    }
    if (r->wild && rnd() < 0.2)
        r->s = (struct limit_state){
            between(r->j.min - 0.2, r->j.max + 0.2),
            between(-1.2, 1.2) * r->j.velocity,
            between(-1.2, 1.2) * r->j.acceleration,
        };
    if (r->wild && rnd() < 0.05) // the target just where it can be met
        r->wanted = r->s.pos + r->s.vel * r->j.period_s;
    r->wanted += r->vel * r->j.period_s;
}

static void same(const struct run *r, const struct limit_step *a,
                 const struct twin_step *twin)
{
    const struct limit_step *b = &twin->step;
    bool limit =
        a->limit == b->limit ||
        (twin->close && (a->limit == GUARD_POSITION || b->limit == GUARD_POSITION));

    if (fabs(a->pos - b->pos) > 2e-13 || !limit ||
        fabs(a->vel - b->vel) > 2e-13 / r->j.period_s || a->jerk_broken != b->jerk_broken)
        fail_msg("jerk %g from %.17g %.17g %.17g to %.17g %.17g %.17g: %.17g %d %d, the "
                 "twin says %.17g %d %d",
                 r->j.jerk, r->s.pos, r->s.vel, r->s.acc, r->wanted, r->vel, r->acc,
                 a->pos, a->limit, a->jerk_broken, b->pos, b->limit, b->jerk_broken);
}

static void compare(int rounds, int ticks, int with_jerk)
{
    int seen[GUARD_LIMITS] = {0};

    for (int i = 0; i < rounds; i++) {
        struct run r = {.j = random_joint(with_jerk), .scale = 1, .wild = i % 2};

        r.s.pos = r.wanted = between(r.j.min, r.j.max);
        for (int k = 0; k < ticks; k++) {
            struct limit_step a;
            struct twin_step b;

            next_input(&r);
            if (r.braking > 0) {
                r.braking--;
                a = limit_brake(&r.j, &r.s, r.brake, r.hard);
                b = twin_brake(&r.j, &r.s, r.brake, r.hard);
            } else {
                a = limit_towards(&r.j, &r.s, r.wanted, r.vel, r.acc, r.scale);
                b = twin_towards(&r.j, &r.s, r.wanted, r.vel, r.acc, r.scale);
            }
            same(&r, &a, &b);
            seen[a.limit]++;
            r.s.acc = (a.vel - r.s.vel) / r.j.period_s;
            r.s.vel = a.vel;
            r.s.pos = a.pos;
        }
    }
    for (int i = 0; i < GUARD_LIMITS; i++) // the walk went everywhere
        if (i != (with_jerk ? GUARD_ACCELERATION : GUARD_JERK))
            assert_true(seen[i] > rounds);
}

static void without_jerk(void **state)
{
    (void)state;
    compare(400, 300, 0);
}

static void with_jerk(void **state)
{
    (void)state;
    compare(400, 300, 1);
}

static void closed_forms(void **state)
{
    (void)state;
    for (int i = 0; i < 20000; i++) {
        double A = exp(between(log(0.5), log(60))), J = exp(between(log(5), log(3000)));
        double dt = exp(between(log(0.001), log(0.02))), room = exp(between(-16, 1));
        double v = between(-3, 3), a = between(-1.5, 1.5) * A;
        double x = twin_advance(v, a, A, J, dt);

        assert_true(fabs(limit_advance(v, a, A, J, dt) - x) <= 1e-12 * (1 + x));
        x = twin_brake_speed(room, A, dt);
        assert_true(fabs(limit_brake_speed(room, A, dt) - x) <= 1e-12 * (1 + x));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closed_forms),
        cmocka_unit_test(without_jerk),
        cmocka_unit_test(with_jerk),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
