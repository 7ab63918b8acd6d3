// limit: numbers worked out by hand, at each limit and a hair beyond it. The period is a power
// of two, so that positions, velocities and accelerations turn into one another without
// rounding and "exactly at" means just that.
#include "tests/unit/guard_help.h"

#include "daemon/limit.h"

#define HZ    128.0
#define DT    (1 / HZ)
#define SLACK 1e-12 // rad: what a position may be off before a limit counts as exceeded

static const double sides[] = {1, -1};

static struct limit_joint wide(void)
{
    return (struct limit_joint){
        .min = -1000, .max = 1000, .velocity = 2, .acceleration = 8, .period_s = DT};
}

// Everything mirrored for side < 0.
static struct limit_step towards(const struct limit_joint *j, double side, double pos,
                                 double vel, double wanted, double wanted_vel,
                                 double scale)
{
    struct limit_joint m = *j;
    struct limit_state s = {side * pos, side * vel, 0};
    struct limit_step out;

    if (side < 0) {
        m.min = -j->max;
        m.max = -j->min;
    }
    out = limit_towards(&m, &s, side * wanted, side * wanted_vel, 0, scale);
    out.pos *= side;
    out.vel *= side;
    return out;
}

static void expect(const struct limit_step *s, double pos, double vel,
                   enum guard_limit limit)
{
    if (s->pos != pos || s->vel != vel || s->limit != limit || s->jerk_broken)
        fail_msg("%.17g %.17g %d%s, not %.17g %.17g %d", s->pos, s->vel, s->limit,
                 s->jerk_broken ? " broken" : "", pos, vel, limit);
}

// ---- closed forms ----------------------------------------------------------------------------

// The discrete sqrt rule against counting it out.
static void brake_speed_is_exact(void **state)
{
    (void)state;
    for (int i = 0; i < 20000; i++) {
        double A = between(0.5, 50), dt = between(0.001, 0.02);
        double room = exp(between(-16, 1)), sum = 0;
        double v = limit_brake_speed(room, A, dt);

        for (double x = v; x > 0; x -= A * dt)
            sum += x * dt;
        assert_true(fabs(sum - room) <= 1e-9 * (1e-3 + room));
    }
}

// After exactly 1 + 2 + … + n steps of rate dt² the first step is n rate dt.
static void brake_speed_by_hand(void **state)
{
    (void)state;
    for (int n = 1; n < 50; n++) {
        double v = limit_brake_speed(8 * DT * DT * n * (n + 1) / 2, 8, DT);
        assert_true(fabs(v - n * 8 * DT) < 1e-14 * n);
    }
    assert_true(limit_brake_speed(0, 1, 0.01) == 0);
    assert_true(limit_brake_speed(-1, 1, 0.01) == 0);
    assert_true(limit_brake_speed(8 * DT * DT / 4, 8, DT) == 8 * DT / 4); // in one step
}

