#include "policy/profile_runs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUNS_MOST 10000

int profile_runs_new(struct profile_runs **out, int most)
{
    struct profile_runs *r = NULL;

    *out = NULL;
    if (most < 1 || most > RUNS_MOST)
        return -EINVAL;
    r = calloc(1, sizeof *r);
    if (r)
        r->ns = calloc((size_t)most * PROFILE_STEPS, sizeof *r->ns);
    if (!r || !r->ns) {
        free(r);
        return -ENOMEM;
    }
    r->most = most;
    *out = r;
    return 0;
}

void profile_runs_free(struct profile_runs *r)
{
    if (!r)
        return;
    free(r->ns);
    free(r);
}

int profile_runs_take(struct profile_runs *r)
{
    int64_t *ns = r->ns + (size_t)r->n * PROFILE_STEPS;

    if (r->n == r->most)
        return -E2BIG;
    for (int i = 0; i < r->profile.n; i++)
        ns[i] = r->profile.step[i].ns;
    if (r->profile.n < PROFILE_STEPS)
        ns[r->profile.n] = -1; // the end
    if (r->n > 0 && r->profile.n < PROFILE_STEPS &&
        ns[r->profile.n - PROFILE_STEPS] != -1)
        return -EINVAL;
    r->n++;
    return 0;
}

static int compare(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

void profile_runs_end(struct profile_runs *r)
{
    int64_t one[RUNS_MOST];

    for (int i = 0; i < r->profile.n && r->n > 0; i++) {
        for (int k = 0; k < r->n; k++)
            one[k] = r->ns[(size_t)k * PROFILE_STEPS + (size_t)i];
        qsort(one, (size_t)r->n, sizeof *one, compare);
        r->profile.step[i].ns = one[r->n / 2];
    }
}

// ---- stages --------------------------------------------------------------------------------------

// All cameras share the backbone's weights.
static bool own_weights(const struct profile_step *s)
{
    return strncmp(s->what, "image ", 6) != 0 || strncmp(s->what, "image 1 ", 8) == 0;
}

static void count(struct profile_stage *t, const struct profile_step *s)
{
    double bytes = own_weights(s) ? s->weight_bytes : 0.0;

    t->steps++;
    t->ns += s->ns;
    t->macs += s->macs;
    t->weight_bytes += bytes;
    t->winograd_bytes += strncmp(s->way, "winograd", 8) == 0 ? bytes : 0.0;
}

int profile_stages(const struct profile *p, struct profile_stage out[PROFILE_STAGES + 1])
{
    struct profile_stage all = {.name = "all"};
    int n = 0;

    memset(out, 0, (PROFILE_STAGES + 1) * sizeof *out);
    for (int i = 0; i < p->n; i++) {
        int k = 0;

        while (k < n && strcmp(out[k].name, p->step[i].stage) != 0)
            k++;
        if (k == PROFILE_STAGES)
            continue; // the model has five
        if (k == n)
            snprintf(out[n++].name, sizeof out->name, "%s", p->step[i].stage);
        count(&out[k], &p->step[i]);
        count(&all, &p->step[i]);
    }
    out[n] = all;
    return n;
}

double profile_gflops(double macs, int64_t ns)
{
    return ns > 0 ? 2.0 * macs / (double)ns : 0.0;
}
