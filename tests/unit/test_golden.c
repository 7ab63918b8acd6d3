// Golden parity: every case under tests/data/golden and tests/data/checkpoints holds what
// LeRobot wrote (config, statistics) and computed (actions). The weights of a golden case are
// grown here from its seed, written as a model.safetensors, and the whole directory goes
// through policy_load and policy_infer, with every instruction set that runs here. See tests/parity/README.md for how they were made.
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "policy/kernels/cpu.h"
#include "policy/kernels/kernels.h"
#include "policy/policy.h"
#include "tests/golden_gen.h"
#include "tests/golden_write.h"
#include "tests/unit/slow.h"

#define DATA        "tests/data"
#define MAX_CASES   128
#define MIN_CASES   39   // committed; a test that finds fewer has lost its data
#define BOUND       2e-5 // normalised actions, absolute
#define BOUND_RANGE 1e-5 // actions, of the action's range
#define BOUND_PIXEL 1e-6 // preprocessed images

struct golden {
    char dir[256];
    json_t *json;
    char weights[256]; // the directory that policy_load is given
    float *expected;   // normalised, actions, then the planes if the case keeps them
    size_t n_expected;
};

// ---- reading a case --------------------------------------------------------------------

static int64_t integer(const struct golden *g, const char *key)
{
    const json_t *v = json_object_get(g->json, key);

    assert_true(json_is_integer(v));
    return json_integer_value(v);
}

// A list of numbers as floats, NULL when the case has none. The caller frees.
static float *numbers(const struct golden *g, const char *key, size_t *n)
{
    json_t *list = json_object_get(g->json, key), *v;
    size_t i;

    *n = json_array_size(list);
    float *out = *n ? calloc(*n, sizeof(*out)) : NULL;
    json_array_foreach(list, i, v) out[i] = (float)json_number_value(v);
    return out;
}

static float *read_floats(const char *path, size_t *n)
{
    struct stat st;
    FILE *f = fopen(path, "rb");

    assert_non_null(f);
    assert_int_equal(fstat(fileno(f), &st), 0);
    *n = (size_t)st.st_size / sizeof(float);
    float *v = malloc((size_t)st.st_size);
    assert_non_null(v);
    assert_int_equal(fread(v, sizeof(float), *n, f), *n);
    fclose(f);
    return v;
}

// Directories written for the test that runs. A failed assertion jumps out of it, so they are
// removed by the teardown and not by the test.
static char written[2][256];
static int n_written;

static int remove_written(void **state)
{
    (void)state;
    (void)kernels_choose(NULL);
    while (n_written > 0)
        golden_remove_checkpoint(written[--n_written]);
    return 0;
}

static void golden_open(struct golden *g, const char *dir)
{
    char path[512];
    json_error_t err;

    memset(g, 0, sizeof(*g));
    snprintf(g->dir, sizeof(g->dir), "%s", dir);
    snprintf(path, sizeof(path), "%s/case.json", dir);
    g->json = json_load_file(path, JSON_REJECT_DUPLICATES, &err);
    if (!g->json)
        fail_msg("%s:%d: %s", path, err.line, err.text);
    snprintf(path, sizeof(path), "%s/expected.f32", dir);
    g->expected = read_floats(path, &g->n_expected);
    snprintf(g->weights, sizeof(g->weights), "%s", dir);
    if (!json_object_get(g->json, "tensors"))
        return;
    assert_in_range(n_written, 0, 1);
    char *to = written[n_written];
    if (golden_write_checkpoint(g->json, dir, to, sizeof(written[0])))
        fail_msg("%s: cannot write the checkpoint: %s", dir, strerror(errno));
    snprintf(g->weights, sizeof(g->weights), "%s", to);
    n_written++;
}

static void golden_close(struct golden *g)
{
    json_decref(g->json);
    free(g->expected);
}

// ---- running a case --------------------------------------------------------------------

static struct policy *load(const struct golden *g)
{
    struct policy_options opt = {.threads = 2};
    struct policy_error err = {{0}};
    struct policy *p = NULL;

    if (policy_load(&p, g->weights, &opt, &err))
        fail_msg("%s: %s", g->dir, err.text);
    return p;
}

// The case's frames in the policy's own order of cameras, which must be config.json's.
static struct policy_image *frames(const struct golden *g, const struct policy_info *info)
{
    json_t *list = json_object_get(g->json, "images"), *v;
    uint64_t seed = (uint64_t)integer(g, "seed");
    size_t i;

    assert_int_equal(json_array_size(list), info->n_cameras);
    struct policy_image *image = calloc((size_t)info->n_cameras + 1, sizeof(*image));
    json_array_foreach(list, i, v)
    {
        const char *key = json_string_value(json_object_get(v, "key"));
        int h = (int)json_integer_value(json_object_get(v, "height"));
        int w = (int)json_integer_value(json_object_get(v, "width"));
        size_t n = (size_t)h * (size_t)w * 3;
        uint8_t *rgb = malloc(n);

        assert_string_equal(info->camera[i].key, key);
        assert_int_equal(info->camera[i].height, h);
        assert_int_equal(info->camera[i].width, w);
        golden_image(seed, key, rgb, n);
        image[i] =
            (struct policy_image){.rgb = rgb, .width = w, .height = h, .stride = w * 3};
    }
    return image;
}

