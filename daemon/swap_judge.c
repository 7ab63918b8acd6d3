// swap_judge: what a candidate is held against. Pure; no clock, no file.
//
// What differs is only allowed by its word, since each kind of difference moves an arm to
// the wrong place in its own way: other names or another order of joints, other units,
// other pictures, rows that mean other times.
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/swap_impl.h"

static const struct {
    const char *word;
    unsigned bit;
} allowed[] = {
    {"joints", SWAP_ALLOW_JOINTS},   {"units", SWAP_ALLOW_UNITS},
    {"cameras", SWAP_ALLOW_CAMERAS}, {"rate", SWAP_ALLOW_RATE},
    {"chunk", SWAP_ALLOW_CHUNK},
};
#define WORDS (sizeof allowed / sizeof *allowed)

unsigned swap_allow_bit(const char *word)
{
    for (size_t i = 0; i < WORDS; i++)
        if (strcmp(word, allowed[i].word) == 0)
            return allowed[i].bit;
    return 0;
}

// ---- differences -----------------------------------------------------------------------------

// Sentences, one after the other, and the words that would allow them.
struct differences {
    char *text;
    size_t size, used;
    unsigned bits;
};

static void differ(struct differences *d, unsigned bit, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void differ(struct differences *d, unsigned bit, const char *format, ...)
{
    va_list ap;
    d->bits |= bit;
    for (int part = 0; part < 2 && d->used < d->size; part++) {
        int n = 0;
        va_start(ap, format);
        if (part == 1)
            n = vsnprintf(d->text + d->used, d->size - d->used, format, ap);
        else if (d->used > 0)
            n = snprintf(d->text + d->used, d->size - d->used, "; ");
        va_end(ap);
        d->used += n > 0 ? (size_t)n : 0;
    }
}

static void compare_names(struct differences *d, const char *what, const char *a, int na,
                          const char *b, int nb)
{
    if (na != nb) {
        differ(d, SWAP_ALLOW_JOINTS, "it has %d %s names and the running policy %d", nb,
               what, na);
        return;
    }
    for (int i = 0; i < na; i++) {
        const char *was = a + (size_t)i * CONFIG_NAME, *is = b + (size_t)i * CONFIG_NAME;
        if (strcmp(was, is) == 0)
            continue;
        differ(d, SWAP_ALLOW_JOINTS,
               "its %s value %d is '%s' and the running policy's '%s'", what, i, is, was);
        return;
    }
}

static int action_of(const struct fitted *f, int joint)
{
    for (int i = 0; i < f->binding.n; i++)
        if (f->binding.joint_of[i] == joint)
            return i;
    return 0;
}

// By the robot's joints: their place in the vector is another question.
static void compare_units(struct differences *d, const struct config *cfg,
                          const struct fitted *a, const struct fitted *b)
{
    for (int j = 0; j < cfg->n_joints; j++) {
        const char *was = a->side.units[action_of(a, j)];
        const char *is = b->side.units[action_of(b, j)];
        if (strcmp(was, is) == 0)
            continue;
        differ(d, SWAP_ALLOW_UNITS, "its %s is in %s and the running policy's in %s",
               cfg->joint[j].name, is, was);
        return;
    }
}

static const struct policy_camera *camera(const struct policy_info *info, const char *key)
{
    for (int i = 0; i < info->n_cameras; i++)
        if (strcmp(info->camera[i].key, key) == 0)
            return &info->camera[i];
    return NULL;
}

static void compare_cameras(struct differences *d, const struct policy_info *a,
                            const struct policy_info *b)
{
    for (int i = 0; i < a->n_cameras; i++)
        if (!camera(b, a->camera[i].key))
            differ(d, SWAP_ALLOW_CAMERAS,
                   "it does not look at '%s', which the running policy does",
                   a->camera[i].key);
    for (int i = 0; i < b->n_cameras; i++) {
        const struct policy_camera *is = &b->camera[i], *was = camera(a, is->key);
        if (!was)
            differ(d, SWAP_ALLOW_CAMERAS,
                   "it looks at '%s', which the running policy does not", is->key);
        else if (was->width != is->width || was->height != is->height)
            differ(d, SWAP_ALLOW_CAMERAS,
                   "its '%s' is %dx%d and the running policy's %dx%d", is->key, is->width,
                   is->height, was->width, was->height);
    }
}

// " (allow it with --allow units,rate)".
static void remedy(struct differences *d, unsigned bits)
{
    const char *before = " (allow it with --allow ";
    for (size_t i = 0; i < WORDS && d->used < d->size; i++) {
        if (!(bits & allowed[i].bit))
            continue;
        int n = snprintf(d->text + d->used, d->size - d->used, "%s%s", before,
                         allowed[i].word);
        d->used += n > 0 ? (size_t)n : 0;
        before = ",";
    }
    if (d->used < d->size)
        snprintf(d->text + d->used, d->size - d->used, ")");
}

bool swap_equal(const struct config *cfg, const struct fitted *running,
                const struct fitted *candidate, unsigned allow, char *text, size_t size)
{
    const struct config_sidecar *a = &running->side, *b = &candidate->side;
    const struct policy_info *ia = running->info, *ib = candidate->info;
    struct differences d = {.text = text, .size = size};

    text[0] = '\0';
    if (!(allow & SWAP_ALLOW_JOINTS)) {
        compare_names(&d, "state", a->state[0], a->n_state, b->state[0], b->n_state);
        compare_names(&d, "action", a->action[0], a->n_action, b->action[0], b->n_action);
    }
    if (!(allow & SWAP_ALLOW_UNITS))
        compare_units(&d, cfg, running, candidate);
    if (!(allow & SWAP_ALLOW_CAMERAS))
        compare_cameras(&d, ia, ib);
    if (!(allow & SWAP_ALLOW_RATE) && a->rate_hz != b->rate_hz)
        differ(&d, SWAP_ALLOW_RATE,
               "it was trained at %g Hz and the running policy at %g Hz", b->rate_hz,
               a->rate_hz);
    if (!(allow & SWAP_ALLOW_CHUNK) && ia->chunk_size != ib->chunk_size)
        differ(&d, SWAP_ALLOW_CHUNK, "its chunk has %d rows and the running policy's %d",
               ib->chunk_size, ia->chunk_size);
    if (d.bits == 0)
        return true;
    remedy(&d, d.bits);
    return false;
}

// ---- chunks ----------------------------------------------------------------------------------

// Joint j of c at a time after its anchor. False when that is after its last row.
static bool at(const struct swap_chunk *c, ns_t t, int j, int n, double *out)
{
    int k = (int)(t / c->step_ns);
    double part = (double)(t % c->step_ns) / (double)c->step_ns;
    if (k >= c->rows || (k == c->rows - 1 && t % c->step_ns != 0))
        return false;
    *out = (double)c->row[k * n + j];
    if (part > 0)
        *out += part * ((double)c->row[(k + 1) * n + j] - *out);
    return true;
}

struct swap_distance swap_compare(const struct swap_chunk *running,
                                  const struct swap_chunk *candidate, int n)
{
    struct swap_distance far = {-1, 0, 0};
    for (int k = 0; k < candidate->rows; k++)
        for (int j = 0; j < n; j++) {
            double was;
            if (!at(running, k * candidate->step_ns, j, n, &was))
                return far;
            double rad = fabs((double)candidate->row[k * n + j] - was);
            if (rad > far.rad || isnan(rad))
                far = (struct swap_distance){isnan(rad) ? INFINITY : rad, j, k};
        }
    return far;
}

struct chunk_culprit swap_beyond(const struct config *cfg, const struct swap_chunk *c)
{
    for (int k = 0; k < c->rows; k++)
        for (int j = 0; j < cfg->n_joints; j++) {
            double v = (double)c->row[k * cfg->n_joints + j];
            double min = cfg->joint[j].hard_min, max = cfg->joint[j].hard_max;
            if (!(v >= min && v <= max) && (min != 0 || max != 0))
                return (struct chunk_culprit){j, k, v};
        }
    return (struct chunk_culprit){-1, 0, 0};
}

static int by_size(const void *a, const void *b)
{
    const ns_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

ns_t swap_median(const ns_t *v, int n)
{
    ns_t sorted[INFER_TRIALS];
    if (n <= 0)
        return 0;
    n = n < INFER_TRIALS ? n : INFER_TRIALS;
    memcpy(sorted, v, (size_t)n * sizeof *v);
    qsort(sorted, (size_t)n, sizeof *sorted, by_size);
    return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}
