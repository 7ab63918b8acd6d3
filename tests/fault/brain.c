// The policy's side: the worker's own steps in virtual time, and in the place of the policy a
// script whose answers are a simple function of time or of the measured pose, so that every row
// of every chunk is known. BRAIN_ACT puts a real policy there, with random weights.
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/infer_impl.h"
#include "daemon/tape.h"
#include "tests/fault/world_impl.h"
#include "tests/unit/act_fixture.h"

#define POLL_NS NS_PER_MS // as the worker's
#define TURN    6.283185307179586

struct brain_state {
    struct world *world;
    struct infer *infer;
    struct policy *policy; // BRAIN_ACT
    char dir[WORLD_PATH];
    struct policy_info info; // of the script
    struct binding binding;
    struct infer_seat seat;
    bool thinking;
    ns_t poll_ns, done_ns;
    uint64_t last_id;
};

// ---- the script ------------------------------------------------------------------------------

static void sine(const struct world *w, ns_t anchor, float *actions)
{
    int n = w->cfg.loop.joints;

    for (int r = 0; r < w->cfg.rows; r++)
        for (int j = 0; j < n; j++) {
            ns_t at = anchor + r * w->cfg.loop.chunks.step_ns - WORLD_START_NS;
            double turns = w->cfg.frequency_hz * (double)at / (double)NS_PER_S;

            actions[r * n + j] = (float)(w->cfg.amplitude * sin(TURN * turns + 0.7 * j));
        }
}

static void goal(const struct world *w, const float *state, float *actions)
{
    double step_s = (double)w->cfg.loop.chunks.step_ns / (double)NS_PER_S;
    int n = w->cfg.loop.joints;

    for (int r = 0; r < w->cfg.rows; r++)
        for (int j = 0; j < n; j++) {
            double way = w->cfg.goal[j] - (double)state[j];
            double most = w->cfg.goal_speed * step_s * r;

            actions[r * n + j] = (float)((double)state[j] + fmax(-most, fmin(most, way)));
        }
}

// ---- what is wrong with it -------------------------------------------------------------------

static void spoil(struct world *w, const struct injection *one, float *actions)
{
    int n = w->cfg.loop.joints, all = w->cfg.rows * n;
    int at = (int)(injector_random32(&w->injector.random) % (uint32_t)all);
    bool wrong = one->verb == VERB_WRONG;

    if (one->verb == VERB_GARBAGE || (wrong && one->variant == POLICY_NAN))
        actions[at] = NAN;
    if (wrong && one->variant == POLICY_INFINITE)
        actions[at] = INFINITY;
    for (int i = 0; i < all && wrong; i++) {
        if (one->variant == POLICY_HUGE)
            actions[i] = (float)one->magnitude;
        if (one->variant == POLICY_ZEROS)
            actions[i] = 0;
        if (one->variant == POLICY_FAR)
            actions[i] += (float)one->magnitude;
    }
}

static int script(void *self, const struct policy_observation *obs, float *actions)
{
    struct brain_state *b = self;
    struct world *w = b->world;
    const struct injection *one = world_wrong(w, INJECT_POLICY, 0, w->now);

    if (one && one->verb == VERB_WRONG && one->variant == POLICY_FAILS)
        return -EIO;
    if (one && one->verb == VERB_INTERMITTENT &&
        injector_random01(&w->injector.random) < one->magnitude)
        return -EIO;
    if (w->cfg.brain == BRAIN_ACT) {
        int rc = policy_infer(b->policy, obs, actions, NULL);

        if (rc != 0)
            return rc;
    } else if (w->cfg.brain == BRAIN_GOAL) {
        goal(w, obs->state, actions);
    } else {
        sine(w, atomic_load(&w->board.camera[0].capture_ns), actions);
    }
    if (one) {
        w->injector.hits++;
        spoil(w, one, actions);
    }
    return 0;
}

static int see(void *self, int camera, const struct policy_image *image)
{
    const struct brain_state *b = self;

    return policy_see(b->policy, camera, image);
}

static uint32_t reused(void *self)
{
    const struct brain_state *b = self;

    return policy_reused(b->policy);
}

static const char *why(void *self)
{
    struct brain_state *b = self;

    return b->policy ? policy_last_error(b->policy) : "the script says so";
}

// ---- steps -----------------------------------------------------------------------------------

static ns_t takes(const struct world *w)
{
    const struct injection *one = world_wrong(w, INJECT_POLICY, 0, w->now);

    if (one && one->verb == VERB_SLOW)
        return (ns_t)(one->magnitude * (double)w->cfg.latency_ns);
    if (one && one->verb == VERB_DELAYED)
        return w->cfg.latency_ns + (ns_t)(one->magnitude * (double)NS_PER_MS);
    return w->cfg.latency_ns;
}

