// attention_body: one block of queries against all keys of a head; included once per
// instruction set (simd.h). The scores are computed and kept transposed, a row per key
// with the queries side by side: then K is read where it lies, a float at a time for a
// whole vector of queries, maximum, exponential and sum are taken lane by lane, and the
// product with V finds its factors next to each other. Only the queries are transposed,
// once per block.
#include <math.h>
#include <stdbool.h>

#include "policy/kernels/attention_impl.h"
#include "policy/kernels/simd_exp.h"

// The register tile, rows by vectors: its sums, one row of vectors and one factor fill
// the registers (32 of AVX-512 and NEON, 16 else), and at least 8 sums hide an fma's 4
// cycles at two per cycle.
#define TILE_ROWS   6
#define EACH_ROW(X) X(0) X(1) X(2) X(3) X(4) X(5)
#if defined(SIMD_AVX512) || defined(SIMD_NEON)
#define TILE_VECTORS 4
#else
#define TILE_VECTORS 2
#endif

_Static_assert(ATTENTION_KEYS % TILE_ROWS == 0 && TILE_ROWS <= ATTENTION_MAX_ROWS,
               "scratch has room for whole tiles");

#define LANES ATTENTION_BLOCK // floats from one key's scores to the next one's

struct row {
    vf v[4];
};
struct tile {
    struct row row[TILE_ROWS];
};

// `vectors` is a constant wherever the following are inlined.
SIMD_INLINE struct row row_load(const float *p, int vectors)
{
    struct row r = {{simd_load(p)}};
    if (vectors > 1)
        r.v[1] = simd_load(p + SIMD_WIDTH);
    if (vectors > 2)
        r.v[2] = simd_load(p + 2 * SIMD_WIDTH);
    if (vectors > 3)
        r.v[3] = simd_load(p + 3 * SIMD_WIDTH);
    return r;
}

SIMD_INLINE void row_store(float *p, struct row r, int vectors)
{
    simd_store(p, r.v[0]);
    if (vectors > 1)
        simd_store(p + SIMD_WIDTH, r.v[1]);
    if (vectors > 2)
        simd_store(p + 2 * SIMD_WIDTH, r.v[2]);
    if (vectors > 3)
        simd_store(p + 3 * SIMD_WIDTH, r.v[3]);
}

SIMD_INLINE struct row row_fma(vf a, struct row b, struct row c, int vectors)
{
    c.v[0] = simd_fma(a, b.v[0], c.v[0]);
    if (vectors > 1)
        c.v[1] = simd_fma(a, b.v[1], c.v[1]);
    if (vectors > 2)
        c.v[2] = simd_fma(a, b.v[2], c.v[2]);
    if (vectors > 3)
        c.v[3] = simd_fma(a, b.v[3], c.v[3]);
    return c;
}

SIMD_INLINE struct row row_max(struct row a, struct row b, int vectors)
{
    a.v[0] = simd_max(a.v[0], b.v[0]);
    if (vectors > 1)
        a.v[1] = simd_max(a.v[1], b.v[1]);
    if (vectors > 2)
        a.v[2] = simd_max(a.v[2], b.v[2]);
    if (vectors > 3)
        a.v[3] = simd_max(a.v[3], b.v[3]);
    return a;
}

// tile[i][j] = sum over k of a[i * row + k * step] * b[k * vectors * width + j]
SIMD_INLINE struct tile product(const float *a, size_t row, size_t step, const float *b,
                                int depth, int vectors)
{
    const vf zero = simd_splat(0.0f);
    struct tile t;
#define ZERO(i) t.row[i] = (struct row){{zero, zero, zero, zero}};
    EACH_ROW(ZERO)
    for (int k = 0; k < depth; k++) {
        struct row r = row_load(b, vectors);
#define FMA(i) t.row[i] = row_fma(simd_splat(a[i * row]), r, t.row[i], vectors);
        EACH_ROW(FMA)
        a += step;
        b += vectors * SIMD_WIDTH;
    }
    return t;
}

