// The worker. An inference is four steps, each told the time and none reading a clock, and before
// them, for each frame that can be seen while others are awaited, three more:
//
//   [infer_look -> infer_see -> infer_saw]  infer_due -> infer_observe -> infer_think -> infer_finish
//
// The thread does them one after the other and reads the clock between them. A test does them
// in its own time, with as many of its ticks between think and finish as the inference shall
// take. infer_observe.c has the first two. Between two inferences the worker takes another
// seat, if one is on offer, and lets a candidate think (infer_trial.c), at most one inference
// of it for one turn of its own.
//
// A seat is handed over in one word: plain puts it into `offered`, the worker takes it out
// (exchange) and says so in `seated`. Who takes an offer back does so by the same exchange,
// so exactly one of the two has it.
#include "daemon/infer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/infer_impl.h"
#include "daemon/rt.h"
#include "daemon/tape.h"

#define POLL_NS (1 * NS_PER_MS) // between looks at the trigger when idle

// ---- the brain -------------------------------------------------------------------------------

static int policy_brain(void *self, const struct policy_observation *obs, float *actions)
{
    return policy_infer(self, obs, actions, NULL);
}

static int policy_seen(void *self, int camera, const struct policy_image *image)
{
    return policy_see(self, camera, image);
}

static uint32_t policy_had(void *self)
{
    return policy_reused(self);
}

static const char *policy_why(void *self)
{
    return policy_last_error(self);
}

struct infer_brain infer_brain_of(struct policy *policy)
{
    return (struct infer_brain){.infer = policy_brain,
                                .see = policy_seen,
                                .reused = policy_had,
                                .why = policy_why,
                                .self = policy};
}

// ---- one inference ---------------------------------------------------------------------------

int infer_think(struct infer *w, ns_t now_ns)
{
    const struct infer_seat *seat = w->seat;
    const struct policy_observation obs = {.state = seat->state, .image = w->image};
    w->since_ns = now_ns;
    atomic_store(&w->board->inferring_since_ns, now_ns);
    w->rc = seat->brain.infer(seat->brain.self, &obs, seat->actions);
    return w->rc;
}

// The chunk and the request that it answers.
static void tell_tape(const struct infer *w, const struct chunk *c)
{
    const struct binding *b = w->seat->binding;
    struct tape_chunk t = {.id = c->id,
                           .generation = c->generation,
                           .rows = c->rows,
                           .joints = c->joints,
                           .anchor_ns = c->anchor_ns,
                           .oldest_ns = c->oldest_ns,
                           .ready_ns = c->ready_ns,
                           .step_ns = c->step_ns,
                           .began_ns = w->since_ns - w->seeing_ns,
                           .joint_sample = w->joints->number};
    for (int i = 0; i < w->seat->info->n_cameras; i++) {
        t.frame_ns[b->camera_of[i]] = w->received_ns[b->camera_of[i]];
        t.capture_ns[b->camera_of[i]] = w->capture_ns[b->camera_of[i]];
    }
    tape_chunk(w->board->tape, &t, c->row);
}

static void hand_over(struct infer *w, ns_t now_ns)
{
    const struct infer_seat *seat = w->seat;
    struct chunk *c = ring_reserve(&w->board->chunks);
    if (!c) {
        w->counts.ring_full++;
        return;
    }
    c->id = ++w->made;
    c->anchor_ns = w->anchor_ns;
    c->oldest_ns = w->oldest_ns;
    c->step_ns = seat->step_ns;
    c->generation = seat->generation;
    c->rows = seat->rows;
    c->joints = seat->binding->n;
    binding_actions(seat->binding, seat->actions, c->rows, c->row);
    c->ready_ns = now_ns;
    w->latency[w->made % INFER_LATENCIES] = now_ns - w->anchor_ns;
    tell_tape(w, c); // before the loop can take it
    ring_commit(&w->board->chunks);
}