static void free_frames(struct policy_image *image)
{
    for (size_t i = 0; image[i].rgb; i++)
        free((void *)(uintptr_t)image[i].rgb);
    free(image);
}

// Loads, infers twice (the second must equal the first), returns normalised then actions.
static float *run(const struct golden *g, struct policy *p,
                  const struct policy_image *image)
{
    const struct policy_info *info = policy_describe(p);
    size_t n = (size_t)info->chunk_size * (size_t)info->action_dim, n_state, n_env;
    float *state = numbers(g, "state", &n_state), *env = numbers(g, "env", &n_env);
    struct policy_observation obs = {.state = state, .env = env, .image = image};
    float *out = calloc(4 * n, sizeof(*out));

    assert_int_equal(n_state, info->state_dim);
    assert_int_equal(n_env, info->env_dim);
    assert_int_equal(info->chunk_size, integer(g, "rows"));
    for (int k = 0; k < 2; k++) {
        float *o = out + (size_t)k * 2 * n;
        if (policy_infer(p, &obs, o + n, o))
            fail_msg("%s: %s", g->dir, policy_last_error(p));
    }
    assert_memory_equal(out, out + 2 * n, 2 * n * sizeof(*out));
    free(state);
    free(env);
    return out;
}

// ---- comparing -------------------------------------------------------------------------

static double worst(const float *a, const float *b, size_t n, const float *range,
                    size_t cols)
{
    double w = 0;

    for (size_t i = 0; i < n; i++) {
        double d = fabs((double)a[i] - (double)b[i]);
        if (range)
            d /= (double)range[i % cols];
        w = isnan(d) ? INFINITY : fmax(w, d);
    }
    return w;
}

static void compare_planes(const struct golden *g, struct policy *p,
                           const struct policy_image *image, const float *expected)
{
    const struct policy_info *info = policy_describe(p);
    double all = 0;

    for (int i = 0; i < info->n_cameras; i++) {
        size_t n = 3 * (size_t)image[i].height * (size_t)image[i].width;
        float *chw = calloc(n, sizeof(*chw));

        assert_int_equal(policy_preprocess(p, i, &image[i], chw), 0);
        double d = worst(chw, expected, n, NULL, 1);
        if (d > BOUND_PIXEL)
            fail_msg("%s: image %d differs by %.2g, bound %g", g->dir, i, d, BOUND_PIXEL);
        all = fmax(all, d);
        free(chw);
        expected += n;
    }
    print_message("  planes %.1e\n", all);
}

static void compare(const struct golden *g, struct policy *p, const float *out,
                    const struct policy_image *image)
{
    const struct policy_info *info = policy_describe(p);
    size_t cols = (size_t)info->action_dim, n = (size_t)info->chunk_size * cols, n_range;
    float *range = numbers(g, "action_range", &n_range);

    assert_int_equal(n_range, cols);
    assert_true(g->n_expected >= 2 * n);
    double norm = worst(out, g->expected, n, NULL, 1);
    double act = worst(out + n, g->expected + n, n, range, cols);
    print_message("  normalised %.1e of-range %.1e\n", norm, act);
    free(range);
    if (!(norm <= BOUND))
        fail_msg("%s: normalised actions differ by %.2g, bound %g", g->dir, norm, BOUND);
    if (!(act <= BOUND_RANGE))
        fail_msg("%s: actions differ by %.2g of range, bound %g", g->dir, act,
                 BOUND_RANGE);
    if (json_is_true(json_object_get(g->json, "planes")))
        compare_planes(g, p, image, g->expected + 2 * n);
}

// What LeRobot recorded beside its weights, the loader has computed once more.
static void compare_recorded(const struct golden *g, const struct policy_info *info)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/golden.safetensors", g->weights);
    if (access(path, F_OK) != 0) {
        assert_string_not_equal(strrchr(g->dir, '/'), "/env_only"); // whose is committed
        return;
    }
    assert_true(info->golden_error >= 0);
    print_message("  golden %.1e\n", info->golden_error);
    if (info->golden_error > BOUND)
        fail_msg("%s: what was recorded differs by %.2g, bound %g", path,
                 info->golden_error, BOUND);
}

// Where the formulas of two eras agree, so must the bits.
static void compare_bits(const struct golden *g, const float *out, size_t n)
{
    const char *other = json_string_value(json_object_get(g->json, "same_bits_as"));
    char dir[512];
    struct golden o;
    const int before = n_written;

    if (!other)
        return;
    snprintf(dir, sizeof(dir), "%.*s/%s", (int)(strrchr(g->dir, '/') - g->dir), g->dir,
             other);
    golden_open(&o, dir);
    struct policy *p = load(&o);
    struct policy_image *image = frames(&o, policy_describe(p));
    float *theirs = run(&o, p, image);
    assert_memory_equal(out, theirs, 2 * n * sizeof(*out));
    free(theirs);
    free_frames(image);
    policy_free(p);
    golden_close(&o);
    if (n_written > before)
        golden_remove_checkpoint(written[--n_written]);
}

