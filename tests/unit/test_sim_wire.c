// What the simulated robot says and hears, over real ipc sockets: messages, refusals, pictures,
// lock-step, the live loop and the recorder.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <turbojpeg.h>
#include <unistd.h>
#include <zmq.h>

#include "actd/v1/joint_command.pb-c.h"
#include "actd/v1/sim_status.pb-c.h"
#include "daemon/sim/expert.h"
#include "daemon/sim/record.h"
#include "daemon/sim/run.h"
#include "foxglove/CompressedImage.pb-c.h"
#include "foxglove/JointStates.pb-c.h"
#include "foxglove/RawImage.pb-c.h"

static char dir[64];

static int make_dir(void **state)
{
    (void)state;
    setenv("LP_NUM_THREADS", "0", 0);
    strcpy(dir, "/tmp/test_sim_wire.XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command);
}

// ---- commands ------------------------------------------------------------------------------

struct bad {
    int n;              // joints in the message
    const char *rename; // joint 2 is called this instead
    double position;    // of joint 1
    double velocity;
    uint64_t ttl_ns;
    int mode;
};

static size_t pack(const struct bad *b, uint8_t *buf)
{
    Actd__V1__JointCommand m;
    Actd__V1__Joint joint[ARM_JOINTS + 1], *list[ARM_JOINTS + 1];
    char names[ARM_JOINTS + 1][32];

    actd__v1__joint_command__init(&m);
    for (int i = 0; i < b->n; i++) {
        actd__v1__joint__init(&joint[i]);
        snprintf(names[i], sizeof names[i], "%s",
                 i == 2 && b->rename ? b->rename : arm_name[i % ARM_JOINTS]);
        joint[i].name = names[i];
        joint[i].position = i == 1 ? b->position : 0.25;
        joint[i].velocity = i == 1 ? b->velocity : 0;
        list[i] = &joint[i];
    }
    m.n_joints = (size_t)b->n;
    m.joints = list;
    m.time_to_live_ns = b->ttl_ns;
    m.mode = (Actd__V1__Mode)b->mode;
    return actd__v1__joint_command__pack(&m, buf);
}

static void commands_are_checked(void **state)
{
    static struct plant p;
    struct wire_counts c = {0};
    uint8_t buf[2048];
    char err[512];
    struct bad good = {ARM_JOINTS, NULL, 0.25, 0, 300000000, 5};
    struct bad cases[] = {
        {ARM_JOINTS, "elbow", 0.25, 0, 0, 5},        // unknown name
        {ARM_JOINTS, "shoulder_pan", 0.25, 0, 0, 5}, // twice
        {ARM_JOINTS - 1, NULL, 0.25, 0, 0, 5},       // one missing
        {ARM_JOINTS + 1, NULL, 0.25, 0, 0, 5},       // one too many
        {0, NULL, 0, 0, 0, 5},                       // none
        {ARM_JOINTS, NULL, NAN, 0, 0, 5},
        {ARM_JOINTS, NULL, INFINITY, 0, 0, 5},
        {ARM_JOINTS, NULL, 0.25, -INFINITY, 0, 5},
    };
    const int want[] = {-ENOENT, -ENOENT, -ENOENT, -ENOENT, -ENOENT, -EDOM, -EDOM, -EDOM};
    (void)state;

    assert_int_equal(plant_open(&p, 1, 1, 100, err, sizeof err), 0);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        size_t n = pack(&cases[i], buf);
        assert_int_equal(wire_obey(buf, n, &p, &c), want[i]);
        assert_int_equal(c.refused, i + 1);
        assert_true(p.servo.ttl_s < 0 && !p.begun); // nothing of it was taken
    }
    size_t n = pack(&good, buf);
    for (size_t cut = 0; cut < n;
         cut++) // every truncation is refused, whatever it parses as
        assert_true(wire_obey(buf, cut, &p, &c) < 0 || c.commands > 0);
    uint64_t before = c.commands;
    assert_int_equal(wire_obey(buf, n, &p, &c), 0);
    assert_int_equal(c.commands, before + 1);
    assert_true(p.begun && fabs(p.servo.ttl_s - 0.3) < 1e-9);
    for (int i = 0; i < ARM_JOINTS; i++)
        assert_true(fabs(p.servo.target[i] - 0.25) < 1e-12);
    plant_close(&p);
}

