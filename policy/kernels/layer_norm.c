#include "policy/kernels/layer_norm.h"

#include <math.h>

#include "policy/kernels/vec.h"

struct job {
    const struct layer_norm *n;
    const float *x;
    float *y;
    int rows;
};

static float row_mean(const float *x, int dim)
{
    v4f sum = v4_splat(0.0f);
    float rest = 0.0f;
    int i = 0;
    for (; i + 4 <= dim; i += 4)
        sum += v4_load(x + i);
    for (; i < dim; i++)
        rest += x[i];
    return (v4_sum(sum) + rest) / (float)dim;
}

static float row_variance(const float *x, int dim, float mean)
{
    v4f sum = v4_splat(0.0f), m = v4_splat(mean);
    float rest = 0.0f;
    int i = 0;
    for (; i + 4 <= dim; i += 4) {
        v4f d = v4_load(x + i) - m;
        sum += d * d;
    }
    for (; i < dim; i++)
        rest += (x[i] - mean) * (x[i] - mean);
    return (v4_sum(sum) + rest) / (float)dim;
}

static void norm_row(const struct layer_norm *n, const float *x, float *y)
{
    float mean = row_mean(x, n->dim);
    float scale = 1.0f / sqrtf(row_variance(x, n->dim, mean) + LAYER_NORM_EPS);
    v4f m = v4_splat(mean), s = v4_splat(scale);
    int i = 0;
    for (; i + 4 <= n->dim; i += 4) {
        v4f v = (v4_load(x + i) - m) * s;
        v4_store(y + i, v * v4_load(n->weight + i) + v4_load(n->bias + i));
    }
    for (; i < n->dim; i++)
        y[i] = (x[i] - mean) * scale * n->weight[i] + n->bias[i];
}

static void layer_norm_task(void *arg, int worker, int workers)
{
    const struct job *j = arg;
    size_t begin, end, dim = (size_t)j->n->dim;
    pool_share((size_t)j->rows, worker, workers, &begin, &end);
    for (size_t r = begin; r < end; r++)
        norm_row(j->n, j->x + r * dim, j->y + r * dim);
}

void layer_norm_run(struct pool *pool, const struct layer_norm *n, const float *x,
                    int rows, float *y)
{
    struct job j = {n, x, y, rows};
    pool_run(pool, layer_norm_task, &j);
}
