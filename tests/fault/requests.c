// Requests, the arm itself, and the latch. A request is an edge: it counts in the next tick.
#include <math.h>

#include "tests/fault/matrix.h"

#define REQUEST(bits, n)                                                                 \
    {                                                                                    \
        .target = INJECT_REQUESTS, .verb = VERB_WRONG, .magnitude = (bits), .ticks = (n) \
    }
#define BLOCKED(n)                                                           \
    {                                                                        \
        .target = INJECT_PLANT, .verb = VERB_STUCK, .index = 1, .ticks = (n) \
    }

static bool stops(struct probe *p)
{
    return p->entered[LADDER_STOPPING] > 0;
}

static bool is_estop(struct probe *p)
{
    return p->entered[LADDER_ESTOP] > 0;
}

static bool disarms(struct probe *p)
{
    return p->entered[LADDER_DISARMING] > 0;
}

static const char *at_rest(struct probe *p)
{
    return world_report(p->w)->at_rest ? NULL : "not at rest";
}

// The joint that is blocked is more than 0.2 rad from its command.
static bool apart(struct probe *p)
{
    const struct loop_report *r = world_report(p->w);

    return fabs(p->last[1] - r->measured[1]) > 0.2;
}

static const char *names_joint_1(struct probe *p)
{
    const struct loop_report *r = world_report(p->w);

    for (uint64_t i = 0; i < r->events && i < BOARD_EVENTS; i++)
        if (r->event[i].reason == REASON_FOLLOWING_ERROR && r->event[i].index == 1)
            return NULL;
    return "it does not name the joint";
}

// The camera stops the arm and comes back for one frame. While it is late again, too late to arm
// but not to stop, somebody resets; when all is well somebody arms. The latch has to hold.
static void reset_too_soon(struct world *w, uint64_t since)
{
    struct injection off = {.target = INJECT_CAMERA, .verb = VERB_OFF, .ticks = 60};

    if (since == 121)
        world_inject(w, off);
    if (since == 155)
        world_request(w, BOARD_RESET);
    if (since > 260)
        world_request(w, BOARD_ARM);
}

static const char *still_latched(struct probe *p)
{
    return world_report(p->w)->faults.latched >> REASON_CAMERA_STALE & 1 &&
                   !p->entered[LADDER_READY] && !p->entered[LADDER_APPROACH]
               ? NULL
               : "the latch did not hold";
}

// A cause that has gone; somebody arms without a reset, again and again.
static void arm_again(struct world *w, uint64_t since)
{
    if (since > 60 && since < 130)
        world_request(w, BOARD_ARM);
}

static bool refuses_arm(struct probe *p)
{
    return p->w->tick > p->from + 100 && world_mode(p->w) == LADDER_STOPPED;
}

// A joint gives way, 2.5 rad/s, out of the limits: 2.002 rad is the end of all slack, and
// 2.1 rad too far.
static void sag(struct world *w, uint64_t since)
{
    if (since < 60)
        w->plant.pos[0] += 0.0125;
}

static bool outside(struct probe *p)
{
    const struct loop_report *r = world_report(p->w);

    if (r->measured[0] > 2.1 && p->memory[0] == 0)
        p->memory[0] = (double)p->w->tick;
    return r->measured[0] > 2.002;
}

static const char *stopped_far_out(struct probe *p)
{
    return (double)p->entered[LADDER_STOPPING] == p->memory[0]
               ? NULL
               : "it did not stop in the tick that saw 0.1 rad";
}

static void near_the_end(struct world_config *c)
{
    c->plant.start[0] = 1.9;
    c->loop.following_error[0] = 0;
    c->brain = BRAIN_GOAL;
    c->goal[0] = 1.95;
}