// The episode's clock waits while the robot is only held or approached.
static void only_a_driver_starts_the_clock(void **state)
{
    static struct plant p;
    struct wire_counts c = {0};
    uint8_t buf[2048];
    char err[512];
    struct bad b = {ARM_JOINTS, NULL, 0.25, 0, 0, 0};
    (void)state;

    assert_int_equal(plant_open(&p, 1, 1, 100, err, sizeof err), 0);
    for (int mode = ACTD__V1__MODE__MODE_INIT; mode <= ACTD__V1__MODE__MODE_APPROACH;
         mode++) {
        b.mode = mode;
        assert_int_equal(wire_obey(buf, pack(&b, buf), &p, &c), 0);
        assert_false(p.begun);
    }
    b.mode = ACTD__V1__MODE__MODE_RUNNING;
    assert_int_equal(wire_obey(buf, pack(&b, buf), &p, &c), 0);
    assert_true(p.begun);
    plant_close(&p);
}

// ---- a client ------------------------------------------------------------------------------

struct client {
    void *zmq, *joints, *front, *status, *command;
};

static void *connect_to(void *zmq, int type, const char *runtime, const char *stream)
{
    char err[256];
    void *s = wire_open(zmq, type, WIRE_SMALL_HWM, WIRE_CONNECT, runtime, stream, err,
                        sizeof err);
    // wire_open caps messages for commands; pictures are larger.
    int64_t cap = -1;
    assert_non_null(s);
    zmq_setsockopt(s, ZMQ_MAXMSGSIZE, &cap, sizeof cap);
    return s;
}

static void client_open(struct client *c, const char *runtime)
{
    c->zmq = zmq_ctx_new();
    c->joints = connect_to(c->zmq, ZMQ_SUB, runtime, "joints.state");
    c->front = connect_to(c->zmq, ZMQ_SUB, runtime, "camera.front");
    c->status = connect_to(c->zmq, ZMQ_SUB, runtime, "sim.status");
    c->command = connect_to(c->zmq, ZMQ_PUB, runtime, "joints.command");
}

static void client_close(struct client *c)
{
    wire_close(c->joints);
    wire_close(c->front);
    wire_close(c->status);
    wire_close(c->command);
    zmq_ctx_term(c->zmq);
}

static int receive(void *socket, int wait_ms, uint8_t *buf, int size)
{
    zmq_pollitem_t item = {socket, 0, ZMQ_POLLIN, 0};
    if (zmq_poll(&item, 1, wait_ms) <= 0)
        return -1;
    int n = zmq_recv(socket, buf, (size_t)size, 0);
    int more = 0;
    size_t len = sizeof more;
    zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &len);
    assert_false(more); // single part
    assert_true(n <= size);
    return n;
}

static int64_t stamp_of(const Google__Protobuf__Timestamp *t)
{
    assert_non_null(t);
    return t->seconds * 1000000000 + t->nanos;
}

// ---- the simulator in a thread -------------------------------------------------------------

struct host {
    struct options o;
    volatile sig_atomic_t stop;
    struct run run;
    pthread_t thread;
    int closed;
};

static struct host host; // 90 kB

static void *host_run(void *arg)
{
    struct host *h = arg;
    char err[512];

    // One thread opens, runs and closes: the EGL context and the sockets are its own.
    if (run_open(&h->run, &h->o, &h->stop, err, sizeof err) < 0) {
        fprintf(stderr, "%s\n", err);
        return NULL;
    }
    if (h->o.lockstep)
        run_lockstep(&h->run);
    else
        run_live(&h->run);
    h->closed = run_close(&h->run, err, sizeof err) == 0;
    return NULL;
}

static void host_start(char *const *more, int n)
{
    char err[256], *argv[24] = {0};
    int argc = 0;
    static char w0[] = "actd-sim", w1[] = "--bind", w2[] = "--runtime";

    argv[argc++] = w0;
    argv[argc++] = w1;
    argv[argc++] = w2;
    argv[argc++] = dir;
    for (int i = 0; i < n; i++)
        argv[argc++] = more[i];
    memset(&host, 0, sizeof host);
    assert_int_equal(options_parse(&host.o, argc, argv, err, sizeof err), 0);
    assert_int_equal(pthread_create(&host.thread, NULL, host_run, &host), 0);
}

