// A policy whose matrix products are in 16 or 8 bits: how near it stays to the double-precision
// twin, what loading says of that, and that failing leaves nothing behind.
//
// The fixtures' values have eight significant bits, so in 16 bits the weights of their layers are
// what they were: without a camera such a policy is as good as float32.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdatomic.h>

#include "policy/deviation.h"
#include "policy/golden_priv.h"
#include "policy/policy_priv.h"
#include "tests/unit/act_twin.h"
#include "tests/unit/checkpoint_scratch.h"

#define WEIGHTS "model.safetensors"
#define LINEAR1 "model.encoder.layers.0.linear1.weight"
#define EXACT   2e-5 // of normalised actions, which are of order 1
#define BF16    4e-3 // with a camera: Winograd's weights are no short numbers; 0.8e-3
// In 8 bits, on random weights of 16 to 64 columns: 0.063; and 0.12 where products of two quads are
// added in 16 bits (gemm_int8.h), which short columns can afford least.
#define INT8       0.1
#define INT8_QUADS 0.25
#define ROWS_MAX   4096

static struct policy *load(const struct scratch *s, const struct policy_options *opt)
{
    struct policy_error err = {""};
    struct policy *p;
    if (policy_load(&p, s->dir, opt, &err))
        fail_msg("%s", err.text);
    return p;
}

static struct policy *load_in(const struct scratch *s, enum precision precision)
{
    const struct policy_options opt = {.precision = precision, .threads = 2};
    return load(s, &opt);
}

// ---- against the twin -----------------------------------------------------------------

struct seen {
    uint8_t rgb[2][64 * 64 * 3];
    struct policy_image image[2];
    float state[16], env[16];
};

static void look(struct seen *s, const struct act_fixture *f)
{
    for (int c = 0; c < f->n_cameras; c++) {
        int w = f->camera[c].width, h = f->camera[c].height;
        for (int i = 0; i < 3 * w * h; i++)
            s->rgb[c][i] = (uint8_t)((act_fixture_mix((uint64_t)i / 24) & 127) +
                                     (act_fixture_mix((uint64_t)(7 + i)) & 127));
        s->image[c] = (struct policy_image){
            .rgb = s->rgb[c], .width = w, .height = h, .stride = 3 * w};
    }
    for (uint64_t i = 0; i < 16; i++) {
        s->state[i] = (float)(act_fixture_mix(1000 + i) & 255) / 128.0f - 1.0f;
        s->env[i] = (float)(act_fixture_mix(2000 + i) & 255) / 128.0f - 1.0f;
    }
}

static double off(const struct scratch *dir, const struct act_fixture *f,
                  const struct seen *s, const double *want, enum precision precision)
{
    static float actions[ROWS_MAX], raw[ROWS_MAX];
    const struct policy_observation obs = {s->state, s->env, s->image};
    struct policy *p = load_in(dir, precision);
    int n = f->chunk_size * f->action_dim;
    double worst = 0;
    assert_true(n <= ROWS_MAX);
    assert_int_equal(policy_infer(p, &obs, actions, raw), 0);
    for (int i = 0; i < n; i++)
        worst = fmax(worst, fabs((double)raw[i] - want[i]));
    policy_free(p);
    return worst;
}

static void compare(const char *name, const struct act_fixture *f)
{
    static struct seen s;
    struct scratch dir;
    look(&s, f);
    scratch_make(&dir, f);
    const uint8_t *rgb[4] = {s.rgb[0], s.rgb[1]};
    double *want = act_twin(f, rgb, s.state, s.env);
    for (int i = 0; i < 2 * CPU_ISAS; i++) { // with and without a dot product of bytes
        if (cpu_choose((enum cpu_isa)(i / 2)) != 0)
            continue;
        cpu_use_vnni(i % 2);
        double bf16 = off(&dir, f, &s, want, PRECISION_BF16);
        double int8 = off(&dir, f, &s, want, PRECISION_INT8);
        print_message("%-24s %-8s bf16 %.1e, int8 %.1e\n", name,
                      cpu_isa_name((enum cpu_isa)(i / 2)), bf16, int8);
        assert_true(bf16 <= (f->n_cameras ? BF16 : EXACT));
        assert_true(int8 > 1e-4); // or it is not in 8 bits at all
        assert_true(int8 <= (gemm_int8_kernel()->quads ? INT8_QUADS : INT8));
    }
    assert_int_equal(cpu_choose(cpu_best()), 0);
    free(want);
    scratch_remove(&dir);
}

