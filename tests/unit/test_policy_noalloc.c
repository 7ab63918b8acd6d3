// policy_infer allocates nothing, in any thread, whether it succeeds or refuses. This
// binary defines the allocator's entry points itself, in front of libc's, and counts
// every call that the program and its libraries make while `counting` is set.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <cblas.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "policy/policy.h"
#include "tests/unit/act_fixture.h"

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static atomic_bool counting;
static atomic_int allocations, releases, mappings;

#if !SANITIZED
static void tick(atomic_int *counter)
{
    if (atomic_load_explicit(&counting, memory_order_relaxed))
        atomic_fetch_add(counter, 1);
}

// glibc's own names for what is replaced here
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t alignment, size_t n);
void __libc_free(void *p);
void *mmap64(void *at, size_t n, int prot, int flags, int fd, off64_t offset);

void *malloc(size_t n)
{
    tick(&allocations);
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    tick(&allocations);
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    tick(&allocations);
    return __libc_realloc(p, n);
}

void *aligned_alloc(size_t alignment, size_t n)
{
    tick(&allocations);
    return __libc_memalign(alignment, n);
}

int posix_memalign(void **out, size_t alignment, size_t n)
{
    tick(&allocations);
    *out = __libc_memalign(alignment, n);
    return *out ? 0 : ENOMEM;
}

void free(void *p)
{
    tick(&releases);
    __libc_free(p);
}

void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
    tick(&mappings);
    return (void *)syscall(SYS_mmap, at, n, prot, flags, fd, offset);
}

void *mmap64(void *at, size_t n, int prot, int flags, int fd, off64_t offset)
{
    return mmap(at, n, prot, flags, fd, offset);
}

int munmap(void *at, size_t n)
{
    tick(&mappings);
    return (int)syscall(SYS_munmap, at, n);
}
#endif

static void start_counting(void)
{
    atomic_store(&allocations, 0);
    atomic_store(&releases, 0);
    atomic_store(&mappings, 0);
    atomic_store(&counting, true);
}

static void expect_none(void)
{
    atomic_store(&counting, false);
    assert_int_equal(atomic_load(&allocations), 0);
    assert_int_equal(atomic_load(&releases), 0);
    assert_int_equal(atomic_load(&mappings), 0);
}

static bool skipped(void)
{
    if (SANITIZED) {
        print_message("skipped: a sanitizer owns the allocator's entry points\n");
        skip();
    }
    return SANITIZED;
}

static void *allocate_elsewhere(void *unused)
{
    (void)unused;
    return strdup("from inside libc, in another thread");
}

// The counter counts: libc's own use, another thread's, OpenBLAS's mapping of its
// buffers.
static void test_counter_counts(void **unused)
{
    (void)unused;
    pthread_t t;
    void *p = NULL;
    if (skipped())
        return;
    assert_int_equal(pthread_create(&t, NULL, allocate_elsewhere, NULL), 0);
    pthread_join(t, &p);
    free(p);
    start_counting();
    assert_int_equal(pthread_create(&t, NULL, allocate_elsewhere, NULL), 0);
    pthread_join(t, &p);
    free(p);
    assert_true(atomic_load(&allocations) >= 1);
    assert_true(atomic_load(&releases) >= 1);
    int before = atomic_load(&mappings); // a new thread may map a heap of its own
    p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(p, 4096);
    assert_int_equal(atomic_load(&mappings) - before, 2);
    atomic_store(&counting, false);
}

static void test_openblas_is_counted(void **unused)
{
    (void)unused;
    static float a[256 * 256], b[256 * 256];
    if (skipped())
        return;
    if (openblas_get_num_procs() < 2)
        skip(); // with one core it never takes the path that allocates
    openblas_set_num_threads(2);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, 256, 256, 256, 1, a, 256, a, 256,
                0, b, 256);
    start_counting();
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, 256, 256, 256, 1, a, 256, a, 256,
                0, b, 256);
    atomic_store(&counting, false);
    openblas_set_num_threads(1);
    assert_true(atomic_load(&allocations) > 0); // why the pool gives it one thread
}

static struct policy *load(const struct act_fixture *f, int threads,
                           enum precision precision)
{
    char dir[256];
    struct policy *p = NULL;
    struct policy_error err = {{0}};
    struct policy_options opt = {.threads = threads, .precision = precision};
    assert_int_equal(act_fixture_mkdir(dir), 0);
    assert_int_equal(act_fixture_write(dir, f), 0);
    int rc = policy_load(&p, dir, &opt, &err);
    act_fixture_remove(dir);
    if (rc)
        fail_msg("policy_load: %d: %s", rc, err.text);
    return p;
}

// `runs` inferences, every fifth with a NaN, and with cameras every seventh with a wrong
// size; of every two frames the second has the number of the first, and every third is seen before.
static void run(struct policy *p, int runs)
{
    static uint8_t rgb[48 * 48 * 3];
    static float actions[64], raw[64];
    const struct policy_info *info = policy_describe(p);
    float state[8] = {0.25f, -0.5f}, env[8] = {1.0f};
    struct policy_image image = {.rgb = rgb, .width = 32, .height = 32, .stride = 96};
    struct policy_observation obs = {state, env, &image};
    int good = 0;
    start_counting();
    for (int i = 0; i < runs; i++) {
        bool nan = i % 5 == 4, wrong = info->n_cameras && i % 7 == 6;
        for (size_t k = 0; k < sizeof rgb; k += 97)
            rgb[k] = (uint8_t)(rgb[k] + i);
        state[3] = nan ? (float)NAN : 0.125f * (float)(i % 16);
        image.width = wrong ? 30 : 32;
        image.number = (uint64_t)(i / 2);
        if (info->n_cameras && i % 3 == 0)
            assert_int_equal(policy_see(p, 0, &image), wrong ? -EINVAL : 0);
        int rc = policy_infer(p, &obs, actions, i & 1 ? raw : NULL);
        assert_int_equal(rc, nan ? -EDOM : wrong ? -EINVAL : 0);
        if (rc)
            assert_true(policy_last_error(p)[0] != '\0');
        good += rc == 0;
    }
    expect_none();
    assert_true(good > runs / 2);
}

static void test_no_allocation(void **unused)
{
    (void)unused;
    if (skipped())
        return;
    struct act_fixture f = act_fixture_tiny();
    for (int threads = 1; threads <= 3; threads++) {
        struct policy *p = load(&f, threads, PRECISION_FLOAT32);
        run(p, threads == 2 ? 1000 : 50);
        policy_free(p);
    }
}

static void test_no_allocation_without_camera(void **unused)
{
    (void)unused;
    if (skipped())
        return;
    struct act_fixture f = act_fixture_tiny();
    f.n_cameras = 0;
    f.env_dim = 3;
    f.pre_norm = f.gelu = true;
    f.n_decoder_layers = 2;
    f.dim_model = 128;
    f.dim_feedforward = 512;
    for (int i = 0; i < PRECISIONS; i++) {
        struct policy *p = load(&f, 2, (enum precision)i);
        run(p, 1000);
        policy_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counter_counts),
        cmocka_unit_test(test_openblas_is_counted),
        cmocka_unit_test(test_no_allocation),
        cmocka_unit_test(test_no_allocation_without_camera),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
