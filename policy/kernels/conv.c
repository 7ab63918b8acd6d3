#include "policy/kernels/conv.h"

#include <string.h>

#include "policy/kernels/split.h"
#include "policy/kernels/winograd.h"

// Direct: as many panels of weights are taken through all lines of the image as stay in a core's
// second cache (512 KiB and more) beside three lines of the input: one at least.
#define PANEL_FLOATS 65536

// Gathered: a tile has about this many floats of patches (1 MiB) but no fewer rows than pay for
// reading the weights once more, and no more than what goes through them at a time (gemm.c).
#define TILE_FLOATS    262144
#define TILE_ROWS      96
#define TILE_ROWS_MOST 384
#define ROW_ROOM \
    16 // floats behind a row of a tile: without, rows of 2^n bytes share a set

struct job {
    const struct conv *c;
    const struct map *x, *y;
    struct gemm weight;
    struct gemm_finish finish;
    float *scratch;
    size_t scratch_floats;
};

int conv_extent(const struct conv *c, int extent)
{
    return (extent + 2 * c->pad - c->dilation * (c->size - 1) - 1) / c->stride + 1;
}

static int depth(const struct conv *c)
{
    return c->size * c->size * c->in;
}

// ---- sizes, weights -----------------------------------------------------------------------

// The side of a Winograd tile; 0: another way.
static int winograd_tile(enum conv_way way)
{
    switch (way) {
    case CONV_WINOGRAD_2:
        return 2;
    case CONV_WINOGRAD_4:
        return 4;
    case CONV_WINOGRAD_6:
        return 6;
    case CONV_WINOGRAD_HALVING:
        return 3;
    default:
        return 0;
    }
}

static struct winograd winograd_of(const struct conv *c)
{
    return (struct winograd){.in = c->in,
                             .out = c->out,
                             .m = winograd_tile(c->way),
                             .kernel = c->kernel,
                             .u = c->weight,
                             .bf16 = c->bf16 ? (void *)c->weight : NULL,
                             .bias = c->bias};
}

static struct gemm gemm_of(const struct conv *c)
{
    return (struct gemm){
        .depth = depth(c), .out = c->out, .kernel = c->kernel, .panel = c->weight};
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

static int round_up(int n, int unit)
{
    return (n + unit - 1) / unit * unit;
}

static int tile_rows(const struct conv *c)
{
    int rows = TILE_FLOATS / depth(c);

    rows = rows < TILE_ROWS ? TILE_ROWS : least(rows, TILE_ROWS_MOST);
    return round_up(rows, c->kernel->mr);
}

static size_t patch_stride(const struct conv *c)
{
    return (size_t)round_up(depth(c), ROW_ROOM) + ROW_ROOM;
}

static size_t out_stride(const struct conv *c)
{
    return (size_t)round_up(c->out, ROW_ROOM) + ROW_ROOM;
}

size_t conv_weight_floats(const struct conv *c)
{
    int m = winograd_tile(c->way);

    if (!m)
        return gemm_floats(c->kernel, depth(c), c->out);
    size_t values = winograd_weight_floats(c->kernel, m, c->in, c->out);
    return c->bf16 ? (values + 1) / 2 : values;
}

size_t conv_scratch_floats(const struct conv *c, int width)
{
    int m = winograd_tile(c->way);

    (void)width;
    if (m)
        return winograd_scratch_floats(c->kernel, m, c->in, c->out);
    return c->way == CONV_GATHERED
               ? (size_t)tile_rows(c) * (patch_stride(c) + out_stride(c))
               : 0;
}

void conv_pack(const struct conv *c, const float *g)
{
    struct winograd w = winograd_of(c);
    struct gemm m = gemm_of(c);

    if (w.m)
        winograd_pack(&w, g);
    else
        gemm_pack(&m, 0, c->out, g, (size_t)depth(c));
}

// ---- direct -------------------------------------------------------------------------------

// Output row y's pixels as the rows of the product: the `size` lines under the kernel are a row's
// runs. Padding is read from the map's border.
static struct gemm_rows rows_at(const struct job *j, int y)
{
    const struct conv *c = j->c;

