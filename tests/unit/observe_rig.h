// A policy worker with virtual cameras and a scripted brain, in a time of the test's own.
#ifndef ACTD_TESTS_OBSERVE_RIG_H
#define ACTD_TESTS_OBSERVE_RIG_H

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <turbojpeg.h>
#include <cmocka.h>

#include "daemon/infer.h"
#include "daemon/tape.h"
#include "foxglove/CompressedImage.pb-c.h"
#include "foxglove/RawImage.pb-c.h"

#define MS     NS_PER_MS
#define SIDE   16
#define JOINTS 3
#define ROWS   8
#define STEP   (20 * MS)
#define PERIOD (40 * MS) // of both cameras
#define SKEW   (50 * MS)
#define T0     (1000 * MS)

#define CAMERAS \
    3 // there are; the policy looks at the first two of them, unless it is told otherwise

enum { FRONT, WRIST, LEFT }; // FRONT is the primary camera

// Says what it saw: row k of joint j is state[j] + 100 * k; grey values are kept, and numbers. What
// it sees early it keeps as a policy does, by number.
struct script {
    int rc, see_rc;
    uint64_t calls;
    int n_cameras;
    uint8_t grey[CAMERAS];
    uint64_t number[CAMERAS];
    float state[JOINTS];
    uint64_t seen[CAMERAS]; // numbers, and
    uint8_t seen_grey[CAMERAS];
    uint32_t reused;
    uint64_t sees;
    int last; // camera that was seen last
    uint8_t last_grey;
    struct board *board;
    bool in_progress; // as the board said it when a frame was seen
};

struct rig {
    struct board board;
    struct camera *camera[CAMERAS];
    struct codec *codec;
    struct policy_info info;
    struct binding binding;
    struct script script;
    struct infer_config cfg;
    struct infer_seat seat;
    struct infer *infer;
    struct joint_history history;
    struct chunk *chunk; // the last one taken
};

static inline int think(void *self, const struct policy_observation *obs, float *actions)
{
    struct script *s = self;

    s->calls++;
    memcpy(s->state, obs->state, sizeof s->state);
    s->reused = 0;
    for (int c = 0; c < s->n_cameras; c++) {
        s->grey[c] = obs->image[c].rgb[0];
        s->number[c] = obs->image[c].number;
        s->reused |= (uint32_t)(s->seen[c] == s->number[c]) << c;
        if (s->seen[c] == s->number[c]) // what a policy would not look at again
            assert_int_equal(s->seen_grey[c], s->grey[c]);
        s->seen[c] = s->number[c];
        s->seen_grey[c] = s->grey[c];
    }
    for (int k = 0; k < ROWS; k++)
        for (int j = 0; j < JOINTS; j++)
            actions[k * JOINTS + j] = obs->state[j] + (float)(100 * k);
    return s->rc;
}

static inline int see(void *self, int camera, const struct policy_image *image)
{
    struct script *s = self;

    s->sees++;
    s->last = camera;
    s->last_grey = image->rgb[0];
    s->in_progress = s->board->inferring_since_ns != 0;
    if (s->see_rc)
        return s->see_rc;
    s->seen[camera] = image->number;
    s->seen_grey[camera] = s->last_grey;
    return 0;
}

static inline uint32_t reused(void *self)
{
    struct script *s = self;

    return s->reused;
}

static inline const char *why(void *self)
{
    (void)self;
    return "the script says no";
}

