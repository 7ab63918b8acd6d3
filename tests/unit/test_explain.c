// What a person reads when the arm waits or stops: the joint, the stream, the remedy.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/explain.h"

struct rig {
    struct config cfg;
    struct board board;
    struct explain_source src;
    struct loop_report now;
    char text[512];
};

// infer is asked only for a failed inference, which test_infer has.
static int setup(void **state)
{
    struct rig *r = calloc(1, sizeof *r);
    if (!r || board_init(&r->board, 2, 4, 2))
        return -1;
    r->cfg.n_joints = 2;
    r->cfg.n_cameras = 2;
    snprintf(r->cfg.joint[0].name, sizeof r->cfg.joint[0].name, "shoulder");
    snprintf(r->cfg.joint[1].name, sizeof r->cfg.joint[1].name, "elbow");
    for (int i = 0; i < 2; i++) {
        r->cfg.joint[i].min = -1.5;
        r->cfg.joint[i].max = 1.5;
        r->cfg.joint[i].following_error = 0.25;
        r->cfg.camera[i].rate_hz = 30;
    }
    snprintf(r->cfg.camera[0].name, sizeof r->cfg.camera[0].name, "front");
    snprintf(r->cfg.camera[1].name, sizeof r->cfg.camera[1].name, "wrist");
    snprintf(r->cfg.camera[1].endpoint, sizeof r->cfg.camera[1].endpoint,
             "ipc:///r/camera.wrist");
    snprintf(r->cfg.joint_state.endpoint, sizeof r->cfg.joint_state.endpoint,
             "ipc:///r/joints.state");
    r->cfg.joint_state.rate_hz = 100;
    r->cfg.safety.fresh_ticks = 50;
    r->cfg.safety.tick_gap_ms = 100;
    r->board.camera[0].received_ns = r->board.camera[1].received_ns = NS_PER_S;
    r->now.now_ns = 2 * NS_PER_S;
    r->src = (struct explain_source){.cfg = &r->cfg, .board = &r->board};
    *state = r;
    return 0;
}

static int teardown(void **state)
{
    struct rig *r = *state;
    board_free(&r->board);
    free(r);
    return 0;
}

static void says(struct rig *r, enum ladder_reason reason, int joint, double value,
                 const char *a, const char *b)
{
    explain_reason(&r->src, &r->now, reason, joint, value, r->text, sizeof r->text);
    if (!strstr(r->text, a) || !strstr(r->text, b))
        fail_msg("'%s' has not both '%s' and '%s'", r->text, a, b);
}

static void names_the_stream(void **state)
{
    struct rig *r = *state;
    struct joint_sample j = {.capture_ns = 2 * NS_PER_S - 250 * NS_PER_MS};
    says(r, REASON_STARTING, -1, 0, "fresh for 50 ticks in a row", "");
    r->cfg.control.rate_hz = 200;
    says(r, REASON_STARTING, -1, 0, "fresh for 50 ticks in a row, 0.25 s", "");
    says(r, REASON_JOINTS_MISSING, -1, 0, "nothing yet on ipc:///r/joints.state",
         "driver");
    r->board.joint_mark.refused = 1;
    says(r, REASON_JOINTS_MISSING, -1, 0, "every joint state was refused", "dropped");
    slot_write(&r->board.joints, &j);
    says(r, REASON_JOINTS_STALE, -1, 0, "250 ms old", "100 Hz");
    r->board.camera[1].received_ns = 0;
    says(r, REASON_CAMERA_MISSING, -1, 0, "camera wrist", "ipc:///r/camera.wrist");
    r->board.camera[1].received_ns = NS_PER_S + 400 * NS_PER_MS;
    says(r, REASON_CAMERA_STALE, -1, 0, "camera front for 1000 ms", "30 Hz");
    r->board.camera[1].corrupt_in_a_row = 1; // one bad frame is not why it waits
    says(r, REASON_CAMERA_STALE, -1, 0, "camera front for 1000 ms", "30 Hz");
    r->board.camera[1].corrupt_in_a_row = 7;
    says(r, REASON_CAMERA_STALE, -1, 0, "camera wrist cannot be decoded", "JPEG");
}

// Fresh means two periods for joint states, three or 100 ms for a frame: only what comes more
// rarely than that keeps an arm waiting.
static void names_a_rate_that_keeps_it_waiting(void **state)
{
    struct rig *r = *state;
    r->src.received_hz[0] = 49;
    says(r, REASON_STARTING, -1, 0, "joint states come at 49.0 Hz", "rate_hz says 100");
    r->src.received_hz[0] =
        51; // half of what is declared, and steady: fresh at every tick
    says(r, REASON_STARTING, -1, 0, "fresh for 50 ticks", "");
    r->src.received_hz[2] = 9.9;
    says(r, REASON_STARTING, -1, 0, "camera wrist come at 9.9 Hz",
         "cameras.wrist.rate_hz says 30");
    r->src.received_hz[1] = 22.4; // what a slow machine makes of 25
    r->cfg.camera[0].rate_hz = 25;
    r->src.received_hz[2] = 10.1;
    says(r, REASON_STARTING, -1, 0, "fresh for 50 ticks", "");
    says(r, REASON_CAMERA_SLOW, -1, 0, "front come at 22.4 Hz", "rate_hz says 25");
    r->src.received_hz[0] = r->src.received_hz[1] = r->src.received_hz[2] = 0; // unknown
    says(r, REASON_STARTING, -1, 0, "fresh for 50 ticks", "");
}