    return (struct gemm_rows){.x = map_at(j->x, y * c->stride - c->pad, -c->pad),
                              .row = (size_t)c->stride * (size_t)c->in,
                              .runs = c->size,
                              .length = c->size * c->in,
                              .run = j->x->row};
}

static void direct_task(void *arg, int worker, int workers)
{
    const struct job *j = arg;
    const struct conv *c = j->c;
    size_t panel_floats = (size_t)depth(c) * (size_t)c->kernel->nr;
    int some = panel_floats < PANEL_FLOATS ? (int)(PANEL_FLOATS / panel_floats) : 1;
    struct split_block b =
        split_tiles(j->y->height, 1, gemm_panels(c->kernel, c->out), worker, workers);

    for (int p = b.col0; p < b.col1; p += some)
        for (int y = b.row0; y < b.row1; y++) {
            struct gemm_rows x = rows_at(j, y);

            gemm_run(&j->weight, &x, 0, j->y->width, p, least(p + some, b.col1),
                     map_at(j->y, y, 0), (size_t)c->out, &j->finish);
        }
}

// ---- gathered -----------------------------------------------------------------------------

// The line of a patch that begins at column `left` of the map's row y: `size` pixels, every
// `dilation`-th; zero where they lie outside.
static void gather_line(const struct job *j, int y, int left, float *to)
{
    const struct conv *c = j->c;
    size_t in = (size_t)c->in;

    if (y < 0 || y >= j->x->height) {
        memset(to, 0, (size_t)c->size * in * sizeof *to);
        return;
    }
    if (c->dilation == 1 && left >= -MAP_BORDER &&
        left + c->size <= j->x->width + MAP_BORDER) {
        memcpy(to, map_at(j->x, y, left), (size_t)c->size * in * sizeof *to);
        return;
    }
    for (int k = 0; k < c->size; k++, left += c->dilation, to += in) {
        if (left < 0 || left >= j->x->width)
            memset(to, 0, in * sizeof *to);
        else
            memcpy(to, map_at(j->x, y, left), in * sizeof *to);
    }
}

// The patches of output pixels [from, to), one per row of the tile.
static void gather(const struct job *j, int from, int to, float *tile)
{
    const struct conv *c = j->c;
    size_t line = (size_t)c->size * (size_t)c->in, stride = patch_stride(c);

    for (int p = from; p < to; p++, tile += stride) {
        int top = p / j->y->width * c->stride - c->pad;
        int left = p % j->y->width * c->stride - c->pad;

        for (int k = 0; k < c->size; k++)
            gather_line(j, top + k * c->dilation, left, tile + (size_t)k * line);
    }
}

// Columns [col0, col1) of output pixels [from, to) between the map, whose rows have room behind
// them, and a tile, whose rows are even.
static void move_out(const struct job *j, int from, int to, int col0, int col1,
                     float *tile, bool to_map)
{
    size_t bytes = (size_t)(col1 - col0) * sizeof *tile, stride = out_stride(j->c);

    tile += col0;
    for (int p = from; p < to; p++, tile += stride) {
        float *y = map_at(j->y, p / j->y->width, p % j->y->width) + col0;

        memcpy(to_map ? y : tile, to_map ? tile : y, bytes);
    }
}

static void gathered_task(void *arg, int worker, int workers)
{
    const struct job *j = arg;
    const struct conv *c = j->c;
    int step = tile_rows(c), nr = c->kernel->nr;
    struct split_block b = split_tiles(j->y->height * j->y->width, c->kernel->mr,
                                       gemm_panels(c->kernel, c->out), worker, workers);
    float *tile = j->scratch + (size_t)worker * j->scratch_floats;
    float *y = tile + (size_t)step * patch_stride(c);
    struct gemm_rows x = gemm_plain_rows(tile, patch_stride(c), depth(c));
    int from = b.col0 * nr, to = least(b.col1 * nr, c->out); // columns

    for (int p = b.row0; p < b.row1 && from < to; p += step) {
        int end = least(p + step, b.row1);

        gather(j, p, end, tile);
        if (j->finish.accumulate)
            move_out(j, p, end, from, to, y, false);
        gemm_run(&j->weight, &x, 0, end - p, b.col0, b.col1, y, out_stride(c),
                 &j->finish);
        move_out(j, p, end, from, to, y, true);
    }
}

void conv_run(struct pool *pool, const struct conv *c, const struct map *x,
              const struct map *y, bool accumulate, enum activation f, float *scratch,
              size_t scratch_floats)
{
    struct winograd w = winograd_of(c);
    struct job j = {.c = c,
                    .x = x,
                    .y = y,
                    .weight = gemm_of(c),
                    .finish = {.bias = c->bias, .accumulate = accumulate, .f = f},
                    .scratch = scratch,
                    .scratch_floats = scratch_floats};

    if (w.m)
        winograd_run(pool, &w, x, y, accumulate, f, scratch, scratch_floats);
    else
        pool_run(pool, c->way == CONV_GATHERED ? gathered_task : direct_task, &j);
}
