// Every kernel against a naive twin in double, over shapes that fit no tile: odd sizes,
// one row, fewer rows than workers, several tiles per worker, every epilogue.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "policy/kernels/attention.h"
#include "policy/kernels/conv.h"
#include "policy/kernels/image_ops.h"
#include "policy/kernels/layer_norm.h"
#include "policy/kernels/linear.h"
#include "policy/kernels/split.h"
#include "policy/kernels/vec.h"

static uint64_t rng = 1;

static uint32_t next(void)
{
    rng = rng * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(rng >> 33);
}

static int between(int low, int high)
{
    return low + (int)(next() % (uint32_t)(high - low + 1));
}

// n values in [-1, 1)
static float *values(size_t n)
{
    float *v = malloc((n ? n : 1) * sizeof *v);
    for (size_t i = 0; i < n; i++)
        v[i] = (float)(next() & 0xffff) / 32768.0f - 1.0f;
    return v;
}

static float *copy(const float *x, size_t n)
{
    float *v = malloc(n * sizeof *v);
    memcpy(v, x, n * sizeof *v);
    return v;
}

static double activate(enum activation f, double x)
{
    if (f == ACTIVATION_RELU)
        return x < 0.0 ? 0.0 : x;
    return f == ACTIVATION_GELU ? x / 2 * (1 + erf(x / sqrt(2.0))) : x;
}

static void assert_near(double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance))
        fail_msg("got %.9g, want %.9g, off by %.2g > %.2g", got, want, fabs(got - want),
                 tolerance);
}

static struct pool *pool_of(int threads)
{
    struct pool *p;
    openblas_set_num_threads(1);
    assert_int_equal(pool_start(&p, threads, 0), 0);
    return p;
}

// ---- exp, softmax, activations --------------------------------------------------------

static void test_exp(void **unused)
{
    (void)unused;
    double worst = 0.0;
    for (int i = 0; i <= 234000; i++) {
        float in = -0.00037f * (float)i; // down to -86.6
        double want = exp((double)in), got = (double)v4_exp_nonpositive(v4_splat(in))[2];
        double off = fabs(got - want) / want;
        worst = off > worst ? off : worst;
    }
    print_message("exp: worst relative error %.2e\n", worst);
    assert_true(worst < 2.4e-7); // 2 ulp
    assert_true(v4_exp_nonpositive(v4_splat(0.0f))[0] == 1.0f);
    float low = v4_exp_nonpositive(v4_splat(-1e30f))[1];
    assert_true(low >= 0.0f && low < 2e-38f);
    assert_true(isnan(v4_exp_nonpositive(v4_splat(NAN))[3]));
}

static void test_gelu(void **unused)
{
    (void)unused;
    double worst = 0.0;
    for (int i = -90000; i <= 90000; i++) {
        float x = 0.0001f * (float)i, y = x;
        activation_apply(ACTIVATION_GELU, &y, 1, 1, 1);
        double off = fabs((double)y - activate(ACTIVATION_GELU, (double)x));
        off /= fmax(1.0, fabs((double)x));
        worst = off > worst ? off : worst;
    }
    print_message("gelu: worst error %.2e\n", worst);
    assert_true(worst < 2e-7);
    float far[5] = {NAN, INFINITY, -1e30f, 1e30f, -0.0f};
    activation_apply(ACTIVATION_GELU, far, 1, 5, 5);
    assert_true(isnan(far[0]) && isinf(far[1]) && far[3] == 1e30f && far[4] == 0.0f);
}

static void test_softmax(void **unused)
{
    (void)unused;
    for (int cols = 1; cols < 40; cols++) {
        float *x = values(3 * (size_t)cols), *y = copy(x, 3 * (size_t)cols);
        for (int i = 0; i < 3 * cols; i++)
            y[i] = x[i] *= i < cols ? 1.0f : i < 2 * cols ? 30.0f : 1e4f;
        softmax_rows(y, 3, cols);
        for (int r = 0; r < 3; r++) {
            double sum = 0.0, max = -INFINITY;
            for (int i = 0; i < cols; i++)
                max = fmax(max, (double)x[r * cols + i]);
            for (int i = 0; i < cols; i++)
                sum += exp((double)x[r * cols + i] - max);
            for (int i = 0; i < cols; i++)
                assert_near((double)y[r * cols + i],
                            exp((double)x[r * cols + i] - max) / sum, 5e-7);
        }
        y[cols / 2] = NAN; // one bad score spoils its row, visibly
        softmax_rows(y, 1, cols);
        for (int i = 0; i < cols; i++)
            assert_true(isnan(y[i]));
        free(x);
        free(y);
    }
}

