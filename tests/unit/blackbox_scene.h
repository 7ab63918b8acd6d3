// A black box with its writer in a directory of its own, on a clock of the test: the
// logic runs without the writer's thread. One program includes it once.
#ifndef TEST_BLACKBOX_SCENE_H
#define TEST_BLACKBOX_SCENE_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
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

#define JOINTS  3
#define CAMERAS 2
#define HZ      100
#define STEP_NS (NS_PER_S / HZ)
#define SUB     "/a/b"          // made by the writer
#define LONG_NS (20 * NS_PER_S) // a gross bound: the machine may be loaded

static const char *const joint[] = {"base", "elbow", "grip,per"};
static const char *const camera[] = {"top", "wrist"};

struct world {
    char dir[256];
    struct blackbox *box;
    struct blackbox_writer *writer;
    struct blackbox_counts counts;
    ns_t now_ns;
    uint64_t ticks;
};
static struct world w;

static inline void near(double got, double want, double by)
{
    if (!(got >= want - by && got <= want + by))
        fail_msg("%.12g is not %.12g", got, want);
}

static inline double value(uint64_t tick, int j, int what)
{
    return ((double)tick - 300) * 0.001234567 + j * 10 - what / 7.0;
}

static inline void tick(enum ladder_reason fault)
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

static inline void ticks(int n)
{
    while (n-- > 0)
        tick(REASON_NONE);
}

static inline void poll_at(ns_t now_ns)
{
    assert_true(blackbox_writer_poll(w.writer, now_ns, false));
    blackbox_writer_counts(w.writer, &w.counts);
}

// A second later, so that the rate of files is never in the way.
static inline void fault(enum ladder_reason reason)
{
    ticks(HZ);
    tick(reason);
    poll_at(w.now_ns);
}

static inline void open_world(const char *sub, int keep,
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

static inline void close_world(void)
{
    char command[300];

    blackbox_writer_free(w.writer);
    blackbox_free(w.box);
    *strchr(w.dir + 5, '/') = 0; // the temporary directory itself
    snprintf(command, sizeof command, "rm -rf '%s'", w.dir);
    assert_int_equal(system(command), 0);
}

static inline char *path(const char *name)
{
    static char out[1024];

    snprintf(out, sizeof out, "%s/%s", w.dir, name);
    return out;
}

static inline bool is_there(const char *name)
{
    struct stat st;

    return lstat(path(name), &st) == 0;
}

static inline void make(const char *name)
{
    int fd = open(path(name), O_WRONLY | O_CREAT | O_EXCL, 0600);

    assert_true(fd >= 0);
    close(fd);
}

static inline int files(const char *end) // whose name ends so
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

static inline char *content(const char *file)
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

#endif
