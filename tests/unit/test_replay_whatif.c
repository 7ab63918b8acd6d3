// What a replay says in words, and what what-if adds up.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/replay_impl.h"
#include "daemon/replay_whatif.h"

static struct replay_robot robot = {
    .joint = {"shoulder", "elbow"}, .cameras = 1, .camera = {{.name = "front"}}};
static const char *const names[] = {"shoulder", "elbow"};

static struct tick_record record(void)
{
    struct tick_record t;

    memset(&t, 0, sizeof t);
    t.joints = 2;
    t.cameras = 1;
    t.mode = LADDER_RUNNING;
    t.published = true;
    t.in.now_ns = 5 * NS_PER_S;
    return t;
}

static void differs(struct tick_record a, struct tick_record b, double tolerance_rad,
                    const char *text)
{
    char got[400] = "";

    assert_true(replay_compare_tick(&robot, &a, &b, tolerance_rad, got));
    assert_string_equal(got, text);
}

static void a_difference_has_its_name_and_both_values(void **state)
{
    struct tick_record a = record(), b = a;
    char text[400];

    (void)state;
    assert_false(replay_compare_tick(&robot, &a, &b, 0, text));
    b.joint[1].target = 0.25;
    differs(a, b, 0, "joint 'elbow': target: then 0, now 0.25");
    b = a;
    b.joint[0].limit = GUARD_JERK;
    differs(a, b, 0, "joint 'shoulder': limit: then none, now jerk");
    b = a;
    b.mode = LADDER_HOLD;
    snprintf(text, sizeof text, "mode: then %s, now %s", ladder_state_name(a.mode),
             ladder_state_name(b.mode));
    differs(a, b, 0, text);
    b = a;
    b.degraded = true;
    differs(a, b, 0, "degraded: then false, now true");
    b = a;
    b.conditions = 0x30;
    differs(a, b, 0, "conditions: then 0x0, now 0x30");
    b = a;
    b.in.camera[0].same_in_a_row = 3;
    differs(a, b, 0, "camera 'front': same_in_a_row: then 0, now 3");
    b = a;
    b.target_rc = -61;
    differs(a, b, 0, "target_rc: then 0, now -61");
}

// What is computed first is told first: measured, target, wanted, commanded.
static void the_cause_comes_before_the_effect(void **state)
{
    struct tick_record a = record(), b = a;

    (void)state;
    b.joint[0].commanded = 1;
    b.joint[1].wanted = 2;
    differs(a, b, 0, "joint 'elbow': wanted: then 0, now 2");
    b.joint[1].measured = 3;
    differs(a, b, 0, "joint 'elbow': measured: then 0, now 3");
}

static void bits_and_tolerances(void **state)
{
    struct tick_record a = record(), b = a;
    char text[400];

    (void)state;
    b.joint[0].target = -0.0;
    differs(a, b, 0, "joint 'shoulder': target: then 0, now -0");
    assert_false(replay_compare_tick(&robot, &a, &b, 1e-5, text));
    b.joint[0].target = 1e-5;
    assert_false(replay_compare_tick(&robot, &a, &b, 1e-5, text));
    b.joint[0].target = 1.1e-5;
    assert_true(replay_compare_tick(&robot, &a, &b, 1e-5, text));
    b.joint[0].target = (double)NAN;
    assert_true(replay_compare_tick(&robot, &a, &b, 1e-5, text));
    a.joint[0].target = -(double)NAN;
    assert_false(replay_compare_tick(&robot, &a, &b, 1e-5, text));
    a = record();
    b = a;
    b.sequence = 1; // a number has no tolerance
    assert_true(replay_compare_tick(&robot, &a, &b, 1e-5, text));
}

static void rows_are_named(void **state)
{
    const struct tape_chunk c = {.number = 7, .rows = 2, .joints = 2};
    float a[4] = {0, 1, 2, 3}, b[4] = {0, 1, 2, 3};
    char text[400];

    (void)state;
    assert_false(replay_compare_rows(&robot, &c, a, b, 0, text));
    b[3] = 3.5f;
    assert_true(replay_compare_rows(&robot, &c, a, b, 0, text));
    assert_string_equal(text, "chunk 7, row 1, joint 'elbow': then 3, now 3.5");
    assert_false(replay_compare_rows(&robot, &c, a, b, 0.6, text));
    b[3] = NAN;
    assert_true(replay_compare_rows(&robot, &c, a, b, 0.6, text));
}

