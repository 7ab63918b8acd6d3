// limit with jerk: exactly at each bound and a hair beyond it. Powers of two as in test_limit.c:
// J dt = 1/2, J dt² = 2^-8, J dt³ = 2^-15.
#include "tests/unit/guard_help.h"

#include "daemon/limit.h"

#define HZ    128.0
#define DT    (1 / HZ)
#define SLACK 1e-12 // rad

static const double sides[] = {1, -1};

static struct limit_joint wide(void)
{
    return (struct limit_joint){-1000, 1000, 2, 8, 64, DT};
}

struct target {
    double pos, vel, acc;
};

// Everything mirrored for side < 0.
static struct limit_step towards(const struct limit_joint *j, double side,
                                 struct limit_state s, struct target t, double scale)
{
    struct limit_joint m = *j;
    struct limit_step out;

    if (side < 0) {
        m.min = -j->max;
        m.max = -j->min;
    }
    s = (struct limit_state){side * s.pos, side * s.vel, side * s.acc};
    out = limit_towards(&m, &s, side * t.pos, side * t.vel, side * t.acc, scale);
    out.pos *= side;
    out.vel *= side;
    return out;
}

// The target that a state meets with the next acceleration `a`.
static struct target ahead(struct limit_state s, double a, double vel, double acc)
{
    return (struct target){s.pos + (s.vel + a * DT) * DT, vel, acc};
}

static void met_slowly(const struct limit_joint *j, struct limit_state s, struct target t,
                       double scale)
{
    for (int i = 0; i < 2; i++) {
        struct limit_step o = towards(j, sides[i], s, t, scale);

        if (o.pos != t.pos || o.limit != GUARD_NONE || o.jerk_broken)
            fail_msg("%.17g became %.17g (%d)", t.pos, o.pos, o.limit);
    }
}

static void not_met_slowly(const struct limit_joint *j, struct limit_state s,
                           struct target t, double scale)
{
    for (int i = 0; i < 2; i++) {
        struct limit_step o = towards(j, sides[i], s, t, scale);

        assert_int_equal(o.limit, GUARD_JERK);
        assert_true(o.pos != t.pos);
    }
}

static void met(const struct limit_joint *j, struct limit_state s, struct target t)
{
    met_slowly(j, s, t, 1);
}

static void not_met(const struct limit_joint *j, struct limit_state s, struct target t)
{
    not_met_slowly(j, s, t, 1);
}

#define AT(...) ((struct limit_state){__VA_ARGS__})

// A standing target is met only with what the next tick can take away again.
static void standing_target(void **state)
{
    (void)state;
    struct limit_joint j = wide();
    double hair = 0x1p-20;

    met(&j, AT(0, 0, 0), ahead(AT(0, 0, 0), 0.5, 0, 0)); // both bounds at once
    // In between: 1/4 and a velocity that makes up for the rest.
    met(&j, AT(0, 0x1p-9, 0), ahead(AT(0, 0x1p-9, 0), 0.25, 0, 0));
    not_met(&j, AT(0, 0x1p-9 + hair, 0), ahead(AT(0, 0x1p-9 + hair, 0), 0.25, 0, 0));
    // Too hard an acceleration, though allowed after one of the same sign.
    met(&j, AT(0, -0x1p-8, 0.25), ahead(AT(0, -0x1p-8, 0.25), 0.5, 0, 0));
    not_met(&j, AT(0, -0x1p-8, 0.25), ahead(AT(0, -0x1p-8, 0.25), 0.5 + hair, 0, 0));
}

