// The recorder on disks that fail: what was written stays good, what was lost is counted to the
// last record and said once, and recording goes on as soon as the disk does.
#include "tests/unit/recorder_world.h"

// Everything that was fed is in a whole file, in a part, or counted as lost.
static void account_for_all(struct world *w, struct found *f)
{
    struct recorder_counts c;
    uint64_t lost = 0;
    struct names parts; // first: a file that came after one is whole

    recorder_finish(w->r, w->now);
    recorder_counts(w->r, &c);
    *f = (struct found){0};
    world_names(w->dir, ".part", &parts);
    for (int i = 0; i < parts.n; i++)
        (void)world_read(parts.name[i], f);
    world_names(w->dir, ".mcap", &parts);
    for (int i = 0; i < parts.n; i++)
        assert_true(world_read(parts.name[i], f));
    for (int i = 0; i < TAPE_CLASSES; i++)
        lost += c.lost[i];
    assert_int_equal(lost, 0);
    // Each frame and each joint state is an input, too.
    assert_int_equal(f->messages - f->events + c.lost_messages,
                     w->ticks + 2 * w->joints + 2 * w->frames);
}

// "lost N tick records": what the recording says of itself.
static uint64_t said_lost(const struct found *f, const char *what)
{
    for (uint64_t i = 0; i < f->events && i < 8; i++) {
        const char *lost = strstr(f->event[i], "lost "), *end, *p;

        if (!lost || !(end = strstr(lost, what)))
            continue;
        for (p = end; p > lost && p[-1] != ' ';)
            p--;
        for (p = end - 1; p > lost && p[-1] >= '0' && p[-1] <= '9';)
            p--;
        return strtoull(p, NULL, 10);
    }
    return UINT64_MAX;
}

static void fails_and_comes_back(int rc, size_t part)
{
    struct recorder_counts c;
    struct world w;
    struct found f;
    uint64_t before;

    world_new(&w);
    world_start(&w, NULL);
    world_run(&w, 5, 20);
    w.bad.write_rc = rc;
    w.bad.writes_left = 1;
    w.bad.part = part;
    world_run(&w, 10, 20);
    recorder_counts(w.r, &c);
    assert_false(c.healthy);
    assert_false(c.recording);
    assert_non_null(strstr(c.last_error, strerror(-rc)));
    assert_non_null(strstr(c.last_error, w.dir));
    assert_true(c.lost_messages > 0);
    w.bad.write_rc = 0;
    world_run(&w, 15, 20); // tries again 1, 3, 7, 15 s after it failed
    recorder_counts(w.r, &c);
    assert_true(c.healthy);
    assert_true(c.recording);
    assert_string_equal(c.last_error, "");
    before = c.lost_messages;
    account_for_all(&w, &f);
    recorder_counts(w.r, &c);
    assert_int_equal(c.lost_messages, before);
    assert_int_equal(f.events, 1); // said once
    assert_int_equal(said_lost(&f, "tick records"), w.ticks - f.ticks);
    assert_int_equal(said_lost(&f, "frames"), w.frames - f.frames);
    assert_int_equal(f.last_tick, w.ticks);
    world_end(&w);
}

static void full(void **state)
{
    (void)state;
    fails_and_comes_back(-ENOSPC, 0);
}

static void full_in_the_middle_of_a_chunk(void **state)
{
    (void)state;
    fails_and_comes_back(-ENOSPC, 100);
}

static void broken(void **state)
{
    (void)state;
    fails_and_comes_back(-EIO, 7);
}

// What is left after a failure is whole as soon as a summary fits, else a part that reads to its
// end: nothing torn in it.
static void a_failed_file_ends_at_its_last_good_record(void **state)
{
    struct names names;
    struct world w;
    struct found f = {0};

    (void)state;
    world_new(&w);
    world_start(&w, NULL);
    world_run(&w, 5, 0);
    w.bad.write_rc = -EIO;
    w.bad.writes_left = 0;
    w.bad.part = 50;
    world_run(&w, 0.5, 0);
    world_names(w.dir, ".part", &names);
    assert_int_equal(names.n, 1);
    assert_false(world_read(names.name[0], &f));
    assert_int_equal(f.first_tick, 1);
    assert_true(f.ticks > 800);
    assert_false(f.gap);
    world_end(&w);
}

static int one_bad_write(void *arg, int fd, const struct iovec *v, int n)
{
    struct bad_disk *b = arg;

    if (b->writes_left-- == 0) {
        struct iovec some = {v[0].iov_base, v[0].iov_len / 2};
        (void)recorder_real_disk.write(NULL, fd, &some, 1);
        return -EIO;
    }
    return recorder_real_disk.write(NULL, fd, v, n);
}

