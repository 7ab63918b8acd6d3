// spool: what goes in comes out, whole and in order, or is refused and counted.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/spool.h"

#define LEAST 4096

static uint64_t seed;
static uint64_t draw(uint64_t below)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (seed >> 33) % below;
}

// Byte i of record number n, whoever asks.
static unsigned char byte_of(uint64_t n, size_t i)
{
    return (unsigned char)(n * 31 + i * 7 + (i >> 8));
}

static void fill(unsigned char *to, uint64_t n, size_t size)
{
    for (size_t i = 0; i < size; i++)
        to[i] = byte_of(n, i);
}

static bool holds(const unsigned char *from, uint64_t n, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (from[i] != byte_of(n, i))
            return false;
    return true;
}

// ---- against a queue that is naive -----------------------------------------------------------

// It knows a record's size and number, and walks the whole memory in words to find out what is
// free: nothing of positions that never wrap.
#define MOST_RECORDS 4096
struct naive {
    size_t words; // of the memory
    size_t write; // next word
    int n;
    struct {
        uint64_t number;
        size_t size, first, words; // as it lies, with what was skipped before it
    } of[MOST_RECORDS];
    uint64_t lost, lost_bytes;
};

static size_t used(const struct naive *q)
{
    size_t sum = 0;

    for (int i = 0; i < q->n; i++)
        sum += q->of[i].words;
    return sum;
}

// Where it would lie, or SIZE_MAX.
static size_t naive_push(struct naive *q, uint64_t number, size_t size)
{
    size_t need = 1 + (size + 7) / 8, left = q->words - q->write, skip = 0;

    if (need > left)
        skip = left;
    if (size > q->words * 8 / 4 || used(q) + skip + need > q->words ||
        q->n == MOST_RECORDS) {
        q->lost++;
        q->lost_bytes += size;
        return SIZE_MAX;
    }
    q->of[q->n].number = number;
    q->of[q->n].size = size;
    q->of[q->n].words = skip + need;
    q->of[q->n].first = skip > 0 ? 1 : q->write + 1;
    q->write = (skip > 0 ? 0 : q->write) + need;
    if (q->write == q->words)
        q->write = 0;
    return q->of[q->n++].first;
}

static void naive_pop(struct naive *q)
{
    memmove(&q->of[0], &q->of[1], (size_t)(--q->n) * sizeof q->of[0]);
}

static void push_both(struct spool *s, struct naive *q, uint64_t number, size_t size)
{
    unsigned char *to = spool_reserve(s, size);
    size_t first = naive_push(q, number, size);

    assert_int_equal(to == NULL, first == SIZE_MAX);
    if (to != NULL) {
        assert_true(to == s->data + first * 8);
        assert_int_equal((uintptr_t)to % 8, 0);
        assert_true(to + size <= s->data + s->capacity); // in one piece
        fill(to, number, size);
        spool_commit(s);
    }
    assert_int_equal(spool_lost(s), q->lost);
    assert_int_equal(s->lost_bytes, q->lost_bytes);
}

static void pop_both(struct spool *s, struct naive *q)
{
    size_t size = 0;
    const unsigned char *from = spool_peek(s, &size);

    assert_int_equal(from == NULL, q->n == 0);
    if (from == NULL) {
        spool_release(s); // of nothing: nothing
        return;
    }
    assert_int_equal(size, q->of[0].size);
    assert_true(from == s->data + q->of[0].first * 8);
    assert_true(holds(from, q->of[0].number, size));
    assert_true(spool_peek(s, &size) == from); // until it is released
    spool_release(s);
    naive_pop(q);
}

static void as_a_naive_queue(void **state)
{
    (void)state;
    static struct naive q;
    struct spool s;

    for (uint64_t run = 1; run <= 60; run++) {
        size_t capacity = (size_t)LEAST << (run % 3),
               most = run % 5 == 0 ? 40 : capacity / 3;
        uint64_t eager = 1 + run % 7;

        seed = run;
        memset(&q, 0, sizeof q);
        q.words = capacity / 8;
        assert_int_equal(spool_init(&s, capacity), 0);
        assert_int_equal(s.capacity, capacity);
        for (uint64_t i = 0; i < 6000; i++) {
            if (draw(8) < eager)
                push_both(&s, &q, i, draw(most + 1));
            else
                pop_both(&s, &q);
            assert_int_equal(spool_waiting(&s), used(&q) * 8);
        }
        assert_true(q.lost > 0 || eager <= 4);
        while (q.n > 0)
            pop_both(&s, &q);
        pop_both(&s, &q);
        spool_free(&s);
    }
}

// ---- edges -----------------------------------------------------------------------------------