static void failed(struct infer *w)
{
    char text[INFER_FAILURE_MAX] = "";
    const char *why = w->seat->brain.why(w->seat->brain.self);
    memcpy(text, why, strnlen(why, sizeof text - 1));
    slot_write(&w->failure, text);
    w->counts.failed++;
    w->counts.seat_failed++;
    atomic_fetch_add(&w->board->policy_failures, 1);
}

static void note_time(struct infer *w, ns_t ns)
{
    ns_t longest = 0;
    w->taken[w->counts.done % INFER_LATENCIES] = ns;
    for (int i = 0; i < INFER_LATENCIES; i++)
        longest = w->taken[i] > longest ? w->taken[i] : longest;
    atomic_store(&w->longest_ns, longest);
    hist_add(&w->board->inference, ns);
}

void infer_finish(struct infer *w, ns_t now_ns)
{
    if (w->since_ns == 0)
        return;
    w->used = w->rc == 0;
    if (w->rc) {
        failed(w);
    } else {
        atomic_store(&w->board->policy_failures, 0);
        note_time(w, w->seeing_ns + now_ns - w->since_ns);
        infer_count_seen(w);
        w->counts.done++;
        hand_over(w, now_ns);
        w->counts.seat_done++; // after the chunk: who sees this sees it handed over
    }
    // Last, so that the loop never sees the inference over and its chunk not there.
    w->since_ns = 0;
    atomic_store(&w->board->inferring_since_ns, 0);
}

// ---- who thinks ------------------------------------------------------------------------------

void infer_change(struct infer *w)
{
    const struct infer_seat *seat;
    if (!atomic_load_explicit(&w->offered, memory_order_relaxed))
        return;
    seat = atomic_exchange(&w->offered, NULL);
    if (!seat)
        return;
    w->seat = seat;
    w->at_once = true;
    w->used = false;
    infer_look_away(w);
    memset(w->last_number, 0, sizeof w->last_number);
    // Times are the seat's: the first of its own inferences says how early the next must start.
    memset(w->latency, 0, sizeof w->latency);
    memset(w->taken, 0, sizeof w->taken);
    atomic_store(&w->longest_ns, 0);
    w->counts.seat_done = w->counts.seat_failed = 0;
    atomic_store(&w->seated, seat);
}

void infer_offer(struct infer *w, const struct infer_seat *seat)
{
    atomic_store(&w->offered, seat);
}

const struct infer_seat *infer_seated(const struct infer *w)
{
    return atomic_load(&w->seated);
}

bool infer_withdraw(struct infer *w)
{
    return atomic_exchange(&w->offered, NULL) != NULL;
}

int infer_seat_init(struct infer_seat *seat)
{
    seat->rows = seat->info->rows > 0 ? seat->info->rows : seat->info->chunk_size;
    size_t rows = (size_t)seat->rows;
    // + 1: never nothing.
    seat->state = calloc((size_t)seat->info->state_dim + 1, sizeof *seat->state);
    seat->actions =
        calloc(rows * (size_t)seat->info->action_dim + 1, sizeof *seat->actions);
    if (seat->state && seat->actions)
        return 0;
    infer_seat_free(seat);
    return -ENOMEM;
}

void infer_seat_free(struct infer_seat *seat)
{
    free(seat->state);
    free(seat->actions);
    seat->state = seat->actions = NULL;
}

// ---- to look at ------------------------------------------------------------------------------

void infer_last_failure(const struct infer *w, char text[INFER_FAILURE_MAX])
{
    if (!slot_read(&w->failure, text))
        text[0] = '\0';
}

const struct infer_counts *infer_counts(const struct infer *w)
{
    return &w->counts;
}

// ---- start and end ---------------------------------------------------------------------------

