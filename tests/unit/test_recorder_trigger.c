// The recorder's memory before a fault: nothing on disk until there is one, then what was before,
// and what comes after.
#include "tests/unit/recorder_world.h"

static void trigger_world(struct world *w)
{
    world_new(w);
    w->cfg.mode = RECORDER_TRIGGER;
    w->cfg.before_ns = 4 * NS_PER_S;
    w->cfg.after_ns = 2 * NS_PER_S;
}

static void nothing_without_a_fault(void **state)
{
    struct recorder_counts c;
    struct world w;

    (void)state;
    trigger_world(&w);
    world_start(&w, NULL);
    world_run(&w, 20, 20);
    recorder_counts(w.r, &c);
    assert_false(c.recording);
    assert_true(c.held_bytes > 0);
    assert_int_equal(c.files, 0);
    recorder_finish(w.r, w.now);
    assert_int_equal(world_count(w.dir, ""), 0);
    world_end(&w);
}

static void before_and_after(void **state)
{
    struct recorder_counts c;
    struct tape_seat seat;
    struct names names;
    struct world w;
    struct found f;
    uint64_t at;

    (void)state;
    memset(&seat, 0, sizeof seat);
    seat.generation = 3;
    trigger_world(&w);
    world_start(&w, NULL);
    recorder_seat(w.r, &seat, "x");
    world_run(&w, 20, 20);
    at = w.ticks;
    recorder_fault(w.r, REASON_JOINTS_STALE, w.now);
    world_run(&w, 1, 20);
    recorder_counts(w.r, &c);
    assert_true(c.recording);
    assert_int_equal(c.held_bytes, 0);
    assert_int_equal(world_count(w.dir, "-fault.mcap.part"), 1); // at once
    world_run(&w, 9, 20);
    assert_int_equal(world_count(w.dir, ".part"), 0);
    world_names(w.dir, ".mcap", &names);
    assert_int_equal(names.n, 1);
    assert_non_null(strstr(names.name[0], "-fault.mcap"));
    world_read_all(&w, &f);
    assert_false(f.gap);
    assert_in_range(f.first_tick, at - 1000, at - 800 + 1); // 4 s, and a chunk at most
    assert_in_range(f.last_tick, at + 400 - 2, at + 402);
    assert_int_equal(f.seats, 1);
    assert_int_equal(f.events, 1);
    assert_non_null(strstr(f.event[0], "JOINTS_STALE"));
    recorder_counts(w.r, &c);
    assert_false(c.recording);
    assert_true(c.held_bytes > 0);
    world_end(&w);
}

static void a_second_fault_prolongs(void **state)
{
    struct world w;
    struct found f;
    uint64_t at;

    (void)state;
    trigger_world(&w);
    world_start(&w, NULL);
    world_run(&w, 6, 0);
    recorder_fault(w.r, REASON_ESTOP, w.now);
    world_run(&w, 1.5, 0);
    recorder_fault(w.r, REASON_ESTOP, w.now);
    at = w.ticks;
    world_run(&w, 10, 0);
    assert_int_equal(world_read_all(&w, &f), 1);
    assert_in_range(f.last_tick, at + 398, at + 402);
    assert_false(f.gap);
    assert_int_equal(f.events, 2);
    world_end(&w);
}

// What is before the second fault, and not in the first file, is in the second; nothing twice.
static void two_faults_apart_are_two_files(void **state)
{
    struct world w;
    struct found f;

    (void)state;
    trigger_world(&w);
    world_start(&w, NULL);
    world_run(&w, 6, 0);
    recorder_fault(w.r, REASON_ESTOP, w.now);
    world_run(&w, 4, 0); // 2 of them live
    recorder_fault(w.r, REASON_ESTOP, w.now);
    world_run(&w, 4, 0);
    assert_int_equal(world_read_all(&w, &f), 2);
    assert_false(f.gap);
    assert_int_equal(f.ticks, f.last_tick - f.first_tick + 1);
    world_end(&w);
}

static void a_mark_is_a_trigger_but_no_fault(void **state)
{
    struct names names;
    struct world w;
    struct found f;
    char text[256];

    (void)state;
    trigger_world(&w);
    world_start(&w, NULL);
    w.now = clock_now_ns(); // a mark has the time of the clock
    world_run(&w, 0.5, 20);
    assert_int_equal(recorder_mark(w.r, "look here", text), 0);
    world_run(&w, 10, 20);
    world_names(w.dir, ".mcap", &names);
    assert_int_equal(names.n, 1);
    assert_null(strstr(names.name[0], "fault"));
    world_read_all(&w, &f);
    assert_int_equal(f.first_tick, 1);
    assert_non_null(strstr(f.event[0], "look here"));
    world_end(&w);
}

