// The policy worker against a tiny policy, cameras fed by hand and a loop that only reports.
// What it hands over is compared with a second instance of the same policy given the same
// observation directly.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <unistd.h>

#include "daemon/infer.h"
#include "foxglove/RawImage.pb-c.h"
#include "tests/unit/act_fixture.h"

#define SIDE   32
#define JOINTS 6
#define ROWS   8
#define STEP   (20 * NS_PER_MS)

struct rig {
    char dir[64];
    struct policy *policy, *twin;
    struct binding binding;
    struct board board;
    struct camera *camera[2];
    struct codec *codec;
    struct infer_seat seat;
    struct infer *infer;
    struct joint_history history;
};

static void report(struct rig *r, bool wants, enum ladder_state mode)
{
    struct loop_report p = {.wants_inference = wants, .mode = mode, .chunk_remaining = 5};
    slot_write(&r->board.report, &p);
}

// A frame of one grey value, captured and received at t.
static void frame(struct rig *r, int camera, uint8_t grey, ns_t t)
{
    static uint8_t pixels[SIDE * SIDE * 3], message[sizeof pixels + 256];
    Foxglove__RawImage m;
    foxglove__raw_image__init(&m);
    memset(pixels, grey, sizeof pixels);
    m.width = m.height = SIDE;
    m.step = SIDE * 3;
    m.encoding = (char[]){"rgb8"};
    m.data = (ProtobufCBinaryData){sizeof pixels, pixels};
    size_t n = foxglove__raw_image__pack(&m, message);
    camera_park(r->camera[camera], r->codec, message, n, t);
}

static void joints_at(struct rig *r, ns_t t, double value)
{
    struct joint_sample *s = &r->history.sample[r->history.count % BOARD_HISTORY];
    s->number = ++r->history.count;
    s->capture_ns = s->received_ns = t;
    s->n = JOINTS;
    for (int i = 0; i < JOINTS; i++)
        s->pos[i] = value + 0.1 * i;
    slot_write(&r->board.history, &r->history);
}

static bool take(struct rig *r, struct chunk *c, int wait_ms)
{
    for (int i = 0; i <= wait_ms; i++) {
        if (ring_pop(&r->board.chunks, c))
            return true;
        usleep(1000);
    }
    return false;
}

// What the policy says to joints at `value` and cameras of these grey values.
static void expect(struct rig *r, double value, uint8_t front, uint8_t wrist, float *rows)
{
    static uint8_t a[SIDE * SIDE * 3], b[SIDE * SIDE * 3];
    float state[JOINTS], actions[ROWS * JOINTS];
    double pos[JOINTS];
    memset(a, front, sizeof a);
    memset(b, wrist, sizeof b);
    for (int i = 0; i < JOINTS; i++)
        pos[i] = value + 0.1 * i;
    binding_state(&r->binding, pos, state);
    const struct policy_image image[2] = {
        {.rgb = a, .width = SIDE, .height = SIDE, .stride = SIDE * 3},
        {.rgb = b, .width = SIDE, .height = SIDE, .stride = SIDE * 3}};
    const struct policy_observation obs = {.state = state, .image = image};
    assert_int_equal(policy_infer(r->twin, &obs, actions, NULL), 0);
    binding_actions(&r->binding, actions, ROWS, rows);
}

static void rig_start(struct rig *r, enum config_trigger trigger, int every_rows,
                      int horizon)
{
    struct config_error err = {{0}};
    const struct infer_config cfg = {.trigger = trigger,
                                     .max_skew_ns = 50 * NS_PER_MS,
                                     .camera_period_ns = {40 * NS_PER_MS, 40 * NS_PER_MS},
                                     .cpu_not = -1};
    r->seat = (struct infer_seat){.brain = infer_brain_of(r->policy),
                                  .info = policy_describe(r->policy),
                                  .binding = &r->binding,
                                  .generation = 3,
                                  .step_ns = STEP,
                                  .every_rows = every_rows,
                                  .horizon_rows = horizon};
    assert_int_equal(infer_seat_init(&r->seat), 0);
    assert_int_equal(infer_start(&r->infer, &cfg, &r->seat, r->camera, &r->board, &err),
                     0);
}

