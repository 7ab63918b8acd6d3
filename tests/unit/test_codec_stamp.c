// How sender stamps become capture times: every verdict at its bounds, armed and disarmed,
// against brute-force twins, and that nothing old ever looks fresh. Virtual time throughout.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "daemon/codec.h"

#define WALL    (INT64_C(1700000000) * NS_PER_S) // the sender's clock at our time 0
#define MS      NS_PER_MS
#define PERIOD  (10 * MS)
#define HOUR    (3600 * NS_PER_S)
#define ARMED   false // learn
#define AT_REST true

static uint64_t random_state = 1;
static int64_t random_below(int64_t n)
{
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (int64_t)(random_state >> 33) % n;
}

static enum codec_time map(struct codec_stamp *s, int64_t stamp, ns_t received,
                           bool learn, ns_t *capture)
{
    enum codec_time t = codec_stamp_map(s, stamp, received, learn, capture);

    assert_true(*capture <= received);
    if (t >= CODEC_TIME_SAME)
        assert_int_equal(*capture, received);
    return t;
}

static enum codec_time verdict(struct codec_stamp *s, int64_t stamp, ns_t received,
                               bool learn)
{
    ns_t capture;

    return map(s, stamp, received, learn, &capture);
}

// Capture time of a message that must be accepted.
static ns_t captured(struct codec_stamp *s, int64_t stamp, ns_t received, bool learn)
{
    ns_t capture;

    assert_true(map(s, stamp, received, learn, &capture) <= CODEC_TIME_STEP);
    return capture;
}

// A second of good messages without delay; returns the time of the last.
static ns_t begin(struct codec_stamp *s, bool learn)
{
    ns_t t = 0;

    codec_stamp_reset(s);
    for (; t <= NS_PER_S; t += PERIOD)
        assert_int_equal(captured(s, WALL + t, t, learn), t);
    return t - PERIOD;
}

static void test_no_stamp_means_receipt(void **state)
{
    struct codec_stamp s = {0};

    (void)state;
    assert_int_equal(captured(&s, 0, 12345, ARMED), 12345);
    assert_int_equal(s.samples, 0);
    begin(&s, ARMED);
    assert_int_equal(captured(&s, 0, HOUR, ARMED), HOUR); // in between as well
}

static void test_quickest_message_sets_the_offset(void **state)
{
    struct codec_stamp s = {0};

    (void)state;
    // Captured at 0, 10, 20, ... ms; the first is 8 ms on its way, the second 1 ms, the
    // third 30.
    assert_int_equal(captured(&s, WALL, 8 * MS, ARMED), 8 * MS);
    assert_int_equal(captured(&s, WALL + 10 * MS, 11 * MS, ARMED), 11 * MS);
    // Known now: 1 ms is possible. 29 ms too late, and seen as such (less 19.5 us
    // forgotten).
    assert_int_equal(captured(&s, WALL + 20 * MS, 50 * MS, ARMED),
                     21 * MS + 39 * MS / 2000);
    // At rest nothing is forgotten within the second.
    codec_stamp_reset(&s);
    assert_int_equal(captured(&s, WALL, 8 * MS, AT_REST), 8 * MS);
    assert_int_equal(captured(&s, WALL + 10 * MS, 11 * MS, AT_REST), 11 * MS);
    assert_int_equal(captured(&s, WALL + 20 * MS, 50 * MS, AT_REST), 21 * MS);
}

// The offset as it is defined while armed, from all messages so far: the smallest of what
// each showed plus what was forgotten since.
static void test_twin_armed(void **state)
{
    enum { N = 2000 };
    static int64_t seen[N];
    static ns_t at[N];
    struct codec_stamp s = {0};

    (void)state;
    for (int i = 0; i < N; i++) {
        ns_t sent = 5 * MS * (i + 1), received = sent + random_below(40 * MS);
        int64_t best = INT64_MAX;
        ns_t capture;

        if (i > 0 && received <= at[i - 1]) // the wire keeps order
            received = at[i - 1] + 1;
        at[i] = received;
        seen[i] = received - (WALL + sent);
        capture = captured(&s, WALL + sent, received, ARMED);
        for (int k = 0; k <= i; k++)
            if (seen[k] + (received - at[k]) / 2000 < best)
                best = seen[k] + (received - at[k]) / 2000;
        // Each step of the filter rounds down by less than 1 ns.
        assert_true(llabs(capture - (WALL + sent + best)) <= i + 1);
    }
}

