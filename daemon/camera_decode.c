// From bytes to pixels.
#include <string.h>

#include "daemon/camera_impl.h"

static void row_to_rgb(const struct codec_frame *f, const uint8_t *row, uint8_t *rgb)
{
    size_t n = (size_t)f->width;

    switch (f->format) {
    case CODEC_RGB8:
        memcpy(rgb, row, 3 * n);
        break;
    case CODEC_BGR8:
        for (size_t i = 0; i < n; i++, rgb += 3, row += 3) {
            rgb[0] = row[2];
            rgb[1] = row[1];
            rgb[2] = row[0];
        }
        break;
    case CODEC_MONO8:
        for (size_t i = 0; i < n; i++, rgb += 3)
            memset(rgb, row[i], 3);
        break;
    case CODEC_JPEG:
        break;
    }
}

enum codec_verdict camera_pixels(struct jpeg *j, const struct codec_frame *f,
                                 uint8_t *rgb)
{
    size_t row = 3 * (size_t)f->width;

    if (f->format == CODEC_JPEG)
        return jpeg_decode(j, f->data, f->size, f->width, f->height, rgb) == 0
                   ? CODEC_OK
                   : CODEC_BAD_FORMAT;
    for (int y = 0; y < f->height; y++)
        row_to_rgb(f, f->data + (size_t)y * (size_t)f->step, rgb + (size_t)y * row);
    return CODEC_OK;
}

enum codec_verdict camera_decode(const struct codec_frame *f, uint8_t *rgb,
                                 size_t capacity, int *width, int *height)
{
    struct jpeg *j = NULL;
    enum codec_verdict v;

    if (3 * (size_t)f->width * (size_t)f->height > capacity)
        return CODEC_BAD_SIZE;
    if (f->format == CODEC_JPEG && jpeg_new(&j) != 0)
        return CODEC_BAD_FORMAT;
    v = camera_pixels(j, f, rgb);
    jpeg_free(j);
    *width = f->width;
    *height = f->height;
    return v;
}
