// What the tests of status share: a board filled by hand, the message as received on a real SUB
// socket, and the log's text. The threads behind bus.h, camera.h, infer.h and swap.h are replaced
// here, at link time, by what they count. One program includes it once.
#ifndef TEST_STATUS_RIG_H
#define TEST_STATUS_RIG_H

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#include <cmocka.h>

#include "actd/v1/status.pb-c.h"
#include "daemon/recorder.h"
#include "daemon/status.h"

#define CAMERAS POLICY_MAX_CAMERAS
#define JOINTS  ACTD_MAX_JOINTS
#define PERIOD  (400 * NS_PER_MS) // between two statuses here
#define MESSAGE (256 * 1024)

// ---- in the place of the threads -------------------------------------------------------------

static struct bus_counts of_bus;
static struct infer_counts of_infer;
static char infer_why[INFER_FAILURE_MAX];
struct camera {
    uint64_t superseded;
    char why[CODEC_WHY_MAX];
};

struct bus_counts bus_counts(const struct bus *b)
{
    (void)b;
    return of_bus;
}

const struct infer_counts *infer_counts(const struct infer *w)
{
    (void)w;
    return &of_infer;
}

void infer_last_failure(const struct infer *w, char text[INFER_FAILURE_MAX])
{
    (void)w;
    memcpy(text, infer_why, INFER_FAILURE_MAX);
}

void camera_last_refusal_text(const struct camera *c, char text[CODEC_WHY_MAX])
{
    memcpy(text, c->why, CODEC_WHY_MAX);
}

static struct swap_policy of_swap;
void swap_policy_status(struct swap *s, struct swap_policy *out)
{
    (void)s;
    *out = of_swap;
}

static struct recorder_counts of_recorder;
void recorder_counts(struct recorder *r, struct recorder_counts *out)
{
    (void)r;
    *out = of_recorder;
}

uint64_t camera_superseded(const struct camera *c)
{
    return c->superseded;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

// ---- the rig ---------------------------------------------------------------------------------

struct rig {
    struct config cfg;
    struct board board;
    struct camera camera[CAMERAS], *cameras[CAMERAS];
    struct loop_report report;
    struct status_source source;
    struct status *status;
    void *context, *pub, *sub;
    char dir[64], log[96];
    uint8_t message[MESSAGE];
    int size;
    Actd__V1__Status *got;
};

static inline void sockets(struct rig *r)
{
    char endpoint[96], subscription[8];
    const int none = 0, ms = 10000;
    snprintf(endpoint, sizeof endpoint, "ipc://%s/status", r->dir);
    r->context = zmq_ctx_new();
    r->pub = zmq_socket(r->context, ZMQ_XPUB); // a PUB that hears of its subscriber
    r->sub = zmq_socket(r->context, ZMQ_SUB);
    zmq_setsockopt(r->pub, ZMQ_LINGER, &none, sizeof none);
    zmq_setsockopt(r->sub, ZMQ_LINGER, &none, sizeof none);
    zmq_setsockopt(r->pub, ZMQ_RCVTIMEO, &ms, sizeof ms);
    zmq_setsockopt(r->sub, ZMQ_RCVTIMEO, &ms, sizeof ms);
    zmq_setsockopt(r->sub, ZMQ_SUBSCRIBE, "", 0);
    assert_int_equal(zmq_bind(r->pub, endpoint), 0);
    assert_int_equal(zmq_connect(r->sub, endpoint), 0);
    assert_int_equal(zmq_recv(r->pub, subscription, sizeof subscription, 0), 1);
}

static inline void name_things(struct rig *r)
{
    struct config *c = &r->cfg;
    snprintf(c->instance, sizeof c->instance, "left");
    snprintf(c->policy.directory, sizeof c->policy.directory, "/p/reach");
    snprintf(c->joint[0].name, CONFIG_NAME, "lift");
    snprintf(c->joint[1].name, CONFIG_NAME, "turn");
    snprintf(c->camera[0].name, CONFIG_NAME, "front");
    snprintf(c->camera[1].name, CONFIG_NAME, "wrist");
    c->n_joints = c->n_cameras = 2;
    c->control.rate_hz = 100;
    c->joint_state.rate_hz = 50;
    c->camera[0].rate_hz = 30;
    c->camera[1].rate_hz = 20;
}

static inline int setup(void **state)
{
    struct rig *r = calloc(1, sizeof *r);
    *state = r;
    snprintf(r->dir, sizeof r->dir, "/tmp/actd-status.XXXXXX");
    if (!mkdtemp(r->dir) || board_init(&r->board, 2, 4, 2))
        return -1;
    snprintf(r->log, sizeof r->log, "%s/log", r->dir);
    memset(&of_bus, 0, sizeof of_bus);
    memset(&of_infer, 0, sizeof of_infer);
    memset(infer_why, 0, sizeof infer_why);
    memset(&of_swap, 0, sizeof of_swap);
    memset(&of_recorder, 0, sizeof of_recorder);
    for (int c = 0; c < CAMERAS; c++)
        r->cameras[c] = &r->camera[c];
    name_things(r);
    sockets(r);
    r->source = (struct status_source){.cfg = &r->cfg,
                                       .board = &r->board,
                                       .cameras = r->cameras,
                                       .scheduling = "SCHED_FIFO 50",
                                       .memory_locked = true,
                                       .recorder = (struct recorder *)&of_recorder,
                                       .publisher = r->pub};
    return status_new(&r->status, &r->source);
}

static inline int teardown(void **state)
{
    struct rig *r = *state;
    char path[96];
    if (r->got)
        actd__v1__status__free_unpacked(r->got, NULL);
    status_free(r->status);
    zmq_close(r->sub);
    zmq_close(r->pub);
    zmq_ctx_term(r->context);
    board_free(&r->board);
    snprintf(path, sizeof path, "%s/status", r->dir);
    unlink(path);
    unlink(r->log);
    rmdir(r->dir);
    free(r);
    return 0;
}

// Runs f with standard error in a file and returns what it wrote.
static inline const char *said(struct rig *r, void (*f)(struct status *))
{
    static char text[64 * 1024];
    int saved = dup(STDERR_FILENO);
    int file = open(r->log, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(saved >= 0 && file >= 0);
    dup2(file, STDERR_FILENO);
    f(r->status);
    dup2(saved, STDERR_FILENO);
    close(saved);
    ssize_t n = pread(file, text, sizeof text - 1, 0);
    close(file);
    assert_true(n >= 0);
    text[n] = '\0';
    return text;
}

// One status: the log's text; the message in r->got.
static inline const char *publish(struct rig *r)
{
    slot_write(&r->board.report, &r->report);
    const char *text = said(r, status_publish);
    r->size = zmq_recv(r->sub, r->message, sizeof r->message, 0);
    assert_in_range(r->size, 1, sizeof r->message);
    if (r->got)
        actd__v1__status__free_unpacked(r->got, NULL);
    r->got = actd__v1__status__unpack(NULL, (size_t)r->size, r->message);
    assert_non_null(r->got);
    return text;
}

static inline void has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("'%s' is not in '%s'", part, text);
}

static inline void has_not(const char *text, const char *part)
{
    if (strstr(text, part))
        fail_msg("'%s' is in '%s'", part, text);
}

static inline uint64_t in(Actd__V1__Counter *const *list, size_t n, const char *name)
{
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++) {
        assert_true(list[i]->value > 0);
        if (strcmp(list[i]->name, name) == 0) {
            assert_int_equal(value, 0); // a name once
            value = list[i]->value;
        }
    }
    return value;
}