int infer_new(struct infer **out, const struct infer_config *cfg,
              const struct infer_seat *seat, struct camera *const *cameras,
              struct board *board)
{
    struct infer *w = calloc(1, sizeof *w);
    *out = NULL;
    if (!w)
        return -ENOMEM;
    w->cfg = *cfg;
    w->seat = seat;
    atomic_store(&w->seated, seat);
    w->cameras = cameras;
    w->board = board;
    if (slot_init(&w->failure, INFER_FAILURE_MAX)) {
        infer_free(w);
        return -ENOMEM;
    }
    *out = w;
    return 0;
}

void infer_free(struct infer *w)
{
    if (!w)
        return;
    slot_free(&w->failure);
    free(w);
}

// The first inference after a load pays for page faults and cold caches; it is made here, on
// grey pictures and the mean pose, and never counted.
static int warm_up(struct infer *w)
{
    const struct policy_info *info = w->seat->info;
    float *state = w->seat->state;
    int height = 1, width = 1;
    for (int i = 0; i < info->n_cameras; i++) {
        height = info->camera[i].height > height ? info->camera[i].height : height;
        width = info->camera[i].width > width ? info->camera[i].width : width;
    }
    uint8_t *grey = malloc((size_t)height * (size_t)width * 3);
    if (!grey)
        return -ENOMEM;
    memset(grey, 128, (size_t)height * (size_t)width * 3);
    for (int i = 0; i < info->n_cameras; i++)
        w->image[i] = (struct policy_image){.rgb = grey,
                                            .width = info->camera[i].width,
                                            .height = info->camera[i].height,
                                            .stride = info->camera[i].width * 3};
    for (int i = 0; i < info->state_dim; i++)
        state[i] = info->state.mean ? info->state.mean[i] : 0.0f;
    const struct policy_observation obs = {.state = state, .image = w->image};
    int r = w->seat->brain.infer(w->seat->brain.self, &obs, w->seat->actions);
    free(grey);
    return r;
}

// One frame, if there is one that can be seen already.
static bool see_one(struct infer *w)
{
    if (!infer_look(w, clock_now_ns()))
        return false;
    infer_see(w, clock_now_ns());
    infer_saw(w, clock_now_ns());
    return true;
}

static void *infer_main(void *arg)
{
    struct infer *w = arg;
    while (!atomic_load(&w->stop)) {
        infer_change(w);
        while (see_one(w)) // each camera's once
            ;
        if (infer_due(w, clock_now_ns()) && infer_observe(w) == 0) {
            infer_think(w, clock_now_ns());
            infer_finish(w, clock_now_ns());
        }
        if (infer_try_due(w, clock_now_ns())) {
            infer_try_think(w, clock_now_ns());
            infer_try_finish(w, clock_now_ns());
        }
        // Also after an inference: a corrupt frame must not make this a busy loop.
        clock_sleep_until(clock_now_ns() + POLL_NS);
    }
    return NULL;
}

int infer_start(struct infer **out, const struct infer_config *cfg,
                const struct infer_seat *seat, struct camera *const *cameras,
                struct board *board, struct config_error *err)
{
    struct infer *w;
    int r = infer_new(&w, cfg, seat, cameras, board);
    if (r) {
        snprintf(err->text, sizeof err->text, "policy worker: out of memory");
        return r;
    }
    r = warm_up(w);
    if (r) {
        snprintf(err->text, sizeof err->text,
                 "policy: the warm-up inference on grey pictures failed: %s",
                 seat->brain.why(seat->brain.self));
        goto fail;
    }
    r = rt_thread_create(&w->thread, "actd-infer", RT_CLASS_INFER, 0, infer_main, w);
    if (r) {
        snprintf(err->text, sizeof err->text, "policy worker: cannot start a thread: %s",
                 strerror(-r));
        goto fail;
    }
    rt_keep_off(w->thread, cfg->cpu_not);
    rt_keep_on_first(w->thread, cfg->cpu_mask);
    *out = w;
    return 0;
fail:
    infer_free(w);
    return r;
}

void infer_stop(struct infer *w)
{
    if (!w)
        return;
    atomic_store(&w->stop, true);
    pthread_join(w->thread, NULL);
    infer_free(w);
}