// At rest: never less than the smallest of the last two seconds and a message, never more than
// that of the last one.
static void test_window_at_rest(void **state)
{
    enum { N = 5000 };
    static int64_t seen[N];
    static ns_t at[N];
    struct codec_stamp s = {0};

    (void)state;
    for (int i = 0; i < N; i++) {
        ns_t sent = 5 * MS * (i + 1);
        ns_t slow = i / 1000 % 2 ? 100 * MS : 0; // for 5 s the way is longer, or not
        ns_t received = sent + slow + random_below(40 * MS);
        int64_t one = INT64_MAX, two = INT64_MAX;
        ns_t capture;

        if (i > 0 && received <= at[i - 1])
            received = at[i - 1] + 1;
        at[i] = received;
        seen[i] = received - (WALL + sent);
        capture = captured(&s, WALL + sent, received, AT_REST);
        for (int k = i; k >= 0 && received - at[k] < 2050 * MS; k--) {
            if (received - at[k] <= NS_PER_S && seen[k] < one)
                one = seen[k];
            if (seen[k] < two)
                two = seen[k];
        }
        assert_true(capture >= WALL + sent + two && capture <= WALL + sent + one);
    }
}

static void test_slow_drift_is_followed(void **state)
{
    (void)state;
    // Sender's clock slow or fast by 100 ppm for an hour, 1 ms on the way: the age stays 1 ms
    // at most; armed and slow at most 0.1 ms more, at rest what drifts in two seconds.
    for (int k = 0; k < 4; k++) {
        struct codec_stamp s = {0};
        bool learn = k % 2;

        for (int i = 1; i <= 36000; i++) {
            ns_t sent = 100 * MS * i;
            int64_t drift = k < 2 ? -sent / 10000 : sent / 10000;
            ns_t capture = captured(&s, WALL + sent + drift, sent + MS, learn);

            assert_true(capture >= sent + MS - (learn ? 210 : 110) * NS_PER_US);
        }
    }
}

// ---- a sender's clock that jumps --------------------------------------------------------

// After a jump: how many came of which verdict, in order, until two accepted ones.
struct after {
    int jump, back, same;
    enum codec_time first; // accepted
    ns_t age;              // of it
    ns_t age_later;        // after three seconds more
};

static struct after jump(int64_t by, bool learn, int most)
{
    struct codec_stamp s = {0};
    struct after a = {0};
    ns_t t = begin(&s, learn), capture;

    for (int i = 0; i < most; i++) {
        enum codec_time v;

        t += PERIOD;
        v = map(&s, WALL + t + by, t, learn, &capture);
        a.jump += v == CODEC_TIME_JUMP;
        a.back += v == CODEC_TIME_BACK;
        a.same += v == CODEC_TIME_SAME;
        if (v > CODEC_TIME_STEP)
            continue;
        a.first = v;
        a.age = t - capture;
        for (int later = 0; later < 300; later++) {
            t += PERIOD;
            v = map(&s, WALL + t + by, t, learn, &capture);
            assert_int_equal(v, CODEC_TIME_OK);
            a.age_later = t - capture;
        }
        return a;
    }
    a.first = CODEC_TIME_JUMP;
    return a;
}

static void test_ahead(void **state)
{
    const struct {
        int64_t by;
        enum codec_time first; // JUMP: never
    } row[] = {{MS, CODEC_TIME_OK},
               {50 * MS - 1, CODEC_TIME_OK},
               {50 * MS, CODEC_TIME_STEP},
               {500 * MS, CODEC_TIME_STEP},
               {500 * MS + 1, CODEC_TIME_JUMP},
               {HOUR, CODEC_TIME_JUMP}};

    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct after a = jump(row[i].by, ARMED, 6000); // a minute
        bool far = row[i].first == CODEC_TIME_JUMP;

        assert_int_equal(a.first, row[i].first);
        assert_int_equal(a.jump, far ? 6000 : 0);
        assert_int_equal(a.back + a.same, 0);
        assert_int_equal(a.age + a.age_later, 0);
        a = jump(row[i].by, AT_REST, 6000);
        assert_int_equal(a.first, far ? CODEC_TIME_OK : row[i].first);
        assert_int_equal(a.jump, far ? 2 : 0); // the third is believed
        assert_int_equal(a.back + a.same, 0);
        assert_int_equal(a.age + a.age_later, 0);
    }
}

