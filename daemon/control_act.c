// Verbs that the loop answers: a bit is set, the loop takes it in its next tick and says
// in its report what came of it.
#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "daemon/arming.h"
#include "daemon/control_impl.h"
#include "daemon/explain_latch.h"
#include "daemon/loop.h"

#define LOOK_NS NS_PER_MS // between looks for the answer
// A reset that finds the arm braking waits for its rest. With the loop's answer before and after
// it that is less than the 2 s for which actctl waits.
#define REST_NS (1500 * NS_PER_MS)
// Bits that are taken back when the loop does not answer: an arm that starts to move
// after its user was told that it does not is the worst of both.
#define STARTS (BOARD_ARM | BOARD_RESET | BOARD_HOME)

#define OK      ACTD__V1__RESULT__RESULT_OK
#define REFUSED ACTD__V1__RESULT__RESULT_REFUSED
#define FAILED  ACTD__V1__RESULT__RESULT_FAILED

void control_audit(struct control *c, struct control_session *s, ns_t now,
                   Actd__V1__Result result, const char *text)
{
    control_say(&c->audit[(unsigned)s->asked.verb % AUDITS], now,
                result == OK ? LOG_INFO : LOG_WARN, "%s by user %u (process %d): %s%s",
                control_verb_name(s->asked.verb), s->peer.uid, (int)s->peer.pid,
                result == OK ? "" : "not done: ", text);
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
    const struct loop_answer as_it_is = standing(&c->report);
    // What starts a motion is taken back, or the loop has taken it: never both.
    uint32_t left = s->bit & STARTS ? atomic_fetch_and(&c->src.board->requests, ~s->bit)
                                    : atomic_load(&c->src.board->requests);

    // Taken, and the answer was written over by one to somebody else within a
    // millisecond.
    if (known && !(left & s->bit) && c->report.answer.number > s->number) {
        conclude(c, s, now, &as_it_is);
        return;
    }
    if ((s->bit & STARTS) && !(left & s->bit)) { // in a tick that is not over yet
        control_audit(c, s, now, FAILED,
                      "the loop has taken it, and does not say within 200 ms what it "
                      "does: see `actctl status`, and the log");
        return;
    }
    control_audit(
        c, s, now, FAILED,
        s->bit & STARTS
            ? "the loop does not answer within 200 ms: not done, and taken back; "
              "see the log, and `actctl status`"
            : "the loop does not answer within 200 ms: it does it as soon as it "
              "can; use the hardware's emergency stop, and see the log");
}

static void set_bit(struct control *c, struct control_session *s)
{
    s->number = read_report(c) ? c->report.answer.number : 0;
    atomic_fetch_or(&c->src.board->requests, s->bit);
}

// What the way to READY, or to rest, was just about to end at that tick is asked again: a
// request is an edge, and the loop keeps none. True when it was, or will be.
static bool ask_again(struct control *c, struct control_session *s, ns_t now,
                      const struct loop_answer *a)
{
    bool braking = a->from == LADDER_STOPPING || a->to == LADDER_STOPPING ||
                   (a->to == LADDER_ESTOP && !c->report.at_rest);

    if (s->bit == BOARD_RESET && braking && now < s->rest_ns &&
        !loop_granted(BOARD_RESET, a->to)) {
        s->rests = true;
        s->number = a->number;
        s->rest_latched = c->report.faults.latched;
        return true;
    }
    if (!(s->bit & (BOARD_ARM | BOARD_HOME)) || (a->requests & ~s->bit) ||
        a->from == LADDER_READY || a->to != LADDER_READY || a->cause != REASON_NONE ||
        now >= s->until_ns)
        return false;
    set_bit(c, s);
    return true;
}

// Nothing is asked of the loop meanwhile. Whoever said reset knows of one stop: another request
// in between, an emergency stop say, or another fault is not for this reset to open.
static void rest_look(struct control *c, struct control_session *s, ns_t now, bool known)
{
    const struct loop_report *r = &c->report;
    bool braking =
        !known || r->mode == LADDER_STOPPING || (r->mode == LADDER_ESTOP && !r->at_rest);
    bool other = known && (r->answer.number != s->number ||
                           (r->faults.latched & ~s->rest_latched) != 0);
    struct loop_answer as_it_is = standing(r);

    if (other) {
        s->rests = false;
        conclude(c, s, now, &as_it_is);
    } else if (!braking) {
        s->rests = false;
        s->until_ns = now + CONTROL_ANSWER_NS;
        set_bit(c, s);
    } else if (now >= s->rest_ns) {
        s->rests = false;
        as_it_is.cause = REASON_NONE; // but its brakes
        conclude(c, s, now, &as_it_is);
    }
}

void control_act_look(struct control *c, struct control_session *s, ns_t now)
{
    bool known = read_report(c);
    const struct loop_answer *a = &c->report.answer;

    s->look_ns = now + LOOK_NS;
    if (s->rests) {
        rest_look(c, s, now, known);
    } else if (known && a->number > s->number && (a->requests & s->bit)) {
        if (!ask_again(c, s, now, a))
            conclude(c, s, now, a);
    } else if (now >= s->until_ns) {
        give_up(c, s, now, known);
    }
}

static void ask(struct control *c, struct control_session *s, uint32_t bit, ns_t now)
{
    s->bit = bit;
    set_bit(c, s);
    s->waits = CONTROL_WAITS_LOOP;
    s->rests = false;
    s->until_ns = now + CONTROL_ANSWER_NS;
    s->rest_ns = now + REST_NS;
    s->look_ns = now + LOOK_NS;
}

// What a user is called, from the file alone: the name service may ask the network, and an
// emergency stop does not wait for that.
static void name_of(uid_t uid, char *out, size_t size)
{
    FILE *f = fopen("/etc/passwd", "re");
    struct passwd pw, *found;
    char buf[1024];

    out[0] = '\0';
    while (f && fgetpwent_r(f, &pw, buf, sizeof buf, &found) == 0)
        if (pw.pw_uid == uid) {
            snprintf(out, size, "%s", pw.pw_name);
            break;
        }
    for (char *p = out; *p; p++)
        if (*p <= ' ' || *p > '~')
            *p = '?';
    if (f)
        fclose(f);
}

// A stop is told for as long as it lasts: also by whom.
static void remember(struct control *c, const struct control_session *s, uint32_t bit)
{
    struct explain_asker who = {.uid = s->peer.uid, .pid = s->peer.pid, .at = time(NULL)};
    uint64_t tick = read_report(c) ? c->report.tick : 0;

    name_of(s->peer.uid, who.name, sizeof who.name);
    explain_latch_asked(c->src.board->latch, (enum board_request)bit, &who, tick);
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
        if (bit & (BOARD_STOP | BOARD_ESTOP))
            remember(c, s, bit); // 0.1 ms: a file of some hundred lines
        if ((bit & (BOARD_STOP | BOARD_ESTOP)) && c->src.swap)
            swap_cancel(c->src.swap,
                        bit == BOARD_STOP ? "the arm was stopped" : "emergency stop");
    }
}
