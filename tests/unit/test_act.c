// The whole ACT network against its double-precision twin, over small models that
// together cover every option; and what must hold of any policy: same bits every time,
// the same within rounding for another thread count, refusals that say why.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "policy/kernels/kernels.h"
#include "policy/policy.h"
#include "tests/unit/act_twin.h"
#include "tests/unit/slow.h"

#define TOLERANCE 2e-5 // of normalised actions, which are of order 1

struct observation {
    uint8_t *rgb[4];
    struct policy_image image[4];
    float state[16], env[16];
    struct policy_observation obs;
};

static void make_observation(struct observation *o, const struct act_fixture *f,
                             uint64_t seed)
{
    *o = (struct observation){0};
    for (int c = 0; c < f->n_cameras; c++) {
        int w = f->camera[c].width, h = f->camera[c].height;
        size_t n = 3 * (size_t)w * (size_t)h;
        o->rgb[c] = malloc(n);
        for (size_t i = 0; i < n; i++) // blobs of 8 pixels with noise: features differ
            o->rgb[c][i] = (uint8_t)((act_fixture_mix(seed + i / 24) & 127) +
                                     (act_fixture_mix(seed * 7 + i) & 127));
        o->image[c] = (struct policy_image){
            .rgb = o->rgb[c], .width = w, .height = h, .stride = 3 * w};
    }
    for (int i = 0; i < 16; i++) {
        o->state[i] =
            (float)(act_fixture_mix(seed + 1000 + (uint64_t)i) & 255) / 128.0f - 1.0f;
        o->env[i] =
            (float)(act_fixture_mix(seed + 2000 + (uint64_t)i) & 255) / 128.0f - 1.0f;
    }
    o->obs = (struct policy_observation){o->state, o->env, o->image};
}

static void free_observation(struct observation *o)
{
    for (int c = 0; c < 4; c++)
        free(o->rgb[c]);
}

static struct policy *load(const struct act_fixture *f, int threads)
{
    char dir[256];
    struct policy *p = NULL;
    struct policy_error err = {{0}};
    struct policy_options opt = {.threads = threads};
    assert_int_equal(act_fixture_mkdir(dir), 0);
    assert_int_equal(act_fixture_write(dir, f), 0);
    int rc = policy_load(&p, dir, &opt, &err);
    act_fixture_remove(dir);
    if (rc)
        fail_msg("policy_load: %d: %s", rc, err.text);
    return p;
}

static double worst(const float *a, const double *b, size_t n)
{
    double most = 0.0;
    for (size_t i = 0; i < n; i++) {
        double d = fabs((double)a[i] - b[i]);
        most = d > most || isnan(d) ? d : most;
    }
    return most;
}

static double spread(const double *a, size_t n)
{
    double low = a[0], high = a[0];
    for (size_t i = 1; i < n; i++) {
        low = fmin(low, a[i]);
        high = fmax(high, a[i]);
    }
    return high - low;
}

// Network and un-normalised actions of one model, with 1 and with 2 threads, against the
// twin.
static void compare(const char *name, const struct act_fixture *f)
{
    struct observation o;
    make_observation(&o, f, 11);
    size_t n = (size_t)f->chunk_size * (size_t)f->action_dim;
    float *actions = malloc(n * sizeof *actions), *raw = malloc(n * sizeof *raw);
    const uint8_t *rgb[4] = {o.rgb[0], o.rgb[1], o.rgb[2], o.rgb[3]};
    float *first = malloc(n * sizeof *first);
    double *want = act_twin(f, rgb, o.state, o.env);
    assert_true(spread(want, n) > 0.1); // a constant would hide mistakes
    for (int threads = 1; threads <= 3; threads++) {
        struct policy *p = load(f, threads);
        assert_int_equal(policy_infer(p, &o.obs, actions, raw), 0);
        double d = worst(raw, want, n);
        print_message("%-34s %d thread(s): worst difference %.2e of %.2f\n", name,
                      threads, d, spread(want, n));
        assert_true(d <= TOLERANCE);
        if (threads == 1)
            memcpy(first, raw, n * sizeof *first);
        for (size_t i = 0; i < n;
             i++) // another split rounds otherwise, no more than that
            assert_true(fabsf(raw[i] - first[i]) <= 1e-5f);
        for (size_t i = 0; i < n; i++) {
            int a = (int)(i % (size_t)f->action_dim);
            double want_raw = want[i] * (double)act_fixture_std(f, "ACTION", a) +
                              (double)act_fixture_mean("ACTION", a);
            assert_true(fabs((double)actions[i] - want_raw) <= TOLERANCE);
        }
        policy_free(p);
    }
    free(want);
    free(actions);
    free(raw);
    free(first);
    free_observation(&o);
}