// How many of `left` vectors the next tile takes: five are 3 + 2 rather than 4 + 1.
static int take(int left)
{
    if (left <= TILE_VECTORS)
        return left;
    return left < 2 * TILE_VECTORS ? (left + 1) / 2 : TILE_VECTORS;
}

// ---- what a block works on ----------------------------------------------------------

struct block {
    struct attention_scratch s;
    const float *q, *k, *v; // of this head, q from the first query on
    size_t q_stride, k_stride, v_stride;
    int head_dim, rows;
    int lanes, columns; // vectors of queries, vectors of head_dim
    float scale;        // of queries: 1 / sqrt(head_dim)
};

// Queries [first, first + SIMD_WIDTH), scaled, as columns, `stride` floats apart. Those behind the
// last one are copies of it. Scaled here, not in the scores: a fused score * scale - top, one
// rounding less than the top had, is far above zero where scores are of 1e10, and they are when a
// network sees what it was never shown.
static void turn_queries(const struct block *b, int first, float *to, size_t stride)
{
    const float *row[SIMD_WIDTH];
    int d = 0;

    for (int i = 0; i < SIMD_WIDTH; i++) {
        int r = first + i < b->rows ? first + i : b->rows - 1;
        row[i] = b->q + (size_t)r * b->q_stride;
    }
    for (; d + 4 <= b->head_dim; d += 4) {
        struct simd_four c = simd_columns(row, d);
        for (int k = 0; k < 4; k++)
            simd_store(to + (size_t)(d + k) * stride, c.v[k] * simd_splat(b->scale));
    }
    for (; d < b->head_dim; d++)
        for (int i = 0; i < SIMD_WIDTH; i++)
            to[(size_t)d * stride + (size_t)i] = row[i][d] * b->scale;
}

static void pack_queries(const struct block *b)
{
    for (int at = 0, n; at < b->lanes; at += n) {
        n = take(b->lanes - at);
        float *group = b->s.q + (size_t)(at * SIMD_WIDTH) * (size_t)b->head_dim;
        for (int i = 0; i < n; i++)
            turn_queries(b, (at + i) * SIMD_WIDTH, group + i * SIMD_WIDTH,
                         (size_t)(n * SIMD_WIDTH));
    }
}

// V's rows close together: at a stride of 6 KiB they would share a few sets of the first
// cache.
static void pack_values(const struct block *b, int key, int keys)
{
    for (int at = 0, n; at < b->columns; at += n) {
        n = take(b->columns - at);
        int width = n * SIMD_WIDTH, column = at * SIMD_WIDTH;
        int there = b->head_dim - column < width ? b->head_dim - column : width;
        float *to = b->s.values + column * keys;
        for (int k = 0; k < keys; k++, to += width) {
            const float *from = b->v + (size_t)(key + k) * b->v_stride + column;
            int i = 0;
            for (; i + SIMD_WIDTH <= there; i += SIMD_WIDTH)
                simd_store(to + i, simd_load(from + i));
            for (; i < there; i++)
                to[i] = from[i];
            for (; i < width; i++)
                to[i] = 0.0f;
        }
    }
}

// ---- scores -------------------------------------------------------------------------

SIMD_INLINE void score_tile(const float *k, size_t k_stride, const float *q, int head_dim,
                            float *scores, float *best, int vectors)
{
    struct tile t = product(k, k_stride, 1, q, head_dim, vectors);
    struct row most = row_load(best, vectors);
#define KEEP(i)                                       \
    row_store(scores + i * LANES, t.row[i], vectors); \
    most = row_max(t.row[i], most, vectors);
    EACH_ROW(KEEP)
    row_store(best, most, vectors);
}

