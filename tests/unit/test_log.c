// What reaches standard error, which each test replaces by a pipe or a file of its own.
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/clock.h"
#include "daemon/log.h"

struct rig {
    int saved, from; // our stderr; the pipe's end to read
    char text[256 * 1024];
};

static int setup(void **state)
{
    struct rig *r = calloc(1, sizeof *r);
    int ends[2];
    *state = r;
    unsetenv("JOURNAL_STREAM");
    if (!r || pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    r->saved = dup(STDERR_FILENO);
    r->from = ends[0];
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    log_init();
    return 0;
}

static int teardown(void **state)
{
    struct rig *r = *state;
    dup2(r->saved, STDERR_FILENO);
    close(r->saved);
    if (r->from >= 0)
        close(r->from);
    free(r);
    return 0;
}

// All that is in the pipe.
static const char *taken(struct rig *r)
{
    size_t n = 0;
    ssize_t got;
    while ((got = read(r->from, r->text + n, sizeof r->text - 1 - n)) > 0)
        n += (size_t)got;
    r->text[n] = '\0';
    return r->text;
}

static void says(struct rig *r, const char *want)
{
    const char *got = taken(r);
    int h, m, s, at = 0;
    assert_int_equal(sscanf(got, "%2d:%2d:%2d %n", &h, &m, &s, &at), 3);
    assert_int_equal(at, 9);
    assert_string_equal(got + at, want);
}

static void time_and_level_on_a_terminal(void **state)
{
    struct rig *r = *state;
    log_line(LOG_INFO, "%s %d", "n", 7);
    says(r, "n 7\n");
    log_line(LOG_WARN, "w");
    says(r, "warning: w\n");
    log_line(LOG_ERROR, "e");
    says(r, "error: e\n");
}

static void no_text_forges_a_line(void **state)
{
    struct rig *r = *state;
    char all[256];
    log_line(LOG_INFO, "joint %s", "a\n<3>00:00:00 error: b\r\x1b[31m\t\x7f\x01");
    says(r, "joint a?<3>00:00:00 error: b??[31m???\n");
    for (int i = 1; i < 256; i++)
        all[i - 1] = (char)i;
    all[255] = '\0';
    log_line(LOG_INFO, "%s", all);
    taken(r);
    for (int i = 1; i < 256; i++) {
        bool control = i < 0x20 || i == 0x7f;
        assert_int_equal((unsigned char)r->text[8 + i], control ? '?' : i);
    }
    assert_string_equal(r->text + 9 + 255, "\n");
}

static void a_long_text_is_one_line(void **state)
{
    struct rig *r = *state;
    char text[4000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    log_line(LOG_WARN, "%s", text);
    const char *got = taken(r);
    size_t n = strlen(got);
    assert_in_range(n, 1000, 1200);
    assert_ptr_equal(strchr(got, '\n'), got + n - 1);
}

// Fills the pipe with whole lines; how many it took.
static int fill(struct rig *r)
{
    int n = 0, room, before = -1;
    for (;; n++) {
        assert_int_equal(ioctl(r->from, FIONREAD, &room), 0);
        if (room == before)
            return n - 1;
        before = room;
        log_line(LOG_INFO, "line %d of many that nobody takes", n);
    }
}

static void *write_100(void *arg)
{
    for (int i = 0; i < 100; i++)
        log_line(LOG_WARN, "lost");
    *(_Atomic int *)arg = 1;
    return NULL;
}

static void a_full_pipe_loses_lines_and_counts_them(void **state)
{
    struct rig *r = *state;
    _Atomic int done = 0;
    pthread_t thread;
    int n = fill(r); // one more was lost
    assert_true(n > 100);
    assert_int_equal(pthread_create(&thread, NULL, write_100, &done), 0);
    ns_t until = clock_now_ns() + 10 * NS_PER_S;
    while (!done && clock_now_ns() < until)
        usleep(1000);
    const bool waited = !done;
    const char *got = taken(r); // also frees a writer that waits
    pthread_join(thread, NULL);
    assert_false(waited);
    int lines = 0;
    for (const char *p = got; *p; p++)
        lines += *p == '\n';
    assert_int_equal(lines, n);
    assert_null(strstr(got, "lost"));
    log_line(LOG_INFO, "back");
    says(r, "back (101 lines before this one were lost)\n");
    log_line(LOG_INFO, "and on");
    says(r, "and on\n");
}

static void lives_without_a_reader(void **state)
{
    struct rig *r = *state;
    signal(SIGPIPE, SIG_IGN); // as run does
    close(r->from);
    r->from = -1;
    log_line(LOG_INFO, "to nobody");
    close(STDERR_FILENO);
    log_line(LOG_INFO, "to nothing");
    signal(SIGPIPE, SIG_DFL);
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    r->from = fcntl(ends[0], F_DUPFD_CLOEXEC, 10); // ends[0] is where stderr was
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    fcntl(r->from, F_SETFL, O_NONBLOCK);
    log_line(LOG_INFO, "back");
    says(r, "back (2 lines before this one were lost)\n");
}

// As systemd would set it for a stderr that many devices and inodes away from ours.
static void journal(unsigned device, unsigned inode)
{
    struct stat st;
    char text[64];
    assert_int_equal(fstat(STDERR_FILENO, &st), 0);
    snprintf(text, sizeof text, "%llu:%llu", (unsigned long long)st.st_dev + device,
             (unsigned long long)st.st_ino + inode);
    setenv("JOURNAL_STREAM", text, 1);
    log_init();
}

static void levels_for_the_journal_only(void **state)
{
    struct rig *r = *state;
    journal(0, 0);
    log_line(LOG_WARN, "w");
    assert_string_equal(taken(r), "<4>w\n");
    log_line(LOG_ERROR, "e");
    assert_string_equal(taken(r), "<3>e\n");
    log_line(LOG_INFO, "n");
    assert_string_equal(taken(r), "<6>n\n");
    journal(0, 1); // of the desktop that started us
    log_line(LOG_WARN, "w");
    says(r, "warning: w\n");
    journal(1, 0);
    log_line(LOG_WARN, "w");
    says(r, "warning: w\n");
    setenv("JOURNAL_STREAM", "yes", 1);
    log_init();
    log_line(LOG_WARN, "w");
    says(r, "warning: w\n");
    setenv("JOURNAL_STREAM", "", 1);
    log_init();
    log_line(LOG_WARN, "w");
    says(r, "warning: w\n");
    unsetenv("JOURNAL_STREAM");
    log_init();
    log_line(LOG_WARN, "w");
    says(r, "warning: w\n");
}

// ---- a second reader -------------------------------------------------------------------------

struct heard {
    int n;
    enum log_level level;
    char text[1100];
};

static void hear(void *arg, enum log_level level, const char *text)
{
    struct heard *h = arg;
    h->n++;
    h->level = level;
    snprintf(h->text, sizeof h->text, "%s", text);
}

// Whole, without time and level, and also where nobody reads standard error.
static void another_hears_every_line(void **state)
{
    struct rig *r = *state;
    struct heard h = {0};
    log_line(LOG_INFO, "before");
    log_also(hear, &h);
    log_line(LOG_WARN, "a\tline of %d", 7);
    assert_int_equal(h.n, 1);
    assert_int_equal(h.level, LOG_WARN);
    assert_string_equal(h.text, "a?line of 7");
    close(r->from);
    r->from = -1;
    signal(SIGPIPE, SIG_IGN);
    log_line(LOG_ERROR, "unread");
    assert_int_equal(h.n, 2);
    assert_string_equal(h.text, "unread");
    log_also(NULL, NULL);
    log_line(LOG_INFO, "after");
    assert_int_equal(h.n, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(time_and_level_on_a_terminal), TEST(no_text_forges_a_line),
        TEST(a_long_text_is_one_line),      TEST(a_full_pipe_loses_lines_and_counts_them),
        TEST(lives_without_a_reader),       TEST(levels_for_the_journal_only),
        TEST(another_hears_every_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
