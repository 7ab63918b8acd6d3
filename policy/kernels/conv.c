#include "policy/kernels/conv.h"

#include <cblas.h>

#include "policy/kernels/split.h"
#include "policy/kernels/vec.h"

// A tile holds about this many floats, but never fewer than MIN_ROWS rows: sgemm packs
// the weights anew for each tile, which MIN_ROWS products per weight have to pay for.
#define TILE_FLOATS 262144
#define MIN_ROWS    192

struct job {
    const struct conv *c;
    const float *x; // (height, width, in)
    float *y;       // (out_height, out_width, out)
    int height, width, out_width, pixels;
    bool accumulate;
    enum activation f;
    float *tiles; // (workers, tile_floats)
    size_t tile_floats;
};

int conv_extent(const struct conv *c, int extent)
{
    return (extent + 2 * c->pad - c->dilation * (c->size - 1) - 1) / c->stride + 1;
}

static bool is_plain_product(const struct conv *c)
{
    return c->size == 1 && c->stride == 1 && c->pad == 0;
}

static int patch_floats(const struct conv *c)
{
    return c->size * c->size * c->in;
}

static int tile_rows(const struct conv *c, int pixels)
{
    int rows = TILE_FLOATS / patch_floats(c);
    if (rows < MIN_ROWS)
        rows = MIN_ROWS;
    return rows < pixels ? rows : pixels;
}

size_t conv_tile_floats(const struct conv *c, int pixels)
{
    return is_plain_product(c) ? 0
                               : (size_t)tile_rows(c, pixels) * (size_t)patch_floats(c);
}

// One line of a patch: `size` pixels of x's row `line` from column `left` on, every
// `dilation`-th, zero where they lie outside.
static void gather_line(const struct job *j, const float *line, int left, float *dst)
{
    const struct conv *c = j->c;
    size_t in = (size_t)c->in;
    int right = left + c->size;
    if (c->dilation == 1 && left >= 0 && right <= j->width) {
        memcpy(dst, line + (size_t)left * in, (size_t)c->size * in * sizeof *dst);
        return;
    }
    for (int k = 0; k < c->size; k++, dst += in) {
        int column = left + k * c->dilation;
        if (column >= 0 && column < j->width)
            memcpy(dst, line + (size_t)column * in, in * sizeof *dst);
        else
            memset(dst, 0, in * sizeof *dst);
    }
}

// The patches of output pixels [from, to) into tile, one per row.
static void gather(const struct job *j, int from, int to, float *tile)
{
    const struct conv *c = j->c;
    size_t line_floats = (size_t)c->size * (size_t)c->in;
    size_t row_floats = (size_t)j->width * (size_t)c->in;
    for (int p = from; p < to; p++) {
        int top = p / j->out_width * c->stride - c->pad;
        int left = p % j->out_width * c->stride - c->pad;
        for (int k = 0; k < c->size; k++, tile += line_floats) {
            int row = top + k * c->dilation;
            if (row >= 0 && row < j->height)
                gather_line(j, j->x + (size_t)row * row_floats, left, tile);
            else
                memset(tile, 0, line_floats * sizeof *tile);
        }
    }
}

static void start_rows(const struct job *j, float *y, int rows, int col0, int cols)
{
    const float *bias = j->c->bias + col0;
    for (int r = 0; r < rows; r++, y += j->c->out) {
        if (!j->accumulate) {
            memcpy(y, bias, (size_t)cols * sizeof *y);
            continue;
        }
        int i = 0;
        for (; i + 4 <= cols; i += 4)
            v4_store(y + i, v4_load(y + i) + v4_load(bias + i));
        for (; i < cols; i++)
            y[i] += bias[i];
    }
}

static void conv_task(void *arg, int worker, int workers)
{
    const struct job *j = arg;
    const struct conv *c = j->c;
    struct split_block b = split_block(j->pixels, c->out, worker, workers);
    int k = patch_floats(c), step = tile_rows(c, j->pixels), cols = b.col1 - b.col0;
    float *tile = j->tiles + (size_t)worker * j->tile_floats;
    if (cols <= 0)
        return;
    for (int p = b.row0; p < b.row1; p += step) {
        int rows = b.row1 - p < step ? b.row1 - p : step;
        const float *x = tile;
        if (is_plain_product(c))
            x = j->x + (size_t)p * (size_t)c->in;
        else
            gather(j, p, p + rows, tile);
        float *y = j->y + (size_t)p * (size_t)c->out + b.col0;
        start_rows(j, y, rows, b.col0, cols);
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, cols, k, 1.0f, x, k,
                    c->weight + (size_t)b.col0 * (size_t)k, k, 1.0f, y, c->out);
        activation_apply(j->f, y, rows, cols, c->out);
    }
}

void conv_run(struct pool *pool, const struct conv *c, const float *x, int height,
              int width, float *y, bool accumulate, enum activation f, float *tiles,
              size_t tile_floats)
{
    struct job j = {.c = c, .x = x, .y = y, .height = height, .width = width};
    j.out_width = conv_extent(c, width);
    j.pixels = conv_extent(c, height) * j.out_width;
    j.accumulate = accumulate;
    j.f = f;
    j.tiles = tiles;
    j.tile_floats = tile_floats;
    pool_run(pool, conv_task, &j);
}
