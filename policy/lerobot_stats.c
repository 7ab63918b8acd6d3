// lerobot_stats: see the header.
#include "policy/lerobot_stats.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/refuse.h"

static const char *const stat_names[] = {"mean", "std", "min", "max",
                                         "q01",  "q10", "q90", "q99"};
#define N_STATS (sizeof stat_names / sizeof stat_names[0])

static char fold(char c)
{
    return c == '.' ? '_' : c;
}

static bool folded_equal(const char *a, const char *b)
{
    while (*a && fold(*a) == fold(*b))
        a++, b++;
    return fold(*a) == fold(*b);
}

// What follows the source's prefix in a tensor's name, NULL for another group of tensors.
static const char *after_prefix(const struct lr_source *s, const char *name)
{
    size_t n = strlen(s->prefix);

    return strncmp(name, s->prefix, n) == 0 ? name + n : NULL;
}

// How well a name fits: 0 not at all; of several, the best wins and a tie is refused.
static int fit(const struct lr_source *s, const char *name, const char *key,
               const char *stat)
{
    const char *rest = after_prefix(s, name);
    char exact[160], buffer[320];

    if (!rest || (s->tag && strlen(s->tag) > 120))
        return 0;
    snprintf(exact, sizeof exact, "%.127s.%.8s", key, stat);
    if (s->tag) {
        snprintf(buffer, sizeof buffer, "%.120s_buffer_%s", s->tag, exact);
        return folded_equal(rest, buffer);
    }
    snprintf(buffer, sizeof buffer, "buffer_%s", exact);
    if (strcmp(rest, exact) == 0)
        return 3;
    return folded_equal(rest, buffer) ? 2 : folded_equal(rest, exact) ? 1 : 0;
}

static int find_stat(const struct lr_source *s, const char *key, const char *stat,
                     const struct st_tensor **out, struct policy_error *err)
{
    int best = 0;
    bool tie = false;

    *out = NULL;
    for (size_t i = 0; s->names && i < s->names->n; i++) {
        int now = fit(s, s->names->at[i].name, key, stat);

        tie = now > best ? false : now > 0 && now == best ? true : tie;
        if (now > best) {
            best = now;
            *out = s->names->at[i].tensor;
        }
    }
    if (tie)
        return refuse(err, EINVAL,
                      "%s has two tensors that could be the %s of '%s': remove one",
                      s->file, stat, key);
    return 0;
}

// The tags of groups that have this statistic, "so100, so100-red"; how many there are.
static int list_tags(const struct lr_source *s, const char *key, const char *stat,
                     char *out, size_t size)
{
    char tail[320];
    size_t at = 0;
    int n = 0;

    snprintf(tail, sizeof tail, "_buffer_%s.%s", key, stat);
    out[0] = 0;
    for (size_t i = 0; s->names && i < s->names->n; i++) {
        const char *rest = after_prefix(s, s->names->at[i].name);
        size_t len = rest ? strlen(rest) : 0, k = strlen(tail);

        if (len <= k || !folded_equal(rest + len - k, tail))
            continue;
        if (at < size)
            at += (size_t)snprintf(out + at, size - at, "%s%.*s", n ? ", " : "",
                                   (int)(len - k), rest);
        n++;
    }
    return n;
}

static int missing(const struct lr_source *s, const struct lr_feature *f,
                   enum norm_mode mode, const char *stat, struct policy_error *err)
{
    char tags[160];
    int n = list_tags(s, f->key, stat, tags, sizeof tags);

    if (n > 0 && s->tag)
        return refuse(
            err, EINVAL,
            "%s has no group '%.40s' with the %s of '%s' (mode %s needs it): set "
            "stats_tag to one of %s",
            s->file, s->tag, stat, f->key, norm_mode_name(mode), tags);
    if (n > 0)
        return refuse(
            err, EINVAL,
            "%s has the %s of '%s' (mode %s needs it) for several data sets: set "
            "stats_tag to one of %s",
            s->file, stat, f->key, norm_mode_name(mode), tags);
    if (s->tag)
        return refuse(
            err, EINVAL,
            "%s has no groups of statistics, stats_tag '%.40s' fits nothing for '%s': "
            "remove stats_tag",
            s->file, s->tag, f->key);
    if (s->processor)
        return refuse(
            err, EINVAL,
            "%s has no %s of '%s', which mode %s needs: copy the processor files of "
            "the original checkpoint",
            s->file, stat, f->key, norm_mode_name(mode));
    return refuse(
        err, EINVAL,
        "there is no policy_preprocessor.json and %s has no %s of '%s', which mode %s "
        "needs: copy the processor files (policy_*processor*) of the original "
        "checkpoint into the directory",
        s->file, stat, f->key, norm_mode_name(mode));
}

