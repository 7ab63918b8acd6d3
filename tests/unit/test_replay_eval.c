// replay eval: against itself the policy is right to the bit; what is added to an action comes out as
// its error, at its row and joint; and only what the daemon would have looked at is looked at. The
// shipped policy answers, the expected chunks are computed here by the policy alone.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>

#include "daemon/replay.h"
#include "daemon/replay_eval_impl.h"
#include "policy/policy.h"
#include "tests/unit/run_log.h"

#define POLICY  "config/policies/reach"
#define JOINTS  6
#define CHUNKS  4
#define STEP_NS (40 * NS_PER_MS)
#define ROWS    24

static const char *const name[JOINTS] = {"shoulder_pan", "shoulder_lift", "elbow_flex",
                                         "wrist_flex",   "wrist_roll",    "gripper"};
static const char *const value_name[JOINTS] = {"shoulder_pan.pos", "shoulder_lift.pos",
                                               "elbow_flex.pos",   "wrist_flex.pos",
                                               "wrist_roll.pos",   "gripper.pos"};
static const char names_text[] = "shoulder_pan.pos\nshoulder_lift.pos\nelbow_flex.pos\n"
                                 "wrist_flex.pos\nwrist_roll.pos\ngripper.pos\n";

static char dir[64], log_path[128], page_path[128];
static struct config_error err;
static struct policy *policy;

static double state_of(int chunk, int joint)
{
    return 0.1 * sin(chunk * 1.3 + joint);
}

// ---- what the policy says by itself ----------------------------------------------------------

static void expect(int chunk, float actions[ROWS * JOINTS])
{
    const struct policy_info *info = policy_describe(policy);
    struct policy_image image[2];
    float state[JOINTS];
    uint8_t *message[2];
    assert_int_equal(info->n_cameras, 2);
    assert_int_equal(info->chunk_size, ROWS);
    for (int i = 0; i < 2; i++) {
        bool wrist = strstr(info->camera[i].key, "wrist") != NULL;
        int w = info->camera[i].width, h = info->camera[i].height;
        struct codec_frame f;
        size_t n = run_log_frame(w, h, chunk * 9 + wrist, true, 0, &message[i]);
        assert_int_equal(codec_frame(NULL, message[i], n, &f), CODEC_OK);
        image[i] = (struct policy_image){
            .rgb = f.data, .width = w, .height = h, .stride = 3 * w};
    }
    for (int j = 0; j < JOINTS; j++)
        state[j] = (float)state_of(chunk, j);
    const struct policy_observation obs = {.state = state, .image = image};
    assert_int_equal(policy_infer(policy, &obs, actions, NULL), 0);
    free(message[0]);
    free(message[1]);
}

static int load(void **state)
{
    const struct policy_options opt = {.threads = 1};
    struct policy_error why;
    (void)state;
    return policy_load(&policy, POLICY, &opt, &why);
}

static int unload(void **state)
{
    (void)state;
    policy_free(policy);
    return 0;
}

// ---- logs ------------------------------------------------------------------------------------

static void put_frame(struct run_log *l, const char *topic, int phase, ns_t at)
{
    const struct policy_info *info = policy_describe(policy);
    int c = (strstr(topic, "wrist") != NULL) ==
            (strstr(info->camera[1].key, "wrist") != NULL);
    uint8_t *data;
    size_t n = run_log_frame(info->camera[c].width, info->camera[c].height, phase, true,
                             at, &data);
    run_log_put(l, topic, "foxglove.RawImage", at, data, n);
    free(data);
}

struct twist { // what is done to an action
    int row, joint;
    double by;
};

static ns_t anchor_of(int chunk)
{
    return NS_PER_S + chunk * ROWS * STEP_NS;
}

