// Which observation: the newest frame of the primary camera is the anchor, at its capture time
// T. Frames of one instant arrive one after the other, so the worker gives each other camera up
// to one of its periods to bring the frame that belongs to T (captured within half a period of
// it); after that the newest must do. The joints give their sample nearest to T. Each must lie
// within max_skew of T or the inference is not made. T becomes the chunk's anchor, so what the
// policy saw and when each row is due hang on one number, and a slow inference merely loses the
// rows that have passed meanwhile.
//
// When: `continuous` starts with every new anchor; `rows` once every_rows rows have passed since
// the last anchor, earlier if the recent latency would otherwise outlast the chunk. The latency
// decides only when to start, never which rows to skip. Outside RUNNING the arm is at rest or
// approaching, so a chunk is refreshed at IDLE_PERIOD_NS at the latest.
#include "daemon/infer.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/rt.h"

#define POLL_NS           (1 * NS_PER_MS)   // between looks at the trigger when idle
#define DECODE_TIMEOUT_NS (200 * NS_PER_MS) // a 1920x1200 JPEG takes about 30 ms
#define IDLE_PERIOD_NS    (200 * NS_PER_MS)
#define LATENCIES         32 // recent ones whose maximum decides when to start

struct infer {
    struct infer_config cfg;
    struct policy *policy;
    const struct policy_info *info;
    const struct binding *binding;
    struct camera *const *cameras;
    struct board *board;
    pthread_t thread;
    _Atomic bool stop;
    struct infer_counts counts;
    struct slot failure; // char[INFER_FAILURE_MAX]
    // Working memory, allocated once by infer_start.
    float *state;                 // (S)
    float *actions;               // (C, A)
    struct joint_history history; // copied out of the board
    struct policy_image image[POLICY_MAX_CAMERAS];
    ns_t capture_ns[POLICY_MAX_CAMERAS];
    ns_t latency[LATENCIES]; // anchor to chunk handed over
    uint64_t made;           // chunks handed over
    ns_t last_anchor_ns;     // of the last observation used
};

int infer_lead_rows(int every_rows, int horizon_rows, ns_t step_ns, ns_t latency_ns)
{
    int64_t late = (latency_ns + step_ns - 1) / step_ns;
    int64_t latest = horizon_rows - late - 2; // 2: one row of jitter, one to blend over
    int64_t rows = every_rows < latest ? every_rows : latest;
    return rows < 1 ? 1 : (int)rows;
}

static ns_t recent_latency(const struct infer *w)
{
    ns_t worst = 0;
    for (int i = 0; i < LATENCIES; i++)
        worst = w->latency[i] > worst ? w->latency[i] : worst;
    return worst;
}

static bool due(const struct infer *w, ns_t anchor_ns)
{
    if (w->cfg.trigger == TRIGGER_CONTINUOUS || w->last_anchor_ns == 0)
        return true;
    struct loop_report r;
    ns_t since = anchor_ns - w->last_anchor_ns;
    int rows = infer_lead_rows(w->cfg.every_rows, w->cfg.horizon_rows, w->cfg.step_ns,
                               recent_latency(w));
    bool running = slot_read(&w->board->report, &r) && r.mode == LADDER_RUNNING;
    // Half a step of slack: frames come at the policy rate and jitter around it.
    ns_t wait = rows * w->cfg.step_ns - w->cfg.step_ns / 2;
    if (running && r.chunk_remaining <= 0)
        return true; // starving: do not wait for the trigger
    return since >= (running || wait < IDLE_PERIOD_NS ? wait : IDLE_PERIOD_NS);
}

// Has every camera brought the frame that belongs to the anchor, or had its time to?
static bool complete(const struct infer *w, ns_t anchor_ns, ns_t since_received_ns)
{
    for (int i = 0; i < w->info->n_cameras; i++) {
        int c = w->binding->camera_of[i];
        ns_t period = w->cfg.camera_period_ns[c];
        ns_t capture =
            atomic_load_explicit(&w->board->camera[c].capture_ns, memory_order_relaxed);
        if (capture < anchor_ns - period / 2 && since_received_ns < period)
            return false;
    }
    return true;
}

// A new frame of the primary camera, wanted by the loop, due by the trigger, in company.
static bool triggered(const struct infer *w)
{
    const struct camera_mark *m = &w->board->camera[w->binding->primary];
    ns_t capture = atomic_load_explicit(&m->capture_ns, memory_order_relaxed);
    ns_t received = atomic_load_explicit(&m->received_ns, memory_order_relaxed);
    struct loop_report r;
    if (capture == 0 || capture <= w->last_anchor_ns)
        return false;
    if (!slot_read(&w->board->report, &r) || !r.wants_inference)
        return false;
    return due(w, capture) && complete(w, capture, clock_now_ns() - received);
}

static int decode_all(struct infer *w)
{
    int n = w->info->n_cameras;
    for (int i = 0; i < n; i++)
        camera_request(w->cameras[w->binding->camera_of[i]]);
    for (int i = 0; i < n; i++) {
        struct camera *c = w->cameras[w->binding->camera_of[i]];
        if (camera_wait(c, DECODE_TIMEOUT_NS, &w->image[i], &w->capture_ns[i]))
            return -ENODATA;
    }
    return 0;
}

static ns_t distance(ns_t a, ns_t b)
{
    return a > b ? a - b : b - a;
}

