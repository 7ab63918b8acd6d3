// Which kernels compute, by name; OpenBLAS's products against their twin (gemm_twin.h, within
// rounding: its sums run in an order of its own); and a whole policy by every kind that runs here.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <cblas.h>
#include <errno.h>

#include "policy/kernels/gemm_priv.h"
#include "policy/kernels/kernels.h"
#include "policy/policy.h"
#include "tests/unit/act_fixture.h"
#include "tests/unit/gemm_twin.h"

// ---- the choice ----------------------------------------------------------------------------

static void test_best(void **unused)
{
    (void)unused;
    assert_int_equal(kernels_choose("generic"), 0);
    assert_int_equal(kernels_choose(NULL), 0);
    assert_int_equal(cpu_chosen(), cpu_best());
    assert_int_equal(kernels_blas(), cpu_best() == CPU_GENERIC && cpu_has_avx());
    assert_null(strstr(kernels_why(), "asked for"));
    assert_int_equal(kernels_choose(""), 0);
    assert_int_equal(cpu_chosen(), cpu_best());
}

static void test_by_name(void **unused)
{
    (void)unused;
    for (int i = 0; i < CPU_ISAS; i++) {
        enum cpu_isa isa = (enum cpu_isa)i;
        const char *name = cpu_isa_name(isa);
        if (!cpu_runs(isa)) {
            assert_int_equal(kernels_choose(name), -ENOTSUP);
            continue;
        }
        assert_int_equal(kernels_choose(name), 0);
        assert_string_equal(kernels_name(PRECISION_FLOAT32), name);
        assert_string_equal(kernels_name(PRECISION_INT8), name);
        assert_string_equal(gemm_kernel_name(gemm_kernel()), name);
        assert_ptr_equal(gemm_kernel(), gemm_kernel_of(isa));
        assert_false(kernels_blas());
    }
    assert_int_equal(kernels_choose("openblas"), 0);
    assert_true(kernels_blas());
    assert_string_equal(kernels_name(PRECISION_FLOAT32), "openblas");
    assert_string_equal(gemm_kernel_name(gemm_kernel()), "openblas");
    assert_int_equal(cpu_chosen(), CPU_GENERIC);
    assert_int_equal(kernels_choose(NULL), 0);
}

// A name that there is not changes nothing.
static void test_no_such_name(void **unused)
{
    const char *const no[] = {
        "sse",  "avx2 ", " vnni",          "vnni",
        "AVX2", "none",  "avx2 vnni vnni", "a name that is rather long, and none"};
    (void)unused;
    assert_int_equal(kernels_choose("openblas"), 0);
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        assert_int_equal(kernels_choose(no[i]), -EINVAL);
    assert_int_equal(kernels_choose("generic vnni"), -ENOTSUP);
    assert_true(kernels_blas());
    assert_int_equal(kernels_choose(NULL), 0);
}

// Products of bytes are part of the name where they make the bits: in 8 bits.
static void test_products_of_bytes(void **unused)
{
    const enum cpu_isa with[] = {CPU_AVX2, CPU_AVX512};
    (void)unused;
    for (int i = 0; i < 2; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s vnni", cpu_isa_name(with[i]));
        if (!cpu_runs_vnni(with[i])) {
            assert_int_equal(kernels_choose(name), -ENOTSUP);
            continue;
        }
        assert_int_equal(kernels_choose(name), 0);
        assert_string_equal(kernels_name(PRECISION_INT8), name);
        assert_string_equal(kernels_name(PRECISION_FLOAT32), cpu_isa_name(with[i]));
        assert_true((strstr(kernels_why(), "asked for") == NULL) ==
                    (with[i] == cpu_best()));
        assert_int_equal(kernels_choose(cpu_isa_name(with[i])), 0);
        assert_string_equal(kernels_name(PRECISION_INT8), cpu_isa_name(with[i]));
        assert_non_null(strstr(kernels_why(), "asked for, "));
    }
    assert_int_equal(kernels_choose(NULL), 0);
}

// ---- OpenBLAS's products -------------------------------------------------------------------

