// replay publish: the bytes, their order, their times; stamps moved on; and a live daemon's own
// intake takes them.
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <zmq.h>

#include "daemon/replay.h"
#include "daemon/replay_publish_impl.h"
#include "tests/unit/run_log.h"

#define JOINTS   2
#define MESSAGES 300            // of joint states; frames: a fifth
#define SENT     (MESSAGES + 4) // on their stream: parts of two messages
static const char *const joint_name[JOINTS] = {"pan", "lift"};

static char dir[64], log_path[128];
static struct config cfg;

static const char config_text[] =
    "instance: x\n"
    "runtime: %s\n"
    "policy: {directory: /}\n"
    "joint_state: {rate_hz: 200}\n"
    "cameras:\n"
    "  front: {key: observation.images.front, rate_hz: 40, primary: true}\n"
    "joints:\n"
    "  pan: {state: pan, action: pan, position: [-2, 2], velocity: 9, acceleration: 40}\n"
    "  lift: {state: lift, action: lift, position: [-2, 2], velocity: 9, acceleration: 40}\n";

struct sent { // what is in the log, and what came
    uint8_t *data;
    size_t size;
    ns_t at_ns;
    bool more; // a part, and another one follows
};
static struct sent in_log[2][SENT], came[2][4 * MESSAGES];
static int n_in_log[2];
static _Atomic int n_came[2];

static void keep(int stream, const uint8_t *data, size_t size, ns_t at)
{
    struct sent *s = &in_log[stream][n_in_log[stream]++];
    s->data = malloc(size + 1);
    memcpy(s->data, data, size);
    s->size = size;
    s->at_ns = at;
}

// The first byte says whether another one follows, and whether it is the first.
static void put_part(struct run_log *l, ns_t at, const char *part)
{
    size_t n = 1 + strlen(part + 1);

    run_log_put(l, "/parts/joint_states", NULL, at, part, n);
    keep(0, (const uint8_t *)part + 1, n - 1, at);
    in_log[0][n_in_log[0] - 1].more = part[0] & 1;
}

static void write_log(void)
{
    struct run_log l;
    char text[1024];
    uint8_t out[4096], *frame;
    snprintf(text, sizeof text, config_text, dir);
    const struct mcap_pair pair[] = {{"version", "t"},
                                     {"run_id", "r"},
                                     {"config", text},
                                     {"config_file", "robot.yaml"},
                                     {"base_ns", "1700000000000000000"}};
    run_log_open(&l, log_path, "actd", pair, 5);
    for (int i = 0; i < MESSAGES; i++) {
        ns_t at = i * 5 * NS_PER_MS + (i % 3) * 100000; // not all equally far apart
        double pos[JOINTS] = {0.001 * i, -0.001 * i};
        size_t n = run_log_joints(joint_name, pos, JOINTS, at - NS_PER_MS, out);
        if (i == 17) { // one that is no protobuf at all
            n = 5;
            memset(out, 0xff, n);
        }
        if (i == 40) { // one of two parts
            put_part(&l, at - 2 * NS_PER_MS, "\3first");
            put_part(&l, at - NS_PER_MS, "\0second");
        }
        if (i == 60) // parts before it were lost: it is not sent
            run_log_put(&l, "/parts/joint_states", NULL, at - NS_PER_MS, "\1alone", 6);
        if (i == 80) { // what came after it was lost: it is ended
            put_part(&l, at - NS_PER_MS, "\3first of some");
            keep(0, (const uint8_t *)"", 0, at);
        }
        run_log_put(&l, i == 17 ? "/undecodable/joint_states" : "/joint_states",
                    i == 17 ? NULL : "foxglove.JointStates", at, out, n);
        keep(0, out, n, at);
        if (i % 5)
            continue;
        n = run_log_frame(64, 48, i, false, at, &frame);
        run_log_put(&l, "/camera/front", "foxglove.CompressedImage", at + 1, frame, n);
        keep(1, frame, n, at + 1);
        free(frame);
    }
    run_log_close(&l);
}