static int setup(void **state)
{
    struct rig *r = calloc(1, sizeof *r);
    struct act_fixture f = act_fixture_tiny();
    const struct policy_options opt = {.threads = 1};
    struct policy_error err = {{0}};
    f.n_cameras = 2;
    f.camera[1] = (struct act_fixture_camera){"observation.images.wrist", SIDE, SIDE};
    snprintf(r->dir, sizeof r->dir, "/tmp/actd-infer.XXXXXX");
    if (!mkdtemp(r->dir) || act_fixture_write(r->dir, &f))
        return -1;
    if (policy_load(&r->policy, r->dir, &opt, &err) ||
        policy_load(&r->twin, r->dir, &opt, &err))
        return -1;
    // Joints of the robot in another order than the policy's, in degrees on the policy's side.
    r->binding = (struct binding){
        .n = JOINTS, .n_state = JOINTS, .camera_of = {0, 1}, .primary = 0};
    for (int i = 0; i < JOINTS; i++) {
        r->binding.state_of[i] = r->binding.joint_of[i] = (i + 2) % JOINTS;
        r->binding.scale[i] = 57.3;
    }
    if (board_init(&r->board, 2, ROWS, JOINTS))
        return -1;
    for (int i = 0; i < 2; i++)
        if (camera_start(&r->camera[i], i ? "wrist" : "front", &r->board.camera[i], 0))
            return -1;
    const char *names[] = {"a", "b", "c", "d", "e", "f"};
    *state = r;
    return codec_new(&r->codec, names, JOINTS);
}

static int teardown(void **state)
{
    struct rig *r = *state;
    infer_stop(r->infer);
    infer_seat_free(&r->seat);
    for (int i = 0; i < 2; i++)
        camera_stop(r->camera[i]);
    board_free(&r->board);
    codec_free(r->codec);
    policy_free(r->policy);
    policy_free(r->twin);
    act_fixture_remove(r->dir);
    free(r);
    return 0;
}

static struct chunk *chunk_new(void)
{
    struct chunk *c = calloc(1, chunk_bytes(ROWS, JOINTS));
    assert_non_null(c);
    return c;
}

static void test_one_observation(void **state)
{
    struct rig *r = *state;
    struct chunk *c = chunk_new();
    float rows[ROWS * JOINTS];
    report(r, true, LADDER_RUNNING);
    rig_start(r, TRIGGER_CONTINUOUS, 1, ROWS);
    ns_t t = clock_now_ns();
    joints_at(r, t - 30 * NS_PER_MS, 9);
    joints_at(r, t + 2 * NS_PER_MS, 0.5); // the nearest
    joints_at(r, t + 20 * NS_PER_MS, 7);
    frame(r, 1, 200, t - 5 * NS_PER_MS);
    frame(r, 0, 40, t);
    assert_true(take(r, c, 3000));
    expect(r, 0.5, 40, 200, rows);
    assert_int_equal(c->id, 1);
    assert_int_equal(c->anchor_ns, t);
    assert_int_equal(c->oldest_ns, t - 5 * NS_PER_MS);
    assert_int_equal(c->rows, ROWS);
    assert_int_equal(c->generation, 3);
    assert_int_equal(c->step_ns, STEP);
    assert_memory_equal(c->row, rows, sizeof rows);
    assert_false(take(r, c, 60)); // the same frame again is no new observation
    free(c);
}

static void test_waits_for_the_frame_of_the_same_instant(void **state)
{
    struct rig *r = *state;
    struct chunk *c = chunk_new();
    report(r, true, LADDER_RUNNING);
    rig_start(r, TRIGGER_CONTINUOUS, 1, ROWS);
    ns_t t = clock_now_ns();
    joints_at(r, t, 0);
    frame(r, 1, 10, t - 40 * NS_PER_MS);
    frame(r, 0, 40, t);
    usleep(5000);
    frame(r, 1, 90, t); // arrives later, belongs to t
    assert_true(take(r, c, 3000));
    float rows[ROWS * JOINTS];
    expect(r, 0, 40, 90, rows);
    assert_memory_equal(c->row, rows, sizeof rows);
    free(c);
}