static void test_twin(void **unused)
{
    (void)unused;
    struct act_fixture f = scratch_small();
    compare("no camera", &f);
    f.dim_model = 64;
    f.n_heads = 4;
    f.dim_feedforward = 300; // more than a part of a panel in 16 bits
    f.n_encoder_layers = 3;
    f.n_decoder_layers = 2;
    compare("deeper", &f);
    f.pre_norm = f.gelu = true;
    compare("deeper, pre-norm, gelu", &f);
    f = act_fixture_tiny();
    compare("camera", &f);
}

// ---- what it says of itself -----------------------------------------------------------

static void test_facts(void **unused)
{
    (void)unused;
    struct act_fixture f = scratch_small();
    struct scratch s;
    size_t bytes[PRECISIONS];
    f.dim_model = 64;
    f.dim_feedforward = 512;
    scratch_make(&s, &f);
    for (int i = 0; i < PRECISIONS; i++) {
        struct policy *p = load_in(&s, (enum precision)i);
        const struct policy_info *info = policy_describe(p);
        assert_int_equal(info->precision, i);
        assert_int_equal(info->deviation.observations, i ? DEVIATION_MADE_UP : 0);
        assert_false(info->deviation.golden);
        assert_true((info->deviation.worst != NULL) == (i != 0));
        assert_true((info->load_ms.reference > 0) == (i != 0));
        assert_true(info->load_ms.total >= info->load_ms.reference);
        bytes[i] = info->weight_bytes;
        for (int a = 0; i && a < info->action_dim; a++) {
            double d = (double)info->deviation.worst[a];
            assert_true(i == PRECISION_BF16 ? d < 1e-5 : d > 1e-4 && d < 0.1);
        }
        policy_free(p);
    }
    // 64 * (3 * 64 + 64) + 2 * 64 * 512 weights in the encoder, 4 * 64 * 64 more in the decoder
    assert_in_range(bytes[0] - bytes[1], 2 * 160000, 2 * 200000);
    assert_in_range(bytes[1] - bytes[2], 100000, 200000);
    scratch_remove(&s);
}

// Its own account, again: the same observations, given to one after the other.
static void measure(const struct scratch *s, struct policy *const p[2], bool golden,
                    float *worst)
{
    const struct policy_info *info = policy_describe(p[0]);
    struct policy_error err;
    struct golden g[2];
    for (int i = 0; i < DEVIATION_MADE_UP + golden; i++) {
        for (int k = 0; k < 2; k++) {
            struct st_file *f = NULL;
            assert_int_equal(golden_allocate(&g[k], info), 0);
            golden_make_up(&g[k], p[k], DEVIATION_SEED + (uint64_t)i);
            if (golden && i == 0) {
                char path[400];
                snprintf(path, sizeof path, "%s/" GOLDEN_FILE, s->dir);
                assert_int_equal(st_open(&f, path, &err), 0);
                assert_int_equal(golden_read(&g[k], info, f, "it", &err), 0);
            }
            st_close(f);
            assert_int_equal(golden_compute(&g[k], p[k], &err), 0);
        }
        for (int v = 0; v < info->chunk_size * info->action_dim; v++)
            worst[v % info->action_dim] = fmaxf(worst[v % info->action_dim],
                                                fabsf(g[0].answer[v] - g[1].answer[v]));
        golden_free(&g[0]);
        golden_free(&g[1]);
    }
}

static void write_golden(const struct scratch *s)
{
    const struct policy_options opt = {.skip_golden = true};
    struct policy *p = load(s, &opt);
    struct policy_error err;
    assert_int_equal(golden_write(p, s->dir, 99, true, &err), 0);
    policy_free(p);
}

static void test_measured(void **unused)
{
    (void)unused;
    struct act_fixture f = scratch_small();
    f.action_scale = 3.0f; // the checkpoint's units, not the network's
    for (int golden = 0; golden < 2; golden++) {
        float worst[16] = {0};
        struct scratch s;
        scratch_make(&s, &f);
        if (golden)
            write_golden(&s);
        struct policy *p[2] = {load_in(&s, PRECISION_FLOAT32),
                               load_in(&s, PRECISION_INT8)};
        const struct policy_info *info = policy_describe(p[1]);
        assert_int_equal(info->deviation.observations, DEVIATION_MADE_UP + golden);
        assert_int_equal(info->deviation.golden, golden);
        assert_true((info->golden_error >= 0) == golden);
        assert_true(info->golden_error < 1e-6); // float32's
        measure(&s, p, golden, worst);
        assert_memory_equal(worst, info->deviation.worst, sizeof(float) * 6);
        policy_free(p[0]);
        policy_free(p[1]);
        scratch_remove(&s);
    }
}

