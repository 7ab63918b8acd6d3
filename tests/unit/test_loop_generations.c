// Another policy's chunks come into view while the loop runs, in every state: whatever the two want,
// what is published keeps the limits, with nothing allocated; and where the bridge keeps them too,
// no limit has to act.
#include "tests/unit/loop_world.h"

#define BRIDGE (800 * MS)

static uint64_t seed = 1;
static double rnd(void) // [0, 1)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(seed >> 11) / (double)(UINT64_C(1) << 53);
}

struct scene {
    struct world w;
    uint32_t generation;
    ns_t step; // of the policy's rows, 0 = the configuration's
    // Backward differences of what was published, by this side's own arithmetic.
    double pos[JOINTS], vel[JOINTS];
    int known;
    double fastest, hardest; // of the limits
};

static void begin(struct scene *s, struct loop_config *cfg)
{
    memset(s, 0, sizeof *s);
    allocations = 0;
    cfg->chunks.bridge_ns = BRIDGE;
    world_start(&s->w, cfg);
    s->w.policy_off = true;
    s->generation = 1;
}

static void end(struct scene *s)
{
#if COUNTS_ALLOCATIONS
    assert_int_equal(allocations, 0);
#endif
    world_end(&s->w);
}

// Rows from anywhere to anywhere, or one pose: then `wild` is 0.
static void offer(struct scene *s, ns_t lag, double middle, double wild)
{
    struct chunk *c = ring_reserve(&s->w.board.chunks);

    assert_non_null(c);
    c->id = ++s->w.chunk_id;
    c->generation = s->generation;
    c->step_ns = s->step;
    c->anchor_ns = c->oldest_ns = s->w.now + TICK - lag;
    c->ready_ns = s->w.now;
    c->rows = ROWS;
    c->joints = JOINTS;
    for (int i = 0; i < ROWS * JOINTS; i++)
        c->row[i] = (float)(middle + wild * (2 * rnd() - 1));
    ring_commit(&s->w.board.chunks);
}

// One tick, and whether it kept the limits.
static void go(struct scene *s)
{
    const double dt = 0.005, slack = 1e-9;
    uint64_t before = s->w.got;

    s->w.fuzzy = true; // judged here
    step(&s->w);
    if (s->w.got == before)
        return;
    for (int j = 0; j < JOINTS; j++) {
        double p = s->w.last.pos[j], v = (p - s->pos[j]) / dt, a = (v - s->vel[j]) / dt;
        double slow = s->w.last.mode == LADDER_APPROACH ? s->w.cfg.approach_scale : 1;

        assert_true(fabs(p) <= 2 + slack);
        if (s->known > 0)
            assert_true(fabs(v) <= 2 * slow + slack / dt);
        if (s->known > 1)
            assert_true(fabs(a) <= 10 + slack / dt / dt);
        if (s->known > 0)
            s->fastest = fmax(s->fastest, fabs(v) / 2);
        if (s->known > 1)
            s->hardest = fmax(s->hardest, fabs(a) / 10);
        s->vel[j] = s->known > 0 ? v : 0;
        s->pos[j] = p;
    }
    s->known++;
}

static void go_for(struct scene *s, int ticks)
{
    for (int i = 0; i < ticks; i++)
        go(s);
}

static const struct loop_report *report(const struct scene *s)
{
    return loop_last(s->w.loop);
}

static void to_mode(struct scene *s, enum ladder_state m, int most)
{
    for (int i = 0; i < most && mode(&s->w) != m; i++)
        go(s);
    assert_int_equal(mode(&s->w), m);
}

// The policy drives all joints to `middle`.
static void running(struct scene *s, double middle)
{
    atomic_store(&s->w.board.started, true);
    to_mode(s, LADDER_READY, 200);
    s->known = 0; // the arming begins at the measured pose
    request(&s->w, BOARD_ARM);
    for (int i = 0; i < 3000 && mode(&s->w) != LADDER_RUNNING; i++) {
        if (i % 40 == 0)
            offer(s, 30 * MS, middle, 0);
        go(s);
    }
    assert_int_equal(mode(&s->w), LADDER_RUNNING);
}

