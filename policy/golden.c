// golden: see the header.
#include "policy/golden.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/finite.h"
#include "policy/golden_priv.h"
#include "policy/policy_priv.h"
#include "policy/refuse.h"

static size_t picture_bytes(const struct policy_camera *c)
{
    return 3 * (size_t)c->height * (size_t)c->width;
}

size_t golden_values(const struct policy_info *info)
{
    return (size_t)info->chunk_size * (size_t)info->action_dim;
}

int golden_allocate(struct golden *g, const struct policy_info *info)
{
    size_t n = golden_values(info);
    *g = (struct golden){.state = calloc((size_t)info->state_dim + 1, sizeof(float)),
                         .env = calloc((size_t)info->env_dim + 1, sizeof(float)),
                         .actions = calloc(n, sizeof(float)),
                         .answer = calloc(n, sizeof(float))};
    if (!g->state || !g->env || !g->actions || !g->answer)
        return -ENOMEM;
    for (int i = 0; i < info->n_cameras; i++) {
        const struct policy_camera *c = &info->camera[i];
        g->rgb[i] = malloc(picture_bytes(c));
        if (!g->rgb[i])
            return -ENOMEM;
        g->image[i] = (struct policy_image){.rgb = g->rgb[i],
                                            .width = c->width,
                                            .height = c->height,
                                            .stride = 3 * c->width};
    }
    return 0;
}

void golden_free(struct golden *g)
{
    free(g->state);
    free(g->env);
    free(g->actions);
    free(g->answer);
    for (int i = 0; i < POLICY_MAX_CAMERAS; i++)
        free(g->rgb[i]);
}

int golden_parts(const struct golden *g, const struct policy_info *info,
                 struct golden_part part[GOLDEN_MAX_PARTS])
{
    int s = info->state_dim, e = info->env_dim, c = info->chunk_size,
        a = info->action_dim, n = 0;
    if (s)
        part[n++] = (struct golden_part){
            "observation.state", ST_F32, 1, {s}, g->state, (size_t)s * sizeof(float)};
    if (e)
        part[n++] =
            (struct golden_part){"observation.environment_state", ST_F32, 1, {e}, g->env,
                                 (size_t)e * sizeof(float)};
    part[n++] = (struct golden_part){
        "action", ST_F32, 2, {c, a}, g->actions, golden_values(info) * sizeof(float)};
    for (int i = 0; i < info->n_cameras; i++) {
        const struct policy_camera *m = &info->camera[i];
        part[n++] = (struct golden_part){
            m->key, ST_U8, 3, {m->height, m->width, 3}, g->rgb[i], picture_bytes(m)};
    }
    return n;
}

int golden_compute(struct golden *g, struct policy *p, struct policy_error *err)
{
    struct policy_observation obs = {g->state, g->env, g->image};
    int rc = policy_infer(p, &obs, g->answer, NULL);
    return rc ? refuse(err, EINVAL,
                       "with the observation of %s, %s: weights or statistics are "
                       "damaged, export the checkpoint again",
                       GOLDEN_FILE, policy_last_error(p))
              : 0;
}

static bool same_shape(const struct st_tensor *t, const struct golden_part *part)
{
    bool same = t->dtype == part->dtype && t->rank == part->rank;
    for (int i = 0; same && i < part->rank; i++)
        same = t->shape[i] == (uint64_t)part->shape[i];
    return same;
}

static int read_floats(struct st_file *f, const struct st_tensor *t,
                       const struct golden_part *part, const char *shown,
                       struct policy_error *err)
{
    size_t n = part->bytes / sizeof(float), good;
    int rc = st_read_f32_raw(f, t, part->data, n, err);
    if (rc)
        return rc;
    good = finite_prefix(part->data, n);
    if (good == n)
        return 0;
    return refuse(err, EINVAL,
                  "tensor '%.80s' of %s holds a value that is not finite at index %zu: "
                  "write it anew with `actd golden`",
                  part->name, shown, good);
}

static int read_part(struct st_file *f, const struct golden_part *part, const char *shown,
                     struct policy_error *err)
{
    const struct st_tensor *t = st_find(f, part->name);
    if (!t || !same_shape(t, part))
        return refuse(
            err, EINVAL,
            "%s has no tensor '%.80s' of the type and shape that config.json leads "
            "to: it belongs to another checkpoint, remove it or write it anew with "
            "`actd golden`",
            shown, part->name);
    if (part->dtype == ST_F32)
        return read_floats(f, t, part, shown, err);
    return st_read_bytes(f, t, part->data, part->bytes, err);
}

int golden_read(const struct golden *g, const struct policy_info *info, struct st_file *f,
                const char *shown, struct policy_error *err)
{
    struct golden_part part[GOLDEN_MAX_PARTS];
    int n = golden_parts(g, info, part), rc = 0;
    for (int i = 0; i < n && rc == 0; i++)
        rc = read_part(f, &part[i], shown, err);
    if (rc == 0 && st_count(f) != (size_t)n)
        return refuse(err, EINVAL,
                      "%s has tensors that are no part of an observation of this "
                      "policy: write it anew with `actd golden`",
                      shown);
    return rc;
}

static int compare(const struct golden *g, struct policy_info *info, const char *shown,
                   struct policy_error *err)
{
    size_t n = golden_values(info), worst = 0;
    double scale = 1, difference = 0;
    for (size_t i = 0; i < n; i++) {
        double d = fabs((double)g->answer[i] - (double)g->actions[i]);
        scale = fmax(scale, fabs((double)g->actions[i]));
        if (d > difference) {
            difference = d;
            worst = i;
        }
    }
    info->golden_error = difference / scale;
    if (info->golden_error <= GOLDEN_TOLERANCE)
        return 0;
    return refuse(
        err, EINVAL,
        "%s: value %zu of row %zu of the chunk comes out as %.6g where %.6g was "
        "recorded (off by %.1e of the largest, %.0e is allowed): weights or "
        "statistics are not those it was recorded with; copy the checkpoint again, "
        "or if they are meant to be, run `actd golden --force`",
        shown, worst % (size_t)info->action_dim, worst / (size_t)info->action_dim,
        (double)g->answer[worst], (double)g->actions[worst], info->golden_error,
        GOLDEN_TOLERANCE);
}

static int check(struct policy *p, struct st_file *f, const char *shown,
                 struct policy_error *err)
{
    struct policy_info *info = &p->info;
    struct golden g;
    int rc = golden_allocate(&g, info)
                 ? refuse(err, ENOMEM, "no memory to compare with %s", shown)
                 : 0;
    if (rc == 0)
        rc = golden_read(&g, info, f, shown, err);
    if (rc == 0)
        rc = golden_compute(&g, p, err);
    if (rc == 0)
        rc = compare(&g, info, shown, err);
    golden_free(&g);
    return rc;
}

int golden_check(struct policy *p, const struct place *place, struct policy_error *err)
{
    char shown[PLACE_NAME];
    struct st_file *f;
    int rc = st_open_at(&f, place, GOLDEN_FILE, err);
    if (rc == -ENOENT) {
        err->text[0] = 0;
        return 0;
    }
    snprintf(shown, sizeof shown, "%s/%s", place->shown ? place->shown : place->dir,
             GOLDEN_FILE);
    if (rc == 0)
        rc = check(p, f, shown, err);
    st_close(f);
    return rc;
}
