// checker: a stream that keeps every promise passes, and one spoilt in a single place is caught by
// the rule that was broken. A checker that can not fail proves nothing.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/checker_scene.h"

// ---- what can be broken ----------------------------------------------------------------------

#define TICK(name) \
    static void name(struct scene *s, struct checker_tick *t, struct checker_command *m)
#define UNUSED() (void)s, (void)t, (void)m

TICK(nan_position)
{
    UNUSED();
    m->pos[0] = NAN;
}
TICK(infinite_velocity)
{
    UNUSED();
    m->vel[1] = -INFINITY;
}
TICK(beyond_max)
{
    UNUSED();
    m->pos[1] = 1.0001;
}
TICK(below_min)
{
    UNUSED();
    m->pos[0] = -1.0001;
}
static void velocity_limit(struct checker_config *cfg)
{
    cfg->velocity[0] = 0.3; // the stream reaches 0.377
}
static void acceleration_limit(struct checker_config *cfg)
{
    cfg->acceleration[0] = 8.9; // HOLD brakes at 9
}
static void stop_limit(struct checker_config *cfg)
{
    cfg->stop_acceleration[0] = 18.9; // STOPPING brakes at 19
    cfg->acceleration[0] = 9.1;
}
TICK(jerk)
{
    UNUSED();
    m->pos[1] += 200 * 1.1 * 0.005 * 0.005 * 0.005;
    m->vel[1] += 200 * 1.1 * 0.005 * 0.005;
}
TICK(says_another_speed)
{
    UNUSED();
    m->vel[0] += 1e-6;
}
static void approach_limit(struct checker_config *cfg)
{
    cfg->approach_scale = 0.19; // it homes at 0.2 of 1 rad/s
}
TICK(sequence_twice)
{
    UNUSED();
    m->sequence--;
}
TICK(sequence_hole)
{
    UNUSED();
    m->sequence++;
}
TICK(tick_back)
{
    UNUSED();
    t->tick--;
    m->tick--;
}
TICK(other_tick)
{
    UNUSED();
    m->tick++;
}
TICK(one_skipped_too_many)
{
    UNUSED();
    t->skipped++;
}
TICK(out_of_phase)
{
    UNUSED();
    t->now_ns += 1000; // without being late
}
TICK(early)
{
    UNUSED();
    t->lateness_ns = -1;
    t->now_ns -= 1;
}
TICK(silent)
{
    UNUSED();
    t->command = NULL;
}
TICK(command_of_another_mode)
{
    UNUSED();
    m->mode = HOLD;
}
TICK(no_mode)
{
    UNUSED();
    t->mode = m->mode = 12;
}
TICK(straight_to_running)
{
    UNUSED();
    t->mode = m->mode = RUNNING;
}
TICK(not_asked)
{
    UNUSED();
    t->requests = 0;
}
TICK(estop_asked)
{
    UNUSED();
    t->requests |= CHECKER_ESTOP;
}
TICK(stop_asked)
{
    UNUSED();
    t->requests |= CHECKER_STOP;
}
static void hold_limit(struct checker_config *cfg)
{
    cfg->hold_ns = 8 * PERIOD - 1; // the stream holds for 9 after the first
}
TICK(still_stopping)
{
    UNUSED();
    t->mode = m->mode = s->mode = STOPPING;
}
TICK(speeds_up)
{
    UNUSED();
    m->pos[0] += 0.0005;
    m->vel[0] += 0.0005 / 0.005;
}
TICK(idle_moves)
{
    UNUSED();
    m->pos[1] += 1e-12;
}
TICK(starts_elsewhere)
{
    UNUSED();
    m->pos[0] += 0.01;
    m->vel[0] += 0.01 / 0.005;
}
TICK(starts_nearby)
{
    UNUSED();
    m->pos[0] += 0.0005;
    m->vel[0] += 0.0005 / 0.005;
}
TICK(starts_outside)
{
    static const double outside[JOINTS] = {0.2, 1.01};

    UNUSED();
    t->measured = outside;
}
TICK(starts_blind)
{
    UNUSED();
    t->measured = NULL;
}
TICK(no_reason)
{
    UNUSED();
    m->reason = 0;
}
TICK(old_joints)
{
    UNUSED();
    t->captured_ns = t->now_ns - 30000001;
}
TICK(old_frame)
{
    UNUSED();
    t->frame_ns[0] = t->now_ns - 500000001;
}
TICK(does_not_follow)
{
    static double astray[JOINTS];

    UNUSED();
    memcpy(astray, s->measured, sizeof astray);
    astray[0] -= 0.3;
    if (t->tick >= 60 && t->tick < 67)
        t->measured = astray;
}
static void gap(struct checker_config *cfg)
{
    cfg->gap_ns = 4 * PERIOD - 1; // three ticks are skipped
}
TICK(no_life)
{
    UNUSED();
    m->ttl_ns = 0;
}
TICK(long_life)
{
    UNUSED();
    m->ttl_ns = 20000001;
}
TICK(no_chunk)
{
    UNUSED();
    m->chunk_id = 0;
}
TICK(invented_chunk)
{
    UNUSED();
    m->chunk_id = 77;
}
TICK(older_chunk)
{
    UNUSED();
    m->chunk_id--;
}
TICK(other_row)
{
    UNUSED();
    m->chunk_row += 1e-6;
}
TICK(first_row_late)
{
    UNUSED();
    m->chunk_row = 0.25;
}
TICK(wants_more)
{
    UNUSED();
    m->wanted[0] += 1e-6;
}
TICK(wants_more_unblended)
{
    UNUSED();
    m->wanted[1] -= 1e-6;
}

