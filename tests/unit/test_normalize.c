// normalize: each mode of each era against LeRobot's own order of operations in float32, to the
// bit, and against the formula in double; and every statistic that must be refused.
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "policy/normalize.h"

#define N 6

static const float low[N] = {-3.25f, 0.1f, 1e-4f, -120.5f, 7.0f, 0.0f};
static const float high[N] = {2.0f,   0.7f, 3e-4f,
                              99.25f, 7.0f, 1e-9f}; // [4]: a joint at rest
static const float mean[N] = {0.5f, -1.0f, 100.0f, 0.0f, 7.0f, 1e-3f};
static const float std[N] = {1.5f, 0.01f, 33.0f, 1e-7f, 0.0f, 2.0f};

static struct norm_stats all_stats(void)
{
    return (struct norm_stats){N, mean, std, low, high, low, low, high, high};
}

// LeRobot's expressions, term by term.
static float twin_forward(enum norm_mode m, bool legacy, float eps, int i, float x)
{
    float r = high[i] - low[i];

    if (m == NORM_IDENTITY)
        return x;
    if (m == NORM_MEAN_STD)
        return (x - mean[i]) / (std[i] + eps);
    if (legacy) {
        float y = (x - low[i]) / (high[i] - low[i] + eps);

        return y * 2.0f - 1.0f;
    }
    if (r == 0.0f)
        r = eps;
    return 2.0f * (x - low[i]) / r - 1.0f;
}

static float twin_back(enum norm_mode m, bool legacy, float eps, int i, float y)
{
    float r = high[i] - low[i];

    if (m == NORM_IDENTITY)
        return y;
    if (m == NORM_MEAN_STD)
        return y * std[i] + mean[i];
    if (!legacy && r == 0.0f)
        r = eps;
    if (m == NORM_MIN_MAX)
        return (y + 1.0f) / 2.0f * r + low[i];
    return (y + 1.0f) * r / 2.0f + low[i];
}

static bool same_bits(float a, float b)
{
    return a == b || (isnan(a) && isnan(b)); // +0 and -0 are the same answer
}

static void check_mode(enum norm_mode mode, bool legacy, double eps)
{
    struct norm_stats s = all_stats();
    struct policy_error err = {""};
    struct norm m;

    assert_int_equal(norm_build(&m, "f", mode, N, &s, eps, legacy, &err), 0);
    assert_int_equal(m.n, N);
    assert_int_equal(m.mode, mode);
    for (int k = -50; k <= 50; k++) {
        float x[2][N], y[2][N], back[2][N];

        for (int i = 0; i < N; i++) {
            x[0][i] = low[i] + (float)k * 0.173f;
            x[1][i] = (float)k * 1.7e-3f;
        }
        norm_apply(&m, &x[0][0], &y[0][0], 2);
        norm_invert(&m, &x[0][0], &back[0][0], 2);
        for (int r = 0; r < 2; r++)
            for (int i = 0; i < N; i++) {
                float want = twin_forward(mode, legacy, (float)eps, i, x[r][i]);
                float wback = twin_back(mode, legacy, (float)eps, i, x[r][i]);

                if (!same_bits(y[r][i], want) || !same_bits(back[r][i], wback))
                    fail_msg("%s legacy %d value %d of %a: %a not %a, back %a not %a",
                             norm_mode_name(mode), legacy, i, (double)x[r][i],
                             (double)y[r][i], (double)want, (double)back[r][i],
                             (double)wback);
            }
        norm_apply(&m, &x[0][0], &x[0][0], 2); // in place
        assert_memory_equal(x, y, sizeof x);
    }
    norm_free(&m);
    assert_null(m.sub);
    norm_free(&m);
}

static void test_modes(void **state)
{
    (void)state;
    for (int mode = NORM_IDENTITY; mode <= NORM_QUANTILE10; mode++) {
        check_mode((enum norm_mode)mode, false, 1e-8);
        check_mode((enum norm_mode)mode, false, 1e-3);
        if (mode <= NORM_MIN_MAX)
            check_mode((enum norm_mode)mode, true, 1e-8);
    }
}

// MEAN_STD has the same bits in both eras: a promise of the project, not of the formula.
static void test_eras_agree(void **state)
{
    struct norm_stats s = all_stats();
    struct policy_error err;
    struct norm a, b;

    (void)state;
    assert_int_equal(norm_build(&a, "f", NORM_MEAN_STD, N, &s, 1e-8, false, &err), 0);
    assert_int_equal(norm_build(&b, "f", NORM_MEAN_STD, N, &s, 1e-8, true, &err), 0);
    assert_memory_equal(a.sub, b.sub, 8 * N * sizeof(float));
    norm_free(&b);
    assert_int_equal(norm_build(&b, "f", NORM_MIN_MAX, N, &s, 1e-8, true, &err), 0);
    norm_free(&a);
    assert_int_equal(norm_build(&a, "f", NORM_MIN_MAX, N, &s, 1e-8, false, &err), 0);
    // The old era divides by 1e-8 more; it shows where the range is small.
    assert_true(a.div[2] != b.div[2] && a.div[5] != b.div[5]);
    assert_true(a.range[4] == 1e-8f && b.range[4] == 0.0f);
    norm_free(&a);
    norm_free(&b);
}

