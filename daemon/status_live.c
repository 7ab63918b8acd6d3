// What is true now: of each joint, of the chunk in use, of the policy, and why the arm does what it
// does; and what the run as a whole was like.
#include <stdio.h>
#include <string.h>

#include "daemon/explain_latch.h"
#include "daemon/status_impl.h"

static char *text(const char *s)
{
    return (char *)(uintptr_t)s; // protobuf-c takes char * but only reads it
}

static void live_joints(struct status *s)
{
    const struct loop_report *r = &s->report;

    for (int j = 0; j < s->src.cfg->n_joints; j++) {
        const struct config_joint *c = &s->src.cfg->joint[j];
        Actd__V1__JointStatus *m = &s->joint[j];

        actd__v1__joint_status__init(m);
        m->name = text(c->name);
        m->measured = r->measured[j];
        m->commanded = r->pos[j];
        m->wanted = r->wanted[j];
        m->velocity = r->vel[j];
        m->limit = (Actd__V1__Limit)r->limit[j];
        m->min = c->min;
        m->max = c->max;
        s->joints[j] = m;
    }
}

// When execution begins the first chunk's row 0 is moved to that moment, so that its anchor does
// not tell its age; while it is alone its frames do.
static void live_chunk(struct status *s, ns_t now)
{
    const struct loop_report *r = &s->report;
    ns_t seen = r->chunk_blended == 1 ? r->chunk_oldest_ns : r->chunk_anchor_ns;
    Actd__V1__ChunkStatus *m = &s->chunk;

    actd__v1__chunk_status__init(m);
    if (r->chunk_id == 0)
        return;
    m->id = r->chunk_id;
    m->age_ns = now > seen ? (uint64_t)(now - seen) : 0;
    m->row = r->chunk_row;
    m->remaining = r->chunk_remaining;
    m->rows = (uint32_t)r->chunk_rows;
    m->blended = (uint32_t)r->chunk_blended;
    m->step_ns = (uint64_t)r->chunk_step_ns;
}

// Without a swap it is the first one for ever.
static void first_policy(const struct status *s, struct swap_policy *p)
{
    const char *directory = s->src.cfg->policy.directory;
    const char *slash = strrchr(directory, '/');
    const struct policy_info *i = s->src.policy;

    memset(p, 0, sizeof *p);
    snprintf(p->directory, sizeof p->directory, "%s", directory);
    snprintf(p->name, sizeof p->name, "%.*s", CONFIG_NAME - 1,
             slash ? slash + 1 : directory);
    p->generation = s->report.generation;
    if (i == NULL)
        return;
    snprintf(p->type, sizeof p->type, "%s", i->type);
    snprintf(p->precision, sizeof p->precision, "%s", precision_name(i->precision));
    memcpy(p->digest, i->digest, sizeof p->digest);
    memcpy(p->config_sha256, i->config_sha256, sizeof p->config_sha256);
    memcpy(p->weights_sha256, i->weights_sha256, sizeof p->weights_sha256);
    memcpy(p->statistics_sha256, i->statistics_sha256, sizeof p->statistics_sha256);
}

static void live_policy(struct status *s)
{
    struct swap_policy *p = &s->policy;
    Actd__V1__PolicyStatus *m = &s->policy_message;

    if (s->src.swap != NULL)
        swap_policy_status(s->src.swap, p);
    else
        first_policy(s, p);
    actd__v1__policy_status__init(m);
    m->name = p->name;
    m->directory = p->directory;
    m->type = p->type;
    m->digest = p->digest;
    m->config_sha256 = p->config_sha256;
    m->weights_sha256 = p->weights_sha256;
    m->statistics_sha256 = p->statistics_sha256;
    m->generation = p->generation;
    m->since_tick = p->since_tick;
    m->previous = p->previous;
    m->swaps = p->swaps;
    m->swaps_failed = p->swaps_failed;
    m->swapping_to = p->swapping_to;
    m->precision = p->precision;
}

// The step of the ladder that led here knows what was behind its reason then; where the reason is
// another by now, or a state just waits, it is looked for.
static void live_explanation(struct status *s)
{
    const struct loop_report *r = &s->report;
    const struct loop_event *e = &r->event[(r->events - 1) % BOARD_EVENTS];
    bool same = r->events > 0 && e->to == r->mode && e->reason == r->reason;
    struct explain_source src = {.cfg = s->src.cfg,
                                 .board = s->src.board,
                                 .infer = s->src.infer,
                                 .bus = s->src.bus,
                                 .cameras = s->src.cameras};

    if (s->src.explain != NULL)
        src = *s->src.explain;
    memcpy(src.received_hz, s->judged_hz, sizeof src.received_hz);
    if (!explain_latched(&src, r, s->explanation, sizeof s->explanation))
        explain_reason(&src, r, r->reason, same ? e->index : -1, same ? e->value : 0,
                       s->explanation, sizeof s->explanation);
}

void status_live(struct status *s, ns_t now)
{
    live_joints(s);
    live_chunk(s, now);
    live_policy(s);
    live_explanation(s);
}

// ---- the whole run ---------------------------------------------------------------------------

static void whole(struct status_histogram *h, const struct histogram *from, int merge)
{
    hist_detail(from, merge, &h->detail);
    status_histogram(&h->message, h->detail.summary);
    h->message.sum_ns = h->detail.sum_ns;
    h->message.n_buckets = (size_t)h->detail.n;
    h->message.buckets = h->buckets;
    for (int i = 0; i < h->detail.n; i++) {
        actd__v1__bucket__init(&h->bucket[i]);
        h->bucket[i].below_ns = h->detail.bucket[i].below_ns;
        h->bucket[i].count = h->detail.bucket[i].count;
        h->buckets[i] = &h->bucket[i];
    }
}

void status_whole(struct status *s, int merge)
{
    const struct board *b = s->src.board;

    whole(&s->whole[WHOLE_LATENESS], &b->lateness, merge);
    whole(&s->whole[WHOLE_TICK], &b->tick_time, merge);
    whole(&s->whole[WHOLE_INFERENCE], &b->inference, merge);
    whole(&s->whole[WHOLE_LATENCY], &b->chunk_latency, merge);
    whole(&s->whole[WHOLE_SENSOR_AGE], &b->sensor_age, merge);
}