// Backwards: older than the last until it has caught up, and late from then on; nobody can
// tell that from a longer way. Only at rest is it learned.
static void test_behind(void **state)
{
    const struct {
        int64_t by;
        int back, same;
        enum codec_time first;
    } row[] = {{5 * MS, 0, 0, CODEC_TIME_OK},      {50 * MS - 1, 4, 0, CODEC_TIME_OK},
               {50 * MS, 4, 1, CODEC_TIME_STEP},   {55 * MS, 5, 0, CODEC_TIME_STEP},
               {500 * MS, 49, 1, CODEC_TIME_STEP}, {500 * MS + 1, 0, 0, CODEC_TIME_JUMP},
               {HOUR, 0, 0, CODEC_TIME_JUMP}};

    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct after a = jump(-row[i].by, ARMED, 6000);
        bool far = row[i].first == CODEC_TIME_JUMP;
        ns_t silent = PERIOD * (row[i].back + row[i].same + 1);

        assert_int_equal(a.first, row[i].first);
        assert_int_equal(a.back, row[i].back);
        assert_int_equal(a.same, row[i].same);
        assert_int_equal(a.jump, far ? 6000 : 0);
        assert_int_equal(a.age, far ? 0 : row[i].by - silent / 2000);
        if (!far && row[i].by > 10 * MS)
            assert_true(a.age_later > row[i].by - 3 * MS); // still
        a = jump(-row[i].by, AT_REST, 6000);
        assert_int_equal(a.first, CODEC_TIME_OK);
        assert_int_equal(a.jump, far ? 2 : 0);
        assert_int_equal(a.back, !far && row[i].back > 0 ? 2 : 0);
        assert_int_equal(a.same, 0);
        assert_int_equal(a.age, row[i].back == 0 && !far ? row[i].by : 0);
        assert_int_equal(a.age_later, 0);
    }
}

// A publisher that starts again: with another clock, after a gap or without.
static void test_restart(void **state)
{
    const int64_t clocks[] = {WALL - 7 * HOUR, WALL + 7 * HOUR, NS_PER_S,
                              WALL + HOUR / 3600};
    const ns_t gaps[] = {0, 990 * MS, 5 * NS_PER_S, HOUR};

    (void)state;
    for (size_t c = 0; c < sizeof clocks / sizeof *clocks; c++)
        for (size_t g = 0; g < sizeof gaps / sizeof *gaps; g++) {
            struct codec_stamp s = {0};
            ns_t t = begin(&s, AT_REST) + gaps[g];

            for (int i = 1; i <= 20; i++)
                assert_int_equal(
                    verdict(&s, clocks[c] + i * PERIOD + t, t + i * PERIOD, ARMED),
                    CODEC_TIME_JUMP);
            // Disarmed it is believed at once: the last ones have agreed all along.
            t += 21 * PERIOD;
            assert_int_equal(captured(&s, clocks[c] + t, t, AT_REST), t);
            codec_stamp_reset(&s);
            t = begin(&s, AT_REST) + gaps[g];
            for (int i = 1; i <= 20; i++)
                assert_int_equal(
                    verdict(&s, clocks[c] + i * PERIOD + t, t + i * PERIOD, AT_REST),
                    i < 3 ? CODEC_TIME_JUMP : CODEC_TIME_OK);
        }
}

// The same clock after a gap: nothing to learn, nothing refused.
static void test_gap(void **state)
{
    const ns_t gaps[] = {NS_PER_S, 10 * NS_PER_S, 10 * HOUR};

    (void)state;
    for (int learn = 0; learn < 2; learn++)
        for (size_t g = 0; g < sizeof gaps / sizeof *gaps; g++) {
            struct codec_stamp s = {0};
            ns_t t = begin(&s, learn) + gaps[g];

            for (int i = 0; i < 300; i++, t += PERIOD)
                assert_int_equal(captured(&s, WALL + t, t, learn), t);
        }
}

// Two senders whose clocks are an hour apart: the first one's goes on, the other's is never
// learned, since they do not come in a row.
static void test_two_senders(void **state)
{
    struct codec_stamp s = {0};
    ns_t t = begin(&s, AT_REST);

    (void)state;
    for (int i = 0; i < 1000; i++) {
        t += PERIOD;
        assert_int_equal(verdict(&s, WALL + HOUR + t, t, AT_REST), CODEC_TIME_JUMP);
        assert_int_equal(captured(&s, WALL + t, t, AT_REST), t);
    }
}

