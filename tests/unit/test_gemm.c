// The packed product, by every instruction set that runs here, against its twin (gemm_twin.h) to
// the bit: rows fewer than a tile and of every remainder, runs of every kind, columns that end
// inside a panel, every finish, shares.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "policy/kernels/kernels.h"
#include "tests/unit/gemm_twin.h"

static const struct gemm_kernel *kernel_here(int isa)
{
    return cpu_runs((enum cpu_isa)isa) ? gemm_kernel_of((enum cpu_isa)isa) : NULL;
}

static void check(const struct gemm_kernel *k, struct gemm_random *r, int rows, int out,
                  int runs, int length)
{
    if (!gemm_case_random(k, r, rows, out, runs, length))
        fail();
}

static void test_kernels(void **unused)
{
    (void)unused;
    for (int i = 0; i < CPU_ISAS; i++) {
        const struct gemm_kernel *k = kernel_here(i);
        assert_true(!cpu_runs((enum cpu_isa)i) || k);
        if (!k)
            continue;
        assert_int_equal((int)k->isa, i);
        assert_in_range(k->mr, 1, GEMM_MAX_MR);
        assert_in_range(k->nr, 1, GEMM_MAX_NR);
        assert_int_equal(k->nr % 4, 0);
        assert_int_equal(gemm_panels(k, k->nr), 1);
        assert_int_equal(gemm_panels(k, k->nr + 1), 2);
        assert_int_equal(gemm_floats(k, 7, k->nr + 1), 2 * 7 * k->nr);
    }
    assert_null(gemm_kernel_of(CPU_ISAS));
}

// Each number of rows up to three tiles and each number of columns up to three panels.
static void test_edges(void **unused)
{
    (void)unused;
    struct gemm_random r = {1};
    for (int i = 0; i < CPU_ISAS; i++) {
        const struct gemm_kernel *k = kernel_here(i);
        if (!k)
            continue;
        for (int rows = 1; rows <= 3 * k->mr; rows++)
            check(k, &r, rows, gemm_between(&r, 1, 3 * k->nr), 1,
                  gemm_between(&r, 1, 40));
        for (int out = 1; out <= 3 * k->nr; out++)
            check(k, &r, gemm_between(&r, 1, 2 * k->mr), out, 1, gemm_between(&r, 1, 40));
    }
}

static void test_random(void **unused)
{
    (void)unused;
    struct gemm_random r = {2};
    for (int i = 0; i < CPU_ISAS; i++) {
        const struct gemm_kernel *k = kernel_here(i);
        for (int n = 0; k && n < 150; n++)
            check(k, &r, gemm_between(&r, 1, 130), gemm_between(&r, 1, 80),
                  gemm_between(&r, 1, 7), gemm_between(&r, 1, 60));
    }
}

// Deeper than what a pass takes, by one run, by some that end inside it, and by what the layers
// have: 7 runs of 21, 3 of 64 times a power of two.
static void test_deep(void **unused)
{
    (void)unused;
    const int runs[][2] = {{1, 255}, {1, 256},  {1, 257},  {1, 511}, {1, 513}, {1, 1100},
                           {9, 63},  {5, 256},  {3, 300},  {7, 21},  {3, 192}, {3, 384},
                           {3, 768}, {3, 1536}, {1, 3200}, {2, 777}, {300, 1}, {40, 7}};
    struct gemm_random r = {3};
    for (int i = 0; i < CPU_ISAS; i++) {
        const struct gemm_kernel *k = kernel_here(i);
        for (size_t n = 0; k && n < sizeof runs / sizeof *runs; n++)
            check(k, &r, gemm_between(&r, 1, 3 * k->mr), gemm_between(&r, 1, 2 * k->nr),
                  runs[n][0], runs[n][1]);
    }
}