static void one_bad_write_still_gets_a_summary(void **state)
{
    struct world w;
    struct found f;

    (void)state;
    world_new(&w);
    w.disk.write = one_bad_write;
    w.bad.writes_left = 8;
    world_start(&w, NULL);
    world_run(&w, 10, 20);
    assert_int_equal(world_count(w.dir, ".part"), 1);
    account_for_all(&w, &f);
    assert_int_equal(world_count(w.dir, ".part"), 0);
    assert_int_equal(world_count(w.dir, ".mcap"), 2);
    assert_int_equal(f.last_tick, w.ticks);
    world_end(&w);
}

static void it_tries_again_ever_more_slowly(void **state)
{
    struct recorder_counts c;
    struct world w;

    (void)state;
    world_new(&w);
    w.bad.open_rc = -EROFS;
    world_start(&w, NULL);
    world_run(&w, 121.5, 0);
    // At 0, 1, 3, 7, 15, 31, 61, 91, 121 s.
    assert_int_equal(w.bad.opens, 9);
    recorder_counts(w.r, &c);
    assert_non_null(strstr(c.last_error, "mount it writable"));
    assert_int_equal(c.files, 0);
    assert_int_equal(world_count(w.dir, ".part"), 0);
    w.bad.open_rc = 0;
    world_run(&w, 35, 0);
    recorder_counts(w.r, &c);
    assert_true(c.healthy);
    world_end(&w);
}

static void a_full_disk_does_not_fill_with_empty_files(void **state)
{
    struct world w;

    (void)state;
    world_new(&w);
    w.bad.write_rc = -ENOSPC;
    w.bad.writes_left = -1;
    world_start(&w, NULL);
    world_run(&w, 60, 0);
    assert_true(w.bad.opens >= 5);
    assert_int_equal(world_count(w.dir, ".part"), 0);
    w.bad.write_rc = -ENOSPC; // header and metadata fit, no chunk does
    for (int i = 0; i < 60; i++) {
        w.bad.writes_left = 2;
        world_run(&w, 1, 0);
    }
    assert_int_equal(world_count(w.dir, ".part"), 0);
    world_end(&w);
}

static void a_sync_that_fails_ends_the_file(void **state)
{
    struct recorder_counts c;
    struct world w;
    struct found f;

    (void)state;
    world_new(&w);
    world_start(&w, NULL);
    world_run(&w, 3, 0);
    w.bad.sync_rc = -EIO;
    world_run(&w, 3, 0);
    recorder_counts(w.r, &c);
    assert_false(c.healthy);
    assert_non_null(strstr(c.last_error, "sync"));
    w.bad.sync_rc = 0;
    world_run(&w, 10, 0);
    account_for_all(&w, &f);
    world_end(&w);
}

static void a_removed_directory_is_made_anew(void **state)
{
    struct recorder_counts c;
    struct world w;
    struct found f;

    (void)state;
    world_new(&w);
    world_start(&w, NULL);
    world_run(&w, 5, 20);
    world_remove(w.dir);
    assert_int_not_equal(access(w.dir, F_OK), 0);
    world_run(&w, 10, 20);
    recorder_counts(w.r, &c);
    assert_true(c.healthy);
    assert_true(c.recording);
    account_for_all(&w, &f); // all of the lost file is counted, too
    assert_true(f.first_tick > 1000);
    assert_int_equal(said_lost(&f, "tick records"), w.ticks - f.ticks);
    assert_false(f.gap);
    world_end(&w);
}

// Another file under its name, by a restore, say, is not the one that is written.
static void a_file_that_was_replaced_is_ended(void **state)
{
    struct recorder_counts c;
    struct names l;
    struct world w;
    FILE *f;

    (void)state;
    world_new(&w);
    world_start(&w, NULL);
    world_run(&w, 3, 0);
    world_names(w.dir, ".part", &l);
    assert_int_equal(unlink(l.name[0]), 0);
    f = fopen(l.name[0], "w");
    assert_non_null(f);
    fclose(f);
    world_run(&w, 1.5, 0);
    recorder_counts(w.r, &c);
    assert_false(c.healthy);
    world_run(&w, 3, 0);
    recorder_counts(w.r, &c);
    assert_true(c.healthy && c.recording);
    assert_int_equal(world_count(w.dir, "-0002.mcap.part"), 1);
    world_end(&w);
}

static void a_file_in_the_way(void **state)
{
    struct recorder_counts c;
    struct world w;
    char path[100];
    FILE *f;

    (void)state;
    world_new(&w);
    snprintf(path, sizeof path, "%s/x", w.dir);
    f = fopen(path, "w");
    assert_non_null(f);
    fclose(f);
    w.cfg.directory = path;
    world_start(&w, NULL);
    world_run(&w, 1, 0);
    recorder_counts(w.r, &c);
    assert_false(c.healthy);
    assert_non_null(strstr(c.last_error, "move away"));
    world_end(&w);
}