// A moving one may differ by two jerks in acceleration and by |a| + J dt over a tick in speed.
static void moving_target(void **state)
{
    (void)state;
    struct limit_joint j = wide();
    struct limit_state rest = AT(0, 0, 0);
    double hair = 0x1p-20;

    met(&j, rest, ahead(rest, 0.5, 0, -0.5));
    not_met(&j, rest, ahead(rest, 0.5, 0, -0.5 - hair));
    met(&j, rest, ahead(rest, 0.25, 0.25 * DT - 0.75 * DT, 0));
    not_met(&j, rest, ahead(rest, 0.25, 0.25 * DT - 0.75 * DT - hair, 0));
    met(&j, rest, ahead(rest, 0.25, 0.25 * DT + 0.75 * DT, 0));
    not_met(&j, rest, ahead(rest, 0.25, 0.25 * DT + 0.75 * DT + hair, 0));
    met(&j, rest,
        ahead(rest, 0.25, 0.25 * DT + 0.75 * DT, 0.5)); // speed and acceleration
    // It stands still only without either: these would be too far off for a standing one.
    met(&j, rest, ahead(rest, 0.5, 0x1p-9, 0));
    met(&j, AT(0, 0x1p-10, 0), ahead(AT(0, 0x1p-10, 0), 0.5, 0, 0.5));
}

// What the target's motion is worth is limited by what the joint itself can do.
static void target_motion_is_limited(void **state)
{
    (void)state;
    struct limit_joint j = wide();
    struct limit_state fast = AT(0, 2, 0), hard = AT(0, 0, 8);

    met(&j, fast, ahead(fast, 0, 50, 0));
    met(&j, hard, ahead(hard, 8, 0.0625, 50));
    met(&j, hard, ahead(hard, 7.5, 0.0625, 50));
}

// The window of accelerations: jerk from the last one, forgiven to 4e-12 rad seen twice over.
static void window_edges(void **state)
{
    (void)state;
    struct limit_joint j = wide();
    struct limit_state rest = AT(0, 0, 0);
    double slack = 4 * SLACK / (DT * DT);

    met(&j, rest, (struct target){(0.5 + slack) * DT * DT, 0.001, 0});
    not_met(&j, rest, (struct target){(0.5 + 1.2 * slack) * DT * DT, 0.001, 0});
    j.acceleration = 0.25; // narrower than jerk
    met(&j, rest, (struct target){(0.25 + slack) * DT * DT, 0.001, 0});
    not_met(&j, rest, (struct target){(0.25 + 1.2 * slack) * DT * DT, 0.001, 0});
}

// With a scale a target is met only within the scaled velocity and acceleration.
static void scaled_edges(void **state)
{
    (void)state;
    struct limit_joint j = wide();
    struct limit_state hard = AT(0, 0, 4), fast = AT(0, 0, 0);
    double hair = SLACK / DT, slack = 4 * SLACK / (DT * DT);

    met_slowly(&j, hard, (struct target){(4 + slack) * DT * DT, 0.03, 4}, 0.5);
    not_met_slowly(&j, hard, (struct target){(4 + 1.2 * slack) * DT * DT, 0.03, 4}, 0.5);
    met(&j, hard, (struct target){(4 + 1.2 * slack) * DT * DT, 0.03, 4});
    fast.vel = 1 + hair - 0.5 * DT;
    met_slowly(&j, fast, ahead(fast, 0.5, 1, 0), 0.5);
    fast.vel = 1 + 2 * hair - 0.5 * DT;
    not_met_slowly(&j, fast, ahead(fast, 0.5, 1, 0), 0.5);
    met(&j, fast, ahead(fast, 0.5, 1, 0));
}

// The velocity that is left when the acceleration has come down again may reach the limit.
static void velocity_edge(void **state)
{
    (void)state;
    struct limit_joint j = wide();
    double hair = SLACK / DT, top = 2 + hair;
    struct limit_state at = AT(0, top - 0x1p-8, 0), over = AT(0, top + hair - 0x1p-8, 0);

    met(&j, at, ahead(at, 0.5, 2, 0));
    not_met(&j, over, ahead(over, 0.5, 2, 0));
    // Too fast already: met where the way there leads below the limit.
    at = AT(0, 2 + 0x1p-10, 0);
    met(&j, at, ahead(at, -0.5, 2, -0.5));
    // a = 1 now means another 1/2 in the next tick.
    at = AT(0, 2 - 3 * 0x1p-8, 0.5);
    over = AT(0, 2 - 3 * 0x1p-8 + 0x1p-20, 0.5);
    met(&j, at, ahead(at, 1, 2, 0.5));
    not_met(&j, over, ahead(over, 1, 2, 0.5));
}

