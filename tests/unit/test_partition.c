// Sixteen workers are kept busy by every step of a full-size inference (one camera of 480x640, dim
// 512, feed-forward 3200), and any smaller number, too, with every instruction set that runs here.
//
// Nothing is timed: work is counted. The network is the real one, and so is every division of it;
// but the kernels only count, as if they had multiplied, and pool_run lets all workers come one
// after the other, so that whose work it is is known (--wrap in the Makefile). What counts:
// multiply-adds, of tiles as they are computed; a transformed or normalised value as several of
// them. The speed-up that this allows is work / slowest worker's, step by step; what barriers,
// caches and memory take from it no count can tell.
//
// By these counts 16 workers are 15.4 times as fast as one with AVX-512 and 15.7 with AVX2, and no
// step of 1 % of the work is below 14.2; the worst number of workers is 13, which are as good as
// 11.9. In int8 it is as much. (`test_partition -v` prints each step.)
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "policy/kernels/attention.h"
#include "policy/kernels/conv.h"
#include "policy/kernels/layer_norm.h"
#include "policy/kernels/linear.h"
#include "policy/kernels/stem_priv.h"
#include "policy/kernels/winograd.h"
#include "policy/policy.h"
#include "tests/unit/act_fixture.h"

#define MOST 16

// A value's way through a transform or a norm, in multiply-adds at full speed: case a's thirteen
// Winograd layers take 5.6 ms beyond their products on a Zen 5, for 37 million values, which is 20
// each. (With 6 the outcome is the same to a tenth.)
#define VALUE_WORK 20.0
#define COPY_WORK  2.0
// Of a product of bytes, and of a value that becomes one: kernels with and without an instruction for
// it are 4 and 2 times as fast as those for floats.
#define BYTE_WORK     0.3
#define QUANTISE_WORK 4.0

// ---- what is counted ----------------------------------------------------------------------------

struct step {
    char what[64];
    double work[MOST];
};

static struct step steps[1000];
static int n_steps, worker, workers = MOST;
static bool counting;
static double per_unit; // of pool_share's units; 0: the kernels count
static const struct attention *in_attention; // whose units are blocks of queries
static char what[64];
static bool verbose; // each step on a line

static void add(double work)
{
    if (counting)
        steps[n_steps].work[worker] += work;
}

static double sum_of(const struct step *s)
{
    double sum = 0.0;
    for (int w = 0; w < workers; w++)
        sum += s->work[w];
    return sum;
}

static double most_of(const struct step *s)
{
    double most = 0.0;
    for (int w = 0; w < workers; w++)
        most = fmax(most, s->work[w]);
    return most;
}

// ---- kernels that only count --------------------------------------------------------------------

static struct gemm_kernel counter;

// Rows that fill no tile take the time of four at least: fewer sums do not keep the units busy.
static void count_panel(const struct gemm_rows *x, int rows, const float *panel,
                        int columns, float *y, size_t y_stride,
                        const struct gemm_finish *finish)
{
    int rest = rows % counter.mr, whole = rows - rest;

    (void)panel, (void)columns, (void)y, (void)y_stride, (void)finish;
    add((double)(whole + (rest > 0 && rest < 4 ? 4 : rest)) * counter.nr * x->runs *
        x->length);
}

const struct gemm_kernel *__wrap_gemm_kernel(void);
const struct gemm_kernel *__real_gemm_kernel(void);
const struct gemm_kernel *__wrap_gemm_kernel(void)
{
    counter = *__real_gemm_kernel();
    counter.panel = count_panel;
    counter.terms = NULL;
    return &counter;
}

static struct gemm_int8_kernel byte_counter;

static void count_byte_panel(const struct gemm_int8_rows *x, int row0, int rows,
                             int depth, const int8_t *panel, const float *scale,
                             const int32_t *sum, int columns, float *y, size_t y_stride,
                             const struct gemm_finish *finish)
{
    (void)x, (void)row0, (void)panel, (void)scale, (void)sum, (void)columns;
    (void)y, (void)y_stride, (void)finish;
    add(BYTE_WORK * rows * byte_counter.nr * depth);
}

