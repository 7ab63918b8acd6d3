// gemm_int8_body: the kernel of gemm_int8.h, once per instruction set. Whoever includes it has
// included simd.h with the macro of its set, and defined
//
//   MR, NV       rows of a tile and vectors of its columns
//   NS           vectors of sums of a row: NV, or more where a column's sum is spread over several
//   sums         vi[NS]: of a row
//   sixteen(h, sum, p, row, b)
//                sum += h rows of 16 depths times as many of the panel from b; for the rows see
//                gemm_int8_quad
//   whole(s, j)  the sums of columns [j * LANES, (j + 1) * LANES) from a row's vectors
//   X_OFFSET     what sixteen takes from each x8, or nothing
//
// and defines its kernel from all_rows and quantise (gemm_int8_quantise_body.h) after it.

#define V           vf
#define LANES       SIMD_WIDTH
#define v_load(p)   simd_load(p)
#define v_store     simd_store
#define v_add(a, b) ((a) + (b))
#define v_relu(x)   simd_max((vf){0}, x) // of a NaN and x it takes x

#include "policy/kernels/gemm_finish_body.h"

// Depth and rows per pass: 16 KiB of the panel and a tile's rows stay in the first-level cache while
// BLOCK rows go by; between passes their sums lie in memory.
#define DEPTH (16 * 1024 / NR)
#define BLOCK (8 * MR)
#define CARRY (NS * LANES) // whole numbers per row

#ifndef X_OFFSET
#define X_OFFSET 0
#endif

// A part of the depth: of all rows of a block at first, of a tile's later.
struct part {
    const uint8_t *x;
    size_t row;
    int depth;
    const int8_t *b; // its rows of the panel
    bool first, last;
    struct gemm_ahead ahead;
    const float *row_scale, *scale; // of rows, of columns
    const int32_t *row_zero, *sum;
};

INLINE vi load_whole(const int32_t *p)
{
    vi v;
    memcpy(&v, p, sizeof v);
    return v;
}

INLINE void store_whole(int32_t *p, vi v)
{
    memcpy(p, &v, sizeof v);
}

INLINE void clear(const int h, sums *sum)
{
    UNROLL
    for (int i = 0; i < h; i++) {
        UNROLL
        for (int j = 0; j < NS; j++)
            sum[i][j] = (vi){0};
    }
}

INLINE void get(const int h, sums *sum, const int32_t *carry)
{
    UNROLL
    for (int i = 0; i < h; i++) {
        UNROLL
        for (int j = 0; j < NS; j++)
            sum[i][j] = load_whole(carry + i * CARRY + j * LANES);
    }
}

INLINE void keep(const int h, sums *sum, int32_t *carry)
{
    UNROLL
    for (int i = 0; i < h; i++) {
        UNROLL
        for (int j = 0; j < NS; j++)
            store_whole(carry + i * CARRY + j * LANES, sum[i][j]);
    }
}

INLINE void span(const int h, sums *sum, const struct part *part)
{
    const uint8_t *p[POINTERS];
    const int8_t *b = part->b;
    struct gemm_ahead ahead = part->ahead;

    UNROLL
    for (int g = 0; g < (h + 2) / 3; g++)
        p[g] = part->x + (size_t)(3 * g) * part->row;
    for (int d = part->depth; d > 0; d -= 16, b += 16 * NR) {
        sixteen(h, sum, p, part->row, b);
        gemm_ahead_step(&ahead, AHEAD);
        UNROLL
        for (int g = 0; g < (h + 2) / 3; g++) {
            p[g] += 16;
            __asm__("" : "+r"(p[g])); // or each row gets a pointer of its own: too many
        }
    }
}

// Whole numbers until here, exact: what follows is rounded, in the same order everywhere.
INLINE void scaled(const int h, vf (*y)[NV], sums *sum, const struct part *p)
{
    UNROLL
    for (int j = 0; j < NV; j++) {
        vi weights = load_whole(p->sum + j * LANES);
        vf scale = simd_load(p->scale + j * LANES);
        UNROLL
        for (int i = 0; i < h; i++) {
            vi s = whole(sum[i], j) - (p->row_zero[i] - X_OFFSET) * weights;
            y[i][j] =
                __builtin_convertvector(s, vf) * (simd_splat(p->row_scale[i]) * scale);
        }
    }
}

