// A candidate beside the running policy, step by step: when it may think, on what, who
// owns it meanwhile; and how a seat changes hands.
#include "tests/unit/swap_rig.h"

struct pair {
    float running[ROWS * JOINTS], candidate[MAX_ROWS * JOINTS];
};
static struct pair pair;

static struct script *candidate(struct rig *r)
{
    return (struct script *)script_make(r, "candidate")->seat.brain.self;
}

static void try(struct rig *r, const struct script *s, int trials, ns_t guess)
{
    memset(&pair, 0, sizeof pair);
    infer_try(r->infer, &s->fitted.seat, trials, guess, pair.running, pair.candidate);
}

static struct infer_tried tried(struct rig *r)
{
    struct infer_tried out;
    infer_tried(r->infer, &out);
    return out;
}

// One inference of the running policy on frames of now.
static void infer(struct rig *r, ns_t takes)
{
    for (int c = 0; c < CAMERAS; c++)
        rig_frame(r, c, (uint8_t)(r->grey + c), r->now);
    rig_joints(r, r->now);
    assert_int_equal(infer_observe(r->infer), 0);
    assert_int_equal(infer_think(r->infer, r->now), 0);
    r->now += takes;
    infer_finish(r->infer, r->now);
}

static void report(struct rig *r, enum ladder_state mode, double remaining, ns_t step)
{
    r->report.mode = mode;
    r->report.chunk_remaining = remaining;
    r->report.chunk_step_ns = step;
    r->report.wants_inference = true;
    slot_write(&r->board.report, &r->report);
}

static void trial(struct rig *r, ns_t takes)
{
    assert_true(infer_try_due(r->infer, r->now));
    assert_int_equal(infer_try_think(r->infer, r->now), 0);
    assert_int_equal(tried(r).state, TRIAL_THINKS);
    r->now += takes;
    infer_try_finish(r->infer, r->now);
}

// ---- when ------------------------------------------------------------------------------------

// 30 ms of latency, a period of 40 ms and 2 rows must fit behind the trial.
static void only_while_there_is_room(void **state)
{
    static const enum ladder_state follows[] = {LADDER_APPROACH, LADDER_RUNNING,
                                                LADDER_HOLD};
    struct rig *r = *state;
    struct script *s = candidate(r);
    double after = 30 + 40 + 2 * 20;
    infer(r, 30 * MS);
    try(r, s, 5, 100 * MS);
    for (int i = 0; i < 3; i++) {
        report(r, follows[i], (after + 100) / 20, STEP);
        assert_false(infer_try_due(r->infer, r->now));
        assert_int_equal(tried(r).waits_for, TRIAL_FOR_ROOM);
        report(r, follows[i], (after + 100) / 20 + 1e-3, STEP);
        assert_true(infer_try_due(r->infer, r->now));
        assert_int_equal(tried(r).waits_for, TRIAL_NOT_WAITING);
        report(r, follows[i], 0, STEP);
        assert_false(infer_try_due(r->infer, r->now));
    }
    // The rows that are left may be longer ones, of a chunk of another policy.
    report(r, LADDER_RUNNING, (30 + 40 + 2 * 40 + 100) / 40.0, 2 * STEP);
    assert_false(infer_try_due(r->infer, r->now));
    report(r, LADDER_RUNNING, (30 + 40 + 2 * 40 + 100) / 40.0 + 1e-3, 2 * STEP);
    assert_true(infer_try_due(r->infer, r->now));
}

static void always_while_the_arm_follows_no_chunk(void **state)
{
    static const enum ladder_state rests[] = {LADDER_WAITING,   LADDER_READY,
                                              LADDER_STOPPED,   LADDER_ESTOP,
                                              LADDER_DISARMING, LADDER_HOMING};
    struct rig *r = *state;
    struct script *s = candidate(r);
    infer(r, 30 * MS);
    try(r, s, 5, 100 * NS_PER_S);
    for (size_t i = 0; i < sizeof rests / sizeof *rests; i++) {
        report(r, rests[i], 0, STEP);
        assert_true(infer_try_due(r->infer, r->now));
    }
}

