// The product in 8 bits, by every kernel that runs here, against its twin (gemm_int8_twin.h) to the
// bit: sizes of every remainder, shares, the largest values; and how far it is from the product of the
// floats.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/gemm_int8_twin.h"
#include "tests/unit/slow.h"

static void check(const struct gemm_int8_kernel *k, struct gemm_random *r, int rows,
                  int out, int depth)
{
    if (!int8_case_random(k, r, rows, out, depth))
        fail();
}

// ---- which kernel -----------------------------------------------------------------------

static void facts(const struct gemm_int8_kernel *k, struct gemm_random *r)
{
    (void)r;
    assert_in_range(k->mr, 1, GEMM_MAX_MR);
    assert_in_range(k->nr, 1, GEMM_MAX_NR);
    assert_int_equal(k->nr % 4, 0);
    assert_in_range(k->weight_max, 1, INT8_MAX);
    assert_in_range(k->x_max, 1, UINT8_MAX);
    assert_string_equal(k->vnni ? k->name + strlen(k->name) - 5 : " vnni", " vnni");
    assert_memory_equal(k->name, cpu_isa_name(k->isa), strlen(cpu_isa_name(k->isa)));
    for (int depth = 1; depth < 100; depth += 7)
        for (int out = 1; out < 100; out += 9) {
            assert_int_equal(gemm_int8_bytes(k, depth, out) % GEMM_ALIGN, 0);
            assert_int_equal(gemm_int8_rows_bytes(out, depth) % GEMM_ALIGN, 0);
        }
}

static void test_kernels(void **unused)
{
    (void)unused;
    int8_each_kernel(facts);
    for (int i = 0; i < CPU_ISAS; i++) {
        enum cpu_isa isa = (enum cpu_isa)i;
        const struct gemm_int8_kernel *k = gemm_int8_kernel_of(isa);
        assert_true(!cpu_runs(isa) || (k && k->isa == isa && gemm_int8_runs(k)));
        if (!k)
            continue;
        assert_int_equal(k->vnni, cpu_runs_vnni(isa));
        cpu_use_vnni(false);
        assert_false(gemm_int8_kernel_of(isa)->vnni || cpu_uses_vnni(isa));
        cpu_use_vnni(true);
        assert_ptr_equal(gemm_int8_kernel_of(isa), k);
    }
    assert_null(gemm_int8_kernel_of(CPU_ISAS));
    assert_ptr_equal(gemm_int8_kernel(), gemm_int8_kernel_of(cpu_chosen()));
}

// The compiler's library looks for itself. It has no name for AVX-VNNI.
static void test_vnni_as_libgcc(void **unused)
{
    (void)unused;
#ifdef __x86_64__
    assert_int_equal(cpu_runs_vnni(CPU_AVX512),
                     cpu_runs(CPU_AVX512) && __builtin_cpu_supports("avx512vnni"));
    assert_true(cpu_runs(CPU_AVX2) || !cpu_runs_vnni(CPU_AVX2));
#else
    assert_false(cpu_runs_vnni(CPU_AVX2) || cpu_runs_vnni(CPU_AVX512));
#endif
    assert_false(cpu_runs_vnni(CPU_GENERIC) || cpu_runs_vnni(CPU_NEON));
}

// ---- sizes ------------------------------------------------------------------------------

// Each number of rows up to three tiles and each number of columns up to three panels.
static void edges(const struct gemm_int8_kernel *k, struct gemm_random *r)
{
    for (int rows = 1; rows <= 3 * k->mr; rows++)
        check(k, r, rows, gemm_between(r, 1, 3 * k->nr), gemm_between(r, 1, 90));
    for (int out = 1; out <= 3 * k->nr; out++)
        check(k, r, gemm_between(r, 1, 2 * k->mr), out, gemm_between(r, 1, 90));
    for (int depth = 1; depth <= 140; depth++)
        check(k, r, gemm_between(r, 1, k->mr), gemm_between(r, 1, k->nr), depth);
}

static void test_edges(void **unused)
{
    (void)unused;
    int8_each_kernel(edges);
}