static void count_quantise(const float *x, int depth, int x_max, uint8_t *q,
                           size_t stride, float *scale, int32_t *zero)
{
    (void)x, (void)x_max, (void)q, (void)stride, (void)scale, (void)zero;
    add(QUANTISE_WORK * depth);
}

const struct gemm_int8_kernel *__wrap_gemm_int8_kernel(void);
const struct gemm_int8_kernel *__real_gemm_int8_kernel(void);
const struct gemm_int8_kernel *__wrap_gemm_int8_kernel(void)
{
    byte_counter = *__real_gemm_int8_kernel();
    byte_counter.panel = count_byte_panel;
    byte_counter.quantise = count_quantise;
    return &byte_counter;
}

static void count_input(int m, const struct winograd_input *i)
{
    int n = winograd_columns(m), stride = winograd_stride(m);

    add(VALUE_WORK * (stride == 2 ? (2 * m + 1) * (2 * n + 1) : (m + 2) * (n + 2)) *
        i->channels);
}

static void count_output(int m, const struct winograd_output *o)
{
    int n = winograd_columns(m), stride = winograd_stride(m);

    add(VALUE_WORK * (stride == 2 ? (m + 1) * (n + 1) : (m + 2) * (n + 2)) * o->channels);
}

const struct winograd_transforms *__wrap_winograd_transforms_of(enum cpu_isa isa);
const struct winograd_transforms *__wrap_winograd_transforms_of(enum cpu_isa isa)
{
    static struct winograd_transforms t;
    t = (struct winograd_transforms){isa, count_input, count_output};
    return &t;
}

static struct stem_kernel stem_counter;

static void count_stem(const struct stem_piece *piece)
{
    add((STEM_DEPTH + VALUE_WORK) * STEM_POINTS * piece->tiles * piece->s->out);
}

static void count_pool(const struct stem_row *row, float *begin, float *go_on)
{
    (void)begin, (void)go_on;
    add(COPY_WORK * row->width * row->channels);
}

const struct stem_kernel *__wrap_stem_kernel(void);
const struct stem_kernel *__real_stem_kernel(void);
const struct stem_kernel *__wrap_stem_kernel(void)
{
    stem_counter = *__real_stem_kernel();
    stem_counter.convolve = count_stem;
    stem_counter.pool = count_pool;
    return &stem_counter;
}

// ---- who does what ------------------------------------------------------------------------------

int __wrap_pool_threads(const struct pool *p);
int __wrap_pool_threads(const struct pool *p)
{
    (void)p;
    return workers;
}

void __wrap_pool_run(struct pool *p, pool_task task, void *arg);
void __wrap_pool_run(struct pool *p, pool_task task, void *arg)
{
    snprintf(steps[n_steps].what, sizeof steps->what, "%s", what);
    (void)p;
    for (worker = 0; worker < workers; worker++)
        task(arg, worker, workers);
    worker = 0;
    if (counting && sum_of(&steps[n_steps]) > 0.0)
        n_steps++;
    assert_true((size_t)n_steps < sizeof steps / sizeof *steps);
}

// Queries in units [begin, end) of n, which are blocks of the same number, and those left over, of
// one head after the other.
static double queries_in(const struct attention *a, size_t n, size_t begin, size_t end)
{
    size_t blocks = n / (size_t)a->heads, rows = ATTENTION_BLOCK, sum = 0;

    while (((size_t)a->queries + rows - 1) / rows < blocks)
        rows /= 2;
    for (size_t u = begin; u < end; u++)
        sum += u % blocks + 1 < blocks ? rows : (size_t)a->queries - (blocks - 1) * rows;
    return (double)sum;
}

void __wrap_pool_share(size_t n, int w, int of, size_t *begin, size_t *end);
void __real_pool_share(size_t n, int w, int of, size_t *begin, size_t *end);
void __wrap_pool_share(size_t n, int w, int of, size_t *begin, size_t *end)
{
    __real_pool_share(n, w, of, begin, end);
    if (in_attention)
        add(per_unit * queries_in(in_attention, n, *begin, *end));
    else
        add(per_unit * (double)(*end - *begin));
}

void __wrap_linear_run(struct pool *pool, const struct linear *l, const float *x,
                       int rows, float *y, struct linear_extra extra);
