#include "policy/kernels/stem.h"

#include <string.h>

#include "policy/kernels/stem_priv.h"

#define PAD      3
#define CHANNELS 3 // of the image
#define DEPTH    (STEM_SIZE * STEM_SIZE * CHANNELS)

// Lines of the image that a worker holds: the 7 under the kernel and 16 more, so that those which
// stay are moved to the front every eighth row only. 178 KB at 640 columns.
#define LINES (STEM_SIZE + 16)

// Columns of the convolution that are pooled while they lie in the first-level cache: 18 KB of 64
// channels. Even, and whole tiles of every kernel.
#define COLUMNS 72

struct job {
    const struct stem *s;
    const struct stem_image *image;
    const struct map *y;
    int conv_height, conv_width; // before the pooling
    float *scratch;
    size_t scratch_floats;
};

// A worker's place: a window of normalised lines with zeros around, and a piece of a row of the
// convolution with the column before it.
struct strip {
    const struct job *j;
    float *lines;   // (LINES, line)
    float *piece;   // (1 + COLUMNS, out)
    size_t line;    // floats
    int first, end; // lines [first, end) of the image are there
};

static int half(int extent) // of the convolution, and of the pooling, for an input extent
{
    return (extent - 1) / 2 + 1;
}

static size_t round_up(size_t floats)
{
    return (floats + 15) / 16 * 16;
}

static size_t line_floats(int width)
{
    return round_up((size_t)(width + 2 * PAD) * CHANNELS);
}

static struct gemm gemm_of(const struct stem *s)
{
    return (struct gemm){
        .depth = DEPTH, .out = s->out, .kernel = s->kernel, .panel = s->weight};
}

void stem_extent(int height, int width, int *out_height, int *out_width)
{
    *out_height = half(half(height));
    *out_width = half(half(width));
}

size_t stem_weight_floats(const struct stem *s)
{
    return gemm_floats(s->kernel, DEPTH, s->out);
}

size_t stem_scratch_floats(const struct stem *s, int width)
{
    return LINES * line_floats(width) + round_up((COLUMNS + 1) * (size_t)s->out);
}

void stem_pack(const struct stem *s, const float *g)
{
    struct gemm m = gemm_of(s);

    gemm_pack(&m, 0, s->out, g, DEPTH);
}

// ---- lines of the image -------------------------------------------------------------------

static void read_pixels(const struct stem_image *im, int y, float *to)
{
    const uint8_t *p = im->rgb + (size_t)y * im->stride;

    for (int x = 0; x < im->width; x++, p += CHANNELS, to += CHANNELS) {
        to[0] = im->table[0][p[0]];
        to[1] = im->table[1][p[1]];
        to[2] = im->table[2][p[2]];
    }
}

static void read_planes(const struct stem_image *im, int y, float *to)
{
    size_t plane = (size_t)im->height * (size_t)im->width;
    const float *p = im->planes + (size_t)y * (size_t)im->width;

    for (int x = 0; x < im->width; x++, p++, to += CHANNELS) {
        to[0] = p[0];
        to[1] = p[plane];
        to[2] = p[2 * plane];
    }
}

// Line y of the image, normalised, PAD zeros before and behind; outside all are zero: padding is
// zero in the normalised space.
static void read_line(const struct stem_image *im, int y, float *line, size_t floats)
{
    size_t left = PAD * CHANNELS, right = left + (size_t)im->width * CHANNELS;

    if (y < 0 || y >= im->height) {
        memset(line, 0, floats * sizeof *line);
        return;
    }
    memset(line, 0, left * sizeof *line);
    memset(line + right, 0, (floats - right) * sizeof *line);
    if (im->rgb)
        read_pixels(im, y, line + left);
    else
        read_planes(im, y, line + left);
}