// One weight that is a thousand times the others of its row takes their digits away.
static void test_outlier(void **unused)
{
    (void)unused;
    const struct act_fixture f = scratch_small();
    double worst[2][2] = {{0}};
    for (int outlier = 0; outlier < 2; outlier++)
        for (int i = 0; i < 2; i++) {
            struct scratch s;
            scratch_make(&s, &f);
            for (size_t o = 0; outlier && o < 24; o++) // each row's first
                scratch_poke(&s, WEIGHTS, LINEAR1, o * 16, 100.0f);
            struct policy *p = load_in(&s, i ? PRECISION_INT8 : PRECISION_BF16);
            for (int a = 0; a < 6; a++)
                worst[outlier][i] = fmax(worst[outlier][i],
                                         (double)policy_describe(p)->deviation.worst[a]);
            policy_free(p);
            scratch_remove(&s);
        }
    print_message("bf16 %.1e, with outliers %.1e; int8 %.1e, %.1e\n", worst[0][0],
                  worst[1][0], worst[0][1], worst[1][1]);
    assert_true(worst[1][1] > 10 * worst[0][1]);
    assert_true(worst[1][0] < 1e-4); // 16 bits have the range of 32
}

// A weight of many digits is rounded to 8 of them.
static void test_rounded(void **unused)
{
    (void)unused;
    const struct act_fixture f = scratch_small();
    struct scratch s;
    scratch_make(&s, &f);
    for (size_t i = 0; i < 24 * 16; i++)
        scratch_poke(&s, WEIGHTS, LINEAR1, i, (i % 3 ? 0.1f : -0.1f) + (float)i * 1e-4f);
    struct policy *p = load_in(&s, PRECISION_BF16);
    double worst = 0;
    for (int a = 0; a < 6; a++)
        worst = fmax(worst, (double)policy_describe(p)->deviation.worst[a]);
    print_message("bf16, weights of 24 bits: %.1e\n", worst);
    assert_true(worst > 1e-5 && worst < 5e-3);
    policy_free(p);
    scratch_remove(&s);
}

// ---- golden.safetensors ---------------------------------------------------------------

static void test_golden(void **unused)
{
    (void)unused;
    const struct act_fixture f = scratch_small();
    struct policy_options opt = {.precision = PRECISION_INT8};
    struct policy_error err = {""};
    struct policy *p;
    struct scratch s;
    scratch_make(&s, &f);
    write_golden(&s); // in float32, from which 8 bits are further than GOLDEN_TOLERANCE
    p = load(&s, &opt);
    assert_true(policy_describe(p)->golden_error == 0);
    policy_free(p);
    scratch_poke(&s, WEIGHTS, "model.action_head.bias", 4, 0.75f);
    assert_int_equal(policy_load(&p, s.dir, &opt, &err),
                     -EINVAL); // other weights stay found
    assert_null(p);
    assert_non_null(strstr(err.text, "value 4 of row"));
    opt.skip_golden = true;
    p = load(&s, &opt);
    assert_true(policy_describe(p)->golden_error < 0);
    assert_false(policy_describe(p)->deviation.golden);
    policy_free(p);
    scratch_remove(&s);
}

// ---- beside another -------------------------------------------------------------------

static void test_beside(void **unused)
{
    (void)unused;
    const struct act_fixture f = scratch_small();
    struct golden g;
    struct scratch s;
    float alone[48];
    scratch_make(&s, &f);
    struct policy *running = load_in(&s, PRECISION_FLOAT32),
                  *first = load_in(&s, PRECISION_INT8);
    const struct policy_options opt = {.precision = PRECISION_INT8, .beside = running};
    struct policy *p = load(&s, &opt);
    assert_int_equal(policy_describe(p)->threads, 2);
    assert_int_equal(golden_allocate(&g, policy_describe(p)), 0);
    golden_make_up(&g, p, 5);
    const struct policy_observation obs = {g.state, g.env, g.image};
    assert_int_equal(policy_infer(first, &obs, alone, NULL), 0);
    policy_free(first);
    assert_int_equal(policy_infer(running, &obs, g.answer, NULL), 0);
    policy_free(running);
    assert_memory_not_equal(g.answer, alone, sizeof alone);
    assert_int_equal(policy_infer(p, &obs, g.answer, NULL), 0);
    assert_memory_equal(g.answer, alone, sizeof alone);
    policy_free(p);
    golden_free(&g);
    scratch_remove(&s);
}

// ---- failing --------------------------------------------------------------------------

static void no_digit(struct scratch *s)
{
    scratch_poke(s, WEIGHTS, LINEAR1, 5, NAN);
}

