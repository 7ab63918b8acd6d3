// What the loop says of requests: granted or not, and what stood in the way; and the sentence that
// is made of it.
#include "daemon/explain.h"
#include "tests/unit/loop_world.h"

static const struct loop_answer *answer(const struct world *w)
{
    return &loop_last(w->loop)->answer;
}

// One request in one tick; the sentence.
static const char *ask(struct world *w, enum board_request r, bool granted)
{
    static struct config cfg; // large
    static char text[512];
    const struct explain_source src = {.cfg = &cfg, .board = &w->board};
    uint64_t before = answer(w)->number;

    memset(&cfg, 0, sizeof cfg);
    cfg.n_joints = JOINTS;
    cfg.n_cameras = w->cfg.n_cameras;
    cfg.safety.fresh_ticks = w->cfg.fresh_ticks;
    snprintf(cfg.camera[0].name, CONFIG_NAME, "front");
    for (int i = 0; i < JOINTS; i++) {
        snprintf(cfg.joint[i].name, CONFIG_NAME, "j%d", i);
        cfg.joint[i].home = w->cfg.has_home ? w->cfg.home[i] : NAN;
        cfg.joint[i].min = -2;
        cfg.joint[i].max = 2;
        cfg.joint[i].following_error = w->cfg.following_error[i];
    }
    w->fuzzy = true;
    request(w, r);
    step(w);
    assert_int_equal(answer(w)->number, before + 1);
    assert_int_equal(answer(w)->tick, w->tick - 1);
    assert_int_equal(answer(w)->requests, r);
    assert_int_equal(answer(w)->to, mode(w));
    assert_true(loop_granted(r, mode(w)) == granted);
    assert_true((answer(w)->cause == REASON_NONE) || !granted);
    assert_true(explain_answer(&src, loop_last(w->loop), answer(w), r, text,
                               sizeof text) == granted);
    return text;
}

static void has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("'%s' is not in '%s'", part, text);
}

static void begin(struct world *w, bool home)
{
    struct loop_config cfg = default_config();

    cfg.has_home = home;
    world_start(w, &cfg);
}

static void nobody_asked(void **state)
{
    (void)state;
    struct world w;

    begin(&w, false);
    to_running(&w);
    uint64_t n = answer(&w)->number; // the arming
    assert_int_equal(n, 1);
    for (int i = 0; i < 100; i++)
        step(&w);
    assert_int_equal(answer(&w)->number, n);
    assert_int_equal(answer(&w)->from, LADDER_READY);
    assert_int_equal(answer(&w)->to, LADDER_APPROACH);
    world_end(&w);
}

static void the_way_round(void **state)
{
    (void)state;
    struct world w;

    begin(&w, true);
    has(ask(&w, BOARD_ARM, false), "not armed: INIT (STARTING)");
    atomic_store(&w.board.started, true);
    step(&w);
    has(ask(&w, BOARD_ARM, false), "not armed: WAITING (STARTING): waits until every");
    has(ask(&w, BOARD_RESET, true), "nothing to reset");
    has(ask(&w, BOARD_DISARM, true), "disarmed already");
    until(&w, LADDER_READY, 200);
    has(ask(&w, BOARD_ARM, true), "armed: goes to where the policy begins");
    has(ask(&w, BOARD_ARM, true), "armed already");
    until(&w, LADDER_RUNNING, 2000);
    has(ask(&w, BOARD_HOME, false), "does not go home: it is armed; `actctl disarm`");
    assert_int_equal(answer(&w)->cause, REASON_NONE);
    for (int i = 0; i < 20; i++)
        step(&w);
    has(ask(&w, BOARD_DISARM, true), "comes to rest, then");
    has(ask(&w, BOARD_ARM, false), "not armed: it is still coming to rest");
    until(&w, LADDER_READY, 400);
    has(ask(&w, BOARD_HOME, true), "goes to its rest pose");
    has(ask(&w, BOARD_HOME, true), "on its way home already");
    has(ask(&w, BOARD_ARM, false), "not armed: it is on its way home");
    has(ask(&w, BOARD_STOP, true), "stops; latched");
    has(ask(&w, BOARD_STOP, true), "stopped already");
    until(&w, LADDER_STOPPED, 400);
    has(ask(&w, BOARD_ARM, false), "not armed: STOPPED (OPERATOR); `actctl reset` first");
    has(ask(&w, BOARD_DISARM, true), "disarmed, and latched");
    has(ask(&w, BOARD_RESET, true), "reset; ready once");
    has(ask(&w, BOARD_ESTOP, true), "emergency stop; latched");
    has(ask(&w, BOARD_ESTOP, true), "emergency stop already");
    has(ask(&w, BOARD_STOP, true), "stopped already");
    has(ask(&w, BOARD_HOME, false), "does not go home: ESTOP (ESTOP)");
    world_end(&w);
}

static void no_home_to_go_to(void **state)
{
    (void)state;
    struct world w;

    begin(&w, false);
    atomic_store(&w.board.started, true);
    until(&w, LADDER_READY, 200);
    has(ask(&w, BOARD_HOME, false), "no rest pose is configured");
    assert_int_equal(answer(&w)->cause, REASON_UNREACHABLE);
    assert_int_equal(answer(&w)->index, -1);
    assert_int_equal(mode(&w), LADDER_READY);
    world_end(&w);
}

