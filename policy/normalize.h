// normalize: observation in, action out. Each mode of each era becomes one set of constants
// per value, so that applying it needs no case distinction:
//
//   normalise    y = ((x - sub) / div) * mul + add
//   unnormalise  x = ((y + pre) / half) * range + base
//
// Formulas: LeRobot >= 0.4 processor/normalize_processor.py and <= 0.3 policies/normalize.py.
// MEAN_STD (x-mean)/(std+eps), back y*std+mean. MIN_MAX 2(x-min)/R-1 with R=max-min, where the
// new era replaces R by eps only where it is 0 and the old one adds 1e-8 always. QUANTILES use
// q01/q99, QUANTILE10 q10/q90 in place of min/max. IDENTITY leaves x alone. Nothing clips.
//
// Same bits as LeRobot in float32: constants are formed in float32 from float32 statistics, and
// where the order of operations differs only multiplications by 2 have moved, which are exact.
#ifndef ACTD_NORMALIZE_H
#define ACTD_NORMALIZE_H

#include <stdbool.h>

#include "policy/policy.h"

enum norm_mode {
    NORM_IDENTITY,
    NORM_MEAN_STD,
    NORM_MIN_MAX,
    NORM_QUANTILES,
    NORM_QUANTILE10
};

// Statistics as read, one float per value; NULL where absent. Owned by whoever read them.
struct norm_stats {
    int n;
    const float *mean, *std, *min, *max, *q01, *q10, *q90, *q99;
};

// Constants for n values; each array has n floats, owned by the struct.
struct norm {
    int n;
    enum norm_mode mode;
    float *sub, *div, *mul, *add;
    float *pre, *half, *range, *base;
};

const char *norm_mode_name(enum norm_mode m); // "MEAN_STD"; static

// The two statistics that a mode needs ("mean", "std"); NULL, NULL for IDENTITY. Any thread.
void norm_mode_needs(enum norm_mode m, const char **first, const char **second);

// Builds the constants for feature `name`. plain; allocates, free with norm_free.
// stats may be NULL for IDENTITY. eps: 1e-8 unless the checkpoint says otherwise;
// legacy_formula: the era up to 0.3, see above (it knows no quantiles).
// Refuses (-EINVAL) statistics that are missing, of another width, not finite, a std < 0, a
// range that is negative, and a divisor of 0. -ENOMEM. The sentence names feature, mode,
// statistic and index; the caller, who knows the file, adds the remedy. On failure *out is
// all zero.
int norm_build(struct norm *out, const char *name, enum norm_mode mode, int n,
               const struct norm_stats *stats, double eps, bool legacy_formula,
               struct policy_error *err);
void norm_free(struct norm *m); // leaves *m all zero; again is fine

// infer. x and y are (rows, n); they may be the same memory.
void norm_apply(const struct norm *m, const float *x, float *y, int rows);
void norm_invert(const struct norm *m, const float *y, float *x, int rows);

#endif
