// The part of chunks that allocates; the rest is rt.
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "daemon/chunks_impl.h"

static int check(const struct chunks_config *c)
{
    if (c->rows < 1 || c->joints < 1 || c->joints > ACTD_MAX_JOINTS || c->capacity < 1 ||
        c->step_ns < 1 || c->fade_ns < 0 || c->bridge_ns < 0 ||
        c->step_ns > CHUNKS_STEP_MOST || c->max_age_ns < 0 ||
        !isfinite(c->ensemble_coeff) || (unsigned)c->mode > CHUNK_CONSERVATIVE ||
        (unsigned)c->interpolation > CHUNK_CUBIC)
        return -EINVAL;
    for (int j = 0; j < c->joints; j++)
        if (!(c->hard_min[j] <= c->hard_max[j])) // NaN, too
            return -EINVAL;
    return 0;
}

int chunks_init(struct chunks **out, const struct chunks_config *cfg)
{
    int rc = check(cfg);
    struct chunks *q;
    size_t n, one;

    *out = NULL;
    if (rc != 0)
        return rc;
    q = calloc(1, sizeof *q);
    if (q == NULL)
        return -ENOMEM;
    n = (size_t)cfg->capacity;
    one = (size_t)cfg->rows * (size_t)cfg->joints;
    q->cfg = *cfg;
    q->decay = exp(-cfg->ensemble_coeff);
    q->before.now_ns = CHUNKS_NEVER;
    q->culprit.joint = -1;
    q->live = calloc(n, sizeof *q->live);
    q->share = calloc(n, sizeof *q->share);
    q->rows = calloc(n * one, sizeof *q->rows);
    if (q->live == NULL || q->share == NULL || q->rows == NULL) {
        chunks_free(q);
        return -ENOMEM;
    }
    // All of it is written now: fresh pages of calloc would be the loop's to fault in, once armed.
    // With NaN, since a compiler leaves out zeros that are there already.
    for (size_t i = 0; i < n * one; i++)
        q->rows[i] = NAN;
    for (size_t i = 0; i < n; i++) {
        q->live[i].row = q->rows + i * one;
        q->share[i].live = -1;
    }
    *out = q;
    return 0;
}

void chunks_free(struct chunks *q)
{
    if (q == NULL)
        return;
    free(q->live);
    free(q->share);
    free(q->rows);
    free(q);
}
