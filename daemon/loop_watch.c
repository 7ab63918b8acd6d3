// The loop's senses: ages, bounds and counters become condition bits. Every bound is written
// here once; what follows from a bit is the ladder's business.
//
// A joint state is as old as its capture: a late network is as bad as a silent driver. A frame
// is as old as its receipt: pictures are under way for tens of milliseconds by nature, that age
// is the chunk's (max_age), and only a stream that stops is a fault of the stream.
#include <errno.h>
#include <math.h>

#include "daemon/loop_impl.h"

#define JOINTS_FLAG     2 // periods of the stream's own declared rate
#define JOINTS_HOLD     3
#define JOINTS_STOP     5
#define JOINTS_STOP_NS  (100 * NS_PER_MS) // or this, whichever is longer
#define CAMERA_LATE     3
#define CAMERA_LATE_NS  (100 * NS_PER_MS)
#define CAMERA_STALE    10
#define CAMERA_STALE_NS (500 * NS_PER_MS)
// The graver is the higher bit.
#define CAMERA_AWAY ((uint32_t)LADDER_C_CAMERA_LATE | LADDER_C_CAMERA_STALE)

static ns_t longer(ns_t a, ns_t b)
{
    return a > b ? a : b;
}

static double ms(ns_t ns)
{
    return (double)ns / (double)NS_PER_MS;
}

static bool moving(enum ladder_state s)
{
    return s == LADDER_APPROACH || s == LADDER_RUNNING || s == LADDER_HOLD ||
           s == LADDER_DISARMING;
}

// Whom to name for a reason. The first one found is enough.
static void suspect(struct loop *l, enum ladder_reason reason, int index, double value)
{
    if (l->suspect[reason].index < 0)
        l->suspect[reason] = (struct culprit){index, value};
}

static uint32_t watch_joints(struct loop *l, ns_t now)
{
    ns_t age = now - l->joints.capture_ns, period = l->cfg.joints_period_ns;
    uint32_t c = 0;

    if (!l->joints_seen)
        return LADDER_C_JOINTS_MISSING;
    l->degraded = age > JOINTS_FLAG * period;
    if (age > JOINTS_HOLD * period) {
        c |= LADDER_C_JOINTS_LATE;
        l->suspect[REASON_JOINTS_STALE].value = ms(age);
    }
    if (age > longer(JOINTS_STOP_NS, JOINTS_STOP * period))
        c |= LADDER_C_JOINTS_STALE;
    for (int i = 0; i < l->cfg.joints; i++)
        if (l->joints.pos[i] < l->cfg.limits.min[i] - LOOP_LIMIT_SLACK ||
            l->joints.pos[i] > l->cfg.limits.max[i] + LOOP_LIMIT_SLACK) {
            c |= LADDER_C_OUT_OF_LIMITS;
            suspect(l, REASON_OUT_OF_LIMITS, i, l->joints.pos[i]);
        }
    l->outside = c & LADDER_C_OUT_OF_LIMITS;
    l->stale = c & LADDER_C_JOINTS_STALE;
    return c;
}

// In a row, as far as frames were decoded at all.
static bool corrupt(const struct loop *l, int camera)
{
    return atomic_load_explicit(&l->board->camera[camera].corrupt_in_a_row,
                                memory_order_relaxed) >= BOARD_CORRUPT;
}

static uint32_t judge_camera(struct loop *l, int camera, ns_t age)
{
    ns_t period = l->cfg.camera_period_ns[camera];
    uint32_t c = 0;

    if (age > longer(CAMERA_LATE_NS, CAMERA_LATE * period))
        c |= LADDER_C_CAMERA_LATE;
    if (age > longer(CAMERA_STALE_NS, CAMERA_STALE * period) || corrupt(l, camera))
        c |= LADDER_C_CAMERA_STALE;
    return c;
}

static uint32_t watch_cameras(struct loop *l, ns_t now)
{
    uint32_t c = 0;

    for (int i = 0; i < l->cfg.n_cameras; i++) {
        ns_t at =
            atomic_load_explicit(&l->board->camera[i].received_ns, memory_order_acquire);
        uint32_t one = at != 0 ? judge_camera(l, i, now - at) : LADDER_C_CAMERA_MISSING;

        if (one & LADDER_C_CAMERA_MISSING)
            suspect(l, REASON_CAMERA_MISSING, i, 0);
        else if (one > (c & CAMERA_AWAY)) // a stale one is named before a late one
            l->suspect[REASON_CAMERA_STALE] =
                (struct culprit){i, corrupt(l, i) ? 0 : ms(now - at)};
        c |= one;
    }
    return c;
}

