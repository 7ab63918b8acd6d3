// One tick. See loop.h for what is published when, ladder.c for what leads where.
#include "daemon/loop.h"

#include <assert.h>
#include <errno.h>
#include <math.h>

#include "daemon/blind.h"
#include "daemon/keyframe.h"
#include "daemon/loop_impl.h"

#define AS_REQUEST(r) ((uint64_t)(r) << LADDER_REQUEST_SHIFT)
static_assert(AS_REQUEST(BOARD_ARM) == LADDER_C_REQ_ARM, "requests are the last bits");
static_assert(AS_REQUEST(BOARD_DISARM) == LADDER_C_REQ_DISARM, "in this order");
static_assert(AS_REQUEST(BOARD_STOP) == LADDER_C_REQ_STOP, "in this order");
static_assert(AS_REQUEST(BOARD_ESTOP) == LADDER_C_REQ_ESTOP, "in this order");
static_assert(AS_REQUEST(BOARD_RESET) == LADDER_C_REQ_RESET, "in this order");
static_assert(AS_REQUEST(BOARD_HOME) == LADDER_C_REQ_HOME, "in this order");

// ---- what is wanted -------------------------------------------------------------------------

// 0, or why this target can not be followed; *joint is the one to blame.
static int judge_target(const struct loop *l, int *joint)
{
    const struct guard_limits *lim = &l->guard.lim;

    for (int i = 0; i < l->cfg.joints; i++) {
        *joint = i;
        if (!isfinite(l->target.pos[i]) || !isfinite(l->target.vel[i]))
            return -EDOM;
        if (l->target.pos[i] < lim->hard_min[i] || l->target.pos[i] > lim->hard_max[i])
            return -ERANGE;
    }
    return 0;
}

// Where the command would be in this tick if it just went on.
static void tell_commanded(struct loop *l)
{
    double pos[ACTD_MAX_JOINTS];

    for (int i = 0; i < l->cfg.joints; i++)
        pos[i] = l->guard.pos[i] + l->guard.vel[i] * l->guard.period_s;
    chunks_commanded(l->chunks, pos, l->guard.vel);
}

// What the policy wants now. While nothing has been executed that is its first row.
static void look(struct loop *l, ns_t now)
{
    bool executing =
        l->state == LADDER_RUNNING || (l->state == LADDER_HOLD && l->approached);

    l->target_rc = executing ? chunks_target(l->chunks, now, &l->target)
                             : chunks_first(l->chunks, now, &l->target);
    if (l->target_rc != 0 || BLIND(BLIND_TARGET))
        return;
    l->target_rc = judge_target(l, &l->target_joint);
    if (l->target_rc != 0)
        l->report.refused_vectors++;
}

static void take_inputs(struct loop *l, uint64_t tick, ns_t now, ns_t lateness_ns)
{
    loop_inputs(l, tick, now, lateness_ns);
    l->requests = AS_REQUEST(l->in.requests);
    if (!l->cfg.has_home)
        l->requests &= ~LADDER_C_REQ_HOME;
    if (BLIND(BLIND_REQUESTS))
        l->requests &= LADDER_C_REQ_ARM;
    tell_commanded(l);
    look(l, now);
}

// ---- state -----------------------------------------------------------------------------------

static void enter(struct loop *l, enum ladder_state to, ns_t now)
{
    enum ladder_state from = l->state;

    l->state = to;
    if (to == LADDER_HOLD)
        l->hold_since_ns = now;
    if (from == LADDER_READY && (to == LADDER_APPROACH || to == LADDER_HOMING)) {
        loop_start(l);
        l->armed_before = true;
        l->approached = false;
        l->approach_since_ns = now;
    }
    if (to == LADDER_RUNNING && from == LADDER_APPROACH) {
        l->approached = true;
        (void)chunks_begin(l->chunks, now); // can not fail: it arrived at this row 0
        look(l, now);
    }
}

// The reason, and what is behind it now: a step later it may look otherwise.
static void blame(struct loop *l, enum ladder_reason reason)
{
    l->reason = reason;
    l->culprit = l->suspect[reason];
}

// Why the ladder is where it is, for commands and status.
static void explain(struct loop *l, struct ladder_step step, bool moved,
                    uint64_t conditions)
{
    enum ladder_reason cause = ladder_cause(conditions);

    switch (step.state) {
    case LADDER_INIT:
    case LADDER_WAITING: // counting fresh ticks is starting, too
        blame(l, cause != REASON_NONE ? cause : REASON_STARTING);
        break;
    case LADDER_READY:
    case LADDER_APPROACH:
    case LADDER_RUNNING:
    case LADDER_HOMING:
        // APPROACH waits for rows. What else is wrong here shows as degraded, and as a fault.
        blame(l, conditions & (LADDER_C_NO_CHUNK | LADDER_C_CHUNK_TOO_OLD) ? cause
                                                                           : REASON_NONE);
        break;
    case LADDER_HOLD:
        if (cause != REASON_NONE)
            blame(l, cause);
        break;
    default: // latched, or on the way there: what led here
        if (moved && step.reason != REASON_NONE)
            blame(l, step.reason);
    }
}

