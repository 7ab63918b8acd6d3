// The table of conv_plan, from `make bench-kernels` with the weights out of the cache.
//
// Winograd's larger tiles multiply less (F(4x4) 2.25 times for 9 of direct's, F(2x2) 4) but have
// more weights to read (36 and 16 numbers for 9), which only many tiles pay for, the more the faster
// the kernel is. F(6x6) would win another fifth on the largest maps, but its error is four times
// F(4x4)'s, and its weights take twice the memory.
//
// With stride 2 Winograd has 35 multiplications for 54 and 2.2 times the weights.
//
// Rows shorter than two tiles of a kernel leave half of it idle: their patches are gathered, which
// makes one long row of all, and costs a copy.
#include "policy/kernels/conv.h"

struct limits {
    int halving;  // stride 2: Winograd where the output has at least as many tiles of 3x2
    int tiles_4;  // F(4x4) where a map has at least as many tiles of 4x4
    int pixels_2; // else F(2x2) where it has at least as many pixels
    int row;      // else direct where a row of the output has at least as many pixels
};

static const struct limits limits[CPU_ISAS] = {
    [CPU_GENERIC] = {20, 9, 25, 0},
    [CPU_AVX2] = {20, 12, 25, 24},
    [CPU_AVX512] = {32, 20, 36, 24},
    [CPU_NEON] = {20, 12, 25, 24}, // as AVX2: not measured on such a machine
};

static int tiles(int rows, int columns, int height, int width)
{
    return (height + rows - 1) / rows * ((width + columns - 1) / columns);
}

static bool fits_winograd(const struct conv *c, int stride)
{
    return c->size == 3 && c->stride == stride && c->pad == 1 && c->in % 4 == 0 &&
           c->out % 4 == 0;
}

enum conv_way conv_plan(const struct conv *c, int height, int width)
{
    const struct limits *l = &limits[c->kernel->isa];
    int y_height = conv_extent(c, height), y_width = conv_extent(c, width);

    if (c->dilation > 1 || c->pad > MAP_BORDER)
        return CONV_GATHERED;
    if (fits_winograd(c, 2) && tiles(3, 2, y_height, y_width) >= l->halving)
        return CONV_WINOGRAD_HALVING;
    if (fits_winograd(c, 1) && tiles(4, 4, height, width) >= l->tiles_4)
        return CONV_WINOGRAD_4;
    if (fits_winograd(c, 1) && height * width >= l->pixels_2)
        return CONV_WINOGRAD_2;
    return y_width >= l->row ? CONV_DIRECT : CONV_GATHERED;
}

const char *conv_way_name(enum conv_way way)
{
    static const char *const name[] = {[CONV_DIRECT] = "direct",
                                       [CONV_WINOGRAD_2] = "winograd 2x2",
                                       [CONV_WINOGRAD_4] = "winograd 4x4",
                                       [CONV_WINOGRAD_6] = "winograd 6x6",
                                       [CONV_WINOGRAD_HALVING] = "winograd 3x2/2",
                                       [CONV_GATHERED] = "gathered"};

    return name[way];
}