static void two_cameras(struct act_fixture *f)
{
    f->n_cameras = 2;
    f->camera[1] = (struct act_fixture_camera){"observation.images.wrist", 41, 70};
}

static void test_post_norm(void **unused)
{
    (void)unused;
    struct act_fixture f = act_fixture_tiny();
    f.n_encoder_layers = 2;
    compare("post-norm", &f);
}

static void test_pre_norm_two_cameras(void **unused)
{
    (void)unused;
    struct act_fixture f = act_fixture_tiny();
    two_cameras(&f);
    f.pre_norm = true;
    f.gelu = true;
    f.n_decoder_layers = 2;
    f.env_dim = 5;
    compare("pre-norm, gelu, 2 cameras, env", &f);
}

static void test_post_norm_two_cameras(void **unused)
{
    (void)unused;
    struct act_fixture f = act_fixture_tiny();
    two_cameras(&f);
    f.n_decoder_layers = 2;
    f.n_heads = 4;
    f.dim_model = 36;
    f.dim_feedforward = 51;
    f.chunk_size = f.n_action_steps = 67; // more queries than one attention block
    compare("post-norm, 2 cameras, odd sizes", &f);
}

static void test_resnet34(void **unused)
{
    (void)unused;
    struct act_fixture f = act_fixture_tiny();
    f.depth = 34;
    f.camera[0].height = 33;
    f.camera[0].width = 65;
    compare("resnet34", &f);
}

static void test_resnet50(void **unused)
{
    (void)unused;
    struct act_fixture f = act_fixture_tiny();
    f.depth = 50;
    compare("resnet50", &f);
    f.dilation = true;
    compare("resnet50, dilated layer4", &f);
}

static void test_no_camera(void **unused)
{
    (void)unused;
    struct act_fixture f = act_fixture_tiny();
    f.n_cameras = 0;
    f.env_dim = 7;
    for (int pre = 0; pre < 2; pre++)
        for (int layers = 1; layers <= 3; layers++) {
            f.pre_norm = pre;
            f.gelu = pre == (layers & 1);
            f.n_encoder_layers = 4 - layers;
            f.n_decoder_layers = layers;
            f.seed = (uint64_t)(10 * layers + pre);
            compare(pre ? "no camera, pre-norm" : "no camera, post-norm", &f);
        }
}

// The old format with the same seed is the same network to the bit.
static void test_old_format(void **unused)
{
    (void)unused;
    struct act_fixture f = act_fixture_tiny();
    struct observation o;
    float a[48], b[48];
    make_observation(&o, &f, 5);
    struct policy *p = load(&f, 1);
    assert_int_equal(policy_infer(p, &o.obs, a, NULL), 0);
    policy_free(p);
    f.era = ACT_FIXTURE_V03;
    f.dtype = ACT_FIXTURE_F16;
    p = load(&f, 1);
    assert_int_equal(policy_infer(p, &o.obs, b, NULL), 0);
    policy_free(p);
    assert_memory_equal(a, b, sizeof a);
    free_observation(&o);
}