// Every step is told once, as long as it lasts.
static void test_step_is_told_once(void **state)
{
    struct codec_stamp s = {0};
    ns_t t = begin(&s, ARMED);
    int steps = 0;

    (void)state;
    for (int i = 0; i < 400; i++) {
        ns_t late = i / 100 % 2 ? 60 * MS : 0;

        t += PERIOD;
        steps += verdict(&s, WALL + t, t + late, ARMED) == CODEC_TIME_STEP;
        assert_int_equal(steps, (i + 100) / 200);
    }
}

// The local wall clock is set while a sender on this machine goes on: armed or not nothing
// changes. `behind`: messages that were stamped before it, and come after.
static void test_local_clock_is_set(void **state)
{
    const int64_t by[] = {2 * MS,   -2 * MS,   15 * MS,  -15 * MS,  60 * MS, -60 * MS,
                          400 * MS, -400 * MS, NS_PER_S, -NS_PER_S, HOUR,    -HOUR};

    (void)state;
    for (int learn = 0; learn < 2; learn++)
        for (int behind = 0; behind < 3; behind++)
            for (size_t i = 0; i < sizeof by / sizeof *by; i++) {
                struct codec_stamp s = {0};
                ns_t t = begin(&s, learn);

                codec_stamp_wall_set(&s, by[i], t + 1);
                for (int k = 0; k < 300; k++) {
                    ns_t capture;

                    t += PERIOD;
                    assert_int_equal(
                        map(&s, WALL + t + (k < behind ? 0 : by[i]), t, learn, &capture),
                        CODEC_TIME_OK);
                    assert_int_equal(capture, t);
                }
            }
}

// Twice in a row, the second before a message came.
static void test_local_clock_is_set_twice(void **state)
{
    struct codec_stamp s = {0};
    ns_t t = begin(&s, ARMED);

    (void)state;
    codec_stamp_wall_set(&s, HOUR, t);
    codec_stamp_wall_set(&s, 5 * HOUR, t + MS);
    t += PERIOD;
    assert_int_equal(captured(&s, WALL + 6 * HOUR + t, t, ARMED), t);
    codec_stamp_wall_set(&s, -6 * HOUR, t);
    t += PERIOD;
    assert_int_equal(captured(&s, WALL + t, t, ARMED), t);
}

// A sender with a clock of its own: every message as if nothing had been set, whatever its
// delays; and its own jumps are still refused, unless by chance by just as much.
static void test_local_clock_is_not_the_senders(void **state)
{
    const int64_t by[] = {60 * MS, -60 * MS, 300 * MS, -300 * MS, HOUR, -HOUR};

    (void)state;
    for (size_t i = 0; i < sizeof by / sizeof *by; i++) {
        struct codec_stamp s = {0}, twin = {0};
        ns_t t = begin(&s, ARMED), last = begin(&twin, ARMED);

        codec_stamp_wall_set(&s, by[i], t);
        for (int k = 0; k < 3000; k++) {
            ns_t received = (t += PERIOD) + random_below(25 * MS), a, b;

            received = last = received > last ? received : last + 1;
            assert_int_equal(map(&s, WALL + t, received, ARMED, &a),
                             map(&twin, WALL + t, received, ARMED, &b));
            assert_int_equal(a, b);
        }
        begin(&s, ARMED);
        t = NS_PER_S;
        codec_stamp_wall_set(&s, by[i], t);
        t += PERIOD;
        assert_int_equal(verdict(&s, WALL + t + by[i] + 2 * HOUR, t, ARMED),
                         CODEC_TIME_JUMP);
        // And after five seconds it is too late.
        t += 5 * NS_PER_S;
        assert_int_equal(verdict(&s, WALL + t + by[i], t, ARMED),
                         by[i] > 500 * MS || by[i] < -500 * MS ? CODEC_TIME_JUMP
                                                               : CODEC_TIME_STEP);
    }
}

// A sender that is frozen stays so.
static void test_frozen_when_the_clock_is_set(void **state)
{
    struct codec_stamp s = {0};
    ns_t t = begin(&s, AT_REST);

    (void)state;
    codec_stamp_wall_set(&s, -NS_PER_S, t + NS_PER_S);
    assert_int_equal(verdict(&s, WALL + t, t + NS_PER_S, AT_REST), CODEC_TIME_SAME);
}

// ---- order ------------------------------------------------------------------------------

static void test_same_stamp_is_never_fresh(void **state)
{
    (void)state;
    for (int learn = 0; learn < 2; learn++) {
        struct codec_stamp s = {0};
        ns_t t = begin(&s, learn);

        for (int i = 0; i < 1000; i++)
            assert_int_equal(verdict(&s, WALL + NS_PER_S, t += 33 * MS, learn),
                             CODEC_TIME_SAME);
    }
}

