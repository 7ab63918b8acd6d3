// faults reads the ladder's table of faults to its end and no further. The table is this
// file's: two faults, and behind them one that does not count. The ladder's own stays out
// of the program.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/faults.h"

#define FIRST  LADDER_BIT(1)
#define LAST   LADDER_BIT(2)
#define BEYOND LADDER_BIT(3)

const struct ladder_fault ladder_fault[] = {
    {FIRST, REASON_NO_CHUNK, LADDER_HOLDS},
    {LAST, REASON_TICK_GAP, LADDER_STOPS},
    {BEYOND, REASON_ESTOP, LADDER_STOPS},
};
const int ladder_faults = 2;

static void from_the_first_to_the_last(void **state)
{
    (void)state;
    struct faults f = {0};

    assert_int_equal(faults_update(&f, FIRST, true, 1), UINT64_C(1) << REASON_NO_CHUNK);
    assert_int_equal(faults_update(&f, FIRST | LAST, true, 2), UINT64_C(1)
                                                                   << REASON_TICK_GAP);
    assert_int_equal(f.latched, UINT64_C(1) << REASON_TICK_GAP);
}

static void and_not_beyond(void **state)
{
    (void)state;
    struct faults f = {0};

    assert_int_equal(faults_update(&f, BEYOND, true, 1), 0);
    assert_int_equal(f.active | f.stopping | f.latched, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_the_first_to_the_last),
        cmocka_unit_test(and_not_beyond),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