// The frame of the one camera is seen while the other's is awaited; and what is made of both is what
// is made of them at once. On a busy machine this thread or the worker may be late for it: then the
// wrist's frame before it was used, or none.
static void test_sees_while_it_waits(void **state)
{
    struct rig *r = *state;
    const struct infer_seen *front;
    struct chunk *c = chunk_new();
    ns_t last = 0;
    report(r, true, LADDER_RUNNING);
    rig_start(r, TRIGGER_CONTINUOUS, 1, ROWS);
    front = &infer_counts(r->infer)->seen[0];
    for (int i = 0; i < 200 && front->early < 3; i++) {
        uint8_t grey = (uint8_t)(40 + i), wrist = (uint8_t)(250 - i);
        float rows[ROWS * JOINTS];
        ns_t t = clock_now_ns();
        joints_at(r, t, 0.1 * i);
        frame(r, 0, grey, t);
        usleep(10000);
        frame(r, 1, wrist, t);
        while (take(r, c, c->anchor_ns == t ? 0 : 100)) {
            if (c->anchor_ns != t)
                continue;
            assert_true(c->oldest_ns == t || c->oldest_ns == last);
            expect(r, 0.1 * i, grey, c->oldest_ns == t ? wrist : wrist + 1, rows);
            assert_memory_equal(c->row, rows, sizeof rows);
        }
        last = t;
        usleep(25000); // else the wrist's last frame is within half a period, and belongs
    }
    assert_true(front->early >= 3);
    free(c);
}

// The wrist's camera has stopped within max_skew: its frame is seen once.
static void test_keeps_what_did_not_change(void **state)
{
    struct rig *r = *state;
    const struct infer_counts *n;
    struct chunk *c = chunk_new();
    float rows[ROWS * JOINTS];
    report(r, true, LADDER_RUNNING);
    rig_start(r, TRIGGER_CONTINUOUS, 1, ROWS);
    n = infer_counts(r->infer);
    ns_t t = clock_now_ns();
    joints_at(r, t, 0);
    frame(r, 1, 10, t - 20 * NS_PER_MS);
    for (int i = 0; i < 3; i++) {
        frame(r, 0, (uint8_t)(40 + i), t + i * NS_PER_MS);
        assert_true(take(r, c, 3000));
        expect(r, 0, (uint8_t)(40 + i), 10, rows);
        assert_memory_equal(c->row, rows, sizeof rows);
    }
    assert_int_equal(n->seen[1].kept, 2);
    assert_int_equal(n->seen[1].computed, 1);
    free(c);
}

static void test_goes_on_without_a_late_camera(void **state)
{
    struct rig *r = *state;
    struct chunk *c = chunk_new();
    report(r, true, LADDER_RUNNING);
    rig_start(r, TRIGGER_CONTINUOUS, 1, ROWS);
    ns_t t = clock_now_ns();
    joints_at(r, t, 0);
    frame(r, 1, 10, t - 40 * NS_PER_MS); // within max_skew, and nothing newer comes
    frame(r, 0, 40, t);
    assert_true(take(r, c, 3000));
    assert_int_equal(c->oldest_ns, t - 40 * NS_PER_MS);
    assert_true(c->ready_ns - t >= 30 * NS_PER_MS); // three quarters of a period
    free(c);
}

static void test_refuses_skew(void **state)
{
    struct rig *r = *state;
    struct chunk *c = chunk_new();
    report(r, true, LADDER_RUNNING);
    rig_start(r, TRIGGER_CONTINUOUS, 1, ROWS);
    ns_t t = clock_now_ns();
    joints_at(r, t, 0);
    frame(r, 1, 10, t - 51 * NS_PER_MS);
    frame(r, 0, 40, t);
    assert_false(take(r, c, 150));
    assert_true(infer_counts(r->infer)->skew > 0);
    free(c);
}

static void test_refuses_without_joints(void **state)
{
    struct rig *r = *state;
    struct chunk *c = chunk_new();
    report(r, true, LADDER_RUNNING);
    rig_start(r, TRIGGER_CONTINUOUS, 1, ROWS);
    ns_t t = clock_now_ns();
    joints_at(r, t - 51 * NS_PER_MS, 0);
    frame(r, 1, 10, t);
    frame(r, 0, 40, t);
    assert_false(take(r, c, 150));
    assert_true(infer_counts(r->infer)->no_joints > 0);
    free(c);
}

