// The loop's senses: ages, bounds and counters become condition bits. Every bound is written
// here once; what follows from a bit is the ladder's business.
//
// A joint state is as old as its capture: a late network is as bad as a silent driver. A frame
// is as old as its receipt: pictures are under way for tens of milliseconds by nature, that age
// is the chunk's (max_age), and only a stream that stops is a fault of the stream.
#include <errno.h>
#include <math.h>

#include "daemon/blind.h"
#include "daemon/loop_impl.h"

// The graver is the higher bit.
#define CAMERA_AWAY                                                           \
    (LADDER_C_CAMERA_LATE | LADDER_C_CAMERA_STALE | LADDER_C_CAMERA_INVALID | \
     LADDER_C_CAMERA_CORRUPT)

static ns_t longer(ns_t a, ns_t b)
{
    return a > b ? a : b;
}

struct loop_bounds loop_joint_bounds(ns_t period_ns)
{
    return (struct loop_bounds){2 * period_ns, 3 * period_ns,
                                longer(100 * NS_PER_MS, 5 * period_ns)};
}

struct loop_bounds loop_camera_bounds(ns_t period_ns)
{
    return (struct loop_bounds){longer(100 * NS_PER_MS, 3 * period_ns), 0,
                                longer(500 * NS_PER_MS, 10 * period_ns)};
}

static double ms(ns_t ns)
{
    return (double)ns / (double)NS_PER_MS;
}

// Whom to name for a reason. The first one found is enough.
static void suspect(struct loop *l, enum ladder_reason reason, int index, double value)
{
    if (l->suspect[reason].index < 0)
        l->suspect[reason] = (struct culprit){index, value};
}

// ---- joint states ----------------------------------------------------------------------------

static uint64_t watch_joint_age(struct loop *l, ns_t now)
{
    struct loop_bounds bound = loop_joint_bounds(l->cfg.joints_period_ns);
    ns_t age = now - l->joints.capture_ns;
    uint64_t c = 0;

    if (BLIND(BLIND_JOINTS_AGE))
        return 0;
    l->degraded = age > bound.degraded;
    if (age > bound.hold) {
        c |= LADDER_C_JOINTS_LATE;
        l->suspect[REASON_JOINTS_STALE].value = ms(age);
    }
    if (age > bound.stop)
        c |= LADDER_C_JOINTS_STALE;
    return c;
}

static uint64_t watch_measured(struct loop *l)
{
    uint64_t c = 0;

    for (int i = 0; i < l->cfg.joints && !BLIND(BLIND_LIMITS_MEASURED); i++) {
        double beyond = fmax(l->cfg.limits.min[i] - l->joints.pos[i],
                             l->joints.pos[i] - l->cfg.limits.max[i]);

        if (beyond <= LOOP_LIMIT_SLACK)
            continue;
        c |= LADDER_C_OUT_OF_LIMITS;
        if (beyond > LOOP_FAR_OUT)
            c |= LADDER_C_FAR_OUT;
        suspect(l, REASON_OUT_OF_LIMITS, i, l->joints.pos[i]);
    }
    return c;
}

// The bus tells how many in a row it had to refuse, and what for.
static uint64_t watch_refused(struct loop *l)
{
    static const uint64_t bit[LADDER_REASONS] = {
        [REASON_JOINTS_INVALID] = LADDER_C_JOINTS_INVALID,
        [REASON_JOINTS_NOT_FINITE] = LADDER_C_JOINTS_NOT_FINITE,
        [REASON_JOINTS_JUMP] = LADDER_C_JOINTS_JUMP,
        [REASON_JOINTS_CLOCK] = LADDER_C_JOINTS_CLOCK,
    };
    struct joints_mark *m = &l->board->joint_mark;
    uint32_t n = atomic_load_explicit(&m->refused_in_a_row, memory_order_acquire);
    int why = atomic_load_explicit(&m->refused_for, memory_order_relaxed);

    if (n < LOOP_BAD_JOINTS || BLIND(BLIND_JOINTS_REFUSED))
        return 0;
    if (why < 0 || why >= LADDER_REASONS || bit[why] == 0)
        return LADDER_C_JOINTS_INVALID;
    suspect(l, (enum ladder_reason)why,
            atomic_load_explicit(&m->refused_joint, memory_order_relaxed),
            atomic_load_explicit(&m->refused_value, memory_order_relaxed));
    return bit[why];
}

