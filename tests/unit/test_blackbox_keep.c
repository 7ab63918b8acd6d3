// blackbox_writer: how often it writes, where to, and which files stay.
#include "daemon/config_black_box.h"
#include "tests/unit/blackbox_scene.h"

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

// Faults that come up in the middle of writing: the first gets the next file, the last is
// in it.
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

// A machine without a clock of its own starts in 1970: the new file sorts first,
// and stays.
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
    assert_int_equal(config_record_directory(&cfg, out, sizeof out), 0);
    assert_string_equal(out, "/var/log/actd/record"); // beside it, unless it has its own
    assert_int_equal(config_record_directory(&cfg, out, 20), -ENAMETOOLONG);
    snprintf(cfg.record.directory, sizeof cfg.record.directory, "/big");
    assert_int_equal(config_record_directory(&cfg, out, sizeof out), 0);
    assert_string_equal(out, "/big");
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
        cmocka_unit_test(four_at_once_then_one_a_second),
        cmocka_unit_test(fault_while_writing),
        cmocka_unit_test(oldest_gives_way),
        cmocka_unit_test(new_file_is_never_the_oldest),
        cmocka_unit_test(taken_names_and_links),
        cmocka_unit_test(default_directory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
