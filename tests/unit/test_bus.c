// The bus over real ipc sockets, messages in: what it counts, and what it keeps.
#include <time.h>

#include "tests/unit/bus_fixture.h"

// The clocks of this program: the wall clock can be set.
static _Atomic int64_t wall_set_ns;

static ns_t read_clock(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (ns_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

ns_t clock_now_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

ns_t clock_wall_ns(void)
{
    return read_clock(CLOCK_REALTIME) + wall_set_ns;
}

int clock_sleep_until(ns_t when_ns)
{
    struct timespec t = {.tv_sec = when_ns / NS_PER_S, .tv_nsec = when_ns % NS_PER_S};

    return -clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

ns_t clock_period_ns(double rate_hz)
{
    return (ns_t)((double)NS_PER_S / rate_hz + 0.5);
}

static void test_a_good_sample(void **state)
{
    struct fixture *f = *state;
    struct joint_sample s;
    struct joint_history *h = malloc(sizeof *h);
    ns_t before;

    assert_int_equal(start(f), 0);
    connect_all(f);
    before = clock_now_ns();
    send_joints(f, 1.25);
    EVENTUALLY(f->board.joint_mark.received == 1);
    assert_int_equal(slot_read(&f->board.joints, &s), 1);
    assert_int_equal(s.number, 1);
    assert_int_equal(s.n, JOINTS);
    assert_true(s.pos[0] == 1.25 && s.pos[1] == 0);
    assert_true(s.received_ns > before && s.capture_ns == s.received_ns);
    assert_int_equal(slot_read(&f->board.history, h), 1);
    assert_int_equal(h->count, 1);
    assert_true(h->sample[0].pos[0] == 1.25);
    free(h);
}

// Everything that can be wrong, one by one, with a good one in between: exact counts.
static void test_bad_joint_messages(void **state)
{
    struct fixture *f = *state;
    const enum codec_verdict kinds[] = {CODEC_EMPTY, CODEC_UNPARSABLE, CODEC_WRONG_NAMES,
                                        CODEC_NOT_FINITE, CODEC_BAD_STAMP};
    const char *const words[] = {"no bytes", "JointStates",
                                 "'Turn' is no joint of this robot (turn?)",
                                 "'lift' is nan", " ms "};
    uint8_t good[256], bad[256];

    assert_int_equal(start(f), 0);
    assert_string_equal(bus_counts(f->bus).joints_refusal_text, "");
    connect_all(f);
    for (uint64_t i = 1; i <= 5; i++) {
        double position = (double)i + 2;
        size_t n = joints_message(f, position, good), size = n;

        memcpy(bad, good, n);
        switch (kinds[i - 1]) {
        case CODEC_EMPTY:
            size = 0;
            break;
        case CODEC_WRONG_NAMES:
            *(uint8_t *)memmem(bad, n, "turn", 4) = 'T';
            break;
        case CODEC_NOT_FINITE:
            memcpy(bad + n - 8, &(double){NAN}, 8);
            break;
        case CODEC_BAD_STAMP:
            bad[4] ^= 0x40; // bit 13 of the seconds: more than two hours away
            break;
        default:
            size = n - 1;
        }
        zmq_send(f->joints, bad, size, 0);
        EVENTUALLY(f->board.joint_mark.refused == i);
        assert_int_equal(bus_counts(f->bus).joints_refusal, kinds[i - 1]);
        assert_non_null(strstr(bus_counts(f->bus).joints_refusal_text, words[i - 1]));
        assert_int_equal(f->board.joint_mark.received, i - 1);
        zmq_send(f->joints, good, n, 0);
        EVENTUALLY(f->board.joint_mark.received == i);
        assert_true(newest_position(f) == position);
        zmq_send(f->joints, good, n, 0); // the same stamp again
        EVENTUALLY(f->board.joint_mark.duplicate == i);
    }
    assert_int_equal(f->board.joint_mark.refused, 5);
    assert_int_equal(f->board.joint_mark.received, 5);
}

// Of several parts: dropped whole, counted once, and what comes after is read right.
static void test_multipart_is_dropped_whole(void **state)
{
    struct fixture *f = *state;
    uint8_t good[256];
    char text[CODEC_WHY_MAX];
    size_t n;

    assert_int_equal(start(f), 0);
    connect_all(f);
    for (int parts = 2; parts < 200; parts += 66) {
        uint64_t refused = f->board.joint_mark.refused;

        for (int i = 1; i <= parts; i++) {
            n = joints_message(f, -1, good); // each part by itself would be accepted
            zmq_send(f->joints, good, n, i < parts ? ZMQ_SNDMORE : 0);
        }
        send_joints(f, parts);
        EVENTUALLY(newest_position(f) == parts);
        assert_int_equal(f->board.joint_mark.refused, refused + 1);
    }
    assert_int_equal(f->board.joint_mark.received, 3);
    zmq_send(f->frames, "x", 1, ZMQ_SNDMORE);
    zmq_send(f->frames, "y", 1, 0);
    EVENTUALLY(f->board.camera[0].refused == 1);
    assert_int_equal(camera_last_refusal(f->camera[0]), CODEC_UNPARSABLE);
    camera_last_refusal_text(f->camera[0], text);
    assert_string_equal(text, "it has several parts: send each message in one");
    assert_string_equal(text, bus_counts(f->bus).joints_refusal_text);
    send_frame(f, 5);
    EVENTUALLY(f->board.camera[0].received == 1);
}

// libzmq drops the peer; it comes back, and so do its good messages.
static void test_oversized_is_never_read(void **state)
{
    struct fixture *f = *state;
    uint8_t *big = calloc(1, CODEC_JOINTS_MAX + 1);
    ns_t until = clock_now_ns() + SOON;

    assert_int_equal(start(f), 0);
    connect_all(f);
    send_joints(f, 1);
    EVENTUALLY(f->board.joint_mark.received == 1);
    zmq_send(f->joints, big, CODEC_JOINTS_MAX + 1, 0);
    for (; newest_position(f) != 2 && clock_now_ns() < until; nap(20 * NS_PER_MS))
        send_joints(f, 2); // what is sent before it is back may be lost
    assert_true(newest_position(f) == 2);
    assert_int_equal(f->board.joint_mark.refused, 0);
    zmq_send(f->joints, big, CODEC_JOINTS_MAX, 0); // at the cap: read, and refused
    EVENTUALLY(f->board.joint_mark.refused == 1);
    free(big);
}

static void test_bad_frames(void **state)
{
    struct fixture *f = *state;
    struct camera_mark *m = &f->board.camera[0];
    struct policy_image image;
    ns_t capture;

    assert_int_equal(start(f), 0);
    connect_all(f);
    zmq_send(f->frames, "", 0, 0);
    EVENTUALLY(m->refused == 1);
    zmq_send(f->frames, "\x08\x01garbage", 9, 0);
    EVENTUALLY(m->refused == 2);
    assert_int_equal(m->received, 0);
    send_frame(f, 77);
    EVENTUALLY(m->received == 1);
    camera_request(f->camera[0]);
    assert_int_equal(camera_wait(f->camera[0], SOON, &image, &capture), 0);
    assert_int_equal(image.width, W);
    assert_int_equal(image.rgb[3 * W * H - 1], 77);
    assert_int_equal(capture, m->capture_ns);
    assert_int_equal(m->refused, 2);
}

// 300 samples and 50 frames at once: the last one is what counts, and the history holds
// the last 128 in order.
static void test_newest_wins(void **state)
{
    struct fixture *f = *state;
    struct joint_history *h = malloc(sizeof *h);
    struct policy_image image = {0};
    ns_t capture;

    assert_int_equal(start(f), 0);
    connect_all(f);
    for (int i = 1; i <= 300; i++)
        send_joints(f, i);
    for (int i = 1; i <= 50; i++)
        send_frame(f, (uint8_t)i);
    EVENTUALLY(f->board.joint_mark.received == 300);
    assert_true(newest_position(f) == 300);
    assert_true(slot_read(&f->board.history, h) > 0);
    assert_int_equal(h->count, 300);
    for (uint64_t i = 300 - BOARD_HISTORY; i < 300; i++) {
        assert_int_equal(h->sample[i % BOARD_HISTORY].number, i + 1);
        assert_true(h->sample[i % BOARD_HISTORY].pos[0] == (double)(i + 1));
    }
    for (int tries = 0; tries < 1000 && !(image.rgb && image.rgb[0] == 50); tries++) {
        nap(NS_PER_MS);
        camera_request(f->camera[0]);
        camera_wait(f->camera[0], SOON, &image, &capture);
    }
    assert_int_equal(image.rgb[0], 50);
    assert_true(f->board.camera[0].received <= 50);
    assert_int_equal(f->board.joint_mark.refused + f->board.joint_mark.duplicate, 0);
    free(h);
}

// In bursts, good ones before bad ones: whatever of it is looked at, each frame is
// counted in exactly one place, and a good one behind a bad one is taken.
static void test_every_frame_is_counted_once(void **state)
{
    struct fixture *f = *state;
    struct camera_mark *m = &f->board.camera[0];
    uint64_t sent = 0;

    assert_int_equal(start(f), 0);
    connect_all(f);
    for (int burst = 1; burst <= 100; burst++) {
        uint64_t received = m->received;

        for (int i = 0; i < burst % 7; i++, sent += 2) {
            send_frame(f, (uint8_t)i);
            zmq_send(f->frames, "", 0, 0);
        }
        send_frame(f, 77);
        sent++;
        EVENTUALLY(m->received + m->refused + m->duplicate +
                       camera_superseded(f->camera[0]) ==
                   sent);
        assert_true(m->received > received); // the last one is never lost
    }
    assert_int_equal(m->duplicate, 0);
    assert_true(camera_superseded(f->camera[0]) > 0);
}

// Somebody sets the clock of this machine while the arm moves: the driver, which stamps by it,
// is not refused.
static void test_wall_clock_is_set(void **state)
{
    struct fixture *f = *state;
    const int64_t by[] = {3600 * NS_PER_S, -3600 * NS_PER_S, -200 * NS_PER_MS, NS_PER_S};
    struct joints_mark *m = &f->board.joint_mark;
    uint64_t sent = 0;

    assert_int_equal(start(f), 0);
    connect_all(f);
    for (size_t i = 0; i < sizeof by / sizeof *by; i++) {
        for (int k = 0; k < 5; k++) {
            send_joints(f, 0);
            sent++;
            EVENTUALLY(m->received == sent);
        }
        atomic_store(&f->board.armed, true);
        wall_set_ns += by[i];
        f->stamp_ns += by[i] < 0 ? by[i] : 0; // of the fixture: stamps go on from here
    }
    send_joints(f, 0);
    EVENTUALLY(m->received == sent + 1);
    assert_int_equal(bus_counts(f->bus).wall_sets, 4);
    assert_int_equal(m->refused + m->out_of_order + m->duplicate, 0);
    wall_set_ns = 0;
}

// A good frame with a bad one behind it in the same drain: never lost. While the bus is
// in the middle of a long message, or just not scheduled, they come together.
static void test_good_frame_before_a_bad_one(void **state)
{
    struct fixture *f = *state;
    struct camera_mark *m = &f->board.camera[0];

    assert_int_equal(start(f), 0);
    connect_all(f);
    for (uint64_t i = 1; i <= 300; i++) {
        send_frame(f, (uint8_t)i);
        zmq_send(f->frames, "", 0, 0);
        EVENTUALLY(m->received == i);
        EVENTUALLY(m->refused == i);
    }
    assert_int_equal(camera_superseded(f->camera[0]), 0);
}

static void test_publisher(void **state)
{
    struct fixture *f = *state;
    char endpoint[CONFIG_PATH], got[8] = "";
    const int ms = 20;
    void *pub, *sub;

    assert_int_equal(start(f), 0);
    snprintf(endpoint, sizeof endpoint, "ipc://%.400s/status", f->cfg.runtime);
    pub = bus_publisher(f->bus, endpoint, true, &f->err);
    assert_non_null(pub);
    assert_null(bus_publisher(f->bus, endpoint, true, &f->err)); // taken
    assert_non_null(strstr(f->err.text, "in use"));
    sub = driver_sub(f, endpoint);
    zmq_setsockopt(sub, ZMQ_RCVTIMEO, &ms, sizeof ms);
    for (int i = 0; i < 500; i++) {
        zmq_send(pub, "hello", 5, ZMQ_DONTWAIT);
        if (zmq_recv(sub, got, sizeof got, 0) == 5)
            break;
    }
    assert_memory_equal(got, "hello", 5);
    zmq_close(sub);
    bus_close(pub);
}

// With a real-time priority asked, whether or not it is granted (libzmq would abort if
// not).
static void test_priority(void **state)
{
    struct fixture *f = *state;

    int lock_fd;

    assert_int_equal(endpoint_lock(f->cfg.runtime, &lock_fd, &f->err), 0);
    assert_int_equal(
        bus_start(&f->bus, &f->cfg, &f->board, f->camera, 10, lock_fd, &f->err), 0);
    connect_all(f);
    send_joints(f, 4);
    EVENTUALLY(newest_position(f) == 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_good_sample),
        TEST(test_bad_joint_messages),
        TEST(test_multipart_is_dropped_whole),
        TEST(test_oversized_is_never_read),
        TEST(test_bad_frames),
        TEST(test_newest_wins),
        TEST(test_every_frame_is_counted_once),
        TEST(test_wall_clock_is_set),
        TEST(test_good_frame_before_a_bad_one),
        TEST(test_publisher),
        TEST(test_priority),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
