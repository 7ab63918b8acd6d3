// What leaves of the loop's commands, in virtual time.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "daemon/outbox.h"

#define TTL (20 * NS_PER_MS)

static struct board board;
static struct outbox box;
static struct command out;

static int setup(void **state)
{
    (void)state;
    memset(&box, 0, sizeof box);
    return board_init(&board, 0, 1, 1);
}

static int teardown(void **state)
{
    (void)state;
    board_free(&board);
    return 0;
}

static void push(uint64_t sequence, ns_t made, ns_t ttl, uint32_t stalls)
{
    const struct command c = {
        .sequence = sequence, .made_ns = made, .ttl_ns = ttl, .stalls = stalls, .n = 1};

    assert_true(ring_push(&board.commands, &c));
}

static void counted(uint64_t superseded, uint64_t expired, uint64_t cut)
{
    assert_int_equal(box.superseded, superseded);
    assert_int_equal(box.expired, expired);
    assert_int_equal(box.cut, cut);
}

static void test_one_goes_out_once(void **state)
{
    (void)state;
    assert_false(outbox_next(&box, &board, 0, &out));
    push(1, NS_PER_S, TTL, 0);
    assert_true(outbox_next(&box, &board, NS_PER_S, &out));
    assert_int_equal(out.sequence, 1);
    assert_int_equal(out.ttl_ns, TTL); // nothing is gone yet
    assert_int_equal(box.last_sequence, 1);
    assert_false(outbox_next(&box, &board, NS_PER_S, &out));
    counted(0, 0, 0);
}

static void test_only_the_newest(void **state)
{
    (void)state;
    for (uint64_t i = 1; i <= BOARD_COMMANDS; i++)
        push(i, (ns_t)i * NS_PER_MS, TTL, 0);
    assert_true(outbox_next(&box, &board, BOARD_COMMANDS * NS_PER_MS, &out));
    assert_int_equal(out.sequence, BOARD_COMMANDS);
    counted(BOARD_COMMANDS - 1, 0, 0);
    assert_false(outbox_next(&box, &board, BOARD_COMMANDS * NS_PER_MS, &out));
}

static void test_what_is_left_of_the_time(void **state)
{
    const struct {
        ns_t waited, left; // left 0 = not sent
    } row[] = {{-5, TTL},  // made after the clock was read
               {0, TTL},  {1, TTL - 1}, {TTL / 2, TTL / 2},  {TTL - 1, 1},
               {TTL, 0},  {TTL + 1, 0}, {3600 * NS_PER_S, 0}};
    uint64_t expired = 0;

    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        push(i + 1, NS_PER_S, TTL, 0);
        assert_int_equal(outbox_next(&box, &board, NS_PER_S + row[i].waited, &out),
                         row[i].left > 0);
        expired += row[i].left == 0;
        counted(0, expired, 0);
        if (row[i].left > 0)
            assert_int_equal(out.ttl_ns, row[i].left);
        assert_int_equal(box.last_sequence, row[i].left > 0 ? i + 1 : 5);
    }
    push(100, NS_PER_S, 0, 0); // lives for no time at all
    assert_false(outbox_next(&box, &board, NS_PER_S, &out));
    push(101, NS_PER_S, -1, 0);
    assert_false(outbox_next(&box, &board, 0, &out));
    counted(0, expired + 2, 0);
}

// A command made before the cut is dead, however fresh it is.
static void test_cut(void **state)
{
    (void)state;
    push(1, 0, TTL, 0);
    atomic_store(&board.stalls, 1);
    assert_false(outbox_next(&box, &board, 0, &out));
    counted(0, 0, 1);
    push(2, 1, TTL, 0); // the loop has not seen it yet
    assert_false(outbox_next(&box, &board, 1, &out));
    counted(0, 0, 2);
    push(3, 2, TTL, 1);
    assert_true(outbox_next(&box, &board, 2, &out));
    assert_int_equal(out.sequence, 3);
    push(4, 3, TTL, 2); // a number that never was
    assert_false(outbox_next(&box, &board, 3, &out));
    counted(0, 0, 3);
    // Old and cut is counted once.
    push(5, 0, TTL, 0);
    assert_false(outbox_next(&box, &board, NS_PER_S, &out));
    counted(0, 0, 4);
}

