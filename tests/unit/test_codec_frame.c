// Camera messages: our reader against protobuf-c on the same bytes, and everything wrong.
#include "daemon/camera.h"
#include "daemon/codec.h"
#include "foxglove/CompressedImage.pb-c.h"
#include "foxglove/RawImage.pb-c.h"
#include "tests/unit/wire_bytes.h"

static int setup(void **state)
{
    *state = calloc(1, sizeof(struct bytes));
    return *state ? 0 : -1;
}

static int teardown(void **state)
{
    free(*state);
    return 0;
}

static void put_stamp(struct bytes *b)
{
    Google__Protobuf__Timestamp s = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
    uint8_t out[32];

    s.seconds = STAMP_S;
    s.nanos = 9;
    put_field(b, 1, out, google__protobuf__timestamp__pack(&s, out));
}

static void raw_message(struct bytes *b, uint32_t width, uint32_t height,
                        const char *encoding, uint32_t step, size_t size)
{
    static const uint8_t pixels[64 * 1024];

    b->size = 0;
    put_stamp(b);
    put_fixed32(b, 2, width);
    put_fixed32(b, 3, height);
    put_field(b, 4, encoding, strlen(encoding));
    put_fixed32(b, 5, step);
    put_field(b, 6, pixels, size);
    put_field(b, 7, "optical", 7);
}

// A JPEG's markers up to its pixels: enough for the header check.
static size_t jpeg_bytes(uint8_t *out, uint8_t sof, uint8_t bits, int width, int height,
                         uint8_t components)
{
    const uint8_t head[] = {0xff,
                            0xd8,
                            0xff,
                            0xe0,
                            0,
                            4,
                            'x',
                            'y',
                            0xff,
                            sof,
                            0,
                            (uint8_t)(8 + 3 * components),
                            bits,
                            (uint8_t)(height >> 8),
                            (uint8_t)height,
                            (uint8_t)(width >> 8),
                            (uint8_t)width,
                            components};
    size_t n = sizeof head;

    memcpy(out, head, n);
    memset(out + n, 1, 3u * components);
    n += 3u * components;
    memcpy(out + n, (uint8_t[]){0xff, 0xda, 0, 4, components, 0, 0, 0}, 8);
    return n + 8;
}

static void jpeg_message(struct bytes *b, const char *format, const uint8_t *data,
                         size_t size)
{
    b->size = 0;
    put_stamp(b);
    put_field(b, 2, data, size);
    put_field(b, 3, format, strlen(format));
    put_field(b, 4, "optical", 7);
}

static enum codec_verdict frame(const struct bytes *b, struct codec_frame *out)
{
    uint8_t *exact = malloc(b->size ? b->size : 1);
    enum codec_verdict v;

    memcpy(exact, b->data, b->size);
    v = codec_frame(NULL, exact, b->size, out);
    if (v == CODEC_OK) {
        assert_true(out->data >= exact && out->data + out->size <= exact + b->size);
        out->data = b->data + (out->data - exact);
    }
    free(exact);
    return v;
}

static void test_frame_raw(void **state)
{
    struct bytes *b = *state;
    struct codec_frame out;
    const struct {
        const char *encoding;
        int format;
        uint32_t channels;
    } good[] = {
        {"rgb8", CODEC_RGB8, 3}, {"bgr8", CODEC_BGR8, 3}, {"mono8", CODEC_MONO8, 1}};

    for (int i = 0; i < 3; i++)
        for (uint32_t pad = 0; pad < 3; pad++) {
            uint32_t step = 7 * good[i].channels + pad;

            raw_message(b, 7, 5, good[i].encoding, step, step * 5);
            assert_int_equal(frame(b, &out), CODEC_OK);
            assert_int_equal(out.format, good[i].format);
            assert_int_equal(out.width, 7);
            assert_int_equal(out.height, 5);
            assert_int_equal(out.step, step);
            assert_int_equal(out.size, step * 5);
            assert_int_equal(out.stamp_wall_ns, STAMP_S * NS_PER_S + 9);
        }
}

