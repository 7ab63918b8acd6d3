// The one place where the loop looks at the board: all that the outcome of a tick depends on, once,
// into one struct that can be written down. loop_inputs.c holds rt functions only.
#include <math.h>
#include <string.h>

#include "daemon/blind.h"
#include "daemon/loop_impl.h"

static void take_joints(struct loop *l)
{
    struct joint_sample s;

    // A read that lost three races against the writer keeps the sample before.
    if (slot_read(&l->board->joints, &s) == 0 || s.n != l->cfg.joints)
        return;
    for (int i = 0; i < s.n; i++)
        if (!isfinite(s.pos[i]))
            return; // the codec refuses these; an arm is not moved on trust
    l->in.joint_sample_new = !l->joints_seen || s.number != l->joints.number;
    l->joints = s;
    l->joints_seen = true;
}

static void sample_joints(struct loop *l)
{
    const struct joints_mark *m = &l->board->joint_mark;
    struct tick_inputs *in = &l->in;

    take_joints(l);
    in->joint_sample = l->joints_seen ? l->joints.number : 0;
    in->joints_refused_in_a_row =
        atomic_load_explicit(&m->refused_in_a_row, memory_order_acquire);
    in->joints_refused_for = atomic_load_explicit(&m->refused_for, memory_order_relaxed);
    in->joints_refused_joint =
        atomic_load_explicit(&m->refused_joint, memory_order_relaxed);
    in->joints_refused_value =
        atomic_load_explicit(&m->refused_value, memory_order_relaxed);
    in->joints_slow = atomic_load_explicit(&m->slow, memory_order_relaxed);
}

static void sample_camera(struct tick_camera *c, const struct camera_mark *m)
{
    c->received_ns = atomic_load_explicit(&m->received_ns, memory_order_acquire);
    c->changed_ns = atomic_load_explicit(&m->changed_ns, memory_order_relaxed);
    c->corrupt_in_a_row =
        atomic_load_explicit(&m->corrupt_in_a_row, memory_order_relaxed);
    c->refused_in_a_row =
        atomic_load_explicit(&m->refused_in_a_row, memory_order_relaxed);
    c->same_in_a_row = atomic_load_explicit(&m->same_in_a_row, memory_order_relaxed);
    c->slow = atomic_load_explicit(&m->slow, memory_order_relaxed);
}

static void judge_chunk(struct loop *l, enum chunk_verdict v, ns_t latency_ns)
{
    if (v == CHUNK_USED)
        memset(l->bad_chunks, 0, sizeof l->bad_chunks);
    else
        l->bad_chunks[v]++;
    if (v == CHUNK_USED || v == CHUNK_LATE)
        budget_add(&l->budget[BOARD_CHUNK], latency_ns, l->in.tick);
    l->report.chunks_seen++;
}

static void take_chunks(struct loop *l)
{
    const struct chunk *c;
    ns_t now = l->in.now_ns;

    l->in.chunks_before = l->report.chunks_seen;
    while ((c = ring_peek(&l->board->chunks)) != NULL) {
        judge_chunk(l, chunks_push(l->chunks, c, now), now - c->anchor_ns);
        ring_release(&l->board->chunks);
        l->in.chunks_taken++;
    }
}

static void sample_policy(struct tick_inputs *in, const struct board *b)
{
    in->policy_failures = atomic_load_explicit(&b->policy_failures, memory_order_relaxed);
    in->inferring =
        atomic_load_explicit(&b->inferring_since_ns, memory_order_relaxed) != 0;
    in->starved = atomic_load_explicit(&b->starved, memory_order_relaxed);
    in->started = atomic_load_explicit(&b->started, memory_order_acquire);
}

// All zero first, padding too: equal inputs are equal bytes.
void loop_inputs(struct loop *l, uint64_t tick, ns_t now, ns_t lateness)
{
    struct board *b = l->board;
    struct tick_inputs *in = &l->in;

    memset(in, 0, sizeof *in);
    in->tick = tick;
    in->now_ns = now;
    in->lateness_ns = lateness;
    in->last_work_ns = l->last_work_ns;
    if (l->last_work_ns >= 0)
        budget_add(&l->budget[BOARD_TICK], l->last_work_ns, l->last_tick);
    sample_joints(l);
    take_chunks(l);
    in->requests = atomic_exchange_explicit(&b->requests, 0, memory_order_acq_rel);
    in->stalls = atomic_load_explicit(&b->stalls, memory_order_acquire);
    for (int i = 0; i < l->cfg.n_cameras; i++)
        sample_camera(&in->camera[i], &b->camera[i]);
    sample_policy(in, b);
    in->lost_command = l->lost;
}

void loop_sample_output(struct loop *l)
{
    l->in.room = ring_empty(&l->board->commands) || BLIND(BLIND_OUTBOX_NEWEST);
    l->in.lost_command =
        atomic_load_explicit(&l->board->lost_command, memory_order_acquire);
}
