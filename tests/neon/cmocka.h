// cmocka, as far as the kernels' tests need it: a cross compiler has no library of it, and these
// run as static binaries under an emulator. Says what cmocka says with CMOCKA_MESSAGE_OUTPUT=TAP.
#ifndef ACTD_TESTS_NEON_CMOCKA_H
#define ACTD_TESTS_NEON_CMOCKA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct CMUnitTest {
    const char *name;
    void (*run)(void **);
};

static jmp_buf cmocka_out; // 1: failed, 2: skipped

#define cmocka_unit_test(f) \
    {                       \
#f, f               \
    }

__attribute__((unused, noreturn)) static void skip(void)
{
    longjmp(cmocka_out, 2);
}

__attribute__((unused, noreturn, format(printf, 3, 4))) static void
cmocka_failed(const char *file, int line, const char *format, ...)
{
    va_list args;

    printf("# %s:%d: ", file, line);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
    longjmp(cmocka_out, 1);
}

#define print_message(...)               (printf("# "), printf(__VA_ARGS__))
#define fail_msg(...)                    cmocka_failed(__FILE__, __LINE__, __VA_ARGS__)
#define fail()                           fail_msg("failed")
#define assert_true(x)                   ((x) ? (void)0 : fail_msg("%s", #x))
#define assert_false(x)                  assert_true(!(x))
#define assert_null(p)                   assert_true((p) == NULL)
#define assert_non_null(p)               assert_true((p) != NULL)
#define assert_ptr_equal(a, b)           assert_true((const void *)(a) == (const void *)(b))
#define assert_ptr_not_equal(a, b)       assert_true((const void *)(a) != (const void *)(b))
#define assert_string_equal(a, b)        assert_true(strcmp(a, b) == 0)
#define assert_memory_equal(a, b, n)     assert_true(memcmp(a, b, n) == 0)
#define assert_memory_not_equal(a, b, n) assert_true(memcmp(a, b, n) != 0)
#define assert_int_equal(a, b)      \
    ((intmax_t)(a) == (intmax_t)(b) \
         ? (void)0                  \
         : fail_msg("%s: %jd, not %jd", #a, (intmax_t)(a), (intmax_t)(b)))
#define assert_int_not_equal(a, b) assert_true((intmax_t)(a) != (intmax_t)(b))
#define assert_float_equal(a, b, off) \
    assert_true((a) - (b) <= (float)(off) && (b) - (a) <= (float)(off))
#define assert_in_range(x, low, high) \
    assert_true((intmax_t)(x) >= (intmax_t)(low) && (intmax_t)(x) <= (intmax_t)(high))

static int cmocka_run(const struct CMUnitTest *test)
{
    void *state = NULL;
    int how = setjmp(cmocka_out);

    if (how == 0)
        test->run(&state);
    return how;
}

typedef int cmocka_fixture(void **);

static int cmocka_run_all(const struct CMUnitTest *test, int n, cmocka_fixture *setup,
                          cmocka_fixture *teardown)
{
    void *state = NULL;
    int failed = setup ? setup(&state) != 0 : 0;

    for (int i = 0; i < n && failed == 0; i++) {
        int how = cmocka_run(&test[i]);
        printf("%sok %d - %s%s\n", how == 1 ? "not " : "", i + 1, test[i].name,
               how == 2 ? " # SKIP" : "");
        failed += how == 1;
    }
    if (teardown)
        teardown(&state);
    return failed;
}

#define cmocka_run_group_tests(tests, setup, teardown) \
    cmocka_run_all(tests, (int)(sizeof(tests) / sizeof *(tests)), setup, teardown)

#endif