static inline uint64_t dropped(const struct rig *r, const char *name)
{
    return in(r->got->drops, r->got->n_drops, name);
}

static inline uint64_t limited(const struct rig *r, const char *name)
{
    return in(r->got->limited, r->got->n_limited, name);
}

#define NEAR(a, b, tolerance)                               \
    do {                                                    \
        double a_ = (a), b_ = (b);                          \
        if (a_ < b_ - (tolerance) || a_ > b_ + (tolerance)) \
            fail_msg("%s is %g, not about %g", #a, a_, b_); \
    } while (0)

static inline void nap(ns_t ns)
{
    clock_sleep_until(clock_now_ns() + ns);
}

static inline void longest(char *out, size_t size, int number)
{
    memset(out, 'x', size - 1);
    out[size - 1] = '\0';
    out[0] = (char)('A' + number);
}

// As many joints and cameras as there can be, with the longest names, and everything that
// can go wrong with each.
static inline void everything_wrong(struct rig *r)
{
    r->cfg.n_joints = JOINTS;
    r->board.n_cameras = r->cfg.n_cameras = CAMERAS;
    longest(r->cfg.instance, sizeof r->cfg.instance, 0);
    longest(r->cfg.policy.directory, sizeof r->cfg.policy.directory, 0);
    longest(of_bus.joints_refusal_text, CODEC_WHY_MAX, 0);
    longest(infer_why, sizeof infer_why, 0);
    for (int j = 0; j < JOINTS; j++) {
        longest(r->cfg.joint[j].name, CONFIG_NAME, j);
        for (int l = 0; l < GUARD_LIMITS; l++)
            r->report.limited[j][l] = UINT64_MAX / 1000;
    }
    for (int c = 0; c < CAMERAS; c++) {
        struct camera_mark *m = &r->board.camera[c];
        longest(r->cfg.camera[c].name, CONFIG_NAME, c);
        longest(r->camera[c].why, CODEC_WHY_MAX, c);
        r->cfg.camera[c].rate_hz = 30;
        m->refused = m->corrupt = m->duplicate = m->received = UINT64_MAX;
        r->camera[c].superseded = UINT64_MAX;
        of_infer.seen[c].early = of_infer.seen[c].kept = UINT64_MAX;
        of_infer.seen[c].computed = UINT64_MAX;
    }
    for (int v = 0; v < CHUNK_VERDICTS; v++)
        r->report.verdict[v] = UINT64_MAX;
    r->report.refused_vectors = r->report.gate_refusals = UINT64_MAX;
    r->report.commands_dropped = UINT64_MAX;
    r->board.joint_mark.refused = r->board.joint_mark.duplicate = UINT64_MAX;
    of_bus.send_failed = UINT64_MAX;
    of_infer.no_frame = of_infer.skew = of_infer.no_joints = UINT64_MAX;
    of_infer.failed = of_infer.ring_full = UINT64_MAX;
    memset(&of_recorder, 0x7f, sizeof of_recorder);
    of_recorder.mode = RECORDER_TRIGGER;
    of_recorder.recording = of_recorder.healthy = true;
    longest(of_recorder.file, sizeof of_recorder.file, 0);
    longest(of_recorder.last_error, sizeof of_recorder.last_error, 0);
}

#endif
