// What the cameras say: real bytes of frames, and what becomes of them when something is wrong.
#include <math.h>
#include <string.h>
#include <turbojpeg.h>

#include "foxglove/CompressedImage.pb-c.h"
#include "foxglove/RawImage.pb-c.h"
#include "tests/fault/sender_impl.h"

// A picture that is never the same: a slope, noise, and a bar that moves.
static void paint(struct world *w, uint8_t *pixels, uint64_t number, int camera)
{
    uint64_t noise = number * 977 + (uint64_t)camera + w->cfg.seed;

    for (int y = 0; y < WORLD_SIDE; y++)
        for (int x = 0; x < WORLD_SIDE; x++)
            pixels[y * WORLD_SIDE + x] =
                (uint8_t)(4u * (unsigned)x + 2u * (unsigned)y +
                          ((uint64_t)x == number % WORLD_SIDE ? 60u : 0u) +
                          (injector_random32(&noise) & 7));
}

static size_t pack_jpeg(uint8_t *pixels, int64_t stamp, const struct injection *one,
                        struct world *w)
{
    static char format[] = "jpeg";
    Google__Protobuf__Timestamp t;
    Foxglove__CompressedImage m;
    tjhandle tj = tjInitCompress();
    unsigned char *bytes = NULL;
    unsigned long size = 0;
    size_t n = 0;

    if (tj && tjCompress2(tj, pixels, WORLD_SIDE, 0, WORLD_SIDE, TJPF_GRAY, &bytes, &size,
                          TJSAMP_GRAY, 90, 0) == 0) {
        int bad = one && one->verb == VERB_GARBAGE ? one->variant : -1;

        if (bad == CAMERA_TRUNCATED)
            size -= size / 3;
        if (bad == CAMERA_FLIPS) // in the pixels: the header would be refused unread
            for (int i = 0; i < 40; i++)
                bytes[size / 2 + injector_random32(&w->injector.random) % (size / 2)] ^=
                    (uint8_t)(1 + injector_random32(&w->injector.random) % 255);
        for (unsigned long i = 2; i + 9 < size; i++) {
            if (bytes[i] != 0xff)
                continue;
            if (bad == CAMERA_HUFFMAN && bytes[i + 1] == 0xc4)
                memset(bytes + i + 5, 0xff, 16); // 255 codes of each length
            if (bad == CAMERA_BOMB && bytes[i + 1] == 0xc0)
                memset(bytes + i + 5, 0xff, 4);
        }
        foxglove__compressed_image__init(&m);
        sender_set_stamp(&t, stamp);
        m.timestamp = &t;
        m.format = format;
        m.data = (ProtobufCBinaryData){size, bytes};
        n = foxglove__compressed_image__pack(&m, sender_buffer);
    }
    tjFree(bytes);
    if (tj)
        tjDestroy(tj);
    return n;
}

static size_t pack_raw(uint8_t *pixels, int64_t stamp, const struct injection *one)
{
    static char mono[] = "mono8", other[] = "yuv422";
    Google__Protobuf__Timestamp t;
    Foxglove__RawImage m;
    int wrong = one && one->verb == VERB_WRONG ? one->variant : -1;

    foxglove__raw_image__init(&m);
    sender_set_stamp(&t, stamp);
    m.timestamp = &t;
    m.width = m.height = m.step = WORLD_SIDE;
    m.encoding = wrong == CAMERA_ENCODING ? other : mono;
    if (wrong == CAMERA_STRIDE)
        m.step = WORLD_SIDE - 1;
    if (wrong == CAMERA_SIZE)
        m.height = WORLD_SIDE / 2;
    m.data = (ProtobufCBinaryData){m.step * m.height, pixels};
    return foxglove__raw_image__pack(&m, sender_buffer);
}

static bool as_jpeg(const struct world *w, const struct injection *one)
{
    return w->cfg.jpeg ||
           (one && one->verb == VERB_GARBAGE && one->variant >= CAMERA_TRUNCATED &&
            one->variant <= CAMERA_BOMB);
}

static size_t pack_frame(struct world *w, struct sender *s, int camera,
                         const struct injection *one, int64_t stamp)
{
    uint8_t pixels[WORLD_SIDE * WORLD_SIDE];
    bool stuck = one && one->verb == VERB_STUCK;
    size_t n;

    paint(w, pixels, stuck ? 0 : s->sent, camera);
    n = as_jpeg(w, one) ? pack_jpeg(pixels, stamp, one, w) : pack_raw(pixels, stamp, one);
    if (one && one->verb == VERB_GARBAGE && one->variant == CAMERA_RANDOM)
        n = sender_random(w, 200);
    if (one && one->verb == VERB_GARBAGE && one->variant == CAMERA_EMPTY)
        n = 0;
    return n;
}

static ns_t later(const struct world *w, const struct injection *one, ns_t at)
{
    ns_t by = sender_ms(fabs(one->magnitude)), since = at - w->schedule.start_ns;

    if (one->verb == VERB_DELAYED && one->variant == CAMERA_BURSTS && by > 0)
        return at + (by - since % by) % by;
    return at + by;
}

void sender_frame(struct world *w, int camera)
{
    struct sender *s = &w->in->sender[1 + camera];
    const struct injection *one = world_wrong(w, INJECT_CAMERA, camera, w->now);
    int wrong = one && one->verb == VERB_WRONG ? one->variant : -1;
    int64_t stamp = sender_stamp(w, s);
    ns_t at = w->now + w->cfg.wire_ns;
    size_t n;

    s->sent++;
    if (!sender_comes(w, s, one))
        return;
    if (wrong == CAMERA_CLOCK)
        stamp += sender_ms(one->magnitude);
    if (wrong == CAMERA_SKEW || (one && one->verb == VERB_DELAYED))
        at = later(w, one, at);
    n = pack_frame(w, s, camera, one, stamp);
    if (wrong == CAMERA_REORDERED) {
        sender_reordered(w, 1 + camera, s, at, n);
        return;
    }
    letter_post(w, 1 + camera, at, sender_buffer, n);
    if (wrong == CAMERA_DUPLICATE)
        letter_post(w, 1 + camera, at + NS_PER_MS, sender_buffer, n);
}
