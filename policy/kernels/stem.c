#include "policy/kernels/stem.h"

#include <math.h>
#include <string.h>

#include "policy/kernels/stem_priv.h"
#include "policy/kernels/winograd_priv.h"

#define PAD      3
#define COLOURS  3
#define WINOGRAD 4 // whose points these are

// Half-size lines that a worker holds: those under two bands, so that the three which stay are
// moved to the front every other band only. 188 KB at 640 columns.
#define LINES (STEM_SIDE + STEM_TILE)

struct job {
    const struct stem *s;
    const struct stem_image *image;
    const struct map *y;
    const struct winograd_transforms *transforms;
    int conv_height, conv_width; // before the pooling
    int tiles;                   // across, even
    float *scratch;
    size_t scratch_floats;
};

// A worker's place. Row r of the output whose window begins above the worker's first row belongs
// to the neighbour: what this one has of it goes into `shared`.
struct strip {
    const struct job *j;
    int first_row, end_row; // of the convolution
    float *lines;           // (LINES, line): half-size, normalised, with zeros around
    float *v, *m;           // stem_piece
    float *band;            // (STEM_TILE, 1 + the kernel's tiles of pixels, out)
    float *shared;          // (output width, out)
    size_t line, band_row, shared_floats;
    int first, end; // half-size lines [first, end) are there
};

static int half(int extent) // of the convolution, and of the pooling, for an input extent
{
    return (extent - 1) / 2 + 1;
}

static int quotient_up(int a, int b)
{
    return (a + b - 1) / b;
}

static size_t round_up(size_t floats)
{
    return (floats + 15) / 16 * 16;
}

void stem_extent(int height, int width, int *out_height, int *out_width)
{
    *out_height = half(half(height));
    *out_width = half(half(width));
}

// ---- weights ------------------------------------------------------------------------------

size_t stem_weight_floats(const struct stem *s)
{
    return (size_t)STEM_POINTS * STEM_DEPTH * (size_t)s->out;
}

// The taps of one output channel that meet one parity of lines and columns, in one colour.
static void taps_of(const float *g, int parity_y, int parity_x, int colour,
                    double taps[WINOGRAD_TAPS][WINOGRAD_TAPS])
{
    for (int y = 0; y < WINOGRAD_TAPS; y++)
        for (int x = 0; x < WINOGRAD_TAPS; x++) {
            int from_y = 2 * y + parity_y, from_x = 2 * x + parity_x;
            bool inside = from_y < STEM_SIZE && from_x < STEM_SIZE;
            taps[y][x] = inside
                             ? (double)g[(from_y * STEM_SIZE + from_x) * COLOURS + colour]
                             : 0.0;
        }
}

// (G taps G^T) at one point
static double at_point(double g[WINOGRAD_MAX_N][WINOGRAD_TAPS],
                       double taps[WINOGRAD_TAPS][WINOGRAD_TAPS], int point)
{
    const double *down = g[point / STEM_SIDE], *across = g[point % STEM_SIDE];
    double sum = 0.0;

    for (int y = 0; y < WINOGRAD_TAPS; y++)
        for (int x = 0; x < WINOGRAD_TAPS; x++)
            sum += down[y] * taps[y][x] * across[x];
    return sum;
}

void stem_pack(const struct stem *s, const float *g)
{
    double matrix[WINOGRAD_MAX_N][WINOGRAD_TAPS], taps[WINOGRAD_TAPS][WINOGRAD_TAPS];

    winograd_matrix_g(WINOGRAD, WINOGRAD_TAPS, matrix);
    for (int o = 0; o < s->out; o++, g += STEM_SIZE * STEM_SIZE * COLOURS)
        for (int k = 0; k < STEM_DEPTH; k++) {
            taps_of(g, k / 6, k / 3 % 2, k % 3, taps);
            for (int p = 0; p < STEM_POINTS; p++)
                s->weight[(size_t)(p * STEM_DEPTH + k) * (size_t)s->out + (size_t)o] =
                    (float)at_point(matrix, taps, p);
        }
}

// ---- sizes --------------------------------------------------------------------------------

static int tiles_across(int conv_width) // pieces have an even number
{
    return (quotient_up(conv_width, STEM_TILE) + 1) / 2 * 2;
}

