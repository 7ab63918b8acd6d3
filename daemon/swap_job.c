// swap_job: one swap, from a name to a policy that drives.
//
//   LOADING      files, weights, a first inference: on this thread, as slowly as it must
//      |         then what the candidate is against what the running one is (swap_judge.c)
//   TRYING       the worker lets it think beside the running policy (infer_trial.c)
//      |         then how long that took, against the deadline of a chunk; where it wants
//      |         the arm, against the hard limits and against the running one's chunk
//   COMMITTING   the worker takes its seat between two inferences; its first chunk comes
//      |         into view of the loop, which goes over to it (swap_commit.c)
//   DONE         the one before is kept for the way back, the one before that is freed
//
// Up to COMMITTING everything can be called off, and nothing that drives has been
// touched: the candidate is loaded beside the running policy, shares its compute threads
// only while the worker has it think, and is not seen by the loop at all. COMMITTING
// cannot be called off, but fails when the candidate makes no chunk that the loop takes:
// then the old policy is given its seat again, under a new generation, since the loop
// takes no chunk of an older one than it has seen.
//
// A step looks and returns: it waits for nobody, so that a test can make it in a time of
// its own. What the worker still has in hand when a swap fails (a trial that does not
// return) is put away when it lets go; until then another swap is answered `busy`.
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/log.h"
#include "daemon/swap_impl.h"

static ns_t later(const struct swap *s, ns_t now_ns)
{
    return s->src.by_hand ? now_ns : clock_now_ns();
}

// ---- the end ---------------------------------------------------------------------------------

static const char *known(const char *digest)
{
    return digest[0] ? digest : "unknown";
}

static void log_outcome(const struct swap *s)
{
    const struct swap_report *r = &s->job.report;
    const struct swap_request *q = &s->job.request;
    log_line(r->stage == SWAP_DONE ? LOG_INFO : LOG_WARN,
             "swap %llu by uid %u (pid %d) from %s (digest %s) to %s (digest %s): %s",
             (unsigned long long)r->number, (unsigned)q->uid, (int)q->pid, r->from,
             known(r->from_digest), r->to, known(r->to_digest), r->text);
}

void swap_decide(struct swap *s, enum swap_stage stage, int result, ns_t now)
{
    struct swap_report *r = &s->job.report;
    r->stage = stage;
    r->result = result;
    r->total_ns = now - s->job.begin_ns;
    swap_note(s);
    swap_decided(s);
    log_outcome(s);
}

void swap_fail(struct swap *s, int result, ns_t now, const char *format, ...)
{
    struct swap_report *r = &s->job.report;
    va_list ap;
    va_start(ap, format);
    vsnprintf(r->text, sizeof r->text, format, ap);
    va_end(ap);
    swap_decide(s, SWAP_FAILED, result, now);
}

static void fail_cancelled(struct swap *s, ns_t now)
{
    swap_fail(s, -ECANCELED, now, "given up: %s; the policy before, %s, stays loaded",
              s->cancel_why, s->current->name);
}

// Once the worker has nothing of the candidate's any more, and nobody holds what is to be
// freed.
static bool put_away(struct swap *s)
{
    struct swap_job *j = &s->job;
    struct fitted *old = j->report.stage == SWAP_DONE ? j->before : j->candidate;
    if (old == s->current || old == s->previous)
        old = NULL; // in use, or kept
    if (infer_try_end(s->src.infer) != 0 ||
        infer_seated(s->src.infer) != &s->current->seat || (old && !swap_unheld(s)))
        return false;
    swap_unload(s, old);
    free(j->running);
    free(j->tried);
    j->running = j->tried = NULL;
    j->candidate = j->before = NULL;
    swap_ended(s);
    return true;
}

