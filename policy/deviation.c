// deviation: see the header.
#include "policy/deviation.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/golden_priv.h"
#include "policy/policy_priv.h"
#include "policy/refuse.h"

// ---- the observations -----------------------------------------------------------------

struct observations {
    struct golden g;      // room for one
    struct st_file *file; // golden.safetensors, NULL = there is none
    char shown[PLACE_NAME];
    uint64_t sum; // of what was read of it
};

static int open_observations(struct observations *o, const struct policy *p,
                             const struct place *place, struct policy_error *err)
{
    *o = (struct observations){.file = NULL};
    int rc = golden_allocate(&o->g, &p->info)
                 ? refuse(err, ENOMEM, "no memory to compare precisions")
                 : 0;
    if (rc || !place)
        return rc;
    rc = st_open_at(&o->file, place, GOLDEN_FILE, err);
    if (rc == -ENOENT) {
        err->text[0] = 0;
        rc = 0;
    }
    snprintf(o->shown, sizeof o->shown, "%s/%s", place->shown ? place->shown : place->dir,
             GOLDEN_FILE);
    return rc;
}

static void close_observations(struct observations *o)
{
    st_close(o->file);
    golden_free(&o->g);
}

static int count(const struct observations *o)
{
    return (o->file != NULL) + DEVIATION_MADE_UP;
}

// FNV-1a over all parts: a file that was replaced between the two loads is another one.
static uint64_t sum_of(const struct golden *g, const struct policy_info *info)
{
    struct golden_part part[GOLDEN_MAX_PARTS];
    int n = golden_parts(g, info, part);
    uint64_t sum = 0xcbf29ce484222325u;

    for (int i = 0; i < n; i++)
        for (size_t k = 0; k < part[i].bytes; k++)
            sum = (sum ^ ((const unsigned char *)part[i].data)[k]) * 0x100000001b3u;
    return sum;
}

// Has p answer observation i into o->g.answer.
static int answer(struct observations *o, int i, struct policy *p,
                  struct policy_error *err)
{
    const struct policy_observation obs = {o->g.state, o->g.env, o->g.image};
    bool golden = o->file && i == 0;
    int rc = 0;

    if (golden)
        rc = golden_read(&o->g, &p->info, o->file, o->shown, err);
    else
        golden_make_up(&o->g, p, DEVIATION_SEED + (uint64_t)i);
    if (golden)
        o->sum = sum_of(&o->g, &p->info);
    if (rc == 0 && policy_infer(p, &obs, o->g.answer, NULL))
        rc = refuse(
            err, EINVAL,
            "in %s, for %s, %s: weights or statistics are damaged, export the checkpoint "
            "again",
            precision_name(p->info.precision),
            golden ? "the observation of " GOLDEN_FILE
                   : "an observation made up from its statistics",
            policy_last_error(p));
    return rc;
}

// ---- float32 --------------------------------------------------------------------------

static int allocate(struct deviation *d, const struct policy *p, struct policy_error *err)
{
    d->answer = calloc((size_t)d->n * golden_values(&p->info), sizeof *d->answer);
    d->prepared = calloc(act_prepared_floats(&p->act), sizeof *d->prepared);
    return d->answer && d->prepared
               ? 0
               : refuse(err, ENOMEM, "no memory to compare precisions");
}

// An inference takes as long as a hundred tensors: between them, too, one may be told to stop.
static int go_on(const _Atomic bool *cancel, struct policy_error *err)
{
    return cancel && atomic_load_explicit(cancel, memory_order_relaxed)
               ? refuse(err, ECANCELED, "loading was cancelled")
               : 0;
}

static int ask_all(struct deviation *d, struct policy *p, struct observations *o,
                   const _Atomic bool *cancel, struct policy_error *err)
{
    size_t values = golden_values(&p->info);
    int rc = 0;

    d->golden = o->file != NULL;
    d->n = count(o);
    rc = allocate(d, p, err);
    for (int i = 0; i < d->n && rc == 0; i++) {
        rc = go_on(cancel, err);
        if (rc == 0)
            rc = answer(o, i, p, err);
        memcpy(d->answer + (size_t)i * values, o->g.answer, values * sizeof(float));
    }
    d->golden_sum = o->sum;
    if (rc == 0)
        act_save_prepared(&p->act, d->prepared);
    return rc;
}

int deviation_ask(struct deviation *d, struct policy *p, const struct place *place,
                  const _Atomic bool *cancel, struct policy_error *err)
{
    struct observations o;
    int rc = open_observations(&o, p, place, err);

    if (rc == 0)
        rc = ask_all(d, p, &o, cancel, err);
    close_observations(&o);
    memcpy(d->digest, p->info.digest, sizeof d->digest);
    d->golden_error = p->info.golden_error;
    return rc;
}

// ---- the other ------------------------------------------------------------------------

static int changed(struct policy_error *err)
{
    return refuse(err, ESTALE,
                  "the checkpoint changed while it was loaded: load it again when it is "
                  "complete");
}

int deviation_prepare(const struct deviation *d, struct policy *p,
                      struct policy_error *err)
{
    if (strcmp(d->digest, p->info.digest) != 0)
        return changed(err); // sizes may be others, too
    act_restore_prepared(&p->act, d->prepared);
    return 0;
}

static void farther(const struct policy_info *info, const float *a, const float *b,
                    float *worst)
{
    size_t n = golden_values(info), dim = (size_t)info->action_dim;

    for (size_t i = 0; i < n; i++)
        worst[i % dim] = fmaxf(worst[i % dim], fabsf(a[i] - b[i]));
}

static int measure_all(const struct deviation *d, struct policy *p,
                       struct observations *o, const _Atomic bool *cancel,
                       struct policy_error *err)
{
    size_t values = golden_values(&p->info);
    int rc = 0;

    if (count(o) != d->n)
        return changed(err);
    free(p->deviation); // of a time before
    p->deviation = calloc((size_t)p->info.action_dim, sizeof *p->deviation);
    if (!p->deviation)
        return refuse(err, ENOMEM, "no memory to compare precisions");
    for (int i = 0; i < d->n && rc == 0; i++) {
        rc = go_on(cancel, err);
        if (rc == 0)
            rc = answer(o, i, p, err);
        if (rc == 0 && o->sum != d->golden_sum)
            rc = changed(err);
        farther(&p->info, d->answer + (size_t)i * values, o->g.answer, p->deviation);
    }
    p->info.deviation = (struct policy_deviation){d->n, d->golden, p->deviation};
    p->info.golden_error = d->golden_error;
    return rc;
}

int deviation_measure(const struct deviation *d, struct policy *p,
                      const struct place *place, const _Atomic bool *cancel,
                      struct policy_error *err)
{
    struct observations o;
    int rc = open_observations(&o, p, place, err);

    if (rc == 0)
        rc = measure_all(d, p, &o, cancel, err);
    close_observations(&o);
    return rc;
}

void deviation_free(struct deviation *d)
{
    free(d->answer);
    free(d->prepared);
    *d = (struct deviation){.n = 0};
}