// h rows. carry (h, CARRY): their sums so far, unless it is the first part; those of now, unless it
// is the last.
INLINE void tile(const int h, const struct part *p, int32_t *carry, const struct out *o)
{
    float edge[MR * NR];
    sums sum[MR];
    vf y[MR][NV];

    if (p->first)
        clear(h, sum);
    else
        get(h, sum, carry);
    span(h, sum, p);
    if (!p->last) {
        keep(h, sum, carry);
        return;
    }
    scaled(h, y, sum, p);
    if (o->columns == NR && (!o->table || o->finish->table_columns == NR)) {
        finish_tile(h, y, o);
        return;
    }
    put(h, y, edge, NR);
    finish_edge(h, edge, o);
}

typedef void tile_fn(const struct part *p, int32_t *carry, const struct out *o);
#define HEIGHT(h)                                                                   \
    static void tile_##h(const struct part *p, int32_t *carry, const struct out *o) \
    {                                                                               \
        tile(h, p, carry, o);                                                       \
    }

HEIGHT(1)
HEIGHT(2)
#if MR > 2
HEIGHT(3)
#endif
#if MR > 3
HEIGHT(4)
#endif
#if MR > 4
HEIGHT(5)
HEIGHT(6)
#endif
#if MR > 6
HEIGHT(7)
HEIGHT(8)
#endif
#if MR > 8
HEIGHT(9)
HEIGHT(10)
HEIGHT(11)
HEIGHT(12)
#endif

static tile_fn *const tiles[MR] = {
    tile_1, tile_2,
#if MR > 2
    tile_3,
#endif
#if MR > 3
    tile_4,
#endif
#if MR > 4
    tile_5, tile_6,
#endif
#if MR > 6
    tile_7, tile_8,
#endif
#if MR > 8
    tile_9, tile_10, tile_11, tile_12,
#endif
};

// Rows of the next tile, when `rows` are left: as many as in the others, or one more.
static int height(int rows)
{
    int n = (rows + MR - 1) / MR;

    return (rows + n - 1) / n;
}

// As gemm_body.h: each tile asks for its share of what follows in the panel.
static struct gemm_ahead ahead_of(const struct part *p, int rows)
{
    const void *next = p->b + (size_t)p->depth * NR;
    int n = (rows + MR - 1) / MR, line = GEMM_ALIGN / (int)sizeof(float);

    return (struct gemm_ahead){next, (size_t)((line + n - 1) / n)};
}

static void block_part(struct part p, int rows, int32_t *carry, struct out o)
{
    size_t steps = (size_t)p.depth / 16;

    p.ahead = ahead_of(&p, rows);
    for (int r = 0, h; r < rows; r += h) {
        h = height(rows - r);
        tiles[h - 1](&p, carry + (size_t)r * CARRY, &o);
        p.x += (size_t)h * p.row;
        p.row_scale += h;
        p.row_zero += h;
        p.ahead.at += steps * AHEAD * p.ahead.gap;
        o.y += (size_t)h * o.stride;
        if (o.table)
            o.table += (size_t)h * o.finish->table_stride;
    }
}

// `depth` in parts of nearly the same size.
static void block(struct part p, int rows, int depth, const struct out *o)
{
    int32_t carry[BLOCK * CARRY] __attribute__((aligned(GEMM_ALIGN)));

    p.first = true;
    for (int left = depth; left > 0; left -= p.depth) {
        int parts = (left + DEPTH - 1) / DEPTH;
        p.depth = ((left + parts - 1) / parts + 15) / 16 * 16;
        p.last = p.depth == left;
        block_part(p, rows, carry, *o);
        p.first = false;
        p.x += p.depth;
        p.b += (size_t)p.depth * NR;
    }
}

static void all_rows(const struct gemm_int8_rows *x, int row0, int rows, int depth,
                     const int8_t *panel, const float *scale, const int32_t *sum,
                     int columns, float *y, size_t y_stride,
                     const struct gemm_finish *finish)
{
    struct out o = {y, y_stride, columns, finish, finish->table};
    struct part p = {.row = x->stride, .b = panel, .scale = scale, .sum = sum};

    for (int r = 0, n; r < rows; r += n) {
        n = rows - r < BLOCK ? rows - r : BLOCK;
        p.x = x->q + (size_t)(row0 + r) * x->stride;
        p.row_scale = x->scale + row0 + r;
        p.row_zero = x->zero + row0 + r;
        block(p, n, depth, &o);
        o.y += (size_t)n * y_stride;
        if (o.table)
            o.table += (size_t)n * finish->table_stride;
    }
}
