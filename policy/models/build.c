#include "policy/models/build.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/finite.h"
#include "policy/memory.h"
#include "policy/refuse.h"

#define BATCH_NORM_EPS 1e-5 // torchvision's FrozenBatchNorm2d, inside the square root

static void fail(struct build *b, int rc)
{
    if (b->rc == 0)
        b->rc = rc;
}

void build_refuse(struct build *b, const char *format, ...)
{
    char text[sizeof b->err->text];
    va_list args;
    if (b->rc)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    b->rc = refuse(b->err, EINVAL, "%s", text);
}

static size_t count(int rank, const int *shape)
{
    size_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= (size_t)shape[i];
    return n;
}

// Every tensor passes here once while measuring and once while reading. What it wants beside the
// name is in `how`.
static void want(struct build *b, const char *name, int rank, const int *shape,
                 struct st_want how)
{
    if (b->reading && b->rc == 0) {
        struct st_want *w = &b->want[b->n_wants];
        fail(b, lerobot_want(b->weights, name, rank, shape, how.dst, w, b->err));
        w->begin = how.begin;
        w->done = how.done;
        w->arg = how.arg;
    }
    if (!b->reading)
        b->parameters += count(rank, shape);
    b->n_wants++;
}

// A place in the arena, filled when reading. The tail is appended to the name.
static float *take(struct build *b, int rank, const int *shape, const char *name,
                   const char *tail)
{
    char full[BUILD_NAME_MAX + 16];
    float *p = arena_floats(b->arena, count(rank, shape));
    snprintf(full, sizeof full, "%s%s", name, tail);
    want(b, full, rank, shape, (struct st_want){.dst = p});
    return p;
}

