// What is told of a tick: to the board for telemetry, and to the black box for the day after.
#include <errno.h>
#include <math.h>
#include <string.h>

#include "daemon/blind.h"
#include "daemon/loop_impl.h"

static void report_seams(struct loop *l)
{
    struct loop_report *r = &l->report;

    if (l->state != LADDER_RUNNING || l->target_rc != 0)
        return;
    r->seam_max_rad = fmax(r->seam_max_rad, l->target.seam_max);
    for (int i = 0; i < l->cfg.joints; i++) {
        struct seam_report *s = &r->seam[i];

        if (l->target.seam[i] > s->rad) {
            s->rad = l->target.seam[i];
            s->tick = l->last_tick;
        }
        s->rad_s = fmax(s->rad_s, l->target.seam_vel[i]);
    }
}

static void report_budgets(struct loop *l)
{
    for (int i = 0; i < BOARD_BUDGETS; i++) {
        const struct budget *b = &l->budget[i];

        l->report.budget[i] = (struct budget_report){
            .limit_ns = b->limit_ns,
            .worst_ns = b->worst_ns,
            .samples = b->samples,
            .missed = b->missed,
            .worst_tick = b->worst_tick,
            .in_window = b->in_window,
            .consecutive_max = b->consecutive_max,
            .over = budget_over(b),
        };
    }
}

// The newest chunk in use. One that was refused for where it leads is in view all the same.
static void report_chunk(struct loop *l, ns_t now)
{
    struct loop_report *r = &l->report;
    const struct chunk_target *t = &l->target;
    bool in_use = l->target_rc == 0;

    r->chunk_id = in_use ? t->newest_id : 0;
    r->chunk_anchor_ns = in_use ? t->anchor_ns : 0;
    r->chunk_oldest_ns = in_use ? t->oldest_ns : 0;
    r->chunk_row = in_use ? t->row : 0;
    r->chunk_rows = in_use ? t->rows : 0;
    r->chunk_blended = in_use ? t->blended : 0;
    r->chunk_step_ns = in_use ? t->step_ns : 0;
    r->chunk_remaining = chunks_remaining(l->chunks, now);
    for (int v = 0; v < CHUNK_VERDICTS; v++)
        r->verdict[v] = chunks_count(l->chunks, (enum chunk_verdict)v);
    if (t->generation != r->generation && (in_use || l->target_rc == -ERANGE)) {
        r->generation = t->generation;
        r->generation_tick = l->last_tick;
    }
}

static void report_joints(struct loop *l, bool published)
{
    struct loop_report *r = &l->report;
    size_t size = (size_t)l->cfg.joints * sizeof(double);

    memcpy(r->limited, l->guard.limited, sizeof r->limited);
    memcpy(r->pos, l->guard.pos, size);
    memcpy(r->vel, l->guard.vel, size);
    memcpy(r->measured, l->joints.pos, size);
    memcpy(r->limit, l->command.limit, sizeof r->limit);
    if (!published)
        memset(r->limit, 0, sizeof r->limit);
    for (int i = 0; i < l->cfg.joints; i++)
        r->wanted[i] = l->target_rc == 0 ? l->target.pos[i] : NAN;
}

static void report(struct loop *l, ns_t now, bool published)
{
    struct loop_report *r = &l->report;

    r->now_ns = now;
    r->mode = l->state;
    r->reason = l->reason;
    r->degraded = l->degraded;
    r->wants_inference = l->live;
    report_chunk(l, now);
    report_joints(l, published);
    r->at_rest = guard_at_rest(&l->guard);
    r->stalls = l->in.stalls;
    r->faults = l->faults;
    report_seams(l);
    report_budgets(l);
    slot_write(&l->board->report, r);
}

// ---- black box -------------------------------------------------------------------------------

static void record_joints(const struct loop *l, struct blackbox_record *b)
{
    bool homing = l->state == LADDER_HOMING;
    // A target that was refused is what one wants to see.
    bool rows = !homing &&
                (l->target_rc == 0 || l->target_rc == -EDOM || l->target_rc == -ERANGE);

    for (int i = 0; i < l->cfg.joints; i++) {
        b->joint[i] = (struct blackbox_joint){
            .measured = l->joints.pos[i],
            .measured_vel = l->joints.vel[i],
            .target = rows     ? l->target.pos[i]
                      : homing ? l->cfg.home[i]
                               : NAN,
            .target_vel = rows     ? l->target.vel[i]
                          : homing ? 0
                                   : NAN,
            .commanded = l->command.pos[i],
            .commanded_vel = l->command.vel[i],
            .seam = rows ? l->target.seam[i] : 0,
            .limit = l->command.limit[i],
        };
    }
}

static void record_ages(const struct loop *l, struct blackbox_record *b, ns_t now)
{
    b->joint_number = l->joints.number;
    b->joint_age_ns = l->joints_seen ? now - l->joints.capture_ns : BLACKBOX_NO_AGE;
    for (int i = 0; i < l->cfg.n_cameras; i++) {
        ns_t at = l->in.camera[i].received_ns;

        b->camera_age_ns[i] = at != 0 ? now - at : BLACKBOX_NO_AGE;
    }
}

// What has just stopped the arm, and, for the braking, that it has come to rest. Who asked for it
// needs no evidence.
static enum ladder_reason evident(const struct loop *l)
{
    const struct loop_event *e = &l->report.event[(l->report.events - 1) % BOARD_EVENTS];
    bool stopped =
        l->report.events > 0 && e->tick == l->last_tick &&
        (e->to == LADDER_STOPPING || e->to == LADDER_STOPPED || e->to == LADDER_ESTOP);

    return stopped && e->reason != REASON_OPERATOR && !BLIND(BLIND_BLACKBOX)
               ? e->reason
               : REASON_NONE;
}

static void record(struct loop *l, ns_t now, bool published)
{
    struct blackbox_record *b = blackbox_tick(l->cfg.blackbox);

    b->tick = l->last_tick;
    b->now_ns = now;
    b->lateness_ns = l->in.lateness_ns;
    b->tick_ns = l->in.reported_ns - now;
    b->conditions = l->conditions;
    b->mode = l->state;
    b->reason = l->reason;
    b->latched = l->faults.latched;
    b->degraded = l->degraded;
    b->published = published;
    b->gate = (int)l->gate;
    b->sequence = published ? l->command.sequence : 0;
    b->target_rc = l->target_rc;
    b->chunk_id = l->command.chunk_id;
    b->chunk_row = l->command.chunk_row;
    b->blended = l->command.blended;
    record_ages(l, b, now);
    record_joints(l, b);
    blackbox_commit(l->cfg.blackbox, evident(l));
}

void loop_report_tick(struct loop *l, ns_t now, bool published)
{
    report(l, now, published);
    if (l->cfg.blackbox != NULL)
        record(l, now, published);
}
