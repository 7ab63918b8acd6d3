// replay_run: the robot from what the recording says of it, and the answers where it says too little.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cblas.h>
#include <cmocka.h>

#include "daemon/replay_known.h"
#include "policy/digest.h"
#include "policy/kernels/cpu.h"
#include "policy/kernels/kernels.h"
#include "tests/unit/replay_world.h"

static char dir[64];
static struct rw_log whole;

static const char config[] =
    "instance: test\n"
    "runtime: /tmp\n"
    "policy: {directory: /}\n"
    "control: {rate_hz: 500}\n"
    "joint_state: {rate_hz: 166}\n"
    "safety: {max_jump: 0.2, fresh_ticks: 20, approach_speed: 0.5, approach_tolerance: 0.1}\n"
    "cameras:\n"
    "  front: {key: observation.images.front, rate_hz: 33, primary: true, frozen: ignore}\n"
    "joints:\n"
    "  shoulder: {state: a, action: a, position: [-2, 2], velocity: 3, acceleration: 20, "
    "scale: 1}\n"
    "  elbow: {state: b, action: b, position: [-2, 2], velocity: 3, acceleration: 20, scale: 1}\n"
    "  gripper: {state: c, action: c, position: [-2, 2], velocity: 3, acceleration: 20, "
    "scale: 1, blend: false}\n";

static int set_up(void **state)
{
    struct rw w;

    (void)state;
    snprintf(dir, sizeof dir, "/tmp/actd-replay.XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    rw_init(&w);
    rw_run(&w, 1500);
    whole = w.log;
    memset(&w.log, 0, sizeof w.log);
    rw_free(&w);
    return 0;
}

static int tear_down(void **state)
{
    char command[100];

    (void)state;
    rw_log_free(&whole);
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command);
}

static const char *path_of(const char *name)
{
    static char path[2][160];
    static int i;

    i = !i;
    snprintf(path[i], sizeof path[i], "%s/%s", dir, name);
    return path[i];
}

static struct rw_replayed run(const char *path, const struct replay_options *opt)
{
    struct rw_replayed out;
    struct logbook *book = NULL;
    struct mcap_error e;

    memset(&out, 0, sizeof out);
    assert_int_equal(logbook_open(&book, &path, 1, &e), 0);
    out.rc = replay_run(book, opt, &out.r, &out.err);
    logbook_close(book);
    return out;
}

