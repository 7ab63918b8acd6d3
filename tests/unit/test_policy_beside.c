// A policy loaded beside one that is inferring: neither notices. Same bits as loaded alone; not
// one allocation or mapping in the threads that infer, pool included; no race (make tsan).
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "policy/kernels/kernels.h"
#include "tests/unit/checkpoint_scratch.h"

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define COUNTS 0 // a sanitizer owns the allocator's entry points
#else
#define COUNTS 1
#endif

// Calls of every thread but the loading one, while they infer.
static _Thread_local bool loading;
static atomic_bool counting;
static atomic_int calls;

#if COUNTS
static void tick(void)
{
    if (!loading && atomic_load_explicit(&counting, memory_order_relaxed))
        atomic_fetch_add(&calls, 1);
}

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t alignment, size_t n);
void __libc_free(void *p);

void *malloc(size_t n)
{
    tick();
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    tick();
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    tick();
    return __libc_realloc(p, n);
}

void *aligned_alloc(size_t alignment, size_t n)
{
    tick();
    return __libc_memalign(alignment, n);
}

void free(void *p)
{
    tick();
    __libc_free(p);
}

void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
    tick();
    return (void *)syscall(SYS_mmap, at, n, prot, flags, fd, offset);
}

void *mmap64(void *at, size_t n, int prot, int flags, int fd, off64_t offset)
{
    return mmap(at, n, prot, flags, fd, offset);
}

int munmap(void *at, size_t n)
{
    tick();
    return (int)syscall(SYS_munmap, at, n);
}
#endif

#define MOST_ACTIONS 512

static struct policy *load(const struct scratch *s, const struct policy_options *opt)
{
    struct policy *p;
    struct policy_error err;
    if (policy_load(&p, s->dir, opt, &err))
        fail_msg("%s", err.text);
    return p;
}

// What a policy answers to observation number `i`.
static int ask(struct policy *p, int i, float actions[MOST_ACTIONS])
{
    static _Thread_local uint8_t rgb[2][48 * 48 * 3];
    const struct policy_info *info = policy_describe(p);
    float state[8], env[8] = {0.5f, -0.25f, 1.0f};
    struct policy_image image[2];
    for (int k = 0; k < 8; k++)
        state[k] = 0.0625f * (float)((i + 3 * k) % 17 - 8);
    for (int c = 0; c < 2; c++) {
        for (size_t k = 0; k < sizeof rgb[c]; k++)
            rgb[c][k] = (uint8_t)act_fixture_mix((uint64_t)i * 100003 + k);
        image[c] = (struct policy_image){.rgb = rgb[c],
                                         .width = info->camera[c].width,
                                         .height = info->camera[c].height,
                                         .stride = 3 * info->camera[c].width};
    }
    const struct policy_observation obs = {state, env, image};
    return policy_infer(p, &obs, actions, NULL);
}

static struct act_fixture with_cameras(uint64_t seed)
{
    struct act_fixture f = act_fixture_tiny();
    f.seed = seed;
    f.n_cameras = 2;
    f.camera[0] = (struct act_fixture_camera){"observation.images.front", 32, 48};
    f.camera[1] = (struct act_fixture_camera){"observation.images.wrist", 33, 32};
    f.dim_model = 64;
    f.dim_feedforward = 200;
    f.chunk_size = f.n_action_steps = 21;
    f.n_encoder_layers = f.n_decoder_layers = 2;
    return f;
}

static void test_same_bits(void **unused)
{
    (void)unused;
    struct act_fixture small = scratch_small(), large = with_cameras(3);
    struct scratch s[2];
    scratch_make(&s[0], &small);
    scratch_make(&s[1], &large);
    for (int threads = 1; threads <= 3; threads++)
        for (int k = 0; k < 2; k++) {
            float alone[MOST_ACTIONS], beside[MOST_ACTIONS];
            const struct policy_options opt = {.threads = threads};
            struct policy *first = load(&s[!k], &opt), *p = load(&s[k], &opt);
            // threads and cpu_mask of one that is loaded beside are the other's
            const struct policy_options and = {
                .threads = 64, .cpu_mask = 1ull << 63, .beside = first};
            struct policy *q = load(&s[k], &and);
            const struct policy_info *info = policy_describe(q);
            size_t n = (size_t)info->chunk_size * (size_t)info->action_dim;
            assert_int_equal(info->threads, threads);
            policy_free(first); // its threads go on for the other
            for (int i = 0; i < 5; i++) {
                assert_int_equal(ask(p, i, alone), 0);
                assert_int_equal(ask(q, i, beside), 0);
                assert_memory_equal(alone, beside, n * sizeof(float));
            }
            assert_string_equal(info->digest, policy_describe(p)->digest);
            policy_free(p);
            policy_free(q);
        }
    scratch_remove(&s[0]);
    scratch_remove(&s[1]);
}

struct driver {
    struct policy *p;
    atomic_bool stop;
    atomic_int chunks;
    int wrong;
    float expected[16][MOST_ACTIONS];
    size_t bytes;
};

static void *drive(void *arg)
{
    struct driver *d = arg;
    float actions[MOST_ACTIONS];
    while (!atomic_load(&d->stop)) {
        int i = atomic_fetch_add(&d->chunks, 1) % 16;
        d->wrong +=
            ask(d->p, i, actions) != 0 || memcmp(actions, d->expected[i], d->bytes) != 0;
    }
    return NULL;
}

