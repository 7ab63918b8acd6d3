// slot: newest value, never torn, with a writer that does not wait.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/slot.h"

static void newest_wins(void **state)
{
    (void)state;
    struct slot s;
    char out[13] = "", in[13];

    assert_int_equal(slot_init(&s, sizeof in),
                     0); // a size that is no whole number of words
    assert_int_equal(slot_read(&s, out), 0);
    assert_int_equal(slot_count(&s), 0);
    for (int i = 1; i <= 20; i++) {
        memset(in, 'a' + i, sizeof in);
        slot_write(&s, in);
        assert_int_equal(slot_count(&s), i);
        assert_int_equal(slot_read(&s, out), i);
        assert_memory_equal(in, out, sizeof in);
        assert_int_equal(slot_read(&s, out), i); // reading takes nothing away
    }
    slot_free(&s);
    slot_free(&s);
}

#define WORDS  200
#define WRITES 100000

struct big {
    uint64_t word[WORDS];
    char tail;
};

static void *write_many(void *arg)
{
    struct big b;

    for (uint64_t n = 1; n <= WRITES; n++) {
        for (int i = 0; i < WORDS; i++)
            b.word[i] = n * (uint64_t)(i + 1);
        b.tail = (char)n;
        slot_write(arg, &b);
    }
    return NULL;
}

struct reader {
    struct slot *slot;
    uint64_t read, lost, torn, back;
};

static void *read_many(void *arg)
{
    struct reader *r = arg;
    struct big b;
    uint64_t last = 0;

    while (last < WRITES) {
        uint64_t n = slot_read(r->slot, &b);

        if (n == 0) {
            r->lost++;
            continue;
        }
        r->read++;
        r->back += n < last;
        last = n;
        for (int i = 0; i < WORDS; i++)
            r->torn += b.word[i] != n * (uint64_t)(i + 1);
        r->torn += b.tail != (char)n;
    }
    return NULL;
}

static void never_torn(void **state)
{
    (void)state;
    struct slot s;
    pthread_t writer, t[2];
    struct reader r[2] = {{.slot = &s}, {.slot = &s}};

    assert_int_equal(slot_init(&s, sizeof(struct big)), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&t[i], NULL, read_many, &r[i]), 0);
    assert_int_equal(pthread_create(&writer, NULL, write_many, &s), 0);
    pthread_join(writer, NULL);
    for (int i = 0; i < 2; i++) {
        pthread_join(t[i], NULL);
        assert_true(r[i].read > 100);
        assert_int_equal(r[i].torn, 0);
        assert_int_equal(r[i].back, 0);
    }
    slot_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(newest_wins),
        cmocka_unit_test(never_torn),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
