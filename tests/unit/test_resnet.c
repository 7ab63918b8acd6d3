// The backbone against a naive twin in double that knows nothing of maps, ways and packed weights:
// basic blocks and bottlenecks, dilation, sizes that no tile fits, several sizes in turn. This test
// stands in for the builder, too: it gives every convolution that is asked for random weights, and
// keeps them under their names, by which the twin takes them.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/models/resnet.h"
#include "tests/unit/slow.h"

static uint64_t rng = 1;

static float next(void) // in [-1, 1)
{
    rng = rng * 6364136223846793005u + 1442695040888963407u;
    return (float)(rng >> 48) / 32768.0f - 1.0f;
}

// ---- weights, by name ---------------------------------------------------------------------------

struct layer {
    char name[BUILD_NAME_MAX];
    int out, in, size;
    float *weight; // (out, size, size, in)
    float *bias;   // (out)
};

static struct layer layers[3 * RESNET_MAX_BLOCKS + 8];
static int n_layers;

static const struct layer *layer_of(const char *name)
{
    for (int i = 0; i < n_layers; i++)
        if (strcmp(layers[i].name, name) == 0)
            return &layers[i];
    fail_msg("nobody asked for %s", name);
    return NULL;
}

static void forget_layers(void)
{
    while (n_layers > 0) {
        n_layers--;
        free(layers[n_layers].weight);
        free(layers[n_layers].bias);
    }
}

// Variances stay about 1: 2/n for uniform numbers of variance 1/3, and half of it for what is added
// to a shortcut.
static double share_of(const char *name, int size)
{
    size_t n = strlen(name);
    bool last = n > 5 && strcmp(name + n - 5, size == 1 ? "conv3" : "conv2") == 0;

    return last || strstr(name, "downsample") ? 0.5 : 1.0;
}

// The builder's, in its place.
void build_conv_bn(struct build *b, const struct build_conv *c, const char *conv,
                   const char *bn)
{
    struct layer *l = &layers[n_layers];
    int n = c->in * c->size * c->size;
    float scale = (float)sqrt(6.0 * share_of(conv, c->size) / n);

    assert_non_null(bn);
    if (!b->reading)
        return;
    assert_true((size_t)n_layers++ < sizeof layers / sizeof *layers);
    snprintf(l->name, sizeof l->name, "%s", conv);
    l->out = c->out;
    l->in = c->in;
    l->size = c->size;
    l->weight = malloc((size_t)(n * c->out) * sizeof *l->weight);
    l->bias = malloc((size_t)c->out * sizeof *l->bias);
    for (int i = 0; i < n * c->out; i++)
        l->weight[i] = next() * scale;
    for (int i = 0; i < c->out; i++)
        c->bias[i] = l->bias[i] = next() * 0.1f;
    c->pack(c->layer, l->weight);
}

void build_refuse(struct build *b, const char *format, ...)
{
    (void)format;
    b->rc = -EINVAL;
}

// ---- a backbone ---------------------------------------------------------------------------------

struct scene {
    struct resnet r;
    struct resnet_state s;
    struct arena arena;
};

static void lay_out(struct scene *s, int depth, bool dilation,
                    const struct resnet_size *size, int n, int workers)
{
    struct build b = {.arena = &s->arena, .reading = s->arena.base != NULL};

    s->s = (struct resnet_state){0};
    resnet_build(&s->r, &b, depth, dilation, size, n, "body.");
    assert_int_equal(b.rc, 0);
    resnet_plan(&s->r, size, n, &s->s);
    for (int i = 0; i < 4; i++)
        s->s.map[i] = arena_floats(&s->arena, s->s.map_floats);
    s->s.scratch_floats = (s->s.scratch_floats + 15) / 16 * 16;
    s->s.scratch = arena_floats(&s->arena, s->s.scratch_floats * (size_t)workers);
}

static void scene_new(struct scene *s, int depth, bool dilation,
                      const struct resnet_size *size, int n, int workers)
{
    memset(s, 0, sizeof *s);
    lay_out(s, depth, dilation, size, n, workers);
    assert_int_equal(arena_reserve(&s->arena), 0);
    lay_out(s, depth, dilation, size, n, workers);
    assert_false(s->arena.overflow);
}

// ---- the twin -----------------------------------------------------------------------------------

struct plain {
    double *v; // (h, w, c)
    int h, w, c;
};

static double at(const struct plain *m, int y, int x, int c)
{
    return y < 0 || x < 0 || y >= m->h || x >= m->w ? 0.0
                                                    : m->v[(y * m->w + x) * m->c + c];
}