// There and back in double: the pair is an inverse to rounding.
static void test_inverse(void **state)
{
    static const float x[] = {-2.0f, 0.0f, 0.25f, 5.5f};
    static const float lo[] = {-4, -4, -4, -4}, hi[] = {6, 6, 6, 6};
    struct norm_stats s = {4, lo, hi, lo, hi, lo, lo, hi, hi}; // std 6
    struct policy_error err;

    (void)state;
    for (int mode = NORM_IDENTITY; mode <= NORM_QUANTILE10; mode++) {
        float y[4], back[4];
        struct norm m;

        assert_int_equal(
            norm_build(&m, "f", (enum norm_mode)mode, 4, &s, 1e-8, false, &err), 0);
        norm_apply(&m, x, y, 1);
        norm_invert(&m, y, back, 1);
        for (int i = 0; i < 4; i++) {
            double want = mode == NORM_IDENTITY   ? x[i]
                          : mode == NORM_MEAN_STD ? (x[i] + 4.0) / 6.0
                                                  : 2.0 * (x[i] + 4.0) / 10.0 - 1.0;

            assert_true(fabs(y[i] - want) < 1e-6);
            assert_true(fabsf(back[i] - x[i]) < 2e-6f);
        }
        norm_free(&m);
    }
}

enum { MEAN, STD, MIN, MAX, Q01, Q10, Q90, Q99 };

static const float **slot(struct norm_stats *s, int which)
{
    const float **at[] = {&s->mean, &s->std, &s->min, &s->max,
                          &s->q01,  &s->q10, &s->q90, &s->q99};

    return at[which];
}

static void refuse_one(enum norm_mode mode, const struct norm_stats *s, int n, double eps,
                       const char *says)
{
    struct policy_error err = {""};
    struct norm m;
    int r = norm_build(&m, "observation.state", mode, n, s, eps, false, &err);

    if (r != -EINVAL || !strstr(err.text, says) || !strstr(err.text, "observation.state"))
        fail_msg("%s: %d '%s', expected '%s'", norm_mode_name(mode), r, err.text, says);
    assert_null(m.sub);
    assert_int_equal(m.n, 0);
}

static void test_refused(void **state)
{
    static const struct {
        enum norm_mode mode;
        int first, second;
        const char *first_name, *second_name;
    } modes[] = {{NORM_MEAN_STD, MEAN, STD, "statistic mean", "statistic std"},
                 {NORM_MIN_MAX, MIN, MAX, "statistic min", "statistic max"},
                 {NORM_QUANTILES, Q01, Q99, "statistic q01", "statistic q99"},
                 {NORM_QUANTILE10, Q10, Q90, "statistic q10", "statistic q90"}};
    static const float bad[] = {NAN, INFINITY, -INFINITY};

    (void)state;
    for (size_t k = 0; k < 4; k++) {
        for (int second = 0; second <= 1; second++) {
            int which = second ? modes[k].second : modes[k].first;
            const char *name = second ? modes[k].second_name : modes[k].first_name;
            struct norm_stats s = all_stats();

            *slot(&s, which) = NULL;
            refuse_one(modes[k].mode, &s, N, 1e-8, name);
            for (size_t b = 0; b < 3; b++) {
                float copy[N];

                s = all_stats();
                memcpy(copy, *slot(&s, which), sizeof copy);
                copy[3] = bad[b];
                *slot(&s, which) = copy;
                refuse_one(modes[k].mode, &s, N, 1e-8, name);
                refuse_one(modes[k].mode, &s, N, 1e-8, "not finite at index 3");
            }
        }
        struct norm_stats s = all_stats();
        const float negative[N] = {1, 1, 1, 1, 1, -1e-3f},
                    least[N] = {0, 0, 0, -200, 0, 0};

        refuse_one(modes[k].mode, &s, N - 1, 1e-8, "have 6 values, the feature has 5");
        refuse_one(modes[k].mode, NULL, N, 1e-8, "is missing");
        s.std = negative;
        s.max = s.q99 = s.q90 = least;
        refuse_one(modes[k].mode, &s, N, 1e-8,
                   modes[k].mode == NORM_MEAN_STD ? "negative at index 5" : "is below");
    }
}

static void test_refused_numbers(void **state)
{
    static const float wide_low[N] = {-3e38f}, wide_high[N] = {3e38f};
    struct norm_stats s = all_stats();

    (void)state;
    refuse_one(NORM_MEAN_STD, &s, N, 0.0,
               "nothing to divide by at index 4"); // std 0, eps 0
    refuse_one(NORM_MIN_MAX, &s, N, 0.0, "nothing to divide by at index 4");
    refuse_one(NORM_MEAN_STD, &s, N, -1e-8, "eps");
    refuse_one(NORM_MEAN_STD, &s, N, NAN, "eps");
    refuse_one(NORM_MEAN_STD, &s, N, INFINITY, "eps");
    refuse_one(NORM_MEAN_STD, &s, 0, 1e-8, "no values");
    s.min = wide_low;
    s.max = wide_high;
    refuse_one(NORM_MIN_MAX, &s, N, 1e-8,
               "nothing to divide by at index 0"); // range overflows
}

static void test_names(void **state)
{
    static const char *const names[] = {"IDENTITY", "MEAN_STD", "MIN_MAX", "QUANTILES",
                                        "QUANTILE10"};
    const char *a, *b;

    (void)state;
    for (int m = NORM_IDENTITY; m <= NORM_QUANTILE10; m++)
        assert_string_equal(norm_mode_name((enum norm_mode)m), names[m]);
    norm_mode_needs(NORM_IDENTITY, &a, &b);
    assert_true(!a && !b);
    norm_mode_needs(NORM_QUANTILE10, &a, &b);
    assert_string_equal(a, "q10");
    assert_string_equal(b, "q90");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_modes),   cmocka_unit_test(test_eras_agree),
        cmocka_unit_test(test_inverse), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_names),   cmocka_unit_test(test_refused_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