// The joint or the camera that is to blame, as it was in that tick.
static void names_who_is_in_the_way(void **state)
{
    (void)state;
    struct world w;

    begin(&w, true);
    atomic_store(&w.board.started, true);
    until(&w, LADDER_READY, 200);
    w.stuck = true;
    w.measured[1] = 2.05;
    for (int i = 0; i < 4; i++)
        step(&w);
    has(ask(&w, BOARD_ARM, false),
        "not armed: WAITING (OUT_OF_LIMITS): j1 measured at 2.05");
    assert_int_equal(answer(&w)->cause, REASON_OUT_OF_LIMITS);
    assert_int_equal(answer(&w)->index, 1);
    assert_true(answer(&w)->value == 2.05);
    w.measured[1] = 0;
    until(&w, LADDER_READY, 200);
    w.camera_off = true;
    for (int i = 0; i < 40; i++)
        step(&w);
    has(ask(&w, BOARD_ARM, false),
        "not armed: WAITING (CAMERA_STALE): no usable frame from "
        "camera front");
    assert_int_equal(answer(&w)->index, 0);
    has(ask(&w, BOARD_DISARM, true), "disarmed already");
    assert_int_equal(answer(&w)->cause, REASON_NONE);
    assert_int_equal(answer(&w)->index, -1);
    assert_true(answer(&w)->value == 0);
    world_end(&w);
}

static void latched(void **state)
{
    (void)state;
    struct world w;

    begin(&w, false);
    to_running(&w);
    for (int i = 0; i < JOINTS; i++)
        w.loop->cfg.following_error[i] = 0.05;
    w.goal = -1.5;
    w.stuck = true;
    until(&w, LADDER_STOPPED, 2000);
    assert_int_equal(reason(&w), REASON_FOLLOWING_ERROR);
    double value =
        loop_last(w.loop)->event[(loop_last(w.loop)->events - 1) % BOARD_EVENTS].value;
    // The arm stands still and is watched no more: what latched is told.
    has(ask(&w, BOARD_ARM, false), "not armed: STOPPED (FOLLOWING_ERROR): j");
    assert_int_equal(answer(&w)->cause, REASON_FOLLOWING_ERROR);
    assert_true(answer(&w)->index >= 0 && answer(&w)->value == value);
    // A cause that is still there is told instead, and keeps the latch.
    w.joints_off = true;
    for (int i = 0; i < 40; i++)
        step(&w);
    has(ask(&w, BOARD_RESET, false),
        "not reset: STOPPED (JOINTS_STALE): the newest joint");
    assert_int_equal(answer(&w)->cause, REASON_JOINTS_STALE);
    w.joints_off = false;
    for (int i = 0; i < 4; i++)
        step(&w);
    has(ask(&w, BOARD_RESET, true), "reset; ready once");
    world_end(&w);
}

// A latched fault that is there in a form that is only told: LATCHED keeps the latch.
static void latched_by_what_is_only_told(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();

    cfg.frozen_warns[0] = cfg.frozen_stops[0] = true;
    world_start(&w, &cfg);
    to_running(&w);
    atomic_store(&w.board.camera[0].same_in_a_row, BOARD_STUCK);
    atomic_store(&w.board.camera[0].changed_ns, w.now - NS_PER_S);
    until(&w, LADDER_STOPPED, 200);
    assert_int_equal(reason(&w), REASON_CAMERA_FROZEN);
    w.loop->cfg.frozen_stops[0] = false; // so that it is only told
    has(ask(&w, BOARD_RESET, false), "not reset: STOPPED (CAMERA_FROZEN): camera front");
    assert_int_equal(answer(&w)->cause, REASON_CAMERA_FROZEN);
    assert_int_equal(answer(&w)->index, 0);
    world_end(&w);
}

static void still_moving(void **state)
{
    (void)state;
    struct world w;

    begin(&w, false);
    to_running(&w);
    for (int i = 0; i < 20; i++)
        step(&w);
    has(ask(&w, BOARD_ESTOP, true), "emergency stop");
    assert_false(loop_last(w.loop)->at_rest);
    has(ask(&w, BOARD_RESET, false),
        "not reset: it is still coming to rest; ask again in a second (ESTOP)");
    world_end(&w);
}

static void two_at_once(void **state)
{
    (void)state;
    struct world w;

    begin(&w, true);
    atomic_store(&w.board.started, true);
    until(&w, LADDER_READY, 200);
    (void)ask(&w, (enum board_request)(BOARD_ARM | BOARD_HOME), false);
    assert_int_equal(answer(&w)->cause, REASON_NONE);
    assert_int_equal(mode(&w), LADDER_READY);
    assert_false(loop_granted(BOARD_ARM, mode(&w)) || loop_granted(BOARD_HOME, mode(&w)));
    world_end(&w);
}

// Every request in every state, against the promise in words.
static void granted_by_state(void **state)
{
    static const struct {
        enum board_request request;
        const char *states; // one letter each, as below
    } of[] = {{BOARD_ARM, "ARH"},           {BOARD_DISARM, "IWYSTED"},
              {BOARD_STOP, "STE"},          {BOARD_ESTOP, "E"},
              {BOARD_RESET, "IWYARHDM"},    {BOARD_HOME, "M"},
              {(enum board_request)64, ""}, {(enum board_request)0, ""}};
    static const char letter[] = "?IWYARHSTEDM"; // by enum ladder_state

    (void)state;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        for (int s = LADDER_INIT; s < LADDER_STATES; s++)
            if (loop_granted(of[i].request, (enum ladder_state)s) !=
                (strchr(of[i].states, letter[s]) != NULL))
                fail_msg("request %d, state %c", of[i].request, letter[s]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_asked),
        cmocka_unit_test(the_way_round),
        cmocka_unit_test(no_home_to_go_to),
        cmocka_unit_test(names_who_is_in_the_way),
        cmocka_unit_test(latched),
        cmocka_unit_test(latched_by_what_is_only_told),
        cmocka_unit_test(still_moving),
        cmocka_unit_test(two_at_once),
        cmocka_unit_test(granted_by_state),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
