// A sender's clock that jumps, armed and at rest, at every bound; when a new one is
// believed; and that nothing old ever looks fresh.
#include "tests/unit/stamp_fixture.h"

// ---- a sender's clock that jumps -----------------------------------------------------

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
        int alone = row[i].first == CODEC_TIME_STEP; // the second is believed

        assert_int_equal(a.jump, far ? 6000 : alone);
        assert_int_equal(a.back + a.same, 0);
        assert_int_equal(a.age + a.age_later, 0);
        a = jump(row[i].by, AT_REST, 6000);
        assert_int_equal(a.first, far ? CODEC_TIME_OK : row[i].first);
        assert_int_equal(a.jump, far ? 2 : alone); // the third is believed
        assert_int_equal(a.back + a.same, 0);
        assert_int_equal(a.age + a.age_later, 0);
    }
}

// One stamp that is wrong, ahead by less than a jump: refused alone, and all good ones after it
// are as good as before. Two that disagree with each other are both alone.
static void test_one_wrong_stamp(void **state)
{
    const int64_t by[] = {50 * MS, 70 * MS, 499 * MS, 500 * MS};

    (void)state;
    for (size_t i = 0; i < sizeof by / sizeof *by; i++)
        for (int learn = 0; learn < 2; learn++) {
            struct codec_stamp s = {0};
            ns_t t = begin(&s, learn) + PERIOD;

            assert_int_equal(verdict(&s, WALL + t + by[i], t, learn), CODEC_TIME_JUMP);
            // The same message once more confirms nothing.
            assert_int_equal(verdict(&s, WALL + t + by[i], t, learn), CODEC_TIME_JUMP);
            for (int k = 0; k < 20; k++) {
                t += PERIOD;
                assert_int_equal(captured(&s, WALL + t, t, learn), t);
            }
            t += PERIOD;
            assert_int_equal(verdict(&s, WALL + t + by[i], t, learn), CODEC_TIME_JUMP);
            t += PERIOD;
            assert_int_equal(verdict(&s,
                                     WALL + t + (by[i] > 200 * MS ? 100 * MS : 300 * MS),
                                     t, learn),
                             CODEC_TIME_JUMP);
            t += PERIOD;
            assert_int_equal(captured(&s, WALL + t, t, learn), t);
        }
}

// Backwards: older than the last until it has caught up, and late from then on; nobody
// can tell that from a longer way. Only at rest is it learned.
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

// Messages with a clock an hour ahead, `sent` and received at these times: which is the
// first that is believed, and how old is it?
static void learned(const ns_t (*message)[2], int n, int first, ns_t age)
{
    struct codec_stamp s = {0};
    ns_t t = begin(&s, AT_REST) + NS_PER_S, capture = 0;

    for (int i = 0; i < n; i++) {
        enum codec_time v = map(&s, WALL + HOUR + t + message[i][0], t + message[i][1],
                                AT_REST, &capture);

        assert_int_equal(v, i + 1 < first ? CODEC_TIME_JUMP : CODEC_TIME_OK);
        if (i + 1 == first) {
            assert_int_equal(t + message[i][1] - capture, age);
            assert_int_equal(s.samples, 1);
        }
    }
}

static void test_what_agrees(void **state)
{
    // The quickest of the three counts.
    const ns_t quickest[][2] = {{0, 5}, {20, 20}, {40, 49}};
    // One stamp again and again is no clock, and neither breaks nor makes a row.
    const ns_t frozen[][2] = {{0, 0}, {0, 10}, {0, 20}, {0, 30}};
    const ns_t repeated[][2] = {{0, 0}, {0, 1}, {10, 10}, {10, 11}, {20, 20}};
    // Nor do stamps go back in it.
    const ns_t back[][2] = {{0, 0}, {20, 10}, {10, 15}, {30, 30}, {40, 40}};
    // Delays that differ by STEP are one clock, by more they are not.
    const ns_t fifty[][2] = {{0, 0}, {200, 250}, {400, 400}};
    const ns_t more[][2] = {{0, 0}, {200, 251}, {400, 400}, {600, 600}};
    const ns_t rising[][2] = {{0, 0}, {200, 230}, {400, 460}, {600, 660}};
    // Three quarters, and four thirds, of the time are about as long; less and more are
    // not.
    const ns_t quarter[][2] = {{0, 0}, {10, 7}, {40, 30}};
    const ns_t faster[][2] = {{0, 0}, {10, 7}, {40, 29}, {44, 34}};
    const ns_t third[][2] = {{0, 0}, {10, 13}, {30, 40}};
    const ns_t slower[][2] = {{0, 0}, {10, 14}, {30, 41}, {33, 43}};
#define CASE(m, first, age)                                                      \
    do {                                                                         \
        ns_t in_ms[sizeof m / sizeof *m][2];                                     \
        for (size_t i_ = 0; i_ < sizeof m / sizeof *m; i_++)                     \
            in_ms[i_][0] = m[i_][0] * MS, in_ms[i_][1] = m[i_][1] * MS;          \
        learned((const ns_t(*)[2])in_ms, sizeof m / sizeof *m, first, (age)*MS); \
    } while (0)

    (void)state;
    CASE(quickest, 3, 9);
    CASE(frozen, 99, 0);
    CASE(repeated, 5, 0);
    CASE(back, 5, 0);
    CASE(fifty, 3, 0);
    CASE(more, 99, 0); // begins again twice: with the second, and with the third
    CASE(rising, 99, 0);
    CASE(quarter, 3, 0);
    CASE(faster, 4, 1);
    CASE(third, 3, 10);
    CASE(slower, 4, 10);
#undef CASE
}

// Three do not come in a row when a good one is between them.
static void test_two_of_three(void **state)
{
    struct codec_stamp s = {0};
    ns_t t = begin(&s, AT_REST);

    (void)state;
    for (int i = 0; i < 300; i++) {
        t += PERIOD;
        if (i % 3 == 0)
            assert_int_equal(captured(&s, WALL + t, t, AT_REST), t);
        else
            assert_int_equal(verdict(&s, WALL + HOUR + t, t, AT_REST), CODEC_TIME_JUMP);
    }
}

// Two senders whose clocks are an hour apart: the first one's goes on, the other's is
// never learned, since they do not come in a row.
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
    t = begin(&s, AT_REST);
    for (int i = 0; i < 50; i++) { // at the bound
        t += PERIOD;
        assert_int_equal(verdict(&s, WALL + t, t + 50 * MS, AT_REST),
                         i == 0 ? CODEC_TIME_STEP : CODEC_TIME_OK);
    }
}

// ---- nothing old looks fresh ---------------------------------------------------------

// What was sent during a pause comes in a burst, the queue's oldest first, `spacing`
// apart. Nothing accepted of it may look younger than it is; and live messages are good
// again.
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

// A single old message after a pause, whatever the pause: as old as it is, or refused.
// The window of what was learned at rest is older than the pause, and still holds.
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

// A new clock is found though its messages are up to 40 ms under way, in order; it never
// looks younger than that.
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_agrees),
        cmocka_unit_test(test_two_of_three),
        cmocka_unit_test(test_ahead),
        cmocka_unit_test(test_one_wrong_stamp),
        cmocka_unit_test(test_behind),
        cmocka_unit_test(test_restart),
        cmocka_unit_test(test_gap),
        cmocka_unit_test(test_two_senders),
        cmocka_unit_test(test_step_is_told_once),
        cmocka_unit_test(test_burst_after_a_pause),
        cmocka_unit_test(test_one_old_message_after_a_pause),
        cmocka_unit_test(test_learns_with_delays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
