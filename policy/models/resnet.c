#include "policy/models/resnet.h"

#include <stdio.h>

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
                         .dilation = dilation,
                         .kernel = gemm_kernel()};
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

// 0 blocks: a depth that there is not.
static void shape(struct resnet *r, int depth, bool dilation)
{
    const struct plan_row *plan = find_plan(depth);
    *r = (struct resnet){.depth = depth, .stem = {.out = 64, .kernel = stem_kernel()}};
    int in = r->stem.out;
    for (int layer = 0; plan && layer < 4; layer++) {
        bool keep = layer == 3 && dilation;
        for (int i = 0; i < plan->blocks[layer]; i++) {
            int width = 64 << layer, stride = layer > 0 && i == 0 && !keep ? 2 : 1;
            shape_block(&r->block[r->n_blocks++], plan, in, width, stride,
                        keep && i > 0 ? 2 : 1);
            in = width * plan->expansion;
        }
        r->layer_end[layer] = r->n_blocks;
    }
    r->channels = in;
}

// ---- sizes ----------------------------------------------------------------------------

static void raise_to(size_t *need, size_t floats)
{
    if (floats > *need)
        *need = floats;
}

static struct resnet_size size_after(const struct conv *c, struct resnet_size x)
{
    return (struct resnet_size){conv_extent(c, x.height), conv_extent(c, x.width)};
}

static struct resnet_size size_after_block(const struct resnet_block *block,
                                           struct resnet_size x)
{
    for (int i = 0; i < block->n_convs; i++)
        x = size_after(&block->conv[i], x);
    return x;
}

static struct resnet_size size_after_stem(struct resnet_size image)
{
    struct resnet_size y;

    stem_extent(image.height, image.width, &y.height, &y.width);
    return y;
}

void resnet_feature_size(const struct resnet *r, int height, int width,
                         int *feature_height, int *feature_width)
{
    struct resnet_size x = size_after_stem((struct resnet_size){height, width});

    for (int i = 0; i < r->n_blocks; i++)
        x = size_after_block(&r->block[i], x);
    *feature_height = x.height;
    *feature_width = x.width;
}

// ---- plan -----------------------------------------------------------------------------

// Counts what a convolution of x needs; its output's size.
static struct resnet_size plan_conv(const struct conv *c, struct resnet_size x,
                                    struct resnet_state *s)
{
    struct resnet_size y = size_after(c, x);

    raise_to(&s->map_floats, map_floats(y.height, y.width, c->out));
    raise_to(&s->scratch_floats, conv_scratch_floats(c, x.width));
    return y;
}

static void plan_image(const struct resnet *r, struct resnet_size image,
                       struct resnet_state *s)
{
    struct resnet_size x = size_after_stem(image);

    raise_to(&s->map_floats, map_floats(x.height, x.width, r->stem.out));
    raise_to(&s->scratch_floats, stem_scratch_floats(&r->stem, image.width));
    for (int i = 0; i < r->n_blocks; i++) {
        const struct resnet_block *block = &r->block[i];

        if (block->has_shortcut)
            plan_conv(&block->shortcut, x, s);
        for (int k = 0; k < block->n_convs; k++)
            x = plan_conv(&block->conv[k], x, s);
    }
}

void resnet_plan(const struct resnet *r, const struct resnet_size *image, int n,
                 struct resnet_state *s)
{
    for (int i = 0; i < n; i++)
        plan_image(r, image[i], s);
}

// ---- weights --------------------------------------------------------------------------

static void choose_ways(struct resnet *r, struct resnet_size image)
{
    struct resnet_size x = size_after_stem(image);

    for (int i = 0; i < r->n_blocks; i++) {
        struct resnet_block *block = &r->block[i];

        if (block->has_shortcut)
            block->shortcut.way = conv_plan(&block->shortcut, x.height, x.width);
        for (int k = 0; k < block->n_convs; k++) {
            block->conv[k].way = conv_plan(&block->conv[k], x.height, x.width);
            x = size_after(&block->conv[k], x);
        }
    }
}

static struct resnet_size largest(const struct resnet_size *image, int n)
{
    struct resnet_size most = image[0];

    for (int i = 1; i < n; i++)
        if ((long)image[i].height * image[i].width > (long)most.height * most.width)
            most = image[i];
    return most;
}

static void pack_conv(void *layer, const float *weight)
{
    conv_pack(layer, weight);
}

static void pack_stem(void *layer, const float *weight)
{
    stem_pack(layer, weight);
}

static void build_conv(struct build *b, struct conv *c, const char *conv, const char *bn)
{
    c->bf16 = b->bf16;
    c->weight = arena_floats(b->arena, conv_weight_floats(c));
    c->bias = arena_floats(b->arena, (size_t)c->out);
    build_conv_bn(b,
                  &(struct build_conv){.out = c->out,
                                       .in = c->in,
                                       .size = c->size,
                                       .bias = c->bias,
                                       .layer = c,
                                       .pack = pack_conv},
                  conv, bn);
}