// The guess gives way to the first trial, up or down; after that the longest counts.
static void the_longest_so_far_counts(void **state)
{
    static const int takes[] = {50, 80, 60};
    static const int longest[] = {50, 80, 80};
    struct rig *r = *state;
    struct script *s = candidate(r);
    infer(r, 30 * MS);
    try(r, s, 5, 300 * MS);
    for (int i = 0; i < 3; i++) {
        report(r, LADDER_READY, 0, STEP);
        trial(r, takes[i] * MS);
        report(r, LADDER_RUNNING, (110 + longest[i]) / 20.0, STEP);
        assert_false(infer_try_due(r->infer, r->now));
        report(r, LADDER_RUNNING, (110 + longest[i]) / 20.0 + 1e-3, STEP);
        assert_true(infer_try_due(r->infer, r->now));
    }
    struct infer_tried t = tried(r);
    assert_int_equal(t.done, 3);
    assert_int_equal(t.ns[0], 50 * MS);
    assert_int_equal(t.ns[1], 80 * MS);
    assert_int_equal(t.ns[2], 60 * MS);
}

static void only_on_what_was_just_used(void **state)
{
    struct rig *r = *state;
    struct script *s = candidate(r);
    report(r, LADDER_READY, 0, STEP);
    try(r, s, 5, MS);
    assert_false(infer_try_due(r->infer, r->now)); // there was none yet
    assert_int_equal(tried(r).waits_for, TRIAL_FOR_OBSERVATION);
    infer(r, 30 * MS);
    ns_t anchor = r->now - 30 * MS;
    assert_true(infer_try_due(r->infer, anchor + NS_PER_S));
    assert_false(infer_try_due(r->infer, anchor + NS_PER_S + 1));
    r->script[0].rc = -EDOM; // the running policy made nothing of it
    r->now += PERIOD;
    for (int c = 0; c < CAMERAS; c++)
        rig_frame(r, c, 9, r->now);
    rig_joints(r, r->now);
    assert_int_equal(infer_observe(r->infer), 0);
    assert_false(infer_try_due(r->infer, r->now)); // not in the midst of it either
    (void)infer_think(r->infer, r->now);
    assert_false(infer_try_due(r->infer, r->now));
    infer_finish(r->infer, r->now + MS);
    assert_false(infer_try_due(r->infer, r->now + MS));
}

// The running policy looks earlier than its trigger says, once, for the first trial.
static void the_first_trial_is_not_kept_waiting(void **state)
{
    struct rig *r = *state;
    struct script *s = candidate(r);
    ns_t first = 500 * MS, anchor = r->now;
    r->script[0].fitted.seat.every_rows = 40; // 800 ms
    infer(r, 30 * MS);
    report(r, LADDER_RUNNING, 30, STEP);
    rig_frame(r, 1, 1, anchor + first - 1);
    rig_frame(r, 0, 1, anchor + first - 1);
    try(r, s, 2, MS);
    assert_false(infer_due(r->infer, anchor + first));
    assert_int_equal(infer_try_end(r->infer), 0);
    rig_frame(r, 1, 1, anchor + first);
    rig_frame(r, 0, 1, anchor + first);
    assert_false(infer_due(r->infer, anchor + first));
    try(r, s, 2, MS);
    assert_true(infer_due(r->infer, anchor + first));
    r->now = anchor + first - 1;
    trial(r, 30 * MS); // it was just in time
    assert_false(infer_due(r->infer, anchor + first + MS));
    assert_int_equal(infer_try_end(r->infer), 0);
    assert_false(infer_due(r->infer, anchor + first + MS));
}

// ---- what ------------------------------------------------------------------------------------

