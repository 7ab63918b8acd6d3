// One camera from message to pixels: decoders against the pixels that went in, everything
// a JPEG can be but good, and the hand-over between threads.
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
};

static int setup(void **state)
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

static int teardown(void **state)
{
    struct fixture *f = *state;

    camera_stop(f->camera);
    free(f);
    return 0;
}

static size_t make_jpeg(uint8_t *out, size_t capacity, int pixel_format, int subsampling,
                        int flags)
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

static size_t good_jpeg(uint8_t *out, size_t capacity)
{
    return make_jpeg(out, capacity, TJPF_RGB, TJSAMP_420, 0);
}

static void set_stamp(const struct fixture *f, Google__Protobuf__Timestamp *s)
{
    google__protobuf__timestamp__init(s);
    if (f->stamp_ms > 0) {
        s->seconds = STAMP_S + f->stamp_ms / 1000;
        s->nanos = (int32_t)(f->stamp_ms % 1000 * 1000000);
    }
}

static void park_jpeg(struct fixture *f, uint8_t *jpeg, size_t size)
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
    camera_park(f->camera, NULL, f->message, f->size, f->received_ns);
}

static void park_raw(struct fixture *f, const char *encoding, uint32_t channels,
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
    camera_park(f->camera, NULL, f->message, f->size, f->received_ns);
}

// One grey, so that equal numbers are equal contents.
static void park_grey(struct fixture *f, int grey)
{
    static uint8_t bytes[H * W];

    memset(bytes, grey, sizeof bytes);
    park_raw(f, "mono8", 1, 0, bytes);
}

static int ask(struct fixture *f, struct policy_image *image, ns_t *capture_ns)
{
    camera_request(f->camera);
    return camera_wait(f->camera, WAIT, image, capture_ns);
}

// Largest difference from the picture, or from its red in all three channels.
static int worst(const uint8_t *rgb, bool grey)
{
    int most = 0;

    for (int i = 0; i < H * W * 3; i++) {
        int want = (&picture[0][0][0])[grey ? i / 3 * 3 : i];

        most = abs(rgb[i] - want) > most ? abs(rgb[i] - want) : most;
    }
    return most;
}

static void test_raw_encodings(void **state)
{
    struct fixture *f = *state;
    static uint8_t bytes[H * (3 * W + 5)];
    const struct {
        const char *name;
        uint32_t channels;
        int at[3];
    } kind[] = {{"rgb8", 3, {0, 1, 2}}, {"bgr8", 3, {2, 1, 0}}, {"mono8", 1, {0, 0, 0}}};

    for (int k = 0; k < 3; k++)
        for (uint32_t pad = 0; pad <= 5; pad += 5) {
            struct policy_image image;
            ns_t capture;

            memset(bytes, 0xee, sizeof bytes);
            for (int y = 0; y < H; y++)
                for (int x = 0; x < W; x++)
                    for (uint32_t c = 0; c < kind[k].channels; c++)
                        bytes[(uint32_t)y * (W * kind[k].channels + pad) +
                              (uint32_t)x * kind[k].channels + c] =
                            picture[y][x][kind[k].at[c]];
            f->received_ns += NS_PER_MS;
            park_raw(f, kind[k].name, kind[k].channels, pad, bytes);
            assert_int_equal(ask(f, &image, &capture), 0);
            assert_int_equal(image.width, W);
            assert_int_equal(image.height, H);
            assert_int_equal(image.stride, 3 * W);
            assert_int_equal(capture, f->received_ns);
            assert_int_equal(worst(image.rgb, kind[k].channels == 1), 0);
        }
    assert_int_equal(f->mark.received, 6);
    assert_int_equal(f->mark.refused + f->mark.corrupt + f->mark.duplicate, 0);
}