static size_t line_floats(int tiles)
{
    return (size_t)(STEM_TILE * tiles + STEM_SIDE - STEM_TILE) * STEM_PIXEL;
}

// What a worker's scratch is cut into, in floats.
enum part { PART_LINES, PART_V, PART_M, PART_BAND, PART_SHARED, PARTS };

static void parts_of(const struct stem *s, int width, size_t part[PARTS])
{
    size_t tiles = (size_t)s->kernel->tiles, out = (size_t)s->out;

    part[PART_LINES] = LINES * line_floats(tiles_across(half(width)));
    part[PART_V] = STEM_POINTS * tiles * STEM_PIXEL;
    part[PART_M] = STEM_POINTS * tiles * (size_t)s->kernel->channels;
    part[PART_BAND] = STEM_TILE * (1 + STEM_TILE * tiles) * out;
    part[PART_SHARED] = (size_t)half(half(width)) * out;
}

size_t stem_scratch_floats(const struct stem *s, int width)
{
    size_t part[PARTS], sum = 0;

    parts_of(s, width, part);
    for (int i = 0; i < PARTS; i++)
        sum += part[i];
    return round_up(sum);
}

static struct strip strip_of(const struct job *j, int worker, int workers)
{
    struct strip s = {.j = j, .first = -1, .end = -1};
    size_t part[PARTS], from, to;

    parts_of(j->s, j->image->width, part);
    s.lines = j->scratch + (size_t)worker * j->scratch_floats;
    s.v = s.lines + part[PART_LINES];
    s.m = s.v + part[PART_V];
    s.band = s.m + part[PART_M];
    s.shared = s.band + part[PART_BAND];
    s.line = part[PART_LINES] / LINES;
    s.band_row = part[PART_BAND] / STEM_TILE;
    s.shared_floats = part[PART_SHARED];
    pool_share((size_t)quotient_up(j->conv_height, STEM_TILE), worker, workers, &from,
               &to);
    s.first_row = (int)from * STEM_TILE;
    s.end_row = (int)to * STEM_TILE;
    return s;
}

// ---- lines of the image -------------------------------------------------------------------

// Column x of the image in a half-size line, PAD columns of zeros before it.
static float *column_of(float *line, int x)
{
    return line + (x + PAD) / 2 * STEM_PIXEL + (x + PAD) % 2 * COLOURS;
}

static void read_pixels(const struct stem_image *im, int y, float *line)
{
    const uint8_t *p = im->rgb + (size_t)y * im->stride;

    for (int x = 0; x < im->width; x++, p += COLOURS) {
        float *to = column_of(line, x);
        to[0] = im->table[0][p[0]];
        to[1] = im->table[1][p[1]];
        to[2] = im->table[2][p[2]];
    }
}

static void read_planes(const struct stem_image *im, int y, float *line)
{
    size_t plane = (size_t)im->height * (size_t)im->width;
    const float *p = im->planes + (size_t)y * (size_t)im->width;

    for (int x = 0; x < im->width; x++, p++) {
        float *to = column_of(line, x);
        to[0] = p[0];
        to[1] = p[plane];
        to[2] = p[2 * plane];
    }
}

// Half-size line i: lines 2 i - PAD and the next of the image, normalised. All around are zeros:
// padding is zero in the normalised space.
static void read_line(const struct stem_image *im, int i, float *line, size_t floats)
{
    memset(line, 0, floats * sizeof *line);
    for (int odd = 0; odd < 2; odd++) {
        int y = 2 * i - PAD + odd;
        float *to = line + odd * 2 * COLOURS;

        if (y < 0 || y >= im->height)
            continue;
        if (im->rgb)
            read_pixels(im, y, to);
        else
            read_planes(im, y, to);
    }
}

