// blackbox_writer: every way a disk can fail, and what is said of it.
#include <pthread.h>
#include <semaphore.h>

#include "tests/unit/blackbox_scene.h"

static int fail_at, fail_with,
    written; // the fail_at-th write from now on gives fail_with
static ssize_t failing(int fd, const void *data, size_t n)
{
    if (fail_at > 0 && --fail_at == 0) {
        errno = fail_with;
        return -1;
    }
    written++;
    return write(fd, data, n);
}

static void check_failed(uint64_t failures, const char *what, const char *remedy)
{
    assert_int_equal(w.counts.failed, failures);
    if (strstr(w.counts.last_error, what) == NULL ||
        strstr(w.counts.last_error, remedy) == NULL ||
        strstr(w.counts.last_error, w.dir) == NULL)
        fail_msg("said: %s", w.counts.last_error);
    assert_int_equal(files(".part"), 0);
}

static void write_errors(void **state)
{
    (void)state;
    static const struct {
        int error;
        const char *what, *remedy;
    } way[] = {
        {ENOSPC, "No space left", "free some space"},
        {EDQUOT, "quota", "free some space"},
        {EIO, "Input/output error", "the disk fails"},
        {EROFS, "Read-only", "mount it writable"},
        {EFBIG, "File too large", "raise the limit"},
        {EPERM, "not permitted", "give it to the user"},
    };
    uint64_t good = 0;

    open_world(SUB, 0, failing);
    w.writer->text.size = 2 * BLACKBOX_ROW_MAX; // more than two blocks
    ticks(600);
    for (uint64_t i = 0; i < sizeof way / sizeof *way; i++) {
        fail_with = way[i].error;
        fail_at = 1 + (int)i % 2; // the first block, and in the middle
        written = 0;
        fault(REASON_OPERATOR);
        check_failed(i + 1, way[i].what, way[i].remedy);
        assert_int_equal(written, i % 2);
        assert_int_equal(w.counts.dumped, good);
        fault(REASON_OPERATOR); // the next fault tries again
        assert_int_equal(w.counts.dumped, ++good);
        assert_string_equal(w.counts.last_error, "");
    }
    assert_int_equal(files(".csv"), good);
    close_world();
}

// Interrupted and partial writes are no errors.
static ssize_t crumbs(int fd, const void *data, size_t n)
{
    static int turn;

    if (turn++ % 3 == 0) {
        errno = EINTR;
        return -1;
    }
    return write(fd, data, n > 1000 ? 1000 : n);
}

static void partial_writes(void **state)
{
    (void)state;
    char *all, *some;

    open_world(SUB, 0, NULL);
    ticks(300);
    tick(REASON_OPERATOR);
    poll_at(w.now_ns);
    all = content(w.counts.last_path);
    close_world();
    open_world(SUB, 0, crumbs);
    ticks(300);
    tick(REASON_OPERATOR);
    poll_at(w.now_ns);
    some = content(w.counts.last_path);
    assert_string_equal(all, some);
    free(all);
    free(some);
    close_world();
}

static ssize_t nothing(int fd, const void *data, size_t n)
{
    (void)fd, (void)data, (void)n;
    return 0;
}

// What NFS says of a full disk it says when the file is closed.
static ssize_t close_fails(int fd, const void *data, size_t n)
{
    ssize_t done = write(fd, data, n);

    close(fd);
    return done;
}

static void nothing_written_and_close_errors(void **state)
{
    (void)state;

    open_world(SUB, 0, nothing);
    fault(REASON_OPERATOR);
    check_failed(1, "Input/output error", "the disk fails");
    close_world();
    open_world(SUB, 0, close_fails);
    fault(REASON_OPERATOR);
    check_failed(1, "Bad file descriptor", "black_box.directory");
    assert_int_equal(files(".csv"), 0);
    assert_int_equal(w.counts.dumped, 0);
    close_world();
}

static ssize_t remove_directory(int fd, const void *data, size_t n)
{
    char command[300];

    snprintf(command, sizeof command, "rm -rf '%s'", w.dir);
    return system(command) == 0 ? write(fd, data, n) : -1;
}

// Gone between two faults it is made again; gone while the file is written is a failure.
static void directory_removed(void **state)
{
    (void)state;
    char command[300];

    open_world(SUB, 0, NULL);
    fault(REASON_OPERATOR);
    snprintf(command, sizeof command, "rm -rf '%s'", w.dir);
    assert_int_equal(system(command), 0);
    fault(REASON_OPERATOR);
    assert_int_equal(w.counts.dumped, 2);
    assert_int_equal(files(".csv"), 1);
    w.writer->write = remove_directory;
    fault(REASON_OPERATOR);
    assert_int_equal(w.counts.failed, 1);
    assert_non_null(strstr(w.counts.last_error, "cannot write a file: No such file"));
    w.writer->write = write;
    fault(REASON_OPERATOR);
    assert_int_equal(w.counts.dumped, 3);
    assert_string_equal(w.counts.last_error, "");
    close_world();
}

