// A small robot in virtual time whose every step is put on a tape, for tests of the replay: three
// joints, one camera of 8x8 pixels, a policy that is a formula. The tape becomes a list of messages,
// which a test may change before it is written as a log.
#ifndef ACTD_TESTS_REPLAY_WORLD_H
#define ACTD_TESTS_REPLAY_WORLD_H

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/intake_impl.h"
#include "daemon/keyframe.h"
#include "daemon/loop_impl.h"
#include "daemon/mcap_write.h"
#include "daemon/outbox.h"
#include "daemon/record_codec.h"
#include "daemon/replay.h"
#include "foxglove/JointStates.pb-c.h"
#include "foxglove/RawImage.pb-c.h"

#define RW_JOINTS 3
#define RW_ROWS   40
#define RW_SIDE   8
#define RW_START  (1000 * NS_PER_S)
#define RW_BASE   (INT64_C(1700000000) * NS_PER_S) // log time of monotonic 0
#define RW_PERIOD (2 * NS_PER_MS)

static const char *const rw_joint[RW_JOINTS] = {"shoulder", "elbow", "gripper"};

// ---- messages --------------------------------------------------------------------------------

struct rw_message {
    char topic[40];
    uint64_t log_ns, publish_ns;
    size_t size;
    unsigned char *bytes;
};

struct rw_log {
    size_t n, capacity;
    struct rw_message *m;
};

static inline void rw_put(struct rw_log *log, const char *topic, ns_t at_ns,
                          const void *bytes, size_t size)
{
    struct rw_message *m;

    if (log->n == log->capacity) {
        log->capacity = log->capacity ? 2 * log->capacity : 1024;
        log->m = realloc(log->m, log->capacity * sizeof *log->m);
        assert(log->m);
    }
    m = &log->m[log->n++];
    memset(m, 0, sizeof *m);
    snprintf(m->topic, sizeof m->topic, "%s", topic);
    m->log_ns = m->publish_ns = (uint64_t)(at_ns + RW_BASE);
    m->size = size;
    m->bytes = malloc(size + 1);
    assert(m->bytes);
    memcpy(m->bytes, bytes, size);
}

static inline void rw_log_free(struct rw_log *log)
{
    for (size_t i = 0; i < log->n; i++)
        free(log->m[i].bytes);
    free(log->m);
    memset(log, 0, sizeof *log);
}

static inline void rw_remove(struct rw_log *log, size_t i)
{
    free(log->m[i].bytes);
    memmove(&log->m[i], &log->m[i + 1], (log->n - i - 1) * sizeof *log->m);
    log->n--;
}

// The k-th of a topic (k < 0: from the end), or NULL.
static inline struct rw_message *rw_nth(struct rw_log *log, const char *topic, long k)
{
    long n = 0;

    for (size_t i = 0; i < log->n; i++)
        n += strcmp(log->m[i].topic, topic) == 0;
    k = k < 0 ? n + k : k;
    for (size_t i = 0; i < log->n; i++)
        if (strcmp(log->m[i].topic, topic) == 0 && k-- == 0)
            return &log->m[i];
    return NULL;
}

static inline size_t rw_count(const struct rw_log *log, const char *topic)
{
    size_t n = 0;

    for (size_t i = 0; i < log->n; i++)
        n += strcmp(log->m[i].topic, topic) == 0;
    return n;
}

// ---- the file --------------------------------------------------------------------------------

static inline int rw_write_fd(void *arg, const struct iovec *v, int n)
{
    for (int i = 0; i < n; i++)
        if (fwrite(v[i].iov_base, 1, v[i].iov_len, arg) != v[i].iov_len)
            return -5;
    return 0;
}

// What the next files say of who recorded; "" = nothing.
static struct {
    const char *exe, *kernels, *blas_core;
} rw_by = {"", "", ""};

