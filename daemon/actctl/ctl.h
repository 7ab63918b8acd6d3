// ctl: one run of actctl: what the command line asks, the conversation, how answers and
// refusals are told. plain; one thread.
#ifndef ACTD_ACTCTL_CTL_H
#define ACTD_ACTCTL_CTL_H

#include <stdbool.h>

#include "actd/v1/control.pb-c.h"
#include "daemon/actctl/exits.h"
#include "daemon/actctl/talk.h"

#ifndef ACTD_VERSION
#define ACTD_VERSION "unknown"
#endif

struct command;

struct ctl {
    const struct command *command;
    const char *socket, *instance; // as given, NULL = not
    bool json, help, version;
    bool force, back, names;
    const char *allow;         // "joints,rate", NULL = nothing
    double hz;                 // 0 = not given
    const char *config, *bind; // of bridge, NULL = not given
    char **args;               // after the command's name
    int n_args;
    bool colour; // on standard output
    char path[FIND_PATH];
    bool path_given;  // by --socket or $ACTD_SOCKET
    struct talk talk; // fd < 0 before ctl_ask
};

// A row of the table in commands.c.
struct command {
    const char *name;
    const char *args;    // "NAME", "" for none
    const char *summary; // of --help, one line
    const char *help;    // what `--help` says after the usage line, examples included
    const char
        *options; // its own, letters: f --force, b --back, a --allow, z --hz, n --names,
                  // c --config, B --bind
    int least, most;           // arguments
    Actd__V1__Verb verb;       // where one question and one answer are all
    int (*run)(struct ctl *c); // an enum ctl_exit
};
const struct command *commands_find(const char *name); // NULL = there is none
void commands_help(const struct command *c);           // NULL: of actctl as a whole

Actd__V1__ControlRequest ctl_question(Actd__V1__Verb verb);
// Finds the socket, connects if need be, asks, waits TALK_TIMEOUT_MS. 0 and *r, to be
// freed with ctl_free, or a status after having told why.
int ctl_ask(struct ctl *c, Actd__V1__ControlRequest *q, Actd__V1__ControlReply **r);
int ctl_more(struct ctl *c, int timeout_ms, Actd__V1__ControlReply **r);
void ctl_free(Actd__V1__ControlReply *r); // NULL is fine
// The same three in one, silent: why has TALK_WHY bytes.
int ctl_try(struct ctl *c, Actd__V1__ControlRequest *q, Actd__V1__ControlReply **r,
            char *why);

// Tells why nothing came of it (standard error; with --json also an object) and returns
// status.
int ctl_fail(const struct ctl *c, int status, const char *why);
// Tells an answer: with --json the whole object; else, when its result is not OK, the
// daemon's sentence and what to do, on standard error. Returns the exit status that
// belongs to it.
int ctl_tell(const struct ctl *c, const Actd__V1__ControlReply *r);
int ctl_status(const struct ctl *c, const Actd__V1__ControlReply *r); // that status alone
const char *ctl_sentence(const Actd__V1__ControlReply *r); // its text, or one of ours
const char *ctl_name(int status); // "NO_DAEMON", for results of ours

// The commands.
int act_main(struct ctl *c); // one question, one sentence: arm, disarm, stop, …
int instruct_main(struct ctl *c);
int record_main(struct ctl *c);
int policies_main(struct ctl *c);
int bridge_main(struct ctl *c);
int metrics_main(struct ctl *c);
int status_main(struct ctl *c);
int swap_main(struct ctl *c);
int top_main(struct ctl *c);
int doctor_main(struct ctl *c);

#endif
