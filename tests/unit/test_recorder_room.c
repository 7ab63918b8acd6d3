// The recorder makes room, and never with what is not its own; what a killed run left becomes a
// whole file; and the thread, which a disk that hangs does not keep from ending.
#include <pthread.h>
#include <sys/file.h>

#include "tests/unit/recorder_world.h"

#define KB 1024

static void make_file(const char *dir, const char *name, size_t kb)
{
    char path[400], block[KB];
    FILE *f;

    memset(block, 'x', sizeof block);
    snprintf(path, sizeof path, "%s/%s", dir, name);
    f = fopen(path, "w");
    assert_non_null(f);
    while (kb-- > 0)
        assert_int_equal(fwrite(block, sizeof block, 1, f), 1);
    fclose(f);
}

static bool there(const char *dir, const char *name)
{
    char path[400];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    return access(path, F_OK) == 0;
}

// ---- room ----------------------------------------------------------------------------------------

// A disk of 1000 kB, of which everything in the directory takes its share.
static int64_t small_disk(void *arg, int dir)
{
    int64_t there_is = 1000 * KB;
    const char *path = arg;
    struct names l;
    struct stat st;

    (void)dir;
    world_names(path, "", &l);
    for (int i = 0; i < l.n; i++)
        if (stat(l.name[i], &st) == 0)
            there_is -= st.st_size;
    return there_is;
}

static void old_ones_go_first_faults_last_strangers_never(void **state)
{
    static const char *const stranger[] = {
        "notes.mcap", "arm2-20200101T000000Z-0001.mcap",
        "arm-20200101T000000Z-0001.mcap.part", "arm-20200101T000000Z-0001-mine.mcap",
        "arm-20200101T000000Z-1.mcap"};
    char dir[] = "/tmp/test_recorder.XXXXXX";
    struct recorder_disk disk = {dir, NULL, NULL, NULL, small_disk};
    struct recorder_room q = {.keep_free = 0};
    int fd;

    (void)state;
    assert_non_null(mkdtemp(dir));
    fd = open(dir, O_RDONLY | O_DIRECTORY);
    for (size_t i = 0; i < sizeof stranger / sizeof *stranger; i++)
        make_file(dir, stranger[i], 10);
    make_file(dir, "arm-20200101T000000Z-0001-fault.mcap", 100);
    make_file(dir, "arm-20200102T000000Z-0002.mcap", 100);
    make_file(dir, "arm-20200103T000000Z-0001.mcap", 100);
    make_file(dir, "arm-20200104T000000Z-0001.mcap", 100);
    assert_int_equal(recorder_room_make(&q, &disk, fd, "arm"), 0);
    assert_int_equal(q.removed, 0);
    q.keep_free = 700 * KB; // 550 are free
    assert_int_equal(recorder_room_make(&q, &disk, fd, "arm"), 0);
    assert_int_equal(q.removed, 2);
    assert_false(there(dir, "arm-20200102T000000Z-0002.mcap"));
    assert_false(there(dir, "arm-20200103T000000Z-0001.mcap"));
    assert_true(there(dir, "arm-20200104T000000Z-0001.mcap"));
    assert_true(there(dir, "arm-20200101T000000Z-0001-fault.mcap"));
    q.keep_free = UINT64_MAX / 2; // more than any disk has: a slip of the pen
    assert_int_equal(recorder_room_make(&q, &disk, fd, "arm"), -ENOSPC);
    assert_int_equal(q.removed, 0);
    q.keep_free = 990 * KB; // more than there can be
    assert_int_equal(recorder_room_make(&q, &disk, fd, "arm"), -ENOSPC);
    assert_int_equal(q.removed, 1);
    assert_true(there(dir, "arm-20200101T000000Z-0001-fault.mcap"));
    for (size_t i = 0; i < sizeof stranger / sizeof *stranger; i++)
        assert_true(there(dir, stranger[i]));
    close(fd);
    world_remove(dir);
}

static void of_many_faults_the_oldest_go_and_eight_stay(void **state)
{
    char dir[] = "/tmp/test_recorder.XXXXXX", name[64];
    struct recorder_disk disk = {dir, NULL, NULL, NULL, small_disk};
    struct recorder_room q = {.keep_free = 990 * KB};
    int fd;

    (void)state;
    assert_non_null(mkdtemp(dir));
    fd = open(dir, O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof name, "arm-2020010%dT000000Z-0001-fault.mcap", i);
        make_file(dir, name, 10);
    }
    make_file(dir, "arm-20200109T000000Z-0002.mcap", 10); // newer, and no fault: first
    assert_int_equal(recorder_room_make(&q, &disk, fd, "arm"), -ENOSPC);
    assert_int_equal(q.removed, 3);
    assert_int_equal(world_count(dir, "-fault.mcap"), 8);
    assert_false(there(dir, "arm-20200101T000000Z-0001-fault.mcap"));
    assert_true(there(dir, "arm-20200102T000000Z-0001-fault.mcap"));
    close(fd);
    world_remove(dir);
}