// Under sanitizers, which take ten times as long, each case with one, in turn.
static bool to_try(enum cpu_isa isa, int number)
{
    int before = 0, all = 0;

    for (enum cpu_isa i = 0; i < CPU_ISAS; i++) {
        before += i < isa && cpu_runs(i);
        all += cpu_runs(i);
    }
    return cpu_runs(isa) && (!SLOW || number % all == before);
}

static void run_and_compare(const struct golden *g)
{
    struct policy *p = load(g);
    const struct policy_info *info = policy_describe(p);
    struct policy_image *image = frames(g, info);
    float *out = run(g, p, image);
    compare(g, p, out, image);
    compare_bits(g, out, (size_t)info->chunk_size * (size_t)info->action_dim);
    compare_recorded(g, info);
    free(out);
    free_frames(image);
    policy_free(p);
}

static void test_case(void **state)
{
    static int cases;
    const int number = cases++;
    struct golden g;
    int tried = 0;

    golden_open(&g, *state);
    for (enum cpu_isa isa = 0; isa < CPU_ISAS; isa++)
        if (to_try(isa, number)) {
            assert_int_equal(kernels_choose(cpu_isa_name(isa)), 0);
            print_message("  %s:\n", cpu_isa_name(isa));
            run_and_compare(&g);
            tried++;
        }
    assert_true(tried > 0);
    golden_close(&g);
}

// ---- the generator itself --------------------------------------------------------------

// Values that tests/parity/gen.py gives for the same seed and name.
static void test_generator(void **state)
{
    static const float want[4] = {0x1.279204p+0f, 0x1.108326p+0f, 0x1.07dde2p+0f,
                                  0x1.3c8b88p+0f};
    static const uint8_t pixels[6] = {29, 217, 202, 210, 200, 183};
    float v[4];
    uint8_t rgb[6];

    (void)state;
    assert_true(golden_int(golden_key(7, "model.a"), 0) == 0xc1f35b07180b7addu);
    golden_floats(7, "model.a", v, 4, 0.3f, 1.0f);
    assert_memory_equal(v, want, sizeof(want));
    golden_image(7, "cam", rgb, sizeof(rgb));
    assert_memory_equal(rgb, pixels, sizeof(pixels));
    assert_int_equal(golden_f16(1.0f), 0x3C00);
    assert_int_equal(golden_f16(-0x1.004p+0f), 0xBC01); // 1 + 2^-10
    assert_int_equal(golden_f16(0x1.002p+0f), 0x3C00);  // half way, to even
    assert_int_equal(golden_f16(0x1.ffep+0f), 0x4000);  // half way, up into the exponent
    assert_int_equal(golden_f16(0x1p-24f), 0x0001);     // least subnormal
    assert_int_equal(golden_f16(0x1.ffep-15f), 0x0400); // rounds up to the least normal
    assert_int_equal(golden_bf16(0x1.01p+0f), 0x3F80);  // half way, to even
    assert_int_equal(golden_bf16(0x1.03p+0f), 0x3F82);  // half way, to even
}

// ---- finding the cases -----------------------------------------------------------------

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

// Adds a test for every directory below `parent` that holds a policy case.
static size_t collect(const char *parent, struct CMUnitTest *tests, size_t n)
{
    struct dirent **entry;
    int found = scandir(parent, &entry, NULL, by_name);

    for (int i = 0; i < found; i++) {
        char path[512];

        snprintf(path, sizeof(path), "%s/%s/config.json", parent, entry[i]->d_name);
        if (n < MAX_CASES && access(path, R_OK) == 0) {
            path[strlen(path) - strlen("/config.json")] = '\0';
            char *dir = strdup(path);
            tests[n++] = (struct CMUnitTest){.name = strrchr(dir, '/') + 1,
                                             .test_func = test_case,
                                             .teardown_func = remove_written,
                                             .initial_state = dir};
        }
        free(entry[i]);
    }
    if (found >= 0)
        free(entry);
    return n;
}

static size_t n_cases;

static void test_count(void **state)
{
    (void)state;
    assert_in_range(n_cases, MIN_CASES, MAX_CASES);
}

int main(void)
{
    static struct CMUnitTest tests[MAX_CASES + 2] = {
        cmocka_unit_test(test_generator),
        cmocka_unit_test(test_count),
    };
    size_t n = collect(DATA "/golden", tests, 2);

    n = collect(DATA "/checkpoints", tests, n);
    n_cases = n - 2;
    int failed = _cmocka_run_group_tests("golden", tests, n, NULL, NULL);
    for (size_t i = 2; i < n; i++)
        free(tests[i].initial_state);
    return failed;
}
