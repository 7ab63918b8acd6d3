// act: the commands of one question and one short answer.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/actctl/ctl.h"
#include "daemon/actctl/style.h"
#include "daemon/actctl/text.h"
#include "daemon/table.h"

// What has been begun, where the daemon does not say it itself.
static const char *done(Actd__V1__Verb verb)
{
    switch ((int)verb) {
    case ACTD__V1__VERB__VERB_ARM:
        return "armed: it goes slowly to where the policy wants the arm, then runs";
    case ACTD__V1__VERB__VERB_DISARM:
        return "disarming: it comes to rest";
    case ACTD__V1__VERB__VERB_STOP:
        return "stopping: it comes to rest and stays so until actctl reset";
    case ACTD__V1__VERB__VERB_ESTOP:
        return "emergency stop: it stays so until actctl reset";
    case ACTD__V1__VERB__VERB_RESET:
        return "reset: actctl arm may follow";
    case ACTD__V1__VERB__VERB_HOME:
        return "homing: it goes slowly to the rest pose";
    case ACTD__V1__VERB__VERB_RECORD_START:
        return "recording: actctl status shows the file";
    case ACTD__V1__VERB__VERB_RECORD_STOP:
        return "no longer recording, but as record.mode says";
    case ACTD__V1__VERB__VERB_RECORD_MARK:
        return "marked";
    default:
        return "done";
    }
}

static int ask_and_tell(struct ctl *c, Actd__V1__ControlRequest *q)
{
    Actd__V1__ControlReply *r;
    int status = ctl_ask(c, q, &r);

    if (status)
        return status;
    status = ctl_tell(c, r);
    if (!status && !c->json)
        printf("%s\n", r->text && *r->text ? text_safe(r->text) : done(q->verb));
    ctl_free(r);
    return status;
}

int act_main(struct ctl *c)
{
    Actd__V1__ControlRequest q = ctl_question(c->command->verb);
    return ask_and_tell(c, &q);
}

#define TEXT_MOST 1023 // bytes: what the daemon takes

// The daemon would take it for a client that does not know the protocol.
static bool one_line(const char *s)
{
    if (strlen(s) > TEXT_MOST)
        return false;
    for (const unsigned char *p = (const unsigned char *)s; *p; p++)
        if (*p < 0x20 || *p == 0x7f || (*p == 0xc2 && p[1] < 0xa0))
            return false;
    return true;
}

// What a person wrote goes as it is, or not at all.
static int send_text(struct ctl *c, Actd__V1__Verb verb, char *text)
{
    Actd__V1__ControlRequest q = ctl_question(verb);
    char *valid = text_valid(text);
    int status;

    if (!valid || strcmp(valid, text) != 0)
        status = ctl_fail(c, CTL_USAGE, "the text is not UTF-8");
    else if (!one_line(text))
        status = ctl_fail(c, CTL_USAGE,
                          "the text must be one line of at most 1023 bytes, without "
                          "control characters");
    else {
        q.text = text;
        status = ask_and_tell(c, &q);
    }
    free(valid);
    return status;
}

int instruct_main(struct ctl *c)
{
    return send_text(c, ACTD__V1__VERB__VERB_INSTRUCT, c->args[0]);
}

int record_main(struct ctl *c)
{
    bool start = strcmp(c->args[0], "start") == 0, mark = strcmp(c->args[0], "mark") == 0;
    Actd__V1__ControlRequest q = ctl_question(start ? ACTD__V1__VERB__VERB_RECORD_START
                                                    : ACTD__V1__VERB__VERB_RECORD_STOP);

    if (!start && !mark && strcmp(c->args[0], "stop") != 0)
        return ctl_fail(c, CTL_USAGE,
                        "record wants start, stop or mark: actctl record start");
    if (mark && (c->n_args < 2 || !*c->args[1]))
        return ctl_fail(c, CTL_USAGE,
                        "a mark wants its text: actctl record mark \"the cup slipped\"");
    if (!mark && c->n_args > 1)
        return ctl_fail(c, CTL_USAGE, "only a mark has a text: actctl record mark TEXT");
    return mark ? send_text(c, ACTD__V1__VERB__VERB_RECORD_MARK, c->args[1])
                : ask_and_tell(c, &q);
}

int metrics_main(struct ctl *c)
{
    Actd__V1__ControlRequest q = ctl_question(ACTD__V1__VERB__VERB_METRICS);
    Actd__V1__ControlReply *r;
    int status;
    status = ctl_ask(c, &q, &r);
    if (status)
        return status;
    status = ctl_tell(c, r);
    if (!status && !c->json)
        text_print(stdout, r->metrics);
    ctl_free(r);
    return status;
}

static const char *state_of(const Actd__V1__PolicyEntry *p)
{
    return p->running    ? "running"
           : p->previous ? "previous"
           : p->usable   ? ""
                         : "unusable";
}

static void policy_row(struct table *t, const Actd__V1__PolicyEntry *p)
{
    time_t when = (time_t)p->modified_s;
    struct tm local;
    char date[32] = "-";

    if (p->modified_s > 0 && localtime_r(&when, &local))
        strftime(date, sizeof date, "%Y-%m-%d %H:%M", &local);
    table_row(t, "%s\t%s\t%s\t%s\t%s", text_safe(p->name), state_of(p),
              p->bytes ? text_bytes(p->bytes) : "-", date, text_safe(p->note));
}

static void print_policies(const struct ctl *c, const Actd__V1__ControlReply *r)
{
    static struct table t;

    if (r->n_policies == 0) {
        printf(
            "There are no policies to swap to: see swap.directory of the configuration.\n");
        return;
    }
    table_row(&t, "POLICY\tSTATE\tWEIGHTS\tCHANGED\tNOTE");
    for (size_t i = 0; i < r->n_policies; i++) {
        if (t.n == TABLE_ROWS)
            table_print(&t, stdout);
        policy_row(&t, r->policies[i]);
    }
    table_print(&t, stdout);
    if (c->colour)
        printf("%sTo change over: actctl swap NAME%s\n", style_code(true, DIM),
               style_code(true, PLAIN));
}

int policies_main(struct ctl *c)
{
    Actd__V1__ControlRequest q = ctl_question(ACTD__V1__VERB__VERB_POLICIES);
    Actd__V1__ControlReply *r;
    int status;
    status = ctl_ask(c, &q, &r);
    if (status)
        return status;
    status = ctl_tell(c, r);
    if (!status && !c->json && !c->names)
        print_policies(c, r);
    for (size_t i = 0; !status && !c->json && c->names && i < r->n_policies; i++)
        if (r->policies[i]->usable)
            printf("%s\n", text_safe(r->policies[i]->name));
    ctl_free(r);
    return status;
}