// The collision detector. The command compared is the last published one, so the bound must
// allow for the arm's normal lag.
static uint32_t watch_following(struct loop *l)
{
    int n = l->cfg.following_ticks > 0 ? l->cfg.following_ticks : 1;
    uint32_t c = 0;

    for (int i = 0; i < l->cfg.joints; i++) {
        double bound = l->cfg.following_error[i];
        bool off = bound > 0 && fabs(l->guard.pos[i] - l->joints.pos[i]) > bound;

        if (!off || !moving(l->state)) {
            l->following[i] = 0;
            continue;
        }
        if (l->following[i] < 2 * n)
            l->following[i]++;
        if (l->following[i] >= n) {
            c |= LADDER_C_FOLLOWING;
            suspect(l, REASON_FOLLOWING_ERROR, i,
                    fabs(l->guard.pos[i] - l->joints.pos[i]));
        }
        if (l->following[i] >= 2 * n)
            c |= LADDER_C_FOLLOWING_LONG;
    }
    return c;
}

static uint32_t watch_policy(struct loop *l)
{
    uint32_t failed =
        atomic_load_explicit(&l->board->policy_failures, memory_order_relaxed);
    bool wanted = l->state == LADDER_APPROACH || l->state == LADDER_RUNNING ||
                  l->state == LADDER_HOLD;
    uint32_t c = 0;

    l->bad_targets = wanted && l->target_rc == -EDOM ? l->bad_targets + 1 : 0;
    if (failed >= LOOP_FAILURES)
        c |= LADDER_C_POLICY_FAILED;
    if (l->bad_chunks >= LOOP_BAD_CHUNKS || l->bad_targets >= LOOP_BAD_TARGETS)
        c |= LADDER_C_NOT_FINITE_AGAIN;
    if (!wanted)
        return c;
    if (l->target_rc == -ENODATA)
        c |= LADDER_C_NO_CHUNK;
    if (l->target_rc == -ESTALE)
        c |= LADDER_C_CHUNK_TOO_OLD;
    if (l->target_rc == -EDOM)
        c |= LADDER_C_NOT_FINITE;
    return c;
}

// Arrived: the command, not the measured pose, is within tolerance of what the limits leave of
// the target. An arm that sags under its load still arrives; one that does not follow at all is
// the following error's business.
static bool at_target(const struct loop *l)
{
    if (l->state != LADDER_APPROACH || l->target_rc != 0)
        return false;
    for (int i = 0; i < l->cfg.joints; i++) {
        double want =
            fmin(fmax(l->target.pos[i], l->cfg.limits.min[i]), l->cfg.limits.max[i]);

        if (fabs(l->guard.pos[i] - want) > l->cfg.approach_tolerance)
            return false;
    }
    return true;
}

static uint32_t watch_self(const struct loop *l, ns_t now)
{
    uint32_t c = 0;

    if (l->ran && now - l->last_now_ns > l->cfg.tick_gap_ns)
        c |= LADDER_C_TICK_GAP;
    if (l->gate_refused)
        c |= LADDER_C_GATE;
    if (guard_at_rest(&l->guard))
        c |= LADDER_C_AT_REST;
    if (at_target(l))
        c |= LADDER_C_AT_TARGET;
    if (l->approached)
        c |= LADDER_C_APPROACHED;
    if (l->state == LADDER_APPROACH && now - l->approach_since_ns >= LOOP_APPROACH_NS)
        c |= LADDER_C_APPROACH_LONG;
    if (l->state == LADDER_HOLD && now - l->hold_since_ns >= l->cfg.hold_ns)
        c |= LADDER_C_HOLD_EXPIRED;
    return c;
}

uint32_t loop_conditions(struct loop *l, ns_t now)
{
    const uint32_t away = LADDER_C_JOINTS_MISSING | LADDER_C_JOINTS_LATE |
                          LADDER_C_CAMERA_MISSING | LADDER_C_CAMERA_LATE;
    bool started = atomic_load_explicit(&l->board->started, memory_order_acquire);
    for (int i = 0; i < LADDER_REASONS; i++)
        l->suspect[i] = (struct culprit){-1, 0};
    uint32_t c = watch_joints(l, now) | watch_cameras(l, now);

    l->live = started && !(c & away);
    l->fresh = l->live && !l->degraded ? l->fresh + (l->fresh < l->cfg.fresh_ticks) : 0;
    l->degraded = l->degraded || (c & LADDER_C_CAMERA_LATE);
    if (started)
        c |= LADDER_C_STARTED;
    if (l->live && l->fresh >= l->cfg.fresh_ticks)
        c |= LADDER_C_STREAMS_FRESH;
    return c | watch_following(l) | watch_policy(l) | watch_self(l, now) | l->requests;
}