// One value of a convolution; padding is half of the kernel's reach, as everywhere in a ResNet.
static double one_output(const struct layer *l, const struct plain *x, int oy, int ox,
                         int o, int dilation)
{
    const float *g = l->weight + (size_t)o * (size_t)(l->size * l->size * l->in);
    double sum = (double)l->bias[o];

    for (int a = -(l->size / 2); a <= l->size / 2; a++)
        for (int b = -(l->size / 2); b <= l->size / 2; b++)
            for (int i = 0; i < l->in; i++)
                sum += (double)*g++ * at(x, oy + a * dilation, ox + b * dilation, i);
    return sum;
}

// conv(x), the one of this name
static struct plain twin_conv(const char *name, struct plain x, int stride, int dilation)
{
    const struct layer *l = layer_of(name);
    struct plain y = {NULL, (x.h - 1) / stride + 1, (x.w - 1) / stride + 1, l->out};

    assert_int_equal(l->in, x.c);
    y.v = malloc((size_t)(y.h * y.w * y.c) * sizeof *y.v);
    for (int i = 0; i < y.h * y.w * y.c; i++)
        y.v[i] = one_output(l, &x, i / y.c / y.w * stride, i / y.c % y.w * stride,
                            i % y.c, dilation);
    return y;
}

// relu(x + add) in x; add may be nothing
static struct plain relu(struct plain x, const struct plain *add)
{
    for (int i = 0; i < x.h * x.w * x.c; i++)
        x.v[i] = fmax(0.0, x.v[i] + (add ? add->v[i] : 0.0));
    return x;
}

static struct plain twin_pool(struct plain x)
{
    struct plain y = {NULL, (x.h - 1) / 2 + 1, (x.w - 1) / 2 + 1, x.c};

    y.v = calloc((size_t)(y.h * y.w * y.c), sizeof *y.v); // after a ReLU nothing is below
    for (int i = 0; i < y.h * y.w * y.c; i++)
        for (int k = 0; k < 9; k++)
            y.v[i] = fmax(y.v[i], at(&x, i / y.c / y.w * 2 - 1 + k / 3,
                                     i / y.c % y.w * 2 - 1 + k % 3, i % y.c));
    return y;
}

// relu(conv(...relu(conv(x))) + shortcut(x)); x is let go. In a bottleneck the second of the three
// has the stride, else the first of the two.
static struct plain twin_block(const char *block, struct plain x, int n_convs,
                               bool shortcut, int stride, int dilation)
{
    char name[BUILD_NAME_MAX + 16];
    struct plain y = x, sum = x;

    for (int k = 1; k <= n_convs; k++) {
        bool strides = k == n_convs - 1, last = k == n_convs;

        snprintf(name, sizeof name, "%s.conv%d", block, k);
        struct plain z = twin_conv(name, y, strides ? stride : 1,
                                   layer_of(name)->size == 3 ? dilation : 1);
        if (k > 1)
            free(y.v);
        y = last ? z : relu(z, NULL);
    }
    snprintf(name, sizeof name, "%s.downsample.0", block);
    if (shortcut)
        sum = twin_conv(name, x, stride, 1);
    y = relu(y, &sum);
    if (shortcut)
        free(sum.v);
    free(x.v);
    return y;
}

struct depth {
    int depth, n_convs, blocks[4];
};

static struct plain twin(const struct depth *d, bool dilation, struct plain image)
{
    char name[BUILD_NAME_MAX];
    struct plain y = relu(twin_conv("body.conv1", image, 2, 1), NULL), x = twin_pool(y);

    free(y.v);
    for (int layer = 0; layer < 4; layer++)
        for (int i = 0; i < d->blocks[layer]; i++) {
            bool keep = layer == 3 && dilation;
            int stride = layer > 0 && i == 0 && !keep ? 2 : 1;

            snprintf(name, sizeof name, "body.layer%d.%d", layer + 1, i);
            x = twin_block(name, x, d->n_convs, i == 0 && (layer > 0 || d->n_convs == 3),
                           stride, keep && i > 0 ? 2 : 1);
        }
    return x;
}

// ---- tests --------------------------------------------------------------------------------------

static struct plain plain_image(const struct stem_image *image)
{
    int pixels = image->height * image->width;
    struct plain x = {malloc((size_t)(3 * pixels) * sizeof(double)), image->height,
                      image->width, 3};

