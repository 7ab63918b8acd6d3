#include "daemon/sim/canvas.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <png.h>

int canvas_open(struct canvas *c, int width, int height, uint32_t background)
{
    c->width = width;
    c->height = height;
    c->rgb = malloc((size_t)width * (size_t)height * 3);
    if (!c->rgb)
        return -ENOMEM;
    canvas_rect(c, 0, 0, width, height, background);
    return 0;
}

void canvas_close(struct canvas *c)
{
    free(c->rgb);
    c->rgb = NULL;
}

// Mixes the colour in with weight 0..1.
static void blend(struct canvas *c, int x, int y, double weight, uint32_t colour)
{
    if (x < 0 || y < 0 || x >= c->width || y >= c->height || weight <= 0)
        return;
    uint8_t *p = c->rgb + ((size_t)y * (size_t)c->width + (size_t)x) * 3;
    double w = fmin(weight, 1);
    for (int i = 0; i < 3; i++) {
        double to = (colour >> (16 - 8 * i)) & 0xff;
        p[i] = (uint8_t)lround(p[i] + w * (to - p[i]));
    }
}

void canvas_rect(struct canvas *c, int x, int y, int width, int height, uint32_t colour)
{
    for (int j = y; j < y + height; j++)
        for (int i = x; i < x + width; i++)
            blend(c, i, j, 1, colour);
}

void canvas_frame(struct canvas *c, int x, int y, int width, int height, uint32_t colour)
{
    canvas_rect(c, x, y, width, 1, colour);
    canvas_rect(c, x, y + height - 1, width, 1, colour);
    canvas_rect(c, x, y, 1, height, colour);
    canvas_rect(c, x + width - 1, y, 1, height, colour);
}

void canvas_image(struct canvas *c, int x, int y, const uint8_t *rgb, int width,
                  int height)
{
    if (x < 0 || y < 0 || x + width > c->width || y + height > c->height)
        return;
    for (int j = 0; j < height; j++)
        memcpy(c->rgb + ((size_t)(y + j) * (size_t)c->width + (size_t)x) * 3,
               rgb + (size_t)j * (size_t)width * 3, (size_t)width * 3);
}

void canvas_line(struct canvas *c, double x0, double y0, double x1, double y1,
                 double thick, uint32_t colour)
{
    double dx = x1 - x0, dy = y1 - y0, length2 = dx * dx + dy * dy, r = thick / 2;

    for (int y = (int)(fmin(y0, y1) - r - 1); y <= (int)(fmax(y0, y1) + r + 2); y++)
        for (int x = (int)(fmin(x0, x1) - r - 1); x <= (int)(fmax(x0, x1) + r + 2); x++) {
            double t = length2 > 0 ? ((x - x0) * dx + (y - y0) * dy) / length2 : 0;
            t = fmin(fmax(t, 0), 1);
            blend(c, x, y, r + 0.5 - hypot(x - x0 - t * dx, y - y0 - t * dy), colour);
        }
}

void canvas_ring(struct canvas *c, double x, double y, double radius, double thick,
                 uint32_t colour)
{
    int reach = (int)(radius + thick + 2);

    for (int j = (int)y - reach; j <= (int)y + reach; j++)
        for (int i = (int)x - reach; i <= (int)x + reach; i++)
            blend(c, i, j, thick / 2 + 0.5 - fabs(hypot(i - x, j - y) - radius), colour);
}

void canvas_text(struct canvas *c, int x, int y, int scale, uint32_t colour,
                 const char *text)
{
    for (; *text; text++, x += CANVAS_GLYPH_W * scale) {
        if (*text < CANVAS_FONT_FIRST || *text > CANVAS_FONT_LAST)
            continue;
        const unsigned char *glyph = canvas_font[*text - CANVAS_FONT_FIRST];
        for (int j = 0; j < CANVAS_GLYPH_H; j++)
            for (int i = 0; i < 5; i++)
                if (glyph[j] & (0x10 >> i))
                    canvas_rect(c, x + i * scale, y + j * scale, scale, scale, colour);
    }
}

int canvas_text_width(int scale, const char *text)
{
    return (int)strlen(text) * CANVAS_GLYPH_W * scale;
}

int canvas_write(const struct canvas *c, const char *path)
{
    png_image image;

    memset(&image, 0, sizeof image);
    image.version = PNG_IMAGE_VERSION;
    image.width = (png_uint_32)c->width;
    image.height = (png_uint_32)c->height;
    image.format = PNG_FORMAT_RGB;
    return png_image_write_to_file(&image, path, 0, c->rgb, 0, NULL) ? 0 : -EIO;
}