// A data set whose actions are what the policy says of its frames.
static void write_dataset(struct twist t)
{
    struct run_log l;
    float actions[ROWS * JOINTS];
    double pos[JOINTS];
    uint8_t out[4096];
    const struct mcap_pair pair[] = {
        {"fps", "25"},
        {"state_names", names_text},
        {"action_names", names_text},
        {"cameras", "front=observation.images.front\nwrist=observation.images.wrist\n"}};
    run_log_open(&l, log_path, "dataset", pair, 4);
    for (int c = 0; c < CHUNKS; c++) {
        ns_t at = anchor_of(c);
        for (int j = 0; j < JOINTS; j++)
            pos[j] = state_of(c, j);
        size_t n = run_log_joints(value_name, pos, JOINTS, at, out);
        run_log_put(&l, "/joint_states", "foxglove.JointStates", at, out, n);
        put_frame(&l, "/camera/front/raw", c * 9, at);
        put_frame(&l, "/camera/wrist/raw", c * 9 + 1, at);
        expect(c, actions);
        for (int k = 0; k < ROWS; k++) {
            for (int j = 0; j < JOINTS; j++)
                pos[j] = (double)actions[k * JOINTS + j] +
                         (t.row == k && t.joint == j ? t.by : 0);
            n = run_log_joints(value_name, pos, JOINTS, at + k * STEP_NS, out);
            run_log_put(&l, "/action", "foxglove.JointStates", at + k * STEP_NS, out, n);
        }
    }
    run_log_close(&l);
}

static void evaluate(struct eval *e, int want)
{
    struct mcap_error why;
    const char *path = log_path;
    e->opt = (struct eval_options){.policy = POLICY, .every = 1};
    assert_int_equal(logbook_open(&e->book, &path, 1, &why), 0);
    int rc = eval_prepare(e, &err);
    if (rc)
        print_message("%s\n", err.text);
    assert_int_equal(rc, 0);
    rc = eval_run(e, &err);
    if (rc != want)
        print_message("%s\n", err.text);
    assert_int_equal(rc, want);
}

static void close_eval(struct eval *e)
{
    eval_free(e);
    logbook_close(e->book);
    memset(e, 0, sizeof *e);
}