static void test_frame_raw_refused(void **state)
{
    struct bytes *b = *state;
    struct codec_frame out;
    const struct {
        uint32_t width, height;
        const char *encoding;
        uint32_t step;
        size_t size;
        enum codec_verdict want;
    } bad[] = {
        {0, 5, "rgb8", 21, 105, CODEC_BAD_SIZE},
        {7, 0, "rgb8", 21, 105, CODEC_BAD_SIZE},
        {7, 5, "rgb8", 20, 100, CODEC_BAD_SIZE}, // step shorter than a row
        {7, 5, "rgb8", 21, 104, CODEC_BAD_SIZE}, // a byte missing
        {7, 5, "rgb8", 21, 106, CODEC_BAD_SIZE}, // a byte too many
        {7, 5, "rgb8", 0, 105, CODEC_BAD_SIZE},
        {CAMERA_MAX_WIDTH + 1, 1, "mono8", CAMERA_MAX_WIDTH + 1, CAMERA_MAX_WIDTH + 1,
         CODEC_BAD_SIZE},
        {1, CAMERA_MAX_HEIGHT + 1, "mono8", 1, CAMERA_MAX_HEIGHT + 1, CODEC_BAD_SIZE},
        {0x55555556, 1, "rgb8", 2, 2, CODEC_BAD_SIZE},     // 3 * width wraps to 2
        {1, 2, "mono8", 0x80000000, 4096, CODEC_BAD_SIZE}, // step * height wraps to 0
        {7, 5, "rgb8", 21, 0, CODEC_EMPTY},
        {7, 5, "rgba8", 28, 140, CODEC_BAD_FORMAT},
        {7, 5, "RGB8", 21, 105, CODEC_BAD_FORMAT},
        {7, 5, "rgb8 ", 21, 105, CODEC_BAD_FORMAT},
        {7, 5, "", 21, 105, CODEC_BAD_FORMAT},
    };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        raw_message(b, bad[i].width, bad[i].height, bad[i].encoding, bad[i].step,
                    bad[i].size);
        assert_int_equal(frame(b, &out), bad[i].want);
    }
    b->size = 0;
    assert_int_equal(frame(b, &out), CODEC_EMPTY);
    assert_int_equal(codec_frame(NULL, b->data, CODEC_FRAME_MAX + 1u, &out),
                     CODEC_TOO_LARGE);
    put_stamp(b); // nothing but a stamp
    assert_int_equal(frame(b, &out), CODEC_EMPTY);
}

static void test_frame_jpeg(void **state)
{
    struct bytes *b = *state;
    struct codec_frame out;
    uint8_t jpeg[64];
    const struct {
        uint8_t sof, bits;
        int width, height;
        uint8_t components;
        enum codec_verdict want;
    } cases[] = {
        {0xc0, 8, 640, 480, 3, CODEC_OK},
        {0xc1, 8, 640, 480, 1, CODEC_OK},
        {0xc0, 8, CAMERA_MAX_WIDTH, CAMERA_MAX_HEIGHT, 3, CODEC_OK},
        {0xc0, 8, CAMERA_MAX_WIDTH + 1, 1, 3, CODEC_BAD_SIZE},
        {0xc0, 8, 1, CAMERA_MAX_HEIGHT + 1, 3, CODEC_BAD_SIZE},
        {0xc0, 8, 65535, 65535, 3, CODEC_BAD_SIZE},
        {0xc0, 8, 640, 0, 3, CODEC_BAD_SIZE},
        {0xc0, 8, 0, 480, 3, CODEC_BAD_SIZE},
        {0xc2, 8, 640, 480, 3, CODEC_BAD_FORMAT},  // progressive
        {0xc3, 8, 640, 480, 3, CODEC_BAD_FORMAT},  // lossless
        {0xc9, 8, 640, 480, 3, CODEC_BAD_FORMAT},  // arithmetic
        {0xc1, 12, 640, 480, 3, CODEC_BAD_FORMAT}, // 12 bits
        {0xc0, 8, 640, 480, 4, CODEC_BAD_FORMAT},  // CMYK
        {0xc0, 8, 640, 480, 2, CODEC_BAD_FORMAT},
        {0xc0, 8, 640, 480, 0, CODEC_BAD_FORMAT},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n = jpeg_bytes(jpeg, cases[i].sof, cases[i].bits, cases[i].width,
                              cases[i].height, cases[i].components);

        jpeg_message(b, "jpeg", jpeg, n);
        assert_int_equal(frame(b, &out), cases[i].want);
        if (cases[i].want != CODEC_OK)
            continue;
        assert_int_equal(out.width, cases[i].width);
        assert_int_equal(out.height, cases[i].height);
        assert_int_equal(out.step, 0);
        assert_int_equal(out.size, n);
        assert_memory_equal(out.data, jpeg, n);
    }
}

