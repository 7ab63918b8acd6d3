// fuzz_jpeg: any bytes as a camera's JPEG, through the header check and the decoder, into
// a buffer that is exactly as large as the header says.
#include <stdlib.h>

#include "daemon/camera.h"
#include "daemon/jpeg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct codec_frame f = {.format = CODEC_JPEG, .data = data, .size = size};
    size_t capacity;
    uint8_t *rgb;
    int width, height;

    if (jpeg_header(data, size, &f.width, &f.height) != CODEC_OK)
        return 0;
    // Larger pictures are only slower; their sizes are the unit tests' matter.
    if (f.width > 256 || f.height > 256)
        return 0;
    capacity = 3 * (size_t)f.width * (size_t)f.height;
    rgb = malloc(capacity);
    if (camera_decode(&f, rgb, capacity, &width, &height) == CODEC_OK &&
        (width != f.width || height != f.height))
        abort();
    free(rgb);
    return 0;
}