static void links_and_directories_stay(void **state)
{
    char dir[] = "/tmp/test_recorder.XXXXXX", path[100];
    struct recorder_disk disk = {dir, NULL, NULL, NULL, small_disk};
    struct recorder_room q = {.keep_free = 2000 * KB};
    int fd;

    (void)state;
    assert_non_null(mkdtemp(dir));
    fd = open(dir, O_RDONLY | O_DIRECTORY);
    make_file(dir, "precious", 1);
    snprintf(path, sizeof path, "%s/arm-20200101T000000Z-0001.mcap", dir);
    assert_int_equal(symlink("precious", path), 0);
    assert_int_equal(recorder_room_make(&q, &disk, fd, "arm"), -ENOSPC);
    assert_int_equal(q.removed, 0);
    assert_true(there(dir, "precious"));
    assert_true(there(dir, "arm-20200101T000000Z-0001.mcap"));
    close(fd);
    world_remove(dir);
}

static void the_whole_stays_below_most_bytes(void **state)
{
    struct recorder_counts c;
    struct names l;
    struct world w;
    struct found f;
    struct stat st;

    (void)state;
    world_new(&w);
    w.cfg.most_bytes = 8u << 20;
    world_start(&w, NULL);
    for (int s = 0; s < 40; s++) {
        int64_t sum = 0;

        world_run(&w, 1, 50);
        world_names(w.dir, "", &l);
        for (int i = 0; i < l.n; i++)
            sum += stat(l.name[i], &st) == 0 ? st.st_size : 0;
        assert_true(sum < (8 << 20) + (2 << 20)); // looked at every second, 1 MB/s
    }
    recorder_finish(w.r, w.now);
    recorder_counts(w.r, &c);
    assert_true(c.removed > 5);
    assert_true(c.healthy);
    assert_int_equal(c.lost_messages, 0);
    world_read_all(&w, &f);
    assert_false(f.gap);
    assert_int_equal(f.last_tick, w.ticks);
    world_end(&w);
}

static void no_room_is_said_and_mends_itself(void **state)
{
    struct recorder_counts c;
    struct world w;

    (void)state;
    world_new(&w);
    w.cfg.keep_free_bytes = 1000;
    w.bad.free = 2000;
    world_start(&w, NULL);
    world_run(&w, 3, 0);
    recorder_counts(w.r, &c);
    assert_true(c.recording);
    w.bad.free = 500; // others fill the disk
    world_run(&w, 3, 0);
    recorder_counts(w.r, &c);
    assert_false(c.recording);
    assert_non_null(strstr(c.last_error, "keep_free_mb"));
    w.bad.free = 5000;
    world_run(&w, 8, 0);
    recorder_counts(w.r, &c);
    assert_true(c.recording && c.healthy);
    world_end(&w);
}

// ---- what a killed run left ------------------------------------------------------------------------

// As it stands after a kill: the bytes without their writer, at the end of them a torn record.
static void copy_part(struct world *w, const char *name, size_t torn)
{
    char path[400], block[4096];
    struct names l;
    FILE *from, *to;
    size_t n;

    world_names(w->dir, ".part", &l);
    assert_true(l.n > 0);
    snprintf(path, sizeof path, "%s/%s", w->dir, name);
    from = fopen(l.name[l.n - 1], "r"); // the newest
    to = fopen(path, "w");
    while ((n = fread(block, 1, sizeof block, from)) > 0)
        assert_int_equal(fwrite(block, 1, n, to), n);
    memset(block, 6, sizeof block);
    assert_int_equal(fwrite(block, 1, torn, to), torn);
    fclose(from);
    fclose(to);
}