// foreign: without the metadata of ours. config: its text, may be NULL.
static inline void rw_save(const struct rw_log *log, const char *path, bool foreign,
                           const char *config)
{
    static const char *const topics[] = {"/tick",
                                         "/input",
                                         "/policy/chunk",
                                         "/policy/seat",
                                         "/command",
                                         "/keyframe",
                                         "/joint_states",
                                         "/camera/front/raw",
                                         "/undecodable/joint_states",
                                         "/undecodable/front",
                                         "/parts/joint_states",
                                         "/parts/front",
                                         "/events"};
    enum { N = sizeof topics / sizeof *topics };
    struct mcap_build_options how = {.compression = MCAP_ZSTD};
    struct mcap_writer_options w = {
        .profile = "", .library = "test", .write = rw_write_fd};
    struct mcap_channel channel[N];
    struct mcap_writer *writer;
    struct mcap_build *build;
    char base[32];
    bool said[N] = {false};
    FILE *f = fopen(path, "w");

    assert(f);
    w.arg = f;
    assert(mcap_writer_new(&writer, &w) == 0 && mcap_build_new(&build, &how) == 0);
    snprintf(base, sizeof base, "%lld", (long long)RW_BASE);
    const struct mcap_pair pairs[] = {{"version", "test"},
                                      {"run_id", "r"},
                                      {"base_ns", base},
                                      {"joints", "shoulder\nelbow\ngripper"},
                                      {"cameras", "front"},
                                      {"config", config ? config : ""},
                                      {"rows", "40"},
                                      {"policy_hz", "50"},
                                      {"action_steps", "0"},
                                      {"ensemble_coeff", "nan"},
                                      {"sizes", "8x8"},
                                      {"exe_sha256", rw_by.exe},
                                      {"kernels", rw_by.kernels},
                                      {"blas_core", rw_by.blas_core}};
    if (!foreign)
        assert(mcap_writer_metadata(writer, "actd", pairs, config ? 14 : 6) == 0);
    for (int i = 0; i < N; i++) {
        channel[i] =
            (struct mcap_channel){.id = (uint16_t)(i + 1),
                                  .topic = topics[i],
                                  .encoding = i == 5 ? "actd-keyframe" : "protobuf"};
        assert(mcap_writer_channel(writer, &channel[i], false) == 0);
    }
    for (size_t i = 0; i <= log->n; i++) {
        struct mcap_chunk *chunk = NULL;

        if (i == log->n || mcap_build_bytes(build) > 100000) {
            assert(mcap_build_finish(build, &chunk) == 0);
            if (chunk)
                assert(mcap_writer_chunk(writer, chunk) == 0);
            mcap_chunk_free(chunk);
        }
        for (int c = 0; i < log->n && c < N; c++) {
            if (strcmp(topics[c], log->m[i].topic) != 0)
                continue;
            if (!said[c])
                assert(mcap_build_channel(build, &channel[c]) == 0);
            said[c] = true;
            struct mcap_message m = {.channel = channel[c].id,
                                     .log_ns = log->m[i].log_ns,
                                     .publish_ns = log->m[i].publish_ns,
                                     .data = log->m[i].bytes,
                                     .size = log->m[i].size};
            assert(mcap_build_message(build, &m) == 0);
        }
    }
    assert(mcap_writer_finish(writer) == 0);
    mcap_writer_free(writer);
    mcap_build_free(build);
    fclose(f);
}

// ---- the robot -------------------------------------------------------------------------------

struct rw {
    struct replay_robot robot;
    struct board board;
    struct tape *tape;
    struct intake *intake;
    struct camera *camera;
    struct loop *loop;
    struct outbox outbox;
    double arm[RW_JOINTS]; // where it is
    double bid[RW_JOINTS]; // and is told to go
    ns_t now;
    uint64_t tick;
    uint64_t chunks, frames;
    uint32_t generation;
    struct rw_log log;
    unsigned char last_joints[2048];
    size_t last_joints_size;
    struct tape_chunk request; // to be answered, if
    bool thinking;
    ns_t answer_at;
    float row[RW_ROWS * RW_JOINTS];
    ns_t frame_ns, frame_capture_ns;
    uint8_t shade; // of the newest frame
};