// The way to rest may end on the position limit to within the slack.
static void position_edge(void **state)
{
    (void)state;
    struct limit_joint j = wide();
    struct limit_state s = AT(0, 0.25, 0);
    double v = 0.25 + 0.5 * DT, way = v * DT + limit_advance(v, 0.5, 8, 64, DT);
    double room = way - SLACK;

    for (int i = 0; i < 20 && room + SLACK != way; i++) // the sum rounds
        room = nextafter(room, room + SLACK < way ? 1 : 0);
    assert_true(room + SLACK == way);
    j.max = room;
    met(&j, s, ahead(s, 0.5, 0.25, 0));
    j.max = room - SLACK / 4;
    not_met(&j, s, ahead(s, 0.5, 0.25, 0));
}

// Nothing is allowed: the joint is where it can not stop any more. The rule of the brake is all
// that remains, as far as jerk goes.
static void no_way_out(void **state)
{
    (void)state;
    struct limit_joint j = wide();

    j.max = 0.01;
    for (int i = 0; i < 2; i++) {
        struct limit_step o =
            towards(&j, sides[i], AT(0, 1, 0), (struct target){0.005, 0, 0}, 1);
        double fit = limit_brake_speed(0.01, 8, DT);

        assert_true(fit < 1 - 0.5 * DT && o.vel == fit * DT / DT);
        assert_int_equal(o.limit, GUARD_POSITION);
        assert_true(o.jerk_broken);
        j.max = 0.0705; // it still fits without jerk
        o = towards(&j, sides[i], AT(0, 1, 0), (struct target){0.07, 0, 0}, 1);
        assert_true(fabs(o.vel - (1 - 0.5 * DT)) < 1e-15);
        assert_int_equal(o.limit, GUARD_JERK);
        assert_false(o.jerk_broken);
        j.max = 0.01;
    }
}

// jerk_broken: from 4 slacks over two periods on.
static void broken_edge(void **state)
{
    (void)state;
    struct limit_joint j = wide();
    double slack = 4 * SLACK / (DT * DT);

    for (int i = 0; i < 2; i++) {
        // -(A + J dt) goes to -A: just within jerk.
        struct limit_state s = {0, sides[i] * 1, -sides[i] * (8.5 + 0.9 * slack)};
        struct limit_step o = limit_brake(&j, &s, 8, false);

        assert_true(fabs(o.vel - sides[i] * (1 - 8 * DT)) < 1e-15);
        assert_false(o.jerk_broken);
        s.acc = -sides[i] * (8.5 + 1.1 * slack);
        o = limit_brake(&j, &s, 8, false);
        assert_true(o.jerk_broken && o.limit == GUARD_NONE);
        o = limit_brake(&j, &s, 8, true); // nobody asked for jerk
        assert_false(o.jerk_broken);
        j.jerk = 0;
        o = limit_brake(&j, &s, 8, false);
        assert_false(o.jerk_broken);
        j.jerk = 64;
    }
}

static void brakes_by_hand(void **state)
{
    (void)state;
    struct limit_joint j = wide();

    for (int i = 0; i < 2; i++) {
        double side = sides[i];
        struct limit_state s = {0.25, side * 1, 0};
        struct limit_step o = limit_brake(&j, &s, 8, false); // jerk comes first
        assert_true(o.vel == side * (1 - 0.5 * DT));
        o = limit_brake(&j, &s, 16, true); // hard: not at all
        assert_true(o.vel == side * (1 - 16 * DT));
        s.acc = side * -7.75;
        o = limit_brake(&j, &s, 8, false); // then acceleration
        assert_true(o.vel == side * (1 - 8 * DT));
        // 1/2 + 1 of J dt² left: 1 now, 1/2 next.
        s = (struct limit_state){0.25, side * 3 * 0x1p-8, side * -1.5};
        o = limit_brake(&j, &s, 8, false);
        assert_true(o.vel == side * 0x1p-8);
        s = (struct limit_state){o.pos, o.vel, side * -1};
        o = limit_brake(&j, &s, 8, false);
        assert_true(o.vel == 0);
    }
}