static void build_stem(struct build *b, struct stem *s, const char *prefix)
{
    char conv[BUILD_NAME_MAX], bn[BUILD_NAME_MAX];
    snprintf(conv, sizeof conv, "%sconv1", prefix);
    snprintf(bn, sizeof bn, "%sbn1", prefix);
    s->weight = arena_floats(b->arena, stem_weight_floats(s));
    s->bias = arena_floats(b->arena, (size_t)s->out);
    build_conv_bn(b,
                  &(struct build_conv){.out = s->out,
                                       .in = 3,
                                       .size = STEM_SIZE,
                                       .bias = s->bias,
                                       .layer = s,
                                       .pack = pack_stem},
                  conv, bn);
}

static void build_block(struct build *b, struct resnet_block *block, const char *prefix)
{
    char conv[BUILD_NAME_MAX], bn[BUILD_NAME_MAX];
    for (int i = 0; i < block->n_convs; i++) {
        snprintf(conv, sizeof conv, "%sconv%d", prefix, i + 1);
        snprintf(bn, sizeof bn, "%sbn%d", prefix, i + 1);
        build_conv(b, &block->conv[i], conv, bn);
    }
    if (!block->has_shortcut)
        return;
    snprintf(conv, sizeof conv, "%sdownsample.0", prefix);
    snprintf(bn, sizeof bn, "%sdownsample.1", prefix);
    build_conv(b, &block->shortcut, conv, bn);
}

void resnet_build(struct resnet *r, struct build *b, int depth, bool dilation,
                  const struct resnet_size *image, int n, const char *prefix)
{
    char name[128];
    shape(r, depth, dilation);
    if (r->n_blocks == 0) {
        build_refuse(
            b, "vision_backbone resnet%d is unknown: use resnet18, 34, 50, 101 or 152",
            depth);
        return;
    }
    choose_ways(r, largest(image, n));
    build_stem(b, &r->stem, prefix);
    for (int layer = 0, i = 0; layer < 4; layer++)
        for (int first = i; i < r->layer_end[layer]; i++) {
            snprintf(name, sizeof name, "%slayer%d.%d.", prefix, layer + 1, i - first);
            build_block(b, &r->block[i], name);
        }
}

// ---- forward --------------------------------------------------------------------------

// Memory for a map, and the map that was opened there last.
struct seat {
    float *memory;
    struct map map;
};

struct forward {
    struct resnet_state *s;
    struct pool *pool;
    struct seat place[4];
};

// A map of this size; opened anew, its room set to zero, only where another one was before.
static struct map *open_map(struct seat *p, int height, int width, int channels)
{
    struct map *m = &p->map;

    if (m->height != height || m->width != width || m->channels != channels)
        *m = map_open(p->memory, height, width, channels);
    return m;
}

// y = f(conv(x)), or with `add` y = f(conv(x) + y)
static void convolve(struct forward *fw, const char *what, const struct conv *c,
                     const struct seat *x, struct seat *y, bool add, enum activation f)
{
    struct map *to =
        open_map(y, conv_extent(c, x->map.height), conv_extent(c, x->map.width), c->out);

    conv_run(fw->pool, c, &x->map, to, add, f, fw->s->scratch, fw->s->scratch_floats);
    profile_conv(fw->s->profile, what, c, to->height, to->width);
}

// relu(conv(...relu(conv(x))) + shortcut(x)). The last convolution is accumulated onto the
// shortcut where it lies: in x itself, or in place[1], which then changes places with x.
static void forward_block(struct forward *fw, const struct resnet_block *block)
{
    struct seat *p = fw->place, *sum = &p[0], *inner = &p[2];

    if (block->has_shortcut) {
        sum = &p[1];
        convolve(fw, "shortcut", &block->shortcut, &p[0], sum, false, ACTIVATION_NONE);
    }
    convolve(fw, "conv1", &block->conv[0], &p[0], inner, false, ACTIVATION_RELU);
    if (block->n_convs == 3) {
        inner = &p[3];
        convolve(fw, "conv2", &block->conv[1], &p[2], inner, false, ACTIVATION_RELU);
    }
    convolve(fw, block->n_convs == 3 ? "conv3" : "conv2",
             &block->conv[block->n_convs - 1], inner, sum, true, ACTIVATION_RELU);
    if (block->has_shortcut) {
        struct seat old = p[0];

        p[0] = p[1];
        p[1] = old;
    }
}

void resnet_forward(const struct resnet *r, struct resnet_state *s, struct pool *pool,
                    const struct stem_image *image, float *features)
{
    struct forward fw = {.s = s, .pool = pool};
    int height, width;

    for (int i = 0; i < 4; i++)
        fw.place[i].memory = s->map[i];
    stem_extent(image->height, image->width, &height, &width);
    stem_run(pool, &r->stem, image, open_map(&fw.place[0], height, width, r->stem.out),
             s->scratch, s->scratch_floats);
    profile_stem(s->profile, &r->stem, image->height, image->width);
    for (int layer = 0, i = 0; layer < 4; layer++)
        for (int first = i; i < r->layer_end[layer]; i++) {
            profile_block(s->profile, layer + 1, i - first);
            forward_block(&fw, &r->block[i]);
        }
    map_flatten(pool, &fw.place[0].map, features);
    profile_other(s->profile, "features");
}
