// bucket: against a naive twin that counts tokens one by one, and what becomes of many users.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "daemon/bucket.h"

#define MS NS_PER_MS
static const struct bucket_rate rate = {20 * MS, 100}; // 50 a second

static void a_full_bucket_holds_its_burst_and_no_more(void **state)
{
    struct bucket b = {0};

    (void)state;
    for (int i = 0; i < 100; i++)
        assert_true(bucket_take(&b, &rate, 1, 5 * NS_PER_S));
    assert_false(bucket_take(&b, &rate, 1, 5 * NS_PER_S));
    assert_int_equal(bucket_wait(&b, &rate, 1, 5 * NS_PER_S), 20 * MS);
    assert_false(bucket_take(&b, &rate, 1, 5 * NS_PER_S + 20 * MS - 1));
    assert_true(bucket_take(&b, &rate, 1, 5 * NS_PER_S + 20 * MS));
    assert_false(bucket_take(&b, &rate, 1, 5 * NS_PER_S + 20 * MS));
    // It never holds more than it can.
    for (int i = 0; i < 100; i++)
        assert_true(bucket_take(&b, &rate, 1, 3600 * NS_PER_S));
    assert_false(bucket_take(&b, &rate, 1, 3600 * NS_PER_S));
}

// Tokens in nanoseconds, filled by counting time.
struct twin {
    int64_t level, last;
};

static bool twin_take(struct twin *t, int tokens, ns_t now)
{
    t->level += now - t->last;
    t->last = now;
    if (t->level > 100 * 20 * MS)
        t->level = 100 * 20 * MS;
    if (t->level < tokens * 20 * MS)
        return false;
    t->level -= tokens * 20 * MS;
    return true;
}

static void a_million_takes_are_those_of_the_twin(void **state)
{
    struct bucket b = {0};
    struct twin t = {100 * 20 * MS, 0};
    ns_t now = 0;
    int granted = 0;

    (void)state;
    srand(1);
    for (int i = 0; i < 1000000; i++) {
        int tokens = rand() % 4 == 0 ? rand() % 101 : 1;
        ns_t wait;
        now += rand() % 3 ? 0 : rand() % (int)(60 * MS);
        wait = bucket_wait(&b, &rate, tokens, now);
        bool got = bucket_take(&b, &rate, tokens, now);
        assert_int_equal(got, twin_take(&t, tokens, now));
        assert_int_equal(got, wait == 0);
        granted += got;
    }
    assert_true(granted > 100000 && granted < 900000);
}

static void each_user_has_a_bucket_of_his_own(void **state)
{
    struct buckets all = {0};

    (void)state;
    for (int i = 0; i < 100; i++)
        assert_true(bucket_take(buckets_of(&all, 1000, 0), &rate, 1, 0));
    assert_false(bucket_take(buckets_of(&all, 1000, 0), &rate, 1, 0));
    assert_true(bucket_take(buckets_of(&all, 0, 0), &rate, 1, 0));
    assert_false(bucket_take(buckets_of(&all, 1000, 0), &rate, 1, 0));
}

// Somebody with ten thousand users gets one bucket more than the table has, not ten thousand;
// and no number of them makes the first one's bucket full again.
static void many_users_share(void **state)
{
    struct buckets all = {0};
    int granted = 0;

    (void)state;
    for (int i = 0; i < 100; i++)
        bucket_take(buckets_of(&all, 7, 0), &rate, 1, 0);
    for (uid_t u = 100; u < 10100; u++)
        for (int i = 0; i < 3; i++)
            granted += bucket_take(buckets_of(&all, u, 0), &rate, 1, 0);
    assert_int_equal(granted, (BUCKET_USERS - 1) * 3 + 100);
    assert_false(bucket_take(buckets_of(&all, 7, 0), &rate, 1, 0));
    // Those that are full are forgotten.
    assert_true(bucket_take(buckets_of(&all, 50000, 60 * MS), &rate, 100, 60 * MS));
    assert_false(bucket_take(buckets_of(&all, 7, 0), &rate, 1, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_bucket_holds_its_burst_and_no_more),
        cmocka_unit_test(a_million_takes_are_those_of_the_twin),
        cmocka_unit_test(each_user_has_a_bucket_of_his_own),
        cmocka_unit_test(many_users_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
