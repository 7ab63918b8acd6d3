// Verbs about policies. A swap takes as long as it takes: whoever asked hears of every
// stage, and may go away; it goes on without him.
#include <errno.h>
#include <stdio.h>

#include "daemon/control_impl.h"

#define LOOK_NS     (20 * NS_PER_MS)
#define PUT_AWAY_NS (1 * NS_PER_S)

_Static_assert((int)SWAP_FAILED == (int)ACTD__V1__SWAP_STAGE__SWAP_STAGE_FAILED,
               "stages are those of the protocol");

// ---- a list --------------------------------------------------------------------------

void control_policies(struct control *c, struct control_session *s)
{
    Actd__V1__ControlReply m;
    int n = c->src.swap ? swap_list(c->src.swap, c->entry, CONTROL_POLICIES) : -ENOENT;

    if (n < 0) {
        control_answer(c, s, s->asked.id, ACTD__V1__RESULT__RESULT_FAILED,
                       *c->src.cfg->swap.directory
                           ? "swap.directory cannot be read: check that it is there, and "
                             "who owns it"
                           : "there is no swap.directory in the configuration: name one");
        return;
    }
    control_reply(&m, s->asked.id, ACTD__V1__RESULT__RESULT_OK);
    m.policies = c->policies;
    for (int i = 0; i < n; i++) {
        struct swap_entry *e = &c->entry[i];
        Actd__V1__PolicyEntry *p = &c->policy[i];

        if (!control_name_fits(e->name)) // nobody can ask for it; it may not be UTF-8
            continue;
        actd__v1__policy_entry__init(p);
        p->name = e->name;
        p->running = e->running;
        p->previous = e->previous;
        p->usable = e->usable;
        p->note = e->note;
        p->bytes = e->bytes;
        p->modified_s = e->modified_s;
        c->policies[m.n_policies++] = p;
    }
    control_send(c, s, &m, NULL, 0);
}

// ---- a swap --------------------------------------------------------------------------

static uint64_t positive(ns_t t)
{
    return t > 0 ? (uint64_t)t : 0;
}

static void fill(Actd__V1__SwapReport *m, struct swap_report *r)
{
    actd__v1__swap_report__init(m);
    m->number = r->number;
    m->stage = (Actd__V1__SwapStage)r->stage;
    m->from = r->from;
    m->to = r->to;
    m->from_digest = r->from_digest;
    m->to_digest = r->to_digest;
    m->load_ns = positive(r->load_ns);
    m->trial_ns = positive(r->trial_ns);
    m->commit_ns = positive(r->commit_ns);
    m->total_ns = positive(r->total_ns);
    m->trials = (uint32_t)r->trials;
    m->inference_median_ns = positive(r->inference_median_ns);
    m->inference_worst_ns = positive(r->inference_worst_ns);
    m->deadline_ns = positive(r->deadline_ns);
    m->difference_rad = r->difference_rad;
    m->difference_joint = r->difference_joint;
    m->difference_row = (uint32_t)r->difference_row;
    m->bound_rad = r->bound_rad;
    m->golden_error = r->golden_error;
    m->tick = r->tick;
}

static void report(struct control *c, struct control_session *s, struct swap_report *r)
{
    Actd__V1__ControlReply m;
    Actd__V1__SwapReport swap;

    fill(&swap, r);
    control_reply(&m, s->asked.id,
                  r->stage == SWAP_DONE     ? ACTD__V1__RESULT__RESULT_OK
                  : r->stage == SWAP_FAILED ? ACTD__V1__RESULT__RESULT_FAILED
                                            : ACTD__V1__RESULT__RESULT_PROGRESS);
    m.text = r->text;
    m.swap = &swap;
    control_send(c, s, &m, NULL, 0); // may close the session
}

// Whoever hears that a swap is over may ask for the next one at once. (A worker that hangs
// keeps the old seat for ever; then this one is told all the same.)
static bool over(struct control *c, struct control_session *s,
                 const struct swap_report *r, ns_t now)
{
    if (r->stage != SWAP_DONE && r->stage != SWAP_FAILED)
        return false;
    if (s->over_ns == 0)
        s->over_ns = now;
    return !swap_busy(c->src.swap) || now - s->over_ns > PUT_AWAY_NS;
}

void control_swap_look(struct control *c, struct control_session *s, ns_t now)
{
    struct swap_report r;

    s->look_ns = now + LOOK_NS;
    if (!swap_look(c->src.swap, s->number, &r)) { // eight others since: we slept long
        s->waits = CONTROL_READY;
        s->heard_ns = now;
        control_answer(c, s, s->asked.id, ACTD__V1__RESULT__RESULT_FAILED,
                       "what became of this swap is forgotten; see the log");
        return;
    }
    if (over(c, s, &r, now)) {
        s->waits = CONTROL_READY;
        s->heard_ns = now;
    } else if (r.stage == s->stage || s->over_ns != 0) {
        return;
    }
    s->stage = r.stage;
    report(c, s, &r);
}

void control_swap(struct control *c, struct control_session *s, ns_t now)
{
    struct swap_request r = {.back = s->asked.verb == ACTD__V1__VERB__VERB_SWAP_BACK,
                             .force = s->asked.force,
                             .allow = s->asked.allow,
                             .uid = s->peer.uid,
                             .pid = s->peer.pid};
    int rc;

    if (!c->src.swap) {
        control_audit(c, s, now, ACTD__V1__RESULT__RESULT_REFUSED,
                      "this actd has no policy that could be swapped");
        return;
    }
    snprintf(r.name, sizeof r.name, "%s", s->asked.name);
    rc = swap_begin(c->src.swap, &r, &s->number, c->text, sizeof c->text);
    if (rc != 0) {
        control_audit(c, s, now,
                      rc == -EBUSY ? ACTD__V1__RESULT__RESULT_BUSY
                                   : ACTD__V1__RESULT__RESULT_REFUSED,
                      c->text);
        return;
    }
    s->waits = CONTROL_WAITS_SWAP;
    s->stage = 0;
    s->over_ns = 0;
    control_swap_look(c, s, now);
}