static bool is_needed(enum norm_mode mode, const char *stat)
{
    const char *first, *second;

    norm_mode_needs(mode, &first, &second);
    return first && (strcmp(stat, first) == 0 || strcmp(stat, second) == 0);
}

// Reads one statistic into dst (n). *found says whether it is there; what is not needed is
// left out for any reason, so that an odd extra statistic stops nobody.
static int read_stat(const struct lr_source *s, const struct lr_feature *f,
                     enum norm_mode mode, const char *stat, float *dst, bool *found,
                     struct policy_error *err)
{
    bool needed = is_needed(mode, stat);
    size_t n = (size_t)lr_feature_width(f);
    const struct st_tensor *t;
    int r = find_stat(s, f->key, stat, &t, needed ? err : NULL);

    *found = false;
    if (r < 0 || !t)
        return !needed ? 0 : r < 0 ? r : missing(s, f, mode, stat, err);
    if (st_elements(t) != n)
        return !needed
                   ? 0
                   : refuse(err, EINVAL,
                            "the %s of '%s' in %s has %" PRIu64
                            " values, the feature has %zu: the files are of different "
                            "checkpoints",
                            stat, f->key, s->file, st_elements(t), n);
    r = needed ? st_read_f32_raw(s->f, t, dst, n, err)
               : st_read_f32(s->f, t, dst, n, NULL);
    *found = r == 0;
    return needed ? r : 0;
}

static int read_values(struct lr_values *v, const struct lr_source *s,
                       const struct lr_feature *f, enum norm_mode mode,
                       struct policy_error *err)
{
    const float **slot[N_STATS] = {&v->stats.mean, &v->stats.std, &v->stats.min,
                                   &v->stats.max,  &v->stats.q01, &v->stats.q10,
                                   &v->stats.q90,  &v->stats.q99};
    size_t n = (size_t)lr_feature_width(f);
    bool found;
    int r = 0;

    v->stats.n = (int)n;
    v->block = calloc(N_STATS * n, sizeof *v->block);
    if (!v->block)
        return refuse(err, ENOMEM, "no memory for the statistics of '%s'", f->key);
    for (size_t i = 0; r == 0 && i < N_STATS; i++) {
        r = read_stat(s, f, mode, stat_names[i], v->block + i * n, &found, err);
        if (r == 0 && found)
            *slot[i] = v->block + i * n;
    }
    return r;
}

static int get_mode(const struct lr_source *s, const struct lr_feature *f,
                    enum norm_mode *mode, struct policy_error *err)
{
    if (s->processor)
        return lr_processor_mode(s->processor, f, mode, err);
    *mode = f->mode;
    if (*mode == NORM_QUANTILES || *mode == NORM_QUANTILE10)
        return refuse(
            err, EINVAL,
            "config.json normalises '%s' by %s, which needs policy_preprocessor.json "
            "and policy_postprocessor.json: copy the processor files of the original "
            "checkpoint",
            f->key, norm_mode_name(*mode));
    return 0;
}

int lr_stats_build(struct norm *out, struct lr_values *keep, const struct lr_source *s,
                   const struct lr_feature *f, struct policy_error *err)
{
    struct lr_values v = {0};
    enum norm_mode mode;
    int r = get_mode(s, f, &mode, err);

    if (r == 0)
        r = read_values(&v, s, f, mode, err);
    if (r == 0) {
        r = norm_build(out, f->key, mode, lr_feature_width(f), &v.stats,
                       s->processor ? s->processor->eps : 1e-8, !s->processor, err);
        if (r == -EINVAL)
            r = refuse_more(
                err, EINVAL,
                "; it comes from %s: use a checkpoint whose statistics were filled "
                "in by training",
                s->file);
    }
    if (r == 0 && keep)
        *keep = v;
    else
        lr_values_free(&v);
    return r;
}

void lr_values_free(struct lr_values *v)
{
    free(v->block);
    *v = (struct lr_values){0};
}