// The 7 lines under row c of the convolution. c goes up.
static const float *lines_under(struct strip *s, int c)
{
    int from = 2 * c - PAD, to = from + STEM_SIZE;

    if (from >= s->end)
        s->first = s->end = from;
    if (to > s->first + LINES) {
        memmove(s->lines, s->lines + (size_t)(from - s->first) * s->line,
                (size_t)(s->end - from) * s->line * sizeof *s->lines);
        s->first = from;
    }
    for (; s->end < to; s->end++)
        read_line(s->j->image, s->end, s->lines + (size_t)(s->end - s->first) * s->line,
                  s->line);
    return s->lines + (size_t)(from - s->first) * s->line;
}

// ---- convolution and pooling --------------------------------------------------------------

stem_pool_fn *stem_pool_of(enum cpu_isa isa)
{
    switch (isa) {
#ifdef __x86_64__
    case CPU_AVX2:
        return stem_pool_avx2;
    case CPU_AVX512:
        return stem_pool_avx512;
#endif
#ifdef __aarch64__
    case CPU_NEON:
        return stem_pool_neon;
#endif
    default:
        return stem_pool_generic;
    }
}

// Row c of the convolution, piece by piece, into the output rows `begin` and `go_on`.
static void run_row(struct strip *s, int c, float *begin, float *go_on)
{
    const struct stem *stem = s->j->s;
    size_t out = (size_t)stem->out;
    struct gemm weight = gemm_of(stem);
    struct gemm_finish finish = {.bias = stem->bias, .f = ACTIVATION_RELU};
    struct gemm_rows x = {.x = lines_under(s, c),
                          .row = 2 * CHANNELS,
                          .runs = STEM_SIZE,
                          .length = STEM_SIZE * CHANNELS,
                          .run = s->line};

    for (int at = 0, n; at < s->j->conv_width; at += n, x.x += (size_t)n * x.row) {
        struct stem_piece piece = {
            .x = s->piece + out, .channels = stem->out, .inside = at > 0};
        size_t pooled = (size_t)(at / 2) * out;

        n = s->j->conv_width - at < COLUMNS ? s->j->conv_width - at : COLUMNS;
        piece.width = n;
        if (at > 0)
            memcpy(s->piece, s->piece + COLUMNS * out, out * sizeof *s->piece);
        gemm_run(&weight, &x, 0, n, 0, gemm_panels(stem->kernel, stem->out),
                 s->piece + out, out, &finish);
        stem_pool_of(stem->kernel->isa)(&piece, begin ? begin + pooled : NULL,
                                        go_on ? go_on + pooled : NULL);
    }
}

// Output rows [from, to). Row c of the convolution lies in the window of row c / 2; an odd one also
// begins the next. The first may have been a neighbour's, too.
static void run_strip(struct strip *s, int from, int to)
{
    const struct map *y = s->j->y;
    int first = from > 0 ? 2 * from - 1 : 0;
    int end = 2 * to < s->j->conv_height ? 2 * to : s->j->conv_height;

    for (int c = first; c < end; c++) {
        float *go_on = c > 0 && c / 2 >= from ? map_at(y, c / 2, 0) : NULL;
        float *begin = NULL;

        if (c == 0)
            begin = map_at(y, 0, 0);
        else if (c % 2 && c / 2 + 1 < to)
            begin = map_at(y, c / 2 + 1, 0);
        run_row(s, c, begin, go_on);
    }
}

static void stem_task(void *arg, int worker, int workers)
{
    const struct job *j = arg;
    float *scratch = j->scratch + (size_t)worker * j->scratch_floats;
    struct strip s = {.j = j, .lines = scratch, .line = line_floats(j->image->width)};
    size_t from, to;

    s.piece = scratch + LINES * s.line;
    s.first = s.end = -PAD - 1;
    pool_share((size_t)j->y->height, worker, workers, &from, &to);
    if (from < to)
        run_strip(&s, (int)from, (int)to);
}

void stem_run(struct pool *pool, const struct stem *s, const struct stem_image *image,
              const struct map *y, float *scratch, size_t scratch_floats)
{
    struct job j = {.s = s,
                    .image = image,
                    .y = y,
                    .conv_height = half(image->height),
                    .conv_width = half(image->width),
                    .scratch = scratch,
                    .scratch_floats = scratch_floats};

    pool_run(pool, stem_task, &j);
}
