// exp, ReLU, GELU and layer norm with every instruction set that runs here, against libm
// in long double: every float of some ranges, random ones elsewhere, every length,
// whatever is not finite.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "policy/kernels/activation.h"
#include "policy/kernels/attention.h"
#include "policy/kernels/layer_norm.h"

static uint64_t rng = 1;

static uint32_t next(void)
{
    rng = rng * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(rng >> 33);
}

static int between(int low, int high)
{
    return low + (int)(next() % (uint32_t)(high - low + 1));
}

static float value(void) // in [-1, 1)
{
    return (float)(next() & 0xffffff) / 8388608.0f - 1.0f;
}

static float of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

#define EACH_ISA(isa)                                           \
    for (enum cpu_isa isa = CPU_GENERIC; isa < CPU_ISAS; isa++) \
        if (cpu_runs(isa))

// ---- exp ------------------------------------------------------------------------------

#define AT_ONCE 4093 // not a multiple of any vector

struct ulps {
    double worst[CPU_ISAS];
    float where[CPU_ISAS];
};

static double ulps_off(float got, long double want)
{
    return (double)(fabsl((long double)got - want) / ldexpl(1.0L, ilogbl(want) - 23));
}

// x: n of them, from -87.33 to 0
static void measure_exp(const float *x, int n, struct ulps *u)
{
    static long double want[AT_ONCE];
    float y[AT_ONCE];

    for (int i = 0; i < n; i++)
        want[i] = expl((long double)x[i]);
    EACH_ISA(isa)
    {
        attention_kernel_of(isa)->exp_nonpositive(x, y, n);
        for (int i = 0; i < n; i++) {
            double off = ulps_off(y[i], want[i]);
            if (!(off <= u->worst[isa])) {
                u->worst[isa] = off;
                u->where[isa] = x[i];
            }
        }
    }
}

static void check_ulps(const struct ulps *u, const char *what)
{
    EACH_ISA(isa)
    {
        print_message("exp, %-22s %-8s at most %.3f ulp off, at %.9g\n", what,
                      cpu_isa_name(isa), u->worst[isa], (double)u->where[isa]);
        assert_true(u->worst[isa] <= 2.0);
    }
}

static void every_float(float from, float to, const char *what)
{
    struct ulps u = {0};
    float x[AT_ONCE];
    int n = 0;
    for (uint32_t b = bits_of(to); b <= bits_of(from);
         b++) { // negative: greater is lower
        x[n++] = of_bits(b);
        if (n == AT_ONCE || b == bits_of(from)) {
            measure_exp(x, n, &u);
            n = 0;
        }
    }
    check_ulps(&u, what);
}

static void test_exp_every_float(void **unused)
{
    (void)unused;
    every_float(-1.05f, -1.0f, "[-1.05, -1]");
    every_float(-0.36f, -0.34f, "around -ln(2)/2"); // where n changes
    every_float(-0.7f, -0.69f, "around -ln(2)");
    every_float(-1.041f, -1.038f, "around -3 ln(2)/2");
    every_float(-20.5f, -20.0f, "[-20.5, -20]");
    every_float(-87.33f, -86.5f, "[-87.33, -86.5]");
}

static void test_exp_random(void **unused)
{
    (void)unused;
    struct ulps u = {0};
    float x[AT_ONCE];
    for (int round = 0; round < 200; round++) {
        for (int i = 0; i < AT_ONCE; i++) // any exponent, or evenly
            x[i] = round % 2 ? -87.33f * fabsf(value())
                             : -of_bits(next() % (bits_of(87.33f) + 1));
        measure_exp(x, AT_ONCE, &u);
    }
    check_ulps(&u, "all over");
}

static void test_exp_ends(void **unused)
{
    (void)unused;
    EACH_ISA(isa)
    {
        const struct attention_kernel *k = attention_kernel_of(isa);
        float x[] = {0.0f,
                     -0.0f,
                     -87.33f,
                     -87.4f,
                     -103.0f,
                     -1e4f,
                     -1e30f,
                     -3.4e38f,
                     -INFINITY,
                     of_bits(0x80000001),
                     of_bits(0x80800000)};
        float y[sizeof x / sizeof *x];
        k->exp_nonpositive(x, y, (int)(sizeof x / sizeof *x));
        assert_true(y[0] == 1.0f && y[1] == 1.0f && y[9] == 1.0f && y[10] == 1.0f);
        for (int i = 2; i <= 8; i++)
            assert_true(y[i] >= 0.0f && y[i] < 1.2e-38f);
        for (int i = 0; i < 1000; i++) { // far below zero: never anything but tiny
            float far = -of_bits(bits_of(88.0f) + next() % (0x7f800000 - bits_of(88.0f)));
            k->exp_nonpositive(&far, y, 1);
            assert_true(y[0] >= 0.0f && y[0] < 1.2e-38f);
        }
        for (int i = 0; i < 1000; i++) { // NaNs with every kind of payload
            float nan = of_bits((next() << 31) | 0x7f800000 | (1 + next() % 0x7fffff));
            k->exp_nonpositive(&nan, y, 1);
            assert_true(isnan(y[0]));
        }
    }
}

