// intake: from a message as received to a joint sample that can be believed. Form
// (codec), time (stamp), then sense: a joint that moved further since the sample before
// than any arm can is refused, and three refusals in a row are a fault that the loop sees
// on the board. Once the arm is disarmed a new place or a new clock is believed after as
// many messages that agree with one another. Class io; owns no socket and no clock, so a
// test runs it in virtual time.
//
// Two drivers on one endpoint look like an arm that leaps there and back: every second
// sample agrees with the last one accepted. So an accepted sample that stands alone
// between two refused for a jump is counted with them, and it takes two accepted in a row
// to end such a count.
#ifndef ACTD_INTAKE_H
#define ACTD_INTAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/board.h"
#include "daemon/codec.h"
#include "daemon/slot.h"

#define INTAKE_BAD_IN_A_ROW 3 // refused: a fault (the loop). Agreeing: believed, disarmed
#define INTAKE_SPEED        1.5 // times the velocity limit, and max_jump on top

struct intake_config {
    int joints;
    double velocity[ACTD_MAX_JOINTS]; // rad/s, the limits
    double max_jump;                  // rad, on top: noise, and a servo that catches up
    double rate_hz;                   // declared; 0 = not judged
};

struct intake;

// plain. names (joints) are copied; the board is the caller's. Writes board->joint_mark,
// joints and history; reads board->armed, once per message. What becomes of each message is put
// on board->tape (tape.h), if there is one. 0 or -errno.
int intake_new(struct intake **out, const struct intake_config *cfg,
               const char *const *names, struct board *board);
void intake_free(struct intake *in); // plain; NULL is fine

// io. One message of one part, received at `now`. Accepted samples go to the history;
// nothing but the counters of the mark is published yet. What becomes of a message:
//   refused        form, value, stamp far off, jump: counted, in a row, with its reason
//   duplicate      the stamp of the one before: counted, and as if it had not come
//   out of order   older than the one before: counted, and as if it had not come
//   accepted       all else; clock_jumps counts those whose stamp is 50 … 500 ms off
void intake_joints(struct intake *in, const void *data, size_t size, ns_t now);
// io. A part of a message of several, received at `now`: the message is refused, unread, at its
// first part, and counted once.
void intake_part(struct intake *in, const struct codec_part *part, ns_t now);
// io. The local wall clock was set by by_ns (wall.h): a driver on this machine follows
// it. Tells the tape, for the cameras as well: call it first.
void intake_wall_set(struct intake *in, int64_t by_ns, ns_t now);
// io. After a drain: the newest sample and the history to the board, if there is a new
// one; mark.received counts the accepted, after them.
void intake_publish(struct intake *in);

// Why the last refused one was, for status: any thread. CODEC_OK and "" when none was.
enum codec_verdict intake_last_refusal(const struct intake *in, char text[CODEC_WHY_MAX]);
// io. The codec, for camera messages and commands on the same thread.
struct codec *intake_codec(struct intake *in);

#endif
