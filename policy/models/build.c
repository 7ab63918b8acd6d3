#include "policy/models/build.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

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

static void read_into(struct build *b, const char *name, int rank, const int *shape,
                      float *dst)
{
    if (b->reading && b->rc == 0)
        fail(b, lerobot_tensor(b->weights, name, rank, shape, dst, b->err));
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
    read_into(b, full, rank, shape, p);
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

// Memory for a convolution and its four batch norm vectors as stored; grows, never
// shrinks.
static float *raw_room(struct build *b, size_t floats)
{
    if (floats > b->raw_floats) {
        free(b->raw);
        b->raw = malloc(floats * sizeof *b->raw);
        b->raw_floats = b->raw ? floats : 0;
        if (!b->raw)
            fail(b, -ENOMEM);
    }
    return b->raw;
}

// (out, in, size, size) times scale[out] to (out, size, size, in)
static void fold(struct conv *c, const float *w, const float *bn, int o)
{
    size_t in = (size_t)c->in, taps = (size_t)c->size * (size_t)c->size,
           out = (size_t)c->out;
    size_t row = (size_t)o;
    double gamma = bn[row], beta = bn[out + row], mean = bn[2 * out + row];
    double scale = gamma / sqrt((double)bn[3 * out + row] + BATCH_NORM_EPS);
    c->bias[row] = (float)(beta - mean * scale);
    for (size_t i = 0; i < in; i++)
        for (size_t t = 0; t < taps; t++)
            c->weight[(row * taps + t) * in + i] =
                (float)((double)w[(row * in + i) * taps + t] * scale);
}

static void read_conv_bn(struct build *b, struct conv *c, const char *conv,
                         const char *bn)
{
    static const char *const part[4] = {"weight", "bias", "running_mean", "running_var"};
    int shape[4] = {c->out, c->in, c->size, c->size};
    size_t n = count(4, shape), out = (size_t)c->out;
    char name[BUILD_NAME_MAX + 16];
    float *w = raw_room(b, n + 4 * out), *stats = w + n; // stats (4, out)
    if (b->rc)
        return;
    snprintf(name, sizeof name, "%s.weight", conv);
    read_into(b, name, 4, shape, w);
    for (size_t k = 0; k < 4; k++) {
        snprintf(name, sizeof name, "%s.%s", bn, part[k]);
        read_into(b, name, 1, &c->out, stats + k * out);
    }
    for (int o = 0; o < c->out && b->rc == 0; o++) {
        if (!((double)stats[3 * out + (size_t)o] + BATCH_NORM_EPS > 0.0)) {
            build_refuse(
                b,
                "%s.running_var has the negative variance %g for channel %d: the "
                "checkpoint is damaged, export it again",
                bn, (double)stats[3 * out + (size_t)o], o);
            return;
        }
        fold(c, w, stats, o);
    }
}

void build_conv_bn(struct build *b, struct conv *c, const char *conv, const char *bn)
{
    size_t n = (size_t)c->out * (size_t)c->in * (size_t)c->size * (size_t)c->size;
    c->weight = arena_floats(b->arena, n);
    c->bias = arena_floats(b->arena, (size_t)c->out);
    if (b->reading)
        read_conv_bn(b, c, conv, bn);
    else
        b->parameters += n + 4 * (size_t)c->out;
}

int build_begin_reading(struct build *b)
{
    int rc = b->rc ? 0 : arena_reserve(b->arena);
    if (rc == -ENOMEM)
        fail(b,
             refuse(b->err, ENOMEM,
                    "the policy needs %zu MiB of memory, which the system refused: free "
                    "memory or raise the memory and memlock limits",
                    b->arena->used >> 20));
    else if (rc)
        build_refuse(
            b, "the sizes in config.json need more memory than can be addressed: check "
               "dim_model, dim_feedforward, chunk_size and the image shapes");
    b->reading = b->rc == 0;
    return b->rc;
}

int build_end(struct build *b)
{
    free(b->raw);
    b->raw = NULL;
    b->raw_floats = 0;
    return b->rc;
}