void __real_linear_run(struct pool *pool, const struct linear *l, const float *x,
                       int rows, float *y, struct linear_extra extra);
void __wrap_linear_run(struct pool *pool, const struct linear *l, const float *x,
                       int rows, float *y, struct linear_extra extra)
{
    snprintf(what, sizeof what, "linear %d rows %d > %d", rows, l->in, l->out);
    __real_linear_run(pool, l, x, rows, y, extra);
}

void __wrap_conv_run(struct pool *pool, const struct conv *c, const struct map *x,
                     const struct map *y, bool accumulate, enum activation f,
                     float *scratch, size_t scratch_floats);
void __real_conv_run(struct pool *pool, const struct conv *c, const struct map *x,
                     const struct map *y, bool accumulate, enum activation f,
                     float *scratch, size_t scratch_floats);
void __wrap_conv_run(struct pool *pool, const struct conv *c, const struct map *x,
                     const struct map *y, bool accumulate, enum activation f,
                     float *scratch, size_t scratch_floats)
{
    snprintf(what, sizeof what, "%s %dx%d/%d %d > %d, %dx%d", conv_way_name(c->way),
             c->size, c->size, c->stride, c->in, c->out, y->height, y->width);
    __real_conv_run(pool, c, x, y, accumulate, f, scratch, scratch_floats);
}

void __wrap_stem_run(struct pool *pool, const struct stem *s,
                     const struct stem_image *image, const struct map *y, float *scratch,
                     size_t scratch_floats);
void __real_stem_run(struct pool *pool, const struct stem *s,
                     const struct stem_image *image, const struct map *y, float *scratch,
                     size_t scratch_floats);
void __wrap_stem_run(struct pool *pool, const struct stem *s,
                     const struct stem_image *image, const struct map *y, float *scratch,
                     size_t scratch_floats)
{
    snprintf(what, sizeof what, "stem");
    __real_stem_run(pool, s, image, y, scratch, scratch_floats);
}

void __wrap_attention_run(struct pool *pool, const struct attention *a);
void __real_attention_run(struct pool *pool, const struct attention *a);
void __wrap_attention_run(struct pool *pool, const struct attention *a)
{
    snprintf(what, sizeof what, "attention %d x %d", a->queries, a->keys);
    in_attention = a;
    per_unit =
        (2.0 * a->head_dim + VALUE_WORK) * a->keys; // of a query, the exponential's, too
    __real_attention_run(pool, a);
    in_attention = NULL;
    per_unit = 0.0;
}

void __wrap_layer_norm_run(struct pool *pool, const struct layer_norm *n, const float *x,
                           int rows, float *y);
void __real_layer_norm_run(struct pool *pool, const struct layer_norm *n, const float *x,
                           int rows, float *y);
void __wrap_layer_norm_run(struct pool *pool, const struct layer_norm *n, const float *x,
                           int rows, float *y)
{
    snprintf(what, sizeof what, "norm of %d rows", rows);
    per_unit = VALUE_WORK * n->dim;
    __real_layer_norm_run(pool, n, x, rows, y);
    per_unit = 0.0;
}

void __wrap_map_flatten(struct pool *pool, const struct map *m, float *out);
void __real_map_flatten(struct pool *pool, const struct map *m, float *out);
void __wrap_map_flatten(struct pool *pool, const struct map *m, float *out)
{
    snprintf(what, sizeof what, "features %dx%d", m->height, m->width);
    per_unit = COPY_WORK * m->width * m->channels;
    __real_map_flatten(pool, m, out);
    per_unit = 0.0;
}

// ---- the test -----------------------------------------------------------------------------------

static int idle_in(const struct step *s)
{
    int idle = 0;
    for (int w = 0; w < workers; w++)
        idle += s->work[w] == 0.0;
    return idle;
}

