// The rules of the checker about ticks and the ladder: what is counted, where a step may lead, who
// must have asked for it, how long it may last and on what it may rest.
#include <inttypes.h>
#include <math.h>

#include "tests/fault/checker_impl.h"

#define MOTION (M(APPROACH) | M(RUNNING) | M(HOLD) | M(HOMING) | M(DISARMING))

// The drawing: where a step may lead from each mode. ESTOP is added to all.
static const unsigned next[] = {
    [ACTD__V1__MODE__MODE_INIT] = M(WAITING),
    [ACTD__V1__MODE__MODE_WAITING] = M(READY) | M(STOPPING),
    [ACTD__V1__MODE__MODE_READY] = M(WAITING) | M(APPROACH) | M(HOMING) | M(STOPPING),
    [ACTD__V1__MODE__MODE_APPROACH] = M(RUNNING) | M(HOLD) | M(DISARMING) | M(STOPPING),
    [ACTD__V1__MODE__MODE_RUNNING] = M(HOLD) | M(DISARMING) | M(STOPPING),
    [ACTD__V1__MODE__MODE_HOLD] = M(RUNNING) | M(APPROACH) | M(DISARMING) | M(STOPPING),
    [ACTD__V1__MODE__MODE_STOPPING] = M(STOPPED),
    [ACTD__V1__MODE__MODE_STOPPED] = M(WAITING),
    [ACTD__V1__MODE__MODE_ESTOP] = M(WAITING),
    [ACTD__V1__MODE__MODE_DISARMING] = M(READY) | M(STOPPING),
    [ACTD__V1__MODE__MODE_HOMING] = M(DISARMING) | M(STOPPING),
};
#define MODES ((int)(sizeof next / sizeof *next))
#define ALL   ((1u << MODES) - 2)

// ---- ticks and the ladder --------------------------------------------------------------------

static void account(struct checker *c, const struct checker_tick *t)
{
    int64_t due = t->now_ns - t->lateness_ns;
    bool more = c->executed == 0 || t->tick > c->tick;

    if (c->executed++ == 0)
        c->first_ns = due - (int64_t)t->tick * c->cfg.period_ns;
    c->tick = t->tick;
    if (!more)
        checker_blame(c, CHECK_TICK, "does not increase");
    if (t->lateness_ns < 0 || (due - c->first_ns) % c->cfg.period_ns != 0)
        checker_blame(c, CHECK_ACCOUNTING, "due at %" PRId64 " ns, which is out of phase",
                      due - c->first_ns);
    if (c->executed + t->skipped !=
        (uint64_t)((due - c->first_ns) / c->cfg.period_ns) + 1)
        checker_blame(c, CHECK_ACCOUNTING, "%" PRIu64 " executed, %" PRIu64 " skipped",
                      c->executed, t->skipped);
}

static void judge_request(struct checker *c, const struct checker_tick *t, int from)
{
    bool latched =
        from == ACTD__V1__MODE__MODE_STOPPED || from == ACTD__V1__MODE__MODE_ESTOP;

    if (t->mode == ACTD__V1__MODE__MODE_APPROACH && from == ACTD__V1__MODE__MODE_READY &&
        !(t->requests & CHECKER_ARM))
        checker_blame(c, CHECK_UNASKED, "APPROACH");
    if (t->mode == ACTD__V1__MODE__MODE_HOMING && !(t->requests & CHECKER_HOME))
        checker_blame(c, CHECK_UNASKED, "HOMING");
    if (t->mode == ACTD__V1__MODE__MODE_ESTOP && !(t->requests & CHECKER_ESTOP))
        checker_blame(c, CHECK_UNASKED, "ESTOP");
    if (latched && t->mode == ACTD__V1__MODE__MODE_WAITING &&
        !(t->requests & CHECKER_RESET))
        checker_blame(c, CHECK_UNASKED, "a latch opened");
}

