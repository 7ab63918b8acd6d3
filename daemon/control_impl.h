// control_impl: what the parts of control share.
//
//   control.c         the thread: sleeps, turns, ends
//   control_admit.c   who is let in
//   control_session.c packets in and out, one session at a time
//   control_read.c    verbs that only read
//   control_act.c     verbs that the loop answers
//   control_swap.c    verbs about policies
//   control_record.c  verbs about recordings
//
// All functions are plain and run on the control thread, or on a test's with a time of
// its own.
#ifndef ACTD_CONTROL_IMPL_H
#define ACTD_CONTROL_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "actd/v1/control.pb-c.h"
#include "daemon/access.h"
#include "daemon/bucket.h"
#include "daemon/control.h"
#include "daemon/control_endpoint.h"
#include "daemon/control_request.h"
#include "daemon/doctor.h"
#include "daemon/log.h"
#include "daemon/metrics.h"
#include "daemon/status.h"
#include "daemon/swap.h"

#define CONTROL_POLICIES 256
#define CONTROL_WORDS    1800 // bytes of a reply's text

enum control_wait {
    CONTROL_READY,
    CONTROL_WAITS_LOOP,
    CONTROL_WAITS_SWAP,
    CONTROL_WAITS_MARK
};

struct control_session {
    int fd; // < 0 = free
    struct access_peer peer;
    enum access_right right;
    ns_t heard_ns;                // last request, else when it was let in
    ns_t deaf_ns;                 // not listened to before
    enum control_wait waits;      // for whom; it is not listened to meanwhile
    struct control_request asked; // what it waits for
    uint64_t number;              // of the swap, or of the loop's last answer before
    uint32_t bit;                 // board_request
    ns_t until_ns, look_ns;       // until when it waits, when to look next
    bool rests;                   // its reset is not asked before the arm rests,
    ns_t rest_ns;                 // until when at most,
    uint64_t rest_latched;        // with these faults latched, and no others
    ns_t over_ns;                 // since when its swap is decided, 0 = it is not
    enum swap_stage stage;        // told last
};

struct control_say { // one kind of log line
    struct bucket bucket;
    uint64_t hidden; // since the last that was written
};

#define AUDITS 32 // verbs
struct control {
    struct control_source src;
    struct explain_source explain;
    struct access access;
    struct control_endpoint endpoint;
    int wake; // eventfd
    _Atomic bool stop;
    bool running;
    pthread_t thread;
    struct control_session session[CONTROL_SESSIONS];
    ns_t accept_ns;       // nobody is let in before
    ns_t record_until_ns; // a recording has just been started, until then
    struct buckets users;
    struct bucket strangers;
    struct control_say denied, audit[AUDITS]; // a flood of one verb hides no other
    struct loop_report report;
    uint8_t packet[CONTROL_REQUEST_MAX];
    uint8_t reply[CONTROL_REPLY_MAX];
    uint8_t status[STATUS_MOST];
    char metrics[METRICS_MAX];
    char text[CONTROL_WORDS];
    struct doctor_finding finding[DOCTOR_MOST];
    struct swap_entry entry[CONTROL_POLICIES];
    Actd__V1__PolicyEntry policy[CONTROL_POLICIES];
    Actd__V1__PolicyEntry *policies[CONTROL_POLICIES];
};

// ---- control.c
int control_open(struct control **out, const struct control_source *src,
                 struct config_error *err);     // all but the thread
void control_turn(struct control *c, ns_t now); // everything that can be done now
ns_t control_next_ns(const struct control *c, ns_t now); // when to look without a packet
// Writes a line, or counts it: 20 at once, then 5 a second. Control characters are
// replaced by log_line.
void control_say(struct control_say *s, ns_t now, enum log_level level,
                 const char *format, ...) __attribute__((format(printf, 4, 5)));

// ---- control_admit.c
void control_admit(struct control *c, ns_t now);

// ---- control_session.c
extern const struct bucket_rate control_rate; // of a user's requests and connections
void control_session_turn(struct control *c, struct control_session *s, ns_t now);
void control_reply(Actd__V1__ControlReply *m, uint64_t id, Actd__V1__Result result);
// Sends, and closes the session when that fails: who does not read what he asked for has
// gone. status (n bytes, packed) becomes field 4.
void control_send(struct control *c, struct control_session *s,
                  const Actd__V1__ControlReply *m, const uint8_t *status, size_t n);
void control_answer(struct control *c, struct control_session *s, uint64_t id,
                    Actd__V1__Result result, const char *text);
// Answers its request `id` (0: whatever it has asked meanwhile), and closes.
void control_dismiss(struct control *c, struct control_session *s, uint64_t id,
                     Actd__V1__Result result, const char *text);
void control_close(struct control_session *s);

// ---- control_read.c, control_act.c, control_swap.c, control_record.c: s has asked `asked`, and may.
void control_do(struct control *c, struct control_session *s, ns_t now);
void control_act(struct control *c, struct control_session *s, ns_t now);
void control_act_look(struct control *c, struct control_session *s, ns_t now);
void control_policies(struct control *c, struct control_session *s);
void control_swap(struct control *c, struct control_session *s, ns_t now);
void control_record(struct control *c, struct control_session *s, ns_t now);
void control_mark_look(struct control *c, struct control_session *s, ns_t now);
void control_swap_look(struct control *c, struct control_session *s, ns_t now);
// Answers what it has asked, and writes down who did what, and what became of it.
void control_audit(struct control *c, struct control_session *s, ns_t now,
                   Actd__V1__Result result, const char *text);

#endif
