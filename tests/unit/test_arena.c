// The arena: measuring and taking agree, memory is aligned, zero and bounded, and sizes
// that do not fit are noticed instead of wrapping round.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "policy/arena.h"

struct places {
    float *a, *b;
    char *c;
    double *d;
};

static void lay_out(struct places *p, struct arena *a)
{
    p->a = arena_floats(a, 1);
    p->b = arena_floats(a, 1000);
    p->c = arena_take(a, 3, 1);
    p->d = arena_take(a, 0, sizeof(double)); // empty is fine and takes nothing
}

static void test_two_passes(void **unused)
{
    (void)unused;
    struct arena a = {0};
    struct places dry, real;
    lay_out(&dry, &a);
    assert_null(dry.a);
    assert_null(dry.c);
    size_t measured = a.used;
    assert_int_equal(measured, 64 + 4032 + 64);
    assert_int_equal(arena_reserve(&a), 0);
    assert_int_equal(a.size, measured);
    lay_out(&real, &a);
    assert_int_equal(a.used, measured);
    assert_false(a.overflow);
    assert_int_equal((uintptr_t)real.a % ARENA_ALIGN, 0);
    assert_int_equal((uintptr_t)real.b % ARENA_ALIGN, 0);
    assert_ptr_equal((char *)real.b, (char *)real.a + 64);
    assert_ptr_equal(real.c, (char *)real.b + 4032);
    for (int i = 0; i < 1000; i++)
        assert_true(real.b[i] == 0.0f);
    real.b[999] = 1.0f;
    real.c[2] = 1;
    arena_release(&a);
    assert_null(a.base);
    arena_release(&a);
}

static void test_full(void **unused)
{
    (void)unused;
    struct arena a = {0};
    (void)arena_floats(&a, 16);
    assert_int_equal(arena_reserve(&a), 0);
    assert_non_null(arena_floats(&a, 16));
    assert_false(a.overflow);
    assert_null(arena_floats(&a, 1));
    assert_true(a.overflow);
    assert_int_equal(arena_reserve(&a), -EINVAL); // there is one already
    arena_release(&a);
}

static void test_sizes_that_wrap(void **unused)
{
    (void)unused;
    const size_t bad[][2] = {{SIZE_MAX / 2, 4}, {SIZE_MAX, 1}, {SIZE_MAX - 32, 1}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct arena a = {0};
        assert_null(arena_take(&a, bad[i][0], bad[i][1]));
        assert_true(a.overflow);
        assert_int_equal(arena_reserve(&a), -EOVERFLOW);
        assert_null(a.base);
    }
    struct arena a = {0};
    for (int i = 0; i < 4; i++)
        (void)arena_take(&a, SIZE_MAX / 4, 1);
    assert_int_equal(arena_reserve(&a), -EOVERFLOW);
}

static void test_more_than_there_is(void **unused)
{
    (void)unused;
    struct arena a = {0};
    (void)arena_take(&a, (size_t)1 << 46, 1); // 64 TiB
    assert_int_equal(arena_reserve(&a), -ENOMEM);
    assert_null(a.base);
    arena_release(&a);
}

static void test_empty(void **unused)
{
    (void)unused;
    struct arena a = {0};
    assert_int_equal(arena_reserve(&a), 0);
    assert_non_null(a.base);
    arena_release(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_passes),      cmocka_unit_test(test_full),
        cmocka_unit_test(test_sizes_that_wrap), cmocka_unit_test(test_more_than_there_is),
        cmocka_unit_test(test_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
