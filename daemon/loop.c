// One tick. See loop.h for what is published when, ladder.c for what leads where.
#include "daemon/loop.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "daemon/blind.h"
#include "daemon/loop_impl.h"

#define AS_REQUEST(r) ((uint64_t)(r) << LADDER_REQUEST_SHIFT)
static_assert(AS_REQUEST(BOARD_ARM) == LADDER_C_REQ_ARM, "requests are the last bits");
static_assert(AS_REQUEST(BOARD_DISARM) == LADDER_C_REQ_DISARM, "in this order");
static_assert(AS_REQUEST(BOARD_STOP) == LADDER_C_REQ_STOP, "in this order");
static_assert(AS_REQUEST(BOARD_ESTOP) == LADDER_C_REQ_ESTOP, "in this order");
static_assert(AS_REQUEST(BOARD_RESET) == LADDER_C_REQ_RESET, "in this order");
static_assert(AS_REQUEST(BOARD_HOME) == LADDER_C_REQ_HOME, "in this order");

// ---- inputs ----------------------------------------------------------------------------------

static void take_joints(struct loop *l)
{
    struct joint_sample s;

    // A read that lost three races against the writer keeps the sample before.
    if (slot_read(&l->board->joints, &s) == 0 || s.n != l->cfg.joints)
        return;
    for (int i = 0; i < s.n; i++)
        if (!isfinite(s.pos[i]))
            return; // the codec refuses these; an arm is not moved on trust
    l->joints = s;
    l->joints_seen = true;
}

static void judge_chunk(struct loop *l, enum chunk_verdict v, ns_t latency_ns,
                        uint64_t tick)
{
    if (v == CHUNK_USED)
        memset(l->bad_chunks, 0, sizeof l->bad_chunks);
    else
        l->bad_chunks[v]++;
    if (v == CHUNK_USED || v == CHUNK_LATE)
        budget_add(&l->budget[BOARD_CHUNK], latency_ns, tick);
    l->report.chunks_seen++;
}

static void take_chunks(struct loop *l, uint64_t tick, ns_t now)
{
    const struct chunk *c;

    while ((c = ring_peek(&l->board->chunks)) != NULL) {
        judge_chunk(l, chunks_push(l->chunks, c, now), now - c->anchor_ns, tick);
        ring_release(&l->board->chunks);
    }
}

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

static void take_inputs(struct loop *l, uint64_t tick, ns_t now)
{
    take_joints(l);
    take_chunks(l, tick, now);
    l->requests = AS_REQUEST(
        atomic_exchange_explicit(&l->board->requests, 0, memory_order_acq_rel));
    if (!l->cfg.has_home)
        l->requests &= ~LADDER_C_REQ_HOME;
    if (BLIND(BLIND_REQUESTS))
        l->requests &= LADDER_C_REQ_ARM;
    l->stalls = atomic_load_explicit(&l->board->stalls, memory_order_acquire);
    look(l, now);
}

// ---- state -----------------------------------------------------------------------------------

// The measured pose, brought inside the limits where it rests a hair beyond one.
static void start_from_measured(struct loop *l)
{
    double pose[ACTD_MAX_JOINTS];

    for (int i = 0; i < l->cfg.joints; i++)
        pose[i] =
            fmin(fmax(l->joints.pos[i], l->cfg.limits.min[i]), l->cfg.limits.max[i]);
    guard_reset(&l->guard, pose);
    l->sent = l->left = l->guard;
}

// Is the arm measured somewhere else than where it is held?
static bool moved_away(const struct loop *l)
{
    const struct guard_limits *lim = &l->cfg.limits;

    for (int i = 0; i < l->cfg.joints; i++) {
        double bound = fmin(LOOP_MOVED, (lim->max[i] - lim->min[i]) / 10);

        if (fabs(l->joints.pos[i] - l->guard.pos[i]) >
            fmax(bound, l->cfg.following_error[i]))
            return true;
    }
    return false;
}

// Before the first arming: the pose that was measured first, until the arm was moved.
static void hold_measured(struct loop *l)
{
    if (l->held && l->joints.number != l->away_number)
        l->away = moved_away(l) ? l->away + 1 : 0;
    l->away_number = l->joints.number;
    if (l->held && l->away < LOOP_MOVED_SAMPLES)
        return;
    start_from_measured(l);
    l->held = true;
    l->away = 0;
}