static void test_activations(void **unused)
{
    (void)unused;
    for (int cols = 1; cols < 20; cols++) {
        float *x = values(2 * 23), *r = copy(x, 46), *g = copy(x, 46);
        x[0] = r[0] = g[0] = -7.5f;
        activation_apply(ACTIVATION_RELU, r, 2, cols, 23);
        activation_apply(ACTIVATION_GELU, g, 2, cols, 23);
        for (int i = 0; i < 46; i++) {
            bool inside = i % 23 < cols;
            double v = (double)x[i];
            assert_true((double)r[i] == (inside ? activate(ACTIVATION_RELU, v) : v));
            assert_near((double)g[i], inside ? activate(ACTIVATION_GELU, v) : v, 2e-7);
        }
        free(x);
        free(r);
        free(g);
    }
    float odd[5] = {NAN, NAN, NAN, NAN, NAN};
    activation_apply(ACTIVATION_RELU, odd, 1, 5, 5);
    for (int i = 0; i < 5; i++)
        assert_true(isnan(odd[i]));
}

// ---- split ----------------------------------------------------------------------------

static void test_split(void **unused)
{
    (void)unused;
    const int shapes[][2] = {{1, 1},     {3, 5},    {302, 1536}, {19200, 64},
                             {300, 512}, {100, 14}, {7, 33}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int workers = 1; workers <= 16; workers++) {
            int rows = shapes[s][0], cols = shapes[s][1];
            char *seen = calloc((size_t)rows * (size_t)cols, 1);
            for (int w = 0; w < workers; w++) {
                struct split_block b = split_block(rows, cols, w, workers);
                assert_true(b.row0 >= 0 && b.row1 <= rows && b.col0 >= 0 &&
                            b.col1 <= cols);
                for (int r = b.row0; r < b.row1; r++)
                    for (int c = b.col0; c < b.col1; c++)
                        seen[r * cols + c]++;
            }
            for (int i = 0; i < rows * cols; i++)
                assert_int_equal(seen[i], 1);
            free(seen);
        }
}

// ---- linear ---------------------------------------------------------------------------

struct linear_case {
    struct linear l;
    int rows;
    struct linear_extra extra;
    float *x, *y0, *table;
};

static double linear_twin(const struct linear_case *t, int r, int o)
{
    const struct linear *l = &t->l;
    double sum = l->bias ? (double)l->bias[o] : 0.0;
    for (int i = 0; i < l->in; i++)
        sum += (double)t->x[r * l->in + i] * (double)l->weight[o * l->in + i];
    if (t->extra.table && o < t->extra.table_cols)
        sum += (double)t->table[r * t->extra.table_cols + o];
    if (t->extra.accumulate)
        sum += (double)t->y0[r * l->out + o];
    return activate(t->extra.f, sum);
}

static void check_linear(struct pool *pool, int rows, int in, int out, int variant)
{
    struct linear_case t = {.rows = rows};
    size_t n = (size_t)rows * (size_t)out;
    t.l = (struct linear){in, out, values((size_t)in * (size_t)out), NULL};
    float *bias = values((size_t)out);
    t.l.bias = variant & 1 ? bias : NULL;
    t.extra.accumulate = variant & 2;
    t.extra.f = (enum activation)(variant / 4 % 3);
    t.extra.table_cols = between(1, out);
    t.table = values((size_t)rows * (size_t)t.extra.table_cols);
    t.extra.table = variant >= 12 ? t.table : NULL;
    t.x = values((size_t)rows * (size_t)in);
    t.y0 = values(n);
    float *y = copy(t.y0, n);
    linear_run(pool, &t.l, t.x, rows, y, t.extra);
    for (int r = 0; r < rows; r++)
        for (int o = 0; o < out; o++)
            assert_near((double)y[r * out + o], linear_twin(&t, r, o),
                        1e-6 * (2 + in / 8));
    free(t.l.weight);
    free(bias);
    free(t.table);
    free(t.x);
    free(t.y0);
    free(y);
}

