// Which observation: the newest frame of the primary camera is the anchor, at its capture time
// T. Frames of one instant arrive one after the other, so the worker gives each other camera three
// quarters of a period, its own or the primary's, to bring the frame that belongs to T (captured
// within half a period of it); after that the newest must do. (Not a whole period: then the next
// frame of the primary camera is there, and a camera that lags for good would be waited for
// without end.) The joints give their sample nearest to T. Each must lie within max_skew of T or
// the inference is not made. T becomes the chunk's anchor, so what the policy saw and when each
// row is due hang on one number, and a slow inference merely loses the rows that have passed.
//
// When: `continuous` starts with every new anchor; `rows` once every_rows rows have passed since
// the last anchor, earlier if the recent latency would otherwise outlast the chunk. The latency
// decides only when to start, never which rows to skip. Outside RUNNING the arm is at rest or
// approaching, so a chunk is refreshed at INFER_IDLE_NS at the latest. A policy that has just taken
// the seat does not wait for the trigger.
#include <errno.h>
#include <string.h>

#include "daemon/blind.h"
#include "daemon/infer_impl.h"

#define DECODE_TIMEOUT_NS (200 * NS_PER_MS) // a 1920x1200 JPEG takes about 30 ms

// ---- when ------------------------------------------------------------------------------------

int infer_lead_rows(int every_rows, int horizon_rows, ns_t step_ns, ns_t latency_ns)
{
    int64_t late = (latency_ns + step_ns - 1) / step_ns;
    int64_t latest = horizon_rows - late - 2; // 2: one row of jitter, one to blend over
    int64_t rows = every_rows < latest ? every_rows : latest;
    return rows < 1 ? 1 : (int)rows;
}

ns_t infer_latency(const struct infer *w)
{
    ns_t worst = 0;
    for (int i = 0; i < INFER_LATENCIES; i++)
        worst = w->latency[i] > worst ? w->latency[i] : worst;
    return worst;
}

static bool due(const struct infer *w, const struct loop_report *r, ns_t anchor_ns)
{
    const struct infer_seat *seat = w->seat;
    if (w->cfg.trigger == TRIGGER_CONTINUOUS || w->last_anchor_ns == 0 || w->at_once)
        return true;
    ns_t since = anchor_ns - w->last_anchor_ns;
    int rows = infer_lead_rows(seat->every_rows, seat->horizon_rows, seat->step_ns,
                               infer_latency(w));
    bool running = r->mode == LADDER_RUNNING;
    // Half a step of slack: frames come at the policy rate and jitter around it.
    ns_t wait = rows * seat->step_ns - seat->step_ns / 2;
    if ((running || r->mode == LADDER_HOLD) && r->chunk_remaining <= 0)
        return true; // starving: do not wait for the trigger
    return since >= (running || wait < INFER_IDLE_NS ? wait : INFER_IDLE_NS) ||
           infer_try_wants(w, since);
}

bool infer_complete(const struct infer *w, const struct infer_anchor *a, ns_t now_ns)
{
    const struct binding *b = w->seat->binding;
    ns_t primary = w->cfg.camera_period_ns[b->primary];
    for (int i = 0; i < w->seat->info->n_cameras; i++) {
        int c = b->camera_of[i];
        ns_t period = w->cfg.camera_period_ns[c];
        ns_t wait = period < primary ? period : primary;
        if (!infer_came(w, c, a->capture_ns) && now_ns - a->received_ns < wait / 4 * 3)
            return false;
    }
    return true;
}

bool infer_triggered(const struct infer *w, struct infer_anchor *a)
{
    const struct camera_mark *m = &w->board->camera[w->seat->binding->primary];
    struct loop_report r;
    a->capture_ns = atomic_load_explicit(&m->capture_ns, memory_order_relaxed);
    a->received_ns = atomic_load_explicit(&m->received_ns, memory_order_relaxed);
    if (w->look.on)
        *a = (struct infer_anchor){w->look.anchor_ns, w->look.received_ns};
    if (w->since_ns != 0 || a->capture_ns == 0 || a->capture_ns <= w->last_anchor_ns)
        return false;
    if (!slot_read(&w->board->report, &r) || !r.wants_inference)
        return false;
    return due(w, &r, a->capture_ns);
}