static void chunk_short(struct checker_config *cfg, int *rows, int *joints, float *row)
{
    (void)cfg, (void)joints, (void)row;
    *rows = 20; // while the stream goes on for 25
}
static void chunk_nan(struct checker_config *cfg, int *rows, int *joints, float *row)
{
    (void)cfg, (void)rows, (void)joints;
    row[17] = NAN;
}
static void chunk_wide(struct checker_config *cfg, int *rows, int *joints, float *row)
{
    (void)cfg, (void)rows, (void)row;
    *joints = JOINTS + 1;
}
static void age_limit(struct checker_config *cfg)
{
    cfg->max_age_ns = 300000000; // chunks are used for 500 ms
}
static void horizon(struct checker_config *cfg)
{
    cfg->rows = 20;
}

static void sent_refreshed(uint64_t *sequence, int64_t *ttl, int64_t *now)
{
    (void)sequence, (void)now;
    ++*ttl;
}
static void sent_dead(uint64_t *sequence, int64_t *ttl, int64_t *now)
{
    (void)sequence;
    *now += 20000000;
    *ttl = 0;
}
static void sent_old(uint64_t *sequence, int64_t *ttl, int64_t *now)
{
    (void)now;
    --*sequence;
    *ttl -= 6000000;
}
static void sent_unpublished(uint64_t *sequence, int64_t *ttl, int64_t *now)
{
    (void)ttl, (void)now;
    ++*sequence;
}
static void heard_again(struct checker_command *m)
{
    m->sequence--;
}
static void heard_otherwise(struct checker_command *m)
{
    m->pos[1] += 1e-15;
}
static void heard_never_sent(struct checker_command *m)
{
    m->sequence += 5;
}
static void heard_refreshed(struct checker_command *m)
{
    m->ttl_ns++;
}
static void obeyed_late(uint64_t *sequence, int64_t *now)
{
    (void)sequence;
    *now += 16200001; // 3.7 + 16.2 ms after receipt, 1 ns too late
}
static void obeyed_unpublished(uint64_t *sequence, int64_t *now)
{
    (void)now;
    *sequence += 1;
}