static uint64_t watch_joints(struct loop *l, ns_t now)
{
    uint64_t c = watch_refused(l);

    l->degraded = false;
    if (atomic_load_explicit(&l->board->joint_mark.slow, memory_order_relaxed))
        c |= LADDER_C_JOINTS_SLOW;
    if (!l->joints_seen)
        return c | LADDER_C_JOINTS_MISSING;
    c |= watch_joint_age(l, now) | watch_measured(l);
    l->outside = c & LADDER_C_OUT_OF_LIMITS;
    l->stale = c & LADDER_C_JOINTS_STALE;
    return c;
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
            suspect(l, REASON_FOLLOWING_ERROR, i, error);
        }
        if (l->following[i] >= 2 * n)
            c |= LADDER_C_FOLLOWING_LONG;
    }
    return c;
}

// ---- cameras ---------------------------------------------------------------------------------

// In a row, as far as frames were decoded at all.
static bool corrupt(const struct loop *l, int camera)
{
    return atomic_load_explicit(&l->board->camera[camera].corrupt_in_a_row,
                                memory_order_relaxed) >= BOARD_CORRUPT &&
           !BLIND(BLIND_CAMERA_CORRUPT);
}

static uint64_t judge_age(const struct loop *l, int camera, ns_t age)
{
    const struct camera_mark *m = &l->board->camera[camera];
    struct loop_bounds bound = loop_camera_bounds(l->cfg.camera_period_ns[camera]);
    uint64_t c = 0;

    if (BLIND(BLIND_CAMERA_AGE))
        return 0;
    if (age > bound.degraded)
        c |= LADDER_C_CAMERA_LATE;
    if (age <= bound.stop)
        return c;
    if (atomic_load_explicit(&m->refused_in_a_row, memory_order_relaxed) > 0)
        c |= LADDER_C_CAMERA_INVALID;
    return c | LADDER_C_CAMERA_STALE;
}

// The same picture again and again: as late at once, as stale after as long as that takes.
static uint64_t judge_content(const struct loop *l, int camera, ns_t now)
{
    const struct camera_mark *m = &l->board->camera[camera];
    ns_t changed = atomic_load_explicit(&m->changed_ns, memory_order_relaxed);
    ns_t stop = loop_camera_bounds(l->cfg.camera_period_ns[camera]).stop;

    if (atomic_load_explicit(&m->same_in_a_row, memory_order_relaxed) < BOARD_STUCK ||
        BLIND(BLIND_CAMERA_FROZEN))
        return 0;
    if (!l->cfg.frozen_stops[camera])
        return l->cfg.frozen_warns[camera] ? LADDER_C_CAMERA_SAME : 0;
    if (now - changed > stop)
        return LADDER_C_CAMERA_STUCK | LADDER_C_CAMERA_FROZEN;
    return LADDER_C_CAMERA_STUCK;
}

static uint64_t judge_camera(struct loop *l, int camera, ns_t now)
{
    const struct camera_mark *m = &l->board->camera[camera];
    ns_t at = atomic_load_explicit(&m->received_ns, memory_order_acquire);
    uint64_t c = judge_content(l, camera, now);

    if (atomic_load_explicit(&m->slow, memory_order_relaxed))
        c |= LADDER_C_CAMERA_SLOW;
    if (corrupt(l, camera))
        c |= LADDER_C_CAMERA_CORRUPT;
    if (at != 0)
        return c | judge_age(l, camera, now - at);
    if (atomic_load_explicit(&m->refused_in_a_row, memory_order_relaxed) > 0)
        c |= LADDER_C_CAMERA_INVALID;
    return c | LADDER_C_CAMERA_MISSING;
}

// Names the camera behind each of its faults. Of those that are away the one that is worst off.
static void suspect_camera(struct loop *l, int camera, uint64_t one, uint64_t before,
                           ns_t now)
{
    const struct camera_mark *m = &l->board->camera[camera];
    ns_t at = atomic_load_explicit(&m->received_ns, memory_order_relaxed);

    for (int i = 0; i < ladder_faults; i++)
        if ((one & ladder_fault[i].condition) &&
            ladder_fault[i].condition != LADDER_C_CAMERA_LATE &&
            ladder_fault[i].condition != LADDER_C_CAMERA_STALE)
            suspect(l, ladder_fault[i].reason, camera, 0);
    if ((one & CAMERA_AWAY) > (before & CAMERA_AWAY) && at != 0)
        l->suspect[REASON_CAMERA_STALE] = (struct culprit){camera, ms(now - at)};
}

