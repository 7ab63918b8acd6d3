// explain: why the arm does what it does, in a sentence for the person in front of it: which
// joint, which stream, what to do. The ladder knows a reason, this knows the robot. Class plain.
#ifndef ACTD_EXPLAIN_H
#define ACTD_EXPLAIN_H

#include <stddef.h>

#include "daemon/board.h"
#include "daemon/bus.h"
#include "daemon/config.h"
#include "daemon/infer.h"

struct explain_source {
    const struct config *cfg;
    struct board *board;
    const struct infer *infer;
    const struct bus *bus;         // NULL = unknown
    struct camera *const *cameras; // (cfg->n_cameras); NULL = unknown
    // Received per second over the last second: joints first, then the cameras; 0 = unknown,
    // also while a stream has not been there for a whole one (status_received_hz).
    double received_hz[POLICY_MAX_CAMERAS + 1];
};

// plain. The cause behind `reason`. index and value as in struct loop_event; -1 and 0, for a
// state that waits and has no event: as things are now. text is empty when there is nothing to
// add to the reason's name.
void explain_reason(const struct explain_source *src, const struct loop_report *now,
                    enum ladder_reason reason, int index, double value, char *text,
                    size_t size);

// plain. One line for a step of the ladder: "RUNNING -> HOLD (JOINTS_STALE): …". What was
// behind it is told as it was in its tick, however much later this is asked.
void explain_event(const struct explain_source *src, const struct loop_report *now,
                   const struct loop_event *event, char *text, size_t size);

// plain. What became of one of the requests that the loop has answered: what it does now, or what
// stood in the way, with the remedy. True when it is as asked.
bool explain_answer(const struct explain_source *src, const struct loop_report *now,
                    const struct loop_answer *answer, enum board_request request,
                    char *text, size_t size);

#endif