// The policy: rows that lead from the sample along a slope that the picture sets.
static inline void rw_rows(const struct policy_image *image, const struct joint_sample *s,
                           float *row)
{
    for (int k = 0; k < RW_ROWS; k++)
        for (int j = 0; j < RW_JOINTS; j++)
            row[k * RW_JOINTS + j] =
                (float)(0.4 * sin(0.05 * k + (double)image->rgb[0] * 0.01 + j) +
                        0.01 * s->pos[j]);
}

static inline int rw_think(void *arg, const struct tape_chunk *request,
                           const struct policy_image *image,
                           const struct joint_sample *joints, float *row,
                           struct config_error *err)
{
    (void)arg;
    (void)request;
    (void)err;
    if (!image[0].rgb)
        return -2; // -ENOENT
    rw_rows(image, joints, row);
    return RW_ROWS;
}

static inline struct replay_robot rw_robot(void)
{
    struct replay_robot r = {.cameras = 1, .rows = RW_ROWS, .think = rw_think};
    struct loop_config *c = &r.loop;

    *c = (struct loop_config){
        .control_hz = 500,
        .joints = RW_JOINTS,
        .following_ticks = 10,
        .joints_period_ns = 6 * NS_PER_MS,
        .n_cameras = 1,
        .camera_period_ns = {30 * NS_PER_MS},
        .budget_ns = {RW_PERIOD, RW_PERIOD, NS_PER_S, 100 * NS_PER_MS},
        .hold_ns = 200 * NS_PER_MS,
        .ttl_ns = 20 * NS_PER_MS,
        .tick_gap_ns = 100 * NS_PER_MS,
        .fresh_ticks = 20,
        .approach_scale = 0.5,
        .approach_tolerance = 0.1};
    c->limits.n = RW_JOINTS;
    r.intake =
        (struct intake_config){.joints = RW_JOINTS, .max_jump = 0.2, .rate_hz = 166};
    for (int i = 0; i < RW_JOINTS; i++) {
        c->limits.min[i] = -2;
        c->limits.max[i] = 2;
        c->limits.velocity[i] = r.intake.velocity[i] = 3;
        c->limits.acceleration[i] = 20;
        c->limits.stop_acceleration[i] = 40;
        c->following_error[i] = 0.5;
        c->chunks.blend[i] = i != 2;
        r.joint[i] = rw_joint[i];
    }
    c->chunks.mode = CHUNK_CROSSFADE;
    c->chunks.interpolation = CHUNK_LINEAR;
    c->chunks.rows = RW_ROWS;
    c->chunks.joints = RW_JOINTS;
    c->chunks.capacity = 8;
    c->chunks.step_ns = 20 * NS_PER_MS;
    c->chunks.fade_ns = 100 * NS_PER_MS;
    r.camera[0].name = "front";
    r.camera[0].rate_hz = 33;
    return r;
}

static inline void rw_init(struct rw *w)
{
    struct tape_sizes sizes = {{4u << 20, 1u << 20, 1u << 20, 4u << 20, 4u << 20}};

    memset(w, 0, sizeof *w);
    w->robot = rw_robot();
    w->now = RW_START;
    w->generation = 1;
    assert(board_init(&w->board, 1, RW_ROWS, RW_JOINTS) == 0);
    assert(tape_new(&w->tape, &sizes) == 0);
    w->board.tape = w->tape;
    assert(intake_new(&w->intake, &w->robot.intake, rw_joint, &w->board) == 0);
    assert(camera_new(&w->camera, &w->board.camera[0], 0) == 0);
    camera_declare(w->camera, w->robot.camera[0].rate_hz, &w->board.armed);
    camera_record(w->camera, w->tape, 1);
    assert(loop_new(&w->loop, &w->robot.loop, &w->board) == 0);
    atomic_store(&w->board.started, true);
    tape_turn(w->tape, true);
}

static inline void rw_free(struct rw *w)
{
    loop_free(w->loop);
    camera_stop(w->camera);
    intake_free(w->intake);
    board_free(&w->board);
    tape_free(w->tape);
    rw_log_free(&w->log);
}

