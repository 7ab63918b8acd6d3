// The product in 8 bits, by every kernel that runs here, of rows and weights that are zero, huge, tiny or
// no numbers.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/gemm_int8_twin.h"

static const float specials[][2] = {
    // of even, of odd places
    {0.0f, 0.0f},        {-0.0f, 0.0f},      {3.0f, 3.0f},
    {-3.0f, -3.0f},      {1e-40f, -1e-41f},  {FLT_MIN, FLT_MIN},
    {1e-36f, -1e-36f},   {FLT_MAX, FLT_MAX}, {-FLT_MAX, -FLT_MAX},
    {FLT_MAX, -FLT_MAX}, {1e30f, -1.0f},     {1.0f, 1.0f + FLT_EPSILON},
};
#define SPECIALS ((int)(sizeof specials / sizeof *specials))

// As the twin has it, which is where the true value is: within its bound, or both beyond what a
// float holds.
static void special_rows(const struct gemm_int8_kernel *k, struct gemm_random *r)
{
    for (int depth = 1; depth < 200; depth += 37) {
        struct int8_case c;
        int8_case_open(&c, k, r, SPECIALS, k->nr + 1, depth);
        c.finish = (struct gemm_finish){.bias = c.bias};
        for (int row = 0; row < c.rows; row++)
            for (int d = 0; d < depth; d++)
                c.x[(size_t)row * c.x_stride + (size_t)d] = specials[row][d % 2];
        int8_case_prepare(&c);
        float *y = gemm_values(r, (size_t)c.rows * c.y_stride, 0);
        gemm_int8_run(&c.g, &c.x8, 0, c.rows, 0, 2, y, c.y_stride, &c.finish);
        for (int row = 0; row < c.rows; row++)
            for (int o = 0; o < c.out; o++) {
                double exact, bound, v = (double)y[(size_t)row * c.y_stride + (size_t)o];
                assert_true(v == (double)int8_twin(&c, row, o, &exact, &bound));
                assert_true(int8_check_row(&c, row));
                if (isinf(v))
                    assert_true(fabs(exact) + bound > (double)FLT_MAX);
                else
                    assert_true(fabs(v - exact) <= bound);
                if (row < 2)
                    assert_true(v == (double)c.bias[o]);
            }
        free(y);
        int8_case_close(&c);
    }
}

static void test_special_rows(void **unused)
{
    (void)unused;
    int8_each_kernel(special_rows);
}

// A constant row is met to the last bits: its values are the ends of the range.
static void constant_rows(const struct gemm_int8_kernel *k, struct gemm_random *r)
{
    struct int8_case c;

    int8_case_open(&c, k, r, 9, 3, 77);
    for (int row = 0; row < c.rows; row++)
        for (int d = 0; d < c.depth; d++)
            c.x[(size_t)row * c.x_stride + (size_t)d] = (float)(row - 4) * 0.3f;
    int8_case_prepare(&c);
    for (int row = 0; row < c.rows; row++)
        for (int d = 0; d < c.depth; d++) {
            int q = c.x8.q[(size_t)row * c.x8.stride + (size_t)d] - c.x8.zero[row];
            assert_float_equal((float)q * c.x8.scale[row], (float)(row - 4) * 0.3f, 1e-6);
        }
    int8_case_close(&c);
}

static void test_constant_rows(void **unused)
{
    (void)unused;
    int8_each_kernel(constant_rows);
}

// What is not finite in a row makes all of it not a number, through every finish, and nothing
// else; in a column, that column.
static void not_finite(const struct gemm_int8_kernel *k, struct gemm_random *r)
{
    for (int n = 0; n < 60; n++) {
        struct int8_case c;
        int8_case_open(&c, k, r, k->mr + 3, k->nr + 2, gemm_between(r, 1, 150));
        int place = gemm_between(r, 0, c.depth - 1),
            column = gemm_between(r, 0, c.out - 1);
        c.x[1 * c.x_stride + (size_t)place] = n % 2 ? NAN : -NAN;
        c.x[3 * c.x_stride + (size_t)place] = n % 2 ? INFINITY : -INFINITY;
        c.w[(size_t)column * c.w_stride + (size_t)place] = n % 3 ? NAN : INFINITY;
        int8_case_prepare(&c);
        float *y = gemm_values(r, (size_t)c.rows * c.y_stride, 0);
        gemm_int8_run(&c.g, &c.x8, 0, c.rows, 0, 2, y, c.y_stride, &c.finish);
        for (int row = 0; row < c.rows; row++) {
            assert_true(int8_check_row(&c, row));
            for (int o = 0; o < c.out; o++)
                assert_int_equal(isnan(y[(size_t)row * c.y_stride + (size_t)o]) != 0,
                                 row == 1 || row == 3 || o == column);
        }
        free(y);
        int8_case_close(&c);
    }
}

static void test_not_finite(void **unused)
{
    (void)unused;
    int8_each_kernel(not_finite);
}

static void special_weights(const struct gemm_int8_kernel *k, struct gemm_random *r)
{
    static const float sizes[] = {0.0f, 1e-41f, FLT_MIN, 1e-36f, 1e30f, 1e36f};
    struct int8_case c;

    int8_case_open(&c, k, r, 5, 6, 50);
    c.finish = (struct gemm_finish){.f = ACTIVATION_NONE};
    for (int o = 0; o < c.out; o++)
        for (int d = 0; d < c.depth; d++)
            c.w[(size_t)o * c.w_stride + (size_t)d] *= sizes[o];
    int8_case_prepare(&c);
    assert_true(int8_case_products(&c, r));
    for (int o = 0; o < c.out; o++)
        assert_true(o < 4 || int8_check_column(&c, o));
    int8_case_close(&c);
}

static void test_special_weights(void **unused)
{
    (void)unused;
    int8_each_kernel(special_weights);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_special_rows),
        cmocka_unit_test(test_constant_rows),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_special_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
