// doctor: what on this machine hurts: actctl's view of it merged with the daemon's own
// (daemon/doctor.h says which of two counts).
#include <stdio.h>
#include <stdlib.h>

#include "daemon/actctl/ctl.h"
#include "daemon/actctl/json.h"
#include "daemon/actctl/text.h"
#include "daemon/doctor.h"

// A client tells what it was told, even by a daemon that knows more than this one.
#define MOST (2 * DOCTOR_MOST)

struct views {
    struct doctor_finding daemon[MOST], ours[DOCTOR_MOST], all[MOST + DOCTOR_MOST];
};

static enum doctor_severity severity_of(const Actd__V1__Finding *f)
{
    switch ((int)f->severity) {
    case ACTD__V1__FINDING__SEVERITY__GOOD:
        return DOCTOR_GOOD;
    case ACTD__V1__FINDING__SEVERITY__NOTE:
        return DOCTOR_NOTE;
    default: // a severity that is new to us is no reason to look away
        return DOCTOR_HURTS;
    }
}

// JSON has its own way to make a text harmless.
static const char *fit(const struct ctl *c, const char *s)
{
    return c->json ? s : text_safe(s);
}

static int take(const struct ctl *c, const Actd__V1__ControlReply *r,
                struct doctor_finding *out)
{
    int n = 0;

    for (size_t i = 0; r && i < r->n_findings && n < MOST; i++, n++) {
        const Actd__V1__Finding *f = r->findings[i];
        snprintf(out[n].what, sizeof out[n].what, "%s", fit(c, f->what));
        snprintf(out[n].text, sizeof out[n].text, "%s", fit(c, f->text));
        snprintf(out[n].remedy, sizeof out[n].remedy, "%s", fit(c, f->remedy));
        out[n].severity = severity_of(f);
    }
    return n;
}

static json_t *as_json(const struct doctor_finding *f, int n)
{
    json_t *j = json_array();

    for (int i = 0; j && i < n; i++) {
        Actd__V1__Finding m;
        char what[DOCTOR_WHAT], text[DOCTOR_TEXT], remedy[DOCTOR_REMEDY];
        snprintf(what, sizeof what, "%s", f[i].what);
        snprintf(text, sizeof text, "%s", f[i].text);
        snprintf(remedy, sizeof remedy, "%s", f[i].remedy);
        actd__v1__finding__init(&m);
        m.what = what;
        m.text = text;
        m.remedy = remedy;
        m.severity = (Actd__V1__Finding__Severity)f[i].severity;
        json_array_append_new(j, json_message(&m.base));
    }
    return j;
}

// status: 0 when the daemon told its part, else why is why not.
static int show(const struct ctl *c, const struct doctor_finding *all, int n, int status,
                const char *why)
{
    enum doctor_severity worst = DOCTOR_GOOD;

    for (int i = 0; i < n; i++)
        worst = all[i].severity > worst ? all[i].severity : worst;
    if (!status && worst == DOCTOR_HURTS)
        status = CTL_REFUSED;
    if (c->json) {
        json_t *j = json_object();
        json_object_set_new(j, "result", json_string(*why ? ctl_name(status) : "OK"));
        json_object_set_new(j, "exit_status", json_integer(status));
        json_object_set_new(j, "text", json_text(why));
        json_object_set_new(j, "findings", as_json(all, n));
        json_put(stdout, j);
    } else {
        doctor_print(all, n, stdout);
    }
    fflush(stdout);
    if (*why)
        fprintf(stderr, "actctl: this machine alone, without what the daemon sees: %s\n",
                text_safe(why));
    return status;
}

int doctor_main(struct ctl *c)
{
    Actd__V1__ControlRequest q = ctl_question(ACTD__V1__VERB__VERB_DOCTOR);
    Actd__V1__ControlReply *r;
    struct views *v = calloc(1, sizeof *v);
    char why[TALK_WHY] = "";
    int status, n;

    if (!v)
        return ctl_fail(c, CTL_REFUSED, "out of memory");
    status = ctl_try(c, &q, &r, why);
    if (!status && (status = ctl_status(c, r)) != CTL_OK)
        snprintf(why, sizeof why, "%s", ctl_sentence(r));
    if (status == CTL_USAGE) {
        status = ctl_fail(c, status, why);
    } else {
        n = doctor_look(NULL, NULL, v->ours, DOCTOR_MOST);
        n = doctor_merge(v->daemon, take(c, r, v->daemon), v->ours, n, v->all,
                         MOST + DOCTOR_MOST);
        status = show(c, v->all, n, status, why);
    }
    ctl_free(r);
    free(v);
    return status;
}