static void too_large(struct scratch *s)
{
    for (size_t i = 0; i < 24 * 16; i++)
        scratch_poke(s, WEIGHTS, LINEAR1, i, 3e38f);
}

static void no_file(struct scratch *s)
{
    assert_int_equal(remove(scratch_path(s, WEIGHTS)), 0);
}

static void bad_golden(struct scratch *s)
{
    write_golden(s);
    assert_int_equal(truncate(scratch_path(s, GOLDEN_FILE), 300), 0);
}

static void test_refused(void **unused)
{
    (void)unused;
    void (*const spoil[])(struct scratch *) = {no_digit, too_large, no_file, bad_golden};
    const int rc[] = {-EINVAL, -EINVAL, -ENOENT, -EINVAL};
    const struct act_fixture f = scratch_small();
    for (size_t k = 0; k < 4; k++)
        for (int i = 0; i < PRECISIONS; i++) {
            struct policy_options opt = {.precision = (enum precision)i};
            struct policy_error err = {""};
            struct policy *p;
            struct scratch s;
            scratch_make(&s, &f);
            spoil[k](&s);
            assert_int_equal(policy_load(&p, s.dir, &opt, &err), rc[k]);
            assert_null(p);
            assert_true(strlen(err.text) > 10);
            scratch_remove(&s);
        }
}

static void test_options(void **unused)
{
    (void)unused;
    const struct act_fixture f = scratch_small();
    struct policy_options opt = {.precision = (enum precision)PRECISIONS};
    struct policy_error err = {""};
    _Atomic bool cancel = true;
    struct policy *p;
    struct scratch s;
    scratch_make(&s, &f);
    assert_int_equal(policy_load(&p, s.dir, &opt, &err), -EINVAL);
    assert_non_null(strstr(err.text, "float32, bf16 and int8"));
    opt = (struct policy_options){.precision = PRECISION_INT8, .cancel = &cancel};
    assert_int_equal(policy_load(&p, s.dir, &opt, &err), -ECANCELED);
    assert_null(p);
    scratch_remove(&s);
}

// The checkpoint is another one when it is read for the second time.
static void test_changed(void **unused)
{
    (void)unused;
    const struct act_fixture f = scratch_small();
    struct policy_error err = {""};
    struct deviation d = {.n = 0};
    struct scratch s;
    struct place place = {.dir = s.dir};
    scratch_make(&s, &f);
    struct policy *p = load_in(&s, PRECISION_FLOAT32);
    assert_int_equal(deviation_ask(&d, p, &place, NULL, &err), 0);
    assert_int_equal(deviation_prepare(&d, p, &err), 0);
    policy_free(p);
    write_golden(&s); // this is new, too
    p = load_in(&s, PRECISION_FLOAT32);
    assert_int_equal(deviation_prepare(&d, p, &err), 0);
    assert_int_equal(deviation_measure(&d, p, &place, NULL, &err), -ESTALE);
    const _Atomic bool cancel = true;
    assert_int_equal(deviation_measure(&d, p, NULL, &cancel, &err), -ECANCELED);
    assert_int_equal(deviation_measure(&d, p, NULL, NULL, &err),
                     0); // as it was, without it
    for (int a = 0; a < 6; a++)
        assert_true(policy_describe(p)->deviation.worst[a] == 0); // float32 from float32
    deviation_free(&d);
    assert_int_equal(deviation_ask(&d, p, &place, NULL, &err), 0);
    assert_int_equal(deviation_measure(&d, p, &place, NULL, &err), 0);
    assert_int_equal(golden_write(p, s.dir, 77, true, &err), 0); // of another observation
    assert_int_equal(deviation_measure(&d, p, &place, NULL, &err), -ESTALE);
    policy_free(p);
    assert_int_equal(remove(scratch_path(&s, GOLDEN_FILE)), 0);
    scratch_poke(&s, WEIGHTS, LINEAR1, 5, 0.5f);
    p = load_in(&s, PRECISION_FLOAT32);
    assert_int_equal(deviation_prepare(&d, p, &err), -ESTALE);
    assert_non_null(strstr(err.text, "changed while it was loaded"));
    policy_free(p);
    deviation_free(&d);
    deviation_free(&d);
    scratch_remove(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_twin),     cmocka_unit_test(test_facts),
        cmocka_unit_test(test_measured), cmocka_unit_test(test_outlier),
        cmocka_unit_test(test_rounded),  cmocka_unit_test(test_golden),
        cmocka_unit_test(test_beside),   cmocka_unit_test(test_refused),
        cmocka_unit_test(test_options),  cmocka_unit_test(test_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