static void host_join(void)
{
    pthread_join(host.thread, NULL);
    assert_true(host.closed);
}

// Options are kept until the host is joined: the sheet's name is used to the very end.
static char words[16][96];

#define START(...)                                              \
    do {                                                        \
        const char *text[] = {__VA_ARGS__};                     \
        char *list[16];                                         \
        int count = (int)(sizeof text / sizeof *text);          \
        for (int i = 0; i < count; i++) {                       \
            snprintf(words[i], sizeof words[i], "%s", text[i]); \
            list[i] = words[i];                                 \
        }                                                       \
        host_start(list, count);                                \
    } while (0)

static int newest_status(struct client *c, int wait_ms, double *distance, double *goal)
{
    uint8_t buf[8192];
    int n = receive(c->status, wait_ms, buf, sizeof buf), done = 0;
    Actd__V1__SimStatus *m =
        n > 0 ? actd__v1__sim_status__unpack(NULL, (size_t)n, buf) : NULL;
    if (!m)
        return -1;
    done = m->done;
    *distance = m->goal_distance_m;
    memcpy(goal, m->goal_m, 3 * sizeof *goal);
    actd__v1__sim_status__free_unpacked(m, NULL);
    return done;
}

// Waits for a joint state newer than *last and reads it. False when the simulator says that it is
// done, or when none comes for a minute: the machine may be busy and the first picture slow.
static int next_state(struct client *c, int64_t *last, double *q)
{
    uint8_t buf[4096];
    double distance, goal[3];

    for (int tries = 0; tries < 600; tries++) {
        int n = receive(c->joints, 100, buf, sizeof buf);
        Foxglove__JointStates *m =
            n > 0 ? foxglove__joint_states__unpack(NULL, (size_t)n, buf) : NULL;
        if (!m && newest_status(c, 0, &distance, goal) == 1)
            return 0;
        if (!m)
            continue;
        int64_t at = stamp_of(m->timestamp);
        assert_int_equal(m->n_joints, ARM_JOINTS);
        for (int i = 0; i < ARM_JOINTS; i++) {
            assert_string_equal(m->joints[i]->name, arm_name[i]);
            q[i] = m->joints[i]->position;
        }
        foxglove__joint_states__free_unpacked(m, NULL);
        if (at > *last) {
            *last = at;
            return 1;
        }
    }
    return 0;
}

static void send_command(struct client *c, const double *q, uint64_t ttl_ns)
{
    uint8_t buf[2048];
    Actd__V1__JointCommand m;
    Actd__V1__Joint joint[ARM_JOINTS], *list[ARM_JOINTS];
    char names[ARM_JOINTS][32];

    actd__v1__joint_command__init(&m);
    for (int i = 0; i < ARM_JOINTS; i++) {
        actd__v1__joint__init(&joint[i]);
        snprintf(names[i], sizeof names[i], "%s",
                 arm_name[ARM_JOINTS - 1 - i]); // any order
        joint[i].name = names[i];
        joint[i].position = q[ARM_JOINTS - 1 - i];
        list[i] = &joint[i];
    }
    m.n_joints = ARM_JOINTS;
    m.joints = list;
    m.time_to_live_ns = ttl_ns;
    zmq_send(c->command, buf, actd__v1__joint_command__pack(&m, buf), 0);
}

// ---- tests ---------------------------------------------------------------------------------

