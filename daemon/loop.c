// One tick. See loop.h for what is published when, ladder.c for what leads where.
#include "daemon/loop.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "daemon/loop_impl.h"

static_assert((uint32_t)BOARD_ARM << 24 == (uint32_t)LADDER_C_REQ_ARM,
              "requests are bits 24…");
static_assert((uint32_t)BOARD_RESET << 24 == (uint32_t)LADDER_C_REQ_RESET,
              "in this order");

#define REQUEST_SHIFT 24

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

static void take_chunks(struct loop *l, ns_t now)
{
    const struct chunk *c;

    while ((c = ring_peek(&l->board->chunks)) != NULL) {
        enum chunk_verdict v = chunks_push(l->chunks, c, now);

        if (v == CHUNK_USED) {
            l->bad_chunks = 0;
            hist_add(&l->board->chunk_latency, now - c->anchor_ns);
        }
        if (v == CHUNK_NOT_FINITE || v == CHUNK_WRONG_SHAPE)
            l->bad_chunks++;
        l->report.chunks_seen++;
        ring_release(&l->board->chunks);
    }
}

// What the policy wants now. While nothing has been executed that is its first row.
static void look(struct loop *l, ns_t now)
{
    bool executing =
        l->state == LADDER_RUNNING || (l->state == LADDER_HOLD && l->approached);

    l->target_rc = executing ? chunks_target(l->chunks, now, &l->target)
                             : chunks_first(l->chunks, now, &l->target);
    for (int i = 0; i < l->cfg.joints && l->target_rc == 0; i++)
        if (!isfinite(l->target.pos[i]) || !isfinite(l->target.vel[i]))
            l->target_rc = -EDOM;
    if (l->target_rc == -EDOM)
        l->report.refused_vectors++;
}

static void take_inputs(struct loop *l, ns_t now)
{
    take_joints(l);
    take_chunks(l, now);
    l->requests = atomic_exchange_explicit(&l->board->requests, 0, memory_order_acq_rel)
                  << REQUEST_SHIFT;
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
}