static void test_linear(void **unused)
{
    (void)unused;
    for (int threads = 1; threads <= 4; threads++) {
        struct pool *p = pool_of(threads);
        for (int i = 0; i < 48; i++)
            check_linear(p, between(1, 70), between(1, 90), between(1, 130), i % 24);
        check_linear(p, 1, 6, 512, 1);
        check_linear(p, 302, 64, 48, 15);
        pool_stop(p);
    }
}

// ---- convolution ----------------------------------------------------------------------

static double conv_twin(const struct conv *c, const float *x, int h, int w, int oy,
                        int ox, int o)
{
    double sum = (double)c->bias[o];
    for (int a = 0; a < c->size; a++)
        for (int b = 0; b < c->size; b++) {
            int y = oy * c->stride - c->pad + a * c->dilation;
            int xx = ox * c->stride - c->pad + b * c->dilation;
            if (y < 0 || y >= h || xx < 0 || xx >= w)
                continue;
            for (int i = 0; i < c->in; i++)
                sum += (double)x[(y * w + xx) * c->in + i] *
                       (double)c->weight[((o * c->size + a) * c->size + b) * c->in + i];
        }
    return sum;
}

static void check_conv(struct pool *pool, struct conv c, int h, int w, bool add,
                       bool relu)
{
    int oh = (h + 2 * c.pad - c.dilation * (c.size - 1) - 1) / c.stride + 1;
    int ow = (w + 2 * c.pad - c.dilation * (c.size - 1) - 1) / c.stride + 1;
    assert_int_equal(conv_extent(&c, h), oh);
    size_t taps = (size_t)(c.size * c.size * c.in), n = (size_t)(oh * ow * c.out);
    size_t tile = conv_tile_floats(&c, oh * ow);
    c.weight = values(taps * (size_t)c.out);
    c.bias = values((size_t)c.out);
    float *x = values((size_t)(h * w * c.in)), *y0 = values(n), *y = copy(y0, n);
    float *tiles = malloc((tile * (size_t)pool_threads(pool) + 1) * sizeof *tiles);
    enum activation f = relu ? ACTIVATION_RELU : ACTIVATION_NONE;
    conv_run(pool, &c, x, h, w, y, add, f, tiles, tile);
    for (int p = 0; p < oh * ow; p++)
        for (int o = 0; o < c.out; o++) {
            double want = conv_twin(&c, x, h, w, p / ow, p % ow, o);
            want = activate(f, want + (add ? (double)y0[p * c.out + o] : 0.0));
            assert_near((double)y[p * c.out + o], want, 1e-6 * (2.0 + (double)taps / 8));
        }
    free(c.weight);
    free(c.bias);
    free(x);
    free(y0);
    free(y);
    free(tiles);
}

static void test_conv(void **unused)
{
    (void)unused;
    const int sizes[] = {1, 3, 3, 7};
    for (int threads = 1; threads <= 3; threads++) {
        struct pool *p = pool_of(threads);
        for (int i = 0; i < 60; i++) {
            struct conv c = {
                .in = between(1, 9), .out = between(1, 40), .size = sizes[i % 4]};
            c.stride = between(1, 2);
            c.dilation = c.size == 3 ? between(1, 2) : 1;
            c.pad = i % 5 == 4 ? 0 : c.size / 2 * c.dilation;
            int least = c.dilation * (c.size - 1) + 1; // unpadded, one output pixel
            check_conv(p, c, between(least, 23), between(least, 31), i & 1, i & 2);
        }
        // one pixel; and more than one tile for each worker
        check_conv(p, (struct conv){3, 64, 7, 2, 3, 1, NULL, NULL}, 1, 1, false, true);
        check_conv(p, (struct conv){17, 5, 3, 1, 1, 1, NULL, NULL}, 83, 131, true, true);
        pool_stop(p);
    }
}

static void test_image_ops(void **unused)
{
    (void)unused;
    struct pool *p = pool_of(3);
    for (int i = 0; i < 40; i++) {
        int h = between(1, 20), w = between(1, 20), c = between(1, 9);
        int oh = (h - 1) / 2 + 1, ow = (w - 1) / 2 + 1;
        float *planes = values((size_t)(h * w * c)),
              *pixels = values((size_t)(h * w * c));
        float *y = values((size_t)(oh * ow * c));
        interleave_run(p, planes, c, h, w, pixels);
        max_pool_run(p, pixels, h, w, c, y);
        assert_int_equal(max_pool_extent(h), oh);
        for (int k = 0; k < c; k++)
            for (int o = 0; o < oh * ow; o++) {
                float best = -INFINITY;
                for (int r = o / ow * 2 - 1; r <= o / ow * 2 + 1; r++)
                    for (int q = o % ow * 2 - 1; q <= o % ow * 2 + 1; q++)
                        if (r >= 0 && r < h && q >= 0 && q < w)
                            best = fmaxf(best, planes[(k * h + r) * w + q]);
                assert_true(y[o * c + k] == best);
            }
        free(planes);
        free(pixels);
        free(y);
    }
    pool_stop(p);
}