// The joint sample nearest to T, or NULL when none is within max_skew.
static const struct joint_sample *nearest_joints(struct infer *w, ns_t t)
{
    const struct joint_sample *best = NULL;
    if (!slot_read(&w->board->history, &w->history))
        return NULL;
    uint64_t n = w->history.count < BOARD_HISTORY ? w->history.count : BOARD_HISTORY;
    for (uint64_t i = 0; i < n; i++) {
        const struct joint_sample *s = &w->history.sample[i];
        if (!best || distance(s->capture_ns, t) < distance(best->capture_ns, t))
            best = s;
    }
    return best && distance(best->capture_ns, t) <= w->cfg.max_skew_ns ? best : NULL;
}

// One complete observation. *anchor and *oldest are capture times. 0 or -errno, counted.
static int observe(struct infer *w, ns_t *anchor, ns_t *oldest)
{
    int primary = -1;
    if (decode_all(w)) {
        w->counts.no_frame++;
        return -ENODATA;
    }
    for (int i = 0; i < w->info->n_cameras; i++)
        if (w->binding->camera_of[i] == w->binding->primary)
            primary = i;
    *anchor = *oldest = w->capture_ns[primary < 0 ? 0 : primary];
    for (int i = 0; i < w->info->n_cameras; i++) {
        if (distance(w->capture_ns[i], *anchor) > w->cfg.max_skew_ns) {
            w->counts.skew++;
            return -ENODATA;
        }
        *oldest = w->capture_ns[i] < *oldest ? w->capture_ns[i] : *oldest;
    }
    const struct joint_sample *s = nearest_joints(w, *anchor);
    if (!s) {
        w->counts.no_joints++;
        return -ENODATA;
    }
    binding_state(w->binding, s->pos, w->state);
    return 0;
}

static void hand_over(struct infer *w, ns_t anchor, ns_t oldest)
{
    struct chunk *c = ring_reserve(&w->board->chunks);
    if (!c) {
        w->counts.ring_full++;
        return;
    }
    c->id = ++w->made;
    c->anchor_ns = anchor;
    c->oldest_ns = oldest;
    c->rows = w->info->chunk_size;
    c->joints = w->binding->n;
    binding_actions(w->binding, w->actions, c->rows, c->row);
    c->ready_ns = clock_now_ns();
    w->latency[w->made % LATENCIES] = c->ready_ns - anchor;
    ring_commit(&w->board->chunks);
}

static void failed(struct infer *w)
{
    char text[INFER_FAILURE_MAX] = "";
    const char *why = policy_last_error(w->policy);
    size_t n = strnlen(why, sizeof text - 1);
    memcpy(text, why, n);
    slot_write(&w->failure, text);
    w->counts.failed++;
    atomic_fetch_add(&w->board->policy_failures, 1);
}

void infer_last_failure(const struct infer *w, char text[INFER_FAILURE_MAX])
{
    if (!slot_read(&w->failure, text))
        text[0] = '\0';
}

static void infer_once(struct infer *w)
{
    ns_t anchor, oldest;
    const struct policy_observation obs = {.state = w->state, .image = w->image};
    if (observe(w, &anchor, &oldest))
        return;
    if (anchor <= w->last_anchor_ns)
        return; // the new frame turned out corrupt: the one before it is still the newest
    w->last_anchor_ns = anchor;
    ns_t before = clock_now_ns();
    if (policy_infer(w->policy, &obs, w->actions, NULL)) {
        failed(w);
        return;
    }
    atomic_store(&w->board->policy_failures, 0);
    hist_add(&w->board->inference, clock_now_ns() - before);
    w->counts.done++;
    hand_over(w, anchor, oldest);
}

static void *infer_main(void *arg)
{
    struct infer *w = arg;
    while (!atomic_load(&w->stop)) {
        if (triggered(w))
            infer_once(w);
        // Also after an inference: a corrupt frame must not make this a busy loop.
        clock_sleep_until(clock_now_ns() + POLL_NS);
    }
    return NULL;
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
    int r = policy_infer(w->policy, &obs, w->actions, NULL);
    free(grey);
    return r;
}

static int infer_alloc(struct infer **out, const struct policy_info *info)
{
    struct infer *w = calloc(1, sizeof *w);
    if (!w)
        return -ENOMEM;
    w->state = calloc((size_t)info->state_dim, sizeof *w->state);
    w->actions =
        calloc((size_t)info->chunk_size * (size_t)info->action_dim, sizeof *w->actions);
    *out = w;
    int r = slot_init(&w->failure, INFER_FAILURE_MAX);
    return w->state && w->actions ? r : -ENOMEM;
}

static void infer_free(struct infer *w)
{
    if (!w)
        return;
    slot_free(&w->failure);
    free(w->state);
    free(w->actions);
    free(w);
}

int infer_start(struct infer **out, const struct infer_config *cfg, struct policy *policy,
                const struct binding *binding, struct camera *const *cameras,
                struct board *board, struct config_error *err)
{
    struct infer *w = NULL;
    const struct policy_info *info = policy_describe(policy);
    int r = infer_alloc(&w, info);
    if (r) {
        snprintf(err->text, sizeof err->text, "policy worker: out of memory");
        goto fail;
    }
    w->cfg = *cfg;
    w->policy = policy;
    w->info = info;
    w->binding = binding;
    w->cameras = cameras;
    w->board = board;
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

const struct infer_counts *infer_counts(const struct infer *w)
{
    return &w->counts;
}
