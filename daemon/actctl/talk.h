// talk: the client's side of the control socket: one question, its answer, within a time.
// Every answer is bounded (256 KiB), parsed and its id looked at before anybody sees it.
// plain.
#ifndef ACTD_ACTCTL_TALK_H
#define ACTD_ACTCTL_TALK_H

#include <stddef.h>
#include <stdint.h>

#include "actd/v1/control.pb-c.h"
#include "daemon/actctl/find.h"

#define TALK_REQUEST    4096
#define TALK_REPLY      (256 * 1024)
#define TALK_TIMEOUT_MS 2000
#define TALK_WHY        FIND_WHY

struct talk {
    int fd; // -1 = not connected
    uint64_t id;
    char path[FIND_PATH];
    uint8_t *reply; // (TALK_REPLY + 1)
};

// All return 0, or an enum ctl_exit with a sentence in why (TALK_WHY bytes).
// Connects within TALK_TIMEOUT_MS; given: see find_explain.
int talk_open(struct talk *t, const char *path, bool given, char *why);
// Sends q, whose id it sets, and waits for the answer: *r, to be freed by
// actd__v1__control_reply__free_unpacked(r, NULL).
int talk_ask(struct talk *t, Actd__V1__ControlRequest *q, int timeout_ms,
             Actd__V1__ControlReply **r, char *why);
// The next answer to the same question, after one with RESULT_PROGRESS.
int talk_more(struct talk *t, int timeout_ms, Actd__V1__ControlReply **r, char *why);
void talk_close(struct talk *t); // may be called again

#endif