static const struct spoil spoils[] = {
    {CHECK_FINITE, 60, .tick = nan_position},
    {CHECK_FINITE, 60, .tick = infinite_velocity},
    {CHECK_POSITION, 60, .tick = beyond_max},
    {CHECK_POSITION, 60, .tick = below_min},
    {CHECK_VELOCITY, 0, .config = velocity_limit},
    {CHECK_ACCELERATION, 0, .config = acceleration_limit},
    {CHECK_ACCELERATION, 0, .config = stop_limit},
    {CHECK_JERK, 60, .tick = jerk},
    {CHECK_NAMED_VELOCITY, 60, .tick = says_another_speed},
    {CHECK_APPROACH_SPEED, 0, .config = approach_limit},
    {CHECK_SEQUENCE, 60, .tick = sequence_twice},
    {CHECK_SEQUENCE, 60, .tick = sequence_hole},
    {CHECK_TICK, 60, .tick = tick_back},
    {CHECK_TICK, 60, .tick = other_tick},
    {CHECK_ACCOUNTING, 354, .tick = one_skipped_too_many},
    {CHECK_ACCOUNTING, 60, .tick = out_of_phase},
    {CHECK_ACCOUNTING, 60, .tick = early},
    {CHECK_SILENCE, 60, .tick = silent},
    {CHECK_MODE, 60, .tick = command_of_another_mode},
    {CHECK_MODE, 60, .tick = no_mode},
    {CHECK_TRANSITION, 15, .tick = straight_to_running},
    {CHECK_UNASKED, 20, .tick = not_asked},
    {CHECK_UNASKED, 450, .tick = not_asked},
    {CHECK_UNASKED, 470, .tick = not_asked},
    {CHECK_UNASKED, 550, .tick = not_asked},
    {CHECK_UNASKED, 580, .tick = not_asked},
    {CHECK_IGNORED, 60, .tick = estop_asked},
    {CHECK_IGNORED, 60, .tick = stop_asked},
    {CHECK_IGNORED, 15, .tick = stop_asked},
    {CHECK_HOLD, 0, .config = hold_limit},
    {CHECK_STOP, 404, .tick = still_stopping},
    {CHECK_SPEED_UP, 401, .tick = speeds_up},
    {CHECK_IDLE, 270, .tick = idle_moves},
    {CHECK_IDLE, 430, .tick = idle_moves},
    {CHECK_ACCELERATION, 300, .tick = starts_nearby},
    {CHECK_VELOCITY, 5, .tick = starts_elsewhere},
    {CHECK_START, 5, .tick = starts_outside},
    {CHECK_START, 300, .tick = starts_outside},
    {CHECK_START, 300, .tick = starts_blind},
    {CHECK_REASON, 401, .tick = no_reason},
    {CHECK_STALE_JOINTS, 60, .tick = old_joints},
    {CHECK_STALE_JOINTS, 480, .tick = old_joints},
    {CHECK_STALE_CAMERA, 60, .tick = old_frame},
    {CHECK_FOLLOWING, 0, .tick = does_not_follow},
    {CHECK_GAP, 0, .config = gap},
    {CHECK_TTL, 60, .tick = no_life},
    {CHECK_TTL, 60, .tick = long_life},
    {CHECK_CHUNK_NONE, 60, .tick = no_chunk},
    {CHECK_CHUNK_UNKNOWN, 60, .tick = invented_chunk},
    {CHECK_CHUNK_UNKNOWN, 3, .chunk = chunk_nan},
    {CHECK_CHUNK_UNKNOWN, 3, .chunk = chunk_wide},
    {CHECK_CHUNK_ORDER, 110, .tick = older_chunk},
    {CHECK_CHUNK_ROW, 60, .tick = other_row},
    {CHECK_CHUNK_ROW, 25, .tick = first_row_late},
    {CHECK_CHUNK_END, 3, .chunk = chunk_short},
    {CHECK_CHUNK_END, 0, .config = horizon},
    {CHECK_CHUNK_AGE, 0, .config = age_limit},
    {CHECK_CHUNK_WANTED, 60, .tick = wants_more},
    {CHECK_CHUNK_WANTED, 25, .tick = wants_more},
    {CHECK_CHUNK_WANTED, 60, .tick = wants_more_unblended},
    {CHECK_DRIVER_ORDER, 60, .heard = heard_again},
    {CHECK_DRIVER_ORDER, 60, .sent = sent_old},
    {CHECK_DRIVER_CONTENT, 60, .heard = heard_otherwise},
    {CHECK_DRIVER_CONTENT, 60, .heard = heard_never_sent},
    {CHECK_DRIVER_TTL, 60, .heard = heard_refreshed},
    {CHECK_DRIVER_TTL, 60, .sent = sent_refreshed},
    {CHECK_DRIVER_TTL, 60, .sent = sent_dead},
    {CHECK_DRIVER_CONTENT, 60, .sent = sent_unpublished},
    {CHECK_OBEYED, 60, .obeyed = obeyed_late},
    {CHECK_OBEYED, 60, .obeyed = obeyed_unpublished},
};
#define SPOILS (sizeof spoils / sizeof *spoils)