static int setup(void **state)
{
    struct config_error err = {""};
    char text[1024];
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/actd-publish-XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(log_path, sizeof log_path, "%s/log.mcap", dir);
    snprintf(text, sizeof text, config_text, dir);
    int rc = config_parse(&cfg, "robot.yaml", text, strlen(text), &err);
    if (rc)
        print_message("%s\n", err.text);
    assert_int_equal(rc, 0);
    write_log();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (int s = 0; s < 2; s++) {
        for (int i = 0; i < n_in_log[s]; i++)
            free(in_log[s][i].data);
        for (int i = 0; i < n_came[s]; i++)
            free(came[s][i].data);
        n_in_log[s] = 0;
        n_came[s] = 0;
    }
    unlink(log_path);
    rmdir(dir);
    return 0;
}

// ---- who listens -----------------------------------------------------------------------------

static _Atomic bool listen_on;
static void *context;

static void *listener(void *arg)
{
    void *socket[2];
    zmq_pollitem_t item[2];
    (void)arg;
    for (int i = 0; i < 2; i++) {
        int high = 100000;
        socket[i] = zmq_socket(context, ZMQ_SUB);
        zmq_setsockopt(socket[i], ZMQ_SUBSCRIBE, "", 0);
        zmq_setsockopt(socket[i], ZMQ_RCVHWM, &high, sizeof high);
        assert_int_equal(
            zmq_bind(socket[i], i ? cfg.camera[0].endpoint : cfg.joint_state.endpoint),
            0);
        item[i] = (zmq_pollitem_t){.socket = socket[i], .events = ZMQ_POLLIN};
    }
    for (bool more = true; more || listen_on;) {
        zmq_poll(item, 2, 50);
        more = false;
        for (int i = 0; i < 2; i++) {
            zmq_msg_t m;
            zmq_msg_init(&m);
            while (zmq_msg_recv(&m, socket[i], ZMQ_DONTWAIT) >= 0) {
                struct sent *s = &came[i][n_came[i] % (4 * MESSAGES)];
                s->at_ns = clock_now_ns();
                s->size = zmq_msg_size(&m);
                s->data = malloc(s->size + 1);
                memcpy(s->data, zmq_msg_data(&m), s->size);
                s->more = zmq_msg_more(&m);
                n_came[i]++;
                more = true;
            }
            zmq_msg_close(&m);
        }
    }
    zmq_close(socket[0]);
    zmq_close(socket[1]);
    return NULL;
}

static void publish(const struct publish_options *opt, struct publish_result *r)
{
    struct logbook *book;
    struct mcap_error why;
    struct config_error err = {""};
    const char *path = log_path;
    pthread_t thread;
    context = zmq_ctx_new();
    listen_on = true;
    pthread_create(&thread, NULL, listener, NULL);
    assert_int_equal(logbook_open(&book, &path, 1, &why), 0);
    int rc = publish_run(book, &cfg, opt, r, &err);
    if (rc)
        print_message("%s\n", err.text);
    assert_int_equal(rc, 0);
    clock_sleep_until(clock_now_ns() + 100 * NS_PER_MS);
    listen_on = false;
    pthread_join(thread, NULL);
    zmq_ctx_term(context);
    logbook_close(book);
}

// ---- tests -----------------------------------------------------------------------------------

static void bytes_and_times_are_kept(void **state)
{
    (void)state;
    struct publish_result r;
    const struct publish_options opt = {.speed = 1, .keep_stamps = true, .wait_s = 5};
    publish(&opt, &r);
    assert_int_equal(r.listening, 2);
    assert_int_equal(r.joints, SENT - 1) /* the end is nobody's */;
    assert_int_equal(r.frames, MESSAGES / 5);
    assert_int_equal(r.refused, 0);
    for (int s = 0; s < 2; s++) {
        assert_int_equal(n_came[s], n_in_log[s]);
        for (int i = 0; i < n_in_log[s]; i++) {
            assert_int_equal(came[s][i].size, in_log[s][i].size);
            assert_int_equal(came[s][i].more, in_log[s][i].more);
            assert_memory_equal(came[s][i].data, in_log[s][i].data, in_log[s][i].size);
        }
    }
    struct histogram_summary h = hist_summary(&r.lateness);
    ns_t took = came[0][SENT - 1].at_ns - came[0][0].at_ns;
    ns_t want = in_log[0][SENT - 1].at_ns - in_log[0][0].at_ns;
    print_message("late: half %.3f ms, 99 %% %.3f ms, worst %.3f ms; %.3f s for %.3f s\n",
                  (double)h.p50_ns / 1e6, (double)h.p99_ns / 1e6, (double)h.max_ns / 1e6,
                  (double)took / 1e9, (double)want / 1e9);
    assert_int_equal(h.count, SENT - 1 + MESSAGES / 5);
    // Delays do not add up, however busy the machine is: 300 naps of 5 ms that each overslept by
    // 0.1 ms would be 30 ms long.
    assert_true(h.p50_ns < 5 * NS_PER_MS);
    assert_true(llabs(took - want) < 250 * NS_PER_MS);
}

