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

// Every tensor passes here once while measuring and once while reading.
static void want(struct build *b, const char *name, int rank, const int *shape,
                 float *dst)
{
    if (b->reading && b->rc == 0)
        fail(b, lerobot_want(b->weights, name, rank, shape, dst, &b->want[b->n_wants],
                             b->err));
    b->n_wants++;
}

// A place in the arena, filled when reading. The tail is appended to the name.
static float *take(struct build *b, int rank, const int *shape, const char *name,
                   const char *tail)
{
    char full[BUILD_NAME_MAX + 16];
    float *p = arena_floats(b->arena, count(rank, shape));
    if (!b->reading)
        b->parameters += count(rank, shape);
    snprintf(full, sizeof full, "%s%s", name, tail);
    want(b, full, rank, shape, p);
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

void build_linear(struct build *b, struct linear *l, int out, int in, const char *format,
                  ...)
{
    char name[BUILD_NAME_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    *l = (struct linear){.in = in, .out = out};
    l->weight = take(b, 2, (int[]){out, in}, name, ".weight");
    l->bias = take(b, 1, (int[]){out}, name, ".bias");
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

// ---- convolutions ---------------------------------------------------------------------

// Weights are read to where they will stay and folded there: a row of the result takes the
// place of the same row as stored. The batch norms are read to memory of the builder.
struct build_fold {
    struct conv *c;
    float *bn;     // (4, out) weight, bias, running_mean, running_var
    char name[96]; // of the batch norm
};

void build_conv_bn(struct build *b, struct conv *c, const char *conv, const char *bn)
{
    static const char *const part[4] = {"weight", "bias", "running_mean", "running_var"};
    int shape[4] = {c->out, c->in, c->size, c->size};
    size_t n = count(4, shape), out = (size_t)c->out, at = b->bn_floats;
    char name[BUILD_NAME_MAX + 16];
    c->weight = arena_floats(b->arena, n);
    c->bias = arena_floats(b->arena, out);
    if (!b->reading)
        b->parameters += n + 4 * out;
    else {
        struct build_fold *f = &b->fold[b->n_folds];
        *f = (struct build_fold){.c = c, .bn = b->bn + at};
        snprintf(f->name, sizeof f->name, "%s", bn);
    }
    b->n_folds++;
    b->bn_floats += 4 * out;
    snprintf(name, sizeof name, "%s.weight", conv);
    want(b, name, 4, shape, c->weight);
    for (size_t k = 0; k < 4; k++) {
        snprintf(name, sizeof name, "%s.%s", bn, part[k]);
        want(b, name, 1, &c->out, b->reading ? b->bn + at + k * out : NULL);
    }
}

// Row o of (out, in, size, size) times scale[o] becomes row o of (out, size, size, in).
static bool fold_row(struct conv *c, const float *bn, size_t o, float *temp)
{
    size_t in = (size_t)c->in, taps = (size_t)c->size * (size_t)c->size,
           out = (size_t)c->out;
    double gamma = bn[o], beta = bn[out + o], mean = bn[2 * out + o];
    double scale = gamma / sqrt((double)bn[3 * out + o] + BATCH_NORM_EPS);
    float *row = c->weight + o * in * taps;
    c->bias[o] = (float)(beta - mean * scale);
    for (size_t i = 0; i < in; i++)
        for (size_t t = 0; t < taps; t++)
            temp[t * in + i] = (float)((double)row[i * taps + t] * scale);
    memcpy(row, temp, in * taps * sizeof *row);
    return isfinite(c->bias[o]) && finite_prefix(row, in * taps) == in * taps;
}

static void fold(struct build *b, const struct build_fold *f, float *temp)
{
    size_t out = (size_t)f->c->out;
    for (size_t o = 0; o < out && b->rc == 0; o++) {
        float variance = f->bn[3 * out + o];
        if (!((double)variance + BATCH_NORM_EPS > 0.0))
            build_refuse(
                b,
                "%s.running_var has the negative variance %g for channel %zu: the "
                "checkpoint is damaged, export it again",
                f->name, (double)variance, o);
        else if (!fold_row(f->c, f->bn, o, temp))
            build_refuse(
                b,
                "%s scales the weights of channel %zu beyond what a float holds: the "
                "training diverged, use an earlier checkpoint",
                f->name, o);
    }
}

static size_t longest_row(const struct build *b)
{
    size_t most = 0;
    for (size_t i = 0; i < b->n_folds; i++) {
        const struct conv *c = b->fold[i].c;
        size_t n = (size_t)c->in * (size_t)c->size * (size_t)c->size;
        most = n > most ? n : most;
    }
    return most;
}

int build_fold(struct build *b)
{
    float *temp = b->rc ? NULL : malloc((longest_row(b) + 1) * sizeof *temp);
    if (!temp && b->rc == 0)
        fail(b, refuse(b->err, ENOMEM, "no memory to fold batch norms"));
    for (size_t i = 0; i < b->n_folds && b->rc == 0; i++)
        fold(b, &b->fold[i], temp);
    free(temp);
    return b->rc;
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
        b->bn = calloc(b->bn_floats + 1, sizeof *b->bn);
        if (!b->want || !b->fold || !b->bn)
            fail(b, refuse(b->err, ENOMEM, "no memory for the list of weights"));
    }
    b->n_wants = b->n_folds = b->bn_floats = 0;
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
    free(b->want);
    free(b->fold);
    free(b->bn);
    b->want = NULL;
    b->fold = NULL;
    b->bn = NULL;
    return b->rc;
}