static void check(struct gemm_random *r, int rows, int out, int runs, int length,
                  bool nan)
{
    struct gemm_case c;
    gemm_case_open(&c, &gemm_blas, r, rows, out, runs, length);
    struct gemm g = gemm_case_pack(&c);
    size_t n = (size_t)rows * c.y_stride;
    float *y = gemm_values(r, n, c.y_skew);
    int panels = gemm_panels(&gemm_blas, out), row = gemm_between(r, 0, rows);

    memcpy(y, c.y0, n * sizeof *y);
    if (nan)
        c.x0[(size_t)(rows - 1) * c.x.row] = NAN; // of the last row alone
    gemm_run(&g, &c.x, 0, row, 0, panels, y, c.y_stride, &c.finish);
    gemm_run(&g, &c.x, row, rows, 0, panels, y, c.y_stride, &c.finish);
    for (int i = 0; i < rows; i++)
        for (int o = 0; o < (int)c.y_stride; o++) {
            size_t at = (size_t)i * c.y_stride + (size_t)o;
            double exact = (double)y[at];
            float want = o < out ? gemm_twin(&c, i, o, &exact) : c.y0[at];
            if (nan && o < out && i == rows - 1)
                assert_true(isnan(y[at]));
            else if (o < out)
                assert_true(fabs((double)y[at] - (double)want) <
                            1e-6 + 1e-7 * (4.0 + runs * length));
            else
                assert_memory_equal(&y[at], &want, sizeof want);
        }
    gemm_free(y, c.y_skew);
    free(g.panel);
    gemm_case_close(&c);
}

// Of every kind: rows apart and overlapping (which are copied when they are short), columns that
// end inside a panel, every finish.
static void test_products(void **unused)
{
    struct gemm_random r = {7};
    (void)unused;
    for (int i = 0; i < 400; i++)
        check(&r, gemm_between(&r, 1, 70), gemm_between(&r, 1, 150),
              gemm_between(&r, 1, 7), gemm_between(&r, 1, 90), false);
    check(&r, 320, 64, 7, 21, false); // the stem
    check(&r, 40, 256, 3, 768, false);
    check(&r, 302, 130, 1, 3200, false);
}

static void test_not_a_number(void **unused)
{
    struct gemm_random r = {8};
    (void)unused;
    for (int i = 0; i < 30; i++)
        check(&r, gemm_between(&r, 1, 20), gemm_between(&r, 1, 70), 1,
              gemm_between(&r, 1, 90), true);
}

// ---- a policy ------------------------------------------------------------------------------

enum { VALUES = 8 * 6 };

static void infer(const char *dir, const char *kernels, float *actions)
{
    static uint8_t rgb[96 * 80 * 3];
    const float state[6] = {0.1f, -0.2f, 0.3f, -0.4f, 0.5f, -0.6f};
    const struct policy_options opt = {.threads = 2};
    struct policy_error err;
    struct policy *p;

    for (size_t i = 0; i < sizeof rgb; i++)
        rgb[i] = (uint8_t)act_fixture_mix(i);
    const struct policy_image image = {
        .rgb = rgb, .width = 96, .height = 80, .stride = 96 * 3};
    const struct policy_observation obs = {.state = state, .image = &image};
    assert_int_equal(kernels_choose(kernels), 0);
    assert_int_equal(policy_load(&p, dir, &opt, &err), 0);
    assert_string_equal(policy_describe(p)->kernels, kernels);
    assert_string_equal(policy_describe(p)->blas_core,
                        kernels_blas() ? openblas_get_corename() : "");
    assert_int_equal(policy_infer(p, &obs, actions, NULL), 0);
    policy_free(p);
}

// The same chunk by all of them, within what rounding does: parity's bound is 2e-5.
static void test_policy(void **unused)
{
    const char *const names[] = {"openblas", "avx2", "avx512", "neon"};
    float want[VALUES], got[VALUES];
    struct act_fixture f = act_fixture_tiny();
    char dir[256];

    (void)unused;
    f.camera[0].height = 80;
    f.camera[0].width = 96;
    assert_int_equal(act_fixture_mkdir(dir), 0);
    assert_int_equal(act_fixture_write(dir, &f), 0);
    infer(dir, "generic", want);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], "openblas") != 0 && !cpu_runs(cpu_isa_of(names[i])))
            continue;
        infer(dir, names[i], got);
        for (int k = 0; k < VALUES; k++)
            assert_true(fabsf(got[k] - want[k]) < 2e-5f);
    }
    act_fixture_remove(dir);
    assert_int_equal(kernels_choose(NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_best),         cmocka_unit_test(test_by_name),
        cmocka_unit_test(test_no_such_name), cmocka_unit_test(test_products_of_bytes),
        cmocka_unit_test(test_products),     cmocka_unit_test(test_not_a_number),
        cmocka_unit_test(test_policy),
    };
    openblas_set_num_threads(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