// Has somebody called it off, or has the arm begun to stop since this swap began?
static bool called_off(struct swap *s)
{
    struct loop_report r;
    if (swap_loop(s, &r)) {
        uint64_t from = s->job.watched ? s->job.events : r.events;
        if (r.events - from > BOARD_EVENTS)
            from = r.events - BOARD_EVENTS;
        for (; from < r.events; from++) {
            const struct loop_event *e = &r.event[from % BOARD_EVENTS];
            char why[96];
            snprintf(why, sizeof why, "the arm stops (%s)",
                     ladder_reason_name(e->reason));
            if (e->to == LADDER_STOPPING || e->to == LADDER_STOPPED ||
                e->to == LADDER_ESTOP)
                swap_cancel(s, why);
        }
        s->job.events = r.events;
        s->job.watched = true;
    }
    return atomic_load(&s->cancel);
}

// ---- loading ---------------------------------------------------------------------------------

static void load_turn(struct swap *s, ns_t now)
{
    struct swap_job *j = &s->job;
    struct config_error err = {{0}};
    if (!j->request.back)
        j->stamp = swap_files_stamp(s->src.cfg, j->request.name);
    int rc = swap_load(s, &err);
    ns_t then = later(s, now);
    j->report.load_ns = j->report.total_ns = then - j->begin_ns;
    if (j->candidate) {
        const struct policy_info *info = j->candidate->info;
        memcpy(j->report.to_digest, info->digest, sizeof j->report.to_digest);
        j->report.golden_error = info->golden_error;
    }
    if (rc == 0)
        rc = swap_check(s, &err);
    if (called_off(s)) {
        fail_cancelled(s, then);
        return;
    }
    if (rc) {
        swap_fail(s, rc, then, "%s", err.text);
        return;
    }
    j->report.stage = SWAP_TRYING;
    j->stage_ns = j->progress_ns = then;
    infer_try(s->src.infer, &j->candidate->seat, s->src.cfg->swap.trials,
              swap_guess_ns(s), j->running, j->tried);
    swap_publish(s);
}

// ---- trying ----------------------------------------------------------------------------------

static void commit(struct swap *s, ns_t now)
{
    struct swap_job *j = &s->job;
    if (infer_try_end(s->src.infer) != 0)
        return; // it thinks just now: after that
    if (!swap_commits(s)) {
        fail_cancelled(s, now);
        return;
    }
    j->report.stage = SWAP_COMMITTING;
    j->stage_ns = now;
    infer_offer(s->src.infer, &j->candidate->seat);
    swap_publish(s);
}

static void note_times(struct swap *s, const struct infer_tried *t, ns_t now)
{
    struct swap_job *j = &s->job;
    ns_t own = j->candidate->deadline_ns, budget = s->src.deadline_ns;
    j->report.trials = t->done;
    j->report.trial_ns = now - j->stage_ns;
    j->report.deadline_ns = own < budget ? own : budget;
    j->report.inference_median_ns = swap_median(t->ns, t->done);
    j->report.inference_worst_ns = 0;
    for (int i = 0; i < t->done; i++)
        if (t->ns[i] > j->report.inference_worst_ns)
            j->report.inference_worst_ns = t->ns[i];
}

static void compare(struct swap *s, struct swap_chunk *candidate)
{
    struct swap_job *j = &s->job;
    const struct infer_seat *a = &s->current->seat, *b = &j->candidate->seat;
    const struct swap_chunk running = {j->running, a->horizon_rows, a->step_ns};
    *candidate = (struct swap_chunk){j->tried, b->horizon_rows, b->step_ns};
    struct swap_distance far = swap_compare(&running, candidate, s->src.cfg->n_joints);
    j->report.difference_rad = far.rad;
    j->report.difference_row = far.row;
    memcpy(j->report.difference_joint, s->src.cfg->joint[far.joint].name, CONFIG_NAME);
}