static void memory_is_bounded(void **state)
{
    struct recorder_counts c;
    struct world w;
    struct found f;

    (void)state;
    trigger_world(&w);
    w.cfg.before_ns = 1000 * NS_PER_S;
    w.cfg.memory_bytes = 2u << 20;
    world_start(&w, NULL);
    for (int i = 0; i < 30; i++) {
        world_run(&w, 1, 50);
        recorder_counts(w.r, &c);
        assert_true(c.held_bytes <= 2u << 20);
    }
    assert_true(c.held_bytes > 1u << 19);
    recorder_fault(w.r, REASON_ESTOP, w.now);
    world_run(&w, 5, 50);
    world_read_all(&w, &f);
    assert_false(f.gap);
    assert_true(f.last_tick >= 30 * 200 + 390);
    world_end(&w);
}

// The disk does not work when the fault comes: the memory waits for it.
static void memory_waits_for_a_disk_that_fails(void **state)
{
    struct recorder_counts c;
    struct world w;
    struct found f;
    uint64_t at;

    (void)state;
    trigger_world(&w);
    w.cfg.after_ns = 20 * NS_PER_S;
    world_start(&w, NULL);
    world_run(&w, 6, 0);
    at = w.ticks;
    w.bad.open_rc = -EIO;
    recorder_fault(w.r, REASON_ESTOP, w.now);
    world_run(&w, 2, 0);
    w.bad.open_rc = 0;
    world_run(&w, 22, 0);
    recorder_counts(w.r, &c);
    assert_int_equal(c.lost_messages, 0);
    assert_int_equal(world_read_all(&w, &f), 1);
    assert_false(f.gap);
    assert_true(f.first_tick < at - 200); // of the four seconds two went by meanwhile
    world_end(&w);
}

// Longer than after_s: what led to the fault is written when the disk works again, and has not made
// room for what came since.
static void memory_waits_longer_than_it_records(void **state)
{
    struct recorder_counts c;
    struct world w;
    struct found f;
    uint64_t at;

    (void)state;
    trigger_world(&w);
    w.cfg.memory_bytes = 8u << 20;
    world_start(&w, NULL);
    world_run(&w, 6, 0);
    at = w.ticks;
    w.bad.open_rc = -EIO;
    recorder_fault(w.r, REASON_ESTOP, w.now);
    world_run(&w, 100, 50);
    recorder_counts(w.r, &c);
    assert_true(c.held_bytes <= 8u << 20);
    w.bad.open_rc = 0;
    world_run(&w, 40, 0);
    recorder_counts(w.r, &c);
    assert_false(c.recording);
    assert_int_equal(c.lost_messages, 0);
    assert_int_equal(world_read_all(&w, &f), 1);
    assert_int_equal(world_count(w.dir, "-fault.mcap"), 1);
    assert_in_range(f.first_tick, at - 1000, at - 700);
    assert_int_equal(f.events, 2); // the fault, and what was wrong with the disk
    world_end(&w);
}

// Nothing after it was asked for, or it is seen when that is over: it is written all the same.
static void a_fault_that_is_seen_late_is_written(void **state)
{
    struct world w;
    struct found f;

    (void)state;
    for (int late = 0; late < 2; late++) {
        trigger_world(&w);
        w.cfg.after_ns = late ? 2 * NS_PER_S : 0;
        world_start(&w, NULL);
        world_run(&w, 6, 0);
        recorder_fault(w.r, REASON_ESTOP, late ? w.now - 3 * NS_PER_S : w.now);
        world_run(&w, 3, 0);
        assert_int_equal(world_read_all(&w, &f), 1);
        assert_int_equal(world_count(w.dir, "-fault.mcap"), 1);
        assert_false(f.gap);
        assert_in_range(f.last_tick, 1200, 1210);
        assert_int_equal(f.events, 1);
        world_end(&w);
    }
}

