// blackbox_writer: what is in the file, line by line, and what its name says.
#include "tests/unit/blackbox_scene.h"

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

// blackbox-arm-20261129T201500.123Z-TICK_GAP.csv, the time of the fault,
// not of the writing.
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_contents),
        cmocka_unit_test(short_history),
        cmocka_unit_test(name_says_when_and_why),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
