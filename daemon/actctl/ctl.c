// ctl: see the header.
#include "daemon/actctl/ctl.h"

#include <stdio.h>
#include <string.h>

#include "daemon/actctl/json.h"
#include "daemon/actctl/text.h"
#include "daemon/actctl/words.h"

Actd__V1__ControlRequest ctl_question(Actd__V1__Verb verb)
{
    Actd__V1__ControlRequest q;

    actd__v1__control_request__init(&q);
    q.verb = verb;
    return q;
}

int ctl_try(struct ctl *c, Actd__V1__ControlRequest *q, Actd__V1__ControlReply **r,
            char *why)
{
    char runtime[FIND_PATH];
    struct find f;
    int status = 0;

    *r = NULL;
    if (!c->path[0]) {
        find_defaults(&f, c->socket, c->instance, runtime);
        status = find_socket(&f, c->path, why);
        c->path_given = find_given(&f);
    }
    if (!status && c->talk.fd < 0)
        status = talk_open(&c->talk, c->path, c->path_given, why);
    if (!status)
        status = talk_ask(&c->talk, q, TALK_TIMEOUT_MS, r, why);
    if (status && status != CTL_USAGE)
        talk_close(&c->talk);
    return status;
}

int ctl_ask(struct ctl *c, Actd__V1__ControlRequest *q, Actd__V1__ControlReply **r)
{
    char why[TALK_WHY];
    int status = ctl_try(c, q, r, why);

    return status ? ctl_fail(c, status, why) : 0;
}

int ctl_more(struct ctl *c, int timeout_ms, Actd__V1__ControlReply **r)
{
    char why[TALK_WHY];
    int status = talk_more(&c->talk, timeout_ms, r, why);

    return status ? ctl_fail(c, status, why) : 0;
}

void ctl_free(Actd__V1__ControlReply *r)
{
    if (r)
        actd__v1__control_reply__free_unpacked(r, NULL);
}

const char *ctl_name(int status)
{
    switch (status) {
    case CTL_USAGE:
        return "USAGE";
    case CTL_NO_DAEMON:
        return "NO_DAEMON";
    case CTL_DENIED:
        return "DENIED";
    case CTL_REFUSED:
        return "FAILED";
    case CTL_BUSY:
        return "BUSY";
    default:
        return "PROTOCOL";
    }
}

int ctl_fail(const struct ctl *c, int status, const char *why)
{
    if (c->json) {
        json_t *j = json_object();
        json_object_set_new(j, "result", json_string(ctl_name(status)));
        json_object_set_new(j, "exit_status", json_integer(status));
        json_object_set_new(j, "text", json_text(why));
        json_put(stdout, j);
    }
    fprintf(stderr, "actctl: %s\n", text_safe(why));
    return status;
}

static bool swaps(const struct ctl *c)
{
    return c->command && c->command->run == swap_main;
}

int ctl_status(const struct ctl *c, const Actd__V1__ControlReply *r)
{
    switch ((int)r->result) {
    case ACTD__V1__RESULT__RESULT_OK:
        return CTL_OK;
    case ACTD__V1__RESULT__RESULT_DENIED:
        return CTL_DENIED;
    case ACTD__V1__RESULT__RESULT_BUSY:
    case ACTD__V1__RESULT__RESULT_RATE_LIMITED:
        return CTL_BUSY;
    case ACTD__V1__RESULT__RESULT_REFUSED:
    case ACTD__V1__RESULT__RESULT_FAILED:
        return swaps(c) ? CTL_CANDIDATE : CTL_REFUSED;
    case ACTD__V1__RESULT__RESULT_UNSUPPORTED:
        return CTL_REFUSED;
    default: // INVALID; one that this version does not know
        return CTL_PROTOCOL;
    }
}

// What to say of a result that came without a sentence.
static const char *stock(Actd__V1__Result result)
{
    switch ((int)result) {
    case ACTD__V1__RESULT__RESULT_REFUSED:
        return "refused in this state: see actctl status";
    case ACTD__V1__RESULT__RESULT_DENIED:
        return "not for this user: see the section operators of the daemon's configuration";
    case ACTD__V1__RESULT__RESULT_BUSY:
        return "busy: a swap is in progress or every session is taken; try again";
    case ACTD__V1__RESULT__RESULT_RATE_LIMITED:
        return "asked too often: wait a second";
    case ACTD__V1__RESULT__RESULT_UNSUPPORTED:
        return "not supported by this policy, or by this version of actd";
    case ACTD__V1__RESULT__RESULT_INVALID:
        return "the daemon did not understand the question: it is of another version than actctl " ACTD_VERSION;
    case ACTD__V1__RESULT__RESULT_FAILED:
        return "tried, and did not work: see the daemon's log";
    default:
        return "an answer that actctl " ACTD_VERSION
               " does not know: the daemon is of another version";
    }
}

const char *ctl_sentence(const Actd__V1__ControlReply *r)
{
    if (*r->text || r->result == ACTD__V1__RESULT__RESULT_OK)
        return r->text;
    return stock(r->result);
}

static json_t *list(size_t n, const ProtobufCMessage *const *m)
{
    json_t *j = json_array();

    for (size_t i = 0; j && i < n; i++)
        json_array_append_new(j, json_message(m[i]));
    return j;
}

static void put_part(json_t *j, const struct ctl *c, const Actd__V1__ControlReply *r)
{
    int (*run)(struct ctl *) = c->command ? c->command->run : NULL;

    if (run == status_main || run == top_main)
        json_object_set_new(j, "status",
                            r->status ? json_message(&r->status->base) : json_null());
    else if (run == swap_main)
        json_object_set_new(j, "swap",
                            r->swap ? json_message(&r->swap->base) : json_null());
    else if (run == policies_main)
        json_object_set_new(
            j, "policies",
            list(r->n_policies, (const ProtobufCMessage *const *)r->policies));
    else if (run == metrics_main)
        json_object_set_new(j, "metrics", json_text(r->metrics));
}

int ctl_tell(const struct ctl *c, const Actd__V1__ControlReply *r)
{
    int status = ctl_status(c, r);
    const char *text = ctl_sentence(r);

    if (c->json) {
        json_t *j = json_object();
        json_object_set_new(
            j, "result",
            json_string(words_enum(&actd__v1__result__descriptor, (int)r->result)));
        json_object_set_new(j, "exit_status", json_integer(status));
        json_object_set_new(j, "text", json_text(text));
        put_part(j, c, r);
        json_put(stdout, j);
    } else if (status) {
        fprintf(stderr, "actctl: %s\n", text_safe(text));
    }
    return status;
}