bool infer_due(const struct infer *w, ns_t now_ns)
{
    struct infer_anchor a;
    return infer_triggered(w, &a) && infer_complete(w, &a, now_ns);
}

// ---- what ------------------------------------------------------------------------------------

int infer_frame(struct infer *w, int c)
{
    if (camera_wait(w->cameras[c], DECODE_TIMEOUT_NS, &w->frame[c], &w->capture_ns[c]))
        return -ENODATA;
    w->received_ns[c] = camera_received(w->cameras[c]);
    w->framed[c] = true;
    return 0;
}

// The newest frame of each camera; of a look the frames that it has, or that were caught for it.
static int decode_all(struct infer *w)
{
    const int *camera_of = w->seat->binding->camera_of;
    const struct infer_look *l = &w->look;
    int n = w->seat->info->n_cameras;
    memcpy(w->framed, l->held, sizeof w->framed);
    for (int i = 0; i < n; i++)
        if (!l->on ||
            (!l->held[camera_of[i]] && !infer_came(w, camera_of[i], l->anchor_ns)))
            camera_request(w->cameras[camera_of[i]]);
    for (int i = 0; i < n; i++) {
        if (!w->framed[camera_of[i]] && infer_frame(w, camera_of[i]))
            return -ENODATA;
        w->image[i] = w->frame[camera_of[i]];
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

void infer_keep_joints(struct infer *w)
{
    const struct joint_sample *s = nearest_joints(w, w->look.anchor_ns);
    w->look.jointed = s != NULL;
    if (s)
        w->look.joints = *s;
}

// Of those there are now and those there were when the look began.
static const struct joint_sample *find_joints(struct infer *w)
{
    const struct joint_sample *now = nearest_joints(w, w->anchor_ns);
    const struct infer_look *l = &w->look;
    if (!l->on || !l->jointed)
        return now;
    return now && distance(now->capture_ns, w->anchor_ns) <
                       distance(l->joints.capture_ns, w->anchor_ns)
               ? now
               : &l->joints;
}

// Capture times of the frames: the primary camera's is the anchor.
static void date(struct infer *w)
{
    const struct binding *b = w->seat->binding;
    int n = w->seat->info->n_cameras, primary = n > 0 ? b->camera_of[0] : 0;
    for (int i = 0; i < n; i++)
        if (b->camera_of[i] == b->primary)
            primary = b->primary;
    w->anchor_ns = w->oldest_ns = w->capture_ns[primary];
    for (int i = 0; i < n; i++)
        if (w->capture_ns[b->camera_of[i]] < w->oldest_ns)
            w->oldest_ns = w->capture_ns[b->camera_of[i]];
}

static bool skewed(const struct infer *w)
{
    const struct infer_seat *seat = w->seat;
    for (int i = 0; i < seat->info->n_cameras; i++)
        if (distance(w->capture_ns[seat->binding->camera_of[i]], w->anchor_ns) >
            w->cfg.max_skew_ns)
            return !BLIND(BLIND_SKEW);
    return false;
}

static enum board_starved gather(struct infer *w)
{
    if (decode_all(w)) {
        w->counts.no_frame++;
        return BOARD_NO_FRAME;
    }
    date(w);
    // The new frame turned out corrupt, and is counted as that: the one before it is still the
    // newest.
    if (w->anchor_ns <= w->last_anchor_ns)
        return BOARD_NO_FRAME;
    if (skewed(w)) {
        w->counts.skew++;
        return BOARD_SKEW;
    }
    w->joints = find_joints(w);
    if (!w->joints) {
        w->counts.no_joints++;
        return BOARD_NO_JOINTS;
    }
    binding_state(w->seat->binding, w->joints->pos, w->seat->state);
    return BOARD_FED;
}

int infer_observe(struct infer *w)
{
    w->used = false;
    enum board_starved why = gather(w);
    w->seen = w->look.seen;
    w->seeing_ns = w->look.took_ns;
    infer_look_away(w);
    atomic_store_explicit(&w->board->starved, (int)why, memory_order_relaxed);
    if (why != BOARD_FED)
        return -ENODATA;
    w->last_anchor_ns = w->anchor_ns;
    w->at_once = false;
    return 0;
}