// However small a jerk limit is, it is one.
static void small_jerk(void **state)
{
    (void)state;
    struct limit_joint j = wide();
    struct limit_state s = {0, 1, 0};
    struct limit_step o;

    j.jerk = 0.5; // J dt = 2^-8
    o = limit_brake(&j, &s, 8, false);
    assert_true(o.vel == 1 - 0x1p-8 * DT && !o.jerk_broken);
    o = limit_towards(&j, &s, 100, 0, 0, 1);
    assert_true(o.vel == 1 + 0x1p-8 * DT && o.limit == GUARD_JERK);
    s.acc = 4;
    s.vel = 3; // too fast, whatever jerk says
    o = limit_brake(&j, &s, 8, false);
    assert_true(o.vel == 2 && o.jerk_broken && o.limit == GUARD_VELOCITY);
}

// limit_advance where its pieces meet, all of it worked out by hand; margin 1.5 dt v.
static void advance_by_hand(void **state)
{
    (void)state;
    double A = 4, J = 2, dt = 0.25;

    assert_true(limit_advance(0, 0, A, J, dt) == 0);
    assert_true(limit_advance(-1, 0, A, J, dt) == 0);
    assert_true(limit_advance(-1, 1, A, J, dt) == 0); // back to 0 at v = -0.75
    assert_true(limit_advance(-1, 2, A, J, dt) == 0); // just to rest
    assert_true(limit_advance(0, -1, A, J, dt) == 0);
    // v = a²/2J: |a| comes down to 0 together with v, |a|³/6J² = 1/3
    assert_true(fabs(limit_advance(1, -2, A, J, dt) - (1.0 / 3 + 0.375)) < 1e-15);
    // a little less v: the chord v²/|a|
    assert_true(fabs(limit_advance(0.5, -2, A, J, dt) - (0.125 + 0.1875)) < 1e-15);
    // At rest with a = 2: up to v = 1 over 1 - 1/3, from there sqrt(2) s at 1/2 on average.
    assert_true(fabs(limit_advance(0, 2, A, J, dt) - (2.0 / 3 + sqrt(0.5) + 0.375)) <
                1e-14);
    // v = -1 and a = sqrt(8): a is 2 when v is 0, the rest as above.
    assert_true(fabs(limit_advance(-1, sqrt(8), A, J, dt) -
                     (2.0 / 3 + sqrt(0.5) + 0.375)) < 1e-14);
    // v = 9 with A = 4: a ramp of 2 s to v = 5, A held down to 4, a ramp of 2 s to rest.
    assert_true(fabs(limit_advance(9, 0, A, J, dt) -
                     (18 - 8.0 / 3 + (25.0 - 16) / 8 + 64.0 / 24 + 1.5 * 0.25 * 9)) <
                1e-13);
    // With more deceleration than A already: as from A.
    assert_true(fabs(limit_advance(9, -5, A, J, dt) -
                     ((81.0 - 16) / 8 + 64.0 / 24 + 1.5 * 0.25 * 9)) < 1e-13);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(standing_target),
        cmocka_unit_test(moving_target),
        cmocka_unit_test(target_motion_is_limited),
        cmocka_unit_test(window_edges),
        cmocka_unit_test(scaled_edges),
        cmocka_unit_test(velocity_edge),
        cmocka_unit_test(position_edge),
        cmocka_unit_test(no_way_out),
        cmocka_unit_test(broken_edge),
        cmocka_unit_test(brakes_by_hand),
        cmocka_unit_test(small_jerk),
        cmocka_unit_test(advance_by_hand),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