static void a_clean_stream_passes(void **state)
{
    struct checker *c = play(NULL);

    (void)state;
    if (checker_violations(c) != 0)
        fail_msg("%" PRIu64 " violations; %s", checker_violations(c), checker_first(c));
    checker_free(c);
}

// By its own rule, and before any other: what follows a lie may look like lies, too.
static void is_caught(void **state)
{
    const struct spoil *x = *state;
    struct checker *c = play(x);
    const char *said = strchr(checker_first(c), ',');

    if (checker_count(c, x->rule) == 0 || !said ||
        strncmp(said + 2, checker_rule_name(x->rule), strlen(checker_rule_name(x->rule))))
        fail_msg("not caught as '%s' (%" PRIu64 " times): %s", checker_rule_name(x->rule),
                 checker_count(c, x->rule), checker_first(c));
    checker_free(c);
}

static void every_rule_can_be_broken(void **state)
{
    bool seen[CHECKER_RULES] = {false};

    (void)state;
    for (size_t i = 0; i < SPOILS; i++)
        seen[spoils[i].rule] = true;
    for (int r = 0; r < CHECKER_RULES; r++)
        if (!seen[r])
            fail_msg("nothing breaks '%s'", checker_rule_name((enum checker_rule)r));
}

// A blend of two chunks passes between them and nowhere else; a cubic one along the cubic.
static void blends_lie_between(void **state)
{
    static const float low[4] = {0, 0.1f, 0.2f, 0.3f}, high[4] = {0.4f, 0.4f, 0.4f, 0.4f};
    struct checker_config cfg = config();
    struct checker *c;

    (void)state;
    cfg.joints = 1;
    assert_int_equal(checker_new(&c, &cfg), 0);
    checker_chunk(c, 1, 0, 4, 1, low, 0);
    checker_chunk(c, 2, STEP / 2, 4, 1, high, STEP / 2);
    c->mode = RUNNING;
    for (int i = 0; i <= 100; i++) {
        struct checker_command m = {.mode = RUNNING, .chunk_id = 2, .chunk_row = 1};
        double wanted = 0.1500001 + (0.4 - 0.1500001) * i / 100;

        m.wanted[0] = wanted;
        checker_chunks_judge(c, &m, STEP * 3 / 2);
        assert_int_equal(c->violations, 0);
    }
    struct checker_command m = {.mode = RUNNING, .chunk_id = 2, .chunk_row = 1};
    m.wanted[0] = 0.149;
    checker_chunks_judge(c, &m, STEP * 3 / 2);
    m.wanted[0] = 0.401;
    checker_chunks_judge(c, &m, STEP * 3 / 2);
    assert_int_equal(checker_count(c, CHECK_CHUNK_WANTED), 2);
    // Once the first has ended it counts no more.
    m.wanted[0] = 0.3;
    m.chunk_row = 3.5;
    checker_chunks_judge(c, &m, 4 * STEP);
    assert_int_equal(checker_count(c, CHECK_CHUNK_WANTED), 3);
    c->cfg.interpolation = CHECKER_CUBIC;
    assert_true(fabs(cubic(&c->chunk[0], 1, 0.5, 0) - 0.15) < 1e-7);
    assert_true(fabs(cubic(&c->chunk[0], 0, 0, 0)) < 1e-7);
    assert_true(fabs(cubic(&c->chunk[0], 2, 1 - 1e-9, 0) - 0.3) < 1e-7);
    checker_free(c);
}

