// swap_rig: the policy worker, a swap and a robot's side of them in virtual time: one
// millisecond after the other, in one thread. Policies are scripts; the loop only takes
// chunks and says what is left of them.
//
// Every chunk that is handed over is checked: it is what the script of its generation
// wants of the observation that was there, and generations never go back.
#ifndef ACTD_TESTS_SWAP_RIG_H
#define ACTD_TESTS_SWAP_RIG_H

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/count_allocations.h"

#include "daemon/infer_trial.h"
#include "daemon/swap.h"
#include "foxglove/RawImage.pb-c.h"

#define MS       NS_PER_MS
#define JOINTS   3
#define CAMERAS  2
#define SIDE     16
#define STEP     (20 * MS)
#define ROWS     50 // a second
#define EVERY    10
#define PERIOD   (40 * MS) // of both cameras
#define TICK     (5 * MS)
#define THINK    (30 * MS) // of an inference, unless a script says otherwise
#define START    (1000 * MS)
#define MAX_ROWS 64

// Row k of joint j: state[j] + offset + k * slope.
struct script {
    struct fitted fitted;
    struct policy_info info;
    bool made, freed;
    double offset, slope;
    ns_t takes;
    int rc;                     // what it answers
    uint64_t calls, fails_from; // rc from this call on; 0 = from the first
    uint8_t grey[CAMERAS];      // as seen last
};
#define SCRIPTS 64

struct rig {
    struct config *cfg;
    struct board board;
    struct camera *camera[CAMERAS];
    struct codec *codec;
    struct infer_config icfg;
    struct infer *infer;
    struct swap *swap;
    struct joint_history history;
    struct chunk *chunk;

    ns_t now, done_ns, trial_done_ns; // 0 = no inference, no trial is being made
    bool no_frames, no_joints, no_loop;
    uint32_t refuses; // chunks of this generation
    uint8_t grey;
    double pose; // of joint 0, as measured; the others 0.1 apart

    // The loop: the newest chunk in view.
    struct loop_report report;
    ns_t chunk_anchor, chunk_step;
    int chunk_rows;
    uint64_t chunks[16]; // taken, by generation
    double least;        // rows that were left at the worst, while RUNNING

    struct script script[SCRIPTS]; // 0 is the first policy
    int loads, frees;
    // What the next load does.
    int load_rc;
    struct script next; // the pattern
    void (*while_loading)(struct rig *r);
};

// ---- scripts -----------------------------------------------------------------------------------

static ns_t script_took; // by the inference that was just begun

static inline int script_infer(void *self, const struct policy_observation *obs,
                               float *actions)
{
    struct script *s = self;
    s->calls++;
    script_took = s->takes;
    for (int c = 0; c < s->info.n_cameras; c++)
        s->grey[c] = obs->image[c].rgb[0];
    for (int k = 0; k < s->info.chunk_size; k++)
        for (int j = 0; j < JOINTS; j++)
            actions[k * JOINTS + j] = obs->state[j] + (float)(s->offset + k * s->slope);
    return s->calls >= s->fails_from ? s->rc : 0;
}

static inline const char *script_why(void *self)
{
    (void)self;
    return "the script says no";
}

static inline void script_names(struct script *s, const char *name)
{
    static const char *const joint[JOINTS] = {"a", "b", "c"};
    struct config_sidecar *side = &s->fitted.side;
    snprintf(s->fitted.name, CONFIG_NAME, "%s", name);
    snprintf(s->fitted.directory, CONFIG_PATH, "/policies/%s", name);
    snprintf(s->info.digest, sizeof s->info.digest, "digest-of-%s", name);
    snprintf(s->info.type, sizeof s->info.type, "script");
    side->n_state = side->n_action = JOINTS;
    for (int j = 0; j < JOINTS; j++) {
        snprintf(side->state[j], CONFIG_NAME, "%s.state", joint[j]);
        snprintf(side->action[j], CONFIG_NAME, "%s.action", joint[j]);
        snprintf(side->units[j], sizeof side->units[j], "rad");
    }
}

// A pattern: what policies are unless a test says otherwise.
static inline struct script script_plain(void)
{
    struct script s = {.takes = THINK};
    s.info =
        (struct policy_info){.n_cameras = CAMERAS,
                             .camera = {{"front", SIDE, SIDE}, {"wrist", SIDE, SIDE}},
                             .state_dim = JOINTS,
                             .action_dim = JOINTS,
                             .chunk_size = ROWS,
                             .golden_error = -1};
    s.fitted.side.rate_hz = 50;
    return s;
}

