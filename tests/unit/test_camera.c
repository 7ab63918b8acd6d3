// One camera from message to pixels: decoders against the pixels that went in, and the
// hand-over between threads.
#include "tests/unit/camera_fixture.h"

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
    camera_part(f->camera, &(struct codec_part){"x", 1, true, true}, f->received_ns);
    camera_last_refusal_text(f->camera, text);
    assert_string_equal(text, CODEC_SEVERAL_PARTS);
    assert_int_equal(camera_last_refusal(f->camera), CODEC_UNPARSABLE);
    codec_free(codec);
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

// One frame for each that is awaited, parked at the same time: none is missed, whichever of the two
// comes first.
static _Atomic int64_t park_next;
static void *one_by_one(void *arg)
{
    struct fixture *f = arg;
    static uint8_t bytes[H * W];

    for (int64_t i = 1; i <= 3000; i++) {
        while (atomic_load(&park_next) < i)
            sched_yield();
        memset(bytes, (int)(i % 251), sizeof bytes);
        f->received_ns = i;
        park_raw(f, "mono8", 1, 0, bytes);
    }
    return NULL;
}

static void test_awaited_while_it_is_parked(void **state)
{
    struct fixture *f = *state;
    struct policy_image image;
    pthread_t thread;
    ns_t capture;

    atomic_store(&park_next, 0);
    assert_int_equal(pthread_create(&thread, NULL, one_by_one, f), 0);
    for (int64_t i = 1; i <= 3000; i++) {
        if (i % 2)
            atomic_store(&park_next, i);
        camera_await(f->camera, i);
        atomic_store(&park_next, i);
        assert_int_equal(camera_wait(f->camera, WAIT, &image, &capture), 0);
        assert_int_equal(capture, i);
        assert_int_equal(image.number, i);
        assert_true(image.rgb[0] == (uint8_t)(i % 251));
    }
    pthread_join(thread, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

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
        TEST(test_wait_times_out),
        TEST(test_threads),
        TEST(test_awaited_while_it_is_parked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
