// Pools with several owners and pools without threads: the same work, the same bits.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <cblas.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "policy/kernels/attention.h"
#include "policy/kernels/conv.h"
#include "policy/kernels/layer_norm.h"
#include "policy/kernels/linear.h"
#include "policy/kernels/stem.h"
#include "tests/unit/act_fixture.h"

struct order {
    pthread_t caller;
    int n, seen[POOL_MAX_THREADS];
};

static void note(void *arg, int worker, int workers)
{
    struct order *o = arg;
    assert_true(pthread_equal(o->caller, pthread_self()));
    assert_int_equal(workers, 5);
    o->seen[o->n++] = worker;
}

static void test_serial_in_turn(void **unused)
{
    (void)unused;
    struct pool *p = (struct pool *)1;
    struct order o = {.caller = pthread_self()};
    assert_int_equal(pool_start_serial(&p, 0), -EINVAL);
    assert_null(p);
    assert_int_equal(pool_start_serial(&p, POOL_MAX_THREADS + 1), -EINVAL);
    assert_int_equal(pool_start_serial(&p, 5), 0);
    assert_int_equal(pool_threads(p), 5);
    pool_run(p, note, &o);
    assert_int_equal(o.n, 5);
    for (int i = 0; i < 5; i++)
        assert_int_equal(o.seen[i], i);
    pool_stop(p);
}

static void count(void *arg, int worker, int workers)
{
    (void)worker;
    (void)workers;
    atomic_fetch_add((atomic_int *)arg, 1);
}

// Whoever stops first takes nothing from the other.
static void test_two_owners(void **unused)
{
    (void)unused;
    for (int serial = 0; serial < 2; serial++) {
        struct pool *p;
        atomic_int n = 0;
        assert_int_equal(serial ? pool_start_serial(&p, 3) : pool_start(&p, 3, 0), 0);
        assert_ptr_equal(pool_hold(p), p);
        pool_hold(p);
        pool_stop(p);
        pool_run(p, count, &n);
        assert_int_equal(n, 3);
        pool_stop(p);
        pool_run(p, count, &n);
        assert_int_equal(n, 6);
        pool_stop(p); // the last: a leak is the sanitizers' to see
    }
}

// ---- the same bits --------------------------------------------------------------------

#define FLOATS 700000

static float *numbers(const char *name)
{
    float *x = malloc(FLOATS * sizeof *x);
    uint64_t key = act_fixture_key(7, name);
    assert_non_null(x);
    for (size_t i = 0; i < FLOATS; i++)
        x[i] = (float)(int)(act_fixture_mix(key + i) >> 48) / 65536.0f - 0.5f;
    return x;
}

static float *a, *b, *c, *d;

static float *room(size_t floats)
{
    float *x = aligned_alloc(64, (floats * sizeof *x + 63) / 64 * 64);
    assert_non_null(x);
    return memset(x, 0, floats * sizeof *x);
}

static void run_linear(struct pool *p, float *y)
{
    struct linear l = {.in = 96, .out = 130, .bias = b};
    const struct linear_extra e = {.table = c, .table_cols = 40, .f = ACTIVATION_GELU};
    l.weight = (struct gemm){.depth = 96, .out = 130, .kernel = gemm_kernel()};
    l.weight.panel = room(gemm_floats(l.weight.kernel, 96, 130));
    gemm_pack(&l.weight, 0, 130, a, 96);
    linear_run(p, &l, d, 77, y, e);
    free(l.weight.panel);
}

static void run_conv(struct pool *p, float *y)
{
    struct conv k = {.in = 24,
                     .out = 40,
                     .size = 3,
                     .stride = 2,
                     .pad = 1,
                     .dilation = 1,
                     .kernel = gemm_kernel(),
                     .bias = b};
    float *from = room(map_floats(33, 37, 24)), *to = room(map_floats(17, 19, 40));
    struct map x = map_open(from, 33, 37, 24), out = map_open(to, 17, 19, 40);
    k.way = conv_plan(&k, 33, 37);
    size_t floats = (conv_scratch_floats(&k, 37) + 15) / 16 * 16;
    float *scratch = room(4 * floats);
    k.weight = room(conv_weight_floats(&k));
    conv_pack(&k, a);
    for (int i = 0; i < 33; i++)
        memcpy(map_at(&x, i, 0), d + i * 37 * 24, (size_t)(37 * 24) * sizeof *d);
    conv_run(p, &k, &x, &out, false, ACTIVATION_RELU, scratch, floats);
    map_flatten(p, &out, y);
    free(from), free(to), free(scratch), free(k.weight);
}

static void run_attention(struct pool *p, float *y)
{
    size_t floats = (attention_scratch_floats(8) + 15) / 16 * 16;
    struct attention t = {.heads = 4,
                          .head_dim = 8,
                          .queries = 130,
                          .keys = 150,
                          .q = {a, 96},
                          .k = {b, 96},
                          .v = {c, 96},
                          .out = y,
                          .scratch = room(4 * floats),
                          .scratch_floats = floats};
    attention_run(p, &t);
    free(t.scratch);
}

static void run_norm(struct pool *p, float *y)
{
    const struct layer_norm n = {.dim = 51, .weight = a, .bias = b};
    layer_norm_run(p, &n, d, 101, y);
}

static void run_stem(struct pool *p, float *y)
{
    struct stem k = {.out = 64, .kernel = stem_kernel(), .bias = b};
    const struct stem_image image = {.height = 41, .width = 43, .planes = d};
    int height, width;
    stem_extent(41, 43, &height, &width);
    float *to = room(map_floats(height, width, 64));
    struct map out = map_open(to, height, width, 64);
    size_t floats = (stem_scratch_floats(&k, 43) + 15) / 16 * 16;
    float *scratch = room(4 * floats);
    k.weight = room(stem_weight_floats(&k));
    stem_pack(&k, a);
    stem_run(p, &k, &image, &out, scratch, floats);
    map_flatten(p, &out, y);
    free(to), free(scratch), free(k.weight);
}

static void test_same_bits(void **unused)
{
    (void)unused;
    void (*const kernel[])(struct pool *, float *) = {run_linear, run_conv, run_attention,
                                                      run_norm, run_stem};
    a = numbers("a"), b = numbers("b"), c = numbers("c"), d = numbers("d");
    float *together = calloc(FLOATS, sizeof(float)),
          *in_turn = calloc(FLOATS, sizeof(float));
    assert_non_null(together);
    assert_non_null(in_turn);
    for (int threads = 1; threads <= 4; threads++) {
        struct pool *p, *q;
        assert_int_equal(pool_start(&p, threads, 0), 0);
        assert_int_equal(pool_start_serial(&q, threads), 0);
        for (size_t i = 0; i < sizeof kernel / sizeof *kernel; i++) {
            memset(together, 0, FLOATS * sizeof(float));
            memset(in_turn, 0, FLOATS * sizeof(float));
            kernel[i](p, together);
            kernel[i](q, in_turn);
            assert_memory_equal(together, in_turn, FLOATS * sizeof(float));
            assert_true(together[11] != 0 || together[12] != 0 || together[13] != 0);
        }
        pool_stop(p);
        pool_stop(q);
    }
    free(together), free(in_turn);
    free(a), free(b), free(c), free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_serial_in_turn),
        cmocka_unit_test(test_two_owners),
        cmocka_unit_test(test_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