static inline const char *rw_topic_of(int stream, enum tape_form form)
{
    if (form == TAPE_PARTS)
        return stream == 0 ? "/parts/joint_states" : "/parts/front";
    if (stream == 0)
        return form == TAPE_JOINTS ? "/joint_states" : "/undecodable/joint_states";
    return form == TAPE_RAW ? "/camera/front/raw" : "/undecodable/front";
}

// What follows the head of an entry, under its topic.
static inline void rw_put_bytes(struct rw *w, int stream, enum tape_form form, bool first,
                                bool more, const struct tape_entry *e, size_t head)
{
    const unsigned char *bytes = (const unsigned char *)(e + 1) + head;
    unsigned char part[64];
    size_t n = e->size - head;

    if (form == TAPE_PARTS) {
        n = record_part(&(struct codec_part){bytes, n, first, more}, part, sizeof part);
        bytes = part;
    }
    rw_put(&w->log, rw_topic_of(stream, form), e->at_ns, bytes, n);
}

static inline void rw_drain_input(struct rw *w, const struct tape_entry *e)
{
    struct tape_input in;
    unsigned char bytes[RECORD_INPUT_MAX];

    memcpy(&in, e + 1, sizeof in);
    if (e->size > sizeof in)
        rw_put_bytes(w, in.stream, in.form, in.kind == TAPE_SEVERAL_PARTS, in.more, e,
                     sizeof in);
    rw_put(&w->log, "/input", e->at_ns, bytes, record_input(&in, bytes, sizeof bytes));
}

static inline void rw_drain_one(struct rw *w, const struct tape_entry *e)
{
    static unsigned char bytes[1 << 16];
    struct tick_record *t;
    struct tape_frame f;
    struct tape_chunk c;

    switch (e->kind) {
    case TAPE_TICK:
        t = calloc(1, sizeof *t);
        memcpy(t, e + 1, e->size);
        rw_put(&w->log, "/tick", e->at_ns, bytes, record_tick(t, bytes, sizeof bytes));
        free(t);
        break;
    case TAPE_INPUT:
        rw_drain_input(w, e);
        break;
    case TAPE_COMMAND:
        rw_put(&w->log, "/command", e->at_ns, e + 1, e->size);
        break;
    case TAPE_LOOP_STATE:
    case TAPE_BUS_STATE:
        rw_put(&w->log, "/keyframe", e->at_ns, e + 1, e->size);
        break;
    case TAPE_FRAME:
        memcpy(&f, e + 1, sizeof f);
        rw_put_bytes(w, 1, f.form, f.first, f.more, e, sizeof f);
        break;
    case TAPE_CHUNK:
        memcpy(&c, e + 1, sizeof c);
        rw_put(&w->log, "/policy/chunk", e->at_ns, bytes,
               record_chunk(&c,
                            (const float *)((const unsigned char *)(e + 1) + sizeof c),
                            bytes, sizeof bytes));
        break;
    default:
        break;
    }
}

static inline void rw_drain(struct rw *w)
{
    const struct tape_entry *e;

    for (int c = 0; c < TAPE_CLASSES; c++)
        while ((e = tape_peek(w->tape, (enum tape_class)c))) {
            rw_drain_one(w, e);
            tape_release(w->tape, (enum tape_class)c);
        }
}

// ---- messages in -----------------------------------------------------------------------------

static inline void rw_stamp(Google__Protobuf__Timestamp *t, ns_t at)
{
    google__protobuf__timestamp__init(t);
    t->seconds = (at + RW_BASE) / NS_PER_S;
    t->nanos = (int32_t)((at + RW_BASE) % NS_PER_S);
}

static inline void rw_send_joints(struct rw *w, double spoil)
{
    Google__Protobuf__Timestamp t;
    Foxglove__JointStates m;
    Foxglove__JointState joint[RW_JOINTS], *joints[RW_JOINTS];
    char names[RW_JOINTS][16];

    foxglove__joint_states__init(&m);
    rw_stamp(&t, w->now - NS_PER_MS);
    m.timestamp = &t;
    for (int i = 0; i < RW_JOINTS; i++) {
        foxglove__joint_state__init(&joint[i]);
        snprintf(names[i], sizeof names[i], "%s", rw_joint[i]);
        joint[i].name = names[i];
        w->arm[i] += 0.2 * (w->bid[i] - w->arm[i]);
        joint[i].position = w->arm[i] + spoil;
        joints[i] = &joint[i];
    }
    m.n_joints = RW_JOINTS;
    m.joints = joints;
    w->last_joints_size = foxglove__joint_states__pack(&m, w->last_joints);
    intake_joints(w->intake, w->last_joints, w->last_joints_size, w->now);
    intake_publish(w->intake);
}