// The expert, as a client over the wire, solves two episodes in lock-step; time moves by exactly
// one period a command; the sheet is written.
static void lockstep_episodes(void **state)
{
    char sheet[80];
    struct client c;
    struct expert e = {0};
    double q[ARM_JOINTS], action[ARM_JOINTS], distance, goal[3], planned[3] = {0};
    int64_t last = 0, before;
    int done = 0, k = 0, commands = 0;
    struct stat st;
    (void)state;

    snprintf(sheet, sizeof sheet, "%s/sheet.png", dir);
    START("--lockstep", "--episodes", "2", "--seed", "5", "--sheet", sheet);
    usleep(300000);
    client_open(&c, dir);
    assert_true(next_state(&c, &last, q));
    usleep(200000);
    while (done <= 0 && commands < 300) {
        int rc = newest_status(&c, commands ? 0 : 1000, &distance, goal);
        for (; rc >= 0; rc = newest_status(&c, 0, &distance, goal))
            done = rc;
        if (mju_dist3(goal, planned) > 0) {
            mju_copy3(planned, goal);
            expert_plan(&e, q, goal);
            k = 0;
        }
        assert_int_equal(expert_at(&e, ++k * 0.04, action), 0);
        send_command(&c, action, 200000000);
        commands++;
        before = last;
        if (!next_state(&c, &last, q))
            break;
        assert_in_range(last - before, 39999990, 40000010);
    }
    client_close(&c);
    host_join();
    assert_true(host.run.plant.task.succeeded == 2);
    // One command may have been on its way when the last episode ended.
    assert_in_range(host.run.counts.commands, commands - 1, commands);
    assert_int_equal(stat(sheet, &st), 0);
    assert_true(st.st_size > 20000);
}

static void count_red(const uint8_t *rgb, int n, int *red, int *dark)
{
    for (int i = 0; i < n; i++) {
        const uint8_t *p = rgb + 3 * i;
        *red += p[0] > 110 && p[1] < 60 && p[2] < 60;
        *dark += p[0] < 20 && p[1] < 20 && p[2] < 20;
    }
}

static void jpeg_frames_show_the_goal(void **state)
{
    static uint8_t buf[65536], rgb[96 * 96 * 3];
    struct client c;
    int red = 0, dark = 0, w, h, sampling, space;
    (void)state;

    START("--lockstep", "--seed", "3");
    usleep(200000);
    client_open(&c, dir);
    int n = receive(c.front, 60000, buf, sizeof buf);
    assert_true(n > 1000);
    Foxglove__CompressedImage *m =
        foxglove__compressed_image__unpack(NULL, (size_t)n, buf);
    assert_non_null(m);
    assert_string_equal(m->format, "jpeg");
    assert_string_equal(m->frame_id, "front");
    assert_true(stamp_of(m->timestamp) > 0);
    tjhandle tj = tjInitDecompress();
    assert_int_equal(
        tjDecompressHeader3(tj, m->data.data, m->data.len, &w, &h, &sampling, &space), 0);
    assert_true(w == 96 && h == 96);
    assert_int_equal(
        tjDecompress2(tj, m->data.data, m->data.len, rgb, 96, 0, 96, TJPF_RGB, 0), 0);
    tjDestroy(tj);
    foxglove__compressed_image__free_unpacked(m, NULL);
    count_red(rgb, 96 * 96, &red, &dark);
    assert_in_range(red, 20, 200); // the cube is about nine pixels wide
    host.stop = 1;
    client_close(&c);
    host_join();
}

// Live: rates, a motion, and what happens when commands stop.
static void live_loop(void **state)
{
    static uint8_t buf[65536];
    struct client c;
    double q[ARM_JOINTS], start[ARM_JOINTS];
    int64_t last = 0, first;
    int frames = 0, states = 0;
    char sheet[80];
    struct stat st;
    (void)state;

    snprintf(sheet, sizeof sheet, "%s/live.png", dir);
    START("--episodes", "0", "--raw", "--joint-hz", "50", "--control-hz", "50", "--sheet",
          sheet);
    usleep(300000);
    client_open(&c, dir);
    assert_true(next_state(&c, &last, start));
    usleep(200000);
    while (next_state(&c, &first, q) && receive(c.front, 0, buf, sizeof buf) > 0)
        first = last; // drop what has piled up
    assert_true(next_state(&c, &last, q));
    first = last;
    for (int i = 1; i <= 50; i++) {
        assert_true(next_state(&c, &last, q));
        states++;
        memcpy(q, start, sizeof q);
        q[ARM_PAN] += 0.01 * i;
        send_command(&c, q, 100000000);
        while (receive(c.front, 0, buf, sizeof buf) > 0)
            frames++;
    }
    assert_true(last - first > 800000000 && last - first < 20000000000); // 1 s nominal
    assert_true(frames >= 3);
    usleep(400000); // no command: the time to live runs out
    while (next_state(&c, &last, q) && run_wall_ns() - last > 30000000)
        ;
    assert_true(q[ARM_PAN] > start[ARM_PAN] + 0.3 && q[ARM_PAN] < start[ARM_PAN] + 0.6);
    host.stop = 1;
    client_close(&c);
    host_join();
    assert_true(host.run.plant.servo.ttl_stops >= 1);
    assert_true(host.run.counts.commands >= 45);
    assert_int_equal(stat(sheet, &st), 0); // an unfinished episode is drawn as such
    assert_false(host.run.story.succeeded);
    assert_int_equal(host.run.counts.refused, 0);
}

