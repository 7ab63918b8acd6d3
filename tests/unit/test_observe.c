// The policy worker step by step in a time of the test's own: no thread, no clock, a scripted
// brain. Every bound is tried at the nanosecond before it and at itself.
#include "tests/unit/observe_rig.h"

static bool infer_at(struct rig *r, ns_t now, ns_t latency)
{
    if (!infer_due(r->infer, now) || infer_observe(r->infer) != 0)
        return false;
    infer_think(r->infer, now);
    infer_finish(r->infer, now + latency);
    return true;
}

// ---- when ------------------------------------------------------------------------------------

static void due_with_a_new_frame_that_is_wanted(void **state)
{
    struct rig *r = *state;

    start(r, TRIGGER_CONTINUOUS);
    assert_false(infer_due(r->infer, T0)); // no frame, no report
    all_at(r, T0);
    assert_false(infer_due(r->infer, T0));
    report(r, false, LADDER_RUNNING, 5);
    assert_false(infer_due(r->infer, T0));
    report(r, true, LADDER_RUNNING, 5);
    assert_true(infer_due(r->infer, T0));
    assert_true(infer_at(r, T0, MS));
    assert_false(
        infer_due(r->infer, T0 + 10 * MS)); // the same frame again is nothing new
    all_at(r, T0 + 1);
    assert_true(infer_due(r->infer, T0 + 10 * MS));
}

static void waits_most_of_a_period_for_the_other_camera(void **state)
{
    struct rig *r = *state;

    start(r, TRIGGER_CONTINUOUS);
    report(r, true, LADDER_RUNNING, 5);
    joints_at(r, T0, 0);
    frame(r, WRIST, 20, T0 - PERIOD / 2 - 1); // belongs to the instant before
    frame(r, FRONT, 10, T0);
    assert_false(infer_due(r->infer, T0));
    assert_false(infer_due(r->infer, T0 + PERIOD / 4 * 3 - 1));
    assert_true(infer_due(r->infer, T0 + PERIOD / 4 * 3)); // then the newest must do
    frame(r, WRIST, 21, T0 - PERIOD / 2);                  // it came after all
    assert_true(infer_due(r->infer, T0));
    assert_true(infer_at(r, T0, MS) && take(r));
    assert_true(r->chunk->anchor_ns == T0 && r->chunk->oldest_ns == T0 - PERIOD / 2);
}

// Is an inference due for a frame that comes `since` after the last anchor?
static bool due_after(struct rig *r, ns_t since, enum ladder_state mode, double remaining)
{
    static ns_t t = T0;
    bool due;

    report(r, true, LADDER_RUNNING, 0); // starving: due at once
    all_at(r, t += NS_PER_S);
    assert_true(infer_at(r, t, MS) && take(r));
    report(r, true, mode, remaining);
    all_at(r, t += since);
    due = infer_due(r->infer, t);
    return due;
}

static void due_by_rows(void **state)
{
    struct rig *r = *state;
    const ns_t wait = 4 * STEP - STEP / 2, idle = 200 * MS;

    start(r, TRIGGER_ROWS);
    assert_false(due_after(r, wait - 1, LADDER_RUNNING, 5));
    assert_true(due_after(r, wait, LADDER_RUNNING, 5));
    // Starving it does not wait for the trigger; nor does a HOLD that came of starving.
    assert_true(due_after(r, 1 * MS, LADDER_RUNNING, 0));
    assert_true(due_after(r, 1 * MS, LADDER_HOLD, 0));
    assert_false(due_after(r, 1 * MS, LADDER_HOLD, 1));
    assert_false(due_after(r, 1 * MS, LADDER_READY, 0));
    // At rest: by rows when that is soon, else at least so often.
    assert_false(due_after(r, wait - 1, LADDER_READY, 5));
    assert_true(due_after(r, wait, LADDER_READY, 5));
    infer_free(r->infer);
    r->seat.every_rows = 100;
    start(r, TRIGGER_ROWS);
    assert_false(due_after(r, idle - 1, LADDER_READY, 5));
    assert_true(due_after(r, idle, LADDER_READY, 5));
    assert_false(due_after(r, 100 * STEP - STEP / 2 - 1, LADDER_RUNNING, 5));
    assert_true(due_after(r, 100 * STEP - STEP / 2, LADDER_RUNNING, 5));
}