static void names_what_interrupts_the_count(void **state)
{
    struct rig *r = *state;
    r->now.tick = 1000;
    r->now.faults.of[REASON_CAMERA_STALE] =
        (struct fault_count){.episodes = 3, .ticks = 9, .last_tick = 988};
    says(r, REASON_STARTING, -1, 0,
         "50 ticks in a row; the count began anew 12 ticks ago", "(CAMERA_STALE)");
    r->now.faults.of[REASON_JOINTS_STALE] =
        (struct fault_count){.episodes = 1, .ticks = 1, .last_tick = 995};
    says(r, REASON_STARTING, -1, 0, "began anew 5 ticks ago", "(JOINTS_STALE)");
    r->now.tick = 1045; // that is as long ago as it takes
    says(r, REASON_STARTING, -1, 0, "in a row", "");
    assert_null(strstr(r->text, "anew"));
}

static void names_a_rate_that_is_not_kept(void **state)
{
    struct rig *r = *state;
    r->src.received_hz[0] = 89;
    says(r, REASON_JOINTS_SLOW, -1, 0, "joint states come at 89.0 Hz",
         "rate_hz says 100");
    r->src.received_hz[2] = 15; // each is told by its own reason
    says(r, REASON_CAMERA_SLOW, -1, 0, "camera wrist come at 15.0 Hz",
         "cameras.wrist.rate_hz says 30");
    r->src.received_hz[0] = 99;
    says(r, REASON_JOINTS_STALE, -1, 31, "31 ms old (100 Hz are declared): is", "driver");
    r->src.received_hz[0] = 60; // too slow, or stopped within the second: both are told
    says(r, REASON_JOINTS_STALE, -1, 31, "31 ms old (100 Hz are declared, 60.0 come)",
         "joint_state.rate_hz right?");
}

static void names_the_joint(void **state)
{
    struct rig *r = *state;
    says(r, REASON_FOLLOWING_ERROR, 1, 0.31, "elbow is 0.31 rad from its command",
         "allows 0.25");
    r->now.measured[0] = 40;
    says(r, REASON_OUT_OF_LIMITS, -1, 0, "shoulder measured at 40 rad", "degrees?");
    r->now.measured[0] = 1.6;
    says(r, REASON_OUT_OF_LIMITS, -1, 0, "outside its position limits -1.5 .. 1.5",
         "move it inside");
}

static void tells_a_step_and_what_follows(void **state)
{
    struct rig *r = *state;
    struct loop_event e = {.from = LADDER_RUNNING,
                           .to = LADDER_HOLD,
                           .reason = REASON_FOLLOWING_ERROR,
                           .index = 1,
                           .value = 0.5};
    explain_event(&r->src, &r->now, &e, r->text, sizeof r->text);
    assert_non_null(strstr(r->text, "RUNNING -> HOLD (FOLLOWING_ERROR): elbow"));
    assert_non_null(strstr(r->text, "goes on if the cause passes"));
    e = (struct loop_event){.from = LADDER_STOPPING,
                            .to = LADDER_STOPPED,
                            .reason = REASON_TICK_GAP,
                            .index = -1};
    explain_event(&r->src, &r->now, &e, r->text, sizeof r->text);
    assert_non_null(strstr(r->text, "100 ms"));
    assert_non_null(strstr(r->text, "then `actctl reset`"));
    e = (struct loop_event){.from = LADDER_WAITING, .to = LADDER_READY, .index = -1};
    explain_event(&r->src, &r->now, &e, r->text, sizeof r->text);
    assert_string_equal(r->text, "WAITING -> READY");
}

// Told later, when the stream is back and another is silent: as it was in its tick.
static void tells_a_step_as_it_was(void **state)
{
    struct rig *r = *state;
    struct joint_sample j = {.capture_ns = 2 * NS_PER_S - 3 * NS_PER_MS};
    slot_write(&r->board.joints, &j);
    says(r, REASON_JOINTS_STALE, -1, 31, "the newest joint state is 31 ms old", "100 Hz");
    r->board.camera[1].received_ns = 2 * NS_PER_S;
    says(r, REASON_CAMERA_STALE, 1, 502, "camera wrist for 502 ms", "30 Hz");
    r->board.camera[0].corrupt_in_a_row = 7;
    says(r, REASON_CAMERA_STALE, 1, 502, "camera wrist for 502 ms", "30 Hz");
    says(r, REASON_CAMERA_STALE, 1, 0, "camera wrist cannot be decoded", "JPEG");
    says(r, REASON_CAMERA_MISSING, 1, 0, "nothing yet from camera wrist", "");
    r->now.measured[1] = 0;
    says(r, REASON_OUT_OF_LIMITS, 1, 1.6, "elbow measured at 1.6 rad", "move it inside");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(names_the_stream, setup, teardown),
        cmocka_unit_test_setup_teardown(names_a_rate_that_keeps_it_waiting, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(names_what_interrupts_the_count, setup, teardown),
        cmocka_unit_test_setup_teardown(names_a_rate_that_is_not_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(names_the_joint, setup, teardown),
        cmocka_unit_test_setup_teardown(tells_a_step_and_what_follows, setup, teardown),
        cmocka_unit_test_setup_teardown(tells_a_step_as_it_was, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