// It never does: what does not fit into memory, and what is left at the end, is counted.
static void memory_that_waits_in_vain_is_counted(void **state)
{
    struct recorder_counts c;
    struct world w;
    struct found f;

    (void)state;
    trigger_world(&w);
    w.cfg.after_ns = 100 * NS_PER_S;
    w.cfg.memory_bytes = 1u << 20;
    w.bad.open_rc = -EIO;
    world_start(&w, NULL);
    recorder_fault(w.r, REASON_ESTOP, w.now);
    world_run(&w, 40, 50);
    recorder_counts(w.r, &c);
    assert_true(c.lost_messages > 0);
    assert_true(c.held_bytes > 0 && c.held_bytes <= 1u << 20);
    recorder_finish(w.r, w.now);
    recorder_counts(w.r, &c);
    assert_int_equal(c.lost_messages, w.ticks + 2 * w.joints + 2 * w.frames + 1);
    assert_int_equal(c.held_bytes, 0);
    assert_int_equal(world_read_all(&w, &f), 0);
    world_end(&w);
}

static void a_fault_at_the_very_end_is_written(void **state)
{
    struct world w;
    struct found f;

    (void)state;
    trigger_world(&w);
    world_start(&w, NULL);
    world_run(&w, 2, 0);
    recorder_fault(w.r, REASON_ESTOP, w.now);
    recorder_finish(w.r, w.now);
    assert_int_equal(world_read_all(&w, &f), 1);
    assert_int_equal(f.ticks, 400);
    assert_int_equal(f.events, 1);
    assert_int_equal(world_count(w.dir, "-fault.mcap"), 1);
    world_end(&w);
}

static void in_always_mode_a_fault_names_its_segment(void **state)
{
    struct world w;
    struct found f;

    (void)state;
    world_new(&w);
    w.cfg.segment_ns = 2 * NS_PER_S;
    w.cfg.before_ns = w.cfg.after_ns = NS_PER_S / 4;
    world_start(&w, NULL);
    world_run(&w, 5, 0);
    recorder_fault(w.r, REASON_ESTOP, w.now);
    recorder_fault(w.r, REASON_ESTOP, w.now);
    world_run(&w, 5, 0);
    recorder_finish(w.r, w.now);
    world_read_all(&w, &f);
    assert_false(f.gap);
    assert_int_equal(f.ticks, w.ticks);
    assert_int_equal(world_count(w.dir, "-fault.mcap"), 1);
    assert_true(world_count(w.dir, ".mcap") >= 4);
    world_end(&w);
}

// What led to it, and what came of it, is kept with it.
static void segments_around_a_fault_are_kept_with_it(void **state)
{
    struct names l;
    struct world w;

    (void)state;
    world_new(&w);
    w.cfg.segment_ns = 4 * NS_PER_S;
    w.cfg.before_ns = w.cfg.after_ns = 3 * NS_PER_S;
    world_start(&w, NULL);
    world_run(&w, 10, 0); // 2 s after a split
    recorder_fault(w.r, REASON_ESTOP, w.now);
    world_run(&w, 14, 0); // 2 s before the next
    recorder_finish(w.r, w.now);
    world_names(w.dir, ".mcap", &l);
    assert_int_equal(l.n, 6);
    for (int i = 0; i < l.n; i++)
        assert_int_equal(strstr(l.name[i], "-fault.mcap") != NULL, i >= 1 && i <= 3);
    world_end(&w);
}

static void off_is_off(void **state)
{
    struct world w;

    (void)state;
    world_new(&w);
    w.cfg.mode = RECORDER_OFF;
    world_start(&w, NULL);
    world_run(&w, 1, 0);
    recorder_fault(w.r, REASON_ESTOP, w.now);
    world_run(&w, 1, 0);
    recorder_finish(w.r, w.now);
    assert_int_equal(world_count(w.dir, ""), 0);
    recorder_fault(NULL, REASON_ESTOP, w.now);
    world_end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_without_a_fault),
        cmocka_unit_test(before_and_after),
        cmocka_unit_test(a_second_fault_prolongs),
        cmocka_unit_test(two_faults_apart_are_two_files),
        cmocka_unit_test(a_mark_is_a_trigger_but_no_fault),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(memory_waits_for_a_disk_that_fails),
        cmocka_unit_test(memory_waits_longer_than_it_records),
        cmocka_unit_test(a_fault_that_is_seen_late_is_written),
        cmocka_unit_test(memory_that_waits_in_vain_is_counted),
        cmocka_unit_test(a_fault_at_the_very_end_is_written),
        cmocka_unit_test(in_always_mode_a_fault_names_its_segment),
        cmocka_unit_test(segments_around_a_fault_are_kept_with_it),
        cmocka_unit_test(off_is_off),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
