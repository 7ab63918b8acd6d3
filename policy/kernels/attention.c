#include "policy/kernels/attention.h"

#include "policy/kernels/attention_impl.h"

size_t attention_scratch_floats(int head_dim)
{
    struct attention_scratch s;
    return attention_divide(head_dim, NULL, &s);
}

const struct attention_kernel *attention_kernel_of(enum cpu_isa isa)
{
    switch (isa) {
    case CPU_GENERIC:
        return &attention_generic;
#if defined(__x86_64__)
    case CPU_AVX2:
        return &attention_avx2;
    case CPU_AVX512:
        return &attention_avx512;
#elif defined(__aarch64__)
    case CPU_NEON:
        return &attention_neon;
#endif
    default:
        return NULL;
    }
}

struct job {
    const struct attention *a;
    const struct attention_kernel *kernel;
    int rows; // queries per unit
};

static int ceil_div(int n, int by)
{
    return (n + by - 1) / by;
}

// Smaller units when there would be fewer than four per worker: the last round of units
// leaves some workers idle. Each query's bits are the same in any unit.
static int unit_rows(const struct attention *a, int workers)
{
    int rows = ATTENTION_BLOCK;
    while (rows > 16 && a->heads * ceil_div(a->queries, rows) < 4 * workers)
        rows /= 2;
    return rows;
}

static void attention_task(void *arg, int worker, int workers)
{
    const struct job *j = arg;
    const struct attention *a = j->a;
    int blocks = ceil_div(a->queries, j->rows);
    float *scratch = a->scratch + (size_t)worker * a->scratch_floats;
    size_t begin, end;

    pool_share((size_t)blocks * (size_t)a->heads, worker, workers, &begin, &end);
    for (size_t unit = begin; unit < end; unit++) {
        int from = (int)(unit % (size_t)blocks) * j->rows;
        int left = a->queries - from;
        j->kernel->block(a, (int)(unit / (size_t)blocks), from,
                         left < j->rows ? left : j->rows, scratch);
    }
}

void attention_run(struct pool *pool, const struct attention *a)
{
    struct job j = {a, attention_kernel_of(cpu_chosen()),
                    unit_rows(a, pool_threads(pool))};
    pool_run(pool, attention_task, &j);
}