// The chunk lasts 50 rows and 100 are asked for: the lead is what the latency leaves. The worst
// of the last 32 counts.
static void due_earlier_by_the_latency(void **state)
{
    struct rig *r = *state;
    ns_t t = 100 * NS_PER_S;

    r->seat.every_rows = 100;
    r->seat.horizon_rows = 50;
    start(r, TRIGGER_ROWS);
    for (int i = 0; i < 40; i++) {
        ns_t late = i == 3 ? 10 * STEP : 2 * STEP; // of the chunk that is made now
        int lead = i >= 4 && i < 4 + 32 ? 50 - 10 - 2 : 50 - 2 - 2;

        if (i > 0) {
            ns_t wait = lead * STEP - STEP / 2;

            report(r, true, LADDER_RUNNING, 5);
            all_at(r, t + wait - 1);
            assert_false(infer_due(r->infer, t + wait));
            t += wait;
        }
        report(r, true, LADDER_RUNNING, 5);
        all_at(r, t);
        assert_true(infer_at(r, t, late) && take(r));
    }
}

// ---- what ------------------------------------------------------------------------------------

// The chunk and what it was made of, as on the tape: the receipt of the frames that were looked at,
// not of the ones that came meanwhile. A failed inference is no chunk.
static void tells_the_tape(void **state)
{
    const struct tape_sizes sizes = {{4096, 4096, 1 << 16, 4096, 4096}};
    struct rig *r = *state;
    const struct tape_entry *e;
    struct tape_chunk c;

    start(r, TRIGGER_CONTINUOUS);
    report(r, true, LADDER_RUNNING, 5);
    assert_int_equal(tape_new(&r->board.tape, &sizes), 0);
    tape_turn(r->board.tape, true);
    for (int i = 0; i < 300; i++)
        joints_at(r, T0 + (i - 260) * MS, i);
    frame(r, WRIST, 77, T0 - 7 * MS);
    frame(r, FRONT, 33, T0);
    assert_true(infer_due(r->infer, T0 + 50 * MS) && infer_observe(r->infer) == 0);
    infer_think(r->infer, T0 + 50 * MS);
    frame(r, WRIST, 78, T0 + 20 * MS);
    frame(r, FRONT, 34, T0 + 20 * MS);
    infer_finish(r->infer, T0 + 62 * MS);
    assert_true(take(r));
    e = tape_peek(r->board.tape, TAPE_CHUNKS);
    assert_non_null(e);
    memcpy(&c, e + 1, sizeof c);
    assert_true(c.number == 1 && c.id == r->chunk->id && c.rows == ROWS);
    assert_int_equal(c.joints, JOINTS);
    assert_true(c.frame_ns[WRIST] == T0 - 7 * MS && c.frame_ns[FRONT] == T0);
    assert_true(c.capture_ns[WRIST] == T0 - 7 * MS && c.capture_ns[FRONT] == T0);
    assert_true(c.anchor_ns == r->chunk->anchor_ns && c.oldest_ns == r->chunk->oldest_ns);
    assert_true(c.began_ns == T0 + 50 * MS && c.ready_ns == T0 + 62 * MS);
    assert_true(c.step_ns == STEP && c.generation == r->chunk->generation);
    assert_int_equal(c.joint_sample, 261); // number i + 1 at T0 + (i - 260) ms
    assert_int_equal(e->size, sizeof c + sizeof(float) * ROWS * JOINTS);
    assert_memory_equal((const char *)(e + 1) + sizeof c, r->chunk->row,
                        sizeof(float) * ROWS * JOINTS);
    tape_release(r->board.tape, TAPE_CHUNKS);
    assert_null(tape_peek(r->board.tape, TAPE_CHUNKS));
    r->script.rc = -EIO; // nothing was made
    all_at(r, T0 + 80 * MS);
    assert_true(infer_at(r, T0 + 80 * MS, MS));
    assert_null(tape_peek(r->board.tape, TAPE_CHUNKS));
    tape_free(r->board.tape);
    r->board.tape = NULL;
}

