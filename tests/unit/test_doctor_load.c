// doctor on load: how many programs want how many cores, and whether the loop's is one of them.
#include "tests/unit/doctor_scene.h"

// More programs than cores, and no core kept for the loop. What counts are the machine's cores,
// not those that this process may use.
static void more_programs_than_cores_hurt(void **state)
{
    static const struct {
        const char *online, *load;
        enum doctor_severity severity;
        const char *says;
    } machines[] = {
        {"0-1\n", "2.01 1.0 1.0 1/2 3\n", DOCTOR_HURTS, "2.0 programs want 2 cores"},
        {"0-1\n", "2.00 9.0 9.0 1/2 3\n", DOCTOR_GOOD, "2.0 programs want 2 cores"},
        {"0-3,8,10-11\n", "6.90 1 1 1/2 3\n", DOCTOR_GOOD, "want 7 cores"},
        {"0-3,8,10-11\n", "7.10 1 1 1/2 3\n", DOCTOR_HURTS, "want 7 cores"},
        {"0\n", "1.50 1 1 1/2 3\n", DOCTOR_HURTS, "1.5 programs want 1 core:"},
        {NULL, "2.50 1 1 1/2 3\n", DOCTOR_HURTS, "want 2 cores"}, // as the process sees
        {"3-0\n", "2.50 1 1 1/2 3\n", DOCTOR_HURTS, "want 2 cores"},
        {"0-99999999999\n", "2.50 1 1 1/2 3\n", DOCTOR_HURTS, "want 2 cores"},
    };

    (void)state;
    put_file(CPUS "/isolated", "\n");
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
        put_file(CPUS "/online", machines[i].online);
        put_file("/proc/loadavg", machines[i].load);
        look(NULL, NULL);
        says("load", machines[i].severity, machines[i].says,
             machines[i].severity == DOCTOR_HURTS
                 ? "reserve cores (isolcpus, control.cpu)"
                 : "");
    }
    put_file(CPUS "/isolated", "0\n"); // kept, and the loop is on another
    look(NULL, NULL);
    says("load", DOCTOR_HURTS, "programs want", "isolcpus");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(more_programs_than_cores_hurt, scene_new,
                                        scene_free),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