static void test_jpeg_kinds(void **state)
{
    struct fixture *f = *state;
    const int sampling[] = {TJSAMP_444, TJSAMP_422, TJSAMP_420, TJSAMP_GRAY};
    uint8_t jpeg[32 * 1024];

    for (int i = 0; i < 4; i++) {
        bool grey = sampling[i] == TJSAMP_GRAY;
        size_t n =
            make_jpeg(jpeg, sizeof jpeg, grey ? TJPF_GRAY : TJPF_RGB, sampling[i], 0);
        struct policy_image image;
        ns_t capture;

        park_jpeg(f, jpeg, n);
        assert_int_equal(ask(f, &image, &capture), 0);
        assert_true(worst(image.rgb, grey) <= 12);
        assert_true(worst(image.rgb, !grey) > 12);
    }
}

static void test_no_frame_yet(void **state)
{
    struct fixture *f = *state;
    struct policy_image image;
    ns_t capture;

    assert_int_equal(ask(f, &image, &capture), -ENODATA);
    assert_int_equal(f->mark.capture_ns, 0);
}

static void test_newest_wins_and_stays(void **state)
{
    struct fixture *f = *state;
    static uint8_t bytes[H * W];
    struct policy_image image;
    ns_t capture;

    for (int i = 1; i <= 50; i++) {
        memset(bytes, i, sizeof bytes);
        f->received_ns = i * NS_PER_MS;
        park_raw(f, "mono8", 1, 0, bytes);
    }
    for (int again = 0; again < 3; again++) { // no newer one: the same again
        assert_int_equal(ask(f, &image, &capture), 0);
        assert_int_equal(capture, 50 * NS_PER_MS);
        assert_int_equal(image.rgb[0], 50);
    }
    // Parking does not touch the pixels in use; the next request brings them.
    memset(bytes, 51, sizeof bytes);
    f->received_ns = 51 * NS_PER_MS;
    park_raw(f, "mono8", 1, 0, bytes);
    assert_int_equal(image.rgb[0], 50);
    assert_int_equal(f->mark.capture_ns, 51 * NS_PER_MS);
    assert_int_equal(ask(f, &image, &capture), 0);
    assert_int_equal(image.rgb[H * W * 3 - 1], 51);
    assert_int_equal(f->mark.received, 51);
}

static void test_duplicates_are_not_decoded(void **state)
{
    struct fixture *f = *state;
    static uint8_t bytes[H * W];
    struct policy_image image;
    ns_t capture;

    f->stamp_ms = 100;
    park_raw(f, "mono8", 1, 0, bytes);
    assert_int_equal(ask(f, &image, &capture), 0);
    assert_int_equal(capture, NS_PER_S);
    memset(bytes, 9, sizeof bytes); // a frozen camera, whatever its pixels
    for (int i = 0; i < 5; i++) {
        f->received_ns += 33 * NS_PER_MS;
        park_raw(f, "mono8", 1, 0, bytes);
    }
    assert_int_equal(f->mark.duplicate, 5);
    assert_int_equal(f->mark.received, 1);
    assert_int_equal(f->mark.capture_ns, NS_PER_S); // and it ages
    assert_int_equal(ask(f, &image, &capture), 0);
    assert_int_equal(capture, NS_PER_S);
    assert_int_equal(image.rgb[0], 0);
    f->stamp_ms = 50; // older
    park_raw(f, "mono8", 1, 0, bytes);
    assert_int_equal(f->mark.out_of_order, 1);
    assert_int_equal(f->mark.refused, 0);
    assert_int_equal(f->mark.duplicate, 5);
    assert_int_equal(f->mark.received, 1);
    assert_int_equal(f->mark.capture_ns, NS_PER_S);
}

static void test_latency_is_taken_off(void **state)
{
    struct fixture *f = *state;
    struct camera_mark mark = {0};
    static uint8_t bytes[H * W];
    struct policy_image image;
    ns_t capture;

    camera_stop(f->camera);
    assert_int_equal(camera_start(&f->camera, "a camera with a long name", &mark, 12.5),
                     0);
    park_raw(f, "mono8", 1, 0, bytes);
    assert_int_equal(ask(f, &image, &capture), 0);
    assert_int_equal(capture, NS_PER_S - 12500000);
    assert_int_equal(mark.capture_ns, capture);
    assert_int_equal(mark.received_ns, NS_PER_S);
}