static const struct scenario of[] = {
    {.name = "estop",
     .bound = "the next tick",
     .detector = BLIND_REQUESTS,
     .inject = REQUEST(BOARD_ESTOP, 1),
     .seen = is_estop,
     .least = 0,
     .most = 0,
     .reason = REASON_ESTOP,
     .path = "ESTOP",
     .recovery = LATCHES,
     .cause_goes = true,
     .check = at_rest},
    {.name = "stop",
     .bound = "the next tick",
     .detector = BLIND_REQUESTS,
     .inject = REQUEST(BOARD_STOP, 1),
     .seen = stops,
     .least = 0,
     .most = 0,
     .reason = REASON_OPERATOR,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES,
     .cause_goes = true,
     .check = at_rest},
    {.name = "disarm",
     .bound = "the next tick",
     .detector = BLIND_REQUESTS,
     .inject = REQUEST(BOARD_DISARM, 1),
     .seen = disarms,
     .least = 0,
     .most = 0,
     .path = "DISARMING READY",
     .disarming = {REASON_OPERATOR},
     .recovery = STAYS,
     .check = at_rest},
    {.name = "all requests at once",
     .bound = "the gravest, the next tick",
     .detector = BLIND_REQUESTS,
     .inject = REQUEST(63, 1),
     .seen = is_estop,
     .least = 0,
     .most = 0,
     .reason = REASON_ESTOP,
     .path = "ESTOP",
     .recovery = LATCHES,
     .cause_goes = true},
    {.name = "flood of all requests",
     .bound = "the gravest, the next tick",
     .detector = BLIND_REQUESTS,
     .inject = REQUEST(63, 200),
     .seen = is_estop,
     .least = 0,
     .most = 0,
     .reason = REASON_ESTOP,
     .path = "ESTOP",
     .recovery = LATCHES},
    {.name = "reset while frames are late, then arm",
     .bound = "refused while it is there",
     .detector = BLIND_LATCH,
     .inject = {.target = INJECT_CAMERA, .verb = VERB_OFF, .ticks = 120},
     .act = reset_too_soon,
     .least = 17,
     .most = 17,
     .reason = REASON_CAMERA_STALE,
     .path = "STOPPING STOPPED",
     .stop_after = 93,
     .recovery = STAYS,
     .check = still_latched,
     .settle = 300,
     .more_episodes = 1},
    {.name = "arm without a reset",
     .bound = "latched",
     .detector = BLIND_RESET,
     .inject = {.target = INJECT_JOINTS, .verb = VERB_OFF, .ticks = 40},
     .act = arm_again,
     .seen = refuses_arm,
     .least = 101,
     .most = 101,
     .reason = REASON_JOINTS_STALE,
     .path = "HOLD STOPPING STOPPED",
     .stop_after = 19,
     .recovery = LATCHES,
     .cause_goes = true},
    {.name = "a joint is blocked",
     .bound = "10 ticks",
     .detector = BLIND_FOLLOWING,
     .inject = BLOCKED(600),
     .begins = apart,
     .reason = REASON_FOLLOWING_ERROR,
     .least = 9,
     .most = 9,
     .path = "HOLD STOPPING STOPPED",
     .stop_after = 19,
     .recovery = LATCHES,
     .cause_goes = true,
     .check = names_joint_1},
    // Fresh stamps, and one value that does not change any more. As long as nobody moves the joint
    // that is true; when it is to move, it is a joint that does not.
    {.name = "an encoder is frozen, its stamps fresh",
     .bound = "10 ticks",
     .detector = BLIND_FOLLOWING,
     .inject = {.target = INJECT_JOINTS,
                .verb = VERB_STUCK,
                .variant = JOINTS_ENCODER,
                .index = 1,
                .ticks = 600},
     .begins = apart,
     .reason = REASON_FOLLOWING_ERROR,
     .least = 9,
     .most = 9,
     .path = "HOLD STOPPING STOPPED",
     .stop_after = 19,
     .recovery = LATCHES,
     .cause_goes = true,
     .check = names_joint_1},
    {.name = "the measured pose leaves the limits",
     .bound = "0.1 rad beyond",
     .detector = BLIND_LIMITS_MEASURED,
     .configure = near_the_end,
     .act = sag,
     .inject = {.target = INJECT_PLANT, .verb = VERB_STUCK, .ticks = 300},
     .begins = outside,
     .check = stopped_far_out,
     .reason = REASON_OUT_OF_LIMITS,
     .least = 0,
     .most = 0,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES},
};

const struct scenario_group group_requests = {"requests and the arm", of,
                                              sizeof of / sizeof *of};