static void parts_of_the_killed_become_whole(void **state)
{
    struct world w;
    struct found f = {0};
    char path[400];

    (void)state;
    world_new(&w);
    world_start(&w, NULL);
    world_run(&w, 3, 20);
    copy_part(&w, "arm-20200101T000000Z-0001.mcap.part", 100);
    copy_part(&w, "arm-20200101T000000Z-0002-fault.mcap.part", 0);
    make_file(w.dir, "arm-20200101T000000Z-0003.mcap.part", 0);
    make_file(w.dir, "arm-20200101T000000Z-0004.mcap.part", 3); // nothing of a log in it
    make_file(w.dir, "brm-20200101T000000Z-0001.mcap.part", 1);
    // Of a recovery that was killed; and what only looks like it.
    make_file(w.dir, "arm-20200101T000000Z-0001-recovered.mcap.aB3dEf", 1);
    make_file(w.dir, "arm-20200101T000000Z-0001-recovered.mcap.mine", 1);
    make_file(w.dir, "arm-20200101T000000Z-0009-recovered.mcap.aB3dEf", 1);
    assert_int_equal(recorder_rescue_now(w.dir, "arm"), 3);
    assert_false(there(w.dir, "arm-20200101T000000Z-0001-recovered.mcap.aB3dEf"));
    assert_true(there(w.dir, "arm-20200101T000000Z-0001-recovered.mcap.mine"));
    assert_true(there(w.dir, "arm-20200101T000000Z-0009-recovered.mcap.aB3dEf"));
    assert_true(there(w.dir, "arm-20200101T000000Z-0001.mcap"));
    assert_true(there(w.dir, "arm-20200101T000000Z-0002-fault.mcap"));
    assert_false(there(w.dir, "arm-20200101T000000Z-0003.mcap.part"));
    assert_true(there(w.dir, "arm-20200101T000000Z-0004.mcap.part"));
    assert_true(there(w.dir, "brm-20200101T000000Z-0001.mcap.part"));
    assert_int_equal(world_count(w.dir, ".mcap.part"),
                     3); // and the one being written: it is held
    snprintf(path, sizeof path, "%s/arm-20200101T000000Z-0001.mcap", w.dir);
    assert_true(world_read(path, &f));
    assert_true(f.ticks + 81 >= w.ticks);
    world_run(&w, 1, 20);
    recorder_finish(w.r, w.now);
    assert_int_equal(world_count(w.dir, ".mcap"), 3);
    world_end(&w);
}

static void a_name_that_is_taken_is_left_alone(void **state)
{
    struct world w;

    (void)state;
    world_new(&w);
    world_start(&w, NULL);
    world_run(&w, 1, 20);
    copy_part(&w, "arm-20200101T000000Z-0001.mcap.part", 0);
    make_file(w.dir, "arm-20200101T000000Z-0001.mcap", 1);
    assert_int_equal(recorder_rescue_now(w.dir, "arm"), 0);
    assert_true(there(w.dir, "arm-20200101T000000Z-0001.mcap.part"));
    assert_int_equal(recorder_rescue_now("/nowhere/at/all", "arm"), 0);
    world_end(&w);
}

// ---- the thread ------------------------------------------------------------------------------------

static void it_runs_and_ends(void **state)
{
    struct recorder *r;
    struct world w;
    struct found f;

    (void)state;
    world_new(&w);
    assert_int_equal(tape_new(&w.tape, NULL), 0);
    w.cfg.disk = NULL;
    assert_int_equal(recorder_start(&r, w.tape, &w.cfg), 0);
    assert_true(tape_on(w.tape)); // before it returned
    for (int i = 0; i < 1000; i++) {
        w.now = clock_now_ns();
        world_feed_tick(&w);
    }
    assert_true(recorder_stop(r));
    assert_true(recorder_stop(NULL));
    assert_int_equal(world_read_all(&w, &f), 1);
    assert_int_equal(f.ticks, 1000);
    tape_free(w.tape);
    world_remove(w.dir);
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void hangs(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
}

static void a_disk_that_hangs_is_left_behind(void **state)
{
    static struct world w; // outlives the test: the thread may still look at it
    struct recorder_counts c;
    struct recorder *r;
    ns_t began;

    (void)state;
    world_new(&w);
    assert_int_equal(tape_new(&w.tape, NULL), 0);
    w.bad.slow = hangs;
    pthread_mutex_lock(&gate);
    assert_int_equal(recorder_start(&r, w.tape, &w.cfg), 0);
    clock_sleep_until(clock_now_ns() + 2100 * NS_PER_MS);
    recorder_counts(r, &c); // does not wait for it
    assert_false(c.healthy);
    assert_non_null(strstr(c.last_error, "not answered"));
    began = clock_now_ns();
    assert_false(recorder_stop(r));
    assert_in_range(clock_now_ns() - began, 2900 * NS_PER_MS, 4 * NS_PER_S);
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < 200 && world_count(w.dir, ".mcap") == 0; i++)
        clock_sleep_until(clock_now_ns() + 10 * NS_PER_MS);
    assert_int_equal(world_count(w.dir, ".mcap"), 1); // it ended the file all the same
    world_remove(w.dir); // the tape stays: nobody says when the thread has done with it
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(old_ones_go_first_faults_last_strangers_never),
        cmocka_unit_test(of_many_faults_the_oldest_go_and_eight_stay),
        cmocka_unit_test(links_and_directories_stay),
        cmocka_unit_test(the_whole_stays_below_most_bytes),
        cmocka_unit_test(no_room_is_said_and_mends_itself),
        cmocka_unit_test(parts_of_the_killed_become_whole),
        cmocka_unit_test(a_name_that_is_taken_is_left_alone),
        cmocka_unit_test(it_runs_and_ends),
        cmocka_unit_test(a_disk_that_hangs_is_left_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