static uint64_t limited(const struct scene *s)
{
    uint64_t n = 0;

    for (int j = 0; j < JOINTS; j++)
        for (int l = GUARD_NONE + 1; l < GUARD_LIMITS; l++)
            n += report(s)->limited[j][l];
    return n;
}

// ---- RUNNING ---------------------------------------------------------------------------------

static void wildly_different_policies(void **state)
{
    static const ns_t steps[] = {0, 10 * MS, STEP, 50 * MS, 33333333};

    (void)state;
    for (int mode_ = 0; mode_ <= CHUNK_CONSERVATIVE; mode_++)
        for (int how = 0; how <= CHUNK_CUBIC; how++) {
            struct loop_config cfg = default_config();
            struct scene s;
            int swaps = 0;

            cfg.chunks.mode = (enum chunk_mode)mode_;
            cfg.chunks.interpolation = (enum chunk_interpolation)how;
            cfg.chunks.own_age = true;
            for (int j = 0; j < JOINTS; j++)
                cfg.following_error[j] = 0;
            begin(&s, &cfg);
            s.w.stuck = false;
            running(&s, 0.2);
            for (int i = 0; i < 4000; i++) {
                bool swap = rnd() < 0.01;

                if (swap) {
                    s.generation += 1 + (uint32_t)(3 * rnd());
                    s.step = steps[(int)(5 * rnd())];
                    swaps++;
                }
                if (swap || i % 20 == 0)
                    offer(&s, (ns_t)(rnd() * 60e6), 3 * rnd() - 1.5, 0.5 * (i % 3));
                go(&s);
                assert_int_equal(mode(&s.w), LADDER_RUNNING);
                assert_int_equal(report(&s)->generation, s.generation);
                if (swap) {
                    assert_int_equal(report(&s)->generation_tick, s.w.tick - 1);
                    assert_int_equal(report(&s)->chunk_blended, 1);
                    assert_int_equal(report(&s)->chunk_step_ns, s.step ? s.step : STEP);
                    assert_true(s.w.loop->target.seam_max <= 1e-12);
                }
            }
            assert_true(swaps > 20 && s.fastest > 0.99 && s.hardest > 0.99);
            assert_int_equal(report(&s)->gate_refusals + report(&s)->refused_vectors, 0);
            end(&s);
        }
}

// Calm ones a radian apart: 1.875 rad/s and 9.4 rad/s^2 on the bridge, of 2 and 10. The arm gets
// there without a limit, and on the tick.
static void calm_policies_touch_no_limit(void **state)
{
    struct loop_config cfg = default_config();
    struct scene s;
    uint64_t before;

    (void)state;
    cfg.chunks.mode = CHUNK_REPLACE;
    begin(&s, &cfg);
    s.w.loop->chunks->cfg.bridge_ns = 800 * MS;
    running(&s, 0.2);
    offer(&s, 20 * MS, 0.2, 0);
    go_for(&s, 40); // the rest of the way
    before = limited(&s);
    s.fastest = s.hardest = 0;
    for (int k = 0; k < 10; k++) {
        double to = k % 2 ? 0.2 : 1.2, half;

        s.generation++;
        s.step = 30 * MS; // its 40 rows cover the bridge
        offer(&s, 20 * MS, to, 0);
        go_for(&s, 1);
        half = s.w.last.pos[0];
        assert_true(fabs(half - (k % 2 ? 1.2 : 0.2)) <
                    1e-6); // begins where the old one was
        go_for(&s, 80);
        assert_true(fabs(s.w.last.pos[0] - 0.7) < 1e-6); // half way
        go_for(&s, 80);
        assert_true(fabs(s.w.last.pos[0] - to) < 1e-6);
        offer(&s, 20 * MS, to, 0);
        go_for(&s, 40);
    }
    assert_int_equal(limited(&s), before);
    assert_true(s.fastest < 1 && s.hardest < 1);
    end(&s);
}

