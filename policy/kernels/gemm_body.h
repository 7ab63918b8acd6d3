// gemm_body: the kernel of gemm.h, once per instruction set. Whoever includes it has defined
//
//   V, LANES               a vector of floats, and how many
//   MR, NV                 rows and vectors of a tile: MR * NV sums in registers
//   v_load, v_store        unaligned
//   v_splat(p)             *p in all lanes
//   v_add, v_mul_add(a, b, c) = a * b + c
//   v_relu(x)              x < 0 ? 0 : x, so that a NaN stays
//   KEEP                   how an asm statement calls a vector register; or nothing
//   OWN_SPAN               if it brings its own inner loop
#include "policy/kernels/gemm_priv.h"
#include "policy/kernels/gemm_finish_body.h"

// Depth and rows per pass: DEPTH * NR floats of the panel and a tile's rows stay in the first-level
// cache while BLOCK rows go by; between passes their sums lie in memory, as they were.
#define DEPTH 256
#define BLOCK (8 * MR)

// From so deep a last part on what it is added to and goes to is worth asking for before; shallow
// products have hardly begun by then.
#define FAR_DEPTH 192

#ifndef OWN_SPAN
// Rows 0, 1, 2 of each pointer: with a stride in a register, x86 reads p, p + s, p + 2 s without
// further arithmetic, so 12 rows need 4 pointers.
#define POINTERS ((MR + 2) / 3)

// x in a register from here on; and up to here. Without the first, a load becomes an operand of its
// multiplications and is repeated in each of them. Without the second, clang lets sums move into
// the registers of the rows and one of them ends up in memory; with it, gcc has one there. Each
// costs a quarter of the speed or half of it.
#ifdef KEEP
#define v_keep(x) __asm__ volatile("" : "+" KEEP(x))
#else
#define v_keep(x)
#endif
#if defined(KEEP) && defined(__clang__)
#define v_keep_until(x) __asm__ volatile("" : : KEEP(x))
#else
#define v_keep_until(x)
#endif

// One depth: `u` floats behind the pointers.
INLINE void step(const int h, V (*sum)[NV], const float *const *p, size_t row,
                 const float *b, int u)
{
    V right[NV];

    UNROLL
    for (int j = 0; j < NV; j++) {
        right[j] = v_load(b + u * NR + j * LANES);
        v_keep(right[j]);
    }
    UNROLL
    for (int i = 0; i < h; i++) {
        V left = v_splat(p[i / 3] + (size_t)(i % 3) * row + u);
        v_keep(left);
        UNROLL
        for (int j = 0; j < NV; j++)
            sum[i][j] = v_mul_add(left, right[j], sum[i][j]);
        v_keep_until(left);
    }
}

// sum += h rows of `length` floats from x, times as many rows of the panel from b.
INLINE void span(const int h, V (*sum)[NV], const float *x, size_t row, int length,
                 const float *b, struct gemm_ahead *ahead)
{
    const float *p[POINTERS];

    UNROLL
    for (int g = 0; g < (h + 2) / 3; g++)
        p[g] = x + (size_t)(3 * g) * row;
    for (; length >= 4; length -= 4, b += 4 * NR) {
        step(h, sum, p, row, b, 0);
        step(h, sum, p, row, b, 1);
        step(h, sum, p, row, b, 2);
        step(h, sum, p, row, b, 3);
        gemm_ahead_step(ahead, AHEAD);
        UNROLL
        for (int g = 0; g < (h + 2) / 3; g++) {
            p[g] += 4;
            __asm__("" : "+r"(p[g])); // or each row gets a pointer of its own: too many
        }
    }
    for (; length > 0; length--, b += NR) {
        step(h, sum, p, row, b, 0);
        UNROLL
        for (int g = 0; g < (h + 2) / 3; g++)
            p[g]++;
    }
}
#endif

INLINE void clear(const int h, V (*sum)[NV])
{
    UNROLL
    for (int i = 0; i < h; i++) {
        UNROLL
        for (int j = 0; j < NV; j++)
            sum[i][j] = (V){0};
    }
}

INLINE void get(const int h, V (*sum)[NV], const float *x)
{
    UNROLL
    for (int i = 0; i < h; i++) {
        UNROLL
        for (int j = 0; j < NV; j++)
            sum[i][j] = v_load(x + i * NR + j * LANES);
    }
}

// A part of the depth: of all rows of a block at first, of a tile's later.
struct part {
    struct gemm_rows x;
    const float *b; // its rows of the panel
    bool first, last;
    struct gemm_ahead ahead;
};