static const char *write_text(const char *name, const char *text, const char *from,
                              const char *to)
{
    const char *path = path_of(name), *at = from ? strstr(text, from) : NULL;
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    if (at)
        fprintf(f, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    else
        fputs(text, f);
    fclose(f);
    return path;
}

static void a_foreign_log_is_refused(void **state)
{
    const struct replay_options opt = {0};
    struct rw_replayed x;

    (void)state;
    rw_save(&whole, path_of("foreign.mcap"), true, NULL);
    x = run(path_of("foreign.mcap"), &opt);
    assert_int_equal(x.rc, -EINVAL);
    assert_non_null(strstr(x.err.text, "not a recording of actd"));
    assert_non_null(strstr(x.err.text, "actd log info"));
}

static void one_that_says_too_little_is_refused(void **state)
{
    struct replay_options opt = {0};
    struct rw_replayed x;

    (void)state;
    rw_save(&whole, path_of("old.mcap"), false, NULL);
    x = run(path_of("old.mcap"), &opt);
    assert_int_equal(x.rc, -EINVAL); // no configuration
    opt.config_file = write_text("a.yaml", config, NULL, NULL);
    x = run(path_of("old.mcap"), &opt);
    assert_int_equal(x.rc, -EINVAL);
    assert_non_null(strstr(x.err.text, "rows, policy_hz"));
}

static void a_configuration_that_is_not_the_one_is_found(void **state)
{
    const struct replay_options opt = {.tolerance_rad = -1};
    struct rw_replayed x;

    (void)state;
    // It lacks the test robot's ways of stopping.
    rw_save(&whole, path_of("whole.mcap"), false, config);
    x = run(path_of("whole.mcap"), &opt);
    assert_int_equal(x.rc, 0);
    assert_true(x.r.first.any && x.r.bits);
    assert_string_equal(x.r.first.stage, "tick");
    assert_int_equal(x.r.differing[0], 0); // intake is as it was
    assert_int_equal(x.r.inputs, rw_count(&whole, "/input"));
}

static void another_program_gets_a_tolerance(void **state)
{
    const struct replay_options opt = {0};
    struct rw_replayed x;

    (void)state;
    rw_save(&whole, path_of("whole.mcap"), false, config);
    x = run(path_of("whole.mcap"), &opt); // exe_sha256 is not there
    assert_int_equal(x.rc, 0);
    assert_false(x.r.bits);
    assert_true(x.r.tolerance_rad == 1e-5);
}

// Recorded by this very program with these kernels: are bits compared, and chosen are which?
static struct rw_replayed recorded_with(const char *kernels, const char *blas_core,
                                        bool policy)
{
    const struct replay_options opt = {.no_policy = !policy};
    char exe[POLICY_DIGEST_HEX];
    struct rw_replayed x;

    digest_program(exe);
    rw_by.exe = exe;
    rw_by.kernels = kernels;
    rw_by.blas_core = blas_core;
    assert_int_equal(kernels_choose(NULL), 0);
    rw_save(&whole, path_of("by.mcap"), false, config);
    rw_by.exe = rw_by.kernels = rw_by.blas_core = "";
    x = run(path_of("by.mcap"), &opt);
    assert_int_equal(x.rc, 0);
    assert_true(x.r.bits == !x.r.other_kernels);
    assert_true(x.r.bits || x.r.tolerance_rad == 1e-5);
    return x;
}

static void its_kernels_are_taken_where_they_run(void **state)
{
    const char *core = openblas_get_corename();

    (void)state;
    assert_true(recorded_with("generic", "", true).r.bits);
    assert_string_equal(kernels_name(PRECISION_FLOAT32), "generic");
    assert_true(recorded_with("openblas", core, true).r.bits);
    assert_string_equal(kernels_name(PRECISION_FLOAT32), "openblas");
    assert_int_equal(recorded_with("avx2", "", true).r.bits, cpu_runs(CPU_AVX2));
    assert_int_equal(recorded_with("neon", "", true).r.bits, cpu_runs(CPU_NEON));
    // Chosen is the best again, where theirs can not be.
    assert_true(recorded_with("tensor cores", "", true).r.other_kernels);
    assert_string_equal(kernels_name(PRECISION_FLOAT32), cpu_isa_name(cpu_best()));
    // Of another OpenBLAS; and of a time when nothing else computed, whose kernels are gone.
    assert_true(recorded_with("openblas", "Katmai", true).r.other_kernels);
    assert_true(recorded_with("", "Katmai", true).r.other_kernels);
    assert_true(recorded_with("", core, true).r.other_kernels);
    assert_true(recorded_with("", "", true).r.other_kernels);
    // Nobody computes chunks: it does not matter who could.
    assert_true(recorded_with("tensor cores", "Katmai", false).r.bits);
    assert_int_equal(kernels_choose(NULL), 0);
}

static void a_policy_that_is_not_known_is_told(void **state)
{
    struct replay_options opt = {0};
    struct rw_replayed x;

    (void)state;
    rw_save(&whole, path_of("whole.mcap"), false, config);
    x = run(path_of("whole.mcap"), &opt);
    assert_non_null(strstr(x.r.note, "the log does not say which policy 1 was"));
    assert_int_equal(x.r.chunks, 0);
    assert_int_equal(x.r.chunks_taken, rw_count(&whole, "/policy/chunk"));
    assert_int_equal(x.r.differing[1], 0);
    opt.strict = true;
    x = run(path_of("whole.mcap"), &opt);
    assert_int_equal(x.r.differing[1], rw_count(&whole, "/policy/chunk"));
}

static void what_if_wants_the_same_robot(void **state)
{
    struct replay_options opt = {.no_policy = true};
    struct rw_replayed x;

    (void)state;
    rw_save(&whole, path_of("whole.mcap"), false, config);
    opt.config_file = write_text("b.yaml", config, "  elbow:", "  ellbow:");
    x = run(path_of("whole.mcap"), &opt);
    assert_int_equal(x.rc, -EINVAL);
    assert_non_null(strstr(x.err.text, "not those of the recording"));
    opt.config_file = write_text("b.yaml", config, "acceleration", "accelleration");
    x = run(path_of("whole.mcap"), &opt);
    assert_int_equal(x.rc, -EINVAL);
    assert_non_null(strstr(x.err.text, "accelleration"));
}

struct seen {
    unsigned ticks, moved, apart;
};

static void look(void *arg, const struct tick_record *then, const struct tick_record *now)
{
    struct seen *s = arg;

    s->ticks++;
    s->moved += now->mode == LADDER_RUNNING;
    for (int j = 0; j < RW_JOINTS; j++) {
        s->apart += then->joint[j].commanded != now->joint[j].commanded;
        // Whatever is asked, what was sensed stays.
        assert_true(then->joint[j].measured == now->joint[j].measured);
    }
}

static void what_if_moves_within_other_limits(void **state)
{
    struct seen s = {0};
    struct replay_options opt = {.no_policy = true, .arg = &s, .tick = look};
    struct rw_replayed x;

    (void)state;
    rw_save(&whole, path_of("whole.mcap"), false, config);
    opt.config_file = write_text("c.yaml", config, "velocity: 3", "velocity: 0.2");
    x = run(path_of("whole.mcap"), &opt);
    assert_int_equal(x.rc, 0);
    assert_false(x.r.first.any);
    assert_int_equal(s.ticks, rw_count(&whole, "/tick"));
    assert_true(s.moved > 100 && s.apart > 100);
}

// Another horizon: a state of the loop does not fit, so the run begins anew where the log does.
static void what_if_begins_where_the_log_does(void **state)
{
    struct seen s = {0};
    struct replay_options opt = {.no_policy = true, .arg = &s, .tick = look};
    struct rw_log late = {0};
    struct rw_replayed x;
    char text[2000];

    (void)state;
    for (size_t i = 0; i < whole.n; i++)
        if (whole.m[i].log_ns > (uint64_t)(RW_START + RW_BASE + NS_PER_S)) {
            rw_put(&late, whole.m[i].topic, 0, whole.m[i].bytes, whole.m[i].size);
            late.m[late.n - 1].log_ns = late.m[late.n - 1].publish_ns = whole.m[i].log_ns;
        }
    rw_save(&late, path_of("late.mcap"), false, config);
    snprintf(text, sizeof text, "%schunks: {horizon_rows: 30}\n", config);
    opt.config_file = write_text("d.yaml", text, NULL, NULL);
    x = run(path_of("late.mcap"), &opt);
    assert_int_equal(x.rc, 0);
    assert_int_equal(x.r.gaps, 0);
    assert_true(s.ticks > 700 && s.moved > 100);
    rw_log_free(&late);
}

// ---- how many rows ---------------------------------------------------------------------------

#define CHUNK 12 // rows of the policy

// A policy that is loaded already: all rows of a chunk, of which row k says k.
static int think_all(void *self, const struct policy_observation *obs, float *actions)
{
    (void)self;
    (void)obs;
    for (int k = 0; k < CHUNK; k++)
        actions[k] = (float)k;
    return 0;
}

// Of a request for so many rows, a horizon of so many in the configuration asked for.
static int rows_made(int requested, int horizon, bool another_configuration)
{
    const struct replay_options opt = {.config_file = another_configuration ? "x" : NULL};
    const struct policy_info info = {.chunk_size = CHUNK, .action_dim = 1};
    const struct tape_chunk request = {.generation = 3, .rows = requested, .joints = 1};
    const struct joint_sample joints = {.n = 1};
    float state[1], actions[CHUNK], row[CHUNK + 1];
    struct fitted f = {.info = &info,
                       .generation = 3,
                       .binding = {.n = 1, .scale = {1}},
                       .seat = {.brain = {.infer = think_all},
                                .horizon_rows = horizon,
                                .rows = CHUNK,
                                .state = state,
                                .actions = actions}};
    struct replay_known *k = calloc(1, sizeof *k);
    struct config_error err;
    int made;

    assert_non_null(k);
    k->opt = &opt;
    k->fitted[0] = &f;
    k->robot.think_rows = another_configuration ? CHUNK : 0;
    for (int i = 0; i <= CHUNK; i++)
        row[i] = -1;
    made = replay_think(k, &request, NULL, &joints, row, &err);
    for (int i = 0; i <= CHUNK; i++)
        assert_true(row[i] == (i < made ? (float)i : -1.0f));
    free(k);
    return made;
}

// As many as were recorded; for another configuration as many as it looks at, if those are more.
static void a_longer_horizon_has_its_rows(void **state)
{
    (void)state;
    assert_int_equal(rows_made(5, 5, false), 5);
    assert_int_equal(rows_made(5, CHUNK, false), 5);
    assert_int_equal(rows_made(5, 9, true), 9);
    assert_int_equal(rows_made(5, CHUNK, true), CHUNK);
    assert_int_equal(rows_made(5, 3, true), 5);
    assert_int_equal(rows_made(CHUNK, 5, true), CHUNK);
    assert_int_equal(rows_made(CHUNK + 1, 5, true), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_foreign_log_is_refused),
        cmocka_unit_test(one_that_says_too_little_is_refused),
        cmocka_unit_test(a_configuration_that_is_not_the_one_is_found),
        cmocka_unit_test(another_program_gets_a_tolerance),
        cmocka_unit_test(its_kernels_are_taken_where_they_run),
        cmocka_unit_test(a_policy_that_is_not_known_is_told),
        cmocka_unit_test(what_if_wants_the_same_robot),
        cmocka_unit_test(what_if_moves_within_other_limits),
        cmocka_unit_test(what_if_begins_where_the_log_does),
        cmocka_unit_test(a_longer_horizon_has_its_rows),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
