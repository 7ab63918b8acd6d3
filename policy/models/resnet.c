#include "policy/models/resnet.h"

#include <stdio.h>
#include <string.h>

#include "policy/kernels/image_ops.h"

struct plan_row {
    int depth, n_convs, expansion, blocks[4];
};

static const struct plan_row plans[] = {
    {18, 2, 1, {2, 2, 2, 2}},   {34, 2, 1, {3, 4, 6, 3}},   {50, 3, 4, {3, 4, 6, 3}},
    {101, 3, 4, {3, 4, 23, 3}}, {152, 3, 4, {3, 8, 36, 3}},
};

static const struct plan_row *find_plan(int depth)
{
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++)
        if (plans[i].depth == depth)
            return &plans[i];
    return NULL;
}

// ---- description ----------------------------------------------------------------------

static struct conv conv_of(int in, int out, int size, int stride, int dilation)
{
    return (struct conv){.in = in,
                         .out = out,
                         .size = size,
                         .stride = stride,
                         .pad = size / 2 * dilation,
                         .dilation = dilation};
}

static void name_block(struct resnet_block *block, struct build *b, const char *prefix)
{
    char conv[BUILD_NAME_MAX], bn[BUILD_NAME_MAX];
    for (int i = 0; i < block->n_convs; i++) {
        snprintf(conv, sizeof conv, "%sconv%d", prefix, i + 1);
        snprintf(bn, sizeof bn, "%sbn%d", prefix, i + 1);
        build_conv_bn(b, &block->conv[i], conv, bn);
    }
    if (!block->has_shortcut)
        return;
    snprintf(conv, sizeof conv, "%sdownsample.0", prefix);
    snprintf(bn, sizeof bn, "%sdownsample.1", prefix);
    build_conv_bn(b, &block->shortcut, conv, bn);
}

static void shape_block(struct resnet_block *block, const struct plan_row *plan, int in,
                        int width, int stride, int dilation)
{
    int out = width * plan->expansion;
    *block = (struct resnet_block){.n_convs = plan->n_convs};
    if (plan->n_convs == 2) {
        block->conv[0] = conv_of(in, width, 3, stride, dilation);
        block->conv[1] = conv_of(width, width, 3, 1, dilation);
    } else {
        block->conv[0] = conv_of(in, width, 1, 1, 1);
        block->conv[1] = conv_of(width, width, 3, stride, dilation);
        block->conv[2] = conv_of(width, out, 1, 1, 1);
    }
    block->has_shortcut = stride != 1 || in != out;
    if (block->has_shortcut)
        block->shortcut = conv_of(in, out, 1, stride, 1);
}

void resnet_build(struct resnet *r, struct build *b, int depth, bool dilation,
                  const char *prefix)
{
    char name[128], bn[128];
    const struct plan_row *plan = find_plan(depth);
    if (!plan) {
        build_refuse(
            b, "vision_backbone resnet%d is unknown: use resnet18, 34, 50, 101 or 152",
            depth);
        return;
    }
    *r = (struct resnet){.depth = depth, .stem = conv_of(3, 64, 7, 2, 1)};
    snprintf(name, sizeof name, "%sconv1", prefix);
    snprintf(bn, sizeof bn, "%sbn1", prefix);
    build_conv_bn(b, &r->stem, name, bn);
    int in = r->stem.out;
    for (int layer = 0; layer < 4; layer++) {
        bool keep = layer == 3 && dilation;
        for (int i = 0; i < plan->blocks[layer]; i++) {
            struct resnet_block *block = &r->block[r->n_blocks++];
            int width = 64 << layer, stride = layer > 0 && i == 0 && !keep ? 2 : 1;
            shape_block(block, plan, in, width, stride, keep && i > 0 ? 2 : 1);
            snprintf(name, sizeof name, "%slayer%d.%d.", prefix, layer + 1, i);
            name_block(block, b, name);
            in = width * plan->expansion;
        }
    }
    r->channels = in;
}

// ---- sizes ----------------------------------------------------------------------------

static void raise_to(size_t *need, size_t floats)
{
    if (floats > *need)
        *need = floats;
}