static void enter(struct loop *l, enum ladder_state to, ns_t now)
{
    enum ladder_state from = l->state;

    l->state = to;
    if (to == LADDER_HOLD)
        l->hold_since_ns = now;
    if (from == LADDER_READY && (to == LADDER_APPROACH || to == LADDER_HOMING)) {
        start_from_measured(l);
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
    atomic_store_explicit(&l->board->armed, in_motion(l), memory_order_relaxed);
}

// ---- command ---------------------------------------------------------------------------------

const double *loop_goal(const struct loop *l)
{
    if (l->state == LADDER_HOMING)
        return l->cfg.home;
    if (l->state != LADDER_APPROACH && l->state != LADDER_RUNNING)
        return NULL;
    return l->target_rc == 0 ? l->target.pos : NULL;
}

// What the guard itself refuses counts like a target that was refused before.
static void towards(struct loop *l, const double *goal, const double *vel, double scale,
                    struct guard_result *r)
{
    if (goal == NULL || guard_apply(&l->guard, goal, vel, scale, r) != 0)
        guard_brake(&l->guard, false, r);
}

// The next command from where the guard stands.
static void move(struct loop *l, struct guard_result *r)
{
    static const double still[ACTD_MAX_JOINTS] = {0};

    switch (l->state) {
    case LADDER_APPROACH:
    case LADDER_HOMING:
        towards(l, loop_goal(l), still, l->cfg.approach_scale, r);
        return;
    case LADDER_RUNNING:
        towards(l, loop_goal(l), l->target.vel, 1, r);
        return;
    case LADDER_HOLD:
    case LADDER_DISARMING:
        guard_brake(&l->guard, false, r);
        return;
    default: // STOPPING and ESTOP come to rest; the idle ones are there
        guard_brake(&l->guard, true, r);
    }
}

// Never negative: a sample may be newer than the moment the tick woke.
static ns_t age(ns_t at, ns_t now)
{
    return now > at ? now - at : 0;
}

static void fill(struct loop *l, const struct guard_result *r, ns_t now)
{
    struct command *c = &l->command;
    const double *goal = loop_goal(l);
    size_t size = (size_t)l->cfg.joints * sizeof(double);

    memset(c, 0, sizeof *c);
    c->n = l->cfg.joints;
    memcpy(c->pos, r->pos, size);
    memcpy(c->vel, r->vel, size);
    memcpy(c->wanted, goal != NULL ? goal : r->pos, size);
    memcpy(c->limit, r->limit, sizeof c->limit);
    c->first_limit = r->first;
    c->first_joint = r->first_joint;
    c->mode = l->state;
    c->reason = l->reason;
    c->ttl_ns = l->cfg.ttl_ns;
    c->joint_age_ns = age(l->joints.capture_ns, now);
    c->stalls = l->stalls;
    if (goal == l->target.pos) {
        c->frame_age_ns = age(l->target.oldest_ns, now);
        c->chunk_id = l->target.newest_id;
        c->chunk_row = l->target.row;
        c->blended = l->target.blended;
    }
}

// The last gate. A command that it refuses was never made.
static bool pass_gate(struct loop *l)
{
    struct command *c = &l->command;

    l->gate = gate_check(&l->cfg.limits, l->guard.period_s, l->sent.pos, c->pos, c->vel,
                         c->ttl_ns, &l->gate_joint);
    if (l->gate == GATE_PASSED || BLIND(BLIND_GATE))
        return true;
    l->guard = l->sent;
    l->report.gate_refusals++;
    return false;
}

// A command that the bus took and did not send (too old, cut by the monitor) was never made: the
// next step is from the one before.
static void find_lost(struct loop *l)
{
    uint64_t lost = atomic_load_explicit(&l->board->lost_command, memory_order_acquire);

    if (lost == l->lost)
        return;
    l->lost = lost;
    if (lost == l->report.commands)
        l->guard = l->sent = l->left;
}

// Fills l->command. False when nothing may be published in this tick.
static bool make_command(struct loop *l, ns_t now)
{
    struct guard_result r;

    l->gate = GATE_PASSED;
    if (!l->joints_seen || (!l->armed_before && (l->outside || l->stale))) {
        l->held = false;
        return false;
    }
    find_lost(l);
    if (!l->armed_before)
        hold_measured(l);
    move(l, &r);
    fill(l, &r, now);
    return pass_gate(l);
}

// True when it is on its way.
static bool publish(struct loop *l, uint64_t tick, ns_t done, ns_t deadline,
                    ns_t lateness)
{
    static const uint64_t one = 1;
    struct command *c = &l->command;

    c->sequence = l->report.commands + 1;
    c->tick = tick;
    c->made_ns = done;
    c->margin_ns = deadline - done;
    c->lateness_ns = lateness;
    // One at a time: of several that wait only the newest could leave, and the step to it would
    // be as long as all of theirs. The next one is from the last that was handed over.
    if ((!ring_empty(&l->board->commands) && !BLIND(BLIND_OUTBOX_NEWEST)) ||
        !ring_push(&l->board->commands, c)) {
        l->guard = l->sent;
        l->report.commands_dropped++;
        return false;
    }
    l->report.commands++;
    l->left = l->sent;
    l->sent = l->guard;
    budget_add(&l->budget[BOARD_SENSOR], done - l->joints.capture_ns, tick);
    // Full (2^64 - 2 unread wake-ups) is the only refusal, and then the bus is awake anyway.
    (void)!write(l->board->command_fd, &one, sizeof one);
    return true;
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
    l->stalls_known = l->stalls;
    l->ran = true;
    atomic_store_explicit(&l->board->ticks, l->report.ticks_run, memory_order_release);
}

void loop_tick(struct loop *l, uint64_t tick, ns_t now_ns, ns_t lateness_ns,
               ns_t (*clock)(void))
{
    ns_t deadline = now_ns - lateness_ns + l->period_ns; // when the next tick is due
    bool published = false;
    ns_t worked;

    take_inputs(l, tick, now_ns);
    decide(l, tick, now_ns);
    if (make_command(l, now_ns))
        published = publish(l, tick, clock(), deadline, lateness_ns);
    count_tick(l, tick, now_ns, lateness_ns);
    worked = clock() - now_ns;
    loop_report_tick(l, now_ns, lateness_ns, worked, published);
    budget_add(&l->budget[BOARD_TICK], clock() - now_ns, tick);
}

const struct loop_report *loop_last(const struct loop *l)
{
    return &l->report;
}
