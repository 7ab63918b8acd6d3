#include "policy/kernels/attention.h"

#include <cblas.h>
#include <math.h>

#include "policy/kernels/vec.h"

size_t attention_score_floats(int keys)
{
    return (size_t)ATTENTION_BLOCK * (size_t)keys;
}

static float row_max(const float *x, int n)
{
    float m = x[0];
    int i = 0;
    if (n >= 4) {
        v4f best = v4_load(x);
        for (i = 4; i + 4 <= n; i += 4)
            best = v4_max(best, v4_load(x + i));
        for (int k = 0; k < 4; k++)
            m = best[k] > m ? best[k] : m;
    }
    for (; i < n; i++)
        m = x[i] > m ? x[i] : m;
    return m;
}

static void softmax_row(float *x, int n)
{
    v4f max = v4_splat(row_max(x, n)), sum = v4_splat(0.0f);
    float rest = 0.0f;
    int i = 0;
    for (; i + 4 <= n; i += 4) {
        v4f e = v4_exp_nonpositive(v4_load(x + i) - max);
        v4_store(x + i, e);
        sum += e;
    }
    for (; i < n; i++) {
        x[i] = v4_exp_nonpositive(v4_splat(x[i]) - max)[0];
        rest += x[i];
    }
    float scale = 1.0f / (v4_sum(sum) + rest);
    for (i = 0; i + 4 <= n; i += 4)
        v4_store(x + i, v4_load(x + i) * v4_splat(scale));
    for (; i < n; i++)
        x[i] *= scale;
}

void softmax_rows(float *x, int rows, int cols)
{
    for (int r = 0; r < rows; r++)
        softmax_row(x + (size_t)r * (size_t)cols, cols);
}

// Queries [from, from + rows) of head h.
static void attend(const struct attention *a, int h, int from, int rows, float *scores)
{
    size_t head = (size_t)h * (size_t)a->head_dim;
    int dim = a->heads * a->head_dim;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, a->keys, a->head_dim,
                1.0f / sqrtf((float)a->head_dim),
                a->q.data + (size_t)from * (size_t)a->q.stride + head, a->q.stride,
                a->k.data + head, a->k.stride, 0.0f, scores, a->keys);
    softmax_rows(scores, rows, a->keys);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, a->head_dim, a->keys,
                1.0f, scores, a->keys, a->v.data + head, a->v.stride, 0.0f,
                a->out + (size_t)from * (size_t)dim + head, dim);
}

static void attention_task(void *arg, int worker, int workers)
{
    const struct attention *a = arg;
    int blocks = (a->queries + ATTENTION_BLOCK - 1) / ATTENTION_BLOCK;
    size_t begin, end;
    pool_share((size_t)blocks * (size_t)a->heads, worker, workers, &begin, &end);
    for (size_t unit = begin; unit < end; unit++) {
        int from = (int)(unit % (size_t)blocks) * ATTENTION_BLOCK;
        int rows =
            a->queries - from < ATTENTION_BLOCK ? a->queries - from : ATTENTION_BLOCK;
        attend(a, (int)(unit / (size_t)blocks), from, rows,
               a->scores + (size_t)worker * a->score_floats);
    }
}

void attention_run(struct pool *pool, const struct attention *a)
{
    struct attention job = *a; // pool_run takes what a task might change
    pool_run(pool, attention_task, &job);
}
