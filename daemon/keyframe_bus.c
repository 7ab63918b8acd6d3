// The bus's part of a keyframe, made in place on the tape: some 90 KiB, nearly all of it the
// history of joint samples.
#include <string.h>

#include "daemon/keyframe_bus_impl.h"

#define KEEP(from) atomic_load_explicit(&(from), memory_order_relaxed)

static void keep_pace(struct keyframe_pace *k, const struct pace *p)
{
    k->count = p->count;
    memcpy(k->at_ns, p->at_ns, sizeof k->at_ns);
}

static void keep_joints(struct keyframe_joints *k, const struct intake *in)
{
    const struct joints_mark *m = &in->board->joint_mark;

    k->stamp = in->stamp;
    keep_pace(&k->pace, &in->pace);
    k->history = in->history;
    k->elsewhere = in->elsewhere;
    k->in_a_row = in->in_a_row;
    k->alone = in->alone;
    k->agreed = in->agreed;
    k->verdict = KEEP(in->verdict);
    k->received = KEEP(m->received);
    k->refused = KEEP(m->refused);
    k->duplicate = KEEP(m->duplicate);
    k->out_of_order = KEEP(m->out_of_order);
    k->clock_jumps = KEEP(m->clock_jumps);
    k->refused_in_a_row = KEEP(m->refused_in_a_row);
    k->refused_for = KEEP(m->refused_for);
    k->refused_joint = KEEP(m->refused_joint);
    k->refused_value = KEEP(m->refused_value);
    k->slow = KEEP(m->slow);
}

static void keep_mark(struct keyframe_camera *k, const struct camera_mark *m)
{
    k->capture_ns = KEEP(m->capture_ns);
    k->received_ns = KEEP(m->received_ns);
    k->changed_ns = KEEP(m->changed_ns);
    k->received = KEEP(m->received);
    k->refused = KEEP(m->refused);
    k->corrupt = KEEP(m->corrupt);
    k->duplicate = KEEP(m->duplicate);
    k->out_of_order = KEEP(m->out_of_order);
    k->clock_jumps = KEEP(m->clock_jumps);
    k->same = KEEP(m->same);
    k->corrupt_in_a_row = KEEP(m->corrupt_in_a_row);
    k->refused_in_a_row = KEEP(m->refused_in_a_row);
    k->same_in_a_row = KEEP(m->same_in_a_row);
    k->slow = KEEP(m->slow);
}

static void keep_camera(struct keyframe_camera *k, const struct camera *c)
{
    k->stamp = c->stamp;
    k->content = c->content;
    keep_pace(&k->pace, &c->pace);
    k->passed_over = c->passed_over;
    k->superseded = KEEP(c->superseded);
    k->last_refusal = KEEP(c->last_refusal);
    keep_mark(k, c->mark);
}

void keyframe_bus_fill(struct keyframe_bus *k, const struct intake *in,
                       struct camera *const *cameras, int n, ns_t now)
{
    size_t size = keyframe_bus_size(n);

    memset(k, 0, size);
    k->head = (struct keyframe_head){.magic = KEYFRAME_MAGIC,
                                     .kind = KEYFRAME_BUS,
                                     .at_ns = now,
                                     .joints = (uint32_t)in->cfg.joints,
                                     .cameras = (uint32_t)n,
                                     .bytes = size};
    keep_joints(&k->joints, in);
    for (int i = 0; i < n; i++)
        keep_camera(&k->camera[i], cameras[i]);
}

void keyframe_bus(struct intake *in, struct camera *const *cameras, int n, struct tape *t,
                  ns_t now)
{
    struct keyframe_bus *k;

    if (!tape_on(t) || !tape_bus_state_due(t))
        return;
    k = tape_reserve(t, TAPE_BUS, TAPE_BUS_STATE, now, keyframe_bus_size(n));
    if (!k)
        return; // counted; the recorder asks again
    keyframe_bus_fill(k, in, cameras, n, now);
    k->head.build = keyframe_build();
    k->head.number = t->inputs;
    tape_commit(t, TAPE_BUS);
}
