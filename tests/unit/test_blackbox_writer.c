// blackbox_writer: what is in the file, which files stay, and every way a disk can fail. The
// logic runs without the thread, on a clock of the test; the thread is there where it matters.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/blackbox_impl.h"
#include "daemon/config_black_box.h"

#define JOINTS  3
#define CAMERAS 2
#define HZ      100
#define STEP_NS (NS_PER_S / HZ)

static const char *const joint[] = {"base", "elbow", "grip,per"};
static const char *const camera[] = {"top", "wrist"};

// ---- one directory, one ring, one writer -------------------------------------------------------

struct world {
    char dir[256];
    struct blackbox *box;
    struct blackbox_writer *writer;
    struct blackbox_counts counts;
    ns_t now_ns;
    uint64_t ticks;
};
static struct world w;

static void near(double got, double want, double by)
{
    if (!(got >= want - by && got <= want + by))
        fail_msg("%.12g is not %.12g", got, want);
}

static double value(uint64_t tick, int j, int what)
{
    return ((double)tick - 300) * 0.001234567 + j * 10 - what / 7.0;
}

static void tick(enum ladder_reason fault)
{
    struct blackbox_record *r = blackbox_tick(w.box);

    w.ticks++;
    w.now_ns += STEP_NS;
    r->tick = 1000 + w.ticks;
    r->now_ns = w.now_ns;
    r->lateness_ns = (ns_t)w.ticks;
    r->mode = fault ? LADDER_STOPPING : LADDER_RUNNING;
    r->reason = fault;
    r->latched = fault ? UINT64_C(1) << fault : 0;
    for (int j = 0; j < JOINTS; j++)
        r->joint[j] = (struct blackbox_joint){value(r->tick, j, 0), value(r->tick, j, 1),
                                              value(r->tick, j, 2), value(r->tick, j, 3),
                                              value(r->tick, j, 4), value(r->tick, j, 5),
                                              value(r->tick, j, 6), GUARD_NONE};
    blackbox_commit(w.box, fault);
}

static void ticks(int n)
{
    while (n-- > 0)
        tick(REASON_NONE);
}

static void poll_at(ns_t now_ns)
{
    assert_true(blackbox_writer_poll(w.writer, now_ns, false));
    blackbox_writer_counts(w.writer, &w.counts);
}

// A second later, so that the rate of files is never in the way.
static void fault(enum ladder_reason reason)
{
    ticks(HZ);
    tick(reason);
    poll_at(w.now_ns);
}

static void open_world(const char *sub, int keep,
                       ssize_t (*fn)(int, const void *, size_t))
{
    char temp[] = "/tmp/actd-box-XXXXXX";
    struct blackbox_writer_config cfg = {.directory = w.dir,
                                         .instance = "arm",
                                         .joint = joint,
                                         .camera = camera,
                                         .keep = keep,
                                         .write = fn};

    memset(&w, 0, sizeof w);
    w.now_ns = 1000 * NS_PER_S;
    assert_non_null(mkdtemp(temp));
    snprintf(w.dir, sizeof w.dir, "%s%s", temp, sub);
    assert_int_equal(blackbox_new(&w.box, JOINTS, CAMERAS, HZ), 0);
    assert_int_equal(blackbox_writer_make(&w.writer, w.box, &cfg), 0);
}

static void close_world(void)
{
    char command[300];

    blackbox_writer_free(w.writer);
    blackbox_free(w.box);
    *strchr(w.dir + 5, '/') = 0; // the temporary directory itself
    snprintf(command, sizeof command, "rm -rf '%s'", w.dir);
    assert_int_equal(system(command), 0);
}
#define SUB "/a/b" // made by the writer

static char *path(const char *name)
{
    static char out[1024];

    snprintf(out, sizeof out, "%s/%s", w.dir, name);
    return out;
}

static bool is_there(const char *name)
{
    struct stat st;

    return lstat(path(name), &st) == 0;
}

static void make(const char *name)
{
    int fd = open(path(name), O_WRONLY | O_CREAT | O_EXCL, 0600);

    assert_true(fd >= 0);
    close(fd);
}

static int files(const char *end) // whose name ends so
{
    DIR *d = opendir(w.dir);
    struct dirent *e;
    int n = 0;

    assert_non_null(d);
    while ((e = readdir(d)) != NULL) {
        size_t length = strlen(e->d_name), tail = strlen(end);

        n += length >= tail && strcmp(e->d_name + length - tail, end) == 0;
    }
    closedir(d);
    return n;
}