static void an_older_policy_is_refused(void **state)
{
    struct loop_config cfg = default_config();
    struct scene s;

    (void)state;
    begin(&s, &cfg);
    running(&s, 0.2);
    s.generation = 2;
    offer(&s, 20 * MS, 0.3, 0);
    go(&s);
    s.generation = 1; // was under way
    offer(&s, 10 * MS, -1, 0);
    go_for(&s, 10);
    assert_int_equal(report(&s)->verdict[CHUNK_OUT_OF_ORDER], 1);
    assert_int_equal(report(&s)->generation, 2);
    assert_int_equal(mode(&s.w), LADDER_RUNNING);
    end(&s);
}

// ---- HOLD ------------------------------------------------------------------------------------

// No chunk covers, the arm is at rest where it braked; the next policy takes it from there.
static void from_a_hold(void **state)
{
    struct loop_config cfg = default_config();
    struct scene s;
    uint64_t before;
    double rest;

    (void)state;
    cfg.hold_ns = NS_PER_S;
    begin(&s, &cfg);
    running(&s, 0.2);
    offer(&s, 20 * MS, 0.2, 0.2);
    to_mode(&s, LADDER_HOLD, 400);
    go_for(&s, 100);
    assert_true(report(&s)->at_rest);
    rest = s.w.last.pos[1];
    before = limited(&s);
    s.generation = 2;
    s.step = 30 * MS;
    offer(&s, 20 * MS, rest + 0.9, 0);
    go(&s);
    assert_int_equal(mode(&s.w), LADDER_RUNNING);
    assert_true(fabs(s.w.last.pos[1] - rest) < 1e-9);
    go_for(&s, 160);
    assert_true(fabs(s.w.last.pos[1] - rest - 0.9) < 1e-6);
    assert_int_equal(limited(&s), before);
    end(&s);
}

// While it still brakes: from where the command is, at the speed that it has.
static void from_the_braking(void **state)
{
    (void)state;
    for (int ticks = 0; ticks < 30; ticks++) {
        struct loop_config cfg = default_config();
        struct scene s;

        begin(&s, &cfg);
        running(&s, 0.2);
        offer(&s, 20 * MS, 0.2, 1.5);
        to_mode(&s, LADDER_HOLD, 400);
        go_for(&s, ticks);
        s.generation = 2;
        double pos = s.w.last.pos[2], vel = s.w.last.vel[2];
        offer(&s, 20 * MS, -1, 1);
        go(&s);
        assert_int_equal(mode(&s.w), LADDER_RUNNING);
        assert_true(fabs(s.w.loop->target.pos[2] - (pos + vel * 0.005)) < 1e-9);
        assert_true(fabs(s.w.loop->target.vel[2] - vel) < 1e-9);
        go_for(&s, 80);
        end(&s);
    }
}

// A HOLD for another cause, with chunks of both in it.
static void within_a_hold(void **state)
{
    struct loop_config cfg = default_config();
    struct scene s;

    (void)state;
    cfg.hold_ns = NS_PER_S;
    begin(&s, &cfg);
    running(&s, 0.2);
    for (int i = 0; i < 40; i++) {
        if (i % 10 == 0)
            offer(&s, 20 * MS, 1, 0.8);
        s.w.joints_off = i >= 34;
        go(&s);
    }
    to_mode(&s, LADDER_HOLD, 20);
    s.generation = 2;
    offer(&s, 20 * MS, -1, 0.8);
    go_for(&s, 3);
    assert_int_equal(mode(&s.w), LADDER_HOLD);
    assert_int_equal(report(&s)->generation, 2);
    s.w.joints_off = false;
    to_mode(&s, LADDER_RUNNING, 10);
    go_for(&s, 100);
    end(&s);
}

// ---- before and after ------------------------------------------------------------------------