static uint64_t watch_cameras(struct loop *l, ns_t now)
{
    uint64_t c = 0;

    for (int i = 0; i < l->cfg.n_cameras; i++) {
        uint64_t one = judge_camera(l, i, now);

        suspect_camera(l, i, one, c, now);
        c |= one;
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
    const struct board *b = l->board;
    // A policy whose chunks come, and are refused, is not slow.
    bool refused = l->bad_chunks[CHUNK_OUT_OF_ORDER] + l->bad_chunks[CHUNK_WRONG_SHAPE] +
                       l->bad_chunks[CHUNK_NOT_FINITE] +
                       l->bad_chunks[CHUNK_OUT_OF_RANGE] >
                   0;
    bool inferring =
        atomic_load_explicit(&b->inferring_since_ns, memory_order_relaxed) != 0;
    uint64_t c = l->target_rc == -ESTALE ? LADDER_C_CHUNK_TOO_OLD : LADDER_C_NO_CHUNK;

    if (l->target_rc != -ENODATA && l->target_rc != -ESTALE)
        return 0;
    if (l->state != LADDER_APPROACH && inferring && !refused)
        c |= LADDER_C_POLICY_SLOW;
    if (atomic_load_explicit(&b->starved, memory_order_relaxed) == BOARD_SKEW)
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
        suspect(l, REASON_POLICY_OUT_OF_RANGE, l->target_joint,
                l->target.pos[l->target_joint]);
    }
    if (l->out_of_range >= LOOP_BAD_TARGETS)
        c |= LADDER_C_OUT_OF_RANGE_AGAIN;
    return c;
}

static uint64_t watch_policy(struct loop *l)
{
    uint32_t failed =
        atomic_load_explicit(&l->board->policy_failures, memory_order_relaxed);
    uint64_t c = 0;

    if (BLIND(BLIND_POLICY))
        return 0;
    c = watch_targets(l);
    if (failed >= LOOP_FAILURES || l->bad_chunks[CHUNK_WRONG_SHAPE] >= LOOP_BAD_CHUNKS)
        c |= LADDER_C_POLICY_FAILED;
    if (l->bad_chunks[CHUNK_NOT_FINITE] >= LOOP_BAD_CHUNKS)
        c |= LADDER_C_NOT_FINITE_AGAIN;
    if (l->bad_chunks[CHUNK_OUT_OF_RANGE] >= LOOP_BAD_CHUNKS) {
        struct chunk_culprit k = chunks_culprit(l->chunks);

        c |= LADDER_C_OUT_OF_RANGE_AGAIN;
        suspect(l, REASON_POLICY_OUT_OF_RANGE, k.joint, k.value);
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
    if (l->stalls != l->stalls_known && !BLIND(BLIND_STALLS))
        c |= LADDER_C_STALLED;
    if (l->gate != GATE_PASSED) {
        c |= LADDER_C_GATE;
        suspect(l, REASON_INTERNAL, l->gate_joint, (double)l->gate);
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
    bool started = atomic_load_explicit(&l->board->started, memory_order_acquire);

    for (int i = 0; i < LADDER_REASONS; i++)
        l->suspect[i] = (struct culprit){-1, 0};
    uint64_t c = watch_joints(l, now) | watch_cameras(l, now);

    l->live = started && !(c & away);
    l->fresh = l->live && !l->degraded ? l->fresh + (l->fresh < l->cfg.fresh_ticks) : 0;
    l->degraded =
        l->degraded || (c & (LADDER_C_CAMERA_LATE | LADDER_C_CAMERA_STUCK)) != 0;
    if (started)
        c |= LADDER_C_STARTED;
    if (l->live && l->fresh >= l->cfg.fresh_ticks)
        c |= LADDER_C_STREAMS_FRESH;
    return c | watch_following(l) | watch_policy(l) | watch_budgets(l) |
           watch_self(l, now) | requests(l);
}
