// The worker. An inference is four steps, each told the time and none reading a clock:
//
//   infer_due -> infer_observe -> infer_think -> infer_finish
//
// The thread does them one after the other and reads the clock between them. A test does them
// in its own time, with as many of its ticks between think and finish as the inference shall
// take. infer_observe.c has the first two.
#include "daemon/infer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/infer_impl.h"
#include "daemon/rt.h"

#define POLL_NS (1 * NS_PER_MS) // between looks at the trigger when idle

// ---- the brain -------------------------------------------------------------------------------

static int policy_brain(void *self, const struct policy_observation *obs, float *actions)
{
    return policy_infer(self, obs, actions, NULL);
}

static const char *policy_why(void *self)
{
    return policy_last_error(self);
}

struct infer_brain infer_brain_of(struct policy *policy)
{
    return (struct infer_brain){policy_brain, policy_why, policy};
}

// ---- one inference ---------------------------------------------------------------------------

int infer_think(struct infer *w, ns_t now_ns)
{
    const struct policy_observation obs = {.state = w->state, .image = w->image};
    w->since_ns = now_ns;
    atomic_store(&w->board->inferring_since_ns, now_ns);
    w->rc = w->brain.infer(w->brain.self, &obs, w->actions);
    return w->rc;
}

static void hand_over(struct infer *w, ns_t now_ns)
{
    struct chunk *c = ring_reserve(&w->board->chunks);
    if (!c) {
        w->counts.ring_full++;
        return;
    }
    c->id = ++w->made;
    c->anchor_ns = w->anchor_ns;
    c->oldest_ns = w->oldest_ns;
    c->rows = w->info->chunk_size;
    c->joints = w->binding->n;
    binding_actions(w->binding, w->actions, c->rows, c->row);
    c->ready_ns = now_ns;
    w->latency[w->made % INFER_LATENCIES] = now_ns - w->anchor_ns;
    ring_commit(&w->board->chunks);
}

static void failed(struct infer *w)
{
    char text[INFER_FAILURE_MAX] = "";
    const char *why = w->brain.why(w->brain.self);
    memcpy(text, why, strnlen(why, sizeof text - 1));
    slot_write(&w->failure, text);
    w->counts.failed++;
    atomic_fetch_add(&w->board->policy_failures, 1);
}

void infer_finish(struct infer *w, ns_t now_ns)
{
    if (w->since_ns == 0)
        return;
    if (w->rc) {
        failed(w);
    } else {
        atomic_store(&w->board->policy_failures, 0);
        hist_add(&w->board->inference, now_ns - w->since_ns);
        w->counts.done++;
        hand_over(w, now_ns);
    }
    // Last, so that the loop never sees the inference over and its chunk not there.
    w->since_ns = 0;
    atomic_store(&w->board->inferring_since_ns, 0);
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
              const struct policy_info *info, const struct infer_brain *brain,
              const struct binding *binding, struct camera *const *cameras,
              struct board *board)
{
    size_t actions = (size_t)info->chunk_size * (size_t)info->action_dim;
    struct infer *w = calloc(1, sizeof *w);
    *out = NULL;
    if (!w)
        return -ENOMEM;
    w->cfg = *cfg;
    w->info = info;
    w->brain = *brain;
    w->binding = binding;
    w->cameras = cameras;
    w->board = board;
    w->state =
        calloc((size_t)info->state_dim + 1, sizeof *w->state); // + 1: never nothing
    w->actions = calloc(actions, sizeof *w->actions);
    if (!w->state || !w->actions || slot_init(&w->failure, INFER_FAILURE_MAX)) {
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
    free(w->state);
    free(w->actions);
    free(w);
}

// The first inference after a load pays for page faults and cold caches; it is made here, on
// grey pictures and the mean pose, and never counted.
static int warm_up(struct infer *w)
{
    int height = 1, width = 1;
    for (int i = 0; i < w->info->n_cameras; i++) {
        height = w->info->camera[i].height > height ? w->info->camera[i].height : height;
        width = w->info->camera[i].width > width ? w->info->camera[i].width : width;
    }
    uint8_t *grey = malloc((size_t)height * (size_t)width * 3);
    if (!grey)
        return -ENOMEM;
    memset(grey, 128, (size_t)height * (size_t)width * 3);
    for (int i = 0; i < w->info->n_cameras; i++)
        w->image[i] = (struct policy_image){grey, w->info->camera[i].width,
                                            w->info->camera[i].height,
                                            w->info->camera[i].width * 3};
    for (int i = 0; i < w->info->state_dim; i++)
        w->state[i] = w->info->state.mean ? w->info->state.mean[i] : 0.0f;
    const struct policy_observation obs = {.state = w->state, .image = w->image};
    int r = w->brain.infer(w->brain.self, &obs, w->actions);
    free(grey);
    return r;
}

static void *infer_main(void *arg)
{
    struct infer *w = arg;
    while (!atomic_load(&w->stop)) {
        if (infer_due(w, clock_now_ns()) && infer_observe(w) == 0) {
            infer_think(w, clock_now_ns());
            infer_finish(w, clock_now_ns());
        }
        // Also after an inference: a corrupt frame must not make this a busy loop.
        clock_sleep_until(clock_now_ns() + POLL_NS);
    }
    return NULL;
}

int infer_start(struct infer **out, const struct infer_config *cfg, struct policy *policy,
                const struct binding *binding, struct camera *const *cameras,
                struct board *board, struct config_error *err)
{
    const struct infer_brain brain = infer_brain_of(policy);
    struct infer *w;
    int r = infer_new(&w, cfg, policy_describe(policy), &brain, binding, cameras, board);
    if (r) {
        snprintf(err->text, sizeof err->text, "policy worker: out of memory");
        return r;
    }
    r = warm_up(w);
    if (r) {
        snprintf(err->text, sizeof err->text,
                 "policy: the warm-up inference on grey pictures failed: %s",
                 policy_last_error(policy));
        goto fail;
    }
    r = rt_thread_create(&w->thread, "actd-infer", RT_CLASS_INFER, 0, infer_main, w);
    if (r) {
        snprintf(err->text, sizeof err->text, "policy worker: cannot start a thread: %s",
                 strerror(-r));
        goto fail;
    }
    rt_keep_off(w->thread, cfg->cpu_not);
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