// Blocks of rows: more than the second-level cache's share.
static void test_blocks(void **unused)
{
    (void)unused;
    struct gemm_random r = {4};
    for (int i = 0; i < CPU_ISAS; i++) {
        const struct gemm_kernel *k = kernel_here(i);
        if (!k)
            continue;
        check(k, &r, 1202, 2 * k->nr + 1, 1, 290);
        check(k, &r, 302, k->nr, 3, 300);
        check(k, &r, 197, 3, 1, 1700);
    }
}

// The first columns of a packed matrix are one, too.
static void test_fewer_columns(void **unused)
{
    (void)unused;
    struct gemm_random r = {5};
    for (int i = 0; i < CPU_ISAS; i++) {
        const struct gemm_kernel *k = kernel_here(i);
        if (!k)
            continue;
        struct gemm_case c;
        gemm_case_open(&c, k, &r, 2 * k->mr + 1, 2 * k->nr + 3, 1, 33);
        struct gemm g = gemm_case_pack(&c);
        float *y = gemm_values(&r, (size_t)c.rows * c.y_stride, 0);
        memcpy(y, c.y0, (size_t)c.rows * c.y_stride * sizeof *y);
        g.out = c.out = k->nr + 1;
        gemm_run(&g, &c.x, 0, c.rows, 0, 2, y, c.y_stride, &c.finish);
        assert_true(gemm_case_check(&c, y, 0, c.rows));
        free(y);
        free(g.panel);
        gemm_case_close(&c);
    }
}

// What gemm_terms is to give, value by value: each term a sum of its own.
static float terms_twin(const struct gemm_kernel *k, const struct gemm_term *t, int terms,
                        size_t at, int column, const float *old)
{
    float all = old ? *old : 0.0f;

    for (int i = 0; i < terms; i++) {
        float sum = 0.0f;
        for (int d = 0; d < t[i].depth; d++) {
            float x = t[i].x[at + (size_t)d], w = t[i].panel[d * k->nr + column];
            sum = k->isa == CPU_GENERIC ? sum + x * w : fmaf(x, w, sum);
        }
        all = i > 0 || old ? sum + all : sum;
    }
    return all;
}

static void check_terms(const struct gemm_kernel *k, struct gemm_random *r, int rows,
                        int columns, bool accumulate)
{
    int terms = gemm_between(r, 1, 5), y_stride = columns + gemm_between(r, 0, 9);
    size_t row = (size_t)gemm_between(r, 64, 80),
           floats = (size_t)rows * (size_t)y_stride;
    struct gemm_term term[5];
    float *x[5], *w[5], *y = gemm_values(r, floats, 0), *old = gemm_values(r, floats, 0);

    memcpy(y, old, floats * sizeof *y);
    for (int i = 0; i < terms; i++) {
        x[i] = gemm_values(r, (size_t)rows * row, 0);
        w[i] = gemm_values(r, 64 * (size_t)k->nr, 0);
        term[i] = (struct gemm_term){x[i], gemm_between(r, 1, 64), w[i], w[i]};
    }
    gemm_terms(k, term, terms, row, rows, columns, y, (size_t)y_stride, accumulate);
    for (int n = 0; n < rows; n++)
        for (int c = 0; c < y_stride; c++) {
            float *o = old + n * y_stride + c, want = *o;
            if (c < columns)
                want =
                    terms_twin(k, term, terms, (size_t)n * row, c, accumulate ? o : NULL);
            assert_true(y[n * y_stride + c] == want);
        }
    for (int i = 0; i < terms; i++) {
        free(x[i]);
        free(w[i]);
    }
    free(y);
    free(old);
}

// Each number of rows, each of columns, added to y or not; and by a kernel without such a function.
static void test_terms(void **unused)
{
    (void)unused;
    struct gemm_random r = {7};
    for (int i = 0; i < 2 * CPU_ISAS; i++) {
        const struct gemm_kernel *here = kernel_here(i / 2);
        if (!here)
            continue;
        struct gemm_kernel k = *here;
        assert_non_null(k.terms);
        k.terms = i % 2 ? NULL : k.terms;
        for (int n = 1; n <= 3 * k.mr; n++) {
            check_terms(&k, &r, n, k.nr, n % 2);
            check_terms(&k, &r, n, gemm_between(&r, 1, k.nr), n % 2);
        }
        for (int columns = 1; columns <= k.nr; columns++)
            check_terms(&k, &r, gemm_between(&r, 1, 2 * k.mr), columns, columns % 2);
    }
}

