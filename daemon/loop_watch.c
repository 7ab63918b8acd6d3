// The loop's senses, inwards: what the policy wants, whether the arm follows, how the loop itself
// keeps its time; and all conditions of a tick in one word. Streams are in loop_streams.c.
#include <errno.h>
#include <math.h>

#include "daemon/blind.h"
#include "daemon/loop_impl.h"

static double ms(ns_t ns)
{
    return (double)ns / (double)NS_PER_MS;
}

// The collision detector. The command compared is the last published one, so the bound must
// allow for the arm's normal lag. Counted in half ticks: a bad tick is two, and a good one takes
// one back, so that contact that chatters is found as well as one that lasts.
static uint64_t watch_following(struct loop *l)
{
    int n = 2 * (l->cfg.following_ticks > 0 ? l->cfg.following_ticks : 1);
    uint64_t c = 0;

    for (int i = 0; i < l->cfg.joints && !BLIND(BLIND_FOLLOWING); i++) {
        double bound = l->cfg.following_error[i];
        double error = fabs(l->guard.pos[i] - l->joints.pos[i]);
        bool off = bound > 0 && error > bound;

        if (!ladder_moving(l->state))
            l->following[i] = 0;
        else
            l->following[i] += off ? 2 : l->following[i] > 0 ? -1 : 0;
        if (l->following[i] > 2 * n)
            l->following[i] = 2 * n;
        if (l->following[i] >= n) {
            c |= LADDER_C_FOLLOWING;
            loop_suspect(l, REASON_FOLLOWING_ERROR, i, error);
        }
        if (l->following[i] >= 2 * n)
            c |= LADDER_C_FOLLOWING_LONG;
    }
    return c;
}

// ---- the policy ------------------------------------------------------------------------------

static bool wanted(const struct loop *l)
{
    return l->state == LADDER_APPROACH || l->state == LADDER_RUNNING ||
           l->state == LADDER_HOLD;
}

// No rows for now, and what is known of why.
static uint64_t watch_rows(const struct loop *l)
{
    // A policy whose chunks come, and are refused, is not slow.
    bool refused = l->bad_chunks[CHUNK_OUT_OF_ORDER] + l->bad_chunks[CHUNK_WRONG_SHAPE] +
                       l->bad_chunks[CHUNK_NOT_FINITE] +
                       l->bad_chunks[CHUNK_OUT_OF_RANGE] >
                   0;
    uint64_t c = l->target_rc == -ESTALE ? LADDER_C_CHUNK_TOO_OLD : LADDER_C_NO_CHUNK;

    if (l->target_rc != -ENODATA && l->target_rc != -ESTALE)
        return 0;
    if (l->state != LADDER_APPROACH && l->in.inferring && !refused)
        c |= LADDER_C_POLICY_SLOW;
    if (l->in.starved == BOARD_SKEW)
        c |= LADDER_C_CAMERA_SKEW;
    return c;
}

static uint64_t watch_targets(struct loop *l)
{
    bool w = wanted(l);
    uint64_t c = 0;

    l->not_finite = w && l->target_rc == -EDOM ? l->not_finite + 1 : 0;
    l->out_of_range = w && l->target_rc == -ERANGE ? l->out_of_range + 1 : 0;
    if (l->not_finite > 0)
        c |= LADDER_C_NOT_FINITE;
    if (l->not_finite >= LOOP_BAD_TARGETS)
        c |= LADDER_C_NOT_FINITE_AGAIN;
    if (l->out_of_range > 0) {
        c |= LADDER_C_OUT_OF_RANGE;
        loop_suspect(l, REASON_POLICY_OUT_OF_RANGE, l->target_joint,
                     l->target.pos[l->target_joint]);
    }
    if (l->out_of_range >= LOOP_BAD_TARGETS)
        c |= LADDER_C_OUT_OF_RANGE_AGAIN;
    return c;
}

static uint64_t watch_policy(struct loop *l)
{
    uint64_t c = 0;

    if (BLIND(BLIND_POLICY))
        return 0;
    c = watch_targets(l);
    if (l->in.policy_failures >= LOOP_FAILURES ||
        l->bad_chunks[CHUNK_WRONG_SHAPE] >= LOOP_BAD_CHUNKS)
        c |= LADDER_C_POLICY_FAILED;
    if (l->bad_chunks[CHUNK_NOT_FINITE] >= LOOP_BAD_CHUNKS)
        c |= LADDER_C_NOT_FINITE_AGAIN;
    if (l->bad_chunks[CHUNK_OUT_OF_RANGE] >= LOOP_BAD_CHUNKS) {
        struct chunk_culprit k = chunks_culprit(l->chunks);

        c |= LADDER_C_OUT_OF_RANGE_AGAIN;
        loop_suspect(l, REASON_POLICY_OUT_OF_RANGE, k.joint, k.value);
    }
    return wanted(l) ? c | watch_rows(l) : c;
}

// ---- the loop itself -------------------------------------------------------------------------

