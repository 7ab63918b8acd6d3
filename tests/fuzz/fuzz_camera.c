// fuzz_camera: one camera's messages with receive times, and somebody who asks for
// pictures now and then. What becomes of each message is counted once more here, every
// picture is compared with what its message decodes to alone, in a decoder of its own,
// and a picture stays as it is until the next is asked for. While nothing is to be
// decoded nothing is allocated.
//
// The input: a byte of settings, then records of OP and as many bytes as OP says.
#include <errno.h>
#include <sanitizer/allocator_interface.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/camera_impl.h"
#include "foxglove/CompressedImage.pb-c.h"
#include "foxglove/RawImage.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define WALL   (INT64_C(1700000000) * NS_PER_S) // the sender's clock at our time 0
#define PIXELS ((size_t)CAMERA_MAX_WIDTH * CAMERA_MAX_HEIGHT * 3)
#define LARGE  (128 * 128) // pixels; one such picture an input, the others are skipped
#define WIDTH  4
#define HEIGHT 3
#define LONG   (64 * 1024) // bytes of a message here

enum op { RAW, JPEG, BYTES, ASK, LOOK, ARM, SET_CLOCK, UNREAD, OPS };
static const size_t length[OPS] = {
    [RAW] = 9, [JPEG] = 6, [BYTES] = 6, [ARM] = 1, [SET_CLOCK] = 8, [UNREAD] = 2};

struct message {
    uint8_t bytes[LONG];
    size_t size;
    ns_t capture_ns;
};

struct picture {
    uint8_t rgb[PIXELS];
    int width, height;
    ns_t capture_ns;
    bool any;
};

struct rig {
    struct camera *camera;
    struct codec *codec;
    _Atomic bool armed;
    ns_t now, latency_ns;
    int64_t wall_set; // by so much in all
    uint64_t sent, corrupt;
    uint32_t refused_in_a_row, corrupt_in_a_row;
    bool fresh, large;
    bool one_size;       // only WIDTH x HEIGHT is taken
    const uint8_t *held; // what was last asked for
};

struct counts {
    uint64_t received, refused, duplicate, out_of_order;
};

static struct camera_mark mark;
static struct message now, parked;   // the one in hand, and the newest that was accepted
static struct picture shown, before; // newest good one; the one that is held
static _Thread_local bool watched;

static void must(int promise)
{
    if (!promise)
        abort();
}

static void on_malloc(const volatile void *p, size_t size)
{
    (void)p;
    (void)size;
    must(!watched);
}

static void on_free(const volatile void *p)
{
    must(!p || !watched);
}

// ---- the twin -----------------------------------------------------------------------

static void copy_picture(struct picture *to, const struct picture *from)
{
    memcpy(to->rgb, from->rgb, 3 * (size_t)from->width * (size_t)from->height);
    to->width = from->width;
    to->height = from->height;
    to->capture_ns = from->capture_ns;
    to->any = from->any;
}

static void twin_decodes(struct rig *r)
{
    static struct picture fresh;
    struct codec_frame f;

    if (!r->fresh)
        return;
    r->fresh = false;
    must(codec_frame(NULL, parked.bytes, parked.size, &f) == CODEC_OK);
    if (camera_decode(&f, fresh.rgb, PIXELS, &fresh.width, &fresh.height) != CODEC_OK) {
        r->corrupt++;
        r->corrupt_in_a_row++;
        return;
    }
    must(fresh.width <= CAMERA_MAX_WIDTH && fresh.height <= CAMERA_MAX_HEIGHT);
    fresh.capture_ns = parked.capture_ns;
    fresh.any = true;
    copy_picture(&shown, &fresh);
    r->corrupt_in_a_row = 0;
}

static void equal(const struct picture *want, const uint8_t *rgb)
{
    must(memcmp(want->rgb, rgb, 3 * (size_t)want->width * (size_t)want->height) == 0);
}

static void look(struct rig *r, bool ask)
{
    struct policy_image image;
    ns_t capture_ns;
    int rc;

    if (r->held)
        equal(&before, r->held);
    if (ask) {
        camera_request(r->camera);
        twin_decodes(r);
    }
    rc = camera_wait(r->camera, 0, &image, &capture_ns);
    must(rc == (shown.any ? 0 : -ENODATA));
    must(mark.corrupt == r->corrupt && mark.corrupt_in_a_row == r->corrupt_in_a_row);
    if (rc != 0)
        return;
    must(image.width == shown.width && image.height == shown.height);
    must(image.stride == 3 * image.width && capture_ns == shown.capture_ns);
    equal(&shown, image.rgb);
    if (ask) {
        r->held = image.rgb;
        copy_picture(&before, &shown);
    }
}

// ---- what must be true of a message -------------------------------------------------