static char *content(const char *file)
{
    FILE *f = fopen(file, "r");
    struct stat st;
    char *text;

    assert_non_null(f);
    assert_int_equal(fstat(fileno(f), &st), 0);
    text = malloc((size_t)st.st_size + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, (size_t)st.st_size, f), st.st_size);
    text[st.st_size] = 0;
    fclose(f);
    return text;
}

// ---- what is in it -----------------------------------------------------------------------------

// Columns in front of the first joint, and of one joint.
#define FIXED (15 + CAMERAS + 4)
#define EACH  8

static void check_row(char *line, uint64_t number, ns_t zero_ns)
{
    char *cell[FIXED + EACH * JOINTS + 1] = {0};
    int n = 0;
    uint64_t number_1000 = number + 1000;
    ns_t now_ns = 1000 * NS_PER_S + (ns_t)number * STEP_NS;

    for (char *at = line; at != NULL && n <= FIXED + EACH * JOINTS; n++)
        cell[n] = strsep(&at, ",");
    assert_int_equal(n, FIXED + EACH * JOINTS);
    assert_int_equal(strtoull(cell[0], NULL, 10), number_1000);
    near(strtod(cell[1], NULL), (double)(now_ns - zero_ns) / 1e9, 1e-9);
    near(strtod(cell[2], NULL), (double)now_ns / 1e9, 1e-9);
    near(strtod(cell[3], NULL), (double)number / 1e3, 1e-9);
    assert_string_equal(cell[5], now_ns == zero_ns ? "STOPPING" : "RUNNING");
    assert_string_equal(cell[6], now_ns == zero_ns ? "JOINTS_STALE" : "NONE");
    assert_string_equal(cell[7], now_ns == zero_ns ? "JOINTS_STALE" : "");
    for (int j = 0; j < JOINTS; j++)
        for (int i = 0; i < EACH - 1; i++)
            near(strtod(cell[FIXED + EACH * j + i], NULL), value(number_1000, j, i),
                 6e-10);
    assert_string_equal(cell[FIXED + EACH * JOINTS - 1], "NONE");
}

