// A keyframe of the bus put back. Its bytes come from a file: what would be no value of its type,
// or make arithmetic overflow, is refused.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/keyframe_bus_impl.h"

#define CLOCK_MOST (INT64_C(1) << 58) // of the monotonic clock: nine years
#define WALL_MOST  (INT64_MAX / 2)    // of a stamp that the codec takes
#define SET_MOST   (WALL_MOST - 4 * CLOCK_MOST)

#define PUT(to, value) atomic_store_explicit(&(to), (value), memory_order_relaxed)

// ---- is it one? -----------------------------------------------------------------------

static bool flag(const bool *b)
{
    unsigned char byte;

    memcpy(&byte, b, 1);
    return byte <= 1;
}

static bool clock_ok(ns_t ns)
{
    return ns >= -CLOCK_MOST && ns <= CLOCK_MOST;
}

static bool wall_ok(int64_t ns)
{
    return ns >= 0 && ns <= WALL_MOST;
}

// Of the monotonic clock minus a stamp.
static bool offset_ok(int64_t ns)
{
    return ns >= -WALL_MOST && ns <= CLOCK_MOST;
}

static bool stamp_ok(const struct codec_stamp *s)
{
    const int64_t offset[] = {s->offset_ns,     s->ahead_ns,       s->low.now_ns,
                              s->low.before_ns, s->other.least_ns, s->other.most_ns};
    const int64_t wall[] = {s->stamp_wall_ns, s->ahead_wall_ns, s->other.first_wall_ns,
                            s->other.last_wall_ns};

    for (size_t i = 0; i < sizeof offset / sizeof *offset; i++)
        if (!offset_ok(offset[i]))
            return false;
    for (size_t i = 0; i < sizeof wall / sizeof *wall; i++)
        if (!wall_ok(wall[i]))
            return false;
    return clock_ok(s->last_ns) && clock_ok(s->low.since_ns) &&
           clock_ok(s->other.first_ns) && clock_ok(s->set.until_ns) &&
           s->set.by_ns >= -SET_MOST && s->set.by_ns <= SET_MOST && flag(&s->late) &&
           flag(&s->ahead);
}

static bool pace_ok(const struct keyframe_pace *p)
{
    for (int i = 0; i < PACE_SAMPLES; i++)
        if (!clock_ok(p->at_ns[i]))
            return false;
    return true;
}

static bool sample_ok(const struct joint_sample *s, int joints)
{
    return (s->n == 0 || s->n == joints) && clock_ok(s->received_ns) &&
           clock_ok(s->capture_ns);
}

static bool joints_ok(const struct keyframe_joints *k, int joints)
{
    for (int i = 0; i < BOARD_HISTORY; i++)
        if (!sample_ok(&k->history.sample[i], joints))
            return false;
    return stamp_ok(&k->stamp) && pace_ok(&k->pace) && sample_ok(&k->elsewhere, joints) &&
           k->refused_joint >= -1 && k->refused_joint < joints && k->verdict >= 0 &&
           k->verdict < CODEC_VERDICTS && k->agreed >= 0 && k->agreed < INT32_MAX / 2;
}

static bool camera_ok(const struct keyframe_camera *k)
{
    // passed_over is gone through one by one, in the next frame.
    return stamp_ok(&k->stamp) && pace_ok(&k->pace) && flag(&k->content.any) &&
           clock_ok(k->capture_ns) && clock_ok(k->received_ns) &&
           clock_ok(k->changed_ns) && k->passed_over < 1000000 && k->last_refusal >= 0 &&
           k->last_refusal < CODEC_VERDICTS;
}

static int refuse(char why[160], const char *what)
{
    snprintf(why, 160, "%s", what);
    return -EINVAL;
}

static int examine(const struct keyframe_head *h, const struct intake *in, int n,
                   size_t size, char why[160])
{
    if (h->magic != KEYFRAME_MAGIC || h->kind != KEYFRAME_BUS)
        return refuse(why, "it is no state of the bus");
    if (h->build != keyframe_build())
        return refuse(why,
                      "it was made by another build of actd: replay it with that one");
    if (h->joints != (uint32_t)in->cfg.joints || h->cameras != (uint32_t)n)
        return refuse(why, "it is of a robot with other joints or cameras");
    if (h->bytes != size || size != keyframe_bus_size(n))
        return refuse(why, "it is damaged: its size is wrong");
    return 0;
}