static inline struct fitted *script_make(struct rig *r, const char *name)
{
    int i = 0;
    struct config_error err = {{0}};
    while (r->script[i].made && !r->script[i].freed)
        i++;
    assert_true(i < SCRIPTS);
    struct script *s = &r->script[i];
    *s = r->next;
    s->made = true;
    char units[16]; // the pattern may have set some
    memcpy(units, s->fitted.side.units[0], sizeof units);
    char state[CONFIG_NAME];
    memcpy(state, s->fitted.side.state[0], sizeof state);
    script_names(s, name);
    if (units[0])
        memcpy(s->fitted.side.units[0], units, sizeof units);
    if (state[0])
        memcpy(s->fitted.side.state[0], state, sizeof state);
    s->fitted.info = &s->info;
    s->fitted.seat.brain =
        (struct infer_brain){.infer = script_infer, .why = script_why, .self = s};
    if (fitted_fit(&s->fitted, r->cfg, true, &err))
        fail_msg("%s", err.text);
    return &s->fitted;
}

static inline int rig_load(void *arg, const char *name, const _Atomic bool *cancel,
                           struct fitted **out, struct config_error *err)
{
    struct rig *r = arg;
    r->loads++;
    if (r->while_loading)
        r->while_loading(r);
    if (atomic_load(cancel))
        return -ECANCELED;
    snprintf(err->text, sizeof err->text, "tensor model.x is missing");
    if (r->load_rc)
        return r->load_rc;
    *out = script_make(r, name);
    return 0;
}

static inline void rig_unload(void *arg, struct fitted *f)
{
    struct rig *r = arg;
    for (int i = 0; i < SCRIPTS; i++)
        if (&r->script[i].fitted == f) {
            assert_true(r->script[i].made && !r->script[i].freed);
            r->script[i].freed = true;
            r->frees++;
            infer_seat_free(&f->seat);
            memset(f, 0xee, sizeof *f); // whoever looks at it again is seen
            return;
        }
    fail_msg("freed what was never made");
}

// ---- the robot's side --------------------------------------------------------------------------

static inline void rig_frame(struct rig *r, int camera, uint8_t grey, ns_t t)
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

static inline void rig_joints(struct rig *r, ns_t t)
{
    struct joint_sample *s = &r->history.sample[r->history.count % BOARD_HISTORY];
    s->number = ++r->history.count;
    s->capture_ns = s->received_ns = t;
    s->n = JOINTS;
    for (int j = 0; j < JOINTS; j++)
        s->pos[j] = r->pose + 0.1 * j;
    slot_write(&r->board.history, &r->history);
}

static inline struct script *rig_of_generation(struct rig *r, uint32_t generation)
{
    for (int i = 0; i < SCRIPTS; i++)
        if (r->script[i].made && !r->script[i].freed &&
            r->script[i].fitted.generation == generation)
            return &r->script[i];
    fail_msg("a chunk of generation %u, which nobody has", generation);
    return NULL;
}

static inline void rig_check_chunk(struct rig *r, const struct chunk *c)
{
    const struct script *s = rig_of_generation(r, c->generation);
    assert_int_equal(c->rows, s->info.chunk_size);
    assert_int_equal(c->step_ns, clock_period_ns(s->fitted.side.rate_hz));
    for (int k = 0; k < c->rows; k++)
        for (int j = 0; j < JOINTS; j++) {
            double want = r->pose + 0.1 * j + s->offset + k * s->slope;
            if (fabs((double)c->row[k * JOINTS + j] - want) > 1e-5)
                fail_msg("row %d of joint %d: %g, not %g", k, j,
                         (double)c->row[k * JOINTS + j], want);
        }
}

static inline void rig_take_chunks(struct rig *r)
{
    while (ring_pop(&r->board.chunks, r->chunk)) {
        const struct chunk *c = r->chunk;
        rig_check_chunk(r, c);
        if (c->generation == r->refuses)
            continue;
        assert_true(c->generation >= r->report.generation);
        if (c->generation != r->report.generation) {
            r->report.generation = c->generation;
            r->report.generation_tick = r->report.tick;
        }
        r->chunk_anchor = c->anchor_ns;
        r->chunk_step = c->step_ns;
        r->chunk_rows = c->rows;
        r->chunks[c->generation % 16]++;
    }
}

static inline void rig_tick(struct rig *r)
{
    struct loop_report *p = &r->report;
    p->tick++;
    p->now_ns = r->now;
    rig_take_chunks(r);
    p->chunk_step_ns = r->chunk_step;
    p->chunk_remaining = 0;
    if (r->chunk_step)
        p->chunk_remaining = fmax(0, r->chunk_rows - (double)(r->now - r->chunk_anchor) /
                                                         (double)r->chunk_step);
    if (p->mode == LADDER_RUNNING)
        r->least = fmin(r->least, p->chunk_remaining);
    ns_t frame = r->board.camera[0].received_ns;
    p->wants_inference = frame != 0 && r->now - frame <= 3 * PERIOD;
    slot_write(&r->board.report, p);
}

static inline void rig_event(struct rig *r, enum ladder_state to)
{
    struct loop_report *p = &r->report;
    p->event[p->events++ % BOARD_EVENTS] = (struct loop_event){
        .tick = p->tick, .from = p->mode, .to = to, .reason = REASON_ESTOP};
    p->mode = to;
}

// ---- time --------------------------------------------------------------------------------------