static void score_keys(const struct block *b, const float *k, size_t k_stride,
                       float *scores)
{
    for (int at = 0, n; at < b->lanes; at += n) {
        int lane = at * SIMD_WIDTH;
        const float *q = b->s.q + (size_t)lane * (size_t)b->head_dim;
        float *to = scores + lane, *best = b->s.best + lane;
        n = take(b->lanes - at);
        if (n == 1)
            score_tile(k, k_stride, q, b->head_dim, to, best, 1);
        else if (n == 2)
            score_tile(k, k_stride, q, b->head_dim, to, best, 2);
#if TILE_VECTORS > 2
        else if (n == 3)
            score_tile(k, k_stride, q, b->head_dim, to, best, 3);
        else
            score_tile(k, k_stride, q, b->head_dim, to, best, 4);
#endif
    }
}

// The scores of keys [key, key + keys), and the greatest of them. The last
// tile may lack keys: copies of the last one fill it, which do not change the greatest.
static void score(const struct block *b, int key, int keys)
{
    const float *k = b->k + (size_t)key * b->k_stride;
    int i = 0;

    for (int j = 0; j < b->lanes; j++)
        simd_store(b->s.best + j * SIMD_WIDTH, simd_splat(-INFINITY));
    for (; i + TILE_ROWS <= keys; i += TILE_ROWS)
        score_keys(b, k + (size_t)i * b->k_stride, b->k_stride, b->s.scores + i * LANES);
    if (i == keys)
        return;
    for (int r = 0; r < TILE_ROWS; r++) {
        int from = i + r < keys ? i + r : keys - 1;
        memcpy(b->s.rest + r * b->head_dim, k + (size_t)from * b->k_stride,
               (size_t)b->head_dim * sizeof *k);
    }
    score_keys(b, b->s.rest, (size_t)b->head_dim, b->s.scores + i * LANES);
}

// ---- weights ------------------------------------------------------------------------

// Scores of one vector of queries become exponentials against `top`. Returns their sum,
// taken in short runs: over all keys in one go it would be the greatest error of the
// whole.
SIMD_INLINE vf weigh_lanes(float *s, int keys, vf top)
{
    const vf zero = simd_splat(0.0f);
    vf sum = zero, least = zero;

    for (int k = 0; k < keys;) {
        int end = k + 16 < keys ? k + 16 : keys;
        vf part = zero;
        for (; k < end; k++, s += LANES) {
            vf score = simd_load(s);
            vf e = simd_exp_nonpositive(score - top);
            least = simd_min(score, least);
            simd_store(s, e);
            part += e;
        }
        sum += part;
    }
    // A score of -infinity, which an infinite key may cause, would weigh nothing: unseen.
    return simd_fma(least, zero, sum);
}

static void weigh(const struct block *b, int keys)
{
    for (int lane = 0; lane < b->lanes * SIMD_WIDTH; lane += SIMD_WIDTH) {
        vf old = simd_load(b->s.top + lane);
        vf top = simd_max(simd_load(b->s.best + lane), old);
        vf fade = simd_exp_nonpositive(old - top);
        vf sum = weigh_lanes(b->s.scores + lane, keys, top);
        simd_store(b->s.top + lane, top);
        simd_store(b->s.fade + lane, fade);
        simd_store(b->s.total + lane, simd_fma(simd_load(b->s.total + lane), fade, sum));
    }
}

// ---- result -------------------------------------------------------------------------

SIMD_INLINE void mix_tile(const struct block *b, int lane, int at, int keys, bool first,
                          int vectors)
{
    int column = at * SIMD_WIDTH, stride = b->columns * SIMD_WIDTH;
    const float *fade = b->s.fade + lane;
    float *y = b->s.result + lane * stride + column;
    struct tile t =
        product(b->s.scores + lane, 1, LANES, b->s.values + column * keys, keys, vectors);
#define ADD(i)                                                                           \
    t.row[i] = row_fma(simd_splat(fade[i]), row_load(y + i * stride, vectors), t.row[i], \
                       vectors);
    if (!first) {
        EACH_ROW(ADD)
    }
#define PUT(i) row_store(y + i * stride, t.row[i], vectors);
    EACH_ROW(PUT)
}