static inline size_t rw_frame(struct rw *w, unsigned char *out)
{
    static char mono[] = "mono8";
    unsigned char pixels[RW_SIDE * RW_SIDE];
    Google__Protobuf__Timestamp t;
    Foxglove__RawImage m;

    memset(pixels, (uint8_t)(++w->frames * 7), sizeof pixels);
    foxglove__raw_image__init(&m);
    rw_stamp(&t, w->now - NS_PER_MS);
    m.timestamp = &t;
    m.width = m.height = m.step = RW_SIDE;
    m.encoding = mono;
    m.data = (ProtobufCBinaryData){sizeof pixels, pixels};
    return foxglove__raw_image__pack(&m, out);
}

static inline void rw_send_frame(struct rw *w)
{
    unsigned char bytes[1024];
    size_t n = rw_frame(w, bytes);

    if (!camera_park(w->camera, intake_codec(w->intake), bytes, n, w->now))
        return;
    w->shade = (uint8_t)(w->frames * 7);
    w->frame_ns = w->now;
    w->frame_capture_ns = atomic_load(&w->board.camera[0].capture_ns);
}

// What else comes: every kind of input, spread over time.
static inline void rw_send_odd(struct rw *w)
{
    static const unsigned char junk[] = {0xff, 0xff, 1, 2, 3};
    unsigned char bytes[1024];

    switch (w->tick % 401) {
    case 50:
        intake_joints(w->intake, junk, sizeof junk, w->now);
        break;
    case 90: // a duplicate
        if (w->last_joints_size)
            intake_joints(w->intake, w->last_joints, w->last_joints_size, w->now);
        break;
    case 130:
        intake_part(w->intake, &(struct codec_part){junk, 3, true, true}, w->now);
        break;
    case 131:
        intake_part(w->intake, &(struct codec_part){junk, 2, false, false}, w->now);
        break;
    case 170:
        camera_part(w->camera, &(struct codec_part){"", 0, true, true}, w->now);
        break;
    case 171:
        camera_part(w->camera, &(struct codec_part){junk, 5, false, false}, w->now);
        break;
    case 210:
        camera_supersede(w->camera, bytes, rw_frame(w, bytes), w->now);
        break;
    case 250:
        (void)camera_park(w->camera, intake_codec(w->intake), junk, sizeof junk, w->now);
        break;
    case 290:
        intake_wall_set(w->intake, 20 * NS_PER_MS, w->now);
        camera_wall_set(w->camera, 20 * NS_PER_MS, w->now);
        break;
    default:
        break;
    }
}

// ---- the policy ------------------------------------------------------------------------------

static inline void rw_ask(struct rw *w)
{
    const struct joint_history *h = &w->intake->history;
    const struct joint_sample *s = &h->sample[(h->count - 1) % BOARD_HISTORY];
    uint8_t rgb[3] = {w->shade, w->shade, w->shade};
    struct policy_image image = {.rgb = rgb, .width = 1, .height = 1, .stride = 3};

    if (w->thinking || h->count == 0 || w->frame_ns == 0)
        return;
    w->request = (struct tape_chunk){.id = ++w->chunks,
                                     .generation = w->generation,
                                     .rows = RW_ROWS,
                                     .joints = RW_JOINTS,
                                     .anchor_ns = w->frame_capture_ns,
                                     .oldest_ns = w->frame_capture_ns,
                                     .step_ns = 20 * NS_PER_MS,
                                     .began_ns = w->now,
                                     .joint_sample = s->number};
    w->request.frame_ns[0] = w->frame_ns;
    w->request.capture_ns[0] = w->frame_capture_ns;
    rw_rows(&image, s, w->row);
    w->thinking = true;
    w->answer_at = w->now + 30 * NS_PER_MS;
    atomic_store(&w->board.inferring_since_ns, w->now);
}

