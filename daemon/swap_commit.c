// swap_commit: the worker takes the candidate's seat; its first chunk comes into view, or
// the old policy is given its seat again.
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "daemon/swap_impl.h"

// After so many ticks a chunk that was handed over and is not in view was refused.
#define VIEW_TICKS 5

static void done(struct swap *s, const struct loop_report *loop, ns_t now,
                 const char *remark)
{
    struct swap_report *r = &s->job.report;
    char tried[256];
    r->commit_ns = now - s->job.stage_ns;
    if (s->job.untried)
        snprintf(tried, sizeof tried, "not tried, there was no fresh observation");
    else
        snprintf(tried, sizeof tried,
                 "%d inferences of %.0f ms (worst %.0f), largest difference %.3f rad "
                 "(%s, row %d)",
                 r->trials, swap_ms(r->inference_median_ns),
                 swap_ms(r->inference_worst_ns), r->difference_rad, r->difference_joint,
                 r->difference_row);
    snprintf(r->text, sizeof r->text,
             "%s %s after %.2f s: loaded in %.2f s; %s; its first chunk took %.0f ms%s",
             r->to, swap_drives(loop) ? "drives" : "is in use",
             swap_ms(now - s->job.begin_ns) / 1000, swap_ms(r->load_ns) / 1000, tried,
             swap_ms(r->commit_ns), remark);
    swap_decide(s, SWAP_DONE, 0, now);
}

static void return_seat(struct swap *s, int result, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void return_seat(struct swap *s, int result, const char *format, ...)
{
    struct swap_job *j = &s->job;
    va_list ap;
    va_start(ap, format);
    vsnprintf(j->report.text, sizeof j->report.text, format, ap);
    va_end(ap);
    j->result = result;
    j->returns = true;
    swap_gives_back(s);
    infer_offer(s->src.infer, &s->current->seat);
}

// Does the loop act on chunks, so that the first one must come into view?
static bool follows(enum ladder_state mode)
{
    return mode == LADDER_RUNNING || mode == LADDER_HOLD;
}

// The worker has the seat: what becomes of the first chunk?
static void view_turn(struct swap *s, ns_t now)
{
    struct swap_job *j = &s->job;
    const struct infer_counts *n = infer_counts(s->src.infer);
    bool made = atomic_load(&n->seat_done) > 0, failed = atomic_load(&n->seat_failed) > 0;
    bool late = now - j->stage_ns > SWAP_PATIENCE;
    struct loop_report r = {.tick = 0};
    char why[INFER_FAILURE_MAX];

    if (!swap_loop(s, &r) && !late)
        return;
    const char *again = swap_drives(&r) ? "drives again" : "is in use again";
    if (made && j->seen_tick == 0)
        j->seen_tick = r.tick;
    j->report.tick = r.tick;
    if (r.generation == j->candidate->generation) {
        j->report.tick = r.generation_tick;
        done(s, &r, now, "");
    } else if (made && !follows(r.mode)) {
        done(s, &r, now, "");
    } else if (made && (late || r.tick > j->seen_tick + VIEW_TICKS)) {
        return_seat(s, -EINVAL,
                    "the loop did not take its first chunk: see `actctl status` for why "
                    "chunks are dropped; the policy before it %s",
                    again);
    } else if (!made && failed) {
        infer_last_failure(s->src.infer, why);
        return_seat(s, -EIO, "its first inference failed: %s; the policy before it %s",
                    why, again);
    } else if (!made && late &&
               (j->untried || !r.wants_inference ||
                atomic_load(&s->src.board->starved) != BOARD_FED)) {
        done(s, &r, now, "; which waits for an observation");
    } else if (!made && late) {
        return_seat(s, -ETIMEDOUT,
                    "its first inference has not ended after %.1f s; the policy before "
                    "it is to be in use again",
                    swap_ms(now - j->stage_ns) / 1000);
    }
}

void swap_commit_turn(struct swap *s, ns_t now)
{
    struct swap_job *j = &s->job;
    const struct infer_seat *seated = infer_seated(s->src.infer);
    if (j->returns) {
        if (seated == &s->current->seat || now - j->stage_ns > 2 * SWAP_PATIENCE)
            swap_decide(s, SWAP_FAILED, j->result, now);
    } else if (j->seated) {
        view_turn(s, now);
    } else if (seated == &j->candidate->seat) {
        j->seated = true;
        swap_takes_over(s);
        view_turn(s, now);
    } else if (now - j->stage_ns > SWAP_PATIENCE && infer_withdraw(s->src.infer)) {
        swap_fail(s, -ETIMEDOUT, now,
                  "the running policy's inference has not ended within %.0f s",
                  swap_ms(SWAP_PATIENCE) / 1000);
    }
}