// How many times as fast as one worker; with `all` of them every step is looked at.
static double speed_up(struct policy *p, int n)
{
    static uint8_t rgb[480 * 640 * 3];
    static float actions[100 * 6];
    const float state[6] = {0};
    const struct policy_image image = {
        .rgb = rgb, .width = 640, .height = 480, .stride = 3 * 640};
    const struct policy_observation obs = {.state = state, .image = &image};
    double all = 0.0, slowest = 0.0;

    memset(steps, 0, sizeof steps);
    n_steps = 0;
    workers = n;
    counting = true;
    assert_int_equal(policy_infer(p, &obs, actions, NULL), 0);
    counting = false;
    workers = MOST;
    for (int i = 0; i < n_steps; i++) {
        all += sum_of(&steps[i]);
        slowest += most_of(&steps[i]);
    }
    assert_true(all > 6e9 && all < 18e9); // the textbook's are 17.5e9
    return all / slowest;
}

// A step may leave some to wait: of 15 lines 16 workers can not all have one. How much that is of
// everything is what matters, so small ones are let through.
static void check_steps(void)
{
    double all = 0.0;

    for (int i = 0; i < n_steps; i++)
        all += sum_of(&steps[i]);
    for (int i = 0; i < n_steps; i++) {
        const struct step *s = &steps[i];
        double sum = sum_of(s), fast = sum / most_of(s), share = sum / all;

        if (verbose)
            print_message("  %-40s %5.2f %% of the work, speed-up %5.2f, %d idle\n",
                          s->what, 100 * share, fast, idle_in(s));
        if ((share >= 0.01 && fast < 14.0) || (share >= 0.001 && idle_in(s) > 0))
            fail_msg(
                "%s, %.2f %% of the work: %.2f times as fast with %d workers, %d idle",
                s->what, 100 * share, fast, MOST, idle_in(s));
    }
}

// Winograd's are larger than those of the file (winograd.h): 1.9 times all together, no more. In 8 bits
// those of the products between tokens are a quarter.
static void check_weights(const struct policy *p)
{
    const struct policy_info *info = policy_describe(p);
    double times = (double)info->weight_bytes / (4.0 * (double)info->parameters);

    print_message("%s, %s: weights of %.1f MiB, %.2f times the checkpoint's\n",
                  info->kernels, precision_name(info->precision),
                  (double)info->weight_bytes / 1048576, times);
    assert_true(info->parameters > 33000000);
    assert_true(times >= (info->precision == PRECISION_INT8 ? 0.5 : 0.99) &&
                times <= (info->precision == PRECISION_INT8 ? 1.5 : 1.9));
}

static void check_isa(const char *dir, enum cpu_isa isa, enum precision precision)
{
    struct policy_options opt = {.threads = MOST, .precision = precision};
    struct policy_error err;
    struct policy *p;
    double most, worst = 1.0;
    int worst_n = 1;

    if (policy_load(&p, dir, &opt, &err))
        fail_msg("%s", err.text);
    check_weights(p);
    for (int n = 1; n < MOST; n++) {
        double each = speed_up(p, n) / n;
        worst_n = each < worst ? n : worst_n;
        worst = fmin(each, worst);
    }
    most = speed_up(p, MOST);
    check_steps();
    policy_free(p);
    print_message(
        "%s, %s: %.2f times as fast with %d workers; the worst number is %d: %.2f\n",
        cpu_isa_name(isa), precision_name(precision), most, MOST, worst_n,
        worst * worst_n);
    assert_true(most >= 15.0);
    assert_true(worst >= 0.9);
}

static void test_sixteen(void **unused)
{
    (void)unused;
    struct act_fixture f = act_fixture_tiny();
    char dir[256];

    f.camera[0] = (struct act_fixture_camera){"observation.images.front", 480, 640};
    f.dim_model = 512;
    f.n_heads = 8;
    f.dim_feedforward = 3200;
    f.n_encoder_layers = 4;
    f.chunk_size = 100;
    f.latent_dim = 32;
    assert_int_equal(act_fixture_mkdir(dir), 0);
    assert_int_equal(act_fixture_write(dir, &f), 0);
    for (int isa = 0; isa < CPU_ISAS; isa++)
        if (cpu_choose((enum cpu_isa)isa) == 0)
            check_isa(dir, (enum cpu_isa)isa, PRECISION_FLOAT32);
    assert_int_equal(cpu_choose(cpu_best()), 0);
    check_isa(dir, cpu_best(), PRECISION_INT8);
    act_fixture_remove(dir);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sixteen),
    };
    verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