// h rows. carry (h, NR): their sums so far, unless it is the first part; those of now, unless it is
// the last.
INLINE void tile(const int h, const struct part *p, float *carry, const struct out *o)
{
    V sum[MR][NV];
    const struct gemm_rows *x = &p->x;
    struct gemm_ahead ahead = p->ahead;

    if (p->last && x->runs * x->length >= FAR_DEPTH)
        finish_ahead(h, o);
    if (p->first)
        clear(h, sum);
    else
        get(h, sum, carry);
    for (int s = 0; s < x->runs; s++)
        span(h, sum, x->x + (size_t)s * x->run, x->row, x->length,
             p->b + (size_t)s * (size_t)x->length * NR, &ahead);
    bool edge = o->columns < NR || (o->table && o->finish->table_columns < NR);
    if (p->last && !edge) {
        finish_tile(h, sum, o);
        return;
    }
    put(h, sum, carry, NR);
    if (p->last)
        finish_edge(h, carry, o);
}

typedef void tile_fn(const struct part *p, float *carry, const struct out *o);
#define HEIGHT(h)                                                                 \
    static void tile_##h(const struct part *p, float *carry, const struct out *o) \
    {                                                                             \
        tile(h, p, carry, o);                                                     \
    }

// A tile of fewer rows costs less, in proportion down to 8 sums (a multiply-add takes 4 cycles,
// two start in each).
#if MR == 4
#define EACH_HEIGHT(X) X(1) X(2) X(3) X(4)
#elif MR == 6
#define EACH_HEIGHT(X) X(1) X(2) X(3) X(4) X(5) X(6)
#elif MR == 8
#define EACH_HEIGHT(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)
#else
#define EACH_HEIGHT(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)
#endif
EACH_HEIGHT(HEIGHT)

#define TILE(h) tile_##h,
static tile_fn *const tiles[MR] = {EACH_HEIGHT(TILE)};

// Rows of the next tile, when `rows` are left: as many as in the others, or one more. A last one of
// two rows would take as long as one of four.
static int height(int rows)
{
    int n = (rows + MR - 1) / MR;

    return (rows + n - 1) / n;
}

// As many lines of the panel's next part, which is the next panel's first after the last one, as
// each tile has to ask for so that all are there in time.
static struct gemm_ahead ahead_of(const struct part *p, int rows)
{
    int n = (rows + MR - 1) / MR, floats = 4 * NR / AHEAD;

    return (struct gemm_ahead){p->b + (size_t)p->x.runs * (size_t)p->x.length * NR,
                               (size_t)((floats + n - 1) / n)};
}

static void block_part(struct part p, int rows, float *carry, struct out o)
{
    size_t steps = (size_t)p.x.runs * (size_t)(p.x.length / 4);

    p.ahead = ahead_of(&p, rows);
    for (int r = 0, h; r < rows; r += h) {
        h = height(rows - r);
        tiles[h - 1](&p, carry + (size_t)r * NR, &o);
        p.x.x += (size_t)h * p.x.row;
        p.ahead.at += steps * AHEAD * p.ahead.gap;
        o.y += (size_t)h * o.stride;
        if (o.table)
            o.table += (size_t)h * o.finish->table_stride;
    }
}

// The part that begins at run *s, value *k of it, and steps on: some runs, or some of one.
static struct gemm_rows next_part(const struct gemm_rows *x, int *s, int *k)
{
    struct gemm_rows part = *x;
    int runs = DEPTH / x->length, left = x->length - *k;

    part.x += (size_t)*s * x->run + (size_t)*k;
    if (runs > 0) {
        part.runs = runs < x->runs - *s ? runs : x->runs - *s;
        *s += part.runs;
        return part;
    }
    part.runs = 1;
    part.length = left <= DEPTH ? left : left < 2 * DEPTH ? (left + 1) / 2 : DEPTH;
    *k += part.length;
    if (*k == x->length) {
        *k = 0;
        ++*s;
    }
    return part;
}

static void block(const struct gemm_rows *x, int rows, const float *b,
                  const struct out *o)
{
    float carry[BLOCK * NR] __attribute__((aligned(GEMM_ALIGN)));
    struct part p = {.b = b, .first = true};

    for (int s = 0, k = 0; s < x->runs; p.first = false) {
        p.x = next_part(x, &s, &k);
        p.last = s == x->runs;
        block_part(p, rows, carry, *o);
        p.b += (size_t)p.x.runs * (size_t)p.x.length * NR;
    }
}

static void all_rows(const struct gemm_rows *x, int rows, const float *b, int columns,
                     float *y, size_t y_stride, const struct gemm_finish *finish)
{
    struct gemm_rows from = *x;
    struct out o = {y, y_stride, columns, finish, finish->table};

    for (int r = 0, n; r < rows; r += n) {
        n = rows - r < BLOCK ? rows - r : BLOCK;
        block(&from, n, b, &o);
        from.x += (size_t)n * x->row;
        o.y += (size_t)n * y_stride;
        if (o.table)
            o.table += (size_t)n * finish->table_stride;
    }
}