static void sees_what_belongs_to_the_anchor(void **state)
{
    struct rig *r = *state;

    start(r, TRIGGER_CONTINUOUS);
    report(r, true, LADDER_RUNNING, 5);
    for (int i = 0; i < 300; i++) // more than the history holds
        joints_at(r, T0 + (i - 260) * MS, i);
    frame(r, WRIST, 77, T0 - 7 * MS);
    frame(r, FRONT, 33, T0 + MS / 2 + 1); // nearer to T0 + 1 ms than to T0
    assert_true(infer_at(r, T0 + 50 * MS, 12 * MS) && take(r));
    assert_true(r->script.grey[0] == 77 && r->script.grey[1] == 33);
    assert_true(r->script.state[0] == 261 && r->script.state[2] == 263);
    assert_int_equal(r->chunk->id, 1);
    assert_int_equal(r->chunk->anchor_ns, T0 + MS / 2 + 1);
    assert_int_equal(r->chunk->oldest_ns, T0 - 7 * MS);
    assert_int_equal(r->chunk->ready_ns, T0 + 62 * MS);
    assert_true(r->chunk->rows == ROWS && r->chunk->joints == JOINTS);
    for (int k = 0; k < ROWS; k++)
        for (int j = 0; j < JOINTS; j++)
            assert_true(r->chunk->row[k * JOINTS + j] == (float)(261 + j + 100 * k));
    assert_int_equal(r->board.starved, BOARD_FED);
}

static void says_what_it_starves_of(void **state)
{
    struct rig *r = *state;
    const struct infer_counts *n;

    start(r, TRIGGER_CONTINUOUS);
    n = infer_counts(r->infer);
    report(r, true, LADDER_RUNNING, 5);
    assert_int_equal(infer_observe(r->infer), -ENODATA);
    assert_true(r->board.starved == BOARD_NO_FRAME && n->no_frame == 1);
    // Too far apart, either way round, and then not.
    frame(r, WRIST, 1, T0 - SKEW - 1);
    frame(r, FRONT, 1, T0);
    joints_at(r, T0 - SKEW - 1, 0);
    assert_true(infer_due(r->infer, T0 + PERIOD));
    assert_int_equal(infer_observe(r->infer), -ENODATA);
    assert_true(r->board.starved == BOARD_SKEW && n->skew == 1);
    assert_true(infer_due(r->infer, T0 + PERIOD)); // it tries again
    frame(r, WRIST, 2, T0 + SKEW + 1);
    assert_int_equal(infer_observe(r->infer), -ENODATA);
    assert_true(r->board.starved == BOARD_SKEW && n->skew == 2);
    frame(r, FRONT, 2, T0 + 1);
    assert_int_equal(infer_observe(r->infer), -ENODATA); // now the joints are
    assert_true(r->board.starved == BOARD_NO_JOINTS && n->no_joints == 1);
    joints_at(r, T0 + 1 + SKEW + 1, 0);
    assert_int_equal(infer_observe(r->infer), -ENODATA);
    joints_at(r, T0 + 1 + SKEW, 0);
    assert_int_equal(infer_observe(r->infer), 0);
    assert_int_equal(r->board.starved, BOARD_FED);
    assert_int_equal(n->no_joints, 2);
    assert_int_equal(r->script.calls, 0);
}

// A frame that says it is new and does not decode leaves the one before it, which was used.
static void a_corrupt_frame_is_no_new_one(void **state)
{
    struct rig *r = *state;

    start(r, TRIGGER_CONTINUOUS);
    report(r, true, LADDER_RUNNING, 5);
    all_at(r, T0);
    assert_true(infer_at(r, T0, MS));
    joints_at(r, T0 + PERIOD, 0);
    frame(r, WRIST, 2, T0 + PERIOD);
    corrupt_frame(r, FRONT, T0 + PERIOD);
    assert_true(infer_due(r->infer, T0 + PERIOD));
    assert_int_equal(infer_observe(r->infer), -ENODATA);
    assert_int_equal(r->board.starved, BOARD_NO_FRAME);
    assert_int_equal(r->board.camera[FRONT].corrupt, 1);
    assert_int_equal(infer_counts(r->infer)->no_frame, 0); // counted there already
    frame(r, FRONT, 3, T0 + PERIOD + 1);
    assert_true(infer_at(r, T0 + PERIOD + 1, MS));
    assert_int_equal(r->board.starved, BOARD_FED);
}