static void test_same_bits(void **unused)
{
    (void)unused;
    struct act_fixture f = act_fixture_tiny();
    struct observation o, other;
    float first[48], again[48];
    two_cameras(&f);
    make_observation(&o, &f, 3);
    make_observation(&other, &f, 4);
    for (int threads = 1; threads <= 2; threads++) {
        struct policy *p = load(&f, threads), *q = load(&f, threads);
        assert_int_equal(policy_infer(p, &o.obs, first, NULL), 0);
        for (int i = 0; i < REPEATS(50, 6); i++) {
            assert_int_equal(policy_infer(p, &other.obs, again, NULL), 0);
            assert_memory_not_equal(first, again, sizeof first);
            assert_int_equal(policy_infer(i % 2 ? p : q, &o.obs, again, NULL), 0);
            assert_memory_equal(first, again, sizeof first);
        }
        policy_free(p);
        policy_free(q);
    }
    free_observation(&o);
    free_observation(&other);
}

static void expect_refusal(struct policy *p, const struct policy_observation *obs, int rc,
                           const char *word)
{
    float actions[48], raw[48], zero[48] = {0};
    memset(actions, 1, sizeof actions);
    memset(raw, 1, sizeof raw);
    assert_int_equal(policy_infer(p, obs, actions, raw), rc);
    assert_memory_equal(actions, zero, sizeof zero);
    assert_memory_equal(raw, zero, sizeof zero);
    if (!strstr(policy_last_error(p), word))
        fail_msg("'%s' does not mention '%s'", policy_last_error(p), word);
}

static void test_refusals(void **unused)
{
    (void)unused;
    struct act_fixture f = act_fixture_tiny();
    struct observation o;
    float actions[48], nan_state[6] = {0, 0, NAN, 0, 0, 0},
                       big[6] = {3e38f, 3e38f, -3e38f};
    f.env_dim = 2;
    make_observation(&o, &f, 3);
    struct policy *p = load(&f, 2);
    struct policy_observation bad = o.obs;
    assert_int_equal(policy_infer(p, NULL, actions, NULL), -EINVAL);
    assert_int_equal(policy_infer(p, &o.obs, NULL, NULL), -EINVAL);
    bad.state = NULL;
    expect_refusal(p, &bad, -EINVAL, "lacks");
    bad.state = nan_state;
    expect_refusal(p, &bad, -EDOM, "observation.state");
    bad.state = big;
    expect_refusal(p, &bad, -EDOM, "not finite");
    bad = o.obs;
    bad.env = nan_state + 1;
    expect_refusal(p, &bad, -EDOM, "environment_state");
    bad = o.obs;
    struct policy_image image = o.image[0];
    bad.image = &image;
    image.width = 31;
    expect_refusal(p, &bad, -EINVAL, "observation.images.front");
    image = o.image[0];
    image.stride = 95;
    expect_refusal(p, &bad, -EINVAL, "observation.images.front");
    image = o.image[0];
    image.rgb = NULL;
    expect_refusal(p, &bad, -EINVAL, "observation.images.front");
    assert_int_equal(policy_infer(p, &o.obs, actions, NULL), 0); // and it still works
    policy_free(p);
    policy_free(NULL);
    free_observation(&o);
}

// Frames of another size are taken when the caller chose how to resize them.
static void test_resize(void **unused)
{
    (void)unused;
    char dir[256];
    struct policy *p;
    struct policy_error err;
    struct observation o;
    float refuse[48], stretched[48];
    struct act_fixture f = act_fixture_tiny();
    make_observation(&o, &f, 3);
    p = load(&f, 1);
    assert_int_equal(policy_infer(p, &o.obs, refuse, NULL), 0);
    policy_free(p);
    assert_int_equal(act_fixture_mkdir(dir), 0);
    assert_int_equal(act_fixture_write(dir, &f), 0);
    const enum policy_resize modes[] = {POLICY_RESIZE_STRETCH, POLICY_RESIZE_LETTERBOX};
    for (int m = 0; m < 2; m++) {
        struct policy_options opt = {.threads = 2, .resize = modes[m]};
        struct policy_image half = {
            .rgb = o.rgb[0], .width = 32, .height = 16, .stride = 96};
        struct policy_observation obs = {o.state, NULL, &half};
        assert_int_equal(policy_load(&p, dir, &opt, &err), 0);
        assert_int_equal(policy_infer(p, &o.obs, stretched, NULL), 0);
        for (int i = 0; i < 48; i++)
            assert_true(fabsf(refuse[i] - stretched[i]) < 1e-5f);
        assert_int_equal(policy_infer(p, &obs, stretched, NULL), 0);
        assert_memory_not_equal(refuse, stretched, sizeof refuse);
        policy_free(p);
    }
    act_fixture_remove(dir);
    free_observation(&o);
}

