// What is told of a stop stays what it was when the arm stopped, whoever asks and however often;
// and it says who has asked for it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/explain.h"
#include "daemon/explain_latch.h"

struct rig {
    struct config cfg;
    struct board board;
    struct explain_latch latch;
    struct explain_source src;
    struct loop_report now;
    char text[512];
};

static int setup(void **state)
{
    struct rig *r = calloc(1, sizeof *r);
    if (!r || board_init(&r->board, 1, 4, 1) || explain_latch_init(&r->latch))
        return -1;
    r->board.latch = &r->latch;
    r->cfg.n_joints = r->cfg.n_cameras = 1;
    r->cfg.control.rate_hz = 100;
    r->cfg.joint_state.rate_hz = 100;
    snprintf(r->cfg.camera[0].name, sizeof r->cfg.camera[0].name, "front");
    r->now = (struct loop_report){.now_ns = 9 * NS_PER_S, .tick = 900};
    r->now.mode = LADDER_RUNNING;
    r->src = (struct explain_source){.cfg = &r->cfg, .board = &r->board};
    *state = r;
    return 0;
}

static int teardown(void **state)
{
    struct rig *r = *state;
    explain_latch_free(&r->latch);
    board_free(&r->board);
    free(r);
    return 0;
}

static void later(struct rig *r, ns_t ns)
{
    r->now.now_ns += ns;
    r->now.tick += (uint64_t)(ns / (10 * NS_PER_MS));
}

static void steps_to(struct rig *r, enum ladder_state to, enum ladder_reason reason)
{
    later(r, 10 * NS_PER_MS);
    r->now.event[r->now.events++ % BOARD_EVENTS] =
        (struct loop_event){.tick = r->now.tick,
                            .from = r->now.mode,
                            .to = to,
                            .reason = reason,
                            .index = -1};
    r->now.mode = to;
    r->now.reason = reason;
}

static const char *told(struct rig *r)
{
    r->text[0] = '\0';
    assert_true(explain_latched(&r->src, &r->now, r->text, sizeof r->text));
    return r->text;
}

static const char *answered(struct rig *r, enum board_request request,
                            struct loop_answer a)
{
    a.requests |= request;
    a.index = -1;
    assert_false(explain_answer(&r->src, &r->now, &a, request, r->text, sizeof r->text));
    return r->text;
}

static void has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("'%s' is not in '%s'", part, text);
}

static void lacks(const char *text, const char *part)
{
    if (strstr(text, part))
        fail_msg("'%s' is in '%s'", part, text);
}

// An inference that is still on grows older; the sentence does not.
static void keeps_its_words(void **state)
{
    struct rig *r = *state;
    char first[512];

    assert_false(explain_latched(&r->src, &r->now, first, sizeof first));
    steps_to(r, LADDER_HOLD, REASON_POLICY_SLOW);
    assert_false(explain_latched(&r->src, &r->now, first, sizeof first));
    steps_to(r, LADDER_STOPPING, REASON_POLICY_SLOW);
    r->board.inferring_since_ns = r->now.now_ns - 614 * NS_PER_MS;
    has(told(r), "has run for 614 ms");
    memcpy(first, r->text, sizeof first);
    steps_to(r, LADDER_STOPPED, REASON_POLICY_SLOW);
    for (int s = 0; s < 5; s++) {
        later(r, NS_PER_S);
        r->board.inferring_since_ns = r->now.now_ns - 14 * NS_PER_MS;
        assert_string_equal(told(r), first);
    }
    // So do all who tell of it.
    const struct loop_answer a = {
        .from = LADDER_STOPPED, .to = LADDER_STOPPED, .cause = REASON_POLICY_SLOW};
    has(answered(r, BOARD_ARM, a), first);
    has(r->text, "not armed: STOPPED (POLICY_SLOW): ");
    has(r->text, "; mend that, then `actctl reset`");
    has(answered(r, BOARD_RESET, a), first);
    explain_event(&r->src, &r->now, &r->now.event[2], r->text, sizeof r->text);
    has(r->text, first);
    has(r->text, "STOPPING -> STOPPED (POLICY_SLOW): ");
    // The next stop has words of its own.
    steps_to(r, LADDER_WAITING, REASON_STARTING);
    assert_false(explain_latched(&r->src, &r->now, r->text, sizeof r->text));
    steps_to(r, LADDER_STOPPING, REASON_POLICY_SLOW);
    r->board.inferring_since_ns = r->now.now_ns - 777 * NS_PER_MS;
    has(told(r), "777 ms");
}

// The hold before the stop was of an inference that is over when the stop is told.
static void does_not_blame_the_next_inference(void **state)
{
    struct rig *r = *state;

    for (int i = 0; i < 9; i++)
        hist_add(&r->board.chunk_latency, 800 * NS_PER_MS);
    steps_to(r, LADDER_STOPPING, REASON_POLICY_SLOW);
    r->board.inferring_since_ns = r->now.now_ns - 14 * NS_PER_MS;
    lacks(told(r), "14 ms");
    has(r->text, "inference is too slow (latency p50 ");
}