// What the trials say: true when the candidate may drive.
static bool passes(struct swap *s, ns_t now)
{
    struct swap_report *r = &s->job.report;
    struct swap_chunk chunk;
    compare(s, &chunk);
    struct chunk_culprit c = swap_beyond(s->src.cfg, &chunk);
    if (r->inference_worst_ns > r->deadline_ns)
        swap_fail(
            s, -ETIME, now,
            "it is too slow: %.0f ms for an inference (the worst of %d; median %.0f ms), "
            "and a chunk must be in view after %.0f ms (deadlines.chunk_latency_ms)",
            swap_ms(r->inference_worst_ns), r->trials, swap_ms(r->inference_median_ns),
            swap_ms(r->deadline_ns));
    else if (c.joint >= 0)
        swap_fail(
            s, -ERANGE, now,
            "it wants %s at %.3f rad in row %d of its chunk, beyond the joint's hard "
            "limits: check its units with `actd check`",
            s->src.cfg->joint[c.joint].name, c.value, c.row);
    else if (r->difference_rad > r->bound_rad && !s->job.request.force)
        swap_fail(
            s, -EDOM, now,
            "on one observation it wants %s %.3f rad from where the running policy "
            "wants it (row %d), more than swap.max_difference %.3f: use --force when "
            "that is meant",
            r->difference_joint, r->difference_rad, r->difference_row, r->bound_rad);
    else
        return true;
    return false;
}

// Nothing has happened for SWAP_PATIENCE.
static void give_up(struct swap *s, const struct infer_tried *t, ns_t now)
{
    if (t->state == TRIAL_THINKS)
        swap_fail(
            s, -ETIMEDOUT, now,
            "an inference of it has not ended after %.1f s: the arm has no chunk while "
            "it lasts",
            swap_ms(now - s->job.progress_ns) / 1000);
    else if (t->waits_for == TRIAL_FOR_ROOM)
        swap_fail(
            s, -EAGAIN, now,
            "the running policy's chunks leave no time between its inferences to try it: "
            "give policy.threads more cores, raise chunks.horizon_rows, or `actctl "
            "disarm`, swap, and arm again");
    else if (t->waits_for == TRIAL_FOR_OBSERVATION || t->done == 0)
        swap_fail(
            s, -ENODATA, now,
            "no fresh observation came within %.0f s to try it on: see `actctl status` "
            "for the stream that is missing, or use --force",
            swap_ms(SWAP_PATIENCE) / 1000);
    else
        swap_fail(s, -ETIMEDOUT, now, "the policy's worker does not try it any more");
}

static void try_turn(struct swap *s, ns_t now)
{
    struct swap_job *j = &s->job;
    struct infer_tried t;
    infer_tried(s->src.infer, &t);
    if (t.done != j->report.trials || t.state == TRIAL_OVER) {
        note_times(s, &t, now);
        j->progress_ns = now;
        swap_publish(s);
    }
    if (called_off(s)) {
        (void)infer_try_end(s->src.infer);
        fail_cancelled(s, now);
    } else if (t.state == TRIAL_REFUSED) {
        swap_fail(s, -EINVAL, now, "a trial inference of it failed: %s", t.why);
    } else if (j->untried || (t.state == TRIAL_OVER && passes(s, now))) {
        commit(s, now);
    } else if (t.state != TRIAL_OVER && now - j->progress_ns > SWAP_PATIENCE) {
        j->untried =
            j->request.force && t.state == TRIAL_READY && t.waits_for != TRIAL_FOR_ROOM;
        if (!j->untried)
            give_up(s, &t, now);
    }
}

// ---- a step ----------------------------------------------------------------------------------

static void first_turn(struct swap *s, ns_t now)
{
    struct swap_job *j = &s->job;
    if (j->begin_ns == 0)
        j->begin_ns = now;
    j->stage_ns = now;
    (void)called_off(s); // what the ladder did before is not its business
}

bool swap_job_turn(struct swap *s, ns_t now_ns)
{
    struct swap_job *j = &s->job;
    if (j->stage_ns == 0)
        first_turn(s, now_ns);
    if (j->report.stage < SWAP_DONE)
        j->report.total_ns = now_ns - j->begin_ns;
    switch (j->report.stage) {
    case SWAP_LOADING:
        load_turn(s, now_ns);
        return true;
    case SWAP_TRYING:
        try_turn(s, now_ns);
        return true;
    case SWAP_COMMITTING:
        swap_commit_turn(s, now_ns);
        return true;
    default:
        return !put_away(s);
    }
}