static void test_reordered(void **state)
{
    (void)state;
    for (int learn = 0; learn < 2; learn++) {
        struct codec_stamp s = {0};
        ns_t t = begin(&s, learn);

        for (int i = 0; i < 50; i++, t += 20 * MS) { // every second pair swapped
            assert_int_equal(captured(&s, WALL + t + 20 * MS, t + 20 * MS, learn),
                             t + 20 * MS);
            assert_int_equal(verdict(&s, WALL + t + 10 * MS, t + 20 * MS + 1, learn),
                             CODEC_TIME_BACK);
        }
    }
}

// A clock that hardly moves: after half a second nothing of it is accepted, and it is never
// taken for a new one, however well it agrees with itself.
static void test_creeping_clock(void **state)
{
    (void)state;
    for (int learn = 0; learn < 2; learn++) {
        struct codec_stamp s = {0};
        ns_t t = begin(&s, learn), capture, last = t;

        for (int i = 1; i <= 2000; i++) {
            enum codec_time v = map(&s, WALL + last + i, t += PERIOD, learn, &capture);

            if (v <= CODEC_TIME_STEP)
                assert_true(capture <= last + MS); // as old as it is
            assert_int_equal(v > CODEC_TIME_STEP, t > last + 500 * MS + i);
        }
    }
}

// ---- nothing old looks fresh --------------------------------------------------------------

// What was sent during a pause comes in a burst, the queue's oldest first, `spacing` apart.
// Nothing accepted of it may look younger than it is; and live messages are good again.
static void burst(ns_t pause, ns_t spacing, bool learn)
{
    struct codec_stamp s = {0};
    ns_t begun = begin(&s, learn), sent = begun, now = sent + pause, capture;
    int accepted = 0;

    while (sent + PERIOD <= now) {
        sent += PERIOD;
        if (map(&s, WALL + sent, now, learn, &capture) <= CODEC_TIME_STEP) {
            accepted++;
            // 500 ppm of the pause may be forgotten while armed.
            assert_true(capture >= sent && capture <= sent + (now - begun) / 2000 + MS);
        }
        now += spacing;
    }
    assert_true(accepted > 0);
    for (int i = 0; i < 10; i++) {
        sent += PERIOD;
        assert_true(captured(&s, WALL + sent, sent, learn) == sent);
    }
}

static void test_burst_after_a_pause(void **state)
{
    (void)state;
    for (int learn = 0; learn < 2; learn++) {
        burst(300 * MS, 0, learn);
        burst(3 * NS_PER_S, 0, learn);
        burst(3 * NS_PER_S, NS_PER_US, learn);
        burst(3 * NS_PER_S, 100 * NS_PER_US, learn);
        burst(3 * NS_PER_S, MS, learn);
        burst(3 * NS_PER_S, 5 * MS, learn); // at twice its speed
        burst(60 * NS_PER_S, 50 * NS_PER_US, learn);
    }
}

// A single old message after a pause, whatever the pause: as old as it is, or refused. The
// window of what was learned at rest is older than the pause, and still holds.
static void test_one_old_message_after_a_pause(void **state)
{
    const ns_t pauses[] = {500 * MS, 2 * NS_PER_S, 10 * NS_PER_S, 60 * NS_PER_S};
    const ns_t ages[] = {100 * MS, 300 * MS, 450 * MS, 501 * MS, 2 * NS_PER_S};

    (void)state;
    for (int learn = 0; learn < 2; learn++)
        for (size_t p = 0; p < sizeof pauses / sizeof *pauses; p++)
            for (size_t a = 0; a < sizeof ages / sizeof *ages; a++) {
                struct codec_stamp s = {0};
                ns_t t = begin(&s, learn) + pauses[p], capture;
                enum codec_time v;

                if (ages[a] >= pauses[p])
                    continue;
                v = map(&s, WALL + t - ages[a], t, learn, &capture);
                assert_int_equal(v,
                                 ages[a] > 500 * MS ? CODEC_TIME_JUMP : CODEC_TIME_STEP);
                if (v == CODEC_TIME_STEP) // 500 ppm of a pause may be forgotten
                    assert_true(capture <= t - ages[a] + pauses[p] / 2000);
                t += PERIOD;
                assert_int_equal(captured(&s, WALL + t, t, learn), t);
            }
}