// Counts one convolution and moves (h, w) to its output size.
static void plan_conv(const struct conv *c, int *h, int *w, struct resnet_state *s,
                      size_t *map_floats)
{
    *h = conv_extent(c, *h);
    *w = conv_extent(c, *w);
    raise_to(map_floats, (size_t)*h * (size_t)*w * (size_t)c->out);
    raise_to(&s->tile_floats, conv_tile_floats(c, *h * *w));
}

static void plan_block(const struct resnet_block *block, int *h, int *w,
                       struct resnet_state *s)
{
    int shortcut_h = *h, shortcut_w = *w;
    if (block->has_shortcut)
        plan_conv(&block->shortcut, &shortcut_h, &shortcut_w, s, &s->map_floats);
    for (int i = 0; i < block->n_convs; i++)
        plan_conv(&block->conv[i], h, w, s, &s->map_floats);
}

static void walk(const struct resnet *r, int *h, int *w, struct resnet_state *s)
{
    raise_to(&s->pixel_floats, 3 * (size_t)*h * (size_t)*w);
    plan_conv(&r->stem, h, w, s, &s->stem_floats);
    *h = max_pool_extent(*h);
    *w = max_pool_extent(*w);
    raise_to(&s->map_floats, (size_t)*h * (size_t)*w * (size_t)r->stem.out);
    for (int i = 0; i < r->n_blocks; i++)
        plan_block(&r->block[i], h, w, s);
    raise_to(&s->stem_floats, s->map_floats);
}

void resnet_feature_size(const struct resnet *r, int height, int width,
                         int *feature_height, int *feature_width)
{
    struct resnet_state unused = {0};
    *feature_height = height;
    *feature_width = width;
    walk(r, feature_height, feature_width, &unused);
}

void resnet_plan(const struct resnet *r, int height, int width, struct resnet_state *s)
{
    walk(r, &height, &width, s);
}

// ---- forward --------------------------------------------------------------------------

struct map {
    float *data; // (height, width, channels of whoever wrote it)
    int height, width;
};

// y = f(conv(x)), or with `add` y = f(conv(x) + y)
static void convolve(const struct conv *c, struct resnet_state *s, struct pool *pool,
                     struct map x, struct map *y, bool add, enum activation f)
{
    y->height = conv_extent(c, x.height);
    y->width = conv_extent(c, x.width);
    conv_run(pool, c, x.data, x.height, x.width, y->data, add, f, s->tiles,
             s->tile_floats);
}

// relu(conv(...relu(conv(x))) + shortcut(x)). The last convolution is accumulated onto
// the shortcut where it lies: in x itself, or in m[1], which then changes places with x.
static void forward_block(const struct resnet_block *block, struct resnet_state *s,
                          struct pool *pool, struct map m[4])
{
    struct map *sum = &m[0], *inner = &m[2];
    if (block->has_shortcut) {
        sum = &m[1];
        convolve(&block->shortcut, s, pool, m[0], sum, false, ACTIVATION_NONE);
    }
    convolve(&block->conv[0], s, pool, m[0], inner, false, ACTIVATION_RELU);
    if (block->n_convs == 3) {
        inner = &m[3];
        convolve(&block->conv[1], s, pool, m[2], inner, false, ACTIVATION_RELU);
    }
    convolve(&block->conv[block->n_convs - 1], s, pool, *inner, sum, true,
             ACTIVATION_RELU);
    if (block->has_shortcut) {
        struct map old = m[0];
        m[0] = m[1];
        m[1] = old;
    }
}

void resnet_forward(const struct resnet *r, struct resnet_state *s, struct pool *pool,
                    const float *planes, int height, int width, float *features)
{
    struct map m[4] = {{.data = s->map[0]},
                       {.data = s->map[1]},
                       {.data = s->map[2]},
                       {.data = s->map[3]}};
    struct map image = {s->pixels, height, width};
    interleave_run(pool, planes, 3, height, width, s->pixels);
    convolve(&r->stem, s, pool, image, &m[1], false, ACTIVATION_RELU);
    max_pool_run(pool, m[1].data, m[1].height, m[1].width, r->stem.out, m[0].data);
    m[0].height = max_pool_extent(m[1].height);
    m[0].width = max_pool_extent(m[1].width);
    for (int i = 0; i < r->n_blocks; i++)
        forward_block(&r->block[i], s, pool, m);
    memcpy(features, m[0].data,
           (size_t)m[0].height * (size_t)m[0].width * (size_t)r->channels *
               sizeof *features);
}