static void file_in_its_place(void **state)
{
    (void)state;

    open_world(SUB, 0, NULL);
    assert_int_equal(rmdir(w.dir), 0);
    assert_int_equal(symlink("/dev/null", w.dir), 0);
    fault(REASON_OPERATOR);
    assert_int_equal(w.counts.failed, 1);
    assert_non_null(strstr(w.counts.last_error,
                           "cannot use the directory: Not a directory; "
                           "move away what lies there"));
    assert_int_equal(unlink(w.dir), 0);
    fault(REASON_OPERATOR);
    assert_int_equal(w.counts.dumped, 1);
    close_world();
}

// Nothing can be made in /proc, root or not: said at the start already.
static void directory_that_can_not_be(void **state)
{
    (void)state;
    struct blackbox_writer_config cfg = {"/proc/actd/x", "arm", joint, camera, 0, NULL};
    struct blackbox_writer *v;
    struct blackbox_counts c;

    open_world(SUB, 0, NULL);
    assert_int_equal(blackbox_writer_make(&v, w.box, &cfg), 0);
    blackbox_writer_counts(v, &c);
    assert_int_equal(c.failed, 1);
    assert_non_null(strstr(c.last_error, "black box: /proc/actd/x: cannot use"));
    tick(REASON_OPERATOR);
    assert_true(blackbox_writer_poll(v, w.now_ns, false));
    blackbox_writer_counts(v, &c);
    assert_int_equal(c.failed, 2);
    assert_int_equal(c.dumped, 0);
    assert_string_equal(c.last_path, "");
    blackbox_writer_free(v);
    close_world();
}

static void long_paths(void **state)
{
    (void)state;
    char name[5000], said[512];

    memset(name, 'x', sizeof name - 1);
    name[0] = '/';
    name[sizeof name - 1] = 0;
    assert_int_equal(blackbox_file_directory(name), -ENAMETOOLONG);
    blackbox_file_say(said, sizeof said, name, "use the directory", -ENAMETOOLONG);
    assert_non_null(strstr(said, "File name too long; name a place in"));
}

static sem_t hangs, goes_on;
static ssize_t hanging(int fd, const void *data, size_t n)
{
    sem_post(&hangs);
    sem_wait(&goes_on);
    return write(fd, data, n);
}

// A disk that never answers: the loop goes on, the stop is bounded, and when the disk
// comes back after all the ring is long gone. The writer frees the rest: the leak checker
// looks.
static void disk_hangs(void **state)
{
    (void)state;
    struct blackbox_writer_config cfg = {w.dir, "arm", joint, camera, 0, hanging};
    struct blackbox_writer *v;
    ns_t from_ns, took_ns, until_ns;

    sem_init(&hangs, 0, 0);
    sem_init(&goes_on, 0, 0);
    open_world(SUB, 0, NULL);
    assert_int_equal(blackbox_writer_start(&v, w.box, &cfg), 0);
    ticks(20);
    tick(REASON_OPERATOR);
    sem_wait(&hangs);
    tick(REASON_ESTOP); // no one to write it: it waits, and nothing waits for it
    ticks(2000);
    from_ns = clock_now_ns();
    blackbox_writer_stop(v);
    took_ns = clock_now_ns() - from_ns;
    assert_true(took_ns > 2 * NS_PER_S && took_ns < LONG_NS);
    blackbox_writer_free(w.writer);
    blackbox_free(w.box);
    w.writer = NULL;
    w.box = NULL;
    sem_post(&goes_on);
    until_ns = clock_now_ns() + LONG_NS;
    while (files(".csv") == 0 && clock_now_ns() < until_ns)
        clock_sleep_until(clock_now_ns() + NS_PER_MS);
    assert_int_equal(files("-OPERATOR.csv"), 1);
    assert_int_equal(files("-ESTOP.csv"), 0);
    close_world();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(write_errors),
        cmocka_unit_test(partial_writes),
        cmocka_unit_test(nothing_written_and_close_errors),
        cmocka_unit_test(directory_removed),
        cmocka_unit_test(file_in_its_place),
        cmocka_unit_test(directory_that_can_not_be),
        cmocka_unit_test(long_paths),
        cmocka_unit_test(disk_hangs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