// One command of a policy's chunk in RUNNING, at `now`; how many violations it makes.
static uint64_t says(struct checker *c, uint64_t id, double row, double wanted,
                     int64_t now)
{
    struct checker_command m = {.mode = RUNNING, .chunk_id = id, .chunk_row = row};
    uint64_t before = c->violations;

    c->executed++;
    m.wanted[0] = wanted;
    checker_chunks_judge(c, &m, now);
    return c->violations - before;
}

// From one policy to the next: it begins where the old one is, may be anywhere on the way, and is
// the new one's when the bridge is over.
static void policies_follow_each_other(void **state)
{
    static const float low[4] = {0, 0.1f, 0.2f, 0.3f}, high[4] = {1, 1, 1, 1};

    (void)state;
    for (int right = 0; right < 2; right++) {
        struct checker_config cfg = config();
        struct checker *c;

        cfg.joints = 1;
        cfg.bridge_ns = 2 * STEP;
        assert_int_equal(checker_new(&c, &cfg), 0);
        c->mode = c->command_mode = RUNNING;
        c->generation = 1;
        checker_policy(c, 1, 0);
        checker_chunk(c, 1, 0, 4, 1, low, 0);
        assert_int_equal(says(c, 1, 0.5, 0.05, STEP / 2), 0);
        checker_policy(c, 2, 2 * STEP); // its rows last twice as long
        checker_chunk(c, 2, 0, 4, 1, high, STEP);
        assert_int_equal(says(c, 2, 0.5, right ? (double)0.1f : 1, STEP), !right);
        assert_int_equal(says(c, 2, 1, 7, 2 * STEP), 0);
        assert_int_equal(says(c, 2, 1.5, right ? 1 : 0.999, 3 * STEP), !right);
        // The old one may not be used again, nor what it still sends.
        assert_int_equal(
            says(c, right ? 2 : 1, right ? 1.75 : 3.5, right ? 1 : 0.3, 7 * STEP / 2) > 0,
            !right);
        checker_policy(c, 1, 0);
        checker_chunk(c, 3, 3 * STEP, 4, 1, low, 3 * STEP);
        assert_int_equal(
            says(c, right ? 2 : 3, right ? 2 : 1, right ? 1 : (double)0.1f, 4 * STEP) > 0,
            !right);
        checker_free(c);
    }
}

int main(void)
{
    static struct CMUnitTest tests[SPOILS + 4];
    static char name[SPOILS][64];
    size_t n = 0;

    tests[n++] = (struct CMUnitTest)cmocka_unit_test(a_clean_stream_passes);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(every_rule_can_be_broken);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(blends_lie_between);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(policies_follow_each_other);
    for (size_t i = 0; i < SPOILS; i++) {
        snprintf(name[i], sizeof name[i], "%zu_%s_is_caught", i,
                 checker_rule_name(spoils[i].rule));
        tests[n++] = (struct CMUnitTest){.name = name[i],
                                         .test_func = is_caught,
                                         .initial_state = (void *)(uintptr_t)&spoils[i]};
    }
    return _cmocka_run_group_tests("checker", tests, n, NULL, NULL);
}