static void speed_and_loop(void **state)
{
    (void)state;
    struct publish_result r;
    struct publish_options opt = {.speed = 10, .keep_stamps = true, .wait_s = 5};
    ns_t began = clock_now_ns();
    publish(&opt, &r);
    assert_int_equal(n_came[0], SENT);
    assert_true(came[0][SENT - 1].at_ns - came[0][0].at_ns <
                1000 * NS_PER_MS); // not 1.5 s
    assert_true(clock_now_ns() - began < 10 * NS_PER_S);
    assert_int_equal(r.loops, 1);
}

static volatile sig_atomic_t end_now;

static void end(int signal)
{
    (void)signal;
    end_now = 1;
}

// As somebody who presses ^C: the flag is a signal handler's, of the thread that looks at it.
static void *ender(void *publisher)
{
    for (int i = 0; i < 1000 && n_came[0] < 2 * SENT + 10; i++)
        clock_sleep_until(clock_now_ns() + 10 * NS_PER_MS);
    pthread_kill(*(pthread_t *)publisher, SIGUSR1);
    return NULL;
}

static void loops_until_it_is_ended(void **state)
{
    (void)state;
    struct publish_result r;
    const struct publish_options opt = {
        .speed = 20, .loop = true, .keep_stamps = true, .wait_s = 5, .ended = &end_now};
    pthread_t thread, self = pthread_self();
    end_now = 0;
    signal(SIGUSR1, end);
    pthread_create(&thread, NULL, ender, &self);
    publish(&opt, &r);
    pthread_join(thread, NULL);
    assert_true(r.loops >= 2);
    assert_true(n_came[0] >= 2 * SENT + 10);
    for (int i = 0; i < SENT; i++)
        assert_memory_equal(came[0][SENT + i].data, in_log[0][i].data, in_log[0][i].size);
}

static int64_t stamp_of(const struct sent *s)
{
    Foxglove__JointStates *m = foxglove__joint_states__unpack(NULL, s->size, s->data);
    assert_non_null(m);
    int64_t ns = m->timestamp->seconds * NS_PER_S + m->timestamp->nanos;
    foxglove__joint_states__free_unpacked(m, NULL);
    return ns;
}

// Message 17 is no protobuf, and before messages 40 and 80 come two parts each.
static bool no_joint_state(int i)
{
    return i == 17 || i == 40 || i == 41 || i == 82 || i == 83;
}

// A stamp was 1 ms before receipt; so it is now, and nothing else has changed.
static void stamps_are_moved_to_now(void **state)
{
    (void)state;
    struct publish_result r;
    const struct publish_options opt = {.speed = 1, .wait_s = 5};
    publish(&opt, &r);
    int64_t skew = clock_wall_ns() - clock_now_ns();
    assert_int_equal(n_came[0], SENT);
    assert_memory_equal(came[0][17].data, in_log[0][17].data, in_log[0][17].size);
    for (int i = 0; i < SENT; i++) {
        if (no_joint_state(i))
            continue;
        int64_t age = came[0][i].at_ns + skew - stamp_of(&came[0][i]);
        assert_true(age > 0 && age < NS_PER_S); // as fast as the machine lets it
        if (i > 0 && !no_joint_state(i - 1))
            assert_int_equal(stamp_of(&came[0][i]) - stamp_of(&came[0][i - 1]),
                             in_log[0][i].at_ns - in_log[0][i - 1].at_ns);
        Foxglove__JointStates *a =
            foxglove__joint_states__unpack(NULL, came[0][i].size, came[0][i].data);
        assert_string_equal(a->joints[1]->name, "lift");
        assert_true(a->joints[1]->position == -0.001 * (i > 83   ? i - 4
                                                        : i > 41 ? i - 2
                                                                 : i));
        foxglove__joint_states__free_unpacked(a, NULL);
    }
}