// 700 ticks at 100 Hz, a fault in the 690th: rows 190 … 700, and not one more or less.
static void exact_contents(void **state)
{
    (void)state;
    char *text, *at, *line;
    uint64_t number = 190;
    mode_t mask = umask(0);
    struct stat st;

    open_world(SUB, 0, NULL);
    ticks(689);
    tick(REASON_JOINTS_STALE);
    ticks(10);
    poll_at(w.now_ns);
    assert_int_equal(w.counts.dumped, 1);
    assert_int_equal(w.counts.failed, 0);
    assert_string_equal(w.counts.last_error, "");
    text = at = content(w.counts.last_path);
    line = strsep(&at, "\n");
    assert_int_equal(strncmp(line, "tick,time_s,monotonic_s,", 24), 0);
    assert_non_null(strstr(line, ",\"grip,per.limit\""));
    while ((line = strsep(&at, "\n")) != NULL && *line != 0)
        check_row(line, number++, 1000 * NS_PER_S + 690 * STEP_NS);
    assert_int_equal(number, 701);
    free(text);
    assert_int_equal(stat(w.counts.last_path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);
    assert_int_equal(stat(w.dir, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0750);
    umask(mask);
    assert_int_equal(files(".part"), 0);
    poll_at(w.now_ns + 10 * NS_PER_S); // once per fault
    assert_int_equal(w.counts.dumped, 1);
    close_world();
}

// A loop that ran for less than 5 s, and one that stalled before its first tick.
static void short_history(void **state)
{
    (void)state;
    char *text;
    int lines = 0;

    open_world(SUB, 0, NULL);
    blackbox_trigger(w.box, REASON_LOOP_STALLED);
    poll_at(w.now_ns);
    assert_int_equal(w.counts.dumped, 1);
    text = content(w.counts.last_path);
    assert_int_equal(strncmp(text, "tick,", 5), 0);
    assert_ptr_equal(strchr(text, '\n') + 1, text + strlen(text));
    free(text);
    ticks(7);
    blackbox_trigger(w.box, REASON_LOOP_STALLED);
    poll_at(w.now_ns);
    text = content(w.counts.last_path);
    for (char *c = text; *c != 0; c++)
        lines += *c == '\n';
    assert_int_equal(lines, 8);
    free(text);
    close_world();
}

// blackbox-arm-20261129T201500.123Z-TICK_GAP.csv, the time of the fault, not of the writing.
static void name_says_when_and_why(void **state)
{
    (void)state;
    const char *name;
    struct tm tm = {0};
    time_t now, at;

    open_world(SUB, 0, NULL);
    ticks(100);
    tick(REASON_TICK_GAP);
    now = time(NULL);
    poll_at(w.now_ns + 100 * NS_PER_S); // 100 s late, by our clock
    name = strrchr(w.counts.last_path, '/') + 1;
    assert_int_equal(strncmp(name, "blackbox-arm-", 13), 0);
    assert_int_equal(strlen(name + 13), strlen("20261129T201500.123Z-TICK_GAP.csv"));
    assert_non_null(strptime(name + 13, "%Y%m%dT%H%M%S", &tm));
    at = timegm(&tm);
    assert_true(at >= now - 101 && at <= now - 98);
    assert_string_equal(name + 13 + 19, "Z-TICK_GAP.csv");
    close_world();
}

// ---- how often ---------------------------------------------------------------------------------

static uint64_t dumped_by(ns_t now_ns)
{
    poll_at(now_ns);
    return w.counts.dumped;
}

static void four_at_once_then_one_a_second(void **state)
{
    (void)state;
    ns_t t;

    open_world(SUB, 0, NULL);
    ticks(600);
    t = w.now_ns;
    for (uint64_t i = 1; i <= 4; i++) {
        blackbox_trigger(w.box, REASON_OPERATOR);
        assert_int_equal(dumped_by(t), i);
    }
    blackbox_trigger(w.box, REASON_ESTOP);
    blackbox_trigger(w.box, REASON_OPERATOR);
    assert_int_equal(dumped_by(t + 999 * NS_PER_MS), 4); // it waits
    assert_int_equal(w.counts.superseded, 1);
    assert_int_equal(dumped_by(t + NS_PER_S), 5); // and is not lost
    assert_non_null(strstr(w.counts.last_path, "-ESTOP.csv"));
    blackbox_trigger(w.box, REASON_OPERATOR);
    assert_int_equal(dumped_by(t + 1999 * NS_PER_MS), 5);
    assert_true(blackbox_writer_poll(w.writer, t + 1999 * NS_PER_MS, true)); // the end
    poll_at(t + 1999 * NS_PER_MS);
    assert_int_equal(w.counts.dumped, 6);
    assert_int_equal(files(".csv"), 6);
    close_world();
}

// Faults that come up in the middle of writing: the first gets the next file, the last is in it.
static int ticks_while_writing;
static ssize_t write_and_tick(int fd, const void *data, size_t n)
{
    while (ticks_while_writing > 0)
        tick(ticks_while_writing-- > 2 ? REASON_NO_CHUNK : REASON_ESTOP);
    return write(fd, data, n);
}

static void fault_while_writing(void **state)
{
    (void)state;
    char *text;

    open_world(SUB, 0, write_and_tick);
    ticks(600);
    ticks_while_writing = 5;
    fault(REASON_JOINTS_STALE);
    assert_int_equal(w.counts.dumped, 1);
    text = content(w.counts.last_path);
    assert_null(strstr(text, "ESTOP"));
    free(text);
    poll_at(w.now_ns);
    assert_int_equal(w.counts.dumped, 2);
    assert_int_equal(w.counts.superseded, 4);
    assert_non_null(strstr(w.counts.last_path, "-NO_CHUNK.csv"));
    text = content(w.counts.last_path);
    assert_non_null(strstr(text, "ESTOP"));
    free(text);
    close_world();
}

// ---- which files stay --------------------------------------------------------------------------

static const char *const not_ours[] = {
    "notes.csv",
    "blackbox-arm-20200101T000000.000Z-ESTOP.csv.bak",
    "blackbox-arm-20200101T000000.000Z-ESTOP",
    "blackbox-arm-20200101T000000.000Z-estop.csv",
    "blackbox-arm-20200101T000000Z-ESTOP.csv",
    "blackbox-arm-2020-01-01-ESTOP.csv",
    "blackbox-arm-b-20200101T000000.000Z-ESTOP.csv", // of instance arm-b
    "blackbox-leg-20200101T000000.000Z-ESTOP.csv",
    "blackbox-ar-20200101T000000.000Z-ESTOP.csv",
    "blackbox-arm-b-20200101T000000.000Z-ESTOP.csv.part",
    ".blackbox-arm-20200101T000000.000Z-ESTOP.csv",
};
#define NOT_OURS (sizeof not_ours / sizeof *not_ours)

static void oldest_gives_way(void **state)
{
    (void)state;
    char name[128];

    open_world(SUB, 3, NULL);
    for (size_t i = 0; i < NOT_OURS; i++)
        make(not_ours[i]);
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "blackbox-arm-202001%02dT0000%02d.000Z-ESTOP.csv",
                 31 - i / 10, i % 10);
        make(name);
    }
    make("blackbox-arm-20200101T000000.000Z-ESTOP.csv.part"); // of a crash
    assert_int_equal(
        symlink("/etc/passwd", path("blackbox-arm-20190101T000000.000Z-ESTOP.csv")), 0);
    assert_int_equal(mkdir(path("blackbox-arm-20180101T000000.000Z-ESTOP.csv"), 0700), 0);
    fault(REASON_OPERATOR);
    assert_int_equal(w.counts.dumped, 1);
    assert_string_equal(w.counts.last_error, "");
    for (size_t i = 0; i < NOT_OURS; i++)
        assert_true(is_there(not_ours[i]));
    assert_true(is_there("blackbox-arm-20190101T000000.000Z-ESTOP.csv"));
    assert_true(is_there("blackbox-arm-20180101T000000.000Z-ESTOP.csv"));
    assert_false(is_there("blackbox-arm-20200101T000000.000Z-ESTOP.csv.part"));
    assert_int_equal(access(w.counts.last_path, F_OK), 0);
    assert_true(is_there("blackbox-arm-20200131T000009.000Z-ESTOP.csv")); // the newest
    assert_true(is_there("blackbox-arm-20200131T000008.000Z-ESTOP.csv"));
    assert_false(is_there("blackbox-arm-20200131T000007.000Z-ESTOP.csv"));
    assert_int_equal(files("-OPERATOR.csv"), 1);
    for (int i = 0; i < 5; i++)
        fault(REASON_OPERATOR);
    assert_int_equal(files("-OPERATOR.csv"), 3);
    close_world();
}