// When the newest may not leave an older one may even less.
static void test_no_older_one_instead(void **state)
{
    (void)state;
    push(1, 0, TTL, 1);
    push(2, 0, TTL, 0);
    atomic_store(&board.stalls, 1);
    assert_false(outbox_next(&box, &board, 0, &out));
    counted(1, 0, 1);
    assert_false(outbox_next(&box, &board, 0, &out));
}

// The bus was away for a second at 100 Hz: the ring took 64, the loop dropped the rest.
// Nothing of it leaves; then one command per tick again.
static void test_no_burst_after_a_pause(void **state)
{
    uint64_t sent = 0;

    (void)state;
    for (uint64_t tick = 0; tick < 300; tick++) {
        ns_t now = (ns_t)tick * 10 * NS_PER_MS;
        const struct command c = {.sequence = tick, .made_ns = now, .ttl_ns = TTL};

        ring_push(&board.commands, &c);
        if (tick >= 100 && tick < 200)
            continue;
        if (!outbox_next(&box, &board, now, &out))
            continue;
        sent++;
        assert_int_equal(out.sequence, tick);
        assert_int_equal(out.ttl_ns, TTL);
    }
    assert_int_equal(sent, 199); // at tick 200 the ring was full of old ones
    counted(BOARD_COMMANDS - 1, 1, 0);
    assert_int_equal(board.commands.dropped, 101 - BOARD_COMMANDS);
}

// Random pushes and looks against a twin that keeps everything.
static void test_twin(void **state)
{
    enum { N = 20000 };
    static struct command all[N];
    uint64_t random = 7, sent = 0, pushed = 0, first = 0;
    uint64_t superseded = 0, expired = 0, cut = 0;
    uint32_t stalls = 0;
    ns_t now = 0;

    (void)state;
    while (pushed < N) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        uint32_t dice = (uint32_t)(random >> 40) % 100;

        now += (ns_t)(random >> 33) % (8 * NS_PER_MS);
        if (dice < 2) {
            atomic_store(&board.stalls, ++stalls);
        } else if (dice < 60) {
            struct command c = {.sequence = pushed + 1,
                                .made_ns = now - (dice % 7) * NS_PER_MS,
                                .ttl_ns = (5 + dice) * NS_PER_MS,
                                .stalls = stalls - (dice < 5 && stalls > 0)};

            if (pushed - first == BOARD_COMMANDS)
                continue;
            all[pushed++] = c;
            assert_true(ring_push(&board.commands, &c));
        } else {
            bool want = false;

            if (pushed > first) {
                const struct command *c = &all[pushed - 1];

                superseded += pushed - first - 1;
                if (c->stalls != stalls)
                    cut++;
                else if (c->made_ns + c->ttl_ns <= now)
                    expired++;
                else
                    want = true;
            }
            assert_int_equal(outbox_next(&box, &board, now, &out), want);
            if (want) {
                sent++;
                assert_int_equal(out.sequence, pushed);
                assert_int_equal(now + out.ttl_ns,
                                 all[pushed - 1].made_ns + all[pushed - 1].ttl_ns);
            }
            first = pushed;
            counted(superseded, expired, cut);
        }
    }
    assert_true(sent > 1000 && superseded > 1000 && expired > 50 && cut > 50);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_one_goes_out_once),
        TEST(test_only_the_newest),
        TEST(test_what_is_left_of_the_time),
        TEST(test_cut),
        TEST(test_no_older_one_instead),
        TEST(test_no_burst_after_a_pause),
        TEST(test_twin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