// At home the arm itself must be, as near as its droop allows.
static bool at_home(const struct loop *l)
{
    for (int i = 0; i < l->cfg.joints; i++) {
        double bound = l->cfg.following_error[i];

        if (fabs(l->joints.pos[i] - l->cfg.home[i]) > (bound > 0 ? bound : LOOP_MOVED))
            return false;
    }
    return guard_at_rest(&l->guard);
}

// Arrived: the command, not the measured pose, is within tolerance of what the limits leave of
// the goal. An arm that sags under its load still arrives; one that does not follow at all is
// the following error's business. HOMING must also have come to rest, and be there.
static bool at_target(const struct loop *l)
{
    bool homing = l->state == LADDER_HOMING;
    const double *goal = loop_goal(l);

    if (goal == NULL || (!homing && l->state != LADDER_APPROACH) ||
        (homing && !at_home(l)))
        return false;
    for (int i = 0; i < l->cfg.joints; i++) {
        double want = fmin(fmax(goal[i], l->cfg.limits.min[i]), l->cfg.limits.max[i]);

        if (fabs(l->guard.pos[i] - want) > l->cfg.approach_tolerance)
            return false;
    }
    return true;
}

static uint64_t watch_budgets(struct loop *l)
{
    static const struct {
        uint64_t condition;
        enum ladder_reason reason;
    } of[BOARD_BUDGETS] = {
        [BOARD_WAKEUP] = {LADDER_C_WAKEUP_BUDGET, REASON_LATE_WAKEUPS},
        [BOARD_TICK] = {LADDER_C_TICK_BUDGET, REASON_SLOW_TICKS},
        [BOARD_CHUNK] = {LADDER_C_CHUNK_BUDGET, REASON_LATE_CHUNKS},
        [BOARD_SENSOR] = {LADDER_C_SENSOR_BUDGET, REASON_OLD_SENSORS},
    };
    uint64_t c = 0;

    for (int b = 0; b < BOARD_BUDGETS && !BLIND(BLIND_BUDGETS); b++) {
        if (!budget_over(&l->budget[b]))
            continue;
        c |= of[b].condition;
        l->suspect[of[b].reason].value = ms(l->budget[b].worst_ns);
    }
    return c;
}

static uint64_t watch_self(struct loop *l, ns_t now)
{
    bool approaching = l->state == LADDER_APPROACH || l->state == LADDER_HOMING;
    uint64_t c = 0;

    if (l->ran && now - l->last_now_ns > l->cfg.tick_gap_ns && !BLIND(BLIND_TICK_GAP))
        c |= LADDER_C_TICK_GAP;
    if (l->in.stalls != l->stalls_known && !BLIND(BLIND_STALLS))
        c |= LADDER_C_STALLED;
    if (l->gate != GATE_PASSED) {
        c |= LADDER_C_GATE;
        loop_suspect(l, REASON_INTERNAL, l->gate_joint, (double)l->gate);
    }
    if (guard_at_rest(&l->guard))
        c |= LADDER_C_AT_REST;
    if (at_target(l))
        c |= LADDER_C_AT_TARGET;
    if (l->approached)
        c |= LADDER_C_APPROACHED;
    if (approaching && now - l->approach_since_ns >= LOOP_APPROACH_NS)
        c |= LADDER_C_APPROACH_LONG;
    if (l->state == LADDER_HOLD && now - l->hold_since_ns >= l->cfg.hold_ns &&
        !BLIND(BLIND_HOLD_EXPIRES))
        c |= LADDER_C_HOLD_EXPIRED;
    if ((l->faults.latched & l->faults.active) && !BLIND(BLIND_LATCH))
        c |= LADDER_C_LATCHED;
    return c;
}

static uint64_t requests(const struct loop *l)
{
    if (BLIND(BLIND_RESET) && (l->requests & LADDER_C_REQ_ARM))
        return l->requests | LADDER_C_REQ_RESET;
    return l->requests;
}

uint64_t loop_conditions(struct loop *l, ns_t now)
{
    const uint64_t away = LADDER_C_JOINTS_MISSING | LADDER_C_JOINTS_LATE |
                          LADDER_C_CAMERA_MISSING | LADDER_C_CAMERA_LATE |
                          LADDER_C_CAMERA_STUCK;

    for (int i = 0; i < LADDER_REASONS; i++)
        l->suspect[i] = (struct culprit){-1, 0};
    uint64_t c = loop_streams(l, now);

    l->live = l->in.started && !(c & away);
    l->fresh = l->live && !l->degraded ? l->fresh + (l->fresh < l->cfg.fresh_ticks) : 0;
    l->degraded =
        l->degraded || (c & (LADDER_C_CAMERA_LATE | LADDER_C_CAMERA_STUCK)) != 0;
    if (l->in.started)
        c |= LADDER_C_STARTED;
    if (l->live && l->fresh >= l->cfg.fresh_ticks)
        c |= LADDER_C_STREAMS_FRESH;
    return c | watch_following(l) | watch_policy(l) | watch_budgets(l) |
           watch_self(l, now) | requests(l);
}