static void a_directory_of_several_levels_is_made(void **state)
{
    struct world w;
    char path[100];
    struct stat st;

    (void)state;
    world_new(&w);
    snprintf(path, sizeof path, "%s/a/b", w.dir);
    w.cfg.directory = path;
    world_start(&w, NULL);
    world_run(&w, 1, 0);
    recorder_finish(w.r, w.now);
    assert_int_equal(world_count(path, ".mcap"), 1);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0027, 0);
    world_remove(path);
    path[strlen(path) - 2] = 0;
    world_remove(path);
    world_end(&w);
}

// ---- a disk that is slow -------------------------------------------------------------------------

static bool hang;

// Five seconds of the robot's life, while the recorder waits for its disk.
static void meanwhile(void *arg)
{
    struct world *w = arg;

    if (!hang)
        return;
    hang = false;
    for (int i = 0; i < 1000; i++) {
        w->now += 5 * NS_PER_MS;
        world_feed_joints(w);
        world_feed_tick(w);
        if (i % 10 == 0)
            world_feed_frame(w, 0, TAPE_COMPRESSED, 20000);
    }
}

static void a_slow_disk_costs_frames_first(void **state)
{
    static const struct tape_sizes sizes = {{[TAPE_FRAMES] = 512u << 10,
                                             [TAPE_EVENTS] = 64u << 10,
                                             [TAPE_CHUNKS] = 64u << 10,
                                             [TAPE_BUS] = 512u << 10,
                                             [TAPE_TICKS] = 4u << 20}};
    struct recorder_counts c;
    struct world w;
    struct found f;

    (void)state;
    world_new(&w);
    w.bad.slow = meanwhile;
    w.bad.slow_arg = &w;
    world_start(&w, &sizes);
    world_run(&w, 2, 20);
    hang = true;
    world_run(&w, 5, 20);
    assert_false(hang);
    recorder_finish(w.r, w.now);
    recorder_counts(w.r, &c);
    world_read_all(&w, &f);
    assert_true(c.lost[TAPE_FRAMES] > 0);
    assert_int_equal(c.lost[TAPE_BUS], 0);
    assert_int_equal(c.lost[TAPE_TICKS], 0);
    assert_int_equal(c.lost_messages, 0);
    assert_int_equal(f.ticks, w.ticks);
    assert_false(f.gap);
    assert_int_equal(f.joints, w.joints);
    assert_int_equal(f.frames + c.lost[TAPE_FRAMES], w.frames);
    assert_int_equal(said_lost(&f, "frames"), c.lost[TAPE_FRAMES]);
    assert_int_equal(said_lost(&f, "tick records"), 0);
    world_end(&w);
}

// Much longer, or a much smaller tape: ticks go, too, and that is exact as well.
static void what_does_not_fit_is_counted_by_class(void **state)
{
    static const struct tape_sizes sizes = {{[TAPE_FRAMES] = 256u << 10,
                                             [TAPE_EVENTS] = 4096,
                                             [TAPE_CHUNKS] = 4096,
                                             [TAPE_BUS] = 64u << 10,
                                             [TAPE_TICKS] = 256u << 10}};
    struct recorder_counts c;
    struct world w;
    struct found f;

    (void)state;
    world_new(&w);
    w.bad.slow = meanwhile;
    w.bad.slow_arg = &w;
    world_start(&w, &sizes);
    world_run(&w, 2, 20);
    hang = true;
    world_run(&w, 5, 20);
    for (int i = 0; i < 100; i++)
        tape_event(w.tape, w.now, TAPE_LEVEL_INFO, "actd",
                   "a line of the log, of some length");
    world_run(&w, 2, 20);
    recorder_finish(w.r, w.now);
    recorder_counts(w.r, &c);
    world_read_all(&w, &f);
    for (int i = 0; i < TAPE_CLASSES; i++)
        if (i != TAPE_CHUNKS)
            assert_true(c.lost[i] > 0);
    assert_int_equal(f.ticks + c.lost[TAPE_TICKS], w.ticks);
    assert_int_equal(f.frames + c.lost[TAPE_FRAMES], w.frames);
    assert_int_equal(said_lost(&f, "tick records"), c.lost[TAPE_TICKS]);
    world_end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full),
        cmocka_unit_test(full_in_the_middle_of_a_chunk),
        cmocka_unit_test(broken),
        cmocka_unit_test(a_failed_file_ends_at_its_last_good_record),
        cmocka_unit_test(one_bad_write_still_gets_a_summary),
        cmocka_unit_test(it_tries_again_ever_more_slowly),
        cmocka_unit_test(a_full_disk_does_not_fill_with_empty_files),
        cmocka_unit_test(a_sync_that_fails_ends_the_file),
        cmocka_unit_test(a_removed_directory_is_made_anew),
        cmocka_unit_test(a_file_that_was_replaced_is_ended),
        cmocka_unit_test(a_file_in_the_way),
        cmocka_unit_test(a_directory_of_several_levels_is_made),
        cmocka_unit_test(a_slow_disk_costs_frames_first),
        cmocka_unit_test(what_does_not_fit_is_counted_by_class),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