static struct counts counts(const struct rig *r)
{
    const struct camera_mark *m = &mark;

    return (struct counts){m->received, m->refused, m->duplicate, m->out_of_order};
}

static bool same_content(void)
{
    struct codec_frame a, b;

    return codec_frame(NULL, parked.bytes, parked.size, &a) == CODEC_OK &&
           codec_frame(NULL, now.bytes, now.size, &b) == CODEC_OK && a.size == b.size &&
           memcmp(a.data, b.data, a.size) == 0;
}

static void check_parked(struct rig *r, uint32_t same_before)
{
    const struct camera_mark *m = &mark;
    ns_t age_ns = r->now - r->latency_ns - m->capture_ns;
    struct codec_frame f;

    must(m->received_ns == r->now && age_ns >= 0 && age_ns <= CODEC_JUMP_MS * NS_PER_MS);
    must(m->changed_ns <= r->now);
    must(codec_frame(NULL, now.bytes, now.size, &f) == CODEC_OK);
    must(!r->one_size || (f.width == WIDTH && f.height == HEIGHT));
    if (m->received > 1 && same_content())
        must(m->same_in_a_row == same_before + 1 && m->changed_ns < r->now + 1);
    else
        must(m->same_in_a_row == 0 && m->changed_ns == r->now);
    memcpy(parked.bytes, now.bytes, now.size);
    parked.size = now.size;
    parked.capture_ns = m->capture_ns;
    r->refused_in_a_row = 0;
    r->fresh = true;
    if (r->corrupt_in_a_row > 0)
        twin_decodes(r);
}

static void check_refused(struct rig *r)
{
    char text[CODEC_WHY_MAX];

    r->refused_in_a_row++;
    must(camera_last_refusal(r->camera) != CODEC_OK);
    camera_last_refusal_text(r->camera, text);
    must(strnlen(text, sizeof text) > 0 && strnlen(text, sizeof text) < sizeof text);
    for (const char *p = text; *p; p++)
        must(*p >= ' ' && *p <= '~');
}

static void check(struct rig *r, struct counts was, uint32_t same_before)
{
    struct counts is = counts(r);

    r->sent++;
    must(is.received + is.refused + is.duplicate + is.out_of_order +
             camera_superseded(r->camera) ==
         r->sent);
    if (is.received > was.received)
        check_parked(r, same_before);
    if (is.refused > was.refused)
        check_refused(r);
    must(mark.refused_in_a_row == r->refused_in_a_row);
    must(mark.corrupt == r->corrupt && mark.corrupt_in_a_row == r->corrupt_in_a_row);
}

// ---- messages -----------------------------------------------------------------------

static bool too_large(struct rig *r)
{
    struct codec_frame f;

    if (codec_frame(NULL, now.bytes, now.size, &f) != CODEC_OK ||
        f.width * f.height <= LARGE)
        return false;
    if (r->large)
        return true;
    r->large = true;
    return false;
}

static void park(struct rig *r)
{
    struct counts was = counts(r);
    uint32_t same_before = mark.same_in_a_row;
    bool taken;

    if (too_large(r))
        return;
    watched = r->corrupt_in_a_row == 0;
    taken = camera_park(r->camera, r->codec, now.bytes, now.size, r->now);
    watched = false;
    must(taken == (mark.received > was.received));
    check(r, was, same_before);
}

// In time to a tenth of a millisecond, or late.
static Google__Protobuf__Timestamp stamp(struct rig *r, const uint8_t *p)
{
    Google__Protobuf__Timestamp t = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
    uint16_t dt;
    int16_t late;
    int64_t wall_ns;

    memcpy(&dt, p, 2);
    memcpy(&late, p + 2, 2);
    r->now += dt * (NS_PER_MS / 10);
    wall_ns = WALL + r->now + r->wall_set - late * (NS_PER_MS / 10);
    t.seconds = wall_ns / NS_PER_S;
    t.nanos = (int32_t)(wall_ns % NS_PER_S);
    return t;
}

// Up to 63 x 63 pixels, and up to three bytes more or fewer to a row than it needs.
static void raw(struct rig *r, const uint8_t *p)
{
    static char encoding[4][8] = {"rgb8", "bgr8", "mono8", "8UC3"};
    static uint8_t pixels[64 * 200];
    Google__Protobuf__Timestamp t = stamp(r, p);
    Foxglove__RawImage m = FOXGLOVE__RAW_IMAGE__INIT;
    uint32_t step;
    size_t size;

    m.timestamp = &t;
    m.width = p[4] & 63;
    m.height = p[5] & 63;
    m.encoding = encoding[p[6] & 3];
    step = m.width * ((p[6] & 3) == 2 ? 1 : 3);
    m.step = p[4] >> 6 && step > 3 ? step + (p[4] >> 6) - 2 : step;
    size = (size_t)m.step * m.height + (p[5] >> 6) % 3;
    for (size_t i = 0; i < size; i++)
        pixels[i] = (uint8_t)(p[7] + i * p[8]);
    m.data = (ProtobufCBinaryData){size, pixels};
    now.size = foxglove__raw_image__pack(&m, now.bytes);
    park(r);
}