static void both_chunks_of_the_last_one(void **state)
{
    struct rig *r = *state;
    r->cfg->joint[1].scale = 10; // the candidate's; the first was fitted before
    r->next.offset = 2;
    r->next.slope = 0.5;
    struct script *s = candidate(r);
    r->pose = 0.5;
    r->script[0].offset = 1;
    report(r, LADDER_READY, 0, STEP);
    infer(r, 30 * MS);
    try(r, s, 2, MS);
    trial(r, 20 * MS);
    assert_true(pair.candidate[0] == 0); // only of the last
    trial(r, 20 * MS);
    assert_int_equal(tried(r).state, TRIAL_OVER);
    assert_false(infer_try_due(r->infer, r->now));
    for (int k = 0; k < ROWS; k++)
        for (int j = 0; j < JOINTS; j++) {
            double pose = 0.5 + 0.1 * j, scale = j == 1 ? 10 : 1;
            double is = (double)pair.candidate[k * JOINTS + j];
            assert_true(fabs((double)pair.running[k * JOINTS + j] - pose - 1) < 1e-5);
            assert_true(fabs(is - (pose * scale + 2 + 0.5 * k) / scale) < 1e-5);
        }
    assert_int_equal(s->calls, 2);
    assert_int_equal(s->grey[0], 40);
    assert_int_equal(s->grey[1], 41);
    assert_int_equal(infer_counts(r->infer)->done, 1); // and nothing of it is counted
    assert_int_equal(r->board.inference.count, 1);
    while (ring_pop(&r->board.chunks, r->chunk)) // nor handed over
        assert_int_equal(r->chunk->generation, 1);
    assert_int_equal(infer_try_end(r->infer), 0);
}

// A camera that the running policy does not look at: its newest frame; without one it
// waits for the next observation and does not ask again and again.
static void a_camera_of_its_own(void **state)
{
    struct rig *r = *state;
    r->next.info.n_cameras = 1;
    r->next.info.camera[0] = (struct policy_camera){"front", SIDE, SIDE};
    struct script *one = candidate(r);
    r->next = script_plain();
    struct script *both = candidate(r);
    infer_offer(r->infer, &one->fitted.seat);
    infer_change(r->infer);
    report(r, LADDER_READY, 0, STEP);
    rig_frame(r, 0, 7, r->now);
    rig_joints(r, r->now);
    assert_int_equal(infer_observe(r->infer), 0);
    (void)infer_think(r->infer, r->now);
    infer_finish(r->infer, r->now + MS);
    try(r, both, 1, MS);
    assert_true(infer_try_due(r->infer, r->now));
    assert_int_equal(infer_try_think(r->infer, r->now), -ENODATA);
    infer_try_finish(r->infer, r->now);
    assert_int_equal(tried(r).state, TRIAL_READY);
    assert_int_equal(both->calls, 0);
    assert_false(infer_try_due(r->infer, r->now));
    assert_int_equal(tried(r).waits_for, TRIAL_FOR_OBSERVATION);
    r->now += PERIOD;
    infer(r, MS);
    trial(r, MS);
    assert_int_equal(tried(r).state, TRIAL_OVER);
    assert_int_equal(both->grey[0], 40);
    assert_int_equal(both->grey[1], 41);
    assert_int_equal(infer_try_end(r->infer), 0);
    r->now += PERIOD;
    r->grey = 60;
    infer(r, MS);
    try(r, both, 1, MS);
    trial(r, MS);
    assert_int_equal(both->grey[0], 60);
    assert_int_equal(both->grey[1], 61); // of this observation, not the last
}

// ---- whose -----------------------------------------------------------------------------------

static void a_refusal_ends_them(void **state)
{
    struct rig *r = *state;
    r->next.rc = -EDOM;
    r->next.fails_from = 2;
    struct script *s = candidate(r);
    report(r, LADDER_READY, 0, STEP);
    infer(r, MS);
    try(r, s, 5, MS);
    trial(r, MS);
    assert_int_equal(infer_try_think(r->infer, r->now), -EDOM);
    infer_try_finish(r->infer, r->now);
    struct infer_tried t = tried(r);
    assert_int_equal(t.state, TRIAL_REFUSED);
    assert_int_equal(t.done, 1);
    assert_string_equal(t.why, "the script says no");
    assert_false(infer_try_due(r->infer, r->now));
    assert_int_equal(infer_counts(r->infer)->failed,
                     0); // the running policy's are another's
    assert_int_equal(r->board.policy_failures, 0);
    assert_int_equal(infer_try_end(r->infer), 0);
}