static inline void rw_answer(struct rw *w)
{
    struct chunk *c;

    if (!w->thinking || w->now < w->answer_at)
        return;
    w->thinking = false;
    w->request.ready_ns = w->now;
    c = ring_reserve(&w->board.chunks);
    assert(c);
    c->id = w->request.id;
    c->anchor_ns = w->request.anchor_ns;
    c->oldest_ns = w->request.oldest_ns;
    c->ready_ns = w->request.ready_ns;
    c->step_ns = w->request.step_ns;
    c->generation = w->request.generation;
    c->rows = RW_ROWS;
    c->joints = RW_JOINTS;
    memcpy(c->row, w->row, sizeof w->row);
    assert(tape_chunk(w->tape, &w->request, w->row));
    ring_commit(&w->board.chunks);
    atomic_store(&w->board.inferring_since_ns, 0);
}

// ---- time ------------------------------------------------------------------------------------

static ns_t rw_clock_now;
static inline ns_t rw_clock(void)
{
    rw_clock_now += 1000;
    return rw_clock_now;
}

static inline void rw_send_command(struct rw *w)
{
    static unsigned char bytes[CODEC_COMMAND_MAX];
    struct command c;
    size_t n;

    if (w->tick % 97 == 13)
        return; // a bus that is slow: the next one finds no room
    if (!outbox_next(&w->outbox, &w->board, w->now, &c))
        return;
    n = codec_command(intake_codec(w->intake), &c, c.made_ns + RW_BASE + 12345, bytes,
                      sizeof bytes);
    assert(n > 0 && tape_command(w->tape, w->now, bytes, n));
    memcpy(w->bid, c.pos, sizeof w->bid);
}

static inline void rw_step(struct rw *w)
{
    ns_t due = RW_START + (ns_t)(w->tick + 1) * RW_PERIOD;

    if (w->tick % 500 == 250)
        tape_ask_states(w->tape);
    w->now = due - RW_PERIOD / 2;
    keyframe_bus(w->intake, &w->camera, 1, w->tape, w->now);
    if (w->tick % 3 == 0)
        rw_send_joints(w, w->tick % 1000 == 600 ? 1.0 : 0); // and one that no arm can do
    w->now += 1000;
    if (w->tick % 15 == 0)
        rw_send_frame(w);
    w->now += 1000;
    rw_send_odd(w);
    if (w->tick % 100 == 10)
        rw_ask(w);
    rw_answer(w);
    if (loop_last(w->loop)->mode == LADDER_READY && w->tick % 20 == 0)
        atomic_fetch_or(&w->board.requests, BOARD_ARM);
    w->now = due + (ns_t)(w->tick % 7) * 1000;
    rw_clock_now = w->now;
    if (w->tick % 211 != 100) // a tick that is overslept
        loop_tick(w->loop, w->tick, w->now, w->now - due, rw_clock);
    w->tick++;
    w->now += 20000;
    rw_send_command(w);
    rw_drain(w);
}

static inline void rw_run(struct rw *w, int ticks)
{
    for (int i = 0; i < ticks; i++)
        rw_step(w);
}

// ---- replay ----------------------------------------------------------------------------------

struct rw_replayed {
    int rc;
    struct replay_result r;
    struct config_error err;
};

static inline struct rw_replayed rw_replay_file(const char *path,
                                                const struct replay_robot *robot,
                                                const struct replay_options *opt)
{
    struct rw_replayed out;
    struct logbook *book = NULL;
    struct mcap_error e;

    memset(&out, 0, sizeof out);
    out.rc = logbook_open(&book, &path, 1, &e);
    if (out.rc)
        snprintf(out.err.text, sizeof out.err.text, "%s", e.text);
    else
        out.rc = replay_run_robot(book, robot, opt, &out.r, &out.err);
    logbook_close(book);
    return out;
}

#endif
