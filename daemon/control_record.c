// Verbs about recordings. The recorder answers at once: what the disk makes of it shows in the
// status.
#include "daemon/control_impl.h"
#include "daemon/recorder.h"

void control_record(struct control *c, struct control_session *s, ns_t now)
{
    Actd__V1__Verb verb = s->asked.verb;
    char text[256] = "";
    int rc;

    if (!c->src.recorder) {
        control_audit(c, s, now, ACTD__V1__RESULT__RESULT_REFUSED,
                      "this actd has no recorder: see its log, where it started");
        return;
    }
    rc = verb == ACTD__V1__VERB__VERB_RECORD_START ? recorder_begin(c->src.recorder, text)
         : verb == ACTD__V1__VERB__VERB_RECORD_STOP
             ? recorder_end(c->src.recorder, text)
             : recorder_mark(c->src.recorder, s->asked.text, text);
    control_audit(c, s, now,
                  rc == 0 ? ACTD__V1__RESULT__RESULT_OK
                          : ACTD__V1__RESULT__RESULT_REFUSED,
                  text);
}
