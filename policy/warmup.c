#include "policy/warmup.h"

#include <cblas.h>
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "policy/refuse.h"

// 134 M multiply-adds: a few milliseconds, long enough that products which start within
// microseconds of each other overlap, and so hold a buffer each.
#define SIDE       512
#define OVERLAP_NS 200000 // all workers inside for so long: each surely has its buffer
#define BUFFER     ((size_t)128 << 20) // what OpenBLAS maps per concurrent caller
#define NEEDED     2                   // rounds that overlapped, in case one was luck
// A round is a few milliseconds; on a busy machine the scheduler keeps the threads apart for
// many of them, and with far more threads than cores for ever.
#define PATIENCE_NS INT64_C(3000000000)

struct job {
    atomic_int arrived;
    const float *zeros; // (SIDE, SIDE)
    float *products;    // (workers, SIDE, SIDE)
    int64_t begin_ns[POOL_MAX_THREADS], end_ns[POOL_MAX_THREADS];
};

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void warmup_task(void *arg, int worker, int workers)
{
    struct job *j = arg;
    float *out = j->products + (size_t)worker * SIDE * SIDE;
    atomic_fetch_add(&j->arrived, 1);
    while (atomic_load(&j->arrived) < workers)
        sched_yield();
    j->begin_ns[worker] = now_ns();
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, SIDE, SIDE, SIDE, 1.0f, j->zeros,
                SIDE, j->zeros, SIDE, 0.0f, out, SIDE);
    j->end_ns[worker] = now_ns();
}

static bool overlapped(const struct job *j, int workers)
{
    int64_t last_begin = j->begin_ns[0], first_end = j->end_ns[0];
    for (int i = 1; i < workers; i++) {
        last_begin = j->begin_ns[i] > last_begin ? j->begin_ns[i] : last_begin;
        first_end = j->end_ns[i] < first_end ? j->end_ns[i] : first_end;
    }
    return workers == 1 || first_end - last_begin >= OVERLAP_NS;
}

// Rounds until all workers have been inside a product at the same time.
static void together(struct pool *pool, struct job *j)
{
    int good = 0, workers = pool_threads(pool);
    int64_t begin = now_ns();
    while (good < NEEDED && now_ns() - begin < PATIENCE_NS) {
        atomic_store(&j->arrived, 0);
        pool_run(pool, warmup_task, j);
        good += overlapped(j, workers);
    }
}

// OpenBLAS 0.3.21 tries again for ever when it is refused its buffer, so ask before it does.
static bool buffers_fit(size_t workers)
{
    void *p = mmap(NULL, workers * BUFFER, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return false;
    munmap(p, workers * BUFFER);
    return true;
}

int warmup_blas(struct pool *pool, struct policy_error *err)
{
    size_t side2 = (size_t)SIDE * SIDE, workers = (size_t)pool_threads(pool);
    openblas_set_num_threads(1);
    if (openblas_get_num_threads() != 1)
        return refuse(err, EINVAL,
                      "OpenBLAS keeps %d threads although 1 was asked for: install "
                      "libopenblas0-pthread",
                      openblas_get_num_threads());
    float *memory = calloc((workers + 1) * side2, sizeof *memory);
    if (!memory)
        return refuse(err, ENOMEM, "no memory for the first matrix product");
    if (!buffers_fit(workers)) {
        free(memory);
        return refuse(
            err, ENOMEM,
            "OpenBLAS needs %zu MiB of address space for %zu threads, which the "
            "system refused: raise the memory limits (LimitAS=, `ulimit -v`, "
            "vm.overcommit_memory) or lower policy.threads",
            workers * BUFFER >> 20, workers);
    }
    struct job j = {.zeros = memory, .products = memory + side2};
    if (workers <= POOL_MAX_THREADS)
        together(pool, &j);
    free(memory);
    return 0;
}