static void sizes(const struct gemm_int8_kernel *k, struct gemm_random *r)
{
    static const int depths[] = {1, 3, 5, 511, 512, 513, 1025, 1536, 2049, 3200};

    for (int n = 0; n < REPEATS(120, 40); n++)
        check(k, r, gemm_between(r, 1, 130), gemm_between(r, 1, 80),
              gemm_between(r, 1, 300));
    for (size_t i = 0; i < sizeof depths / sizeof *depths; i++) {
        check(k, r, gemm_between(r, 1, 3 * k->mr), 1, depths[i]);
        check(k, r, gemm_between(r, 1, 3 * k->mr), 17, depths[i]);
        check(k, r, gemm_between(r, 1, 3 * k->mr), 2 * k->nr, depths[i]);
    }
    check(k, r, 1202, k->nr + 1, 290); // more rows than the second-level cache's share
    check(k, r, 197, 3, 3200);
}

static void test_sizes(void **unused)
{
    (void)unused;
    int8_each_kernel(sizes);
}

// The first columns of a packed matrix are one, too.
static void fewer_columns(const struct gemm_int8_kernel *k, struct gemm_random *r)
{
    struct int8_case c;

    int8_case_open(&c, k, r, 2 * k->mr + 1, 2 * k->nr + 3, 33);
    int8_case_prepare(&c);
    c.g.out = c.out = k->nr + 1;
    assert_true(int8_case_products(&c, r));
    int8_case_close(&c);
}

static void test_fewer_columns(void **unused)
{
    (void)unused;
    int8_each_kernel(fewer_columns);
}

// ---- the largest sums -------------------------------------------------------------------

// Weights as they meet in 16 bits: all alike, of one sign, of which each is half a step more than a
// whole number, of one size and any sign, alternating by pairs.
static float loud_weight(struct gemm_random *r, int kind, int d)
{
    float sign = gemm_next(r) % 2 ? 1.0f : -1.0f;

    switch (kind) {
    case 0:
        return -1.0f;
    case 1:
        return 1.0f - 0.02f * (float)(gemm_next(r) % 2);
    case 2:
        return ((float)(44 + gemm_next(r) % 3) + 0.5f) / 127.0f;
    case 3:
        return sign;
    default:
        return d % 4 < 2 ? 1.0f : -1.0f;
    }
}

static void loudest(const struct gemm_int8_kernel *k, struct gemm_random *r)
{
    for (int n = 0; n < REPEATS(60, 20); n++) {
        struct int8_case c;
        int8_case_open(&c, k, r, k->mr + 1, k->nr + 1,
                       n < 5 ? 3200 : gemm_between(r, 1, 200));
        for (int row = 0; row < c.rows; row++)
            for (int d = 0; d < c.depth; d++)
                c.x[(size_t)row * c.x_stride + (size_t)d] =
                    row % 3 ? 1.0f : (float)(d % 2);
        for (int o = 0; o < c.out; o++)
            for (int d = 0; d < c.depth; d++)
                c.w[(size_t)o * c.w_stride + (size_t)d] = loud_weight(r, n % 5, d);
        if (!int8_case_run(&c, r))
            fail();
        int8_case_close(&c);
    }
}

static void test_loudest(void **unused)
{
    (void)unused;
    int8_each_kernel(loudest);
}

// x8 all at their largest, and so are the sums of the panel's groups: `limit` in one weight or
// spread over all of a group. True: the sums are the twin's.
static bool full_panel(const struct gemm_int8_kernel *k, struct gemm_random *r, int limit)
{
    struct int8_case c;
    int8_case_open(&c, k, r, k->mr, k->nr, 512);
    c.finish = (struct gemm_finish){.f = ACTIVATION_NONE};
    int8_case_prepare(&c);
    memset(c.x8.q, k->x_max, (size_t)c.rows * c.x8.stride);
    for (int o = 0; o < c.out; o++)
        for (int d = c.g.sum[o] = 0; d < c.depth; d++) {
            int share = d % 4 % 2 + 2 * (d / 4 % 2), sign = o % 2 ? 1 : -1, w;
            if (k->quads == 0)
                w = k->weight_max;
            else if (d / 8 % 2)
                w = (limit + share) / 4;
            else
                w = share == 0 ? 127 : share == 3 ? limit - 127 : 0;
            c.g.panel[(size_t)(d / 4 * k->nr * 4 + o * 4 + d % 4)] = (int8_t)(sign * w);
            c.g.sum[o] += sign * w;
        }
    float *y = gemm_values(r, (size_t)c.rows * c.y_stride, 0);
    bool good = true;
    gemm_int8_run(&c.g, &c.x8, 0, c.rows, 0, 1, y, c.y_stride, &c.finish);
    for (int row = 0; row < c.rows; row++)
        for (int o = 0; o < c.out; o++) {
            double exact, bound;
            good = good && y[(size_t)row * c.y_stride + (size_t)o] ==
                               int8_twin(&c, row, o, &exact, &bound);
        }
    free(y);
    int8_case_close(&c);
    return good;
}

