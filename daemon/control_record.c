// Verbs about recordings. The recorder answers at once: what the disk makes of it shows in the
// status.
#include <errno.h>

#include "daemon/control_impl.h"
#include "daemon/recorder.h"

#define OK      ACTD__V1__RESULT__RESULT_OK
#define REFUSED ACTD__V1__RESULT__RESULT_REFUSED

// From a start until there is a tape to write a mark on: its memory is touched first, 0.1 s. A
// script that says `record start` and `record mark` waits for that, and no other session does.
#define BEGIN_NS (500 * NS_PER_MS)
#define LOOK_NS  (5 * NS_PER_MS)

static void answer(struct control *c, struct control_session *s, ns_t now, int rc,
                   const char *text)
{
    control_audit(c, s, now, rc == 0 ? OK : REFUSED, text);
}

static void start(struct control *c, struct control_session *s, ns_t now)
{
    char text[256] = "";
    int rc = recorder_begin(c->src.recorder, text);

    if (rc == 0)
        c->record_until_ns = now + BEGIN_NS;
    answer(c, s, now, rc, text);
}

static void stop(struct control *c, struct control_session *s, ns_t now)
{
    char text[256] = "";
    int rc = recorder_end(c->src.recorder, text);

    c->record_until_ns = 0;
    answer(c, s, now, rc, text);
}

void control_mark_look(struct control *c, struct control_session *s, ns_t now)
{
    char text[256] = "";
    int rc = recorder_mark(c->src.recorder, s->asked.text, text);

    if (rc == -EALREADY && now < c->record_until_ns) {
        s->waits = CONTROL_WAITS_MARK;
        s->look_ns = now + LOOK_NS;
    } else {
        answer(c, s, now, rc, text);
    }
}

void control_record(struct control *c, struct control_session *s, ns_t now)
{
    if (!c->src.recorder)
        control_audit(c, s, now, REFUSED,
                      "this actd has no recorder: see its log, where it started");
    else if (s->asked.verb == ACTD__V1__VERB__VERB_RECORD_START)
        start(c, s, now);
    else if (s->asked.verb == ACTD__V1__VERB__VERB_RECORD_STOP)
        stop(c, s, now);
    else
        control_mark_look(c, s, now);
}
