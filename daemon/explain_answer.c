// What a request came to, in a sentence for the person who made it. Which state is what they asked
// for is loop_granted's to say; what stood in the way the loop has found in that very tick.
#include <math.h>
#include <stdio.h>

#include "daemon/explain_impl.h"
#include "daemon/explain_latch.h"
#include "daemon/loop.h"

static bool latched(enum ladder_state s)
{
    return s == LADDER_STOPPING || s == LADDER_STOPPED || s == LADDER_ESTOP;
}

static bool armed(enum ladder_state s)
{
    return s == LADDER_APPROACH || s == LADDER_RUNNING || s == LADDER_HOLD;
}

// ---- as asked --------------------------------------------------------------------------------

static const char *done(const struct loop_answer *a, enum board_request request)
{
    bool same = a->from == a->to;

    switch (request) {
    case BOARD_ARM:
        return armed(a->from) ? "is armed already"
                              : "armed: goes to where the policy begins, slowly";
    case BOARD_DISARM:
        return a->to == LADDER_DISARMING ? "comes to rest, then it is disarmed"
               : latched(a->to)          ? "is disarmed, and latched until it is reset"
                                         : "is disarmed already";
    case BOARD_STOP:
        return latched(a->from) ? "is stopped already"
                                : "stops; latched until it is reset";
    case BOARD_ESTOP:
        return same ? "is in emergency stop already"
                    : "emergency stop; latched until it is reset";
    case BOARD_RESET:
        return latched(a->from) ? "reset; ready once every stream is fresh"
                                : "there was nothing to reset";
    default:
        return same ? "is on its way home already" : "goes to its rest pose, slowly";
    }
}

// ---- refused ---------------------------------------------------------------------------------

static const char *refused(enum board_request request)
{
    switch (request) {
    case BOARD_ARM:
        return "not armed";
    case BOARD_DISARM:
        return "not disarmed";
    case BOARD_STOP:
    case BOARD_ESTOP:
        return "not stopped";
    case BOARD_RESET:
        return "not reset";
    default:
        return "does not go home";
    }
}

// Where no fault is in the way, the state is.
static const char *in_this_state(const struct loop_answer *a, enum board_request request)
{
    if (request == BOARD_RESET || a->to == LADDER_DISARMING)
        return "it is still coming to rest; ask again in a second";
    if (a->to == LADDER_HOMING)
        return "it is on its way home; wait, or `actctl disarm` first";
    if (request == BOARD_HOME && armed(a->to))
        return "it is armed; `actctl disarm` first";
    if (a->from != LADDER_READY)
        return "it was not READY at that tick; ask again";
    return "it was asked for something else at the same time; ask again";
}

// The one that was in the way: it may have been left in that very tick.
static enum ladder_state in_the_way(const struct loop_answer *a,
                                    enum board_request request)
{
    bool braked = request == BOARD_RESET && a->from == LADDER_STOPPING;
    bool arose = a->to == LADDER_READY && a->from != LADDER_READY;

    return braked || arose ? a->from : a->to;
}

// A stop that a person asked for needs no mending.
static bool asked_for(enum ladder_reason cause)
{
    return cause == REASON_OPERATOR || cause == REASON_ESTOP;
}

static const char *remedy(const struct loop_answer *a, enum ladder_reason cause,
                          enum board_request request)
{
    if (!latched(a->to))
        return "";
    if (asked_for(cause))
        return "; `actctl reset` first";
    return request == BOARD_RESET ? "; mend that, then reset"
                                  : "; mend that, then `actctl reset`";
}

// Why the arm is latched, as it was when that happened; else what is in the way now.
static enum ladder_reason behind(const struct explain_source *s,
                                 const struct loop_report *now,
                                 const struct loop_answer *a, enum board_request request,
                                 char *why, size_t size)
{
    // A reset asks for what is there now; all others need a reset first.
    bool latch = latched(a->to) && now->mode == a->to &&
                 (request != BOARD_RESET || a->cause == now->reason);

    if (latch && explain_latched(s, now, why, size))
        return now->reason;
    explain_reason(s, now, a->cause, a->index, a->value, why, size);
    return a->cause;
}

static void tell_refused(const struct explain_source *s, const struct loop_report *now,
                         const struct loop_answer *a, enum board_request request,
                         char *text, size_t size)
{
    const char *what = refused(request), *state = ladder_state_name(a->to);
    char why[EXPLAIN_LATCH_TEXT] = "";
    enum ladder_reason cause;

    if (request == BOARD_HOME && isnan(s->cfg->joint[0].home)) {
        snprintf(text, size,
                 "does not go home: no rest pose is configured; write joints' home");
        return;
    }
    if (a->cause == REASON_NONE ||
        (request == BOARD_RESET && asked_for(a->cause))) { // its brakes, then
        snprintf(text, size, "%s: %s (%s)", what, in_this_state(a, request),
                 ladder_state_name(in_the_way(a, request)));
        return;
    }
    cause = behind(s, now, a, request, why, sizeof why);
    snprintf(text, size, "%s: %s (%s)%s%s%s", what, state, ladder_reason_name(cause),
             why[0] ? ": " : "", why, remedy(a, cause, request));
}

bool explain_answer(const struct explain_source *s, const struct loop_report *now,
                    const struct loop_answer *a, enum board_request request, char *text,
                    size_t size)
{
    if (loop_granted(request, a->to)) {
        snprintf(text, size, "%s", done(a, request));
        return true;
    }
    tell_refused(s, now, a, request, text, size);
    return false;
}