static void jpeg(struct rig *r, const uint8_t *p, size_t n)
{
    static char format[2][8] = {"jpeg", "jpg"};
    static uint8_t bytes[LONG / 2];
    Google__Protobuf__Timestamp t = stamp(r, p);
    Foxglove__CompressedImage m = FOXGLOVE__COMPRESSED_IMAGE__INIT;

    memcpy(bytes, p + length[JPEG], n);
    m.timestamp = &t;
    m.format = format[n & 1];
    m.data = (ProtobufCBinaryData){n, bytes};
    now.size = foxglove__compressed_image__pack(&m, now.bytes);
    park(r);
}

static void bytes(struct rig *r, const uint8_t *p, size_t n)
{
    (void)stamp(r, p);
    memcpy(now.bytes, p + length[BYTES], n);
    now.size = n;
    park(r);
}

// The local wall clock, to anything that it can be: 1970 to 2116.
static void set_clock(struct rig *r, const uint8_t *p)
{
    int64_t to;

    memcpy(&to, p, 8);
    to = (to & INT64_MAX / 2) - WALL;
    camera_wall_set(r->camera, to - r->wall_set, r->now);
    r->wall_set = to;
}

static void unread(struct rig *r, const uint8_t *p)
{
    struct counts was = counts(r);

    if (p[0] & 1) {
        for (int i = 0; i < p[1]; i++)
            camera_supersede(r->camera, now.bytes, now.size, r->now);
        r->sent += p[1];
        return;
    }
    camera_part(r->camera, &(struct codec_part){p, 2, true, p[1] & 1}, r->now);
    camera_part(r->camera, &(struct codec_part){NULL, 0, false, false}, r->now);
    check(r, was, 0);
}

// How many bytes follow a record's own, as its last two say: no more than there are.
static size_t tail(enum op op, const uint8_t *p, size_t left)
{
    uint16_t n;

    if (op != JPEG && op != BYTES)
        return 0;
    memcpy(&n, p + 4, 2);
    n &= LONG / 2 - 1;
    return n < left ? n : left;
}

static void record(struct rig *r, enum op op, const uint8_t *p, size_t n)
{
    switch (op) {
    case RAW:
        raw(r, p);
        break;
    case JPEG:
        jpeg(r, p, n);
        break;
    case BYTES:
        bytes(r, p, n);
        break;
    case ASK:
    case LOOK:
        look(r, op == ASK);
        break;
    case ARM:
        atomic_store(&r->armed, *p & 1);
        break;
    case SET_CLOCK:
        set_clock(r, p);
        break;
    case UNREAD:
        unread(r, p);
        break;
    case OPS:
        break;
    }
}

// As camera_new makes it. Its 37 MiB of buffers stay: to map them takes longer than all
// the rest of an input.
static struct camera *new_camera(int latency_ms)
{
    static struct camera *camera, pristine;

    if (!camera) {
        must(camera_new(&camera, &mark, 0) == 0);
        pristine = *camera;
        pristine.jpeg = NULL;
    }
    jpeg_free(camera->jpeg);
    *camera = pristine;
    must(jpeg_new(&camera->jpeg) == 0);
    camera->latency_ns = latency_ms * NS_PER_MS;
    return camera;
}

static void begin(struct rig *r, uint8_t settings)
{
    static struct codec *codec;

    if (!codec) {
        must(codec_new(&codec, NULL, 0) == 0);
        must(__sanitizer_install_malloc_and_free_hooks(on_malloc, on_free) > 0);
    }
    memset(r, 0, sizeof *r);
    memset(&mark, 0, sizeof mark);
    shown.any = before.any = false;
    r->codec = codec;
    r->latency_ns = settings & 2 ? 8 * NS_PER_MS : 0;
    r->camera = new_camera(settings & 2 ? 8 : 0);
    r->one_size = settings & 4;
    camera_declare(r->camera, settings & 1 ? 30 : 0, &r->armed);
    if (r->one_size)
        camera_expect(r->camera, WIDTH, HEIGHT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rig r;

    if (size == 0)
        return 0;
    begin(&r, *data);
    for (data++, size--; size > 0;) {
        enum op op = *data++ % OPS;

        if (--size < length[op])
            break;
        size_t n = tail(op, data, size - length[op]);
        record(&r, op, data, n);
        data += length[op] + n;
        size -= length[op] + n;
    }
    return 0;
}