static void a_muted_camera_is_silent(void **state)
{
    static uint8_t buf[65536];
    struct client c;
    double q[ARM_JOINTS];
    int64_t last = 0;
    (void)state;

    START("--lockstep", "--fault", "front@0");
    usleep(200000);
    client_open(&c, dir);
    assert_true(next_state(&c, &last, q));
    assert_true(receive(c.front, 300, buf, sizeof buf) <
                0); // six repetitions of the moment
    host.stop = 1;
    client_close(&c);
    host_join();
}

static double goal_distance(int seed_a, int a, int seed_b, int b)
{
    const int seeds[] = {seed_a, seed_b}, numbers[] = {a, b};
    float goal[2][3];

    for (int k = 0; k < 2; k++) {
        char path[128];
        snprintf(path, sizeof path, "%s/s%d_%05d.ep", dir, seeds[k], numbers[k]);
        FILE *f = fopen(path, "rb");
        assert_non_null(f);
        assert_int_equal(fseek(f, 24 + 2 * 24, SEEK_SET), 0);
        assert_int_equal(fread(goal[k], sizeof goal[k], 1, f), 1);
        fclose(f);
    }
    return (double)(fabsf(goal[0][0] - goal[1][0]) + fabsf(goal[0][1] - goal[1][1]));
}

static void recordings_have_the_documented_size(void **state)
{
    const char *why;
    char path[128];
    uint8_t head[24];
    uint32_t n[4];
    struct stat st;
    struct record_options o = {.dir = dir, .episodes = 2, .seed = 77, .noise_rad = 0.03};
    (void)state;

    assert_int_equal(record_run(&o, &why), 0);
    snprintf(path, sizeof path, "%s/s77_00001.ep", dir);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fread(head, sizeof head, 1, f), 1);
    fclose(f);
    assert_memory_equal(head, "ACTDEP02", 8);
    memcpy(n, head + 8, sizeof n);
    assert_in_range(n[0], 30, 60);
    assert_int_equal(n[1], 6);
    assert_int_equal(n[2], 2);
    assert_int_equal(n[3], 25);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size,
                     24 + 2 * 24 + 12 + n[0] * (48 + 96 * 96 * 3 + 64 * 64 * 3));
    o.seed = 78; // a neighbour's episodes are others, at every shift
    assert_int_equal(record_run(&o, &why), 0);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            assert_true(goal_distance(77, i, 78, j) > 1e-4);
    o.dir = "/nonexistent/place";
    assert_true(record_run(&o, &why) < 0);
    assert_non_null(strstr(why, "directory"));
}

static void bad_runtime_is_a_sentence(void **state)
{
    static struct run r;
    struct options o;
    volatile sig_atomic_t stop = 0;
    char err[512], name[] = "actd-sim", *argv[] = {name, NULL};
    (void)state;

    assert_int_equal(options_parse(&o, 1, argv, err, sizeof err), 0);
    strcpy(o.runtime, "/proc/nowhere/actd");
    assert_true(run_open(&r, &o, &stop, err, sizeof err) < 0);
    assert_non_null(strstr(err, "--runtime"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands_are_checked),
        cmocka_unit_test(only_a_driver_starts_the_clock),
        cmocka_unit_test(lockstep_episodes),
        cmocka_unit_test(jpeg_frames_show_the_goal),
        cmocka_unit_test(live_loop),
        cmocka_unit_test(a_muted_camera_is_silent),
        cmocka_unit_test(recordings_have_the_documented_size),
        cmocka_unit_test(bad_runtime_is_a_sentence),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