static void test_frame_jpeg_refused(void **state)
{
    struct bytes *b = *state;
    struct codec_frame out;
    uint8_t jpeg[64];
    size_t n = jpeg_bytes(jpeg, 0xc0, 8, 64, 48, 3);

    jpeg_message(b, "png", jpeg, n);
    assert_int_equal(frame(b, &out), CODEC_BAD_FORMAT);
    jpeg_message(b, "", jpeg, n);
    assert_int_equal(frame(b, &out), CODEC_BAD_FORMAT);
    jpeg_message(b, "jpeg", jpeg, 0);
    assert_int_equal(frame(b, &out), CODEC_EMPTY);
    jpeg_message(b, "jpeg", (const uint8_t *)"\x89PNG\r\n\x1a\n", 8);
    assert_int_equal(frame(b, &out), CODEC_BAD_FORMAT);
    for (size_t cut = 1; cut < n - 3;
         cut++) { // the last 3 bytes are the scan's and not read
        jpeg_message(b, "jpeg", jpeg, cut);
        assert_int_equal(frame(b, &out), CODEC_BAD_FORMAT);
    }
    jpeg[n - 4] = 1; // first scan of one component of three: there would be more scans
    jpeg_message(b, "jpeg", jpeg, n);
    assert_int_equal(frame(b, &out), CODEC_BAD_FORMAT);
}

static void says(struct codec *c, const struct bytes *b, const char *want)
{
    struct codec_frame out;

    assert_int_not_equal(codec_frame(c, b->data, b->size, &out), CODEC_OK);
    assert_string_equal(codec_why(c), want);
}

static void test_frame_jpg_is_jpeg(void **state)
{
    struct bytes *b = *state;
    struct codec_frame out;
    uint8_t jpeg[64];
    size_t n = jpeg_bytes(jpeg, 0xc0, 8, 64, 48, 3);

    jpeg_message(b, "jpg", jpeg, n);
    assert_int_equal(frame(b, &out), CODEC_OK);
    assert_int_equal(out.format, CODEC_JPEG);
    jpeg_message(b, "jpegs", jpeg, n);
    assert_int_equal(frame(b, &out), CODEC_BAD_FORMAT);
    jpeg_message(b, "jp", jpeg, n);
    assert_int_equal(frame(b, &out), CODEC_BAD_FORMAT);
}

static void test_frame_jpeg_explained(void **state)
{
    struct bytes *b = *state;
    struct codec *c;
    uint8_t jpeg[64];
    const struct {
        uint8_t sof, bits;
        int width;
        uint8_t components;
        const char *want;
    } bad[] = {
        {0xc2, 8, 64, 3, "progressive JPEG is not read: encode baseline"},
        {0xc9, 8, 64, 3,
         "lossless, arithmetic or hierarchical JPEG is not read: encode baseline"},
        {0xc1, 12, 64, 3, "JPEG of 12 bits is not read: encode 8 bits a sample"},
        {0xc0, 8, 64, 4,
         "this JPEG has neither 1 nor 3 components: encode grey or YCbCr"},
        {0xc0, 8, 2000, 3, "2000 x 48 pixels: 1 x 1 to 1920 x 1200 are read"},
    };
    size_t n;

    assert_int_equal(codec_new(&c, NULL, 0), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        n = jpeg_bytes(jpeg, bad[i].sof, bad[i].bits, bad[i].width, 48,
                       bad[i].components);
        jpeg_message(b, "jpeg", jpeg, n);
        says(c, b, bad[i].want);
    }
    n = jpeg_bytes(jpeg, 0xc0, 8, 64, 48, 3);
    jpeg_message(b, "png", jpeg, n);
    says(c, b, "format 'png' is not read: send jpeg");
    jpeg_message(b, "rgb8; jpeg compressed bgr8\n", jpeg, n);
    says(c, b, "format 'rgb8; jpeg compressed bgr8\\x0a' is not read: send jpeg");
    jpeg_message(b, "jpeg", jpeg, n - 9);
    says(c, b, "its JPEG header is broken or cut off: send whole files");
    jpeg_message(b, "jpeg", (const uint8_t *)"\x89PNG\r\n\x1a\n", 8);
    says(c, b, "its data is no JPEG, which begins with FF D8");
    jpeg[n - 4] = 1;
    jpeg_message(b, "jpeg", jpeg, n);
    says(c, b, "JPEG of several scans is not read: encode baseline, interleaved");
    b->size = 0;
    put_field(b, 2, jpeg, n);
    says(c, b, "it has no format: send jpeg");
    codec_free(c);
}