static void test_exp_lengths(void **unused)
{
    (void)unused;
    EACH_ISA(isa)
    {
        const struct attention_kernel *k = attention_kernel_of(isa);
        for (int n = 0; n < 70; n++) {
            float *x = malloc((size_t)(n + 1) * sizeof *x), y[71], one;
            for (int i = 0; i < n; i++)
                x[i] = -40.0f * fabsf(value());
            y[n] = 7.0f;
            k->exp_nonpositive(x, y, n);
            assert_true(y[n] == 7.0f);
            for (int i = 0; i < n; i++) { // the same bits wherever it lies
                k->exp_nonpositive(x + i, &one, 1);
                assert_true(one == y[i]);
            }
            k->exp_nonpositive(x, x, n);
            assert_memory_equal(x, y, (size_t)n * sizeof *x);
            free(x);
        }
    }
}

// ---- activations ----------------------------------------------------------------------

static double gelu_twin(double x)
{
    return x / 2 * erfc(-x / sqrt(2.0));
}

static void test_gelu(void **unused)
{
    (void)unused;
    EACH_ISA(isa)
    {
        double worst = 0.0;
        for (int i = -200000; i <= 200000; i += 8) {
            float x[8], y[8];
            for (int k = 0; k < 8; k++)
                x[k] = y[k] = 0.0001f * (float)(i + k);
            activation_kernel_of(isa)->gelu(y, 8);
            for (int k = 0; k < 8; k++) {
                double off = fabs((double)y[k] - gelu_twin((double)x[k]));
                off /= fmax(1.0, fabs((double)x[k]));
                worst = off <= worst ? worst : off;
            }
        }
        print_message("gelu, %-8s worst error %.2e\n", cpu_isa_name(isa), worst);
        assert_true(worst < 2e-7);
    }
}

static void test_gelu_ends(void **unused)
{
    (void)unused;
    EACH_ISA(isa)
    {
        float x[] = {INFINITY, -INFINITY, 1e30f, -1e30f, -0.0f, -14.0f, -100.0f};
        activation_kernel_of(isa)->gelu(x, (int)(sizeof x / sizeof *x));
        assert_true(x[0] == INFINITY && !isfinite(x[1]) && x[2] == 1e30f && x[4] == 0.0f);
        assert_true(fabsf(x[3]) < 1e-7f && fabsf(x[5]) < 1e-7f && fabsf(x[6]) < 1e-7f);
        for (int i = 0; i < 1000; i++) {
            float nan = of_bits((next() << 31) | 0x7f800000 | (1 + next() % 0x7fffff));
            float again = nan;
            activation_kernel_of(isa)->gelu(&nan, 1);
            activation_kernel_of(isa)->relu(&again, 1);
            assert_true(isnan(nan) && isnan(again));
        }
    }
}

static void check_apply(enum activation f, int rows, int cols, int stride)
{
    size_t n = (size_t)(rows * stride);
    float *x = malloc(n * sizeof *x), *y = malloc(n * sizeof *y);
    for (size_t i = 0; i < n; i++)
        x[i] = y[i] = 4.0f * value();
    activation_apply(f, y, rows, cols, stride);
    for (size_t i = 0; i < n; i++) {
        double v = (double)x[i], want = v;
        if ((int)i % stride < cols)
            want = f == ACTIVATION_RELU   ? fmax(v, 0.0)
                   : f == ACTIVATION_GELU ? gelu_twin(v)
                                          : v;
        assert_true(fabs((double)y[i] - want) <= (f == ACTIVATION_GELU ? 4e-7 : 0.0));
    }
    free(x);
    free(y);
}

static void test_apply(void **unused)
{
    (void)unused;
    enum cpu_isa before = cpu_chosen();
    EACH_ISA(isa)
    {
        assert_int_equal(cpu_choose(isa), 0);
        for (int cols = 1; cols < 70; cols++)
            for (int f = ACTIVATION_NONE; f <= ACTIVATION_GELU; f++)
                check_apply((enum activation)f, 3, cols, cols + between(0, 5));
    }
    assert_int_equal(cpu_choose(before), 0);
}

// ---- layer norm -----------------------------------------------------------------------

