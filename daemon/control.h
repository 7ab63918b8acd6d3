// control: the socket over which people and programs ask actd things and tell it what to
// do (proto/actd/v1/control.proto; actctl is the other end). One thread, class plain,
// that nobody waits for: it reads the board, sets request bits that the loop takes in its
// next tick, and talks to the swap. The design is told at the head of control.c.
#ifndef ACTD_CONTROL_H
#define ACTD_CONTROL_H

#include "daemon/board.h"
#include "daemon/clock.h"
#include "daemon/config.h"
#include "daemon/explain.h"

#define CONTROL_SESSIONS  16 // at once, one of them kept for those who may act
#define CONTROL_PER_USER  4  // of one user
#define CONTROL_IDLE_NS   (10 * NS_PER_S)
#define CONTROL_ANSWER_NS (200 * NS_PER_MS) // within which the loop must have answered
#define CONTROL_REPLY_MAX (256 * 1024)

struct control;
struct doctor_self;
struct recorder;
struct status;
struct swap;

struct control_source {
    const struct config *cfg;
    struct board *board;
    struct status *status;                // NULL = none: STATUS and METRICS say so
    struct swap *swap;                    // NULL = none: nothing can be swapped or armed
    struct recorder *recorder;            // NULL = none: nothing can be recorded
    const struct explain_source *explain; // copied
    const struct doctor_self *self;       // NULL = unknown
};

// plain. Looks up the users and groups of cfg->operators, makes the socket and starts the
// thread. The runtime directory must be there and locked (bus_start does both). What src
// points to must outlive the control. 0 or -errno with err filled: names the key or the
// path, and the remedy.
int control_start(struct control **out, const struct control_source *src,
                  struct config_error *err);
// plain. Ends the thread, closes every session, removes the socket. A swap goes on. Call
// before swap and status go. NULL is fine.
void control_stop(struct control *c);

#endif
