// The command of a tick: from where, to where, within which limits, past which gate, and whether
// it left.
#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "daemon/blind.h"
#include "daemon/loop_impl.h"

// The measured pose, brought inside the limits where it rests a hair beyond one.
void loop_start_from_measured(struct loop *l)
{
    double pose[ACTD_MAX_JOINTS];

    for (int i = 0; i < l->cfg.joints; i++)
        pose[i] =
            fmin(fmax(l->joints.pos[i], l->cfg.limits.min[i]), l->cfg.limits.max[i]);
    guard_reset(&l->guard, pose);
    l->sent = l->left = l->guard;
}

// How far the arm is measured from where it is held, beyond what droop and lag explain; rad of the
// joint that is worst, negative when it is there.
static double away_by(const struct loop *l)
{
    const struct guard_limits *lim = &l->cfg.limits;
    double worst = -1;

    for (int i = 0; i < l->cfg.joints; i++) {
        double bound = fmin(LOOP_MOVED, (lim->max[i] - lim->min[i]) / 10);

        worst = fmax(worst, fabs(l->joints.pos[i] - l->guard.pos[i]) -
                                fmax(bound, l->cfg.following_error[i]));
    }
    return worst;
}

// From where a motion begins. Once armed the command goes on from where it holds the arm, without
// a step; where nothing was held yet, or the arm is somewhere else, from where it is measured.
void loop_start(struct loop *l)
{
    if (!l->armed_before || away_by(l) > 0)
        loop_start_from_measured(l);
    l->held = true;
    l->away = 0;
}

// A disarmed arm that lies somewhere else for so many samples was moved by hand. One that comes
// nearer meanwhile was late, and is not told to stop on its way.
static bool moved(struct loop *l)
{
    double by = away_by(l);

    if (l->joints.number == l->away_number)
        return false;
    l->away_number = l->joints.number;
    l->away = by > 0 ? l->away + 1 : 0;
    if (l->away == 1)
        l->away_from = by;
    if (l->away < LOOP_MOVED_SAMPLES)
        return false;
    l->away = 0;
    return by > l->away_from - LOOP_COMES_BACK;
}

// Idle: the pose that was measured first, or commanded last, until the arm was moved.
static void hold(struct loop *l)
{
    if (l->held && !moved(l))
        return;
    loop_start_from_measured(l);
    l->held = true;
    l->away = 0;
}

// A stopped arm stays where it was stopped, whatever pushes it, until somebody has opened the latch.
static bool idle(const struct loop *l)
{
    return !l->armed_before ||
           ((l->state == LADDER_WAITING || l->state == LADDER_READY) && !l->outside &&
            !l->stale);
}

const double *loop_goal(const struct loop *l)
{
    if (l->state == LADDER_HOMING)
        return l->cfg.home;
    if (l->state != LADDER_APPROACH && l->state != LADDER_RUNNING)
        return NULL;
    return l->target_rc == 0 ? l->target.pos : NULL;
}

// What the guard refuses is braked; judge_target has looked before it and made a fault of it.
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
    c->stalls = l->in.stalls;
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
    if (l->in.lost_command == l->lost)
        return;
    l->lost = l->in.lost_command;
    if (l->lost == l->report.commands)
        l->guard = l->sent = l->left;
}

// Fills l->command. False when nothing may be published in this tick.
bool loop_make_command(struct loop *l, ns_t now)
{
    struct guard_result r;

    l->gate = GATE_PASSED;
    l->filled = false;
    if (!l->joints_seen || (!l->armed_before && (l->outside || l->stale))) {
        l->held = false;
        return false;
    }
    loop_sample_output(l);
    find_lost(l);
    if (idle(l))
        hold(l);
    move(l, &r);
    fill(l, &r, now);
    l->filled = true;
    return pass_gate(l);
}

// True when it is on its way.
bool loop_publish(struct loop *l)
{
    static const uint64_t one = 1;
    const struct tick_inputs *in = &l->in;
    struct command *c = &l->command;

    c->sequence = l->report.commands + 1;
    c->tick = in->tick;
    c->made_ns = in->made_ns;
    c->margin_ns = in->now_ns - in->lateness_ns + l->period_ns - in->made_ns;
    c->lateness_ns = in->lateness_ns;
    // One at a time: of several that wait only the newest could leave, and the step to it would
    // be as long as all of theirs. The next one is from the last that was handed over.
    if (!in->room || !ring_push(&l->board->commands, c)) {
        l->guard = l->sent;
        l->report.commands_dropped++;
        return false;
    }
    l->report.commands++;
    l->left = l->sent;
    l->sent = l->guard;
    budget_add(&l->budget[BOARD_SENSOR], in->made_ns - l->joints.capture_ns, in->tick);
    // Full (2^64 - 2 unread wake-ups) is the only refusal, and then the bus is awake anyway.
    (void)!write(l->board->command_fd, &one, sizeof one);
    return true;
}