    for (int i = 0; i < 3 * pixels; i++)
        x.v[i] = (double)image->planes[i % 3 * pixels + i / 3];
    return x;
}

static void check_image(struct scene *s, struct pool *pool, const struct depth *d,
                        bool dilation, struct resnet_size size)
{
    size_t n = (size_t)(3 * size.height * size.width);
    float *planes = malloc(n * sizeof *planes), *features;
    struct stem_image image = {
        .height = size.height, .width = size.width, .planes = planes};
    double worst = 0.0, square = 0.0;
    int h, w;

    for (size_t i = 0; i < n; i++)
        planes[i] = next();
    struct plain seen = plain_image(&image), want = twin(d, dilation, seen);
    resnet_feature_size(&s->r, size.height, size.width, &h, &w);
    assert_int_equal(h, want.h);
    assert_int_equal(w, want.w);
    assert_int_equal(s->r.channels, want.c);
    features = malloc((size_t)(h * w * want.c) * sizeof *features);
    resnet_forward(&s->r, &s->s, pool, &image, features);
    for (int i = 0; i < h * w * want.c; i++) {
        worst = fmax(worst, fabs((double)features[i] - want.v[i]));
        square += want.v[i] * want.v[i] / (h * w * want.c);
    }
    if (!(worst <= 3e-5 * sqrt(square)) || !(square > 1e-3))
        fail_msg("%dx%d: off by %g, values of %g", size.height, size.width, worst,
                 sqrt(square));
    free(planes);
    free(features);
    free(seen.v);
    free(want.v);
}

static void check(const struct depth *d, bool dilation, const struct resnet_size *size,
                  int n, int threads)
{
    struct pool *pool;
    struct scene s;

    assert_int_equal(pool_start_serial(&pool, threads), 0);
    scene_new(&s, d->depth, dilation, size, n, threads);
    for (int i = 0; i < n; i++)
        check_image(&s, pool, d, dilation, size[i]);
    // again, after others: nothing of theirs is left
    check_image(&s, pool, d, dilation, size[0]);
    forget_layers();
    arena_release(&s.arena);
    pool_stop(pool);
}

static const struct depth r18 = {18, 2, {2, 2, 2, 2}}, r50 = {50, 3, {3, 4, 6, 3}};

// In an emulator (20 times as long) with the best alone.
static void on_each(void (*run)(void))
{
    for (int isa = 0; isa < CPU_ISAS; isa++)
        if (!(EMULATED && isa != (int)cpu_best()) && cpu_choose((enum cpu_isa)isa) == 0)
            run();
    assert_int_equal(cpu_choose(cpu_best()), 0);
}

static void basic(void)
{
    check(&r18, false, (struct resnet_size[]){{41, 70}, {64, 33}, {1, 1}}, 3, 2);
}

static void dilated(void)
{
    check(&r18, true, (struct resnet_size[]){{50, 36}}, 1, 3);
}

static void bottleneck(void)
{
    check(&r50, false, (struct resnet_size[]){{33, 40}}, 1, 1);
}

static void test_basic(void **unused)
{
    (void)unused;
    on_each(basic);
}

static void test_dilated(void **unused)
{
    (void)unused;
    on_each(dilated);
}

static void test_bottleneck(void **unused)
{
    (void)unused;
    on_each(bottleneck);
}

// torchvision's, for the sizes that people use.
static void test_feature_size(void **unused)
{
    struct build b = {.arena = &(struct arena){0}};
    const struct resnet_size size = {480, 640};
    struct resnet r;
    int h, w;

    (void)unused;
    resnet_build(&r, &b, 18, false, &size, 1, "");
    resnet_feature_size(&r, 480, 640, &h, &w);
    assert_int_equal(h * 1000 + w, 15020);
    resnet_feature_size(&r, 224, 224, &h, &w);
    assert_int_equal(h * 1000 + w, 7007);
    resnet_build(&r, &b, 34, true, &size, 1, "");
    resnet_feature_size(&r, 480, 640, &h, &w);
    assert_int_equal(h * 1000 + w, 30040);
    resnet_build(&r, &b, 152, false, &size, 1, "");
    assert_int_equal(r.n_blocks, 50);
    assert_int_equal(r.channels, 2048);
    assert_int_equal(b.rc, 0);
    resnet_build(&r, &b, 20, false, &size, 1, "");
    assert_int_equal(b.rc, -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_feature_size),
        cmocka_unit_test(test_basic),
        cmocka_unit_test(test_dilated),
        cmocka_unit_test(test_bottleneck),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
