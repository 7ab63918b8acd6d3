// Verbs that only read, and the table of all others.
#include <stdio.h>

#include "daemon/control_impl.h"

static void unsupported(struct control *c, struct control_session *s, const char *text)
{
    control_answer(c, s, s->asked.id, ACTD__V1__RESULT__RESULT_UNSUPPORTED, text);
}

static size_t pack(struct control *c, struct control_session *s)
{
    size_t n =
        c->src.status ? status_pack(c->src.status, c->status, sizeof c->status) : 0;

    if (n == 0)
        control_answer(c, s, s->asked.id, ACTD__V1__RESULT__RESULT_FAILED,
                       "there is no status now");
    return n;
}

static void status(struct control *c, struct control_session *s)
{
    Actd__V1__ControlReply m;
    size_t n = pack(c, s);

    if (n == 0)
        return;
    control_reply(&m, s->asked.id, ACTD__V1__RESULT__RESULT_OK);
    control_send(c, s, &m, c->status, n);
}

static void metrics(struct control *c, struct control_session *s)
{
    Actd__V1__ControlReply m;
    size_t n = pack(c, s);

    if (n == 0)
        return;
    if (metrics_write_packed(c->status, n, c->metrics, sizeof c->metrics) == 0) {
        control_answer(c, s, s->asked.id, ACTD__V1__RESULT__RESULT_FAILED,
                       "the metrics are longer than a reply may be");
        return;
    }
    control_reply(&m, s->asked.id, ACTD__V1__RESULT__RESULT_OK);
    m.metrics = c->metrics;
    control_send(c, s, &m, NULL, 0);
}

static void findings(struct control *c, struct control_session *s)
{
    Actd__V1__ControlReply m;
    Actd__V1__Finding finding[DOCTOR_MOST], *list[DOCTOR_MOST];
    int n = doctor_look(c->src.cfg, c->src.self, c->finding, DOCTOR_MOST);

    for (int i = 0; i < n; i++) {
        actd__v1__finding__init(&finding[i]);
        finding[i].what = c->finding[i].what;
        finding[i].severity = (Actd__V1__Finding__Severity)c->finding[i].severity;
        finding[i].text = c->finding[i].text;
        finding[i].remedy = c->finding[i].remedy;
        list[i] = &finding[i];
    }
    control_reply(&m, s->asked.id, ACTD__V1__RESULT__RESULT_OK);
    m.findings = list;
    m.n_findings = (size_t)(n > 0 ? n : 0);
    control_send(c, s, &m, NULL, 0);
}

void control_do(struct control *c, struct control_session *s, ns_t now)
{
    switch (s->asked.verb) {
    case ACTD__V1__VERB__VERB_STATUS:
        status(c, s);
        return;
    case ACTD__V1__VERB__VERB_METRICS:
        metrics(c, s);
        return;
    case ACTD__V1__VERB__VERB_DOCTOR:
        findings(c, s);
        return;
    case ACTD__V1__VERB__VERB_POLICIES:
        control_policies(c, s);
        return;
    case ACTD__V1__VERB__VERB_SWAP:
    case ACTD__V1__VERB__VERB_SWAP_BACK:
        control_swap(c, s, now);
        return;
    case ACTD__V1__VERB__VERB_INSTRUCT: // an ACT policy was trained for one task
        unsupported(c, s, "not supported by this policy");
        return;
    case ACTD__V1__VERB__VERB_RECORD_START:
    case ACTD__V1__VERB__VERB_RECORD_STOP:
    case ACTD__V1__VERB__VERB_RECORD_MARK:
        control_record(c, s, now);
        return;
    default:
        control_act(c, s, now);
    }
}