static int setup(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/actd-eval-XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(log_path, sizeof log_path, "%s/log.mcap", dir);
    snprintf(page_path, sizeof page_path, "%s/page.html", dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(log_path);
    unlink(page_path);
    assert_int_equal(rmdir(dir), 0);
    return 0;
}

// ---- data sets -------------------------------------------------------------------------------

static struct eval e;

static void its_own_actions_are_right_to_the_bit(void **state)
{
    (void)state;
    write_dataset((struct twist){-1, 0, 0});
    evaluate(&e, 0);
    assert_int_equal(e.frames, CHUNKS);
    assert_int_equal(e.asked, CHUNKS);
    assert_int_equal(e.score.chunks, CHUNKS);
    assert_int_equal(e.score.all.n, CHUNKS * ROWS * JOINTS);
    assert_true(e.score.all.max == 0);
    assert_true(e.score.all.still > 0);
    assert_int_equal(e.score.every_rows, 5);
    assert_int_equal(e.score.horizons, 5); // rows 0 5 10 15 20
    close_eval(&e);
}

static void what_is_added_is_the_error(void **state)
{
    (void)state;
    write_dataset((struct twist){5, 2, 0.25});
    evaluate(&e, 0);
    for (int j = 0; j < JOINTS; j++) {
        const struct eval_sum *s = &e.score.joint[j];
        assert_int_equal(s->n, CHUNKS * ROWS);
        assert_true(fabs(s->max - (j == 2 ? 0.25 : 0)) < 1e-12);
        assert_true(fabs(eval_mean(s) - (j == 2 ? 0.25 / ROWS : 0)) < 1e-12);
        for (int h = 0; h < 5; h++)
            assert_true(fabs(eval_mean(&e.score.horizon[h][j]) -
                             (j == 2 && h == 1 ? 0.25 : 0)) < 1e-12);
    }
    // When: the sixth row of some chunk.
    int64_t at = e.score.joint[2].max_at_ns - RUN_LOG_BASE_NS;
    assert_int_equal((at - anchor_of(0)) % (ROWS * STEP_NS), 5 * STEP_NS);
    assert_int_equal(e.score.worsts, 2); // 0.96 s apart is too close
    assert_int_equal(e.score.worst[0].joint, 2);
    assert_true(eval_score_p95(&e.score, 2) == 0); // one row of 24 is less than 5 %
    close_eval(&e);
}

static void another_robots_data_is_far_off(void **state)
{
    (void)state;
    write_dataset((struct twist){-1, 0, 0});
    struct mcap_error why;
    const char *path = log_path;
    e.opt = (struct eval_options){.policy = POLICY, .every = 1};
    assert_int_equal(logbook_open(&e.book, &path, 1, &why), 0);
    assert_int_equal(eval_prepare(&e, &err), 0);
    // Shoulder and gripper exchanged, as when joints are bound by place.
    struct binding *b = &e.fitted->binding;
    int first = b->joint_of[0];
    b->joint_of[0] = b->joint_of[5];
    b->joint_of[5] = first;
    assert_int_equal(eval_run(&e, &err), 0);
    assert_true(eval_mean(&e.score.joint[0]) > 0.05);
    assert_true(eval_mean(&e.score.joint[5]) > 0.05);
    assert_true(e.score.joint[1].max == 0);
    close_eval(&e);
}

// ---- recordings ------------------------------------------------------------------------------

static char *config_text(void)
{
    size_t n;
    return run_log_slurp("config/reach.yaml", &n);
}

static void put_input(struct run_log *l, uint64_t number, int stream, ns_t at,
                      ns_t capture, enum tape_outcome outcome)
{
    struct tape_input in = {.number = number,
                            .at_ns = at,
                            .kind = TAPE_MESSAGE,
                            .stream = stream,
                            .outcome = outcome,
                            .capture_ns = capture,
                            .kept = true};
    uint8_t out[RECORD_INPUT_MAX];
    size_t n = record_input(&in, out, sizeof out);
    run_log_put(l, "/input", "actd.v1.Input", at, out, n);
}

// A recording: messages come 3 ms after capture. Between the frames that count there are others,
// refused ones of another picture, that no daemon looked at; joint states all the time; commands at
// 100 Hz on the line between the rows. Chunk 2 is not driven by the policy.
static void write_recording(void)
{
    struct run_log l;
    float row[ROWS * JOINTS];
    double pos[JOINTS];
    uint8_t out[4096];
    uint64_t number = 0;
    char *text = config_text();
    const struct mcap_pair pair[] = {{"version", "t"},
                                     {"run_id", "r"},
                                     {"config", text},
                                     {"config_file", "config/reach.yaml"},
                                     {"base_ns", "1700000000000000000"}};
    run_log_open(&l, log_path, "actd", pair, 5);
    for (int c = 0; c < CHUNKS; c++) {
        ns_t at = anchor_of(c), late = 3 * NS_PER_MS;
        for (int k = -2; k <= 2; k++) { // the one captured at the anchor is the nearest
            for (int j = 0; j < JOINTS; j++)
                pos[j] = state_of(c, j) + 0.3 * k;
            ns_t came = at + k * 10 * NS_PER_MS + late;
            size_t n = run_log_joints(name, pos, JOINTS, came - late, out);
            put_input(&l, ++number, 0, came, came - late, TAPE_ACCEPTED);
            run_log_put(&l, "/joint_states", "foxglove.JointStates", came, out, n);
        }
        put_input(&l, ++number, 1, at + late, at, TAPE_ACCEPTED);
        put_frame(&l, "/camera/front/raw", c * 9, at + late);
        put_input(&l, ++number, 2, at + 2 * late, at + late, TAPE_ACCEPTED);
        put_frame(&l, "/camera/wrist/raw", c * 9 + 1, at + 2 * late);
        put_input(&l, ++number, 1, at + 3 * late, at + 2 * late, TAPE_REFUSED);
        put_frame(&l, "/camera/front/raw", 200, at + 3 * late);
        put_input(&l, ++number, 2, at + 3 * late, at + 2 * late, TAPE_REFUSED);
        put_frame(&l, "/camera/wrist/raw", 201, at + 3 * late);
        expect(c, row);
        for (int k = 0; k < 4 * (ROWS - 1) + 1; k++) {
            int r = k / 4, next = r + 1 < ROWS ? r + 1 : r;
            for (int j = 0; j < JOINTS; j++)
                pos[j] = (double)row[r * JOINTS + j] * (4 - k % 4) / 4 +
                         (double)row[next * JOINTS + j] * (k % 4) / 4;
            ns_t when = at + k * STEP_NS / 4;
            size_t n = run_log_command(name, pos, JOINTS, when,
                                       c == 2 ? LADDER_HOLD : LADDER_RUNNING, out);
            run_log_put(&l, "/command", "actd.v1.JointCommand", when, out, n);
        }
    }
    run_log_close(&l);
    free(text);
}

static void only_what_the_daemon_saw_counts(void **state)
{
    (void)state;
    write_recording();
    evaluate(&e, 0);
    assert_int_equal(e.frames, CHUNKS);
    assert_int_equal(e.asked, CHUNKS);
    assert_int_equal(e.score.chunks, CHUNKS - 1);
    assert_int_equal(e.score.unanswered, 1);
    assert_int_equal(e.score.all.n, (CHUNKS - 1) * ROWS * JOINTS);
    assert_true(e.score.all.max < 1e-7);
    assert_string_equal(e.unit[0], "rad");
    close_eval(&e);
}

static void nothing_to_compare_is_said(void **state)
{
    (void)state;
    struct run_log l;
    char *text = config_text();
    const struct mcap_pair pair[] = {{"version", "t"},
                                     {"run_id", "r"},
                                     {"config", text},
                                     {"config_file", "config/reach.yaml"}};
    run_log_open(&l, log_path, "actd", pair, 4);
    run_log_event(&l, 0, TAPE_LEVEL_INFO, "actd", "hello");
    run_log_close(&l);
    evaluate(&e, -ENODATA);
    assert_non_null(strstr(err.text, "no frame of the camera 'front'"));
    close_eval(&e);
    run_log_open(&l, log_path, "actd", pair, 4);
    put_frame(&l, "/camera/front/raw", 1, NS_PER_S);
    run_log_close(&l);
    evaluate(&e, -ENODATA);
    assert_non_null(strstr(err.text, "1 without a joint state"));
    close_eval(&e);
    free(text);
}

// ---- the score alone -------------------------------------------------------------------------

// Against a naive twin: random chunks and actions, each row looked up among all actions.
static void scores_equal_a_naive_twin(void **state)
{
    (void)state;
    enum { N = 400, R = 7, J = 2, C = 60 };
    static double act[N][J];
    static int64_t at[N];
    static bool usable[N];
    static float row[C][R * J];
    const double still[J] = {0, 0};
    struct eval_score s;
    double sum = 0, max = 0;
    uint64_t n = 0, seed = 5;
    assert_int_equal(eval_score_init(&s, J, R, 30, 35), 0);
    for (int i = 0; i < N; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        at[i] =
            (i ? at[i - 1] : 1000) + 1 + (int64_t)(seed >> 40) % 40; // some too far apart
        usable[i] = (seed >> 20) % 8 != 0;
        for (int j = 0; j < J; j++)
            act[i][j] = (double)(seed >> (8 + 9 * j) & 0x1ff) / 100;
    }
    for (int c = 0, i = 0; c < C; c++) {
        int64_t anchor = at[c * 6];
        for (int k = 0; k < R * J; k++)
            row[c][k] = (float)(k + c) / 7;
        for (; i < N && at[i] < anchor + 45; i++) { // the chunk comes 45 ns late
            struct eval_action a = {.at_ns = at[i], .usable = usable[i]};
            memcpy(a.pos, act[i], sizeof act[i]);
            eval_score_action(&s, &a);
        }
        assert_int_equal(eval_score_chunk(&s, anchor, row[c], still), 0);
        for (int k = 0; k < R; k++) {
            int64_t t = anchor + 30 * k;
            for (int b = 0; b < N; b++) {
                if (at[b] < t)
                    continue;
                int a = at[b] == t ? b : b - 1;
                double part = a == b ? 0 : (double)(t - at[a]) / (double)(at[b] - at[a]);
                if (a < 0 || !usable[a] || !usable[b] || at[b] - at[a] > 35)
                    break;
                for (int j = 0; j < J; j++) {
                    double error = fabs((double)row[c][k * J + j] -
                                        (act[a][j] + (act[b][j] - act[a][j]) * part));
                    sum += error;
                    max = error > max ? error : max;
                    n++;
                }
                break;
            }
        }
        if (c == C - 1)
            for (; i < N; i++) {
                struct eval_action a = {.at_ns = at[i], .usable = usable[i]};
                memcpy(a.pos, act[i], sizeof act[i]);
                eval_score_action(&s, &a);
            }
    }
    eval_score_end(&s);
    assert_true(n > 200);
    assert_int_equal(s.all.n, n);
    assert_true(fabs(s.all.sum - sum) < 1e-9 * sum);
    assert_true(s.all.max == max);
    eval_score_free(&s);
}

// A chunk that comes after the last action is compared with those before.
static void the_last_chunk_counts(void **state)
{
    (void)state;
    struct eval_score s;
    const struct eval_action a = {.at_ns = 100, .usable = true, .pos = {1}};
    const double still = 0;
    const float row[2] = {1.5f, 7};
    assert_int_equal(eval_score_init(&s, 1, 2, 50, 60), 0);
    eval_score_action(&s, &a);
    assert_int_equal(eval_score_chunk(&s, 100, row, &still), 0);
    eval_score_end(&s);
    assert_int_equal(s.all.n, 1);
    assert_true(s.all.max == 0.5);
    eval_score_free(&s);
}

static void p95_is_right_to_a_percent(void **state)
{
    (void)state;
    struct eval_score s;
    const double still = 0;
    assert_int_equal(eval_score_init(&s, 1, 1, 1, 1), 0);
    for (int i = 1; i <= 1000; i++) { // errors 0.001 … 1
        float row = (float)i / 1000;
        struct eval_action a = {.at_ns = i * 10, .usable = true};
        assert_int_equal(eval_score_chunk(&s, i * 10, &row, &still), 0);
        eval_score_action(&s, &a);
    }
    assert_true(fabs(eval_score_p95(&s, 0) - 0.95) < 0.0095);
    assert_true(fabs(eval_mean(&s.all) - 0.5005) < 1e-6);
    eval_score_free(&s);
}

// ---- the command -----------------------------------------------------------------------------

static int run(const char *const *word)
{
    char *argv[12];
    int argc = 0;
    argv[argc++] = strdup("eval");
    while (*word)
        argv[argc++] = strdup(*word++);
    argv[argc] = NULL;
    int status = replay_eval_main(argc, argv);
    for (int i = 0; i < argc; i++)
        free(argv[i]);
    return status;
}
#define RUN(...) run((const char *const[]){__VA_ARGS__, NULL})

static void the_command_has_its_statuses(void **state)
{
    (void)state;
    size_t n;
    write_dataset((struct twist){5, 2, 0.25});
    assert_int_equal(RUN("--help"), 0);
    assert_int_equal(RUN(log_path), 64);
    assert_int_equal(RUN("--policy", POLICY), 64);
    assert_int_equal(RUN(log_path, "--policy", POLICY, "--every", "0"), 64);
    assert_int_equal(RUN("/nonexistent.mcap", "--policy", POLICY), 66);
    assert_int_equal(RUN(log_path, "--policy", "/nonexistent"), 78);
    assert_int_equal(RUN(log_path, "--policy", POLICY, "-c", "/nonexistent.yaml"), 78);
    assert_int_equal(RUN(log_path, "--policy", POLICY, "--report", "/nonexistent/x.html"),
                     73);
    assert_int_equal(RUN(log_path, "--policy", POLICY, "--report", page_path), 0);
    char *page = run_log_slurp(page_path, &n);
    assert_non_null(strstr(page, "Error along the chunk"));
    assert_non_null(strstr(page, "</html>"));
    free(page);
    struct run_log l; // neither the one nor the other
    const struct mcap_pair pair[] = {{"a", "b"}};
    run_log_open(&l, log_path, "other", pair, 1);
    run_log_event(&l, 0, TAPE_LEVEL_INFO, "actd", "hello");
    run_log_close(&l);
    assert_int_equal(RUN(log_path, "--policy", POLICY), 65);
}

static void json_is_json(void **state)
{
    (void)state;
    char *text = NULL;
    size_t n = 0;
    write_dataset((struct twist){5, 2, 0.25});
    evaluate(&e, 0);
    FILE *f = open_memstream(&text, &n);
    assert_int_equal(eval_print_json(&e, f), 0);
    fclose(f);
    json_t *o = json_loads(text, 0, NULL);
    assert_non_null(o);
    json_t *joint = json_array_get(json_object_get(o, "joints"), 2);
    assert_string_equal(json_string_value(json_object_get(joint, "name")), value_name[2]);
    assert_true(fabs(json_real_value(json_object_get(joint, "max")) - 0.25) < 1e-9);
    json_t *h = json_array_get(json_object_get(joint, "horizon"), 1);
    assert_int_equal(json_integer_value(json_object_get(h, "row")), 5);
    json_decref(o);
    free(text);
    close_eval(&e);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(its_own_actions_are_right_to_the_bit),
        TEST(what_is_added_is_the_error),
        TEST(another_robots_data_is_far_off),
        TEST(only_what_the_daemon_saw_counts),
        TEST(nothing_to_compare_is_said),
        cmocka_unit_test(scores_equal_a_naive_twin),
        cmocka_unit_test(the_last_chunk_counts),
        cmocka_unit_test(p95_is_right_to_a_percent),
        TEST(the_command_has_its_statuses),
        TEST(json_is_json),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