static void note(struct loop *l, uint64_t tick, enum ladder_state from)
{
    struct loop_event *e = &l->report.event[l->report.events++ % BOARD_EVENTS];

    e->tick = tick;
    e->from = from;
    e->to = l->state;
    e->reason = l->reason;
    e->index = l->culprit.index;
    e->value = l->culprit.value;
}

// Latches and their opening. A fault latches when the ladder stops for it, or while it stops; what
// it stopped for latches even where it has no condition of its own, as an expired HOLD or an
// operator's stop.
static void remember(struct loop *l, uint64_t tick, enum ladder_state from,
                     struct ladder_step step)
{
    bool stops = step.state == LADDER_STOPPING || step.state == LADDER_ESTOP;

    (void)faults_update(&l->faults, l->conditions, stops, tick);
    if (stops && step.state != from)
        faults_latch(&l->faults, step.reason);
    if ((l->requests & LADDER_C_REQ_RESET) && step.state == LADDER_WAITING) {
        (void)faults_reset(&l->faults);
        for (int b = 0; b < BOARD_BUDGETS; b++)
            budget_forgive(&l->budget[b]);
    }
}

// May the arm be in motion?
static bool in_motion(const struct loop *l)
{
    return ladder_moving(l->state) || l->state == LADDER_STOPPING ||
           (l->state == LADDER_ESTOP && !guard_at_rest(&l->guard));
}

static void decide(struct loop *l, uint64_t tick, ns_t now)
{
    enum ladder_state from = l->state;
    struct ladder_step step;
    bool moved;

    l->conditions = loop_conditions(l, now);
    step = ladder_next(from, l->conditions);
    moved = step.state != from;
    remember(l, tick, from, step);
    if (moved)
        enter(l, step.state, now);
    explain(l, step, moved, l->conditions);
    if (moved)
        note(l, tick, from);
    loop_answer(l, tick, from);
    atomic_store_explicit(&l->board->armed, in_motion(l), memory_order_relaxed);
}

// ---- the tick --------------------------------------------------------------------------------

// A tick that was skipped has missed, whatever the budget: what is lost is lost.
static void count_tick(struct loop *l, uint64_t tick, ns_t now, ns_t lateness_ns)
{
    if (l->ran && tick > l->last_tick + 1)
        budget_skip(&l->budget[BOARD_WAKEUP], tick - l->last_tick - 1);
    budget_add(&l->budget[BOARD_WAKEUP], lateness_ns, tick);
    l->report.ticks_run++;
    l->report.skipped = tick + 1 - l->report.ticks_run;
    l->report.tick = tick;
    l->last_tick = tick;
    l->last_now_ns = now;
    l->stalls_known = l->in.stalls;
    l->ran = true;
    atomic_store_explicit(&l->board->ticks, l->report.ticks_run, memory_order_release);
}

// True when one is on its way.
static bool command(struct loop *l, ns_t now, ns_t (*clock)(void))
{
    if (!loop_make_command(l, now)) {
        l->in.room = true; // nobody asked
        return false;
    }
    l->in.made_ns = clock();
    return loop_publish(l);
}

// The clock is read when a command was made, when all but the reports is done, and when they are:
// in this order, and no more often, so that a replay can hand the times out.
void loop_tick(struct loop *l, uint64_t tick, ns_t now_ns, ns_t lateness_ns,
               ns_t (*clock)(void))
{
    bool published;
    ns_t worked;

    if (tape_on(l->board->tape))
        keyframe_loop(l, l->board->tape, tick, now_ns);
    take_inputs(l, tick, now_ns, lateness_ns);
    decide(l, tick, now_ns);
    published = command(l, now_ns, clock);
    count_tick(l, tick, now_ns, lateness_ns);
    l->in.reported_ns = clock();
    loop_report_tick(l, now_ns, published);
    if (tape_on(l->board->tape))
        loop_record(l, published);
    worked = clock() - now_ns;
    loop_worked(l, worked > 0 ? worked : 0);
}

void loop_worked(struct loop *l, ns_t work_ns)
{
    l->last_work_ns = work_ns;
}

const struct loop_report *loop_last(const struct loop *l)
{
    return &l->report;
}
