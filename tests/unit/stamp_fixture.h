// One sender's stamps in virtual time. One test program includes it once.
#ifndef TEST_STAMP_FIXTURE_H
#define TEST_STAMP_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "daemon/codec.h"

#define UNUSED  __attribute__((unused))
#define WALL    (INT64_C(1700000000) * NS_PER_S) // the sender's clock at our time 0
#define MS      NS_PER_MS
#define PERIOD  (10 * MS)
#define HOUR    (3600 * NS_PER_S)
#define ARMED   false // learn
#define AT_REST true

static uint64_t random_state = 1;
UNUSED static int64_t random_below(int64_t n)
{
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (int64_t)(random_state >> 33) % n;
}

UNUSED static enum codec_time map(struct codec_stamp *s, int64_t stamp, ns_t received,
                                  bool learn, ns_t *capture)
{
    enum codec_time t = codec_stamp_map(s, stamp, received, learn, capture);

    assert_true(*capture <= received);
    if (t >= CODEC_TIME_SAME)
        assert_int_equal(*capture, received);
    return t;
}

UNUSED static enum codec_time verdict(struct codec_stamp *s, int64_t stamp, ns_t received,
                                      bool learn)
{
    ns_t capture;

    return map(s, stamp, received, learn, &capture);
}

// Capture time of a message that must be accepted.
UNUSED static ns_t captured(struct codec_stamp *s, int64_t stamp, ns_t received,
                            bool learn)
{
    ns_t capture;

    assert_true(map(s, stamp, received, learn, &capture) <= CODEC_TIME_STEP);
    return capture;
}

// A second of good messages without delay; returns the time of the last.
UNUSED static ns_t begin(struct codec_stamp *s, bool learn)
{
    ns_t t = 0;

    codec_stamp_reset(s);
    for (; t <= NS_PER_S; t += PERIOD)
        assert_int_equal(captured(s, WALL + t, t, learn), t);
    return t - PERIOD;
}

#endif
