#include "policy/kernels/winograd_block.h"

// A block's V holds about this many floats, between MIN_TILES and MAX_TILES tiles of
// them. U goes by once per block, from the third cache or from memory, so that a block
// pays 128 / tiles bytes of it per clock of an AVX-512 kernel: at 24 tiles that is 5.
// (Zen 5, beside other load: 24, 36, 72 and 96 tiles were never faster than 48.)
#define V_FLOATS  (384 * 1024)
#define MIN_TILES 24
#define MAX_TILES 48
// Of the products of a block so many floats lie in scratch before they go to the output.
#define Q_FLOATS (192 * 1024)
// Channels of a tile that are one unit of work where tiles are few.
#define CHUNK 64
// What three waits for all workers cost, in floats that could be read from the third
// cache.
#define WAITS_FLOATS (64 * 1024)

// At least n floats, as an odd number of cache lines: points and rows that lie a power of
// two apart would all fall into the same few sets of the first cache.
static size_t odd_lines(size_t n)
{
    return ((n + 15) / 16 | 1) * 16;
}

// Points of V and of M along so many pixels of a tile.
static int v_side(int stride, int pixels)
{
    return stride == 2 ? 2 * pixels + 1 : pixels + 2;
}

static int q_side(int stride, int pixels)
{
    return stride == 2 ? pixels + 1 : pixels + 2;
}

// Matrices of U.
static size_t u_points(int m)
{
    return product(m + 2, winograd_columns(m) + 2);
}

static struct winograd_layout layout_of(const struct gemm_kernel *k, int m, int in,
                                        int out)
{
    int s = winograd_stride(m), columns = winograd_columns(m);
    struct winograd_layout l = {.v_points = v_side(s, m) * v_side(s, columns),
                                .q_points = q_side(s, m) * q_side(s, columns),
                                .panels = gemm_panels(k, out)};
    int tiles = clamp(V_FLOATS / (l.v_points * in), MIN_TILES, MAX_TILES), group;

    l.tiles = quotient_up(tiles, k->mr) * k->mr;
    group = clamp(Q_FLOATS / (l.q_points * l.tiles * k->nr), 1, l.panels);
    l.group = quotient_up(l.panels, quotient_up(l.panels, group)); // about the same size
    l.v_row = in >= 256 ? odd_lines((size_t)in) : ((size_t)in + 15) / 16 * 16;
    l.v_floats = (size_t)l.v_points * odd_lines((size_t)l.tiles * l.v_row);
    l.q_floats =
        (size_t)l.q_points * odd_lines((size_t)l.tiles * product(l.group, k->nr));
    return l;
}

size_t winograd_weight_floats(const struct gemm_kernel *k, int m, int in, int out)
{
    return u_points(m) * gemm_floats(k, in, out);
}

size_t winograd_scratch_floats(const struct gemm_kernel *k, int m, int in, int out)
{
    struct winograd_layout l = layout_of(k, m, in, out);

    return l.v_floats + l.q_floats;
}

// ---- the three steps ------------------------------------------------------------------

// While a tile is transformed, what the one AHEAD of it in the map will read or write is
// asked for: its lines lie in too many rows for a processor to foresee them. 64 channels on
// 120 x 160 take 5 to 13 % less time, the more the busier the machine is. (One tile ahead is
// as good; asking for V and M, too, costs more than it brings.)
#define AHEAD 2

// Pixel (0, 0) of tile t, or of the last one, in x or y.
static float *tile_at(const struct winograd_job *j, const struct map *m, int t,
                      int stride, int pad)
{
    int last = clamp(t, 0, j->tiles - 1);
    int top = last / j->across * j->w->m * stride - pad;
    int left = last % j->across * winograd_columns(j->w->m) * stride - pad;

    return map_at(m, top, left);
}

