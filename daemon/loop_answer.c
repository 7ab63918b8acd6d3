// What became of the requests of a tick, for whoever made them and waits for word. The ladder
// knows no requests that are refused, only rows that do not fit: what stood in the way is found
// here, from the same conditions.
//
// loop_answer.c holds rt functions only.
#include "daemon/loop_impl.h"

#define IN(state) (1u << LADDER_##state)
#define LATCHED   (IN(STOPPING) | IN(STOPPED) | IN(ESTOP))
#define REQUESTS  (~UINT64_C(0) << LADDER_REQUEST_SHIFT)

static bool in(enum ladder_state s, unsigned set)
{
    return (set >> s) & 1;
}

bool loop_granted(enum board_request request, enum ladder_state to)
{
    const unsigned driven = IN(APPROACH) | IN(RUNNING) | IN(HOLD);

    switch (request) {
    case BOARD_ARM:
        return in(to, driven);
    case BOARD_DISARM:
        return !in(to, driven | IN(HOMING));
    case BOARD_STOP:
        return in(to, LATCHED);
    case BOARD_ESTOP:
        return to == LADDER_ESTOP;
    case BOARD_RESET:
        return !in(to, LATCHED);
    case BOARD_HOME:
        return to == LADDER_HOMING;
    default:
        return false;
    }
}

static bool all_granted(uint32_t requests, enum ladder_state to)
{
    for (uint32_t r = BOARD_ARM; r <= BOARD_HOME; r <<= 1)
        if ((requests & r) && !loop_granted((enum board_request)r, to))
            return false;
    return true;
}

static struct culprit nobody(void)
{
    return (struct culprit){-1, 0};
}

// Why a request was not followed; *who as in loop_event. A latch whose fault is there in a form
// that is only told keeps its own reason.
static enum ladder_reason in_the_way(const struct loop *l, struct culprit *who)
{
    enum ladder_reason cause = ladder_cause(l->conditions & ~REQUESTS);
    uint64_t there = l->faults.latched & l->faults.active;

    *who = nobody();
    if ((l->in.requests & BOARD_HOME) && !l->cfg.has_home)
        return REASON_UNREACHABLE; // there is no place to go to
    if (cause == REASON_NONE && (l->conditions & LADDER_C_LATCHED) && there != 0)
        cause = (enum ladder_reason)__builtin_ctzll(there);
    if (cause != REASON_NONE) {
        *who = l->suspect[cause];
        return cause;
    }
    if (in(l->state, LATCHED)) { // the cause may be gone: it waits for a reset
        *who = l->culprit;
        return l->reason;
    }
    return l->state == LADDER_WAITING ? REASON_STARTING : REASON_NONE;
}

void loop_answer(struct loop *l, uint64_t tick, enum ladder_state from)
{
    struct loop_answer *a = &l->report.answer;
    struct culprit who = nobody();

    if (l->in.requests == 0)
        return;
    a->number++;
    a->tick = tick;
    a->requests = l->in.requests;
    a->from = from;
    a->to = l->state;
    a->cause = all_granted(l->in.requests, l->state) ? REASON_NONE : in_the_way(l, &who);
    a->index = who.index;
    a->value = who.value;
}