ns_t brain_due_ns(const struct world *w)
{
    const struct brain_state *b = w->in->brain;
    const struct injection *one;

    if (!b->thinking)
        return b->poll_ns;
    one = world_wrong(w, INJECT_POLICY, 0, b->done_ns > w->now ? b->done_ns : w->now);
    if (!one || one->verb != VERB_OFF)
        return b->done_ns;
    return one->ticks == 0 ? NEVER
                           : w->schedule.start_ns +
                                 (ns_t)(one->from + one->ticks) * w->schedule.period_ns;
}

static void begin(struct world *w, struct brain_state *b)
{
    b->poll_ns = w->now + POLL_NS;
    while (infer_look(b->infer, w->now)) { // in no time
        infer_see(b->infer, w->now);
        infer_saw(b->infer, w->now);
    }
    if (!infer_due(b->infer, w->now) || infer_observe(b->infer) != 0)
        return;
    (void)infer_think(b->infer, w->now);
    b->thinking = true;
    b->done_ns = w->now + takes(w);
    w->inferences++;
}

// The injection by which the header of a chunk is wrong, or NULL. A chunk of nothing is none that
// the daemon's worker could hand over, and there is no record of one.
static const struct injection *wrong_header(const struct world *w)
{
    const struct injection *one = world_wrong(w, INJECT_POLICY, 0, w->now);
    bool recorded = w->tape != NULL;

    if (!one || one->verb != VERB_WRONG)
        return NULL;
    if ((one->variant == POLICY_WIDTH && !(recorded && w->cfg.loop.joints == 1)) ||
        (one->variant == POLICY_NO_ROWS && !recorded) || one->variant == POLICY_SAME_ID)
        return one;
    return NULL;
}

// As infer.c does it, of a chunk that infer did not hand over like that.
static void tell_tape(struct world *w, const struct brain_state *b, const struct chunk *c,
                      ns_t began_ns)
{
    struct tape_chunk t = {.id = c->id,
                           .generation = c->generation,
                           .rows = c->rows,
                           .joints = c->joints,
                           .anchor_ns = c->anchor_ns,
                           .oldest_ns = c->oldest_ns,
                           .ready_ns = c->ready_ns,
                           // 0 means this, which the daemon's worker always says.
                           .step_ns =
                               c->step_ns ? c->step_ns : w->cfg.loop.chunks.step_ns,
                           .began_ns = began_ns,
                           .joint_sample = b->infer->joints->number};

    for (int i = 0; i < b->info.n_cameras; i++) {
        t.frame_ns[i] = b->infer->received_ns[i];
        t.capture_ns[i] = b->infer->capture_ns[i];
    }
    tape_chunk(w->tape, &t, c->row);
}

// What only the header of a chunk can have wrong. It lies in the ring: the loop has not had it.
static void spoil_header(const struct injection *one, struct chunk *c, uint64_t last_id)
{
    if (one->variant == POLICY_WIDTH)
        c->joints--;
    if (one->variant == POLICY_NO_ROWS)
        c->rows = 0;
    if (one->variant == POLICY_SAME_ID)
        c->id = last_id;
}

static void finish(struct world *w, struct brain_state *b)
{
    const struct injection *wrong = wrong_header(w);
    ns_t began_ns = b->infer->since_ns;
    struct chunk *c;

    b->thinking = false;
    b->poll_ns = w->now + POLL_NS;
    c = ring_reserve(&w->board.chunks); // where it will lie
    // What it is now is not what the loop gets.
    w->board.tape = wrong || w->hooks.thought ? NULL : w->tape;
    infer_finish(b->infer, w->now);
    w->board.tape = w->tape;
    if (!c || c->ready_ns != w->now)
        return; // there was no room, or it failed
    if (wrong)
        spoil_header(wrong, c, b->last_id);
    b->last_id = c->id;
    w->chunk[c->id % WORLD_CHUNKS] = (struct world_chunk){
        c->id, c->anchor_ns, c->oldest_ns, c->ready_ns, c->rows, c->joints};
    if (w->hooks.thought)
        w->hooks.thought(w->hooks.arg, w, c);
    if (wrong || w->hooks.thought)
        tell_tape(w, b, c, began_ns);
}

void brain_turn(struct world *w)
{
    struct brain_state *b = w->in->brain;

    if (b->thinking)
        finish(w, b);
    else
        begin(w, b);
}

// ---- plain -----------------------------------------------------------------------------------

// Into a new directory; the same weights each time.
static int load_act(const struct world_config *cfg, char dir[WORLD_PATH],
                    struct policy **policy)
{
    struct act_fixture f = act_fixture_tiny();
    const struct policy_options opt = {.threads = 1};
    struct policy_error err = {{0}};

