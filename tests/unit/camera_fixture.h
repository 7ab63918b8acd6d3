// One camera, pictures for it, and messages that carry them. One test program includes it
// once.
#ifndef TEST_CAMERA_FIXTURE_H
#define TEST_CAMERA_FIXTURE_H

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <turbojpeg.h>
#include <cmocka.h>

#include "daemon/camera.h"
#include "daemon/jpeg.h"
#include "foxglove/CompressedImage.pb-c.h"
#include "foxglove/RawImage.pb-c.h"

#define UNUSED  __attribute__((unused))
#define W       64
#define H       48
#define WAIT    (5 * NS_PER_S)
#define STAMP_S 1700000000

static uint8_t picture[H][W][3]; // smooth, so that JPEG keeps it within a few steps

struct fixture {
    struct camera *camera;
    struct camera_mark mark;
    uint8_t message[64 * 1024];
    size_t size;
    int64_t stamp_ms; // of the next message, 0 = without
    ns_t received_ns;
    bool parked; // the last message was
    bool gone;   // its bytes are overwritten once it has been parked
};

UNUSED static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++) {
            picture[y][x][0] = (uint8_t)(40 + 2 * x);
            picture[y][x][1] = (uint8_t)(60 + 3 * y);
            picture[y][x][2] = (uint8_t)(200 - x - y);
        }
    *state = f;
    f->received_ns = NS_PER_S;
    return camera_start(&f->camera, "front", &f->mark, 0);
}

UNUSED static int teardown(void **state)
{
    struct fixture *f = *state;

    camera_stop(f->camera);
    free(f);
    return 0;
}

UNUSED static size_t make_jpeg(uint8_t *out, size_t capacity, int pixel_format,
                               int subsampling, int flags)
{
    tjhandle tj = tjInitCompress();
    unsigned char *buf = NULL;
    unsigned long size = 0;
    static uint8_t grey[H][W];
    const uint8_t *from = &picture[0][0][0];

    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            grey[y][x] = picture[y][x][0];
    if (pixel_format == TJPF_GRAY)
        from = &grey[0][0];
    assert_int_equal(
        tjCompress2(tj, from, W, 0, H, pixel_format, &buf, &size, subsampling, 95, flags),
        0);
    assert_true(size <= capacity);
    memcpy(out, buf, size);
    tjFree(buf);
    tjDestroy(tj);
    return size;
}

UNUSED static size_t good_jpeg(uint8_t *out, size_t capacity)
{
    return make_jpeg(out, capacity, TJPF_RGB, TJSAMP_420, 0);
}

UNUSED static void set_stamp(const struct fixture *f, Google__Protobuf__Timestamp *s)
{
    google__protobuf__timestamp__init(s);
    if (f->stamp_ms > 0) {
        s->seconds = STAMP_S + f->stamp_ms / 1000;
        s->nanos = (int32_t)(f->stamp_ms % 1000 * 1000000);
    }
}

UNUSED static void park_jpeg(struct fixture *f, uint8_t *jpeg, size_t size)
{
    static char format[] = "jpeg";
    Google__Protobuf__Timestamp stamp;
    Foxglove__CompressedImage m;

    foxglove__compressed_image__init(&m);
    set_stamp(f, &stamp);
    m.timestamp = &stamp;
    m.format = format;
    m.data = (ProtobufCBinaryData){size, jpeg};
    f->size = foxglove__compressed_image__pack(&m, f->message);
    f->parked = camera_park(f->camera, NULL, f->message, f->size, f->received_ns);
    memset(f->message, 0xff, f->gone ? f->size : 0);
}

UNUSED static void park_raw(struct fixture *f, const char *encoding, uint32_t channels,
                            uint32_t pad, uint8_t *pixels)
{
    Google__Protobuf__Timestamp stamp;
    Foxglove__RawImage m;
    char name[8];

    foxglove__raw_image__init(&m);
    set_stamp(f, &stamp);
    m.timestamp = &stamp;
    snprintf(name, sizeof name, "%s", encoding);
    m.encoding = name;
    m.width = W;
    m.height = H;
    m.step = W * channels + pad;
    m.data = (ProtobufCBinaryData){m.step * H, pixels};
    f->size = foxglove__raw_image__pack(&m, f->message);
    f->parked = camera_park(f->camera, NULL, f->message, f->size, f->received_ns);
    memset(f->message, 0xff, f->gone ? f->size : 0);
}

// One grey, so that equal numbers are equal contents.
UNUSED static void park_grey(struct fixture *f, int grey)
{
    static uint8_t bytes[H * W];

    memset(bytes, grey, sizeof bytes);
    park_raw(f, "mono8", 1, 0, bytes);
}

UNUSED static int ask(struct fixture *f, struct policy_image *image, ns_t *capture_ns)
{
    camera_request(f->camera);
    return camera_wait(f->camera, WAIT, image, capture_ns);
}

// Largest difference from the picture, or from its red in all three channels.
UNUSED static int worst(const uint8_t *rgb, bool grey)
{
    int most = 0;

    for (int i = 0; i < H * W * 3; i++) {
        int want = (&picture[0][0][0])[grey ? i / 3 * 3 : i];

        most = abs(rgb[i] - want) > most ? abs(rgb[i] - want) : most;
    }
    return most;
}

#endif