// A machine without a clock of its own starts in 1970: the new file sorts first, and stays.
static void new_file_is_never_the_oldest(void **state)
{
    (void)state;

    open_world(SUB, 1, NULL);
    make("blackbox-arm-29990101T000000.000Z-ESTOP.csv");
    fault(REASON_OPERATOR);
    assert_int_equal(access(w.counts.last_path, F_OK), 0);
    assert_false(is_there("blackbox-arm-29990101T000000.000Z-ESTOP.csv"));
    close_world();
}

static void taken_names_and_links(void **state)
{
    (void)state;
    char name[BLACKBOX_NAME], first[BLACKBOX_NAME], part[BLACKBOX_NAME + 8];
    struct stat st;
    int dir, fd;

    open_world(SUB, 0, NULL);
    dir = blackbox_file_directory(w.dir);
    assert_true(dir >= 0);
    assert_int_equal(blackbox_file_name(first, dir, "../x", 0, REASON_ESTOP), 0);
    assert_string_equal(first, "blackbox-.._x-19700101T000000.000Z-ESTOP.csv");
    make("victim");
    assert_int_equal(symlink("victim", path(first)), 0);
    assert_int_equal(blackbox_file_name(name, dir, "../x", 0, REASON_ESTOP), 0);
    assert_string_equal(name, "blackbox-.._x-19700101T000000.001Z-ESTOP.csv");
    snprintf(part, sizeof part, "%s.part", name);
    assert_int_equal(symlink("victim", path(part)), 0);
    assert_int_equal(blackbox_file_open(dir, name), -EEXIST);
    assert_int_equal(unlink(path(part)), 0);
    fd = blackbox_file_open(dir, name);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "x", 1), 1);
    assert_int_equal(blackbox_file_close(dir, name, fd, 0), 0);
    assert_true(is_there(name));
    assert_int_equal(stat(path("victim"), &st), 0);
    assert_int_equal(st.st_size, 0);
    close(dir);
    close_world();
}

// ---- disks that fail ---------------------------------------------------------------------------

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

// ---- the thread --------------------------------------------------------------------------------

#define LONG_NS (20 * NS_PER_S) // a gross bound: the machine may be loaded

static bool wait_for(struct blackbox_writer *v, uint64_t dumped)
{
    ns_t until_ns = clock_now_ns() + LONG_NS;
    struct blackbox_counts c;

    do {
        clock_sleep_until(clock_now_ns() + NS_PER_MS / 2);
        blackbox_writer_counts(v, &c);
    } while (c.dumped < dumped && clock_now_ns() < until_ns);
    return c.dumped >= dumped;
}