static void refuses_what_is_too_large(void **state)
{
    (void)state;
    struct spool s;
    size_t size = 0;

    assert_int_equal(spool_init(&s, 5000), 0); // rounded up
    assert_int_equal(s.capacity, 8192);
    assert_int_equal((uintptr_t)s.data % 64, 0);
    assert_non_null(spool_reserve(&s, 2048));
    assert_null(spool_reserve(&s, 2049));
    assert_null(spool_reserve(&s, SIZE_MAX));
    assert_null(spool_reserve(&s, SIZE_MAX - 7));
    assert_int_equal(spool_lost(&s), 3);
    assert_null(spool_peek(&s, &size)); // never committed
    spool_free(&s);
    assert_true(spool_init(&s, SIZE_MAX) < 0);
    assert_int_equal(spool_init(&s, 0), 0);
    assert_int_equal(s.capacity, LEAST);
    spool_free(&s);
}

// To the last byte: 4096 are 16 records of 248 with their words.
static void full_is_full(void **state)
{
    (void)state;
    struct spool s;
    size_t size = 0;

    assert_int_equal(spool_init(&s, LEAST), 0);
    for (int turn = 0; turn < 3; turn++) {
        for (uint64_t i = 0; i < 16; i++) {
            unsigned char *to = spool_reserve(&s, 248);

            assert_non_null(to);
            fill(to, i, 248);
            spool_commit(&s);
        }
        assert_int_equal(spool_waiting(&s), LEAST);
        assert_null(spool_reserve(&s, 0));
        for (uint64_t i = 0; i < 16; i++) {
            const void *from = spool_peek(&s, &size);

            assert_true(from != NULL && size == 248 && holds(from, i, size));
            spool_release(&s);
        }
        assert_int_equal(spool_waiting(&s), 0);
    }
    spool_free(&s);
}

// A record reserved, and never committed, across the end of the memory or not, has left no trace.
static void a_reserve_is_a_thought(void **state)
{
    (void)state;
    struct spool s;
    size_t size = 0;

    assert_int_equal(spool_init(&s, LEAST), 0);
    for (uint64_t i = 0; i < 500; i++) {
        unsigned char *to = spool_reserve(&s, 1000); // skips the rest now and then

        assert_non_null(to);
        fill(to, ~i, 1000);
        to = spool_reserve(&s, 100);
        assert_non_null(to);
        fill(to, i, 100);
        assert_null(spool_peek(&s, &size));
        spool_commit(&s);
        assert_true(holds(spool_peek(&s, &size), i, 100) && size == 100);
        spool_release(&s);
    }
    assert_int_equal(spool_lost(&s), 0);
    spool_free(&s);
}

static void touching_changes_nothing(void **state)
{
    (void)state;
    struct spool s;
    size_t size = 0;
    unsigned char *to;

    assert_int_equal(spool_init(&s, 1 << 16), 0);
    to = spool_reserve(&s, 16000);
    fill(to, 3, 16000);
    spool_commit(&s);
    spool_touch(&s);
    assert_true(holds(spool_peek(&s, &size), 3, 16000) && size == 16000);
    spool_free(&s);
}

// ---- two threads -----------------------------------------------------------------------------

#define MANY 400000
static void *write_many(void *arg)
{
    struct spool *s = arg;

    for (uint64_t i = 1; i <= MANY; i++) {
        size_t size = 8 + (i * 37) % 500;
        unsigned char *to = spool_reserve(s, size);

        if (to == NULL)
            continue;
        memset(to + 8, (int)(i & 0xff), size - 8);
        memcpy(to, &i, sizeof i);
        spool_commit(s);
    }
    return NULL;
}

static bool all_bytes(const unsigned char *from, size_t n, unsigned char c)
{
    return n == 0 || (from[0] == c && memcmp(from, from + 1, n - 1) == 0);
}

static void across_threads(void **state)
{
    (void)state;
    struct spool s;
    pthread_t t;
    uint64_t last = 0, got = 0;

    assert_int_equal(spool_init(&s, LEAST), 0);
    assert_int_equal(pthread_create(&t, NULL, write_many, &s), 0);
    // Ends by count: each record is either received or counted as lost.
    while (got + spool_lost(&s) < MANY || spool_waiting(&s) > 0) {
        size_t size;
        const unsigned char *from = spool_peek(&s, &size);
        uint64_t number;

        if (from == NULL)
            continue;
        memcpy(&number, from, sizeof number);
        if (number <= last || size != 8 + (number * 37) % 500 ||
            !all_bytes(from + 8, size - 8, (unsigned char)number))
            fail_msg("after %lu came %lu, %zu bytes", (unsigned long)last,
                     (unsigned long)number, size);
        last = number;
        got++;
        spool_release(&s);
    }
    pthread_join(t, NULL);
    assert_int_equal(got + spool_lost(&s), MANY);
    assert_true(got > 0);
    spool_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_a_naive_queue),
        cmocka_unit_test(refuses_what_is_too_large),
        cmocka_unit_test(full_is_full),
        cmocka_unit_test(a_reserve_is_a_thought),
        cmocka_unit_test(touching_changes_nothing),
        cmocka_unit_test(across_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