static inline int setup(void **state)
{
    static const char *const names[] = {"a", "b", "c"};
    struct rig *r = calloc(1, sizeof *r);

    *state = r;
    r->info = (struct policy_info){
        .n_cameras = 2, .state_dim = JOINTS, .action_dim = JOINTS, .chunk_size = ROWS};
    r->binding = (struct binding){.n = JOINTS,
                                  .n_state = JOINTS,
                                  .state_of = {0, 1, 2},
                                  .joint_of = {0, 1, 2},
                                  .scale = {1, 1, 1},
                                  .camera_of = {WRIST, FRONT, LEFT}, // the policy's order
                                  .primary = FRONT};
    r->cfg = (struct infer_config){.trigger = TRIGGER_CONTINUOUS,
                                   .max_skew_ns = SKEW,
                                   .camera_period_ns = {PERIOD, PERIOD, PERIOD},
                                   .cpu_not = -1};
    r->seat =
        (struct infer_seat){.brain = {.infer = think, .why = why, .self = &r->script},
                            .info = &r->info,
                            .binding = &r->binding,
                            .step_ns = STEP,
                            .every_rows = 4,
                            .horizon_rows = 1000};
    r->script.n_cameras = 2;
    r->script.board = &r->board;
    r->chunk = calloc(1, chunk_bytes(ROWS, JOINTS));
    if (infer_seat_init(&r->seat))
        return -1;
    if (board_init(&r->board, CAMERAS, ROWS, JOINTS) ||
        codec_new(&r->codec, names, JOINTS))
        return -1;
    for (int i = 0; i < CAMERAS; i++)
        if (camera_new(&r->camera[i], &r->board.camera[i], 0))
            return -1;
    return 0;
}

static inline int teardown(void **state)
{
    struct rig *r = *state;

    infer_free(r->infer);
    infer_seat_free(&r->seat);
    for (int i = 0; i < CAMERAS; i++)
        camera_stop(r->camera[i]);
    board_free(&r->board);
    codec_free(r->codec);
    free(r->chunk);
    free(r);
    return 0;
}

static inline void start(struct rig *r, enum config_trigger trigger)
{
    r->cfg.trigger = trigger;
    assert_int_equal(infer_new(&r->infer, &r->cfg, &r->seat, r->camera, &r->board), 0);
}

static inline void report(struct rig *r, bool wants, enum ladder_state mode,
                          double remaining)
{
    struct loop_report p = {
        .wants_inference = wants, .mode = mode, .chunk_remaining = remaining};

    slot_write(&r->board.report, &p);
}

// A frame of one grey value, captured and received at t.
static inline void frame(struct rig *r, int camera, uint8_t grey, ns_t t)
{
    static uint8_t pixels[SIDE * SIDE * 3], message[sizeof pixels + 256];
    Foxglove__RawImage m;

    foxglove__raw_image__init(&m);
    memset(pixels, grey, sizeof pixels);
    m.width = m.height = SIDE;
    m.step = SIDE * 3;
    m.encoding = (char[]){"rgb8"};
    m.data = (ProtobufCBinaryData){sizeof pixels, pixels};
    size_t n = foxglove__raw_image__pack(&m, message);
    camera_park(r->camera[camera], r->codec, message, n, t);
}

// A JPEG whose last third is missing.
static inline void corrupt_frame(struct rig *r, int camera, ns_t t)
{
    static uint8_t noise[SIDE * SIDE * 3], message[8192];
    tjhandle tj = tjInitCompress();
    unsigned char *jpeg = NULL;
    unsigned long size = 0;
    Foxglove__CompressedImage m;

    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (uint8_t)(i * i * 31);
    assert_int_equal(
        tjCompress2(tj, noise, SIDE, 0, SIDE, TJPF_RGB, &jpeg, &size, TJSAMP_444, 95, 0),
        0);
    foxglove__compressed_image__init(&m);
    m.format = (char[]){"jpeg"};
    m.data = (ProtobufCBinaryData){size * 2 / 3, jpeg};
    size_t n = foxglove__compressed_image__pack(&m, message);
    camera_park(r->camera[camera], r->codec, message, n, t);
    tjFree(jpeg);
    tjDestroy(tj);
}

static inline void joints_at(struct rig *r, ns_t t, double value)
{
    struct joint_sample *s = &r->history.sample[r->history.count % BOARD_HISTORY];

    s->number = ++r->history.count;
    s->capture_ns = s->received_ns = t;
    s->n = JOINTS;
    for (int i = 0; i < JOINTS; i++)
        s->pos[i] = value + i;
    slot_write(&r->board.history, &r->history);
}

// Everything that belongs to t.
static inline void all_at(struct rig *r, ns_t t)
{
    joints_at(r, t, 0);
    frame(r, WRIST, 20, t);
    frame(r, FRONT, 10, t);
}

static inline bool take(struct rig *r)
{
    return ring_pop(&r->board.chunks, r->chunk);
}

#endif
