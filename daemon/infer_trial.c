// When a candidate may think. While the arm follows a chunk, the running policy's next
// one must come into view before the last row of this one is over: that takes the worst
// of its recent latencies (anchor to chunk handed over), and before it the wait for a
// frame. A trial starts only if all this fits behind it into what is left:
//
//   now        trial         next frame      latency            last row of the chunk
//    |------ longest so far ----|-- a period --|---------------| 2 rows to spare |
//
// Several trials may look at one observation, as long as it is not older than FRESH_NS.
// When none has been made yet and the last observation is older than FIRST_NS, the
// running policy looks earlier than its trigger says: an operator need not wait for two
// seconds' worth of rows.
//
// The state is one word that changes hands: plain writes READY when the rest is in place,
// infer makes THINKS of it while it touches what the candidate owns, and plain may take
// away only what is not THINKS.
#include "daemon/infer_trial.h"

#include <errno.h>
#include <string.h>

#include "daemon/infer_impl.h"

#define FRESH_NS   (1 * NS_PER_S)
#define FIRST_NS   (500 * NS_PER_MS)
#define SPARE_ROWS 2

// ---- plain -----------------------------------------------------------------------------------

void infer_try(struct infer *w, const struct infer_seat *seat, int trials, ns_t guess_ns,
               float *running, float *candidate)
{
    struct infer_trial *t = &w->trial;
    t->seat = seat;
    t->wanted = trials < INFER_TRIALS ? trials : INFER_TRIALS;
    t->longest_ns = guess_ns;
    t->running = running;
    t->candidate = candidate;
    atomic_store(&t->ended, false);
    atomic_store(&t->done, 0);
    atomic_store(&t->waits_for, TRIAL_NOT_WAITING);
    atomic_store(&t->state, TRIAL_READY);
}

void infer_tried(const struct infer *w, struct infer_tried *out)
{
    const struct infer_trial *t = &w->trial;
    out->state = (enum infer_trial_state)atomic_load(&t->state);
    out->waits_for = (enum infer_trial_wait)atomic_load(&t->waits_for);
    out->done = atomic_load(&t->done);
    memcpy(out->ns, t->ns, (size_t)out->done * sizeof *out->ns);
    out->why[0] = '\0';
    if (out->state == TRIAL_REFUSED)
        memcpy(out->why, t->why, sizeof out->why);
}

int infer_try_end(struct infer *w)
{
    int state = atomic_load(&w->trial.state);
    atomic_store(&w->trial.ended, true);
    while (state != TRIAL_THINKS)
        if (atomic_compare_exchange_weak(&w->trial.state, &state, TRIAL_NONE))
            return 0;
    return -EBUSY;
}

ns_t infer_recent_ns(const struct infer *w)
{
    return atomic_load(&w->longest_ns);
}

// ---- infer: when -----------------------------------------------------------------------------

bool infer_try_wants(const struct infer *w, ns_t age_ns)
{
    const struct infer_trial *t = &w->trial;
    return atomic_load(&t->state) == TRIAL_READY &&
           age_ns >= (atomic_load(&t->done) == 0 ? FIRST_NS : FRESH_NS);
}

// Does the arm follow a chunk, or hope for one?
static bool follows(enum ladder_state mode)
{
    return mode == LADDER_APPROACH || mode == LADDER_RUNNING || mode == LADDER_HOLD;
}

static bool room(const struct infer *w)
{
    const struct infer_seat *seat = w->seat;
    struct loop_report r;
    if (!slot_read(&w->board->report, &r))
        return false;
    if (!follows(r.mode))
        return true;
    ns_t step = r.chunk_step_ns > 0 ? r.chunk_step_ns : seat->step_ns;
    ns_t left = (ns_t)(r.chunk_remaining * (double)step);
    ns_t after = w->cfg.camera_period_ns[seat->binding->primary] + infer_latency(w) +
                 SPARE_ROWS * step;
    return left > w->trial.longest_ns + after;
}

bool infer_try_due(struct infer *w, ns_t now_ns)
{
    enum infer_trial_wait wait = TRIAL_NOT_WAITING;
    if (w->since_ns != 0 || atomic_load(&w->trial.state) != TRIAL_READY)
        return false;
    if (!w->used || now_ns - w->anchor_ns > FRESH_NS)
        wait = TRIAL_FOR_OBSERVATION;
    else if (!room(w))
        wait = TRIAL_FOR_ROOM;
    atomic_store(&w->trial.waits_for, wait);
    return wait == TRIAL_NOT_WAITING;
}

// ---- infer: the steps ------------------------------------------------------------------------

// The running policy's frames, and the newest of cameras that only the candidate looks
// at.
static int look(struct infer *w, struct infer_trial *t)
{
    int n = t->seat->info->n_cameras;
    const int *camera_of = t->seat->binding->camera_of;
    for (int i = 0; i < n; i++)
        if (!w->framed[camera_of[i]])
            camera_request(w->cameras[camera_of[i]]);
    for (int i = 0; i < n; i++) {
        if (!w->framed[camera_of[i]] && infer_frame(w, camera_of[i]))
            return -ENODATA;
        t->image[i] = w->frame[camera_of[i]];
        t->image[i].number =
            0; // all of it each time: it is timed as if nothing had been seen
    }
    return 0;
}

int infer_try_think(struct infer *w, ns_t now_ns)
{
    struct infer_trial *t = &w->trial;
    int ready = TRIAL_READY;
    if (!atomic_compare_exchange_strong(&t->state, &ready, TRIAL_THINKS))
        return -ECANCELED; // taken away since infer_try_due
    t->since_ns = now_ns;
    t->blind = look(w, t) != 0;
    if (t->blind)
        return -ENODATA;
    const struct infer_seat *seat = t->seat;
    const struct policy_observation obs = {.state = seat->state, .image = t->image};
    binding_state(seat->binding, w->joints->pos, seat->state);
    t->rc = seat->brain.infer(seat->brain.self, &obs, seat->actions);
    return t->rc;
}

static enum infer_trial_state refused(struct infer_trial *t)
{
    const char *why = t->seat->brain.why(t->seat->brain.self);
    memset(t->why, 0, sizeof t->why);
    memcpy(t->why, why, strnlen(why, sizeof t->why - 1));
    return TRIAL_REFUSED;
}

static enum infer_trial_state timed(struct infer *w, struct infer_trial *t, ns_t ns)
{
    const struct infer_seat *a = w->seat, *b = t->seat;
    int done = atomic_load(&t->done);
    t->ns[done] = ns;
    t->longest_ns = done == 0 || ns > t->longest_ns ? ns : t->longest_ns;
    atomic_store(&t->done, ++done);
    if (done < t->wanted)
        return atomic_load(&t->ended) ? TRIAL_OVER : TRIAL_READY;
    binding_actions(a->binding, a->actions, a->rows, t->running);
    binding_actions(b->binding, b->actions, b->rows, t->candidate);
    return TRIAL_OVER;
}

void infer_try_finish(struct infer *w, ns_t now_ns)
{
    struct infer_trial *t = &w->trial;
    enum infer_trial_state next = TRIAL_READY;
    if (t->since_ns == 0 || atomic_load(&t->state) != TRIAL_THINKS)
        return;
    if (t->blind)
        w->used = false; // not again and again: with the next observation
    else
        next = t->rc ? refused(t) : timed(w, t, now_ns - t->since_ns);
    t->since_ns = 0;
    atomic_store(&t->state, (int)next);
}