// What is not a number in a row stays that in all of the row, and nowhere else; infinity, too.
static void test_not_a_number(void **unused)
{
    (void)unused;
    struct gemm_random r = {6};
    for (int i = 0; i < 3 * CPU_ISAS; i++) {
        const struct gemm_kernel *k = kernel_here(i / 3);
        if (!k)
            continue;
        struct gemm_case c;
        gemm_case_open(&c, k, &r, k->mr + 2, k->nr + 1, 1, 300);
        c.finish = (struct gemm_finish){.bias = c.bias, .f = (enum activation)(i % 3)};
        struct gemm g = gemm_case_pack(&c);
        float *y = gemm_values(&r, (size_t)c.rows * c.y_stride, 0);
        c.x0[1 * c.x.row + 299] = NAN;
        c.x0[2 * c.x.row + 0] = -INFINITY;
        gemm_run(&g, &c.x, 0, c.rows, 0, 2, y, c.y_stride, &c.finish);
        for (int row = 0; row < c.rows; row++)
            for (int o = 0; o < c.out; o++) {
                float v = y[(size_t)row * c.y_stride + (size_t)o],
                      w = c.w[(size_t)o * c.w_stride];
                assert_int_equal(isnan(v) != 0, row == 1 || (row == 2 && w == 0.0f));
                if (row == 2 && w < 0.0f)
                    assert_true(isinf(v) && v > 0.0f);
            }
        free(y);
        free(g.panel);
        gemm_case_close(&c);
    }
}

// ---- cpu ------------------------------------------------------------------------------

static void test_cpu(void **unused)
{
    (void)unused;
    enum cpu_isa best = cpu_best();
    assert_int_equal(cpu_chosen(), best);
    assert_true(cpu_runs(CPU_GENERIC) && cpu_runs(best));
    for (int i = 0; i < CPU_ISAS; i++) {
        enum cpu_isa isa = (enum cpu_isa)i;
        assert_int_equal(cpu_isa_of(cpu_isa_name(isa)), isa);
        assert_int_equal(cpu_choose(isa), cpu_runs(isa) ? 0 : -ENOTSUP);
        if (cpu_runs(isa) && !kernels_blas())
            assert_ptr_equal(gemm_kernel(), gemm_kernel_of(isa));
        assert_int_equal(cpu_chosen() == isa, cpu_runs(isa));
    }
    assert_int_equal(cpu_isa_of("sse"), CPU_ISAS);
    assert_int_equal(cpu_isa_of(""), CPU_ISAS);
    assert_string_equal(cpu_isa_name(CPU_ISAS), "none");
    assert_int_equal(cpu_choose(CPU_ISAS), -ENOTSUP);
    assert_int_equal(cpu_choose(best), 0);
}

// The compiler's library looks for itself.
static void test_cpu_as_libgcc(void **unused)
{
    (void)unused;
#ifdef __x86_64__
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    bool avx512 =
        __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    assert_int_equal(cpu_runs(CPU_AVX2), avx2);
    assert_int_equal(cpu_runs(CPU_AVX512), avx2 && avx512);
    assert_false(cpu_runs(CPU_NEON));
#else
    assert_false(cpu_runs(CPU_AVX2) || cpu_runs(CPU_AVX512));
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cpu),          cmocka_unit_test(test_cpu_as_libgcc),
        cmocka_unit_test(test_kernels),      cmocka_unit_test(test_edges),
        cmocka_unit_test(test_random),       cmocka_unit_test(test_deep),
        cmocka_unit_test(test_blocks),       cmocka_unit_test(test_fewer_columns),
        cmocka_unit_test(test_not_a_number), cmocka_unit_test(test_terms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