static void test_load_refusals(void **unused)
{
    (void)unused;
    char dir[256];
    struct policy *p;
    struct policy_error err;
    struct act_fixture f = act_fixture_tiny();
    f.n_cameras = 0;
    f.env_dim = 3;
    assert_int_equal(policy_load(&p, "/nonexistent/policy", NULL, &err), -ENOENT);
    assert_null(p);
    assert_int_equal(act_fixture_mkdir(dir), 0);
    assert_int_equal(act_fixture_write(dir, &f), 0);
    struct policy_options bad[] = {{.threads = -1},
                                   {.threads = 65},
                                   {.resize = (enum policy_resize)7},
                                   {.threads = 2, .cpu_mask = 1ull << 63}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        err.text[0] = '\0';
        assert_int_equal(policy_load(&p, dir, &bad[i], &err), -EINVAL);
        assert_null(p);
        assert_true(strlen(err.text) > 20);
    }
    act_fixture_remove(dir);
}

static void test_describe(void **unused)
{
    (void)unused;
    struct act_fixture f = act_fixture_tiny();
    struct policy *p = load(&f, 2);
    const struct policy_info *i = policy_describe(p);
    assert_string_equal(i->type, "act");
    assert_string_equal(i->backbone, "resnet18");
    assert_string_equal(i->camera[0].key, "observation.images.front");
    assert_int_equal(i->n_cameras, 1);
    assert_int_equal(i->chunk_size, 8);
    assert_int_equal(i->threads, 2);
    assert_string_equal(i->norm_action, "MEAN_STD");
    assert_true(i->weight_bytes >=
                4 * i->parameters - 4 * 64 * 1024); // batch norm is folded
    assert_true(i->weight_bytes + i->activation_bytes < 64u << 20);
    assert_string_equal(i->kernels, kernels_name(PRECISION_FLOAT32));
    assert_true((strlen(i->blas_core) > 0) == kernels_blas());
    struct act_fixture_list *l = act_fixture_tensors(&f);
    uint64_t values = 0;
    for (int k = 0; k < l->n; k++) // all but the latent projection's weight, times zero
        values += strcmp(l->t[k].name, "model.encoder_latent_input_proj.weight")
                      ? l->t[k].n
                      : 0;
    assert_int_equal(i->parameters, values);
    free(l);
    policy_free(p);
}

static void test_preprocess(void **unused)
{
    (void)unused;
    struct act_fixture f = act_fixture_tiny();
    struct observation o;
    static float chw[3 * 32 * 32];
    make_observation(&o, &f, 8);
    struct policy *p = load(&f, 1);
    assert_int_equal(policy_preprocess(p, 1, &o.image[0], chw), -EINVAL);
    assert_int_equal(policy_preprocess(p, -1, &o.image[0], chw), -EINVAL);
    assert_int_equal(policy_preprocess(p, 0, NULL, chw), -EINVAL);
    assert_int_equal(policy_preprocess(p, 0, &o.image[0], chw), 0);
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < 32 * 32; i++) {
            double mean = (double)act_fixture_mean("VISUAL", c);
            double std = (double)act_fixture_std(&f, "VISUAL", c);
            double want = (o.rgb[0][3 * i + c] / 255.0 - mean) / (std + 1e-8);
            assert_true(fabs((double)chw[c * 1024 + i] - want) < 1e-6);
        }
    policy_free(p);
    free_observation(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_camera),
        cmocka_unit_test(test_post_norm),
        cmocka_unit_test(test_pre_norm_two_cameras),
        cmocka_unit_test(test_post_norm_two_cameras),
        cmocka_unit_test(test_resnet34),
        cmocka_unit_test(test_resnet50),
        cmocka_unit_test(test_old_format),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_resize),
        cmocka_unit_test(test_load_refusals),
        cmocka_unit_test(test_describe),
        cmocka_unit_test(test_preprocess),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