static void is_let_go_of_between_two_trials(void **state)
{
    struct rig *r = *state;
    struct script *s = candidate(r);
    report(r, LADDER_READY, 0, STEP);
    infer(r, MS);
    assert_int_equal(infer_try_end(r->infer), 0); // none is on
    try(r, s, 5, MS);
    assert_true(infer_try_due(r->infer, r->now));
    assert_int_equal(infer_try_end(r->infer), 0); // between the look and the step
    assert_int_equal(infer_try_think(r->infer, r->now), -ECANCELED);
    infer_try_finish(r->infer, r->now);
    assert_int_equal(s->calls, 0);
    assert_int_equal(tried(r).state, TRIAL_NONE);
    try(r, s, 5, MS);
    assert_int_equal(infer_try_think(r->infer, r->now), 0);
    assert_int_equal(infer_try_end(r->infer), -EBUSY);
    infer_try_finish(r->infer, r->now + MS);
    assert_false(infer_try_due(r->infer, r->now + MS)); // no more were wanted
    assert_int_equal(infer_try_end(r->infer), 0);
    try(r, s, 1, MS); // and again from the start
    assert_int_equal(tried(r).done, 0);
    trial(r, MS);
    assert_int_equal(tried(r).state, TRIAL_OVER);
}

// ---- seats -----------------------------------------------------------------------------------

static void a_seat_is_taken_between_two_inferences(void **state)
{
    struct rig *r = *state;
    const struct infer_seat *first = infer_seated(r->infer);
    r->next.offset = 3;
    struct script *s = candidate(r);
    s->fitted.generation = s->fitted.seat.generation = 9;
    assert_ptr_equal(first, &r->script[0].fitted.seat);
    report(r, LADDER_RUNNING, 40, STEP);
    for (int c = 0; c < CAMERAS; c++)
        rig_frame(r, c, 1, r->now);
    rig_joints(r, r->now);
    assert_int_equal(infer_observe(r->infer), 0);
    infer_offer(r->infer, &s->fitted.seat);
    (void)infer_think(r->infer, r->now);
    infer_finish(r->infer, r->now + 400 * MS);
    assert_ptr_equal(infer_seated(r->infer), first);
    assert_true(ring_pop(&r->board.chunks, r->chunk));
    assert_int_equal(r->chunk->generation, 1); // what was begun is finished
    assert_int_equal(infer_recent_ns(r->infer), 400 * MS);
    infer_change(r->infer);
    assert_ptr_equal(infer_seated(r->infer), &s->fitted.seat);
    assert_false(infer_withdraw(r->infer));
    assert_int_equal(infer_recent_ns(r->infer), 0); // times are a policy's own
    r->now += PERIOD;                               // long before the trigger
    for (int c = 0; c < CAMERAS; c++)
        rig_frame(r, c, 1, r->now);
    assert_true(infer_due(r->infer, r->now));
    infer(r, 30 * MS);
    assert_int_equal(infer_counts(r->infer)->seat_done, 1);
    assert_int_equal(infer_counts(r->infer)->done, 2);
    assert_true(ring_pop(&r->board.chunks, r->chunk));
    assert_int_equal(r->chunk->generation, 9);
    assert_int_equal(r->chunk->id, 2);
    assert_true(fabs((double)r->chunk->row[0] - 3) < 1e-6);
    for (int c = 0; c < CAMERAS; c++)
        rig_frame(r, c, 1, r->now + PERIOD);
    assert_false(infer_due(r->infer, r->now + PERIOD)); // only the first one
    try(r, &r->script[0], 1, 100 * MS);                 // 30 ms of latency, not 400
    report(r, LADDER_RUNNING, (30 + 40 + 2 * 20 + 100) / 20.0 + 1e-3, STEP);
    assert_true(infer_try_due(r->infer, r->now));
}

static void an_offer_is_taken_back(void **state)
{
    struct rig *r = *state;
    struct script *s = candidate(r);
    assert_false(infer_withdraw(r->infer));
    infer_offer(r->infer, &s->fitted.seat);
    assert_true(infer_withdraw(r->infer));
    infer_change(r->infer);
    assert_ptr_equal(infer_seated(r->infer), &r->script[0].fitted.seat);
    assert_false(infer_withdraw(r->infer));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(only_while_there_is_room),
        TEST(always_while_the_arm_follows_no_chunk),
        TEST(the_longest_so_far_counts),
        TEST(only_on_what_was_just_used),
        TEST(the_first_trial_is_not_kept_waiting),
        TEST(both_chunks_of_the_last_one),
        TEST(a_camera_of_its_own),
        TEST(a_refusal_ends_them),
        TEST(is_let_go_of_between_two_trials),
        TEST(a_seat_is_taken_between_two_inferences),
        TEST(an_offer_is_taken_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