static void enter(struct loop *l, enum ladder_state to, ns_t now)
{
    enum ladder_state from = l->state;

    l->state = to;
    if (to == LADDER_HOLD)
        l->hold_since_ns = now;
    if (to == LADDER_APPROACH && from == LADDER_READY) {
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
                    uint32_t conditions)
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
        // APPROACH waits for rows. What else is wrong here shows as degraded.
        blame(l, cause == REASON_NO_CHUNK || cause == REASON_CHUNK_TOO_OLD ? cause
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

static void decide(struct loop *l, uint64_t tick, ns_t now)
{
    uint32_t conditions = loop_conditions(l, now);
    struct ladder_step step = ladder_next(l->state, conditions);
    enum ladder_state from = l->state;
    bool moved = step.state != from;

    if (moved)
        enter(l, step.state, now);
    explain(l, step, moved, conditions);
    if (moved)
        note(l, tick, from);
}

// ---- command ---------------------------------------------------------------------------------

static void towards(struct loop *l, const double *vel, double scale,
                    struct guard_result *r)
{
    if (l->target_rc != 0 || guard_apply(&l->guard, l->target.pos, vel, scale, r) != 0)
        guard_brake(&l->guard, false, r);
}

// The next command from where the guard stands.
static void move(struct loop *l, struct guard_result *r)
{
    static const double still[ACTD_MAX_JOINTS] = {0};

    switch (l->state) {
    case LADDER_APPROACH:
        towards(l, still, l->cfg.approach_scale, r);
        return;
    case LADDER_RUNNING:
        towards(l, l->target.vel, 1, r);
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
    bool driven =
        l->target_rc == 0 && (l->state == LADDER_APPROACH || l->state == LADDER_RUNNING);
    size_t size = (size_t)l->cfg.joints * sizeof(double);

    memset(c, 0, sizeof *c);
    c->n = l->cfg.joints;
    memcpy(c->pos, r->pos, size);
    memcpy(c->vel, r->vel, size);
    memcpy(c->wanted, driven ? l->target.pos : r->pos, size);
    memcpy(c->limit, r->limit, sizeof c->limit);
    c->first_limit = r->first;
    c->first_joint = r->first_joint;
    c->mode = l->state;
    c->reason = l->reason;
    c->ttl_ns = l->cfg.ttl_ns;
    c->joint_age_ns = age(l->joints.capture_ns, now);
    if (driven) {
        c->frame_age_ns = age(l->target.oldest_ns, now);
        c->chunk_id = l->target.newest_id;
        c->chunk_row = l->target.row;
        c->blended = l->target.blended;
    }
}

// Fills l->command. False when nothing may be published in this tick.
static bool make_command(struct loop *l, ns_t now)
{
    const double *before = l->guard_before.pos;
    struct guard_result r;

    l->gate_refused = false;
    if (!l->joints_seen || (!l->armed_before && (l->outside || l->stale)))
        return false;
    if (!l->armed_before)
        start_from_measured(l);
    l->guard_before = l->guard;
    move(l, &r);
    fill(l, &r, now);
    l->gate_refused = !guard_gate(&l->cfg.limits, l->guard.period_s, before,
                                  l->command.pos, l->command.vel);
    if (!l->gate_refused)
        return true;
    guard_reset(&l->guard, before); // the command was never made
    l->report.gate_refusals++;
    return false;
}

static void publish(struct loop *l, uint64_t tick, ns_t done, ns_t deadline,
                    ns_t lateness)
{
    static const uint64_t one = 1;
    struct command *c = &l->command;

    c->sequence = l->report.commands + 1;
    c->tick = tick;
    c->made_ns = done;
    c->margin_ns = deadline - done;
    c->lateness_ns = lateness;
    if (!ring_push(&l->board->commands, c)) {
        // Nobody will see it: the next step is from the last one sent.
        l->guard = l->guard_before;
        l->report.commands_dropped++;
        return;
    }
    l->report.commands++;
    // Full (2^64 - 2 unread wake-ups) is the only refusal, and then the bus is awake anyway.
    if (write(l->board->command_fd, &one, sizeof one) < 0)
        return;
}

// ---- report ----------------------------------------------------------------------------------

static void count_tick(struct loop *l, uint64_t tick, ns_t now)
{
    l->report.ticks_run++;
    l->report.skipped = tick + 1 - l->report.ticks_run;
    l->report.tick = tick;
    l->last_tick = tick;
    l->last_now_ns = now;
    l->ran = true;
}

static void report(struct loop *l, ns_t now)
{
    struct loop_report *r = &l->report;
    size_t size = (size_t)l->cfg.joints * sizeof(double);

    r->now_ns = now;
    r->mode = l->state;
    r->reason = l->reason;
    r->degraded = l->degraded;
    r->wants_inference = l->live;
    r->chunk_id = l->target_rc == 0 ? l->target.newest_id : 0;
    r->chunk_anchor_ns = l->target_rc == 0 ? l->target.anchor_ns : 0;
    r->chunk_remaining = chunks_remaining(l->chunks, now);
    for (int v = 0; v < CHUNK_VERDICTS; v++)
        r->verdict[v] = chunks_count(l->chunks, (enum chunk_verdict)v);
    memcpy(r->limited, l->guard.limited, sizeof r->limited);
    if (l->state == LADDER_RUNNING && l->target_rc == 0)
        r->seam_max_rad = fmax(r->seam_max_rad, l->target.seam);
    memcpy(r->pos, l->guard.pos, size);
    memcpy(r->measured, l->joints.pos, size);
    slot_write(&l->board->report, r);
}

void loop_tick(struct loop *l, uint64_t tick, ns_t now_ns, ns_t lateness_ns,
               ns_t (*clock)(void))
{
    ns_t deadline = now_ns - lateness_ns + l->period_ns; // when the next tick is due

    take_inputs(l, now_ns);
    decide(l, tick, now_ns);
    if (make_command(l, now_ns))
        publish(l, tick, clock(), deadline, lateness_ns);
    count_tick(l, tick, now_ns);
    report(l, now_ns);
    hist_add(&l->board->lateness, lateness_ns);
    hist_add(&l->board->tick_time, clock() - now_ns);
}

const struct loop_report *loop_last(const struct loop *l)
{
    return &l->report;
}