// ---- layer norm, attention ------------------------------------------------------------

static void test_layer_norm(void **unused)
{
    (void)unused;
    struct pool *p = pool_of(2);
    for (int i = 0; i < 60; i++) {
        int dim = between(1, 70), rows = between(1, 9);
        struct layer_norm n = {dim, values((size_t)dim), values((size_t)dim)};
        float *x = values((size_t)(rows * dim));
        for (int k = 0; k < rows * dim; k++)
            x[k] = x[k] * 3.0f + (i % 3 == 0 ? 100.0f : 0.0f); // mean far above spread
        float *y = copy(x, (size_t)(rows * dim));
        layer_norm_run(p, &n, y, rows, y); // in place
        for (int r = 0; r < rows; r++) {
            double mean = 0.0, var = 0.0;
            for (int k = 0; k < dim; k++)
                mean += (double)x[r * dim + k] / dim;
            for (int k = 0; k < dim; k++)
                var += pow((double)x[r * dim + k] - mean, 2) / dim;
            for (int k = 0; k < dim; k++)
                assert_near((double)y[r * dim + k],
                            ((double)x[r * dim + k] - mean) / sqrt(var + 1e-5) *
                                    (double)n.weight[k] +
                                (double)n.bias[k],
                            i % 3 == 0 && dim < 8 ? 3e-3 : 3e-5);
        }
        free(n.weight);
        free(n.bias);
        free(x);
        free(y);
    }
    pool_stop(p);
}

// Output column i of one query row.
static double attention_twin(const struct attention *a, int row, int i)
{
    int head = i / a->head_dim * a->head_dim;
    double sum = 0.0, mix = 0.0;
    for (int k = 0; k < a->keys; k++) {
        double score = 0.0;
        for (int j = head; j < head + a->head_dim; j++)
            score += (double)a->q.data[row * a->q.stride + j] *
                     (double)a->k.data[k * a->k.stride + j];
        double e = exp(score / sqrt((double)a->head_dim));
        sum += e;
        mix += e * (double)a->v.data[k * a->v.stride + i];
    }
    return mix / sum;
}

static void test_attention(void **unused)
{
    (void)unused;
    for (int threads = 1; threads <= 3; threads++) {
        struct pool *p = pool_of(threads);
        for (int i = 0; i < 30; i++) {
            struct attention a = {.heads = between(1, 5), .head_dim = between(1, 17)};
            int dim = a.heads * a.head_dim, wide = 3 * dim + between(0, 3);
            a.queries = i % 3 ? between(1, 30) : between(65, 140);
            a.keys = between(1, 90);
            size_t most = (size_t)(a.queries > a.keys ? a.queries : a.keys);
            float *qkv = values(most * (size_t)wide);
            a.q = (struct attention_view){qkv, wide};
            a.k = (struct attention_view){qkv + dim, wide};
            a.v = (struct attention_view){qkv + 2 * dim, wide};
            a.out = values((size_t)(a.queries * dim));
            a.score_floats = attention_score_floats(a.keys);
            a.scores = values((size_t)threads * a.score_floats);
            attention_run(p, &a);
            for (int r = 0; r < a.queries; r++)
                for (int c = 0; c < dim; c++)
                    assert_near((double)a.out[r * dim + c], attention_twin(&a, r, c),
                                2e-6);
            free(qkv);
            free(a.out);
            free(a.scores);
        }
        pool_stop(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exp),        cmocka_unit_test(test_gelu),
        cmocka_unit_test(test_softmax),    cmocka_unit_test(test_activations),
        cmocka_unit_test(test_split),      cmocka_unit_test(test_linear),
        cmocka_unit_test(test_conv),       cmocka_unit_test(test_image_ops),
        cmocka_unit_test(test_layer_norm), cmocka_unit_test(test_attention),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