// infer_main, with as much time between think and finish as the script takes. What it
// allocates is counted.
static inline void rig_worker(struct rig *r)
{
    bool finished = false; // then a trial comes first, as in infer_main
    counting = true;
    if (r->done_ns && r->now >= r->done_ns) {
        infer_finish(r->infer, r->now);
        r->done_ns = 0;
        finished = true;
    }
    if (r->trial_done_ns && r->now >= r->trial_done_ns) {
        infer_try_finish(r->infer, r->now);
        r->trial_done_ns = 0;
    }
    if (!r->done_ns && !r->trial_done_ns) {
        if (!finished)
            infer_change(r->infer);
        if (!finished && infer_due(r->infer, r->now) && infer_observe(r->infer) == 0) {
            (void)infer_think(r->infer, r->now);
            r->done_ns = r->now + script_took;
        } else if (infer_try_due(r->infer, r->now)) {
            if (infer_try_think(r->infer, r->now) == -ENODATA)
                infer_try_finish(r->infer, r->now);
            else
                r->trial_done_ns = r->now + script_took;
        }
    }
    counting = false;
}

static inline void rig_ms(struct rig *r)
{
    r->now += MS;
    if (r->now % PERIOD == 0 && !r->no_frames)
        for (int c = 0; c < CAMERAS; c++)
            rig_frame(r, c, (uint8_t)(r->grey + c), r->now);
    if (r->now % (10 * MS) == 0 && !r->no_joints)
        rig_joints(r, r->now);
    if (r->now % TICK == 0 && !r->no_loop)
        rig_tick(r);
    rig_worker(r);
    if (r->swap && r->now % (2 * MS) == 0)
        (void)swap_turn(r->swap, r->now);
}

static inline void rig_run(struct rig *r, ns_t ns)
{
    for (ns_t end = r->now + ns; r->now < end;)
        rig_ms(r);
}

// ---- begin and end -----------------------------------------------------------------------------

static inline void rig_config(struct rig *r)
{
    static const char *const joint[JOINTS] = {"a", "b", "c"};
    static const char *const key[CAMERAS] = {"front", "wrist"};
    struct config *c = r->cfg;
    c->n_joints = JOINTS;
    c->n_cameras = CAMERAS;
    c->control.rate_hz = 200;
    c->joint_state.rate_hz = 100;
    c->inference.trigger = TRIGGER_ROWS;
    c->inference.every_rows = EVERY;
    c->inference.max_skew_ms = 50;
    c->chunks.mode = CHUNK_CROSSFADE;
    c->swap.max_difference = 0.3;
    c->swap.trials = 5;
    snprintf(c->file, sizeof c->file, "robot.yaml");
    for (int j = 0; j < JOINTS; j++) {
        snprintf(c->joint[j].name, CONFIG_NAME, "%s", joint[j]);
        snprintf(c->joint[j].state, CONFIG_NAME, "%s.state", joint[j]);
        snprintf(c->joint[j].action, CONFIG_NAME, "%s.action", joint[j]);
        c->joint[j].scale = 1;
        c->joint[j].hard_min = -9;
        c->joint[j].hard_max = 9;
    }
    for (int i = 0; i < CAMERAS; i++) {
        snprintf(c->camera[i].name, CONFIG_NAME, "%s", key[i]);
        snprintf(c->camera[i].key, POLICY_NAME_MAX, "%s", key[i]);
        c->camera[i].rate_hz = 25;
        c->camera[i].primary = i == 0;
    }
}

static inline int rig_setup(void **state)
{
    static const char *const names[] = {"a", "b", "c"};
    struct rig *r = calloc(1, sizeof *r);
    *state = r;
    r->cfg = calloc(1, sizeof *r->cfg);
    r->chunk = calloc(1, chunk_bytes(MAX_ROWS, JOINTS));
    r->now = START;
    r->grey = 40;
    r->least = ROWS;
    r->next = script_plain();
    rig_config(r);
    if (board_init(&r->board, CAMERAS, MAX_ROWS, JOINTS) ||
        codec_new(&r->codec, names, JOINTS))
        return -1;
    for (int i = 0; i < CAMERAS; i++)
        if (camera_new(&r->camera[i], &r->board.camera[i], 0))
            return -1;
    struct fitted *first = script_make(r, "first");
    first->generation = first->seat.generation = 1;
    r->icfg = (struct infer_config){.trigger = TRIGGER_ROWS,
                                    .max_skew_ns = 50 * MS,
                                    .camera_period_ns = {PERIOD, PERIOD},
                                    .cpu_not = -1};
    return infer_new(&r->infer, &r->icfg, &first->seat, r->camera, &r->board);
}

static inline int rig_teardown(void **state)
{
    struct rig *r = *state;
    infer_free(r->infer);
    swap_free(r->swap);
    for (int i = 0; i < SCRIPTS; i++)
        if (r->script[i].made && !r->script[i].freed)
            infer_seat_free(&r->script[i].fitted.seat);
    for (int i = 0; i < CAMERAS; i++)
        camera_stop(r->camera[i]);
    board_free(&r->board);
    codec_free(r->codec);
    free(r->chunk);
    free(r->cfg);
    free(r);
    return 0;
}

#endif