// The half-size lines under the band that begins with row c of the convolution. c goes up.
static const float *lines_under(struct strip *s, int c)
{
    int from = c, to = from + STEM_SIDE;

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

// ---- convolution --------------------------------------------------------------------------

// Tiles [at, at + tiles) of a band to its pixels.
static void convolve(struct strip *s, const float *lines, int at, int tiles)
{
    const struct stem *stem = s->j->s;
    struct winograd_input i = {.channels = STEM_PIXEL,
                               .d = lines + (size_t)(STEM_TILE * at) * STEM_PIXEL,
                               .d_row = s->line,
                               .d_pixel = STEM_PIXEL,
                               .v = s->v,
                               .v_point = (size_t)stem->kernel->tiles * STEM_PIXEL};
    const struct stem_piece piece = {.s = stem,
                                     .tiles = tiles,
                                     .v = s->v,
                                     .m = s->m,
                                     .y = s->band + stem->out,
                                     .y_row = s->band_row};

    for (int t = 0; t < tiles; t++, i.d += STEM_TILE * STEM_PIXEL, i.v += STEM_PIXEL) {
        i.next = i.d; // the lines are near as it is
        s->j->transforms->input(WINOGRAD, &i);
    }
    stem->kernel->convolve(&piece);
}

// ---- pooling ------------------------------------------------------------------------------

// Row c of the convolution, its columns from `at` on in the band: it lies in the window of row
// c / 2 of the output; an odd one also begins the next.
static void pool_row(struct strip *s, int c, int at, int width)
{
    const struct job *j = s->j;
    size_t out = (size_t)j->s->out, pooled = (size_t)(at / 2) * out;
    const struct stem_row row = {.x = s->band + (size_t)(c % STEM_TILE) * s->band_row +
                                      out,
                                 .channels = j->s->out,
                                 .width = width,
                                 .inside = at > 0};
    int r = c / 2;
    bool mine = r == 0 || 2 * r - 1 >= s->first_row;
    float *go_on = (mine ? map_at(j->y, r, 0) : s->shared) + pooled, *begin = NULL;

    if (c % 2 && r + 1 < j->y->height)
        begin = map_at(j->y, r + 1, 0) + pooled;
    if (c == 0)
        begin = go_on, go_on = NULL;
    j->s->kernel->pool(&row, begin, go_on);
}

// The column before the next piece.
static void keep_last_column(struct strip *s, int width)
{
    size_t out = (size_t)s->j->s->out;

    for (int i = 0; i < STEM_TILE; i++) {
        float *row = s->band + (size_t)i * s->band_row;
        memcpy(row, row + (size_t)width * out, out * sizeof *row);
    }
}

// The band that begins with row c, piece by piece; pieces of about the same size.
static void run_band(struct strip *s, int c)
{
    const struct job *j = s->j;
    const float *lines = lines_under(s, c);

    for (int at = 0, tiles; at < j->tiles; at += tiles) {
        int pieces = quotient_up(j->tiles - at, j->s->kernel->tiles);
        int left = j->conv_width - STEM_TILE * at, width;

        tiles = quotient_up((j->tiles - at) / 2, pieces) * 2;
        width = STEM_TILE * tiles < left ? STEM_TILE * tiles : left;
        convolve(s, lines, at, tiles);
        for (int i = c; i < c + STEM_TILE && i < j->conv_height; i++)
            pool_row(s, i, STEM_TILE * at, width);
        keep_last_column(s, width);
    }
}

static void stem_task(void *arg, int worker, int workers)
{
    struct strip s = strip_of(arg, worker, workers);

    for (size_t i = 0; i < s.shared_floats; i++)
        s.shared[i] = -INFINITY;
    for (int c = s.first_row; c < s.end_row; c += STEM_TILE)
        run_band(&s, c);
}

// What a worker has of its upper neighbour's last row raises that. A NaN wins.
static void merge_task(void *arg, int worker, int workers)
{
    struct strip s = strip_of(arg, worker, workers);
    float *y = map_at(s.j->y, s.first_row / 2, 0);

    if (s.first_row == 0 || s.first_row >= s.end_row)
        return;
    for (size_t i = 0; i < s.shared_floats; i++)
        y[i] = s.shared[i] > y[i] || s.shared[i] != s.shared[i] ? s.shared[i] : y[i];
}

void stem_run(struct pool *pool, const struct stem *s, const struct stem_image *image,
              const struct map *y, float *scratch, size_t scratch_floats)
{
    struct job j = {.s = s,
                    .image = image,
                    .y = y,
                    .transforms = winograd_transforms_of(s->kernel->isa),
                    .conv_height = half(image->height),
                    .conv_width = half(image->width),
                    .tiles = tiles_across(half(image->width)),
                    .scratch = scratch,
                    .scratch_floats = scratch_floats};

    pool_run(pool, stem_task, &j);
    if (pool_threads(pool) > 1)
        pool_run(pool, merge_task, &j);
}