static void in_ready_and_approach(void **state)
{
    struct loop_config cfg = default_config();
    struct scene s;

    (void)state;
    begin(&s, &cfg);
    atomic_store(&s.w.board.started, true);
    to_mode(&s, LADDER_READY, 200);
    assert_int_equal(report(&s)->generation, 0);
    offer(&s, 20 * MS, 0.5, 0);
    go(&s);
    assert_int_equal(report(&s)->generation, 1);
    assert_int_equal(report(&s)->generation_tick, s.w.tick - 1);
    s.generation = 2;
    offer(&s, 20 * MS, 1.5, 0);
    go(&s);
    assert_int_equal(report(&s)->generation, 2);
    assert_int_equal(report(&s)->generation_tick, s.w.tick - 1);
    assert_true(report(&s)->wanted[0] == 1.5);
    s.known = 0;
    request(&s.w, BOARD_ARM);
    for (int i = 0; i < 60; i++) {
        if (i % 40 == 0)
            offer(&s, 20 * MS, 1.5, 0);
        go(&s);
    }
    assert_int_equal(mode(&s.w), LADDER_APPROACH);
    double at = s.w.last.pos[0];
    s.generation = 3; // and now it is to go elsewhere
    for (int i = 0; i < 3000 && mode(&s.w) != LADDER_RUNNING; i++) {
        if (i % 40 == 0)
            offer(&s, 20 * MS, -1.5, 0);
        go(&s);
        assert_int_equal(report(&s)->generation, 3);
    }
    assert_int_equal(mode(&s.w), LADDER_RUNNING);
    assert_true(at > 0 && s.w.last.pos[0] < -1.4);
    go_for(&s, 60);
    assert_int_equal(mode(&s.w), LADDER_RUNNING);
    end(&s);
}

// A swap is done also when nothing moves; the next arming is by the new one alone.
static void while_stopped(void **state)
{
    struct loop_config cfg = default_config();
    struct scene s;

    (void)state;
    begin(&s, &cfg);
    running(&s, 0.2);
    request(&s.w, BOARD_DISARM);
    to_mode(&s, LADDER_READY, 100);
    offer(&s, 20 * MS, 0.2, 0);
    go(&s);
    s.generation = 2;
    offer(&s, 20 * MS, 0.6, 0);
    go(&s);
    assert_int_equal(report(&s)->generation, 2);
    running(&s, 0.6);
    assert_true(fabs(s.w.last.pos[0] - 0.6) < 0.03);
    assert_int_equal(report(&s)->chunk_blended, 1);
    end(&s);
}

// ---- what is reported ------------------------------------------------------------------------

static void tells_chunk_and_joints(void **state)
{
    struct loop_config cfg = default_config();
    struct scene s;
    const struct loop_report *r;

    (void)state;
    begin(&s, &cfg);
    r = report(&s);
    assert_true(isnan(r->wanted[0]) && isnan(r->wanted[JOINTS - 1]));
    running(&s, 0.2);
    s.step = 30 * MS;
    s.generation = 2;
    offer(&s, 45 * MS, 1.9, 0);
    go(&s);
    r = report(&s);
    assert_int_equal(r->chunk_id, s.w.chunk_id);
    assert_true(r->chunk_row == 1.5 && r->chunk_rows == ROWS &&
                r->chunk_step_ns == 30 * MS);
    assert_true(r->chunk_remaining == ROWS - 1.5);
    assert_int_equal(r->chunk_oldest_ns, s.w.now - 45 * MS);
    go_for(&s, 60);
    for (int j = 0; j < JOINTS; j++) {
        assert_true(r->vel[j] == s.w.last.vel[j] && r->pos[j] == s.w.last.pos[j]);
        assert_true(r->wanted[j] == s.w.last.wanted[j]);
        assert_int_equal(r->limit[j], s.w.last.limit[j]);
    }
    assert_true(r->vel[0] > 0.5);
    to_mode(&s, LADDER_HOLD, 400);
    assert_true(r->chunk_id == 0 && r->chunk_rows == 0 && r->chunk_step_ns == 0);
    assert_true(isnan(r->wanted[0]) && r->generation == 2);
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wildly_different_policies),
        cmocka_unit_test(calm_policies_touch_no_limit),
        cmocka_unit_test(an_older_policy_is_refused),
        cmocka_unit_test(from_a_hold),
        cmocka_unit_test(from_the_braking),
        cmocka_unit_test(within_a_hold),
        cmocka_unit_test(in_ready_and_approach),
        cmocka_unit_test(while_stopped),
        cmocka_unit_test(tells_chunk_and_joints),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
