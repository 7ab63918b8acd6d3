// ring: in order, nothing lost but what is counted, one writer and one reader at a time.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/ring.h"

static void fills_and_empties(void **state)
{
    (void)state;
    struct ring r;
    char out[5];

    assert_int_equal(ring_init(&r, 5, 3), 0); // rounded up to 4
    for (int turn = 0; turn < 10; turn++) {
        for (int i = 0; i < 4; i++)
            assert_true(ring_push(&r, (char[5]){(char)(turn + i)}));
        assert_false(ring_push(&r, "full"));
        assert_null(ring_reserve(&r));
        assert_int_equal(r.dropped, 2 * (turn + 1));
        for (int i = 0; i < 4; i++) {
            assert_true(ring_pop(&r, out));
            assert_int_equal(out[0], turn + i);
        }
        assert_false(ring_pop(&r, out));
        assert_null(ring_peek(&r));
    }
    ring_free(&r);
}

static void in_place(void **state)
{
    (void)state;
    struct ring r;

    assert_int_equal(ring_init(&r, 72, 2), 0);
    for (uint64_t i = 0; i < 7; i++) {
        uint64_t *to = ring_reserve(&r);
        const uint64_t *from;

        assert_non_null(to);
        assert_int_equal((uintptr_t)to % 64, 0); // a line of its own
        assert_null(ring_peek(&r));              // not in view before it is committed
        to[0] = i;
        to[8] = ~i;
        ring_commit(&r);
        from = ring_peek(&r);
        assert_true(from == ring_peek(&r) && from[0] == i && from[8] == ~i);
        ring_release(&r);
    }
    ring_free(&r);
}

#define MANY 2000000

static void *fill(void *arg)
{
    struct ring *r = arg;

    for (uint64_t i = 1; i <= MANY; i++)
        ring_push(r, &(uint64_t[3]){i, i * 3, i * 7});
    return NULL;
}

static void across_threads(void **state)
{
    (void)state;
    struct ring r;
    pthread_t t;
    uint64_t v[3], last = 0, got = 0;

    assert_int_equal(ring_init(&r, sizeof v, 64), 0);
    assert_int_equal(pthread_create(&t, NULL, fill, &r), 0);
    // Ends by count: each element is either received or counted as dropped.
    while (got + r.dropped < MANY || ring_peek(&r) != NULL) {
        if (!ring_pop(&r, v))
            continue;
        assert_true(v[0] > last && v[1] == v[0] * 3 && v[2] == v[0] * 7);
        last = v[0];
        got++;
    }
    pthread_join(t, NULL);
    assert_int_equal(got + r.dropped, MANY);
    assert_true(got > 0);
    ring_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fills_and_empties),
        cmocka_unit_test(in_place),
        cmocka_unit_test(across_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