// ---- and back -------------------------------------------------------------------------

static void put_pace(struct pace *p, const struct keyframe_pace *k)
{
    p->count = k->count;
    memcpy(p->at_ns, k->at_ns, sizeof p->at_ns);
}

static void put_joints(struct intake *in, const struct keyframe_joints *k)
{
    struct joints_mark *m = &in->board->joint_mark;

    in->stamp = k->stamp;
    put_pace(&in->pace, &k->pace);
    in->history = k->history;
    in->elsewhere = k->elsewhere;
    in->in_a_row = k->in_a_row;
    in->alone = k->alone != 0;
    in->agreed = k->agreed;
    PUT(in->verdict, k->verdict);
    PUT(m->received, k->received);
    PUT(m->refused, k->refused);
    PUT(m->duplicate, k->duplicate);
    PUT(m->out_of_order, k->out_of_order);
    PUT(m->clock_jumps, k->clock_jumps);
    PUT(m->refused_in_a_row, k->refused_in_a_row);
    PUT(m->refused_for, k->refused_for);
    PUT(m->refused_joint, k->refused_joint);
    PUT(m->refused_value, k->refused_value);
    PUT(m->slow, k->slow != 0);
    in->published = 0; // so that the newest one goes to the board
    intake_publish(in);
}

static void put_mark(struct camera_mark *m, const struct keyframe_camera *k)
{
    PUT(m->capture_ns, k->capture_ns);
    PUT(m->received_ns, k->received_ns);
    PUT(m->changed_ns, k->changed_ns);
    PUT(m->received, k->received);
    PUT(m->refused, k->refused);
    PUT(m->corrupt, k->corrupt);
    PUT(m->duplicate, k->duplicate);
    PUT(m->out_of_order, k->out_of_order);
    PUT(m->clock_jumps, k->clock_jumps);
    PUT(m->same, k->same);
    PUT(m->corrupt_in_a_row, k->corrupt_in_a_row);
    PUT(m->refused_in_a_row, k->refused_in_a_row);
    PUT(m->same_in_a_row, k->same_in_a_row);
    PUT(m->slow, k->slow != 0);
}

static void put_camera(struct camera *c, const struct keyframe_camera *k)
{
    c->stamp = k->stamp;
    c->content = k->content;
    put_pace(&c->pace, &k->pace);
    c->passed_over = k->passed_over;
    PUT(c->superseded, k->superseded);
    PUT(c->last_refusal, k->last_refusal);
    put_mark(c->mark, k);
}

static bool sound(const struct keyframe_bus *k, const struct intake *in, int n)
{
    if (!joints_ok(&k->joints, in->cfg.joints))
        return false;
    for (int i = 0; i < n; i++)
        if (!camera_ok(&k->camera[i]))
            return false;
    return true;
}

int keyframe_bus_restore(struct intake *in, struct camera *const *cameras, int n,
                         const void *data, size_t size, char why[160])
{
    struct keyframe_head head;
    struct keyframe_bus *k; // a copy, since data may lie anywhere
    int r = 0;

    if (size < sizeof head)
        return refuse(why, "it is damaged: it ends in its head");
    memcpy(&head, data, sizeof head);
    if (examine(&head, in, n, size, why) != 0)
        return -EINVAL;
    k = malloc(size);
    if (!k) {
        snprintf(why, 160, "no memory for it: free some");
        return -ENOMEM;
    }
    memcpy(k, data, size);
    if (sound(k, in, n)) {
        put_joints(in, &k->joints);
        for (int i = 0; i < n; i++)
            put_camera(cameras[i], &k->camera[i]);
        if (in->board->tape)
            in->board->tape->inputs = head.number;
    } else {
        r = refuse(why, "it is damaged: a value in it is none");
    }
    free(k);
    return r;
}