static void transform_input(const struct winograd_block *b, int tile, int channel0,
                            int channels)
{
    const struct winograd_job *j = b->j;
    int t = b->tile0 + tile, m = j->w->m, stride = winograd_stride(m);
    const struct winograd_input i = {.channels = channels,
                                     .d = tile_at(j, j->x, t, stride, 1) + channel0,
                                     .d_row = j->x->row,
                                     .d_pixel = (size_t)j->x->channels,
                                     .v = b->v + (size_t)tile * j->l.v_row + channel0,
                                     .v_point = b->v_point,
                                     .next = tile_at(j, j->x, t + AHEAD, stride, 1) +
                                             channel0};

    j->transforms->input(m, &i);
}

static void transform_output(const struct winograd_block *b, int tile, int channel0,
                             int channels)
{
    const struct winograd_job *j = b->j;
    int t = b->tile0 + tile, m = j->w->m, columns = winograd_columns(m);
    int top = t / j->across * m, left = t % j->across * columns;
    int channel_of_q = channel0 - b->panel0 * j->w->kernel->nr;
    const struct winograd_output o = {.channels = channels,
                                      .q = b->q + (size_t)tile * b->q_row + channel_of_q,
                                      .q_point = b->q_point,
                                      .y = tile_at(j, j->y, t, 1, 0) + channel0,
                                      .y_row = j->y->row,
                                      .y_pixel = (size_t)j->y->channels,
                                      .rows = clamp(j->y->height - top, 1, m),
                                      .cols = clamp(j->y->width - left, 1, columns),
                                      .bias = j->w->bias + channel0,
                                      .accumulate = j->accumulate,
                                      .relu = j->relu,
                                      .next =
                                          tile_at(j, j->y, t + AHEAD, 1, 0) + channel0};

    j->transforms->output(m, &o);
}

// ---- every worker its own blocks ------------------------------------------------------

static void go_through(struct winograd_block *b)
{
    const struct winograd_job *j = b->j;
    int nr = j->w->kernel->nr;

    for (int tile = 0; tile < b->tiles; tile++)
        transform_input(b, tile, 0, j->w->in);
    for (b->panel0 = 0; b->panel0 < j->l.panels; b->panel0 += j->l.group) {
        int end = clamp(b->panel0 + j->l.group, 0, j->l.panels);
        int channel0 = b->panel0 * nr, channel1 = clamp(end * nr, 0, j->w->out);
        for (int point = 0; point < j->l.q_points; point++)
            for (int panel = b->panel0; panel < end; panel++)
                winograd_multiply(b, point, panel);
        for (int tile = 0; tile < b->tiles; tile++)
            transform_output(b, tile, channel0, channel1 - channel0);
    }
}

static void alone_task(void *arg, int worker, int workers)
{
    const struct winograd_job *j = arg;
    const struct winograd_layout *l = &j->l;
    int mr = j->w->kernel->mr, blocks, step;
    size_t begin, end;

    pool_share((size_t)j->tiles, worker, workers, &begin, &end);
    if (begin == end)
        return;
    // As few blocks as can be, all about the same size: a short last one would read all
    // of U, too.
    blocks = quotient_up((int)(end - begin), l->tiles);
    step = quotient_up(quotient_up((int)(end - begin), blocks), mr) * mr;
    for (int t = (int)begin; t < (int)end; t += step) {
        struct winograd_block b = {
            .j = j, .tile0 = t, .tiles = clamp((int)end - t, 0, step)};
        b.v = j->scratch + (size_t)worker * j->scratch_floats;
        b.q = b.v + l->v_floats;
        b.v_point = odd_lines((size_t)b.tiles * l->v_row);
        b.q_row = product(l->group, j->w->kernel->nr);
        b.q_point = odd_lines((size_t)b.tiles * b.q_row);
        go_through(&b);
    }
}

// ---- all workers one block ------------------------------------------------------------

// Shares of (tiles, chunks of channels).
static void tiles_share(const struct winograd_block *b, int channels, int worker,
                        int workers,
                        void (*f)(const struct winograd_block *, int, int, int))
{
    int chunks = quotient_up(channels, CHUNK);
    size_t begin, end;

    pool_share(product(b->tiles, chunks), worker, workers, &begin, &end);
    for (int u = (int)begin; u < (int)end; u++) {
        int channel0 = u % chunks * CHUNK;
        f(b, u / chunks, channel0, clamp(channels - channel0, 0, CHUNK));
    }
}

