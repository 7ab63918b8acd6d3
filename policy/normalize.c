// normalize: see the header.
#include "policy/normalize.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "policy/refuse.h"

const char *norm_mode_name(enum norm_mode m)
{
    static const char *const names[] = {
        [NORM_IDENTITY] = "IDENTITY",     [NORM_MEAN_STD] = "MEAN_STD",
        [NORM_MIN_MAX] = "MIN_MAX",       [NORM_QUANTILES] = "QUANTILES",
        [NORM_QUANTILE10] = "QUANTILE10",
    };

    return names[m];
}

void norm_mode_needs(enum norm_mode m, const char **first, const char **second)
{
    static const char *const needs[][2] = {
        [NORM_IDENTITY] = {NULL, NULL},     [NORM_MEAN_STD] = {"mean", "std"},
        [NORM_MIN_MAX] = {"min", "max"},    [NORM_QUANTILES] = {"q01", "q99"},
        [NORM_QUANTILE10] = {"q10", "q90"},
    };

    *first = needs[m][0];
    *second = needs[m][1];
}

static void pick(const struct norm_stats *s, enum norm_mode m, const float **a,
                 const float **b)
{
    switch (m) {
    case NORM_MEAN_STD:
        *a = s->mean, *b = s->std;
        break;
    case NORM_MIN_MAX:
        *a = s->min, *b = s->max;
        break;
    case NORM_QUANTILES:
        *a = s->q01, *b = s->q99;
        break;
    case NORM_QUANTILE10:
        *a = s->q10, *b = s->q90;
        break;
    default:
        *a = *b = NULL;
    }
}

static void set_identity(struct norm *m, int i)
{
    m->sub[i] = m->add[i] = m->pre[i] = m->base[i] = 0.0f;
    m->div[i] = m->mul[i] = m->half[i] = m->range[i] = 1.0f;
}

static void set_mean_std(struct norm *m, int i, float mean, float std, float eps)
{
    set_identity(m, i);
    m->sub[i] = m->base[i] = mean;
    m->div[i] = std + eps;
    m->range[i] = std; // without eps, as LeRobot does
}

static void set_range(struct norm *m, int i, float low, float high, float eps,
                      bool legacy)
{
    float r = high - low;

    m->div[i] = legacy ? r + eps : r == 0.0f ? eps : r;
    m->range[i] = legacy ? r : m->div[i];
    m->sub[i] = m->base[i] = low;
    m->mul[i] = m->half[i] = 2.0f;
    m->add[i] = -1.0f;
    m->pre[i] = 1.0f;
}

static int allocate(struct norm *m, int n, enum norm_mode mode)
{
    float *p = n > 0 ? calloc((size_t)n, 8 * sizeof *p) : NULL;
    float **part[] = {&m->sub, &m->div,  &m->mul,   &m->add,
                      &m->pre, &m->half, &m->range, &m->base};

    if (!p)
        return -ENOMEM;
    for (int k = 0; k < 8; k++)
        *part[k] = p + (size_t)k * (size_t)n;
    m->n = n;
    m->mode = mode;
    return 0;
}

static int set_one(struct norm *m, int i, const float *a, const float *b, float eps,
                   bool legacy, const char *name, struct policy_error *err)
{
    const char *first, *second, *mode = norm_mode_name(m->mode);

    norm_mode_needs(m->mode, &first, &second);
    if (!isfinite(a[i]) || !isfinite(b[i]))
        return refuse(err, EINVAL,
                      "statistic %s of '%s' is not finite at index %d (mode %s)",
                      isfinite(a[i]) ? second : first, name, i, mode);
    if (m->mode == NORM_MEAN_STD && b[i] < 0)
        return refuse(err, EINVAL,
                      "statistic std of '%s' is negative at index %d (mode %s)", name, i,
                      mode);
    if (m->mode != NORM_MEAN_STD && b[i] < a[i])
        return refuse(err, EINVAL,
                      "statistic %s of '%s' is below %s at index %d (mode %s)", second,
                      name, first, i, mode);
    if (m->mode == NORM_MEAN_STD)
        set_mean_std(m, i, a[i], b[i], eps);
    else
        set_range(m, i, a[i], b[i], eps, legacy);
    if (m->div[i] <= 0 || !isfinite(m->div[i]))
        return refuse(
            err, EINVAL,
            "statistics of '%s' leave nothing to divide by at index %d (mode %s)", name,
            i, mode);
    return 0;
}

static int set_all(struct norm *m, const char *name, const struct norm_stats *stats,
                   double eps, bool legacy, struct policy_error *err)
{
    const char *first, *second;
    const float *a = NULL, *b = NULL;
    int r = 0;

    norm_mode_needs(m->mode, &first, &second);
    if (stats)
        pick(stats, m->mode, &a, &b);
    if (!a || !b)
        return refuse(err, EINVAL, "statistic %s of '%s' is missing (mode %s needs it)",
                      a ? second : first, name, norm_mode_name(m->mode));
    if (stats->n != m->n)
        return refuse(err, EINVAL,
                      "statistics of '%s' have %d values, the feature has %d", name,
                      stats->n, m->n);
    for (int i = 0; r == 0 && i < m->n; i++)
        r = set_one(m, i, a, b, (float)eps, legacy, name, err);
    return r;
}

int norm_build(struct norm *out, const char *name, enum norm_mode mode, int n,
               const struct norm_stats *stats, double eps, bool legacy_formula,
               struct policy_error *err)
{
    int r = 0;

    memset(out, 0, sizeof *out);
    if (n <= 0)
        return refuse(err, EINVAL, "feature '%s' has no values", name);
    if (!(eps >= 0) || !isfinite(eps))
        return refuse(err, EINVAL, "eps of '%s' is negative or not finite", name);
    if (allocate(out, n, mode) < 0)
        return refuse(err, ENOMEM, "no memory to normalise '%s'", name);
    if (mode == NORM_IDENTITY)
        for (int i = 0; i < n; i++)
            set_identity(out, i);
    else
        r = set_all(out, name, stats, eps, legacy_formula, err);
    if (r < 0)
        norm_free(out);
    return r;
}

void norm_free(struct norm *m)
{
    free(m->sub); // the one block that all eight arrays share
    memset(m, 0, sizeof *m);
}

void norm_apply(const struct norm *m, const float *x, float *y, int rows)
{
    for (size_t r = 0, n = (size_t)m->n; r < (size_t)rows; r++)
        for (size_t i = 0; i < n; i++)
            y[r * n + i] =
                ((x[r * n + i] - m->sub[i]) / m->div[i]) * m->mul[i] + m->add[i];
}

void norm_invert(const struct norm *m, const float *y, float *x, int rows)
{
    for (size_t r = 0, n = (size_t)m->n; r < (size_t)rows; r++)
        for (size_t i = 0; i < n; i++)
            x[r * n + i] =
                ((y[r * n + i] + m->pre[i]) / m->half[i]) * m->range[i] + m->base[i];
}
