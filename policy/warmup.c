#include "policy/warmup.h"

#include <cblas.h>
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "policy/refuse.h"

// 134 M multiply-adds: a few milliseconds, long enough that products which start within
// microseconds of each other overlap, and so hold a buffer each.
#define SIDE   512
#define ROUNDS 3

struct job {
    atomic_int arrived[ROUNDS];
    const float *zeros; // (SIDE, SIDE)
    float *products;    // (workers, SIDE, SIDE)
};

static void warmup_task(void *arg, int worker, int workers)
{
    struct job *j = arg;
    float *out = j->products + (size_t)worker * SIDE * SIDE;
    for (int i = 0; i < ROUNDS; i++) {
        atomic_fetch_add(&j->arrived[i], 1);
        while (atomic_load(&j->arrived[i]) < workers)
            sched_yield();
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, SIDE, SIDE, SIDE, 1.0f,
                    j->zeros, SIDE, j->zeros, SIDE, 0.0f, out, SIDE);
    }
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
    struct job j = {.zeros = memory, .products = memory + side2};
    pool_run(pool, warmup_task, &j);
    free(memory);
    return 0;
}