static const char *const names[ACTD_MAX_JOINTS] = {
    "j0",  "j1",  "j2",  "j3",  "j4",  "j5",  "j6",  "j7",  "j8",  "j9",  "j10",
    "j11", "j12", "j13", "j14", "j15", "j16", "j17", "j18", "j19", "j20", "j21",
    "j22", "j23", "j24", "j25", "j26", "j27", "j28", "j29", "j30", "j31"};

static struct blackbox_writer *start(struct blackbox *b)
{
    struct blackbox_writer_config cfg = {w.dir, "arm", names, names, 0, NULL};
    struct blackbox_writer *v;

    assert_int_equal(blackbox_writer_start(&v, b, &cfg), 0);
    return v;
}

static void busy_record(struct blackbox *b, uint64_t n, double hz)
{
    struct blackbox_record *r = blackbox_tick(b);

    r->tick = n;
    r->now_ns = (ns_t)((double)n * 1e9 / hz);
    r->lateness_ns = (ns_t)(n * 7919 % 100000);
    r->tick_ns = (ns_t)(n * 104729 % 20000);
    r->conditions = LADDER_C_STARTED | LADDER_C_STREAMS_FRESH | LADDER_C_APPROACHED;
    r->mode = LADDER_RUNNING;
    r->joint_number = n;
    r->chunk_row = (double)(n % 100) / 3;
    for (int j = 0; j < b->joints; j++) {
        double q = (double)((n * 2654435761u + (uint64_t)j * 40503u) % 1000003) / 318310;

        r->joint[j] = (struct blackbox_joint){q - 1, q * 0.7, q + 1e-4, q / 3,
                                              q,     q / 7,   0,        GUARD_NONE};
    }
}

// From the fault to the finished file, at the full 5 s.
static ns_t time_of(double hz, int joints)
{
    struct blackbox *b;
    struct blackbox_writer *v;
    ns_t from_ns, took_ns;
    uint64_t n = 0;

    assert_int_equal(blackbox_new(&b, joints, 3, hz), 0);
    v = start(b);
    while (n < (uint64_t)(6 * hz)) {
        busy_record(b, ++n, hz);
        blackbox_commit(b, REASON_NONE);
    }
    busy_record(b, ++n, hz);
    from_ns = clock_now_ns();
    blackbox_commit(b, REASON_JOINTS_STALE);
    assert_true(wait_for(v, 1));
    took_ns = clock_now_ns() - from_ns;
    blackbox_writer_stop(v);
    blackbox_free(b);
    return took_ns;
}

static void in_time(void **state)
{
    (void)state;
    static const struct {
        double hz;
        int joints;
    } way[] = {{200, 14}, {1000, 14}, {2000, 32}};

    open_world(SUB, 0, NULL);
    for (size_t i = 0; i < 3; i++) {
        ns_t took_ns = time_of(way[i].hz, way[i].joints);

        printf("# %4.0f Hz, %d joints: fault to file in %.1f ms\n", way[i].hz,
               way[i].joints, (double)took_ns / 1e6);
        assert_true(took_ns < (way[i].hz < 2000 ? 2 : 5) * NS_PER_S);
    }
    close_world();
}

// A loop without any pause, three faults, the thread beside it: each file is whole, its rows in
// order and not mixed.
static void beside_a_fast_loop(void **state)
{
    (void)state;
    struct blackbox *b;
    struct blackbox_writer *v;
    struct blackbox_counts c;
    uint64_t n = 0;

    open_world(SUB, 0, NULL);
    assert_int_equal(blackbox_new(&b, 4, 0, 1000), 0);
    v = start(b);
    for (uint64_t file = 1; file <= 3; file++) {
        ns_t until_ns = clock_now_ns() + LONG_NS;
        char *text, *at, *line;
        uint64_t last = 0, rows = 0;

        for (int i = 0; i < 7000; i++) {
            busy_record(b, ++n, 1000);
            blackbox_commit(b, i == 6999 ? REASON_ESTOP : REASON_NONE);
        }
        do { // on and on, until the file is there
            for (int i = 0; i < 5; i++) {
                busy_record(b, ++n, 1000);
                blackbox_commit(b, REASON_NONE);
            }
            clock_sleep_until(clock_now_ns() + NS_PER_MS);
            blackbox_writer_counts(v, &c);
        } while (c.dumped < file && clock_now_ns() < until_ns);
        assert_int_equal(c.dumped, file);
        text = at = content(c.last_path);
        strsep(&at, "\n");
        while ((line = strsep(&at, "\n")) != NULL && *line != 0) {
            uint64_t tick_number = strtoull(line, NULL, 10);
            const char *third = strchr(strchr(line, ',') + 1, ',') + 1;

            assert_true(rows == 0 || tick_number == last + 1);
            near(strtod(third, NULL), (double)tick_number / 1000, 1e-9);
            last = tick_number;
            rows++;
        }
        assert_true(rows > 1000);
        free(text);
    }
    blackbox_writer_stop(v);
    blackbox_free(b);
    close_world();
}

