// What was not used, by cause, and what was limited, by joint. A cause keeps its place
// in s->drop from one second to the next, so that "how many more" does not depend on its
// name, which says why the last one was.
#include <stdio.h>

#include "daemon/status_impl.h"

static void count(struct status *s, const char *name, uint64_t value, bool normal)
{
    if (s->n_causes == MAX_DROPS)
        return;
    struct status_drop *d = &s->drop[s->n_causes++];
    snprintf(d->name, sizeof d->name, "%s", name);
    d->value = value;
    d->normal = normal;
    if (value == 0)
        return;
    actd__v1__counter__init(&d->counter);
    d->counter.name = d->name;
    d->counter.value = value;
    s->drops[s->n_drops++] = &d->counter;
}

static void count_drop(struct status *s, const char *name, uint64_t value)
{
    count(s, name, value, false);
}

// With why the last one was, since "refused" alone helps nobody.
static void count_refused(struct status *s, const char *what, uint64_t value,
                          const char *why)
{
    char name[DROP_NAME];
    snprintf(name, sizeof name, "%s refused (%s)", what, why);
    count_drop(s, name, value);
}

static void count_chunks(struct status *s)
{
    char name[DROP_NAME];
    for (int v = CHUNK_USED + 1; v < CHUNK_VERDICTS; v++) {
        snprintf(name, sizeof name, "chunk %s",
                 chunk_verdict_name((enum chunk_verdict)v));
        count_drop(s, name, s->report.verdict[v]);
    }
}

static void count_camera(struct status *s, int c)
{
    const struct camera_mark *mark = &s->src.board->camera[c];
    const char *camera = s->src.cfg->camera[c].name;
    char name[CONFIG_NAME + 20], why[CODEC_WHY_MAX];
    snprintf(name, sizeof name, "%s frames", camera);
    camera_last_refusal_text(s->src.cameras[c], why);
    count_refused(s, name, mark->refused, why);
    snprintf(name, sizeof name, "%s frames corrupt", camera);
    count_drop(s, name, mark->corrupt);
    snprintf(name, sizeof name, "%s frames duplicate", camera);
    count_drop(s, name, mark->duplicate);
    snprintf(name, sizeof name, "%s frames out of order", camera);
    count_drop(s, name, mark->out_of_order);
    snprintf(name, sizeof name, "%s frames 50 ms late, or the sender's clock moved",
             camera);
    count_drop(s, name, mark->clock_jumps);
    snprintf(name, sizeof name, "%s frames superseded", camera);
    count(s, name, camera_superseded(s->src.cameras[c]), true);
}

static void count_inference(struct status *s)
{
    const struct infer_counts *i = infer_counts(s->src.infer);
    char why[INFER_FAILURE_MAX], name[INFER_FAILURE_MAX + 32];
    count_drop(s, "inference without frame", i->no_frame);
    count_drop(s, "inference cameras too far apart", i->skew);
    count_drop(s, "inference without joint state", i->no_joints);
    infer_last_failure(s->src.infer, why);
    snprintf(name, sizeof name, "inference failed (%s)", why);
    count_drop(s, name, i->failed);
    count_drop(s, "chunk ring full", i->ring_full);
}

static void count_limited(struct status *s)
{
    static const char *const word[GUARD_LIMITS] = {"none", "position", "velocity",
                                                   "acceleration", "jerk"};
    struct status_limited *m = s->limit;
    for (int j = 0; j < s->src.cfg->n_joints; j++) {
        for (int l = GUARD_NONE + 1; l < GUARD_LIMITS; l++) {
            uint64_t value = s->report.limited[j][l];
            if (value == 0)
                continue;
            snprintf(m->name, sizeof m->name, "%s:%s", s->src.cfg->joint[j].name,
                     word[l]);
            actd__v1__counter__init(&m->counter);
            m->counter.name = m->name;
            m->counter.value = value;
            s->limited[s->n_limited++] = &m++->counter;
            s->limited_total += value;
        }
    }
}

void status_count(struct status *s)
{
    const struct board *b = s->src.board;
    struct bus_counts bus = bus_counts(s->src.bus);
    s->n_causes = s->n_drops = s->n_limited = 0;
    s->limited_total = 0;
    count_chunks(s);
    count_refused(s, "joint states", b->joint_mark.refused, bus.joints_refusal_text);
    count_drop(s, "joint states duplicate", b->joint_mark.duplicate);
    count_drop(s, "joint states out of order", b->joint_mark.out_of_order);
    count_drop(s, "joint states 50 ms late, or the sender's clock moved",
               b->joint_mark.clock_jumps);
    for (int c = 0; c < b->n_cameras; c++)
        count_camera(s, c);
    count_inference(s);
    count_drop(s, "targets refused", s->report.refused_vectors);
    count_drop(s, "commands refused by the gate", s->report.gate_refusals);
    count_drop(s, "commands dropped", s->report.commands_dropped);
    count_drop(s, "commands not sent", bus.send_failed);
    count_drop(s, "sets of this machine's wall clock", bus.wall_sets);
    count_drop(s, "commands superseded", bus.superseded);
    count_drop(s, "commands too old to send", bus.expired);
    count_drop(s, "commands cut off by the monitor", bus.cut);
    count_drop(s, "black box not written", s->blackbox.failed);
    count_limited(s);
}
