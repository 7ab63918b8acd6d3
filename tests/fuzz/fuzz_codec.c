// fuzz_codec: any bytes as a message from a robot. The first byte says what the rest is:
// joint states, a camera message, or a run of stamps. Either is refused or keeps its
// promises; a camera message that is accepted is what protobuf-c makes of the same bytes.
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/camera.h"
#include "daemon/codec.h"
#include "foxglove/CompressedImage.pb-c.h"
#include "foxglove/RawImage.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int promise)
{
    if (!promise)
        abort();
}

static void joints(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"a", "b"};
    static struct codec *c;
    struct joint_sample s;
    int64_t stamp;

    if (!c)
        must(codec_new(&c, names, 2) == 0);
    if (codec_joints(c, data, size, &s, &stamp) != CODEC_OK)
        return;
    must(s.n == 2 && stamp >= 0);
    for (int i = 0; i < 2; i++)
        must(fabs(s.pos[i]) < 1e6 && fabs(s.vel[i]) < 1e6);
}

static void compressed(const struct codec_frame *f, const uint8_t *data, size_t size)
{
    Foxglove__CompressedImage *m = foxglove__compressed_image__unpack(NULL, size, data);

    must(m && m->data.len == f->size && memcmp(m->data.data, f->data, f->size) == 0);
    must(strcmp(m->format, "jpeg") == 0 || strcmp(m->format, "jpg") == 0);
    foxglove__compressed_image__free_unpacked(m, NULL);
}

static void raw(const struct codec_frame *f, const uint8_t *data, size_t size)
{
    Foxglove__RawImage *m = foxglove__raw_image__unpack(NULL, size, data);

    must(m && m->data.len == f->size && memcmp(m->data.data, f->data, f->size) == 0);
    must(m->width == (uint32_t)f->width && m->height == (uint32_t)f->height);
    must(m->step == (uint32_t)f->step && f->size == (size_t)f->step * (size_t)f->height);
    foxglove__raw_image__free_unpacked(m, NULL);
}

static void frame(const uint8_t *data, size_t size)
{
    static struct codec *c;
    struct codec_frame f;

    if (!c)
        must(codec_new(&c, NULL, 0) == 0);
    if (codec_frame(c, data, size, &f) != CODEC_OK) {
        must(strlen(codec_why(c)) > 0);
        return;
    }
    must(f.width > 0 && f.width <= CAMERA_MAX_WIDTH);
    must(f.height > 0 && f.height <= CAMERA_MAX_HEIGHT);
    must(f.data >= data && f.size <= size && f.data + f.size <= data + size);
    if (f.format == CODEC_JPEG)
        compressed(&f, data, size);
    else
        raw(&f, data, size);
}

static void stamps(const uint8_t *data, size_t size)
{
    struct codec_stamp s = {0};
    ns_t now = 0, capture;

    for (; size >= 16; data += 16, size -= 16) {
        int64_t stamp, step;

        memcpy(&stamp, data, 8);
        memcpy(&step, data + 8, 8);
        now += step & INT64_C(0xffffffffff); // time goes forward, by up to 18 minutes
        if (codec_stamp_map(&s, stamp, now, step < 0, &capture) < CODEC_TIME_SAME)
            must(capture <= now);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    if (data[0] % 3 == 0)
        joints(data + 1, size - 1);
    else if (data[0] % 3 == 1)
        frame(data + 1, size - 1);
    else
        stamps(data + 1, size - 1);
    return 0;
}