static void stop_writes_what_is_due(void **state)
{
    (void)state;
    struct blackbox_writer *v;

    open_world(SUB, 0, NULL);
    v = start(w.box);
    ticks(20);
    for (int i = 0; i < 4; i++) { // beyond what is written without a pause
        tick(REASON_OPERATOR);
        assert_true(wait_for(v, (uint64_t)i + 1));
    }
    tick(REASON_TICK_GAP);
    blackbox_writer_stop(v);
    assert_int_equal(files("-OPERATOR.csv"), 4);
    assert_int_equal(files("-TICK_GAP.csv"), 1);
    blackbox_writer_stop(NULL);
    close_world();
}

static sem_t hangs, goes_on;
static ssize_t hanging(int fd, const void *data, size_t n)
{
    sem_post(&hangs);
    sem_wait(&goes_on);
    return write(fd, data, n);
}

// A disk that never answers: the loop goes on, the stop is bounded, and when the disk comes back
// after all the ring is long gone. The writer frees the rest: the leak checker looks.
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

// ---- the default directory ---------------------------------------------------------------------

static void default_directory(void **state)
{
    (void)state;
    static struct config cfg = {.instance = "left", .runtime = "/run/actd/left"};
    char out[64], *home = strdup(getenv("HOME") ? getenv("HOME") : "/");

    setenv("HOME", "/home/me", 1);
    setenv("XDG_STATE_HOME", "/state", 1);
    setenv("LOGS_DIRECTORY", "/var/log/actd:/var/log/more", 1);
    snprintf(cfg.black_box.directory, sizeof cfg.black_box.directory, "/data");
    assert_int_equal(config_black_box(&cfg, out, sizeof out), 0);
    assert_string_equal(out, "/data");
    cfg.black_box.directory[0] = 0;
    assert_int_equal(config_black_box(&cfg, out, sizeof out), 0);
    assert_string_equal(out, "/var/log/actd");
    setenv("LOGS_DIRECTORY", "", 1);
    assert_int_equal(config_black_box(&cfg, out, sizeof out), 0);
    assert_string_equal(out, "/state/actd/left");
    setenv("XDG_STATE_HOME", "relative", 1);
    assert_int_equal(config_black_box(&cfg, out, sizeof out), 0);
    assert_string_equal(out, "/home/me/.local/state/actd/left");
    assert_int_equal(config_black_box(&cfg, out, 10), -ENAMETOOLONG);
    unsetenv("HOME");
    assert_int_equal(config_black_box(&cfg, out, sizeof out), 0);
    assert_string_equal(out, "/run/actd/left");
    setenv("HOME", home, 1);
    unsetenv("LOGS_DIRECTORY");
    unsetenv("XDG_STATE_HOME");
    free(home);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_contents),
        cmocka_unit_test(short_history),
        cmocka_unit_test(name_says_when_and_why),
        cmocka_unit_test(four_at_once_then_one_a_second),
        cmocka_unit_test(fault_while_writing),
        cmocka_unit_test(oldest_gives_way),
        cmocka_unit_test(new_file_is_never_the_oldest),
        cmocka_unit_test(taken_names_and_links),
        cmocka_unit_test(write_errors),
        cmocka_unit_test(partial_writes),
        cmocka_unit_test(nothing_written_and_close_errors),
        cmocka_unit_test(directory_removed),
        cmocka_unit_test(file_in_its_place),
        cmocka_unit_test(directory_that_can_not_be),
        cmocka_unit_test(long_paths),
        cmocka_unit_test(in_time),
        cmocka_unit_test(beside_a_fast_loop),
        cmocka_unit_test(stop_writes_what_is_due),
        cmocka_unit_test(disk_hangs),
        cmocka_unit_test(default_directory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
