// metrics_histogram: durations as cumulative counts. The daemon counts in 16 buckets per power of
// two; a scraper keeps one time series per bucket for ever, so that it gets two per power of two,
// from 1 us to 17 s, always the same ones: the bounds 2^k and 1.5 * 2^k ns are bounds of the
// daemon's buckets too, and nothing is rounded.
#include <stdio.h>
#include <string.h>

#include "daemon/metrics_impl.h"

#define FIRST_POWER 10 // 1.024 us
#define LAST_POWER  34 // 17.2 s

// Samples below `bound`. A bucket of the message ends below its below_ns.
static uint64_t below(const Actd__V1__Histogram *h, uint64_t bound)
{
    uint64_t n = 0;

    for (size_t i = 0; i < h->n_buckets; i++)
        if (h->buckets[i]->below_ns <= bound)
            n += h->buckets[i]->count;
    return n;
}

static void bucket(struct metrics_text *t, const char *le, uint64_t n)
{
    const struct metrics_label labels[2] = {{"le", le}, {NULL, NULL}};

    metrics_sample(t, "_bucket", labels, (double)n);
}

static void bounded(struct metrics_text *t, const Actd__V1__Histogram *h, uint64_t ns)
{
    char le[32];

    snprintf(le, sizeof le, "%.12g", metrics_seconds(ns));
    bucket(t, le, below(h, ns));
}

// `all` is what the buckets add up to: a count read a moment later would break the rule that the
// bucket +Inf equals it. A message that had no room for buckets has no bounds to tell.
static void distribution(struct metrics_text *t, const Actd__V1__Histogram *h)
{
    bool bare = h->n_buckets == 0 && h->count > 0;
    uint64_t all = bare ? h->count : below(h, UINT64_MAX);

    for (int k = FIRST_POWER; !bare && k <= LAST_POWER; k++) {
        bounded(t, h, UINT64_C(1) << k);
        if (k < LAST_POWER)
            bounded(t, h, UINT64_C(3) << (k - 1));
    }
    bucket(t, "+Inf", all);
    metrics_sample(t, "_sum", NULL, metrics_seconds(h->sum_ns));
    metrics_sample(t, "_count", NULL, (double)all);
}

static const Actd__V1__Histogram *budget(const Actd__V1__Status *m, const char *name)
{
    for (size_t i = 0; i < m->n_budgets; i++)
        if (strcmp(m->budgets[i]->name, name) == 0)
            return m->budgets[i]->histogram;
    return NULL;
}

void metrics_histograms(struct metrics_text *t, const Actd__V1__Status *m)
{
    const struct {
        const Actd__V1__Histogram *h;
        const char *name, *help, *max_name, *max_help;
    } all[] = {
        {m->lateness, "actd_wakeup_lateness_seconds",
         "How late the loop woke for a tick.", "actd_wakeup_lateness_max_seconds",
         "The latest wake-up since the start."},
        {m->tick_time, "actd_tick_duration_seconds",
         "How long the loop worked in a tick.", "actd_tick_duration_max_seconds",
         "The longest tick since the start."},
        {m->inference, "actd_inference_duration_seconds",
         "Duration of an inference of the policy.", "actd_inference_duration_max_seconds",
         "The longest inference since the start."},
        {m->chunk_latency, "actd_chunk_latency_seconds",
         "From the capture of an observation until the loop sees its chunk.",
         "actd_chunk_latency_max_seconds", "The longest chunk latency since the start."},
        {budget(m, "sensor_age"), "actd_sensor_age_seconds",
         "Age of the joint state that a command was based on.",
         "actd_sensor_age_max_seconds", "The oldest joint state used since the start."},
    };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (!all[i].h)
            continue;
        metrics_family(t, all[i].name, "histogram", all[i].help);
        distribution(t, all[i].h);
        metrics_one(t, all[i].max_name, "gauge", all[i].max_help,
                    metrics_seconds(all[i].h->max_ns));
    }
}