static void test_rests_while_not_wanted(void **state)
{
    struct rig *r = *state;
    struct chunk *c = chunk_new();
    report(r, false, LADDER_RUNNING);
    rig_start(r, TRIGGER_CONTINUOUS, 1, ROWS);
    ns_t t = clock_now_ns();
    joints_at(r, t, 0);
    frame(r, 1, 10, t);
    frame(r, 0, 40, t);
    assert_false(take(r, c, 100));
    report(r, true, LADDER_RUNNING);
    assert_true(take(r, c, 3000));
    free(c);
}

// Frames every 20 ms of their own clock: with every_rows 4 each fourth starts an inference.
static void test_trigger_by_rows(void **state)
{
    struct rig *r = *state;
    struct chunk *c = chunk_new();
    report(r, true, LADDER_RUNNING);
    rig_start(r, TRIGGER_ROWS, 4, 1000);
    ns_t begin = clock_now_ns(), last = 0;
    int frames = 0;
    // More than 13 only where an inference takes longer than that (a sanitizer, a busy machine).
    for (int i = 0; i < 13 || (i < 1000 && infer_counts(r->infer)->done < 2); i++) {
        frames = i + 1;
        ns_t t = begin + i * STEP;
        clock_sleep_until(t);
        joints_at(r, t, 0);
        frame(r, 1, 10, t);
        frame(r, 0, 40, t);
        if (!take(r, c, 12))
            continue;
        if (last) {
            ns_t since = c->anchor_ns - last;
            assert_true(since >= 7 * STEP / 2); // half a row of slack, see infer.c
        }
        last = c->anchor_ns;
    }
    assert_in_range(infer_counts(r->infer)->done, 2, 1 + (frames - 1) / 4);
    free(c);
}

static void test_counts_refused_inferences(void **state)
{
    struct rig *r = *state;
    struct chunk *c = chunk_new();
    report(r, true, LADDER_RUNNING);
    rig_start(r, TRIGGER_CONTINUOUS, 1, ROWS);
    ns_t t = clock_now_ns();
    joints_at(r, t, NAN);
    frame(r, 1, 10, t);
    frame(r, 0, 40, t);
    assert_false(take(r, c, 150));
    assert_int_equal(infer_counts(r->infer)->failed, 1);
    assert_int_equal(r->board.policy_failures, 1);
    char why[INFER_FAILURE_MAX];
    infer_last_failure(r->infer, why);
    assert_non_null(strstr(why, "finite"));
    joints_at(r, t + STEP, 0);
    frame(r, 1, 10, t + STEP);
    frame(r, 0, 40, t + STEP);
    assert_true(take(r, c, 3000));
    assert_int_equal(r->board.policy_failures, 0);
    free(c);
}

static void test_lead_rows(void **state)
{
    (void)state;
    ns_t step = 20 * NS_PER_MS;
    assert_int_equal(infer_lead_rows(8, 24, step, 30 * NS_PER_MS), 8);
    // 100 of 100: the next must be in view before the last row: 100 - 10 of latency - 2.
    assert_int_equal(infer_lead_rows(100, 100, step, 200 * NS_PER_MS), 88);
    assert_int_equal(infer_lead_rows(100, 100, step, 201 * NS_PER_MS), 87);
    assert_int_equal(infer_lead_rows(100, 100, step, 0), 98);
    assert_int_equal(infer_lead_rows(100, 100, step, 10 * NS_PER_S),
                     1); // slower than a chunk
    assert_int_equal(infer_lead_rows(1, 100, step, 0), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lead_rows),
        cmocka_unit_test_setup_teardown(test_one_observation, setup, teardown),
        cmocka_unit_test_setup_teardown(test_waits_for_the_frame_of_the_same_instant,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_sees_while_it_waits, setup, teardown),
        cmocka_unit_test_setup_teardown(test_keeps_what_did_not_change, setup, teardown),
        cmocka_unit_test_setup_teardown(test_goes_on_without_a_late_camera, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_refuses_skew, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refuses_without_joints, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rests_while_not_wanted, setup, teardown),
        cmocka_unit_test_setup_teardown(test_trigger_by_rows, setup, teardown),
        cmocka_unit_test_setup_teardown(test_counts_refused_inferences, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