// result = result * fade + weights * values
static void mix(const struct block *b, int keys, bool first)
{
    for (int at = 0, n; at < b->columns; at += n) {
        n = take(b->columns - at);
        for (int lane = 0; lane < b->rows; lane += TILE_ROWS) {
            if (n == 1)
                mix_tile(b, lane, at, keys, first, 1);
            else if (n == 2)
                mix_tile(b, lane, at, keys, first, 2);
#if TILE_VECTORS > 2
            else if (n == 3)
                mix_tile(b, lane, at, keys, first, 3);
            else
                mix_tile(b, lane, at, keys, first, 4);
#endif
        }
    }
}

// result / total, with the reciprocal in two parts: rounded to one float it would cost as
// much as all that was summed before.
static void put_result(const struct block *b, float *out, size_t stride)
{
    for (int r = 0; r < b->rows; r++, out += stride) {
        const float *y = b->s.result + r * b->columns * SIMD_WIDTH;
        double share = 1.0 / (double)b->s.total[r];
        float high = (float)share, low = (float)(share - (double)high);
        int i = 0;
        for (; i + SIMD_WIDTH <= b->head_dim; i += SIMD_WIDTH) {
            vf v = simd_load(y + i);
            simd_store(out + i, simd_fma(v, simd_splat(high), v * simd_splat(low)));
        }
        for (; i < b->head_dim; i++)
            out[i] = y[i] * high + y[i] * low;
    }
}

// ---- the kernel's functions ---------------------------------------------------------

static void start(const struct block *b)
{
    pack_queries(b);
    for (int lane = 0; lane < b->lanes * SIMD_WIDTH; lane += SIMD_WIDTH) {
        simd_store(b->s.top + lane, simd_splat(-INFINITY));
        simd_store(b->s.total + lane, simd_splat(0.0f));
    }
}

static void block(const struct attention *a, int h, int from, int rows, float *scratch)
{
    size_t head = (size_t)h * (size_t)a->head_dim, dim = (size_t)(a->heads * a->head_dim);
    struct block b = {.head_dim = a->head_dim, .rows = rows};
    int passes = (a->keys + ATTENTION_KEYS - 1) / ATTENTION_KEYS;
    int each = (a->keys + passes - 1) / passes; // about as many in each pass

    attention_divide(a->head_dim, scratch, &b.s);
    b.q_stride = (size_t)a->q.stride;
    b.k_stride = (size_t)a->k.stride;
    b.v_stride = (size_t)a->v.stride;
    b.q = a->q.data + (size_t)from * b.q_stride + head;
    b.k = a->k.data + head;
    b.v = a->v.data + head;
    b.lanes = (rows + SIMD_WIDTH - 1) / SIMD_WIDTH;
    b.columns = (a->head_dim + SIMD_WIDTH - 1) / SIMD_WIDTH;
    b.scale = 1.0f / sqrtf((float)a->head_dim);
    each = (each + TILE_ROWS - 1) / TILE_ROWS * TILE_ROWS;
    start(&b);
    for (int key = 0; key < a->keys; key += each) {
        int n = a->keys - key < each ? a->keys - key : each;
        score(&b, key, n);
        weigh(&b, n);
        pack_values(&b, key, n);
        mix(&b, n, key == 0);
    }
    put_result(&b, a->out + (size_t)from * dim + head, dim);
}

static void exp_nonpositive(const float *x, float *y, int n)
{
    int i = 0;
    for (; i + SIMD_WIDTH <= n; i += SIMD_WIDTH)
        simd_store(y + i, simd_exp_nonpositive(simd_load(x + i)));
    if (i < n) {
        float rest[SIMD_WIDTH] = {0};
        memcpy(rest, x + i, (size_t)(n - i) * sizeof *x);
        simd_store(rest, simd_exp_nonpositive(simd_load(rest)));
        memcpy(y + i, rest, (size_t)(n - i) * sizeof *x);
    }
}
