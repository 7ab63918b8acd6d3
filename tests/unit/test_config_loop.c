// What of the configuration decides how a new policy's chunks take over.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/config_loop.h"

static void how_a_new_policy_takes_over(void **state)
{
    static const char text[] =
        "runtime: /tmp/r\npolicy: {directory: .}\ncontrol: {rate_hz: 100}\n"
        "joint_state: {rate_hz: 50}\njoints:\n"
        "  a: {position: [-1, 2], velocity: 3, acceleration: 4}\n";
    struct policy_info p = {.chunk_size = 100, .n_action_steps = 50, .action_dim = 1};
    struct config_sidecar side = {.rate_hz = 25, .n_state = 1, .n_action = 1};
    struct config_error err = {""};
    static struct loop_config l;
    static struct config cfg;

    (void)state;
    if (config_parse(&cfg, "robot.yaml", text, strlen(text), &err) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(config_loop(&cfg, &side, &p, &l, &err), 0);
    assert_int_equal(l.chunks.bridge_ns, 500 * NS_PER_MS); // swap.fade_ms
    // Each chunk may be as old as it is long, whatever its step.
    assert_true(l.chunks.own_age && l.chunks.max_age_ns == 4 * NS_PER_S);
    cfg.swap.fade_ms = 120.5;
    cfg.inference.max_age_ms = 300;
    assert_int_equal(config_loop(&cfg, &side, &p, &l, &err), 0);
    assert_int_equal(l.chunks.bridge_ns, 120500 * NS_PER_US);
    assert_true(!l.chunks.own_age && l.chunks.max_age_ns == 300 * NS_PER_MS);
    cfg.swap.fade_ms = 0;
    assert_int_equal(config_loop(&cfg, &side, &p, &l, &err), 0);
    assert_int_equal(l.chunks.bridge_ns, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(how_a_new_policy_takes_over)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
