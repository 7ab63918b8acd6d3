#include "policy/kernels/layer_norm.h"

#include <stddef.h>

const struct layer_norm_kernel *layer_norm_kernel_of(enum cpu_isa isa)
{
    switch (isa) {
    case CPU_GENERIC:
        return &layer_norm_generic;
#if defined(__x86_64__)
    case CPU_AVX2:
        return &layer_norm_avx2;
    case CPU_AVX512:
        return &layer_norm_avx512;
#elif defined(__aarch64__)
    case CPU_NEON:
        return &layer_norm_neon;
#endif
    default:
        return NULL;
    }
}

struct job {
    const struct layer_norm *n;
    const struct layer_norm_kernel *kernel;
    const float *x;
    float *y;
    int rows;
};

static void layer_norm_task(void *arg, int worker, int workers)
{
    const struct job *j = arg;
    size_t begin, end, dim = (size_t)j->n->dim;

    pool_share((size_t)j->rows, worker, workers, &begin, &end);
    j->kernel->rows(j->n, j->x + begin * dim, (int)(end - begin), j->y + begin * dim);
}

void layer_norm_run(struct pool *pool, const struct layer_norm *n, const float *x,
                    int rows, float *y)
{
    struct job j = {n, layer_norm_kernel_of(cpu_chosen()), x, y, rows};
    pool_run(pool, layer_norm_task, &j);
}
