// Nobody takes the loop's commands for longer than their ring holds. What is published after
// that must still be one step from what was published before it: a command that found no room
// was never made.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/loop_impl.h"

#define MS       NS_PER_MS
#define TICK     (1 * MS)
#define TICK_S   0.001
#define ROWS     40
#define VELOCITY 2.0
#define BRAKE    20.0

static struct board board;
static struct loop *loop;
static ns_t now = 1000 * NS_PER_S;
static uint64_t tick, chunks, got;
static double measured;
static struct command last;
static double worst_velocity, worst_acceleration;

static ns_t clock_of_test(void)
{
    return now;
}

static struct loop_config config(void)
{
    struct loop_config c = {.control_hz = 1000,
                            .joints = 1,
                            .following_ticks = 10,
                            .joints_period_ns = 10 * MS,
                            .n_cameras = 0,
                            .hold_ns = 200 * MS,
                            .ttl_ns = 20 * MS,
                            .tick_gap_ns = 100 * MS,
                            .fresh_ticks = 5,
                            .approach_scale = 1,
                            .approach_tolerance = 0.05};

    c.limits.n = 1;
    c.limits.min[0] = -100;
    c.limits.max[0] = 100;
    c.limits.velocity[0] = VELOCITY;
    c.limits.acceleration[0] = 10;
    c.limits.stop_acceleration[0] = BRAKE;
    c.chunks.mode = CHUNK_REPLACE;
    c.chunks.interpolation = CHUNK_LINEAR;
    c.chunks.rows = ROWS;
    c.chunks.joints = 1;
    c.chunks.capacity = 4;
    c.chunks.step_ns = 20 * MS;
    return c;
}

// From where the arm is on at 1 rad/s.
static void send_chunk(void)
{
    struct chunk *c = ring_reserve(&board.chunks);

    if (c == NULL)
        return;
    c->id = ++chunks;
    c->anchor_ns = c->oldest_ns = c->ready_ns = now;
    c->rows = ROWS;
    c->joints = 1;
    for (int k = 0; k < ROWS; k++)
        c->row[k] = (float)(measured + 0.02 * k);
    ring_commit(&board.chunks);
}

static void take(void)
{
    struct command c;

    while (ring_pop(&board.commands, &c)) {
        double velocity = (c.pos[0] - last.pos[0]) / TICK_S;

        if (c.mode > LADDER_READY && last.mode > LADDER_READY) {
            worst_velocity = fmax(worst_velocity, fabs(velocity));
            worst_acceleration =
                fmax(worst_acceleration, fabs(velocity - last.vel[0]) / TICK_S);
        }
        assert_true(got == 0 || c.sequence == last.sequence + 1);
        measured = c.pos[0];
        last = c;
        got++;
    }
}

static void step(bool taken, bool joints)
{
    struct joint_sample s = {.number = tick + 1,
                             .received_ns = now + TICK,
                             .capture_ns = now + TICK,
                             .n = 1,
                             .pos = {measured}};

    now += TICK;
    if (joints)
        slot_write(&board.joints, &s);
    if (tick % 100 == 0)
        send_chunk();
    loop_tick(loop, tick++, now, 0, clock_of_test);
    if (taken)
        take();
}

static void run_until(enum ladder_state state)
{
    for (int i = 0; i < 3000 && loop_last(loop)->mode != state; i++)
        step(true, true);
    assert_int_equal(loop_last(loop)->mode, state);
}

static void start(void)
{
    struct loop_config c = config();

    got = 0;
    worst_velocity = worst_acceleration = 0;
    memset(&last, 0, sizeof last);
    assert_int_equal(board_init(&board, 0, ROWS, 1), 0);
    assert_int_equal(loop_new(&loop, &c, &board), 0);
    tick = 0;
    chunks = 0;
    atomic_store(&board.started, true);
    run_until(LADDER_READY);
    atomic_fetch_or(&board.requests, BOARD_ARM);
    run_until(LADDER_RUNNING);
    for (int i = 0; i < 300; i++)
        step(true, true);
    assert_true(last.vel[0] > 0.5); // under way
}

static void end(void)
{
    assert_true(worst_velocity > 0.5);
    assert_true(worst_velocity <= VELOCITY + 1e-6);
    assert_true(worst_acceleration <= BRAKE + 1e-3);
    loop_free(loop);
    board_free(&board);
}

// The bus alone stands still: joint states are still read.
static void nobody_takes_commands(void **state)
{
    (void)state;
    start();
    for (int i = 0; i < 3 * BOARD_COMMANDS; i++)
        step(false, true);
    assert_true(loop_last(loop)->commands_dropped >= BOARD_COMMANDS);
    for (int i = 0; i < 300; i++)
        step(true, true);
    end();
}

// As it happens: what reads joint states and takes commands is one thread.
static void the_bus_stands_still(void **state)
{
    (void)state;
    start();
    for (int i = 0; i < 500; i++)
        step(false, false);
    for (int i = 0; i < 500; i++)
        step(true, true);
    assert_int_equal(last.mode, LADDER_STOPPED);
    assert_true(last.vel[0] == 0);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_takes_commands),
        cmocka_unit_test(the_bus_stands_still),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
