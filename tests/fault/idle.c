// An arm that is not armed: disarmed, on the way home, asked to move when it may not.
#include "daemon/loop_impl.h"
#include "tests/fault/matrix.h"

static const char *at_rest(struct probe *p)
{
    return world_report(p->w)->at_rest ? NULL : "not at rest";
}

static void near_the_end(struct world_config *c)
{
    c->plant.start[0] = 1.9;
    c->loop.following_error[0] = 0;
    c->brain = BRAIN_GOAL;
    c->goal[0] = 1.95;
}

static bool outside(struct probe *p)
{
    const struct loop_report *r = world_report(p->w);

    if (r->measured[0] > 2.1 && p->memory[0] == 0)
        p->memory[0] = (double)p->w->tick;
    return r->measured[0] > 2.002;
}

// Disarmed; then the camera is late, and somebody arms all the same.
static void disarm_then_arm(struct world *w, uint64_t since)
{
    if (since == 0) {
        world_request(w, BOARD_DISARM);
        world_inject(
            w, (struct injection){
                   .target = INJECT_CAMERA, .verb = VERB_OFF, .from = 80, .ticks = 48});
    }
    if (since >= 100 && since < 160)
        world_request(w, BOARD_ARM | (since % 2 ? BOARD_HOME : 0));
}

// Disarmed; then the arm is pushed to 2.05 rad, where the end is 2, and somebody arms.
static void disarm_and_push(struct world *w, uint64_t since)
{
    if (since == 0)
        world_request(w, BOARD_DISARM);
    if (since >= 60 && w->plant.pos[0] < 2.05 && since < 200)
        w->plant.pos[0] += 0.005;
    if (since >= 140 && since < 200)
        world_request(w, BOARD_ARM);
}

// On the way home the driver falls silent for 60 ms.
static void home_and_lose(struct world *w, uint64_t since)
{
    if (since == 0)
        world_request(w, BOARD_DISARM);
    if (since == 104) {
        world_request(w, BOARD_HOME);
        world_inject(
            w, (struct injection){
                   .target = INJECT_JOINTS, .verb = VERB_OFF, .from = 8, .ticks = 12});
    }
}

static bool from_80(struct probe *p)
{
    return p->w->tick >= p->from + 80;
}

static bool from_112(struct probe *p)
{
    return p->w->tick >= p->from + 112;
}

// 1.5 rad with 0.5 rad/s: longer on the way than a camera takes to be stale.
static void far_from_home(struct world_config *c)
{
    c->loop.home[0] = -1.5;
}

static void home_and_cover(struct world *w, uint64_t since)
{
    if (since == 0)
        world_request(w, BOARD_DISARM);
    if (since == 104) {
        world_request(w, BOARD_HOME);
        world_inject(
            w, (struct injection){
                   .target = INJECT_CAMERA, .verb = VERB_OFF, .from = 8, .ticks = 200});
    }
}

static void disarm_and_hit(struct world *w, uint64_t since)
{
    if (since == 0)
        world_request(w, BOARD_DISARM);
    if (since == 104)
        w->loop->guard.pos[0] += 0.5;
}

static void disarm_and_hang(struct world *w, uint64_t since)
{
    if (since == 0)
        world_request(w, BOARD_DISARM);
    if (since == 104)
        world_inject(w, (struct injection){.target = INJECT_LOOP,
                                           .verb = VERB_SLOW,
                                           .magnitude = 300,
                                           .ticks = 1});
}

static bool from_104(struct probe *p)
{
    return p->w->tick >= p->from + 104;
}

static bool cut(struct probe *p)
{
    return atomic_load(&p->w->board.stalls) > 0;
}

// What was only told leaves nothing behind.
static const char *arms_again(struct probe *p)
{
    if (world_report(p->w)->faults.latched != 0)
        return "something is latched";
    world_request(p->w, BOARD_ARM);
    world_step(p->w);
    return world_mode(p->w) == LADDER_APPROACH ? NULL : "it can not be armed";
}

static const struct scenario of[] = {
    {.name = "arm while the camera is late",
     .bound = "WAITING after 120 ms",
     .detector = BLIND_CAMERA_AGE,
     .act = disarm_then_arm,
     .inject = {.ticks = 300},
     .begins = from_80,
     .reason = REASON_CAMERA_STALE,
     .least = 17,
     .most = 17,
     .path = "DISARMING READY WAITING READY",
     .disarming = {REASON_OPERATOR},
     .recovery = STAYS},
    {.name = "arm while the pose is outside",
     .bound = "WAITING; 0.002 rad beyond",
     .detector = BLIND_LIMITS_MEASURED,
     .configure = near_the_end,
     .act = disarm_and_push,
     .begins = outside,
     .inject = {.target = INJECT_PLANT, .verb = VERB_STUCK, .from = 20, .ticks = 300},
     .reason = REASON_OUT_OF_LIMITS,
     .least = 0,
     .most = 0,
     .path = "DISARMING READY WAITING READY",
     .disarming = {REASON_OPERATOR},
     .recovery = STAYS},
    {.name = "joints off on the way home",
     .bound = "DISARMING after 3 periods",
     .detector = BLIND_JOINTS_AGE,
     .act = home_and_lose,
     .inject = {.ticks = 260},
     .begins = from_112,
     .reason = REASON_JOINTS_STALE,
     .least = 5,
     .most = 5,
     .path = "DISARMING READY HOMING DISARMING READY WAITING READY",
     .disarming = {REASON_OPERATOR, REASON_JOINTS_STALE},
     .recovery = STAYS,
     .check = at_rest},
    {.name = "camera off on the way home",
     .bound = "told: HOMING needs no camera",
     .detector = BLIND_CAMERA_AGE,
     .configure = far_from_home,
     .act = home_and_cover,
     .inject = {.ticks = 900},
     .begins = from_112,
     .reason = REASON_CAMERA_STALE,
     .least = 17,
     .most = 17,
     .path = "DISARMING READY HOMING DISARMING READY",
     .disarming = {REASON_OPERATOR},
     .recovery = STAYS,
     .check = arms_again},
    {.name = "guard's memory is hit while it is idle",
     .bound = "INTERNAL in the next tick",
     .detector = BLIND_GATE,
     .act = disarm_and_hit,
     .hits = 105,
     .inject = {.ticks = 200},
     .begins = from_104,
     .reason = REASON_INTERNAL,
     .least = 1,
     .most = 1,
     .path = "DISARMING READY STOPPING STOPPED",
     .stop_after = 1,
     .disarming = {REASON_OPERATOR},
     .recovery = LATCHES,
     .cause_goes = true},
    {.name = "loop hangs while it is idle",
     .bound = "told in its first tick; not latched",
     .detector = BLIND_STALLS,
     .act = disarm_and_hang,
     .inject = {.ticks = 300},
     .begins = cut,
     .reason = REASON_LOOP_STALLED,
     .least = 0,
     .most = 0,
     .path = "DISARMING READY WAITING READY",
     .disarming = {REASON_OPERATOR},
     .recovery = STAYS,
     .check = arms_again},
};

const struct scenario_group group_idle = {"not armed", of, sizeof of / sizeof *of};