static void test_frame_raw_explained(void **state)
{
    struct bytes *b = *state;
    struct codec *c;
    const struct {
        uint32_t width, height;
        const char *encoding;
        uint32_t step;
        size_t size;
        const char *want;
    } bad[] = {
        {7, 5, "rgba8", 28, 140, "encoding 'rgba8' is not read: rgb8, bgr8, mono8"},
        {7, 5, "", 28, 140, "encoding '' is not read: rgb8, bgr8, mono8"},
        {7, 5, "rgb8", 20, 100, "step 20 is shorter than a row of 7 pixels of 3 bytes"},
        {7, 5, "rgb8", 21, 104, "data has 104 bytes, and step 21 times height 5 is 105"},
        {1, 2, "mono8", 0x80000000, 4096,
         "data has 4096 bytes, and step 2147483648 times height 2 is 4294967296"},
        {0, 5, "rgb8", 21, 105, "0 x 5 pixels: 1 x 1 to 1920 x 1200 are read"},
        {UINT32_MAX, 5, "rgb8", 21, 105,
         "4294967295 x 5 pixels: 1 x 1 to 1920 x 1200 are read"},
        {7, 5, "rgb8", 21, 0, "its data is empty"},
    };

    assert_int_equal(codec_new(&c, NULL, 0), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        raw_message(b, bad[i].width, bad[i].height, bad[i].encoding, bad[i].step,
                    bad[i].size);
        says(c, b, bad[i].want);
    }
    b->size = 0;
    says(c, b, "the message has no bytes");
    put_stamp(b);
    says(c, b, "it has neither data (of a CompressedImage) nor a width (of a RawImage)");
    put(b, "\x7b", 1);
    says(c, b, "neither a foxglove.CompressedImage nor a foxglove.RawImage");
    b->size = 0;
    put_field(b, 1, "\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11);
    says(c, b, "its stamp, 0 s and -1 ns, is no time");
    codec_free(c);
}

// The oracle: what protobuf-c makes of the same bytes, as either message.
static void agree(const struct bytes *b)
{
    struct codec_frame out;
    enum codec_verdict v = frame(b, &out);
    Foxglove__CompressedImage *c;
    Foxglove__RawImage *r;

    if (v != CODEC_OK)
        return;
    if (out.format == CODEC_JPEG) {
        c = foxglove__compressed_image__unpack(NULL, b->size, b->data);
        assert_non_null(c);
        assert_true(strcmp(c->format, "jpeg") == 0 || strcmp(c->format, "jpg") == 0);
        assert_int_equal(c->data.len, out.size);
        assert_memory_equal(c->data.data, out.data, out.size);
        assert_int_equal(
            c->timestamp ? c->timestamp->seconds * NS_PER_S + c->timestamp->nanos : 0,
            out.stamp_wall_ns);
        foxglove__compressed_image__free_unpacked(c, NULL);
        return;
    }
    r = foxglove__raw_image__unpack(NULL, b->size, b->data);
    assert_non_null(r);
    assert_int_equal(r->data.len, out.size);
    assert_memory_equal(r->data.data, out.data, out.size);
    assert_int_equal(r->width, out.width);
    assert_int_equal(r->height, out.height);
    assert_int_equal(r->step, out.step);
    assert_int_equal(r->timestamp ? r->timestamp->seconds * NS_PER_S + r->timestamp->nanos
                                  : 0,
                     out.stamp_wall_ns);
    foxglove__raw_image__free_unpacked(r, NULL);
}

// ... and the other way about: a raw message that protobuf-c and the rules accept is
// accepted.
static void test_frame_packed_by_oracle(void **state)
{
    struct bytes *b = *state;
    static uint8_t pixels[3 * 64 * 48];
    static char encoding[] = "bgr8", format[] = "jpeg", id[] = "camera";
    Google__Protobuf__Timestamp stamp = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
    Foxglove__RawImage r;
    Foxglove__CompressedImage c;
    struct codec_frame out;
    uint8_t jpeg[64];

    foxglove__raw_image__init(&r);
    foxglove__compressed_image__init(&c);
    stamp.seconds = STAMP_S;
    r.timestamp = c.timestamp = &stamp;
    r.width = 64;
    r.height = 48;
    r.step = 192;
    r.encoding = encoding;
    r.frame_id = c.frame_id = id;
    r.data = (ProtobufCBinaryData){sizeof pixels, pixels};
    b->size = foxglove__raw_image__pack(&r, b->data);
    assert_int_equal(frame(b, &out), CODEC_OK);
    assert_int_equal(out.format, CODEC_BGR8);
    agree(b);
    c.format = format;
    c.data = (ProtobufCBinaryData){jpeg_bytes(jpeg, 0xc0, 8, 64, 48, 3), jpeg};
    b->size = foxglove__compressed_image__pack(&c, b->data);
    assert_int_equal(frame(b, &out), CODEC_OK);
    agree(b);
    c.timestamp = NULL;
    b->size = foxglove__compressed_image__pack(&c, b->data);
    assert_int_equal(frame(b, &out), CODEC_OK);
    assert_int_equal(out.stamp_wall_ns, 0);
}

static void small_frame(struct bytes *b, int which)
{
    uint8_t jpeg[64];

    if (which == 0)
        raw_message(b, 4, 3, "rgb8", 12, 36);
    else
        jpeg_message(b, "jpeg", jpeg, jpeg_bytes(jpeg, 0xc0, 8, 64, 48, 3));
}

static void test_frame_truncated(void **state)
{
    struct bytes *b = *state;
    struct codec_frame out;

    for (int which = 0; which < 2; which++) {
        size_t whole;
        int accepted = 0;

        small_frame(b, which);
        whole = b->size;
        for (b->size = 0; b->size <= whole; b->size++) {
            agree(b);
            accepted += frame(b, &out) == CODEC_OK;
        }
        assert_int_equal(accepted, 2); // the whole, and without its last field (frame_id)
    }
}

static void test_frame_mutated(void **state)
{
    struct bytes *b = *state;
    struct codec_frame out;
    int accepted = 0;

    for (int round = 0; round < 40000; round++) {
        small_frame(b, round & 1);
        for (uint32_t k = random32() % 3 + 1; k > 0; k--)
            b->data[random32() % b->size] ^= (uint8_t)(1u << random32() % 8);
        agree(b);
        accepted += frame(b, &out) == CODEC_OK;
    }
    assert_true(accepted > 1000 && accepted < 35000);
}

// Fields in any order and twice: the last counts, and the two halves of a stamp are
// merged, as the format wants it (protobuf-c 1.4.1 keeps only the last half, so it is no
// oracle here).
static void test_frame_doubled_and_reordered(void **state)
{
    struct bytes *b = *state;
    struct codec_frame out;
    uint8_t pixels[36] = {1};

    b->size = 0;
    put_field(b, 6, pixels, 5);
    put_field(b, 6, pixels, 36);
    put_fixed32(b, 5, 12);
    put_field(b, 1, "\x10\x07", 2); // nanos
    put_fixed32(b, 3, 99);
    put_field(b, 4, "mono8", 5);
    put_field(b, 4, "rgb8", 4);
    put_fixed32(b, 3, 3);
    put_fixed32(b, 2, 4);
    put_field(b, 1, "\x08\x05", 2); // seconds
    put(b, (const uint8_t[]){0x78, 1, 0x79, 1, 2, 3,    4, 5, 6, 7, 8,
                             0x7d, 1, 2,    3, 4, 0x82, 1, 2, 0, 0},
        21); // unknown fields of every wire type
    assert_int_equal(frame(b, &out), CODEC_OK);
    assert_int_equal(out.stamp_wall_ns, 5 * NS_PER_S + 7);
    assert_int_equal(out.height, 3);
    put(b, "\x7b\x7c", 2); // a group
    assert_int_equal(frame(b, &out), CODEC_UNPARSABLE);
}

static void test_frame_wire_types(void **state)
{
    struct bytes *b = *state;
    struct codec_frame out;

    // Each known field of both messages once more, with each other wire type.
    for (int which = 0; which < 2; which++)
        for (unsigned field = 1; field <= (which == 0 ? 7 : 4); field++)
            for (unsigned wire = 0; wire < 8; wire++) {
                unsigned own =
                    which == 0 && (field == 2 || field == 3 || field == 5) ? 5 : 2;

                if (wire == own)
                    continue;
                small_frame(b, which);
                put_varint(b, field << 3 | wire);
                put(b, "\x01\x01\x01\x01\x01\x01\x01\x01",
                    wire == 1   ? 8
                    : wire == 5 ? 4
                    : wire == 2 ? 2
                                : 1);
                assert_int_equal(frame(b, &out), CODEC_UNPARSABLE);
            }
    small_frame(b, 0);
    put(b, "\x02\x00", 2); // field 0
    assert_int_equal(frame(b, &out), CODEC_UNPARSABLE);
    b->size = 0;
    put_stamp(b);
    put(b, "\x10\x05", 2); // field 2 as a varint: neither message
    assert_int_equal(frame(b, &out), CODEC_UNPARSABLE);
}

static void test_frame_absurd_lengths(void **state)
{
    struct bytes *b = *state;
    struct codec_frame out;
    const uint64_t length[] = {1,          128,        1u << 20,  INT32_MAX,
                               UINT32_MAX, 1ull << 32, INT64_MAX, UINT64_MAX};

    for (unsigned field = 1; field < 20; field++)
        for (size_t i = 0; i < sizeof length / sizeof *length; i++) {
            small_frame(b, 1);
            put_varint(b, field << 3 | 2);
            put_varint(b, length[i]);
            assert_int_equal(frame(b, &out), CODEC_UNPARSABLE);
        }
    small_frame(b, 1); // a varint that never ends, and one of more than 64 bits
    put(b, "\x78\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 13);
    assert_int_equal(frame(b, &out), CODEC_UNPARSABLE);
    small_frame(b, 1);
    put(b, "\x78\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11);
    assert_int_equal(frame(b, &out), CODEC_UNPARSABLE);
    small_frame(b, 1);
    put(b, "\x78\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11);
    assert_int_equal(frame(b, &out), CODEC_OK);
}

static void test_frame_random_bytes(void **state)
{
    struct bytes *b = *state;
    struct codec_frame out;

    for (int round = 0; round < 20000; round++) {
        b->size = random32() % 200;
        for (size_t i = 0; i < b->size; i++)
            b->data[i] = (uint8_t)random32();
        assert_int_not_equal(frame(b, &out), CODEC_OK);
    }
}

static void test_frame_unknown_bomb(void **state)
{
    const size_t size = 1024 * 1024;
    uint8_t *bomb = malloc(size);
    struct codec_frame out;
    uint64_t before;

    (void)state;
    for (size_t i = 0; i < size; i += 2) {
        bomb[i] = 0x78;
        bomb[i + 1] = 1;
    }
    before = allocations;
    assert_int_equal(codec_frame(NULL, bomb, size, &out), CODEC_EMPTY);
    assert_true(allocations == before);
    free(bomb);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_frame_raw),
        TEST(test_frame_raw_refused),
        TEST(test_frame_jpeg),
        TEST(test_frame_jpeg_refused),
        TEST(test_frame_jpg_is_jpeg),
        TEST(test_frame_jpeg_explained),
        TEST(test_frame_raw_explained),
        TEST(test_frame_packed_by_oracle),
        TEST(test_frame_truncated),
        TEST(test_frame_mutated),
        TEST(test_frame_doubled_and_reordered),
        TEST(test_frame_wire_types),
        TEST(test_frame_absurd_lengths),
        TEST(test_frame_random_bytes),
        TEST(test_frame_unknown_bomb),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
