#include "policy/kernels/map.h"

#include <string.h>

// What tiles of 2, 4 or 6 pixels cover: 30 lines become 32, which no tile of 6 needs.
static size_t rounded(int extent)
{
    size_t by_4 = ((size_t)extent + 3) / 4 * 4, by_6 = ((size_t)extent + 5) / 6 * 6;

    return by_4 > by_6 ? by_4 : by_6;
}

// Rows and columns, the room included: one before, one behind the last tile.
static size_t with_room(int extent)
{
    return rounded(extent) + 2 * MAP_BORDER;
}

size_t map_floats(int height, int width, int channels)
{
    size_t floats = with_room(height) * with_room(width) * (size_t)channels;

    return (floats + 15) / 16 * 16;
}

struct map map_open(float *memory, int height, int width, int channels)
{
    size_t c = (size_t)channels, row = with_room(width) * c, rows = with_room(height);
    size_t inner = (size_t)width * c, left = MAP_BORDER * c, right = row - left - inner;
    float *line = memory + MAP_BORDER * row;

    // From the pixel left of a line's first one back to the last pixel of the line
    // before.
    memset(memory, 0, (MAP_BORDER * row + left) * sizeof *memory);
    for (int y = 0; y < height; y++, line += row)
        memset(line + left + inner, 0,
               (right + (y + 1 < height ? left : 0)) * sizeof *line);
    memset(line, 0, (rows - MAP_BORDER - (size_t)height) * row * sizeof *line);
    return (struct map){memory + MAP_BORDER * row + left, height, width, channels, row};
}

struct flatten {
    const struct map *m;
    float *out;
};

static void flatten_task(void *arg, int worker, int workers)
{
    const struct flatten *j = arg;
    size_t line = (size_t)j->m->width * (size_t)j->m->channels, begin, end;

    pool_share((size_t)j->m->height, worker, workers, &begin, &end);
    for (size_t y = begin; y < end; y++)
        memcpy(j->out + y * line, map_at(j->m, (int)y, 0), line * sizeof *j->out);
}

void map_flatten(struct pool *pool, const struct map *m, float *out)
{
    struct flatten j = {m, out};

    pool_run(pool, flatten_task, &j);
}
