// The loop's senses, outwards: how old, how well-formed and how new each stream is, as condition
// bits. Every bound is written here once; what follows from a bit is the ladder's business.
//
// A joint state is as old as its capture: a late network is as bad as a silent driver. A frame
// is as old as its receipt: pictures are under way for tens of milliseconds by nature, that age
// is the chunk's (max_age), and only a stream that stops is a fault of the stream.
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

void loop_suspect(struct loop *l, enum ladder_reason reason, int index, double value)
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
        loop_suspect(l, REASON_OUT_OF_LIMITS, i, l->joints.pos[i]);
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
    int why = l->in.joints_refused_for;

    if (l->in.joints_refused_in_a_row < LOOP_BAD_JOINTS || BLIND(BLIND_JOINTS_REFUSED))
        return 0;
    if (why < 0 || why >= LADDER_REASONS || bit[why] == 0)
        return LADDER_C_JOINTS_INVALID;
    loop_suspect(l, (enum ladder_reason)why, l->in.joints_refused_joint,
                 l->in.joints_refused_value);
    return bit[why];
}

static uint64_t watch_joints(struct loop *l, ns_t now)
{
    uint64_t c = watch_refused(l);

    l->degraded = false;
    if (l->in.joints_slow)
        c |= LADDER_C_JOINTS_SLOW;
    if (!l->joints_seen)
        return c | LADDER_C_JOINTS_MISSING;
    c |= watch_joint_age(l, now) | watch_measured(l);
    l->outside = c & LADDER_C_OUT_OF_LIMITS;
    l->stale = c & LADDER_C_JOINTS_STALE;
    return c;
}

// ---- cameras ---------------------------------------------------------------------------------

// In a row, as far as frames were decoded at all.
static bool corrupt(const struct loop *l, int camera)
{
    return l->in.camera[camera].corrupt_in_a_row >= BOARD_CORRUPT &&
           !BLIND(BLIND_CAMERA_CORRUPT);
}

static uint64_t judge_age(const struct loop *l, int camera, ns_t age)
{
    const struct tick_camera *m = &l->in.camera[camera];
    struct loop_bounds bound = loop_camera_bounds(l->cfg.camera_period_ns[camera]);
    uint64_t c = 0;

    if (BLIND(BLIND_CAMERA_AGE))
        return 0;
    if (age > bound.degraded)
        c |= LADDER_C_CAMERA_LATE;
    if (age <= bound.stop)
        return c;
    if (m->refused_in_a_row > 0)
        c |= LADDER_C_CAMERA_INVALID;
    return c | LADDER_C_CAMERA_STALE;
}

// The same picture again and again: as late at once, as stale after as long as that takes.
static uint64_t judge_content(const struct loop *l, int camera, ns_t now)
{
    const struct tick_camera *m = &l->in.camera[camera];
    ns_t stop = loop_camera_bounds(l->cfg.camera_period_ns[camera]).stop;

    if (m->same_in_a_row < BOARD_STUCK || BLIND(BLIND_CAMERA_FROZEN))
        return 0;
    if (!l->cfg.frozen_stops[camera])
        return l->cfg.frozen_warns[camera] ? LADDER_C_CAMERA_SAME : 0;
    if (now - m->changed_ns > stop)
        return LADDER_C_CAMERA_STUCK | LADDER_C_CAMERA_FROZEN;
    return LADDER_C_CAMERA_STUCK;
}

static uint64_t judge_camera(struct loop *l, int camera, ns_t now)
{
    const struct tick_camera *m = &l->in.camera[camera];
    ns_t at = m->received_ns;
    uint64_t c = judge_content(l, camera, now);

    if (m->slow)
        c |= LADDER_C_CAMERA_SLOW;
    if (corrupt(l, camera))
        c |= LADDER_C_CAMERA_CORRUPT;
    if (at != 0)
        return c | judge_age(l, camera, now - at);
    if (m->refused_in_a_row > 0)
        c |= LADDER_C_CAMERA_INVALID;
    return c | LADDER_C_CAMERA_MISSING;
}

// Names the camera behind each of its faults. Of those that are away the one that is worst off.
static void suspect_camera(struct loop *l, int camera, uint64_t one, uint64_t before,
                           ns_t now)
{
    const struct tick_camera *m = &l->in.camera[camera];
    ns_t at = m->received_ns;

    for (int i = 0; i < ladder_faults; i++)
        if ((one & ladder_fault[i].condition) &&
            ladder_fault[i].condition != LADDER_C_CAMERA_LATE &&
            ladder_fault[i].condition != LADDER_C_CAMERA_STALE)
            loop_suspect(l, ladder_fault[i].reason, camera, 0);
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

uint64_t loop_streams(struct loop *l, ns_t now)
{
    return watch_joints(l, now) | watch_cameras(l, now);
}