static void input_task(void *arg, int worker, int workers)
{
    const struct winograd_block *b = arg;

    tiles_share(b, b->j->w->in, worker, workers, transform_input);
}

// Point after point: a worker reads its part of U and few points' rows of V.
static void multiply_task(void *arg, int worker, int workers)
{
    const struct winograd_block *b = arg;
    int panels = b->j->l.panels, points = b->j->l.q_points;
    size_t begin, end;

    pool_share(product(points, panels), worker, workers, &begin, &end);
    for (int u = (int)begin; u < (int)end; u++)
        if (winograd_stride(b->j->w->m) == 2) // whose points take one to four products
            winograd_multiply(b, u % points, u / points);
        else
            winograd_multiply(b, u / panels, u % panels);
}

static void output_task(void *arg, int worker, int workers)
{
    const struct winograd_block *b = arg;

    tiles_share(b, b->j->w->out, worker, workers, transform_output);
}

static void run_together(struct pool *pool, const struct winograd_job *j)
{
    const struct winograd_layout *l = &j->l;
    struct winograd_block b = {.j = j, .tiles = j->tiles, .v = j->scratch};

    b.v_point = odd_lines((size_t)b.tiles * l->v_row);
    b.q_row = product(l->panels, j->w->kernel->nr);
    b.q = b.v + (size_t)l->v_points * b.v_point;
    b.q_point = odd_lines((size_t)b.tiles * b.q_row);
    pool_run(pool, input_task, &b);
    pool_run(pool, multiply_task, &b);
    pool_run(pool, output_task, &b);
}

// Do V and M of all tiles fit into everybody's scratch?
static bool fits_together(const struct winograd_job *j, int workers)
{
    size_t tiles = (size_t)j->tiles;
    size_t v_point = odd_lines(tiles * j->l.v_row);
    size_t q_point = odd_lines(tiles * product(j->l.panels, j->w->kernel->nr));

    return (size_t)j->l.v_points * v_point + (size_t)j->l.q_points * q_point <=
           (size_t)workers * j->scratch_floats;
}

// Is it less to read, for each worker, when all share a block? Alone it reads all of U
// for each of its blocks; together it reads its part of U, but V and M, which others have
// written, come from the third cache. A choice of speed alone: the bits are the same.
static bool together_is_less(const struct winograd_job *j, int workers)
{
    size_t u = u_points(j->w->m) * j->matrix_floats;
    size_t share = (size_t)quotient_up(j->tiles, workers);
    size_t alone = u * (size_t)quotient_up((int)share, j->l.tiles);
    size_t moved = 2 * share *
                   (product(j->l.v_points, j->w->in) + product(j->l.q_points, j->w->out));

    return u / (size_t)workers + WAITS_FLOATS + moved < alone;
}

void winograd_run(struct pool *pool, const struct winograd *w, const struct map *x,
                  const struct map *y, bool accumulate, enum activation f, float *scratch,
                  size_t scratch_floats)
{
    struct winograd_job j = {.w = w,
                             .transforms = winograd_transforms_of(w->kernel->isa),
                             .l = layout_of(w->kernel, w->m, w->in, w->out),
                             .x = x,
                             .y = y,
                             .accumulate = accumulate,
                             .relu = f == ACTIVATION_RELU,
                             .across = quotient_up(y->width, winograd_columns(w->m)),
                             .scratch = scratch,
                             .scratch_floats = scratch_floats,
                             .matrix_floats = gemm_floats(w->kernel, w->in, w->out)};
    int workers = pool_threads(pool);

    j.tiles = j.across * quotient_up(y->height, w->m);
    if (workers > 1 && fits_together(&j, workers) && together_is_less(&j, workers))
        run_together(pool, &j);
    else
        pool_run(pool, alone_task, &j);
}