static void test_refused_messages(void **state)
{
    struct fixture *f = *state;
    uint8_t jpeg[32 * 1024];
    size_t n = make_jpeg(jpeg, sizeof jpeg, TJPF_RGB, TJSAMP_420, TJFLAG_PROGRESSIVE);

    camera_park(f->camera, NULL, jpeg, 0, 1);
    assert_int_equal(camera_last_refusal(f->camera), CODEC_EMPTY);
    camera_park(f->camera, NULL, jpeg, n, 1); // not a protobuf message
    assert_int_equal(camera_last_refusal(f->camera), CODEC_UNPARSABLE);
    park_jpeg(f, jpeg, n);
    assert_int_equal(camera_last_refusal(f->camera), CODEC_BAD_FORMAT);
    n = good_jpeg(jpeg, sizeof jpeg);
    for (size_t i = 0; i + 9 < n; i++) // 65535 x 65535
        if (jpeg[i] == 0xff && jpeg[i + 1] == 0xc0)
            memset(jpeg + i + 5, 0xff, 4);
    park_jpeg(f, jpeg, n);
    assert_int_equal(camera_last_refusal(f->camera), CODEC_BAD_SIZE);
    assert_int_equal(f->mark.refused, 4);
    assert_int_equal(f->mark.received, 0);
}

// A corrupt frame after a good one: counted, the good one stays, and the next good one
// comes.
static void test_corrupt_keeps_the_last_good(void **state)
{
    struct fixture *f = *state;
    uint8_t jpeg[32 * 1024];
    size_t n = good_jpeg(jpeg, sizeof jpeg);
    struct policy_image image;
    ns_t capture;

    for (int round = 0; round < 3; round++) {
        f->received_ns = (2 * round + 1) * NS_PER_S;
        park_jpeg(f, jpeg, n);
        assert_int_equal(ask(f, &image, &capture), 0);
        assert_int_equal(capture, (2 * round + 1) * NS_PER_S);
        f->received_ns += NS_PER_S;
        park_jpeg(f, jpeg, n * 2 / 3);
        assert_int_equal(ask(f, &image, &capture), 0);
        assert_int_equal(capture, (2 * round + 1) * NS_PER_S);
        assert_true(worst(image.rgb, false) <= 12);
        assert_int_equal(f->mark.corrupt, round + 1);
    }
}

