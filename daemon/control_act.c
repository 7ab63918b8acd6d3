// Verbs that the loop answers: a bit is set, the loop takes it in its next tick and says
// in its report what came of it.
#include "daemon/arming.h"
#include "daemon/control_impl.h"

#define LOOK_NS NS_PER_MS // between looks for the answer
// Bits that are taken back when the loop does not answer: an arm that starts to move
// after its user was told that it does not is the worst of both.
#define STARTS (BOARD_ARM | BOARD_RESET | BOARD_HOME)

#define OK      ACTD__V1__RESULT__RESULT_OK
#define REFUSED ACTD__V1__RESULT__RESULT_REFUSED
#define FAILED  ACTD__V1__RESULT__RESULT_FAILED

void control_audit(struct control *c, struct control_session *s, ns_t now,
                   Actd__V1__Result result, const char *text)
{
    control_say(&c->audit, now, result == OK ? LOG_INFO : LOG_WARN,
                "%s by user %u (process %d): %s%s", control_verb_name(s->asked.verb),
                s->peer.uid, (int)s->peer.pid, result == OK ? "" : "not done: ", text);
    s->waits = CONTROL_READY;
    s->heard_ns = now;
    control_answer(c, s, s->asked.id, result, text);
}

// The newest report; false when the loop has not made any, or is too fast for us.
static bool read_report(struct control *c)
{
    for (int i = 0; i < 3; i++)
        if (slot_read(&c->src.board->report, &c->report) != 0)
            return true;
    return false;
}

// ---- asking the loop -----------------------------------------------------------------

static void conclude(struct control *c, struct control_session *s, ns_t now,
                     const struct loop_answer *a)
{
    bool done;

    if (c->src.status)
        status_received_hz(c->src.status, c->explain.received_hz);
    done = explain_answer(&c->explain, &c->report, a, (enum board_request)s->bit, c->text,
                          sizeof c->text);
    control_audit(c, s, now, done ? OK : REFUSED, c->text);
}

// As if it had been asked, and nothing had changed.
static struct loop_answer standing(const struct loop_report *r)
{
    return (struct loop_answer){
        .from = r->mode, .to = r->mode, .cause = r->reason, .index = -1};
}

static void give_up(struct control *c, struct control_session *s, ns_t now, bool known)
{
    uint32_t left = atomic_load(&c->src.board->requests);
    const struct loop_answer as_it_is = standing(&c->report);

    // Taken, and the answer was written over by one to somebody else within a
    // millisecond.
    if (known && !(left & s->bit) && c->report.answer.number > s->number) {
        conclude(c, s, now, &as_it_is);
        return;
    }
    if (s->bit & STARTS)
        atomic_fetch_and(&c->src.board->requests, ~s->bit);
    control_audit(
        c, s, now, FAILED,
        s->bit & STARTS
            ? "the loop does not answer within 200 ms: not done, and taken back; "
              "see the log, and `actctl status`"
            : "the loop does not answer within 200 ms: it does it as soon as it "
              "can; use the hardware's emergency stop, and see the log");
}

void control_act_look(struct control *c, struct control_session *s, ns_t now)
{
    bool known = read_report(c);

    if (known && c->report.answer.number > s->number &&
        (c->report.answer.requests & s->bit)) {
        conclude(c, s, now, &c->report.answer);
        return;
    }
    s->look_ns = now + LOOK_NS;
    if (now >= s->until_ns)
        give_up(c, s, now, known);
}

static void ask(struct control *c, struct control_session *s, uint32_t bit, ns_t now)
{
    s->bit = bit;
    s->number = read_report(c) ? c->report.answer.number : 0;
    atomic_fetch_or(&c->src.board->requests, bit);
    s->waits = CONTROL_WAITS_LOOP;
    s->until_ns = now + CONTROL_ANSWER_NS;
    s->look_ns = now + LOOK_NS;
}

// A pose that training never saw is refused here, and the loop is not asked: it could
// become READY meanwhile, and does not know of it.
static void arm(struct control *c, struct control_session *s, ns_t now)
{
    const struct loop_report *r = &c->report;
    bool refused;

    s->bit = BOARD_ARM;
    if (!c->src.swap || !read_report(c)) {
        control_audit(c, s, now, REFUSED,
                      "not armed: there is no policy, or no loop yet");
        return;
    }
    refused = arming_refused(c->src.cfg, swap_hold(c->src.swap), r->measured, c->text,
                             sizeof c->text);
    swap_release(c->src.swap);
    if (!refused) {
        ask(c, s, BOARD_ARM, now);
    } else if (r->mode == LADDER_READY) {
        control_audit(c, s, now, REFUSED, c->text);
    } else {
        const struct loop_answer as_it_is = standing(r);
        conclude(c, s, now, &as_it_is); // the state is the better reason
    }
}

void control_act(struct control *c, struct control_session *s, ns_t now)
{
    Actd__V1__Verb verb = s->asked.verb;
    uint32_t bit = verb == ACTD__V1__VERB__VERB_DISARM  ? BOARD_DISARM
                   : verb == ACTD__V1__VERB__VERB_STOP  ? BOARD_STOP
                   : verb == ACTD__V1__VERB__VERB_ESTOP ? BOARD_ESTOP
                   : verb == ACTD__V1__VERB__VERB_RESET ? BOARD_RESET
                                                        : BOARD_HOME;

    if (verb == ACTD__V1__VERB__VERB_ARM) {
        arm(c, s, now);
    } else {
        ask(c, s, bit, now); // first of all
        if ((bit & (BOARD_STOP | BOARD_ESTOP)) && c->src.swap)
            swap_cancel(c->src.swap,
                        bit == BOARD_STOP ? "the arm was stopped" : "emergency stop");
    }
}
