// explain_latch: what is remembered of a stop, so that it is told the same as long as the arm
// stays latched: which stream was silent and for how long in that moment, and who asked for it.
// Among plain threads only: the loop knows reasons and no sentences.
#ifndef ACTD_EXPLAIN_LATCH_H
#define ACTD_EXPLAIN_LATCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "daemon/board.h"
#include "daemon/explain.h"

#define EXPLAIN_LATCH_TEXT 320

// Who has asked the arm to stop, through the control socket.
struct explain_asker {
    char name[32]; // of the user, "" = unknown
    uid_t uid;
    pid_t pid;
    time_t at;
};

struct explain_latch {
    pthread_mutex_t mutex; // of what follows
    uint64_t event;        // the step of the ladder that text is of, from 1; 0 = none
    char text[EXPLAIN_LATCH_TEXT];
    struct explain_ask {
        struct explain_asker who;
        uint64_t after; // the tick that the loop had reported; UINT64_MAX = nobody asked
    } stop, estop;
};

// plain. 0 or -errno. The owner puts it where everybody finds it: board.latch.
int explain_latch_init(struct explain_latch *latch);
void explain_latch_free(struct explain_latch *latch);

// plain. Say it before the request is made (BOARD_STOP or BOARD_ESTOP), `tick` being the newest
// that the loop has reported: a step after it is taken for this one's. NULL is fine.
void explain_latch_asked(struct explain_latch *latch, enum board_request request,
                         const struct explain_asker *who, uint64_t tick);

// plain. The cause behind a latched stop as it was when it latched, in the words of whoever looked
// first. False when the arm is not latched, or its step is forgotten: text is left alone.
bool explain_latched(const struct explain_source *src, const struct loop_report *now,
                     char *text, size_t size);

// plain. The cause behind a step to STOPPING, STOPPED or ESTOP: the same words while the arm is
// latched by it, and also who asked for one that has been reset meanwhile.
void explain_latching(const struct explain_source *src, const struct loop_report *now,
                      const struct loop_event *event, char *text, size_t size);

#endif