// The limit itself holds, and it is one: the next would be wrong.
static void limit(const struct gemm_int8_kernel *k, struct gemm_random *r)
{
    int most = INT16_MAX / k->x_max;

    assert_true(full_panel(k, r, most));
    if (k->quads > 0)
        assert_false(full_panel(k, r, most + 1));
}

static void test_limit(void **unused)
{
    (void)unused;
    int8_each_kernel(limit);
}

// ---- accuracy ---------------------------------------------------------------------------

static float normal(struct gemm_random *r)
{
    double u = ((double)gemm_next(r) + 0.5) / 2147483648.0;
    double v = (double)gemm_next(r) / 2147483648.0;

    return (float)(sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v));
}

enum rows_like { PLAIN, BEHIND_RELU, WITH_OUTLIERS };

static void fill_normal(struct int8_case *c, struct gemm_random *r, enum rows_like like)
{
    for (int row = 0; row < c->rows; row++)
        for (int d = 0; d < c->depth; d++) {
            float v = normal(r);
            v = like == BEHIND_RELU && v < 0.0f ? 0.0f : v;
            v = like == WITH_OUTLIERS && d % (c->depth / 4) == 7 ? 8.0f * v : v;
            c->x[(size_t)row * c->x_stride + (size_t)d] = v;
        }
    for (int o = 0; o < c->out; o++)
        for (int d = 0; d < c->depth; d++)
            c->w[(size_t)o * c->w_stride + (size_t)d] = normal(r);
}

// RMS of y's error as a share of y's.
static double relative_error(const struct gemm_int8_kernel *k, struct gemm_random *r,
                             int depth, enum rows_like like)
{
    struct int8_case c;
    double error = 0.0, size = 0.0;

    int8_case_open(&c, k, r, 32, 96, depth);
    c.finish = (struct gemm_finish){.f = ACTIVATION_NONE};
    fill_normal(&c, r, like);
    int8_case_prepare(&c);
    for (int row = 0; row < c.rows; row++)
        for (int o = 0; o < c.out; o++) {
            double exact, bound, y = (double)int8_twin(&c, row, o, &exact, &bound);
            error += (y - exact) * (y - exact);
            size += exact * exact;
        }
    int8_case_close(&c);
    return sqrt(error / size);
}

// Near what gemm_int8.h says: with so few columns it varies by a sixth.
static void accuracy(const struct gemm_int8_kernel *k, struct gemm_random *r)
{
    static const double percent[2][3][2] = {{{1.01, 1.18}, {0.82, 0.94}, {1.9, 2.2}},
                                            {{1.34, 1.60}, {1.05, 1.22}, {2.6, 3.1}}};
    static const int depths[] = {512, 3200};

    for (int like = PLAIN; like <= WITH_OUTLIERS; like++)
        for (int i = 0; i < 2; i++) {
            double e = 100.0 * relative_error(k, r, depths[i], (enum rows_like)like);
            assert_true(e < 1.25 * percent[k->quads > 0][like][i]);
            assert_true(e > 0.75 * percent[k->quads > 0][like][i]);
        }
}

static void test_accuracy(void **unused)
{
    (void)unused;
    int8_each_kernel(accuracy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels),       cmocka_unit_test(test_vnni_as_libgcc),
        cmocka_unit_test(test_edges),         cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_fewer_columns), cmocka_unit_test(test_loudest),
        cmocka_unit_test(test_limit),         cmocka_unit_test(test_accuracy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
