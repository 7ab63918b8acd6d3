// What a recording keeps of a tick. All of it is what the tick has left behind: nothing is worked
// out here, and what has no value is 0, or NaN for a target that nobody wants.
// loop_record.c holds rt functions only.
#include <errno.h>
#include <math.h>
#include <string.h>

#include "daemon/loop_impl.h"

static void record_state(const struct loop *l, struct tick_record *r, bool published)
{
    r->mode = l->state;
    r->reason = l->reason;
    r->culprit = l->culprit.index;
    r->culprit_value = l->culprit.value;
    r->conditions = l->conditions;
    r->latched = l->faults.latched;
    r->active = l->faults.active;
    r->degraded = l->degraded;
    r->wants_inference = l->live;
    r->published = published;
    r->gate = (int)l->gate;
    r->sequence = published ? l->command.sequence : 0;
    r->margin_ns = l->in.made_ns != 0 ? l->command.margin_ns : 0;
}

static void record_chunk(const struct loop *l, struct tick_record *r)
{
    r->target_rc = l->target_rc;
    r->chunk_id = l->report.chunk_id;
    r->generation = l->report.generation;
    r->chunk_row = l->report.chunk_row;
    r->chunk_remaining = l->report.chunk_remaining;
    r->chunks_blended = l->report.chunk_blended;
}

static void record_joint(const struct loop *l, struct tick_joint *j, int i)
{
    // A target that was refused is what one wants to see.
    bool rows = l->target_rc == 0 || l->target_rc == -EDOM || l->target_rc == -ERANGE;
    const struct command *c = &l->command;

    j->measured = l->joints.pos[i];
    j->measured_vel = l->joints.vel[i];
    j->target = rows ? l->target.pos[i] : (double)NAN;
    j->target_vel = rows ? l->target.vel[i] : (double)NAN;
    j->seam = rows ? l->target.seam[i] : 0;
    // Where no command was made the arm is where the last one has left it.
    j->wanted = l->filled ? c->wanted[i] : l->guard.pos[i];
    j->commanded = l->filled ? c->pos[i] : l->guard.pos[i];
    j->commanded_vel = l->filled ? c->vel[i] : l->guard.vel[i];
    j->limit = l->filled ? c->limit[i] : GUARD_NONE;
}

// Zero first, padding too: equal records are equal bytes.
void loop_record(struct loop *l, bool published)
{
    struct tick_record *r = &l->record;

    memset(r, 0, tick_record_bytes(l->cfg.joints));
    memcpy(&r->in, &l->in, sizeof r->in);
    r->joints = l->cfg.joints;
    r->cameras = l->cfg.n_cameras;
    record_state(l, r, published);
    record_chunk(l, r);
    for (int i = 0; i < r->joints; i++)
        record_joint(l, &r->joint[i], i);
    (void)tape_tick(l->board->tape, r);
}