// ---- the inference ---------------------------------------------------------------------------

static void is_in_progress_until_it_is_finished(void **state)
{
    struct rig *r = *state;

    start(r, TRIGGER_CONTINUOUS);
    report(r, true, LADDER_RUNNING, 0);
    infer_finish(r->infer, T0); // none was begun
    assert_int_equal(infer_counts(r->infer)->done, 0);
    all_at(r, T0);
    assert_int_equal(infer_observe(r->infer), 0);
    assert_int_equal(r->board.inferring_since_ns, 0);
    assert_int_equal(infer_think(r->infer, T0 + 3), 0);
    assert_int_equal(r->board.inferring_since_ns, T0 + 3);
    assert_false(take(r));
    all_at(r, T0 + NS_PER_S);
    assert_false(infer_due(r->infer, T0 + 2 * NS_PER_S)); // one at a time, however long
    infer_finish(r->infer, T0 + 3 * NS_PER_S);
    assert_int_equal(r->board.inferring_since_ns, 0);
    assert_true(take(r));
    assert_true(r->chunk->anchor_ns == T0 && r->chunk->ready_ns == T0 + 3 * NS_PER_S);
    assert_int_equal(r->board.inference.count, 1);
    assert_true(r->board.inference.max_ns == 3 * NS_PER_S - 3);
    infer_finish(r->infer, T0 + 4 * NS_PER_S);
    assert_false(take(r));
    assert_true(infer_due(r->infer, T0 + 4 * NS_PER_S));
}

static void failures_are_counted_in_a_row(void **state)
{
    struct rig *r = *state;
    char text[INFER_FAILURE_MAX];
    ns_t t = T0;

    start(r, TRIGGER_CONTINUOUS);
    report(r, true, LADDER_RUNNING, 5);
    infer_last_failure(r->infer, text);
    assert_string_equal(text, "");
    for (uint32_t i = 1; i <= 4; i++) {
        r->script.rc = i % 2 ? -EDOM : -EIO;
        all_at(r, t += PERIOD);
        assert_true(infer_at(r, t, MS));
        assert_false(take(r));
        assert_int_equal(r->board.policy_failures, i);
        assert_int_equal(r->board.inferring_since_ns, 0);
        assert_false(infer_due(r->infer, t + PERIOD - 1)); // not the same frame again
    }
    infer_last_failure(r->infer, text);
    assert_string_equal(text, "the script says no");
    r->script.rc = 0;
    all_at(r, t += PERIOD);
    assert_true(infer_at(r, t, MS) && take(r));
    assert_int_equal(r->chunk->id, 1); // failures take no number
    assert_int_equal(r->board.policy_failures, 0);
    assert_int_equal(infer_counts(r->infer)->failed, 4);
    assert_int_equal(infer_counts(r->infer)->done, 1);
    assert_int_equal(r->board.inference.count, 1);
}

static void a_full_ring_is_counted(void **state)
{
    struct rig *r = *state;
    int kept = 0;

    start(r, TRIGGER_CONTINUOUS);
    report(r, true, LADDER_RUNNING, 5);
    for (int i = 0; i < 20; i++) {
        all_at(r, T0 + i * PERIOD);
        assert_true(infer_at(r, T0 + i * PERIOD, MS));
    }
    for (; take(r); kept++)
        assert_int_equal(r->chunk->id, kept + 1);
    assert_true(kept > 0 && kept < 20);
    assert_int_equal(infer_counts(r->infer)->ring_full, 20 - kept);
    assert_int_equal(infer_counts(r->infer)->done, 20);
}

// ---- lock-step -------------------------------------------------------------------------------

static uint64_t seed;
static uint64_t rnd(uint64_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % below;
}

struct story { // what came of a run, as far as it can be told apart
    uint64_t chunks, busy, tries[4], hash;
};

