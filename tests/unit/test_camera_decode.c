// Everything a JPEG can be but good.
#include "tests/unit/camera_fixture.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_truncation_is_refused),
        cmocka_unit_test(test_bit_flips),
        cmocka_unit_test(test_decode_capacity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