// A new clock is found though its messages are up to 40 ms under way, in order; it never looks
// younger than that.
static void test_learns_with_delays(void **state)
{
    const ns_t periods[] = {MS, 5 * MS, 10 * MS, 33 * MS, 200 * MS};
    int worst = 0;

    (void)state;
    for (size_t p = 0; p < sizeof periods / sizeof *periods; p++)
        for (int round = 0; round < 500; round++) {
            struct codec_stamp s = {0};
            ns_t t = begin(&s, AT_REST), last = t, capture;
            int64_t by = random_below(2) ? HOUR : -HOUR;
            int needed = 0;

            for (;; needed++) {
                ns_t received = (t += periods[p]) + random_below(40 * MS);

                received = last = received > last ? received : last + 1;
                if (map(&s, WALL + t + by, received, AT_REST, &capture) <=
                    CODEC_TIME_STEP) {
                    assert_true(capture >= t && capture <= t + 40 * MS);
                    break;
                }
                assert_true(needed * periods[p] < 2 * NS_PER_S || needed < 10);
            }
            assert_true(needed >= 2);
            worst = needed * (int)(periods[p] / MS) > worst
                        ? needed * (int)(periods[p] / MS)
                        : worst;
        }
    print_message("a new clock took at most %d ms\n", worst);
}

static void test_reset_follows_at_once(void **state)
{
    struct codec_stamp s = {0};

    (void)state;
    assert_int_equal(captured(&s, WALL, 0, ARMED), 0);
    assert_int_equal(verdict(&s, WALL - NS_PER_S, MS, ARMED), CODEC_TIME_JUMP);
    codec_stamp_reset(&s);
    assert_int_equal(captured(&s, WALL - NS_PER_S, 2 * MS, ARMED), 2 * MS);
}

static void test_absurd_stamps(void **state)
{
    struct codec_stamp s = {0};
    int64_t wall;

    (void)state;
    for (int i = 0; i < 10; i++) { // never learned either
        assert_int_equal(verdict(&s, -1 - i, (1 + i) * MS, AT_REST), CODEC_TIME_JUMP);
        assert_int_equal(verdict(&s, INT64_MIN, MS, AT_REST), CODEC_TIME_JUMP);
        assert_int_equal(verdict(&s, INT64_MAX - 9 + i, MS, AT_REST), CODEC_TIME_JUMP);
    }
    // Far, but no overflow anywhere.
    assert_int_equal(captured(&s, INT64_MAX / 2, MS, ARMED), MS);
    assert_int_equal(verdict(&s, 1, 2 * MS, ARMED), CODEC_TIME_JUMP);
    assert_int_equal(codec_wall(1, 5, &wall), CODEC_OK);
    assert_int_equal(wall, NS_PER_S + 5);
    assert_int_equal(codec_wall(-1, 0, &wall), CODEC_BAD_STAMP);
    assert_int_equal(codec_wall(1, -1, &wall), CODEC_BAD_STAMP);
    assert_int_equal(codec_wall(1, 1000000000, &wall), CODEC_BAD_STAMP);
    assert_int_equal(codec_wall(INT64_MAX, 0, &wall), CODEC_BAD_STAMP);
    assert_int_equal(codec_wall(INT64_MAX / 2 / NS_PER_S, 0, &wall), CODEC_BAD_STAMP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_stamp_means_receipt),
        cmocka_unit_test(test_quickest_message_sets_the_offset),
        cmocka_unit_test(test_twin_armed),
        cmocka_unit_test(test_window_at_rest),
        cmocka_unit_test(test_slow_drift_is_followed),
        cmocka_unit_test(test_ahead),
        cmocka_unit_test(test_behind),
        cmocka_unit_test(test_restart),
        cmocka_unit_test(test_gap),
        cmocka_unit_test(test_two_senders),
        cmocka_unit_test(test_step_is_told_once),
        cmocka_unit_test(test_local_clock_is_set),
        cmocka_unit_test(test_local_clock_is_set_twice),
        cmocka_unit_test(test_local_clock_is_not_the_senders),
        cmocka_unit_test(test_frozen_when_the_clock_is_set),
        cmocka_unit_test(test_same_stamp_is_never_fresh),
        cmocka_unit_test(test_reordered),
        cmocka_unit_test(test_creeping_clock),
        cmocka_unit_test(test_burst_after_a_pause),
        cmocka_unit_test(test_one_old_message_after_a_pause),
        cmocka_unit_test(test_learns_with_delays),
        cmocka_unit_test(test_reset_follows_at_once),
        cmocka_unit_test(test_absurd_stamps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