// What keeps a reset from being done is what is there now; what keeps an arm from being armed is
// the latch.
static void a_reset_asks_for_what_is_there_now(void **state)
{
    struct rig *r = *state;
    const struct loop_answer a = {
        .from = LADDER_ESTOP, .to = LADDER_ESTOP, .cause = REASON_CAMERA_MISSING};

    steps_to(r, LADDER_ESTOP, REASON_ESTOP);
    has(answered(r, BOARD_ARM, a), "not armed: ESTOP (ESTOP); `actctl reset` first");
    has(answered(r, BOARD_RESET, a), "not reset: ESTOP (CAMERA_MISSING): nothing yet");
}

static void says_who(void **state)
{
    struct rig *r = *state;
    struct explain_asker who = {
        .name = "pilot", .uid = 1000, .pid = 1959, .at = 1700000000};
    char clock[16];
    struct tm tm;

    assert_non_null(localtime_r(&who.at, &tm));
    strftime(clock, sizeof clock, "at %H:%M:%S", &tm);
    explain_latch_asked(&r->latch, BOARD_STOP, &who, r->now.tick);
    steps_to(r, LADDER_STOPPING, REASON_OPERATOR);
    has(told(r), "stop by user pilot (uid 1000, process 1959) at ");
    has(r->text, clock);
    steps_to(r, LADDER_STOPPED, REASON_OPERATOR);
    has(told(r), "stop by user pilot");
    struct loop_report reset = r->now; // the log looks when it has been reset already
    reset.mode = LADDER_WAITING;
    reset.reason = REASON_STARTING;
    explain_event(&r->src, &reset, &reset.event[0], r->text, sizeof r->text);
    has(r->text, "RUNNING -> STOPPING (OPERATOR): stop by user pilot (uid 1000");
    later(r, 60 * NS_PER_S);
    who.name[0] = '\0'; // one that /etc/passwd does not know
    who.uid = 1001;
    explain_latch_asked(&r->latch, BOARD_STOP, &who, r->now.tick); // it is stopped
    later(r, NS_PER_S);
    has(told(r), "stop by user pilot");
    explain_latch_asked(&r->latch, BOARD_ESTOP, &who, r->now.tick);
    steps_to(r, LADDER_ESTOP, REASON_ESTOP);
    has(told(r), "e-stop by user (uid 1001, process 1959) at ");
    const struct loop_answer a = {
        .from = LADDER_ESTOP, .to = LADDER_ESTOP, .cause = REASON_ESTOP};
    has(answered(r, BOARD_ARM, a), "not armed: ESTOP (ESTOP): e-stop by user (uid 1001");
    has(r->text, "; `actctl reset` first");
}

// A stop that came another way, long after somebody asked for one.
static void blames_nobody_for_anothers_stop(void **state)
{
    struct rig *r = *state;
    const struct explain_asker who = {.name = "pilot", .uid = 1000};

    steps_to(r, LADDER_STOPPING, REASON_OPERATOR);
    assert_string_equal(told(r), "");
    steps_to(r, LADDER_WAITING, REASON_STARTING);
    explain_latch_asked(&r->latch, BOARD_STOP, &who, r->now.tick);
    later(r, 1001 * NS_PER_MS);
    steps_to(r, LADDER_STOPPING, REASON_OPERATOR);
    assert_string_equal(told(r), "");
    explain_latch_asked(NULL, BOARD_STOP, &who, 0);
}

// Boards of programs that keep no such memory.
static void does_without_a_memory(void **state)
{
    struct rig *r = *state;

    r->board.latch = NULL;
    steps_to(r, LADDER_STOPPING, REASON_POLICY_SLOW);
    r->board.inferring_since_ns = r->now.now_ns - 614 * NS_PER_MS;
    has(told(r), "614 ms");
    later(r, NS_PER_S);
    has(told(r), "1614 ms");
}

// Nobody has asked for anything else: the way to READY ended in that very tick.
static void says_what_it_was_instead_of_ready(void **state)
{
    struct rig *r = *state;
    const struct loop_answer arose = {.from = LADDER_DISARMING, .to = LADDER_READY},
                             two = {.requests = BOARD_DISARM,
                                    .from = LADDER_READY,
                                    .to = LADDER_READY},
                             braked = {.from = LADDER_STOPPING,
                                       .to = LADDER_STOPPED,
                                       .cause = REASON_OPERATOR};

    r->now.mode = LADDER_READY;
    assert_string_equal(answered(r, BOARD_ARM, arose), "not armed: it was not READY at "
                                                       "that tick; ask again "
                                                       "(DISARMING)");
    has(answered(r, BOARD_ARM, two), "asked for something else at the same time");
    r->now.mode = LADDER_STOPPED;
    has(answered(r, BOARD_RESET, braked), "still coming to rest");
    has(r->text, "(STOPPING)");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(keeps_its_words),
        TEST(does_not_blame_the_next_inference),
        TEST(a_reset_asks_for_what_is_there_now),
        TEST(says_who),
        TEST(blames_nobody_for_anothers_stop),
        TEST(does_without_a_memory),
        TEST(says_what_it_was_instead_of_ready),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
