// check on operators and swaps: who may act and read, what can be swapped to, and whether anybody
// else could put a policy there.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/unit/robot_files.h"

// dir/policies with a policy that looks whole and one that does not.
static void make_policies(char *policies, size_t size)
{
    static const char *const file[] = {"config.json", "policy.yaml", "model.safetensors"};
    char path[400];

    snprintf(policies, size, "%s/policies", dir);
    assert_int_equal(mkdir(policies, 0755), 0);
    snprintf(path, sizeof path, "%s/half", policies);
    assert_int_equal(mkdir(path, 0755), 0);
    snprintf(path, sizeof path, "%s/whole", policies);
    assert_int_equal(mkdir(path, 0755), 0);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/whole/%s", policies, file[i]);
        put(path, "");
    }
}

static void remove_policies(const char *policies)
{
    char command[400];

    assert_non_null(strstr(policies, "/policies"));
    snprintf(command, sizeof command, "rm -r '%s'", policies);
    assert_int_equal(system(command), 0);
}

static void check_tells_who_may_act_and_what_can_be_swapped_to(void **state)
{
    char *said = NULL, policies[320], section[600];
    static const char *const facts[] = {
        "Operators and swaps",
        "/control, open to everybody; who may not read is told so and closed",
        "root, the user who runs actd, root (uid 0), 4242424 (without a name here)\n",
        "may read        those who may act, @root (gid 0",
        "policies: 2, of which 1 can be swapped to\n",
        "max. difference 0.25 rad, more needs --force; 7 trials; fade 300 ms\n",
        "metrics         http://127.0.0.1:9464/metrics, and `actctl metrics`\n"};

    (void)state;
    write_good();
    make_policies(policies, sizeof policies);
    snprintf(section, sizeof section,
             "operators:\n  act: [root, \"4242424\"]\n  read: \"@root\"\n"
             "swap:\n  directory: policies\n  max_difference: 0.25\n  trials: 7\n"
             "  fade_ms: 300\nmetrics:\n  listen: 127.0.0.1:9464\nchunks:\n");
    edit(robot, "chunks:\n", section);
    assert_int_equal(check(&said), EX_OK);
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        has(said, facts[i]);
    assert_null(strstr(said, "swap.directory"));
    edit(robot, "[root, \"4242424\"]", "no-such-user-here"); // run would refuse it
    assert_int_equal(check(&said), EX_CONFIG);
    has(said, "no-such-user-here (not on this machine: nobody)");
    has(said, "REFUSED: ");
    has(said, "this machine knows no user 'no-such-user-here'; create it");
    remove_policies(policies);
    free(said);
}

static void the_defaults_for_operators_are_told(void **state)
{
    char *said = NULL;

    (void)state;
    write_good();
    assert_int_equal(check(&said), EX_OK);
    has(said, "may act         root, the user who runs actd, @actd-operators (");
    has(said, "may read        those who may act, @actd-clients (");
    assert_true(strstr(said, "open to members of actd-clients alone") ||
                strstr(said, "actd alone: no group actd-clients"));
    has(said, "none to swap to: swap.directory is not set");
    has(said, "`actctl metrics` alone: metrics.listen is not set");
    free(said);
}

static void a_swap_directory_of_others_is_a_warning(void **state)
{
    char *said = NULL, policies[320];

    (void)state;
    write_good();
    edit(robot, "chunks:\n", "swap:\n  directory: policies\nchunks:\n");
    assert_int_equal(check(&said), EX_OK);
    has(said, "swap.directory ");
    has(said,
        "can not be looked at (No such file or directory): nothing can be swapped to");
    make_policies(policies, sizeof policies);
    assert_int_equal(chmod(policies, 0775), 0);
    assert_int_equal(check(&said), EX_OK);
    has(said, "is writable for its group: whoever can put a policy there could drive");
    has(said, "policies: refused, see the warnings\n");
    assert_int_equal(chmod(policies, 0757), 0);
    assert_int_equal(check(&said), EX_OK);
    has(said, "is writable for everybody");
    has(said, "chmod go-w /");
    assert_int_equal(chmod(policies, 0755), 0);
    assert_int_equal(check(&said), EX_OK);
    assert_null(strstr(said, "swap.directory /"));
    if (geteuid() == 0) {
        assert_int_equal(chown(policies, 4242, (gid_t)-1), 0);
        assert_int_equal(check(&said), EX_OK);
        has(said, "belongs to user 4242, neither root nor who asks");
        has(said, "sudo chown root /");
    }
    remove_policies(policies);
    free(said);
}

#define TEST(f) cmocka_unit_test_setup(f, setup)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(check_tells_who_may_act_and_what_can_be_swapped_to),
        TEST(the_defaults_for_operators_are_told),
        TEST(a_swap_directory_of_others_is_a_warning),
    };

    return cmocka_run_group_tests(tests, setup_all, teardown_all);
}