static void judge_stop_request(struct checker *c, const struct checker_tick *t, int from)
{
    if ((t->requests & CHECKER_ESTOP) && t->mode != ACTD__V1__MODE__MODE_ESTOP)
        checker_blame(c, CHECK_IGNORED, "emergency stop asked in mode %d, now %d", from,
                      t->mode);
    if ((t->requests & CHECKER_STOP) && from != ACTD__V1__MODE__MODE_INIT &&
        !in(t->mode, STOP))
        checker_blame(c, CHECK_IGNORED, "stop asked in mode %d, now %d", from, t->mode);
}

static void judge_step(struct checker *c, const struct checker_tick *t)
{
    int from = c->mode;

    if (!in(t->mode, ALL)) {
        checker_blame(c, CHECK_MODE, "%d is none", t->mode);
        return;
    }
    judge_stop_request(c, t, from);
    if (t->mode == from)
        return;
    if (!in(t->mode, next[from] | M(ESTOP)))
        checker_blame(c, CHECK_TRANSITION, "from mode %d to %d", from, t->mode);
    judge_request(c, t, from);
    c->mode = t->mode;
    c->since_ns = t->now_ns;
    c->commands_in_mode = 0;
    checker_chunks_step(c, from);
}

// Ages of what the mode rests on.
static void judge_ages(struct checker *c, const struct checker_tick *t)
{
    int64_t age = t->now_ns - t->captured_ns;

    if (in(t->mode, M(APPROACH) | M(RUNNING) | M(HOMING)) &&
        age > 3 * c->cfg.joints_period_ns)
        checker_blame(c, CHECK_STALE_JOINTS, "mode %d on a joint state of %" PRId64 " ns",
                      t->mode, age);
    for (int i = 0; i < c->cfg.cameras; i++) {
        int64_t most = 10 * c->cfg.camera_period_ns[i];

        if (most < 500000000)
            most = 500000000;
        if (in(t->mode, M(APPROACH) | M(RUNNING) | M(HOLD)) &&
            t->now_ns - t->frame_ns[i] > most)
            checker_blame(c, CHECK_STALE_CAMERA, "mode %d, camera %d silent for %" PRId64,
                          t->mode, i, t->now_ns - t->frame_ns[i]);
    }
}

static void judge_time(struct checker *c, const struct checker_tick *t, int from)
{
    if (t->mode == ACTD__V1__MODE__MODE_HOLD &&
        t->now_ns - c->since_ns > c->cfg.hold_ns + c->cfg.period_ns)
        checker_blame(c, CHECK_HOLD, "for %" PRId64 " ns", t->now_ns - c->since_ns);
    if (in(from, MOTION) && in(t->mode, MOTION) && t->now_ns - c->woke_ns > c->cfg.gap_ns)
        checker_blame(c, CHECK_GAP, "mode %d, away for %" PRId64 " ns", t->mode,
                      t->now_ns - c->woke_ns);
    c->woke_ns = t->now_ns;
}

// An arm that is not where its commands were, in each of 2 N ticks in a row, must stop.
static void judge_following(struct checker *c, const struct checker_tick *t, int from)
{
    for (int i = 0; i < c->cfg.joints; i++) {
        double bound = c->cfg.following_error[i];
        bool off = in(from, MOTION) && t->measured && bound > 0 &&
                   fabs(t->measured[i] - c->pos[i]) > bound;

        c->astray[i] = off ? c->astray[i] + 1 : 0;
        if (c->astray[i] > 2 * c->cfg.following_ticks && in(t->mode, MOTION))
            checker_blame(c, CHECK_FOLLOWING, "joint %d for %d ticks, mode %d", i,
                          c->astray[i], t->mode);
    }
}

void checker_ladder_judge(struct checker *c, const struct checker_tick *t)
{
    int from = c->mode;

    account(c, t);
    judge_step(c, t);
    judge_ages(c, t);
    judge_time(c, t, from);
    judge_following(c, t, from);
}
