#include "daemon/jpeg.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <turbojpeg.h>

#include "daemon/camera.h"

struct jpeg {
    tjhandle tj;
};

enum marker {
    M_SOF0 = 0xc0,
    M_SOF1 = 0xc1,
    M_SOF2 = 0xc2,
    M_DHT = 0xc4,
    M_JPG = 0xc8,
    M_DAC = 0xcc,
    M_SOF15 = 0xcf,
    M_RST0 = 0xd0,
    M_EOI = 0xd9,
    M_SOS = 0xda,
    M_TEM = 0x01,
};

struct segment {
    int marker;
    const uint8_t *body;
    size_t size;
};

static int big16(const uint8_t *p)
{
    return p[0] << 8 | p[1];
}

// The next marker segment at *at; moves *at behind it. False: not a marker, or cut off.
static bool next_segment(const uint8_t *data, size_t size, size_t *at, struct segment *s)
{
    size_t p = *at, length;

    if (p >= size || data[p] != 0xff)
        return false;
    while (p < size && data[p] == 0xff) // any number of fill bytes
        p++;
    if (size - p < 3)
        return false;
    s->marker = data[p];
    if (s->marker == 0 || s->marker == M_TEM ||
        (s->marker >= M_RST0 && s->marker <= M_EOI))
        return false; // no segment, and none of them belongs before the first scan
    length = (size_t)big16(data + p + 1);
    if (length < 2 || length > size - p - 1)
        return false;
    s->body = data + p + 3;
    s->size = length - 2;
    *at = p + 1 + length;
    return true;
}

static const char broken[] = "its JPEG header is broken or cut off: send whole files";

// Huffman-coded, sequential, 8 bits a sample; grey or three components. NULL, or what it
// is instead.
static const char *frame_header(const struct segment *s, int *width, int *height,
                                int *components)
{
    if (s->marker == M_SOF2)
        return "progressive JPEG is not read: encode baseline";
    if (s->marker > M_SOF1)
        return "lossless, arithmetic or hierarchical JPEG is not read: encode baseline";
    if (s->size < 6)
        return broken;
    if (s->body[0] != 8)
        return "JPEG of 12 bits is not read: encode 8 bits a sample";
    *height = big16(s->body + 1);
    *width = big16(s->body + 3);
    *components = s->body[5];
    if (*components != 1 && *components != 3)
        return "this JPEG has neither 1 nor 3 components: encode grey or YCbCr";
    return s->size == 6 + 3 * (size_t)*components ? NULL : broken;
}

static bool is_frame_header(int marker)
{
    return marker >= M_SOF0 && marker <= M_SOF15 && marker != M_DHT && marker != M_JPG &&
           marker != M_DAC;
}

enum codec_verdict jpeg_examine(const uint8_t *data, size_t size, int *width, int *height,
                                const char **why)
{
    int components = 0;
    size_t at = 2;
    struct segment s;

    *why = "its data is no JPEG, which begins with FF D8";
    if (size < 4 || data[0] != 0xff || data[1] != 0xd8)
        return CODEC_BAD_FORMAT;
    while (next_segment(data, size, &at, &s)) {
        *why = "arithmetic JPEG is not read: encode baseline";
        if (s.marker == M_DAC)
            return CODEC_BAD_FORMAT;
        if (is_frame_header(s.marker)) {
            *why =
                components != 0 ? broken : frame_header(&s, width, height, &components);
            if (*why)
                return CODEC_BAD_FORMAT;
            if (*width == 0 || *width > CAMERA_MAX_WIDTH || *height == 0 ||
                *height > CAMERA_MAX_HEIGHT)
                return CODEC_BAD_SIZE;
        }
        if (s.marker == M_SOS) { // all components in the first scan: there is no other
            *why =
                components == 0 || s.size == 0
                    ? broken
                    : "JPEG of several scans is not read: encode baseline, interleaved";
            return components != 0 && s.size > 0 && s.body[0] == components
                       ? CODEC_OK
                       : CODEC_BAD_FORMAT;
        }
    }
    *why = broken;
    return CODEC_BAD_FORMAT;
}

enum codec_verdict jpeg_header(const uint8_t *data, size_t size, int *width, int *height)
{
    const char *why;

    return jpeg_examine(data, size, width, height, &why);
}

int jpeg_new(struct jpeg **out)
{
    struct jpeg *j = calloc(1, sizeof *j);

    *out = NULL;
    if (!j)
        return -ENOMEM;
    j->tj = tjInitDecompress();
    if (!j->tj) {
        free(j);
        return -ENOMEM;
    }
    *out = j;
    return 0;
}

void jpeg_free(struct jpeg *j)
{
    if (!j)
        return;
    tjDestroy(j->tj);
    free(j);
}

// libjpeg-turbo 2.1.5 stays in the middle of a header that it could not read and refuses every
// picture after it; only a new decoder is as new.
static void start_afresh(struct jpeg *j)
{
    tjhandle tj = tjInitDecompress();

    if (!tj)
        return;
    tjDestroy(j->tj);
    j->tj = tj;
}

int jpeg_decode(struct jpeg *j, const uint8_t *data, size_t size, int width, int height,
                uint8_t *rgb)
{
    int w, h, subsampling, colours;

    if (tjDecompressHeader3(j->tj, data, size, &w, &h, &subsampling, &colours) != 0) {
        start_afresh(j);
        return -EBADMSG;
    }
    // Ours and the library's reading of one header must agree, or the buffer may not fit.
    if (w != width || h != height || colours == TJCS_CMYK || colours == TJCS_YCCK)
        return -EBADMSG;
    if (tjDecompress2(j->tj, data, size, rgb, width, 3 * width, height, TJPF_RGB,
                      TJFLAG_STOPONWARNING) != 0)
        return -EBADMSG;
    return 0;
}
