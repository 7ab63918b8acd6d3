// A camera without a thread, in virtual time: what is judged of its stream, to the frame.
#include "tests/unit/camera_fixture.h"

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

// What was parked does not need its message any longer; and what was not is told.
static void test_parked_or_not(void **state)
{
    struct fixture *f = *state;
    struct policy_image image;
    ns_t capture;

    f->gone = true;
    next_grey(f, 99, 0);
    assert_true(f->parked);
    camera_request(f->camera);
    assert_int_equal(camera_wait(f->camera, 0, &image, &capture), 0);
    assert_int_equal(image.rgb[0], 99);
    park_grey(f, 98); // the same stamp
    assert_false(f->parked);
    f->stamp_ms -= 100;
    park_grey(f, 97);
    assert_false(f->parked);
    f->stamp_ms += 3600000;
    park_grey(f, 96);
    assert_false(f->parked);
    assert_int_equal(f->mark.duplicate + f->mark.out_of_order + f->mark.refused, 3);
}

// A camera on this machine follows its wall clock, while the arm moves too.
static void test_local_clock_is_set(void **state)
{
    struct fixture *f = *state;
    _Atomic bool armed = true;

    camera_declare(f->camera, 25, &armed);
    for (int i = 0; i < 10; i++)
        next_grey(f, i, 0);
    camera_wall_set(f->camera, -3600 * NS_PER_S, f->received_ns);
    for (int i = 0; i < 10; i++) {
        next_grey(f, i, -3600000);
        assert_true(f->parked);
        assert_int_equal(f->mark.capture_ns, f->received_ns);
    }
    assert_int_equal(f->mark.refused, 0);
}

// Frames with the content of the one before: counted in a row and in all; received all
// the same.
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

// A still scene compressed again and again has equal bytes; one grey step in it does not.
// Of a raw frame of up to CONTENT_SAMPLE bytes every one counts.
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
    camera_part(f->camera, &(struct codec_part){"x", 1, true, true}, f->received_ns);
    camera_part(f->camera, &(struct codec_part){"y", 1, false, false}, f->received_ns);
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
    for (int i = 0; i < 51; i++) {
        camera_supersede(f->camera, f->message, f->size, f->received_ns);
        f->received_ns += FRAME;
        next_grey(f, i, 0);
    }
    assert_false(f->mark.slow);
    assert_int_equal(camera_superseded(f->camera), 51);
}

// A frame that is awaited is decoded as it lands, and kept; one that is not there yet is not.
static void test_awaited(void **state)
{
    struct fixture *f = *state;
    struct policy_image image, kept;
    ns_t capture, from;

    next_grey(f, 1, 0);
    from = f->received_ns + FRAME / 2;
    camera_await(f->camera, from);
    assert_int_equal(camera_wait(f->camera, 0, &image, &capture), -ETIMEDOUT);
    next_grey(f, 2, 0);
    assert_int_equal(camera_wait(f->camera, 0, &kept, &capture), 0);
    assert_true(capture >= from && kept.rgb[0] == 2 && kept.number == 1);
    next_grey(f, 3, 0);
    next_grey(f, 4, 0);
    assert_int_equal(camera_wait(f->camera, 0, &image, &capture), 0);
    assert_true(image.rgb == kept.rgb && image.rgb[0] == 2 && image.number == 1);
    // The newest will do when it was captured late enough, also when it was had before.
    camera_await(f->camera, f->received_ns - FRAME / 2);
    assert_int_equal(camera_wait(f->camera, 0, &image, &capture), 0);
    assert_true(image.rgb[0] == 4 && image.number == 2);
    camera_await(f->camera, f->received_ns);
    assert_int_equal(camera_wait(f->camera, 0, &image, &capture), 0);
    assert_true(image.rgb[0] == 4 && image.number == 2);
    // One that never comes is given up for the newest.
    camera_await(f->camera, f->received_ns + 10 * FRAME);
    next_grey(f, 5, 0);
    assert_int_equal(camera_wait(f->camera, 0, &image, &capture), -ETIMEDOUT);
    camera_request(f->camera);
    assert_int_equal(camera_wait(f->camera, 0, &image, &capture), 0);
    assert_true(image.rgb[0] == 5 && image.number == 3);
}

// Its number is the frame's: the same as long as it is the same, and no other frame's.
static void test_numbers(void **state)
{
    struct fixture *f = *state;
    uint8_t jpeg[32 * 1024];
    size_t n = good_jpeg(jpeg, sizeof jpeg);
    struct policy_image image;

    for (uint64_t i = 1; i <= 3; i++) {
        ns_t capture;

        f->received_ns += FRAME;
        park_jpeg(f, jpeg, n); // of the same content, and yet another frame
        for (int again = 0; again < 3; again++) {
            camera_request(f->camera);
            assert_int_equal(camera_wait(f->camera, 0, &image, &capture), 0);
            assert_int_equal(image.number, i);
        }
        f->received_ns += FRAME;
        park_jpeg(f, jpeg, n * 2 / 3);
        camera_request(f->camera);
        assert_int_equal(camera_wait(f->camera, 0, &image, &capture), 0);
        assert_int_equal(image.number, i); // a corrupt one is none
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_virtual, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_without_a_thread),
        TEST(test_parked_or_not),
        TEST(test_local_clock_is_set),
        TEST(test_same_content),
        TEST(test_content_of_jpeg_and_raw),
        TEST(test_order_in_virtual_time),
        TEST(test_clock_of_a_camera),
        TEST(test_undeclared),
        TEST(test_refused_in_a_row),
        TEST(test_slow_camera),
        TEST(test_awaited),
        TEST(test_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