// A joint stopped mid-way by a jerk-limited brake never goes further than the closed form said.
static void advance_is_an_upper_bound(void **state)
{
    (void)state;
    double closest = 0;

    for (int i = 0; i < 20000; i++) {
        double A = exp(between(log(0.5), log(60))), J = exp(between(log(5), log(3000)));
        double dt = exp(between(log(0.001), log(0.02)));
        double V = exp(between(log(0.1), log(6)));
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
    assert_true(closest > 0.9); // and it is not so wide as to be useless
}

// ---- towards, without jerk --------------------------------------------------------------------

// A dt² = 2^-11 is the furthest that a standing joint can get to a standing target in one tick.
static void reach_of_one_tick(void **state)
{
    (void)state;
    struct limit_joint j = wide();

    for (int i = 0; i < 2; i++) {
        struct limit_step s = towards(&j, sides[i], 0, 0, 0x1p-11, 0, 1);
        expect(&s, 0x1p-11, 0x1p-4, GUARD_NONE);
        s = towards(&j, sides[i], 0, 0, nextafter(0x1p-11, 1), 0, 1);
        assert_int_equal(s.limit, GUARD_ACCELERATION);
        assert_true(fabs(s.vel - 0x1p-4) < 1e-15);
        // Half the acceleration, half the way.
        s = towards(&j, sides[i], 0, 0, 0x1p-12, 0, 0.5);
        expect(&s, 0x1p-12, 0x1p-5, GUARD_NONE);
        s = towards(&j, sides[i], 0, 0, nextafter(0x1p-12, 1), 0, 0.5);
        assert_int_equal(s.limit, GUARD_ACCELERATION);
    }
}

// 6 A dt² away, 6 = 1 + 2 + 3: an approach as fast as can be goes 3, 2, 1 steps of A dt².
static void approach_by_hand(void **state)
{
    (void)state;
    struct limit_joint j = wide();

    for (int i = 0; i < 2; i++) {
        double pos = 0, vel = 3 * 0x1p-4;
        struct limit_step s;

        for (int n = 3; n > 0; n--) {
            s = towards(&j, sides[i], pos, vel, 6 * 0x1p-11, 0, 1);
            pos += n * 0x1p-11;
            assert_int_equal(s.limit, n == 1 ? GUARD_NONE : GUARD_ACCELERATION);
            assert_true(fabs(s.pos - pos) < 1e-15 && fabs(s.vel - n * 0x1p-4) < 1e-13);
            pos = s.pos;
            vel = s.vel;
        }
        assert_true(pos == 6 * 0x1p-11);
        // The same relative to a target that moves.
        s = towards(&j, sides[i], 0, 0.5 + 3 * 0x1p-4, 6 * 0x1p-11 + 0.5 * DT, 0.5, 1);
        assert_int_equal(s.limit, GUARD_ACCELERATION);
        assert_true(fabs(s.vel - (0.5 + 3 * 0x1p-4)) < 1e-13);
    }
}

static void at_the_velocity_limit(void **state)
{
    (void)state;
    struct limit_joint j = wide();
    double hair = SLACK / DT;

    j.acceleration = 1e6;
    for (int i = 0; i < 2; i++)
        for (double scale = 1; scale > 0.2; scale /= 2) {
            double V = 2 * scale, at = V + hair, over = V + 1.5 * hair;
            struct limit_step s = towards(&j, sides[i], 0, V, at * DT, V, scale);
            expect(&s, at * DT, at, GUARD_NONE);
            s = towards(&j, sides[i], 0, V, over * DT, V, scale);
            expect(&s, V * DT, V, GUARD_VELOCITY);
            s = towards(&j, sides[i], 0, V, 900, V, scale);
            expect(&s, V * DT, V, GUARD_VELOCITY);
        }
}

static void at_the_acceleration_limit(void **state)
{
    (void)state;
    struct limit_joint j = wide();
    double hair = SLACK / DT;

    j.velocity = 100;
    for (int i = 0; i < 2; i++)
        for (double scale = 1; scale > 0.2; scale /= 2)
            for (double v0 = -3; v0 <= 3; v0 += 3) {
                double dv = 8 * scale * DT, at = v0 + (dv + hair),
                       over = v0 + dv + 2 * hair;
                struct limit_step s = towards(&j, sides[i], 0, v0, at * DT, at, scale);
                if (v0 == 0) // elsewhere the difference rounds
                    expect(&s, at * DT, at, GUARD_NONE);
                s = towards(&j, sides[i], 0, v0, over * DT, over, scale);
                expect(&s, (v0 + dv) * DT, v0 + dv, GUARD_ACCELERATION);
                s = towards(&j, sides[i], 0, v0, (v0 + 9) * DT, v0 + 9, scale);
                expect(&s, (v0 + dv) * DT, v0 + dv, GUARD_ACCELERATION);
            }
}

// The speed of a target counts only as far as the joint could move itself.
static void target_speed_is_limited(void **state)
{
    (void)state;
    struct limit_joint j = wide();

    for (int i = 0; i < 2; i++) {
        struct limit_step s = towards(&j, sides[i], 0, 2, 2 * DT, 50, 1);
        expect(&s, 2 * DT, 2, GUARD_NONE);
    }
}

// Outside the limits a target is the limit, and stands still.
static void target_outside(void **state)
{
    (void)state;
    struct limit_joint j = wide();
    struct limit_step s;

    j.min = -1;
    j.max = 1;
    for (int i = 0; i < 2; i++) {
        s = towards(&j, sides[i], 1, 0, 1.25, 1.5, 1);
        expect(&s, 1, 0, GUARD_POSITION);
        s = towards(&j, sides[i], 1 - 0x1p-12, 0, 1.25, 1.5, 1);
        expect(&s, 1, 0x1p-12 * HZ, GUARD_POSITION);
        s = towards(&j, sides[i], 0.5, 0, 1.25, 1.5, 1); // on the way: what slows it down
        expect(&s, 0.5 + 0x1p-11, 0x1p-4, GUARD_ACCELERATION);
        s = towards(&j, sides[i], 1, 0, 1, 0, 1);
        expect(&s, 1, 0, GUARD_NONE);
    }
}

// ---- position --------------------------------------------------------------------------------

// A target that runs into the limit: followed while the joint can still stop before it.
static void braking_distance(void **state)
{
    (void)state;
    struct limit_joint j = wide();
    double hair = SLACK / DT;

    for (int i = 0; i < 2; i++) {
        double fit, at;
        struct limit_step s;

        j.max = 0x1p-11 * 10; // 1 + 2 + 3 + 4 steps
        fit = limit_brake_speed(j.max, 8, DT);
        assert_true(fabs(fit - 4 * 0x1p-4) < 1e-14);
        at = fit + 0.5 * hair;
        s = towards(&j, sides[i], 0, at, at * DT, at, 1);
        expect(&s, at * DT, at, GUARD_NONE);
        at = fit + 1.5 * hair;
        s = towards(&j, sides[i], 0, at, at * DT, at, 1);
        expect(&s, fit * DT, fit, GUARD_POSITION);
    }
}

// Too fast to stop in time, as after a start in a bad place: position outranks acceleration.
static void position_comes_first(void **state)
{
    (void)state;
    struct limit_joint j = wide();

    j.max = 0x1p-12;
    for (int i = 0; i < 2; i++) {
        struct limit_step s = towards(&j, sides[i], 0, 1, 0.5, 0, 1);
        expect(&s, 0x1p-12, 0x1p-12 * HZ, GUARD_POSITION);
        s = towards(&j, sides[i], 0x1p-12, 1, 0.5, 0, 1);
        expect(&s, 0x1p-12, 0, GUARD_POSITION);
    }
}

// Never beyond a limit by rounding, whatever the numbers; from outside never further out.
static void limits_are_never_rounded_over(void **state)
{
    (void)state;
    for (int i = 0; i < 20000; i++) {
        double dt = between(0.001, 0.02), side = sides[i % 2];
        struct limit_joint j = {between(-3, -0.1), between(0.1, 3), 1e6, 2e6, 0, dt};
        double wall = side > 0 ? j.max : j.min;
        struct limit_state s = {wall - side * between(0, 1), side * 1e6, 0};
        struct limit_step o;

        s.pos = fmin(fmax(s.pos, j.min), j.max);
        o = limit_brake(&j, &s, 1, false);
        assert_true(o.pos <= j.max && o.pos >= j.min && fabs(o.pos - wall) < 1e-15);
        s.pos = wall + side * 0.5;
        o = limit_brake(&j, &s, 1, false);
        assert_true(o.pos == s.pos && o.vel == 0 && o.limit == GUARD_POSITION);
        s.vel = -side * 50;
        o = limit_brake(&j, &s, 1, false);
        assert_true(side * o.pos < side * s.pos);
    }
}

// A target within reach comes out to the bit, also where pos + v dt would round.
static void met_to_the_bit(void **state)
{
    (void)state;
    int rounds = 0;

    for (int i = 0; i < 20000; i++) {
        double dt = between(0.001, 0.02), vel = between(-1, 1),
               acc = between(-0.01, 0.01);
        struct limit_joint j = {-9, 9, 2, 8, i % 2 ? 64 : 0, dt};
        struct limit_state s = {i % 3 * 1e-9, vel, acc};
        double wanted = s.pos + (vel + acc * dt) * dt + between(-1e-9, 1e-9);
        struct limit_step o = limit_towards(&j, &s, wanted, vel, acc, 1);

        assert_true(o.pos == wanted && o.limit == GUARD_NONE);
        rounds += s.pos + (wanted - s.pos) / dt * dt != wanted;
    }
    assert_true(rounds > 100);
}

// ---- rounding --------------------------------------------------------------------------------

// A tenth of the slack is a motion, less is not.
static void rounding_is_not_motion(void **state)
{
    (void)state;
    struct limit_joint j = wide();
    double hair = SLACK / 10, less = nextafter(hair, 0);

    for (int i = 0; i < 2; i++) {
        struct limit_step s = towards(&j, sides[i], 0, 0, hair, 0, 1);
        expect(&s, hair, hair * HZ, GUARD_NONE);
        s = towards(&j, sides[i], 0, 0, less, 0, 1);
        expect(&s, less, 0, GUARD_NONE); // the target is met all the same
        s = towards(&j, sides[i], 0, 0, 0.9 * SLACK, 0, 1);
        expect(&s, 0.9 * SLACK, 0.9 * SLACK * HZ, GUARD_NONE);
    }
    // A brake that leaves less than that leaves nothing, and the joint where it was.
    struct limit_state creeping = {0, 0x1p-40 + hair * HZ / 2, 0};
    struct limit_step s = limit_brake(&j, &creeping, 0x1p-40 * HZ, false);
    expect(&s, 0, 0, GUARD_NONE);
    creeping.vel = 0x1p-40 + hair * HZ * 2;
    s = limit_brake(&j, &creeping, 0x1p-40 * HZ, false);
    assert_true(s.vel > 0 && s.pos > 0);
}

// ---- brake -----------------------------------------------------------------------------------

static void brakes_by_hand(void **state)
{
    (void)state;
    struct limit_joint j = wide();

    for (int i = 0; i < 2; i++)
        for (int hard = 0; hard < 2; hard++) {
            double side = sides[i];
            struct limit_state s = {0.25, side * 0.5, 0};
            struct limit_step o = limit_brake(&j, &s, 8, hard);
            expect(&o, 0.25 + side * 0.4375 * DT, side * 0.4375, GUARD_NONE);
            o = limit_brake(&j, &s, 16, hard); // as asked, whatever the joint's own limit
            expect(&o, 0.25 + side * 0.375 * DT, side * 0.375, GUARD_NONE);
            s.vel = side * 0x1p-4;
            o = limit_brake(&j, &s, 8, hard);
            expect(&o, 0.25, 0, GUARD_NONE);
            s.vel = side * 0x1p-5;
            o = limit_brake(&j, &s, 8, hard);
            expect(&o, 0.25, 0, GUARD_NONE);
            s.vel = side * 3; // faster than allowed: that first
            o = limit_brake(&j, &s, 8, hard);
            expect(&o, 0.25 + side * 2 * DT, side * 2, GUARD_VELOCITY);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(brake_speed_is_exact),
        cmocka_unit_test(brake_speed_by_hand),
        cmocka_unit_test(advance_is_an_upper_bound),
        cmocka_unit_test(reach_of_one_tick),
        cmocka_unit_test(approach_by_hand),
        cmocka_unit_test(at_the_velocity_limit),
        cmocka_unit_test(at_the_acceleration_limit),
        cmocka_unit_test(target_speed_is_limited),
        cmocka_unit_test(target_outside),
        cmocka_unit_test(braking_distance),
        cmocka_unit_test(position_comes_first),
        cmocka_unit_test(limits_are_never_rounded_over),
        cmocka_unit_test(met_to_the_bit),
        cmocka_unit_test(rounding_is_not_motion),
        cmocka_unit_test(brakes_by_hand),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