static void inputs_are_named(void **state)
{
    struct tape_input a = {.number = 9, .stream = 1}, b = a;
    char text[400];

    (void)state;
    assert_false(replay_compare_input(&robot, &a, &b, text));
    b.outcome = TAPE_REFUSED;
    assert_true(replay_compare_input(&robot, &a, &b, text));
    assert_string_equal(text, "input 9 of front: outcome: then 0, now 1");
    a.stream = b.stream = 0;
    assert_true(replay_compare_input(&robot, &a, &b, text));
    assert_string_equal(text, "input 9 of joint_states: outcome: then 0, now 1");
}

static void a_command_that_did_not_leave(void **state)
{
    char text[400];
    double largest_rad = 0;

    (void)state;
    assert_true(replay_compare_command("\x08\x01", 2, NULL, 0, 0, &largest_rad, text));
    assert_string_equal(text, "none left the outbox this time");
}

// ---- what if ---------------------------------------------------------------------------------

static void sums_are_right(void **state)
{
    struct whatif *w = calloc(1, sizeof *w);

    (void)state;
    for (int i = 0; i < 10; i++) {
        struct tick_record a = record(), b;

        a.in.now_ns = NS_PER_S + i * NS_PER_MS;
        b = a;
        b.joint[1].target = i == 4 ? -0.5 : 0.1;
        b.joint[1].commanded = 0.2;
        b.published = i != 3; // then nothing can be said of its command
        if (i == 7)
            a.joint[1].target = (double)NAN; // nor of a target that is none
        a.joint[0].limit = i < 2 ? GUARD_VELOCITY : GUARD_NONE;
        b.joint[0].limit = i < 5 ? GUARD_POSITION : GUARD_NONE;
        b.joint[0].seam = i == 6 ? 0.25 : 0.00001;
        b.mode = i >= 8 ? LADDER_HOLD : LADDER_RUNNING;
        whatif_tick(w, &a, &b);
    }
    assert_int_equal(w->ticks, 10);
    assert_int_equal(w->joint[1].target.n, 9);
    assert_true(w->joint[1].target.largest == 0.5);
    assert_int_equal(w->joint[1].target.at_ns, 4 * NS_PER_MS);
    assert_true(fabs(w->joint[1].target.squares - (0.25 + 8 * 0.01)) < 1e-12);
    assert_int_equal(w->joint[1].command.n, 9);
    assert_int_equal(w->joint[0].limited_then, 2);
    assert_int_equal(w->joint[0].limited_now, 5);
    assert_int_equal(w->joint[0].seams_now, 1);
    assert_true(w->joint[0].largest_seam_now == 0.25 && w->joint[0].seams_then == 0);
    assert_int_equal(w->apart, 2);
    assert_int_equal(w->apart_ns, 8 * NS_PER_MS);
    free(w);
}

static void it_is_told_to_people_and_programs(void **state)
{
    struct whatif *w = calloc(1, sizeof *w);
    struct tick_record a = record(), b = a;
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    json_t *all, *j;

    (void)state;
    b.joint[0].target = 0.125;
    b.mode = LADDER_STOPPING;
    whatif_tick(w, &a, &b);
    whatif_print(w, names, f);
    fclose(f);
    assert_non_null(strstr(text, "shoulder"));
    assert_non_null(strstr(text, "0.12500"));
    assert_non_null(strstr(text, "Open loop"));
    assert_non_null(strstr(text, ladder_state_name(LADDER_STOPPING)));
    free(text);
    all = whatif_json(w, names);
    assert_non_null(all);
    j = json_array_get(json_object_get(all, "joints"), 0);
    assert_string_equal(json_string_value(json_object_get(j, "name")), "shoulder");
    assert_true(json_real_value(
                    json_object_get(json_object_get(j, "target"), "largest")) == 0.125);
    json_decref(all);
    free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_difference_has_its_name_and_both_values),
        cmocka_unit_test(the_cause_comes_before_the_effect),
        cmocka_unit_test(bits_and_tolerances),
        cmocka_unit_test(rows_are_named),
        cmocka_unit_test(inputs_are_named),
        cmocka_unit_test(a_command_that_did_not_leave),
        cmocka_unit_test(sums_are_right),
        cmocka_unit_test(it_is_told_to_people_and_programs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