float *build_tensor(struct build *b, int rank, const int *shape, const char *format, ...)
{
    char name[BUILD_NAME_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    return take(b, rank, shape, name, "");
}

void build_layer_norm(struct build *b, struct layer_norm *n, int dim, const char *format,
                      ...)
{
    char name[BUILD_NAME_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    n->dim = dim;
    n->weight = take(b, 1, &dim, name, ".weight");
    n->bias = take(b, 1, &dim, name, ".bias");
}

// ---- matrices -------------------------------------------------------------------------

// One tensor on its way into packed matrices: it passes through memory that the next one uses
// again, since they come one after the other.
struct build_pack {
    struct build *b;
    int in, n_parts;
    struct build_part part[BUILD_PARTS];
};

static float *stage(void *arg, size_t n)
{
    struct build *b = ((struct build_pack *)arg)->b;
    if (n > b->staged) {
        free(b->stage);
        b->stage = malloc(n * sizeof *b->stage);
        b->staged = b->stage ? n : 0;
    }
    return b->stage;
}

static void pack(void *arg, float *values)
{
    const struct build_pack *p = arg;
    for (int i = 0; i < p->n_parts; i++) {
        const struct build_part *part = &p->part[i];
        linear_pack(part->l, part->column, part->rows,
                    values + (size_t)part->from * (size_t)p->in, (size_t)p->in);
    }
}

void build_matrix(struct build *b, struct linear *l, int out, int in, enum precision p)
{
    *l = (struct linear){.in = in, .out = out, .precision = p, .room = b->room};
    linear_place(l, arena_take(b->arena, 1, linear_bytes(l)));
}

void build_parts(struct build *b, int rank, const int *shape, int n_parts,
                 const struct build_part *parts, const char *format, ...)
{
    char name[BUILD_NAME_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    struct build_pack *p = b->reading ? &b->pack[b->n_packs] : NULL;
    if (p) {
        *p = (struct build_pack){.b = b, .in = (int)count(rank - 1, shape + 1)};
        p->n_parts = n_parts;
        memcpy(p->part, parts, (size_t)n_parts * sizeof *parts);
    }
    b->n_packs++;
    want(b, name, rank, shape, (struct st_want){.begin = stage, .done = pack, .arg = p});
}

void build_linear(struct build *b, struct linear *l, int out, int in, enum precision p,
                  const char *format, ...)
{
    char name[BUILD_NAME_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    build_matrix(b, l, out, in, p);
    build_parts(b, 2, (int[]){out, in}, 1, &(struct build_part){l, 0, 0, out},
                "%s.weight", name);
    l->bias = take(b, 1, (int[]){out}, name, ".bias");
}

// ---- convolutions ---------------------------------------------------------------------

// Five tensors make a convolution, and they come in the file's order: the weights are kept aside
// until the batch norm is there (in a file of torch's, whose names are sorted, that is so at once
// for all but the shortcuts'), then folded, packed and let go.
struct build_fold {
    struct build *b;
    struct build_conv c;
    float *raw;    // (out, in, size, size), NULL: has not come
    float *bn;     // (4, out) weight, bias, running_mean, running_var
    int missing;   // of the five
    char name[96]; // of the batch norm
};

static size_t row_floats(const struct build_conv *c)
{
    return (size_t)c->in * (size_t)c->size * (size_t)c->size;
}

// Row o of (out, in, size, size) times scale[o] becomes row o of (out, size, size, in).
static bool fold_row(const struct build_fold *f, size_t o, float *row)
{
    const struct build_conv *c = &f->c;
    size_t in = (size_t)c->in, taps = (size_t)c->size * (size_t)c->size,
           out = (size_t)c->out;
    double gamma = f->bn[o], beta = f->bn[out + o], mean = f->bn[2 * out + o];
    double scale = gamma / sqrt((double)f->bn[3 * out + o] + BATCH_NORM_EPS);
    const float *raw = f->raw + o * in * taps;
    c->bias[o] = (float)(beta - mean * scale);
    for (size_t i = 0; i < in; i++)
        for (size_t t = 0; t < taps; t++)
            row[t * in + i] = (float)((double)raw[i * taps + t] * scale);
    return isfinite(c->bias[o]) && finite_prefix(row, in * taps) == in * taps;
}

static bool fold_all(const struct build_fold *f, float *folded)
{
    size_t out = (size_t)f->c.out;
    for (size_t o = 0; o < out; o++) {
        float variance = f->bn[3 * out + o];
        if (!((double)variance + BATCH_NORM_EPS > 0.0)) {
            build_refuse(
                f->b,
                "%s.running_var has the negative variance %g for channel %zu: the "
                "checkpoint is damaged, export it again",
                f->name, (double)variance, o);
            return false;
        }
        if (!fold_row(f, o, folded + o * row_floats(&f->c))) {
            build_refuse(
                f->b,
                "%s scales the weights of channel %zu beyond what a float holds: the "
                "training diverged, use an earlier checkpoint",
                f->name, o);
            return false;
        }
    }
    return true;
}

static void one_came(struct build_fold *f)
{
    if (--f->missing > 0 || f->b->rc)
        return;
    float *folded = malloc((size_t)f->c.out * row_floats(&f->c) * sizeof *folded);
    if (!folded)
        fail(f->b, refuse(f->b->err, ENOMEM, "no memory to fold batch norms"));
    else if (fold_all(f, folded))
        f->c.pack(f->c.layer, folded);
    free(folded);
    free(f->raw);
    f->raw = NULL;
}

static void norm_came(void *arg, float *values)
{
    (void)values; // where they belong
    one_came(arg);
}

static float *keep_aside(void *arg, size_t n)
{
    struct build_fold *f = arg;
    f->raw = malloc(n * sizeof *f->raw);
    return f->raw;
}

void build_conv_bn(struct build *b, const struct build_conv *c, const char *conv,
                   const char *bn)
{
    static const char *const part[4] = {"weight", "bias", "running_mean", "running_var"};
    int shape[4] = {c->out, c->in, c->size, c->size};
    size_t out = (size_t)c->out, at = b->bn_floats;
    char name[BUILD_NAME_MAX + 16];
    struct build_fold *f = b->reading ? &b->fold[b->n_folds] : NULL;
    if (f) {
        *f = (struct build_fold){.b = b, .c = *c, .bn = b->bn + at, .missing = 5};
        snprintf(f->name, sizeof f->name, "%s", bn);
    }
    b->n_folds++;
    b->bn_floats += 4 * out;
    snprintf(name, sizeof name, "%s.weight", conv);
    want(b, name, 4, shape,
         (struct st_want){.begin = keep_aside, .done = norm_came, .arg = f});
    for (size_t k = 0; k < 4; k++) {
        snprintf(name, sizeof name, "%s.%s", bn, part[k]);
        want(b, name, 1, &c->out,
             (struct st_want){
                 .dst = f ? f->bn + k * out : NULL, .done = norm_came, .arg = f});
    }
}

// ---- the steps ------------------------------------------------------------------------

static void reserve(struct build *b)
{
    size_t bytes = b->arena->used;
    int rc = memory_check(bytes, b->err);
    if (rc == 0)
        rc = arena_reserve(b->arena);
    else {
        fail(b, rc);
        return;
    }
    if (rc == -ENOMEM)
        fail(b, refuse(b->err, ENOMEM,
                       "the policy needs %zu MiB of memory, which the system refused: "
                       "free memory or raise the memory and memlock limits",
                       bytes >> 20));
    else if (rc)
        build_refuse(
            b, "the sizes in config.json need more memory than can be addressed: check "
               "dim_model, dim_feedforward, chunk_size and the image shapes");
}

int build_begin_reading(struct build *b)
{
    if (b->rc == 0)
        reserve(b);
    if (b->rc == 0) {
        b->want = calloc(b->n_wants + 1, sizeof *b->want);
        b->fold = calloc(b->n_folds + 1, sizeof *b->fold);
        b->pack = calloc(b->n_packs + 1, sizeof *b->pack);
        b->bn = calloc(b->bn_floats + 1, sizeof *b->bn);
        if (!b->want || !b->fold || !b->pack || !b->bn)
            fail(b, refuse(b->err, ENOMEM, "no memory for the list of weights"));
    }
    b->n_wants = b->n_folds = b->n_packs = b->bn_floats = 0;
    b->reading = b->rc == 0;
    return b->rc;
}

int build_read(struct build *b, const _Atomic bool *cancel,
               char sha256[POLICY_DIGEST_HEX])
{
    if (b->rc == 0)
        fail(b, st_read_wanted(b->weights->weights, b->want, b->n_wants, cancel, sha256,
                               b->err));
    return b->rc;
}

int build_end(struct build *b)
{
    for (size_t i = 0; b->fold && i < b->n_folds; i++)
        free(b->fold[i].raw); // of a reading that ended early
    free(b->want);
    free(b->fold);
    free(b->pack);
    free(b->bn);
    free(b->stage);
    b->want = NULL;
    b->fold = NULL;
    b->pack = NULL;
    b->bn = b->stage = NULL;
    return b->rc;
}
