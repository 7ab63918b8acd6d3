// gemm_terms_body: gemm_terms_fn of gemm.h, once per instruction set, behind gemm_body.h. A
// tile goes through all terms before the next one begins, so that what has been added up is
// never further away than the first-level cache. Against one panel's product after the other,
// added to y: 48 rows, 4 terms of 64, AVX-512, all in the caches: 97 % of the peak for 93.
#include <string.h>

// Where sums come from, if anywhere, and go to.
struct place {
    float *at;
    size_t stride;
};

// What all tiles have in common, and where one begins.
struct terms {
    const struct gemm_term *term;
    int n, columns;
    size_t row;
    bool accumulate;
    struct place y;
    size_t behind; // floats from row 0 to the tile's first
    // What is asked for meanwhile: a part, of as many as there are tiles, of a term's `next`,
    // in order. In each tile a part of that term's own was 20 % slower where 38 MB of weights
    // come from memory.
    int parts, part, later;
    size_t gap; // gemm_ahead's
};

// A function of its own: in a loop over terms gcc has 60 addresses in memory, and 2 % less speed.
INLINE void term_tile(const int h, const struct terms *t, const struct gemm_term *m,
                      struct place from, struct place to)
{
    V sum[MR][NV];
    size_t asked = (size_t)t->part * (size_t)(m->depth / 4) * AHEAD * t->gap;
    struct gemm_ahead ahead = {t->term[t->later].next + asked, t->gap};

    clear(h, sum);
    span(h, sum, m->x + t->behind, t->row, m->depth, m->panel, &ahead);
    if (from.at)
        add(h, sum, from.at, from.stride);
    put(h, sum, to.at, to.stride);
}

typedef void term_fn(const struct terms *t, const struct gemm_term *m, struct place from,
                     struct place to);
#define TERM_HEIGHT(h)                                                     \
    static void term_##h(const struct terms *t, const struct gemm_term *m, \
                         struct place from, struct place to)               \
    {                                                                      \
        term_tile(h, t, m, from, to);                                      \
    }

EACH_HEIGHT(TERM_HEIGHT)

#define TERM_TILE(h) term_##h,
static term_fn *const term_tiles[MR] = {EACH_HEIGHT(TERM_TILE)};

// Columns from one place to another, which has as many or room for more.
static void copy_columns(int h, int columns, struct place from, struct place to)
{
    for (int i = 0; i < h; i++)
        for (int c = 0; c < columns; c++)
            to.at[(size_t)i * to.stride + (size_t)c] =
                from.at[(size_t)i * from.stride + (size_t)c];
}

// What is added to may have been written too long ago to be near: 1 to 4 % of the time.
static void y_ahead(int h, const struct terms *t)
{
    for (int i = 0; i < h; i++)
        for (int j = 0; j < t->columns; j += 16) // lines
            __builtin_prefetch(t->y.at + (size_t)i * t->y.stride + j, 1);
}

static void terms_tile(int h, struct terms *t)
{
    float carry[MR * NR] __attribute__((aligned(GEMM_ALIGN)));
    const struct place near = {carry, NR};
    bool edge = t->columns < NR;
    struct place y = edge ? near : t->y,
                 from = t->accumulate ? y : (struct place){NULL, 0};

    if (t->accumulate)
        y_ahead(h, t);
    if (edge && t->accumulate) {
        memset(carry, 0, sizeof carry);
        copy_columns(h, t->columns, t->y, near);
    }
    for (int i = 0; i < t->n; i++, from = near) {
        term_tiles[h - 1](t, &t->term[i], from, i + 1 < t->n ? near : y);
        if (++t->part == t->parts) {
            t->part = 0;
            t->later++;
        }
    }
    if (edge)
        copy_columns(h, t->columns, near, t->y);
}

static void all_terms(const struct gemm_term *term, int n, size_t row, int rows,
                      int columns, float *y, size_t y_stride, bool accumulate)
{
    int left = (rows + MR - 1) / MR, floats = 4 * NR / AHEAD;
    struct terms t = {.term = term,
                      .n = n,
                      .columns = columns,
                      .row = row,
                      .accumulate = accumulate,
                      .y = {y, y_stride},
                      .parts = left,
                      .gap = (size_t)((floats + left - 1) / left)};

    for (int h; rows > 0; rows -= h) {
        h = height(rows);
        terms_tile(h, &t);
        t.y.at += (size_t)h * y_stride;
        t.behind += (size_t)h * row;
    }
}