    f.chunk_size = f.n_action_steps = cfg->rows;
    f.state_dim = f.action_dim = cfg->loop.joints;
    f.n_cameras = WORLD_CAMERAS;
    for (int i = 0; i < WORLD_CAMERAS; i++)
        f.camera[i] = (struct act_fixture_camera){i ? "observation.images.wrist"
                                                    : "observation.images.front",
                                                  WORLD_SIDE, WORLD_SIDE};
    f.action_scale = 0.1f;
    if (!world_scratch(dir, "act") || act_fixture_write(dir, &f))
        return -EIO;
    return policy_load(policy, dir, &opt, &err);
}

static void describe(const struct world_config *cfg, struct policy_info *info,
                     struct binding *binding)
{
    int n = cfg->loop.joints;

    info->state_dim = info->action_dim = n;
    info->chunk_size = cfg->rows;
    *binding = (struct binding){.n = n, .n_state = n};
    for (int i = 0; i < n; i++) {
        binding->state_of[i] = binding->joint_of[i] = i;
        binding->scale[i] = 1;
    }
    for (int i = 0; i < WORLD_CAMERAS; i++)
        binding->camera_of[i] = i;
}

int brain_new(struct world *w)
{
    struct brain_state *b = calloc(1, sizeof *b);
    struct infer_config c = {
        .trigger = TRIGGER_ROWS, .max_skew_ns = w->cfg.max_skew_ns, .cpu_not = -1};
    int rc = 0;

    w->in->brain = b;
    if (!b)
        return -ENOMEM;
    b->world = w;
    b->poll_ns = w->now;
    memcpy(c.camera_period_ns, w->cfg.loop.camera_period_ns, sizeof c.camera_period_ns);
    if (w->cfg.brain == BRAIN_ACT)
        rc = load_act(&w->cfg, b->dir, &b->policy);
    b->info.n_cameras = b->policy ? WORLD_CAMERAS : w->cfg.loop.n_cameras;
    describe(&w->cfg, &b->info, &b->binding);
    b->seat = (struct infer_seat){.brain = {.infer = script, .why = why, .self = b},
                                  .info = &b->info,
                                  .binding = &b->binding,
                                  .step_ns = w->cfg.loop.chunks.step_ns,
                                  .every_rows = w->cfg.every_rows,
                                  .horizon_rows = w->cfg.loop.chunks.rows};
    if (b->policy) {
        b->seat.brain.see = see;
        b->seat.brain.reused = reused;
    }
    rc = rc ? rc : infer_seat_init(&b->seat);
    return rc ? rc : infer_new(&b->infer, &c, &b->seat, w->camera, &w->board);
}

void brain_free(struct world *w)
{
    struct brain_state *b = w->in->brain;

    if (!b)
        return;
    infer_free(b->infer);
    infer_seat_free(&b->seat);
    policy_free(b->policy);
    if (b->dir[0])
        act_fixture_remove(b->dir);
    free(b);
}

// ---- once more -------------------------------------------------------------------------------

struct brain_again {
    struct policy *policy;
    char dir[WORLD_PATH];
    struct policy_info info;
    struct binding binding;
    struct infer_seat seat; // for its memory
};

struct brain_again *brain_again_new(const struct world_config *cfg)
{
    struct brain_again *b = calloc(1, sizeof *b);

    if (!b)
        return NULL;
    describe(cfg, &b->info, &b->binding);
    b->seat.info = &b->info;
    if (cfg->brain == BRAIN_ACT && load_act(cfg, b->dir, &b->policy) == 0 &&
        infer_seat_init(&b->seat) == 0)
        return b;
    brain_again_free(b);
    return NULL;
}

void brain_again_free(struct brain_again *b)
{
    if (!b)
        return;
    policy_free(b->policy);
    infer_seat_free(&b->seat);
    if (b->dir[0])
        act_fixture_remove(b->dir);
    free(b);
}

int brain_again_think(void *again, const struct tape_chunk *request,
                      const struct policy_image *image, const struct joint_sample *joints,
                      float *row, struct config_error *err)
{
    struct brain_again *b = again;
    const struct policy_observation obs = {.state = b->seat.state, .image = image};
    int rc;

    binding_state(&b->binding, joints->pos, b->seat.state);
    rc = policy_infer(b->policy, &obs, b->seat.actions, NULL);
    if (rc != 0) {
        snprintf(err->text, sizeof err->text, "%s", policy_last_error(b->policy));
        return rc;
    }
    binding_actions(&b->binding, b->seat.actions, request->rows, row);
    return request->rows;
}

const struct infer_counts *world_infer_counts(const struct world *w)
{
    return infer_counts(w->in->brain->infer);
}