static void begin(struct driver *d, struct policy *p, pthread_t *t)
{
    const struct policy_info *info = policy_describe(p);
    memset(d, 0, sizeof *d);
    d->p = p;
    d->bytes = (size_t)info->chunk_size * (size_t)info->action_dim * sizeof(float);
    for (int i = 0; i < 16; i++)
        assert_int_equal(ask(p, i, d->expected[i]), 0);
    assert_int_equal(pthread_create(t, NULL, drive, d), 0);
    while (atomic_load(&d->chunks) <
           16) // its first picture is its own thread-local memory
        sched_yield();
    atomic_store(&calls, 0);
    atomic_store(&counting, true);
}

static void finish(struct driver *d, pthread_t t)
{
    atomic_store(&counting, false);
    atomic_store(&d->stop, true);
    pthread_join(t, NULL);
    assert_int_equal(d->wrong, 0);
}

static int threads_now(void)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/task");
    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n - 2;
}

// One drives and another is loaded, good ones and bad ones, again and again.
static void nobody_notices(void)
{
    static struct driver d;
    const struct act_fixture f = with_cameras(1), g = with_cameras(2);
    const struct policy_options opt = {.threads = 3};
    struct scratch s[2], bad;
    struct policy_error err;
    int before_chunks, loads = COUNTS ? 12 : 4;
    pthread_t t;
    scratch_make(&s[0], &f);
    scratch_make(&s[1], &g);
    scratch_make(&bad, &g);
    assert_int_equal(truncate(scratch_path(&bad, "model.safetensors"), 2000000), 0);
    struct policy *first = load(&s[0], &opt), *p;
    begin(&d, first, &t);
    loading = true;
    int threads = threads_now();
    before_chunks = atomic_load(&d.chunks);
    for (int i = 0; i < loads; i++) {
        const struct policy_options and = {.beside = first};
        p = load(&s[1], &and);
        assert_int_equal(threads_now(), threads); // it has none of its own
        policy_free(p);
        assert_true(policy_load(&p, bad.dir, &and, &err) < 0);
    }
    int during = atomic_load(&d.chunks) - before_chunks;
    finish(&d, t);
    loading = false;
    print_message("%d loads, %d chunks meanwhile, %d calls of the allocator\n", loads,
                  during, atomic_load(&calls));
    assert_true(during > 0);
    assert_int_equal(atomic_load(&calls), 0);
    policy_free(first);
    scratch_remove(&s[0]);
    scratch_remove(&s[1]);
    scratch_remove(&bad);
}

static void test_nobody_notices(void **unused)
{
    (void)unused;
    nobody_notices();
}

static void test_nor_with_openblas(void **unused)
{
    (void)unused;
    assert_int_equal(kernels_choose("openblas"), 0);
    nobody_notices();
    assert_int_equal(kernels_choose(NULL), 0);
}

void *blas_memory_alloc(int unused);
void blas_memory_free(void *buffer);

// How many of five buffers OpenBLAS has after a policy with three threads was loaded.
static int buffers_after_loading(const struct scratch *s)
{
    const struct policy_options opt = {.threads = 3};
    struct policy *p = load(s, &opt);
    void *buffer[5];
    int there = 0;
    for (int i = 0; i < 5; i++) {
        atomic_store(&calls, 0);
        atomic_store(&counting, true);
        buffer[i] = blas_memory_alloc(0);
        atomic_store(&counting, false);
        there += atomic_load(&calls) == 0;
    }
    for (int i = there; i < 5;
         i++) // they are never given back: make it as if they had been
        blas_memory_free(buffer[i]);
    for (int i = 0; i < there; i++)
        blas_memory_free(buffer[i]);
    policy_free(p);
    return there;
}

static size_t mapped_mib(void)
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%lu", &pages), 1);
    fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE) >> 20;
}

// Where OpenBLAS computes nothing, none of its buffers of 128 MiB is mapped. (One
// thread: the malloc of each further one maps 64 MiB as well.)
static void test_no_buffer(void **unused)
{
    (void)unused;
    const struct act_fixture f = scratch_small();
    const struct policy_options opt = {.threads = 1};
    struct scratch s;
    if (!COUNTS || kernels_blas())
        skip();
    scratch_make(&s, &f);
    size_t before = mapped_mib();
    policy_free(load(&s, &opt));
    assert_true(mapped_mib() - before < 128);
    scratch_remove(&s);
}

// Where it does, after the first load it has one for every thread of the pool and for one that
// loads; the next caller's would be mapped.
static void test_a_buffer_each(void **unused)
{
    (void)unused;
    const struct act_fixture f = scratch_small();
    struct scratch s;
    if (!COUNTS)
        skip();
    scratch_make(&s, &f);
    assert_int_equal(kernels_choose("openblas"), 0);
    assert_int_equal(buffers_after_loading(&s), 4);
    assert_int_equal(kernels_choose(NULL), 0);
    scratch_remove(&s);
}

// The counter would see it: the same in the thread that infers.
static void *allocate(void *unused)
{
    void *p = malloc(100);
    (void)unused;
    return p;
}

static void test_the_counter_counts(void **unused)
{
    (void)unused;
    pthread_t t;
    void *p = NULL;
    if (!COUNTS)
        skip();
    atomic_store(&calls, 0);
    loading = true;
    atomic_store(&counting, true);
    assert_int_equal(pthread_create(&t, NULL, allocate, NULL), 0);
    pthread_join(t, &p);
    atomic_store(&counting, false);
    loading = false;
    free(p);
    assert_true(atomic_load(&calls) >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_counter_counts),
        cmocka_unit_test(test_no_buffer),
        cmocka_unit_test(test_a_buffer_each), // before others: none is mapped yet
        cmocka_unit_test(test_nobody_notices),
        cmocka_unit_test(test_nor_with_openblas),
        cmocka_unit_test(test_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