static void mix(struct story *s, int64_t v)
{
    s->hash = (s->hash ^ (uint64_t)v) * UINT64_C(1099511628211);
}

static void tell_chunk(struct rig *r, struct story *s, ns_t *last_anchor, ns_t now)
{
    struct chunk *c = r->chunk;

    assert_true(c->id == s->chunks + 1 && c->anchor_ns > *last_anchor);
    assert_true(c->oldest_ns <= c->anchor_ns && c->anchor_ns - c->oldest_ns <= SKEW);
    assert_true(c->ready_ns == now);
    *last_anchor = c->anchor_ns;
    s->chunks++;
    mix(s, c->anchor_ns);
    mix(s, c->oldest_ns);
    mix(s, c->ready_ns);
    for (int i = 0; i < ROWS * JOINTS; i++)
        mix(s, (int64_t)(c->row[i] * 1024));
}

// 20 s of 5 ms ticks: frames and joints that come, lag, fail or stay away, inferences of 0 to 30
// ticks, some of which fail.
static struct story run(struct rig *r, uint64_t of)
{
    struct story s = {0};
    ns_t done_at = 0, last_anchor = 0, began = 0;

    seed = of;
    start(r, of % 2 ? TRIGGER_ROWS : TRIGGER_CONTINUOUS);
    for (ns_t now = T0; now < T0 + 20 * NS_PER_S; now += 5 * MS) {
        if (now / (400 * MS) % 5 != 0 && rnd(100) < 98)
            joints_at(r, now - (ns_t)rnd(3) * MS, (double)rnd(1000) / 256);
        for (int c = 0; c < 2; c++)
            if (rnd(8) == 0)
                rnd(10) == 0 ? corrupt_frame(r, c, now)
                             : frame(r, c, (uint8_t)rnd(256), now);
        report(r, rnd(20) != 0, rnd(2) ? LADDER_RUNNING : LADDER_READY, (double)rnd(6));
        assert_true((r->board.inferring_since_ns != 0) == (began != 0));
        if (began && now >= done_at) {
            infer_finish(r->infer, now);
            began = 0;
            if (take(r))
                tell_chunk(r, &s, &last_anchor, now);
        }
        if (infer_due(r->infer, now)) {
            assert_true(began == 0);
            int got = infer_observe(r->infer);
            assert_in_range(r->board.starved, BOARD_FED, BOARD_NO_JOINTS);
            assert_true((got == 0) == (r->board.starved == BOARD_FED));
            s.tries[r->board.starved]++;
            if (got == 0) {
                r->script.rc = rnd(10) == 0 ? -EDOM : 0;
                began = now;
                done_at = now + (ns_t)rnd(30) * 5 * MS;
                infer_think(r->infer, now);
                assert_int_equal(r->board.inferring_since_ns, now);
            }
        }
        s.busy += began != 0;
    }
    return s;
}

static void the_same_run_twice_is_the_same(void **state)
{
    uint64_t tries[4] = {0};

    (void)state;
    for (uint64_t i = 1; i <= 10; i++) {
        struct story story[2];

        for (int again = 0; again < 2; again++) {
            void *rig;

            assert_int_equal(setup(&rig), 0);
            story[again] = run(rig, i);
            teardown(&rig);
        }
        assert_memory_equal(&story[0], &story[1], sizeof story[0]);
        assert_true(story[0].chunks > 40 && story[0].busy > 400);
        for (int w = 0; w < 4; w++)
            tries[w] += story[0].tries[w];
    }
    for (int w = 0; w < 4; w++) // every outcome was there
        assert_true(tries[w] > 0);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(due_with_a_new_frame_that_is_wanted),
        WITH(waits_most_of_a_period_for_the_other_camera),
        WITH(due_by_rows),
        WITH(due_earlier_by_the_latency),
        WITH(tells_the_tape),
        WITH(sees_what_belongs_to_the_anchor),
        WITH(says_what_it_starves_of),
        WITH(a_corrupt_frame_is_no_new_one),
        WITH(is_in_progress_until_it_is_finished),
        WITH(failures_are_counted_in_a_row),
        WITH(a_full_ring_is_counted),
        cmocka_unit_test(the_same_run_twice_is_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