// What float32 can do: the mean is off by an ulp or so of the greatest element, and that
// counts by how it compares with the spread.
static void check_row(const struct layer_norm *n, const float *x, const float *y)
{
    long double mean = 0.0L, var = 0.0L, most = 0.0L;
    for (int i = 0; i < n->dim; i++) {
        mean += (long double)x[i] / n->dim;
        most = fmaxl(most, fabsl((long double)x[i]));
    }
    for (int i = 0; i < n->dim; i++)
        var += ((long double)x[i] - mean) * ((long double)x[i] - mean) / n->dim;
    long double scale = 1.0L / sqrtl(var + 1e-5L);
    long double tolerance = 4e-7L * (1.0L + most * scale * 2.0L);
    for (int i = 0; i < n->dim; i++) {
        long double part = ((long double)x[i] - mean) * scale;
        long double want = part * (long double)n->weight[i] + (long double)n->bias[i];
        long double off = fabsl((long double)y[i] - want);
        if (!(off <= tolerance * (1.0L + fabsl(part))))
            fail_msg("dim %d: off by %.2Lg, not %.2Lg", n->dim, off, tolerance);
    }
}

static void check_norm(enum cpu_isa isa, int dim, int rows, float mean, float spread)
{
    size_t count = (size_t)(dim * rows), bytes = count * sizeof(float);
    struct layer_norm n = {dim, malloc((size_t)dim * sizeof(float)),
                           malloc((size_t)dim * sizeof(float))};
    float *x = malloc(bytes), *y = malloc(bytes);
    for (int i = 0; i < dim; i++) {
        n.weight[i] = value();
        n.bias[i] = value();
    }
    for (size_t i = 0; i < count; i++)
        x[i] = mean + spread * value();
    layer_norm_kernel_of(isa)->rows(&n, x, rows, y);
    for (int r = 0; r < rows; r++)
        check_row(&n, x + r * dim, y + r * dim);
    layer_norm_kernel_of(isa)->rows(&n, x, rows, x); // in place, and the same
    assert_memory_equal(x, y, bytes);
    free(n.weight);
    free(n.bias);
    free(x);
    free(y);
}

static void test_layer_norm(void **unused)
{
    (void)unused;
    EACH_ISA(isa)
    {
        for (int dim = 1; dim <= 200; dim++)
            check_norm(isa, dim, between(0, 3), dim % 3 ? 0.0f : 100.0f, 3.0f);
        check_norm(isa, 512, 9, 0.3f, 1.0f);
        check_norm(isa, 256, 9, -1000.0f, 0.5f);
        check_norm(isa, 1023, 2, 0.0f, 1e-4f);
        check_norm(isa, 64, 2, 5.0f, 0.0f); // no spread at all
    }
}

static void test_layer_norm_not_finite(void **unused)
{
    (void)unused;
    float one[40], x[3 * 40], y[3 * 40];
    EACH_ISA(isa)
    {
        struct layer_norm n = {40, one, one};
        for (int bad = 0; bad < 40; bad++)
            for (int kind = 0; kind < 3; kind++) {
                for (int i = 0; i < 120; i++)
                    x[i] = value();
                for (int i = 0; i < 40; i++)
                    one[i] = 1.0f;
                x[40 + bad] = kind == 0 ? NAN : kind == 1 ? INFINITY : -INFINITY;
                layer_norm_kernel_of(isa)->rows(&n, x, 3, y);
                for (int i = 0; i < 120; i++) // the whole row, and no other
                    assert_true(isnan(y[i]) == (i / 40 == 1));
            }
    }
}

static void test_layer_norm_workers(void **unused)
{
    (void)unused;
    enum cpu_isa before = cpu_chosen();
    static float x[37 * 50], one[37 * 50], y[37 * 50], weight[50], bias[50];
    struct layer_norm n = {50, weight, bias};
    for (int i = 0; i < 37 * 50; i++)
        x[i] = value();
    for (int i = 0; i < 50; i++)
        weight[i] = bias[i] = value();
    EACH_ISA(isa)
    {
        assert_int_equal(cpu_choose(isa), 0);
        layer_norm_kernel_of(isa)->rows(&n, x, 37, one);
        for (int workers = 1; workers <= 40; workers += 3) {
            struct pool *p;
            assert_int_equal(pool_start_serial(&p, workers), 0);
            memset(y, 0xff, sizeof y);
            layer_norm_run(p, &n, x, 37, y);
            pool_stop(p);
            assert_memory_equal(one, y, sizeof y);
        }
    }
    assert_int_equal(cpu_choose(before), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exp_every_float),
        cmocka_unit_test(test_exp_random),
        cmocka_unit_test(test_exp_ends),
        cmocka_unit_test(test_exp_lengths),
        cmocka_unit_test(test_gelu),
        cmocka_unit_test(test_gelu_ends),
        cmocka_unit_test(test_apply),
        cmocka_unit_test(test_layer_norm),
        cmocka_unit_test(test_layer_norm_not_finite),
        cmocka_unit_test(test_layer_norm_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