// ---- stamps alone ----------------------------------------------------------------------------

static void restamp(const void *in, size_t n, int64_t shift, const void *want, size_t m)
{
    void *out = NULL;
    size_t capacity = 0;
    assert_int_equal(publish_restamp(in, n, shift, &out, &capacity), m);
    if (m > 0)
        assert_memory_equal(out, want, m);
    free(out);
}

static void only_the_stamp_changes(void **state)
{
    (void)state;
    // Field 2 before, a stamp of 1 s, an unknown field 100 after.
    const uint8_t in[] = {0x12, 2, 'a', 'b', 0x0a, 2, 0x08, 1, 0xa0, 0x06, 7};
    const uint8_t later[] = {0x12, 2, 'a', 'b', 0x0a, 4, 0x08, 2, 0x10, 5, 0xa0, 0x06, 7};
    restamp(in, sizeof in, NS_PER_S + 5, later, sizeof later);
    restamp(in, sizeof in, -2 * NS_PER_S, in, sizeof in); // before 1970: as it was
    restamp(in, 3, 1, in, 3);                             // cut short
    restamp(in, 0, 1, in, 0);
    const uint8_t bad[] = {0x0a, 3, 0x08, 0x80, 0x80}; // a stamp that is none
    restamp(bad, sizeof bad, 1, bad, sizeof bad);
    const uint8_t group[] = {0x0b, 1, 2, 3};
    restamp(group, sizeof group, 1, group, sizeof group);
}

static void no_bytes_overrun(void **state)
{
    (void)state;
    uint32_t seed = 3;
    for (int round = 0; round < 100000; round++) {
        uint8_t in[24];
        for (size_t i = 0; i < sizeof in; i++) {
            seed = seed * 1664525 + 1013904223;
            in[i] = (uint8_t)(seed >> (round % 2 ? 24 : 28)); // of small numbers, too
        }
        if (round % 3 == 0)
            in[0] = 0x0a;
        void *out = NULL;
        size_t capacity = 0, n = publish_restamp(in, sizeof in, round, &out, &capacity);
        assert_true(n > 0 && n <= capacity);
        free(out);
    }
}

// ---- the command -----------------------------------------------------------------------------

static int run(const char *const *word)
{
    char *argv[12];
    int argc = 0;
    argv[argc++] = strdup("publish");
    while (*word)
        argv[argc++] = strdup(*word++);
    argv[argc] = NULL;
    int status = replay_publish_main(argc, argv);
    for (int i = 0; i < argc; i++)
        free(argv[i]);
    return status;
}
#define RUN(...) run((const char *const[]){__VA_ARGS__, NULL})

static void the_command_has_its_statuses(void **state)
{
    (void)state;
    assert_int_equal(RUN("--help"), 0);
    assert_int_equal(run((const char *const[]){NULL}), 64);
    assert_int_equal(RUN(log_path, "--speed", "0"), 64);
    assert_int_equal(RUN(log_path, "--speed", "x"), 64);
    assert_int_equal(RUN(log_path, "--wait", "-1"), 64);
    assert_int_equal(RUN("/nonexistent.mcap"), 66);
    assert_int_equal(RUN(log_path, "-c", "/nonexistent.yaml"), 78);
    assert_int_equal(RUN(log_path, "--wait", "0", "--speed", "100"), 0); // to nobody
    char other[128];
    snprintf(other, sizeof other, "%s/other.mcap", dir);
    struct run_log l; // no configuration in it
    const struct mcap_pair pair[] = {{"fps", "30"}};
    run_log_open(&l, other, "dataset", pair, 1);
    run_log_put(&l, "/joint_states", "foxglove.JointStates", 0, "", 0);
    run_log_close(&l);
    assert_int_equal(RUN(other), 78);
    unlink(other);
    const struct mcap_pair ours[] = {{"version", "t"}, {"run_id", "r"}};
    run_log_open(&l, other, "actd", ours, 2);
    run_log_close(&l);
    assert_int_equal(RUN(other), 78);
    unlink(other);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(bytes_and_times_are_kept),     TEST(speed_and_loop),
        TEST(loops_until_it_is_ended),      TEST(stamps_are_moved_to_now),
        TEST(only_the_stamp_changes),       TEST(no_bytes_overrun),
        TEST(the_command_has_its_statuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