#define EVENTUALLY(condition)                              \
    do {                                                   \
        for (int t_ = 0; !(condition) && t_ < 5000; t_++)  \
            clock_sleep_until(clock_now_ns() + NS_PER_MS); \
        if (!(condition))                                  \
            fail_msg("never: %s", #condition);             \
    } while (0)

// After a corrupt frame each newer one is decoded though nobody asks: the count in a row
// goes on, and ends with the first good frame, after which frames wait to be asked for.
static void test_corrupt_in_a_row(void **state)
{
    struct fixture *f = *state;
    uint8_t jpeg[32 * 1024];
    size_t n = good_jpeg(jpeg, sizeof jpeg);
    struct policy_image image, before;
    ns_t capture;

    park_jpeg(f, jpeg, n);
    assert_int_equal(ask(f, &before, &capture), 0);
    for (uint32_t round = 0; round < 20; round++) {
        f->received_ns += NS_PER_S;
        park_jpeg(f, jpeg, n * 2 / 3);
        if (round == 0) {
            clock_sleep_until(clock_now_ns() + 20 * NS_PER_MS);
            assert_int_equal(f->mark.corrupt_in_a_row, 0); // nobody has looked
            assert_int_equal(ask(f, &image, &capture), 0);
            assert_ptr_equal(image.rgb, before.rgb);
        }
        EVENTUALLY(f->mark.corrupt_in_a_row == round + 1);
        assert_int_equal(f->mark.corrupt, round + 1);
        assert_true(worst(before.rgb, false) <= 12); // stays put
    }
    for (int i = 0; i < 3; i++) {
        f->received_ns += NS_PER_S;
        park_jpeg(f, jpeg, n); // the first is decoded unasked, the others are not
        EVENTUALLY(f->mark.corrupt_in_a_row == 0);
        clock_sleep_until(clock_now_ns() + 5 * NS_PER_MS);
        assert_true(worst(before.rgb, false) <= 12);
    }
    assert_int_equal(ask(f, &image, &capture), 0);
    assert_int_equal(capture, f->received_ns);
    assert_true(worst(image.rgb, false) <= 12);
    assert_int_equal(f->mark.corrupt, 20);
    assert_int_equal(f->mark.received, 24);
}

// The same before the first good frame, and with every request answered meanwhile.
static void test_corrupt_from_the_start(void **state)
{
    struct fixture *f = *state;
    uint8_t jpeg[32 * 1024];
    size_t n = good_jpeg(jpeg, sizeof jpeg);
    struct policy_image image;
    ns_t capture;

    for (uint32_t round = 1; round <= 6; round++) {
        f->received_ns += NS_PER_S;
        park_jpeg(f, jpeg, n - 20);
        assert_int_equal(ask(f, &image, &capture), -ENODATA);
        assert_int_equal(ask(f, &image, &capture),
                         -ENODATA); // the same is not counted twice
        assert_int_equal(f->mark.corrupt_in_a_row, round);
    }
    park_jpeg(f, jpeg, n);
    EVENTUALLY(f->mark.corrupt_in_a_row == 0);
    assert_int_equal(ask(f, &image, &capture), 0);
    assert_int_equal(capture, f->received_ns);
}

static void test_refusals_are_explained(void **state)
{
    struct fixture *f = *state;
    uint8_t jpeg[32 * 1024];
    size_t n = make_jpeg(jpeg, sizeof jpeg, TJPF_RGB, TJSAMP_420, TJFLAG_PROGRESSIVE);
    char text[CODEC_WHY_MAX];
    struct codec *codec;

    camera_last_refusal_text(f->camera, text);
    assert_string_equal(text, "");
    park_jpeg(f, jpeg, n); // without a codec: the verdict's name
    camera_last_refusal_text(f->camera, text);
    assert_string_equal(text, "unknown format");
    assert_int_equal(codec_new(&codec, NULL, 0), 0);
    camera_park(f->camera, codec, f->message, f->size, 1);
    camera_last_refusal_text(f->camera, text);
    assert_string_equal(text, "progressive JPEG is not read: encode baseline");
    f->stamp_ms = 9000;
    n = good_jpeg(jpeg, sizeof jpeg);
    park_jpeg(f, jpeg, n);
    f->stamp_ms = 1000;
    park_jpeg(f, jpeg, n);
    camera_last_refusal_text(f->camera, text);
    assert_string_equal(text, "bad stamp");
    camera_park(f->camera, codec, f->message, f->size, f->received_ns);
    camera_last_refusal_text(f->camera, text);
    assert_string_equal(
        text, "its stamp is 8000 ms before the last one: stamps must go forward");
    camera_refuse(f->camera, CODEC_UNPARSABLE, "because");
    camera_last_refusal_text(f->camera, text);
    assert_string_equal(text, "because");
    assert_int_equal(camera_last_refusal(f->camera), CODEC_UNPARSABLE);
    codec_free(codec);
}

static enum codec_verdict decode_bytes(const uint8_t *data, size_t size, uint8_t *rgb)
{
    uint8_t *exact = malloc(size ? size : 1); // its end is the heap's end
    struct codec_frame f = {.format = CODEC_JPEG, .data = exact, .size = size};
    enum codec_verdict v;
    int w, h;

    memcpy(exact, data, size);
    v = jpeg_header(exact, size, &f.width, &f.height);
    if (v == CODEC_OK)
        v = camera_decode(&f, rgb, 4u * W * 4 * H * 3, &w, &h);
    free(exact);
    return v;
}

static void test_every_truncation_is_refused(void **state)
{
    uint8_t jpeg[32 * 1024], *rgb = malloc(4u * W * 4 * H * 3);
    size_t n = good_jpeg(jpeg, sizeof jpeg);

    (void)state;
    for (size_t cut = 0; cut < n; cut++)
        assert_int_not_equal(decode_bytes(jpeg, cut, rgb), CODEC_OK);
    assert_int_equal(decode_bytes(jpeg, n, rgb), CODEC_OK);
    free(rgb);
}

// What a plain libjpeg-turbo says of the same bytes: warning or error.
static bool complains(const uint8_t *data, size_t size)
{
    static uint8_t rgb[W * H * 3];
    tjhandle tj = tjInitDecompress();
    int w, h, sampling, colours;
    bool bad = tjDecompressHeader3(tj, data, size, &w, &h, &sampling, &colours) != 0;

    if (!bad && w == W && h == H)
        bad = tjDecompress2(tj, data, size, rgb, w, 0, h, TJPF_RGB, 0) != 0;
    tjDestroy(tj);
    return bad;
}

static void test_bit_flips(void **state)
{
    uint8_t jpeg[32 * 1024], *rgb = malloc(4u * W * 4 * H * 3);
    size_t n = good_jpeg(jpeg, sizeof jpeg);
    uint64_t random = 3;
    int refused = 0, warned = 0;

    (void)state;
    for (int round = 0; round < 1000; round++) {
        size_t at;
        uint8_t bit;

        random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        at = (size_t)(random >> 33) % n;
        bit = (uint8_t)(1u << (random >> 61));
        jpeg[at] ^= bit;
        if (decode_bytes(jpeg, n, rgb) != CODEC_OK)
            refused++;
        else
            assert_false(complains(jpeg, n));
        warned += complains(jpeg, n);
        jpeg[at] ^= bit;
    }
    assert_true(warned > 100 && refused >= warned && refused < 1000);
    free(rgb);
}

static void test_decode_capacity(void **state)
{
    uint8_t jpeg[32 * 1024], rgb[W * H * 3];
    struct codec_frame f = {.format = CODEC_JPEG, .data = jpeg};
    int w, h;

    (void)state;
    f.size = good_jpeg(jpeg, sizeof jpeg);
    assert_int_equal(jpeg_header(jpeg, f.size, &f.width, &f.height), CODEC_OK);
    assert_int_equal(camera_decode(&f, rgb, sizeof rgb - 1, &w, &h), CODEC_BAD_SIZE);
    assert_int_equal(camera_decode(&f, rgb, sizeof rgb, &w, &h), CODEC_OK);
    assert_int_equal(w, W);
    assert_int_equal(h, H);
    f.width = W - 1; // a header that says another size than the caller
    assert_int_equal(camera_decode(&f, rgb, sizeof rgb, &w, &h), CODEC_BAD_FORMAT);
}

static void test_wait_times_out(void **state)
{
    struct fixture *f = *state;
    struct policy_image image;
    uint8_t *jpeg = malloc(32 * 1024);
    size_t n = good_jpeg(jpeg, 32 * 1024);
    ns_t capture, before;
    int late = 0;

    park_jpeg(f, jpeg, n);
    assert_int_equal(ask(f, &image, &capture), 0);
    for (int i = 0; i < 200; i++) {
        park_jpeg(f, jpeg, n);
        camera_request(f->camera);
        before = clock_now_ns();
        late += camera_wait(f->camera, 0, &image, &capture) == -ETIMEDOUT;
        assert_true(clock_now_ns() - before < NS_PER_S);
    }
    assert_true(late > 0); // a wait of nothing is shorter than a decode
    assert_int_equal(camera_wait(f->camera, WAIT, &image, &capture), 0);
    free(jpeg);
}

// Bus and infer at full speed against each other: no torn picture, never back in time.
static _Atomic bool parker_stop;
static void *parker(void *arg)
{
    struct fixture *f = arg;
    static uint8_t bytes[H * W];

    for (int i = 1; !parker_stop; i++) {
        memset(bytes, i % 251, sizeof bytes);
        f->received_ns = i;
        park_raw(f, "mono8", 1, 0, bytes);
        if (i % 8 == 0)
            sched_yield();
    }
    return NULL;
}

static void test_threads(void **state)
{
    struct fixture *f = *state;
    pthread_t thread;
    ns_t last = 0;
    int fresh = 0;

    parker_stop = false;
    assert_int_equal(pthread_create(&thread, NULL, parker, f), 0);
    for (int i = 0; i < 2000; i++) {
        struct policy_image image;
        ns_t capture;

        if (ask(f, &image, &capture) == -ENODATA)
            continue;
        assert_true(capture >= last);
        fresh += capture > last;
        last = capture;
        for (int k = 0; k < H * W * 3; k++)
            if (image.rgb[k] != (uint8_t)(capture % 251))
                fail();
    }
    parker_stop = true;
    pthread_join(thread, NULL);
    assert_true(fresh > 10);
}

// ---- in virtual time: the same camera without a thread ----------------------------------

#define FRAME (40 * NS_PER_MS) // 25 Hz

static int setup_virtual(void **state)
{
    int r = setup(state);
    struct fixture *f = *state;

    camera_stop(f->camera);
    f->camera = NULL;
    return r ? r : camera_new(&f->camera, &f->mark, 0);
}

// The next frame in time, stamped by_ms ahead of our clock.
static void next_grey(struct fixture *f, int grey, int64_t by_ms)
{
    f->received_ns += FRAME;
    f->stamp_ms = 10000000 + f->received_ns / NS_PER_MS + by_ms;
    park_grey(f, grey);
}

static void test_without_a_thread(void **state)
{
    struct fixture *f = *state;
    uint8_t jpeg[32 * 1024];
    size_t n = good_jpeg(jpeg, sizeof jpeg);
    struct policy_image image, before;
    ns_t capture;

    assert_int_equal(camera_wait(f->camera, -1, &image, &capture), -ENODATA);
    camera_request(f->camera);
    assert_int_equal(camera_wait(f->camera, 0, &image, &capture), -ENODATA);
    park_jpeg(f, jpeg, n);
    assert_int_equal(camera_wait(f->camera, 0, &image, &capture), -ENODATA);
    camera_request(f->camera);
    assert_int_equal(camera_wait(f->camera, 0, &before, &capture), 0);
    assert_int_equal(capture, NS_PER_S);
    assert_true(worst(before.rgb, false) <= 12);
    f->received_ns += FRAME;
    park_jpeg(f, jpeg, n * 2 / 3);
    assert_int_equal(f->mark.corrupt, 0); // nobody has asked
    camera_request(f->camera);
    assert_int_equal(f->mark.corrupt_in_a_row, 1);
    for (uint32_t i = 2; i < 9; i++) { // and now none need ask
        f->received_ns += FRAME;
        park_jpeg(f, jpeg, n * 2 / 3);
        assert_int_equal(f->mark.corrupt_in_a_row, i);
    }
    assert_int_equal(camera_wait(f->camera, 0, &image, &capture), 0);
    assert_ptr_equal(image.rgb, before.rgb); // the good one stays
    assert_int_equal(capture, NS_PER_S);
    assert_true(worst(before.rgb, false) <= 12);
    f->received_ns += FRAME;
    park_jpeg(f, jpeg, n);
    assert_int_equal(f->mark.corrupt_in_a_row, 0);
    f->received_ns += FRAME;
    park_grey(f, 7); // waits to be asked for
    assert_true(worst(before.rgb, false) <= 12);
    camera_request(f->camera);
    assert_int_equal(camera_wait(f->camera, 0, &image, &capture), 0);
    assert_int_equal(capture, f->received_ns);
    assert_int_equal(image.rgb[0], 7);
}

// Frames with the content of the one before: counted in a row and in all; received all the same.
static void test_same_content(void **state)
{
    struct fixture *f = *state;
    struct camera_mark *m = &f->mark;
    ns_t changed;

    for (int round = 1; round <= 3; round++) {
        next_grey(f, round, 0);
        changed = f->received_ns;
        assert_int_equal(m->same_in_a_row, 0);
        assert_int_equal(m->changed_ns, changed);
        for (uint32_t i = 1; i <= BOARD_STUCK + 1; i++) {
            next_grey(f, round, 0);
            assert_int_equal(m->same_in_a_row, i); // 9, 10, 11: the loop's bound is 10
            assert_int_equal(m->changed_ns, changed);
            assert_int_equal(m->received_ns, f->received_ns);
            assert_int_equal(m->capture_ns, f->received_ns);
        }
    }
    assert_int_equal(m->same, 3 * (BOARD_STUCK + 1));
    assert_int_equal(m->received, 3 * (BOARD_STUCK + 2));
    // A duplicate, or a refused one, says nothing of the content.
    park_grey(f, 9);
    camera_park(f->camera, NULL, "", 0, f->received_ns);
    assert_int_equal(m->same_in_a_row, BOARD_STUCK + 1);
    next_grey(f, 3, 0);
    assert_int_equal(m->same_in_a_row, BOARD_STUCK + 2);
}

// A still scene compressed again and again has equal bytes; one grey step in it does not. Of a
// raw frame of up to CONTENT_SAMPLE bytes every one counts.
static void test_content_of_jpeg_and_raw(void **state)
{
    struct fixture *f = *state;
    static uint8_t bytes[H * W];
    uint8_t jpeg[32 * 1024];
    size_t n;

    for (uint32_t i = 0; i < 20; i++) {
        n = good_jpeg(jpeg, sizeof jpeg);
        f->received_ns += FRAME;
        park_jpeg(f, jpeg, n);
        assert_int_equal(f->mark.same_in_a_row, i);
    }
    picture[H / 2][W / 2][1] = (uint8_t)(picture[H / 2][W / 2][1] + 40);
    n = good_jpeg(jpeg, sizeof jpeg);
    park_jpeg(f, jpeg, n);
    assert_int_equal(f->mark.same_in_a_row, 0);
    park_raw(f, "mono8", 1, 0, bytes);
    for (size_t i = 0; i < sizeof bytes; i += 7) {
        park_raw(f, "mono8", 1, 0, bytes);
        assert_int_equal(f->mark.same_in_a_row, 1);
        bytes[i]++;
        park_raw(f, "mono8", 1, 0, bytes);
        assert_int_equal(f->mark.same_in_a_row, 0);
    }
}

static void test_order_in_virtual_time(void **state)
{
    struct fixture *f = *state;
    struct camera_mark *m = &f->mark;

    next_grey(f, 1, 0);
    next_grey(f, 2, 0);
    next_grey(f, 3, -60); // older than the one before
    assert_int_equal(m->out_of_order, 1);
    assert_int_equal(m->capture_ns, f->received_ns - FRAME);
    assert_int_equal(m->refused + m->refused_in_a_row, 0);
    next_grey(f, 4, 0);
    assert_int_equal(m->received, 3);
    assert_int_equal(m->capture_ns, f->received_ns);
    next_grey(f, 5, 50); // a step, told once
    next_grey(f, 6, 50);
    assert_int_equal(m->clock_jumps, 1);
    assert_int_equal(m->capture_ns, f->received_ns);
}

// While the arm may move a clock that jumped is refused for ever; else three agree.
static void test_clock_of_a_camera(void **state)
{
    struct fixture *f = *state;
    struct camera_mark *m = &f->mark;
    _Atomic bool armed = true;
    const int64_t by[] = {501, -501, 3600000, -3600000};
    int64_t clock = 0;
    uint64_t refused = 0, received = 0;

    camera_declare(f->camera, 25, &armed);
    for (size_t i = 0; i < sizeof by / sizeof *by; i++) {
        for (int k = 0; k < 5; k++)
            next_grey(f, k, clock);
        received += 5;
        clock += by[i];
        armed = true;
        for (uint32_t k = 1; k <= 300; k++) {
            next_grey(f, 0, clock);
            assert_int_equal(m->refused_in_a_row, k);
        }
        refused += 300;
        assert_int_equal(camera_last_refusal(f->camera), CODEC_BAD_STAMP);
        assert_int_equal(m->received, received);
        assert_int_equal(m->refused, refused);
        armed = false;
        next_grey(f, 0, clock); // they have agreed all along
        assert_int_equal(m->received, ++received);
        assert_int_equal(m->refused_in_a_row, 0);
        assert_int_equal(m->capture_ns, f->received_ns);
        clock += 2 * by[i];
        for (int k = 0; k < 3; k++) { // disarmed the third is believed
            assert_int_equal(m->received, received);
            next_grey(f, k, clock);
        }
        assert_int_equal(m->received, ++received);
        assert_int_equal(m->refused, refused += 2);
    }
    assert_int_equal(m->clock_jumps, 0);
}

// Nobody said that it may never: disarmed.
static void test_undeclared(void **state)
{
    struct fixture *f = *state;

    next_grey(f, 0, 0);
    for (int i = 0; i < 200; i++)
        next_grey(f, i, 3600000);
    assert_int_equal(f->mark.refused, 2);
    assert_int_equal(f->mark.received, 199);
    assert_false(f->mark.slow);
}

static void test_refused_in_a_row(void **state)
{
    struct fixture *f = *state;

    for (uint32_t i = 1; i <= 5; i++) {
        assert_false(camera_park(f->camera, NULL, "", 0, 1));
        assert_int_equal(f->mark.refused_in_a_row, i);
    }
    next_grey(f, 1, 0);
    assert_int_equal(f->mark.refused_in_a_row, 0);
    assert_int_equal(f->mark.refused, 5);
    park_grey(f, 1); // a duplicate is neither
    camera_refuse(f->camera, CODEC_UNPARSABLE, "x");
    park_grey(f, 1);
    assert_int_equal(f->mark.refused_in_a_row, 1);
    assert_int_equal(f->mark.duplicate, 2);
}

static void test_slow_camera(void **state)
{
    struct fixture *f = *state;

    camera_declare(f->camera, 25, NULL);
    for (int i = 0; i < 200; i++) {
        next_grey(f, i, 0);
        f->received_ns += FRAME * 9 / 91; // 91 %
        assert_false(f->mark.slow);
    }
    for (int i = 0; i < 101; i++) {
        next_grey(f, i, 0);
        f->received_ns += FRAME * 11 / 89; // 89 %
    }
    assert_true(f->mark.slow);
    // Every second one is superseded: they came all the same.
    for (int i = 0; i < 60; i++) {
        camera_supersede(f->camera, 1);
        f->received_ns += FRAME;
        next_grey(f, i, 0);
    }
    assert_false(f->mark.slow);
}

#define VIRTUAL(name) cmocka_unit_test_setup_teardown(name, setup_virtual, teardown)
#define TEST(name)    cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_raw_encodings),
        TEST(test_jpeg_kinds),
        TEST(test_no_frame_yet),
        TEST(test_newest_wins_and_stays),
        TEST(test_duplicates_are_not_decoded),
        TEST(test_latency_is_taken_off),
        TEST(test_refused_messages),
        TEST(test_corrupt_keeps_the_last_good),
        TEST(test_corrupt_in_a_row),
        TEST(test_corrupt_from_the_start),
        TEST(test_refusals_are_explained),
        TEST(test_every_truncation_is_refused),
        TEST(test_bit_flips),
        TEST(test_decode_capacity),
        TEST(test_wait_times_out),
        TEST(test_threads),
        VIRTUAL(test_raw_encodings),
        VIRTUAL(test_jpeg_kinds),
        VIRTUAL(test_newest_wins_and_stays),
        VIRTUAL(test_without_a_thread),
        VIRTUAL(test_same_content),
        VIRTUAL(test_content_of_jpeg_and_raw),
        VIRTUAL(test_order_in_virtual_time),
        VIRTUAL(test_clock_of_a_camera),
        VIRTUAL(test_undeclared),
        VIRTUAL(test_refused_in_a_row),
        VIRTUAL(test_slow_camera),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
