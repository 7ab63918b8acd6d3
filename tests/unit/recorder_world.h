// A tape that the test feeds as the daemon does, a recorder without its thread, a clock that the
// test turns, and a disk that fails when it is told to. What was written is read back by the reader.
#ifndef ACTD_TEST_RECORDER_WORLD_H
#define ACTD_TEST_RECORDER_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/mcap_read.h"
#include "daemon/record_codec.h"
#include "daemon/recorder_impl.h"

#define JOINTS 6

struct bad_disk { // rc: 0 = fine, else what it says
    int open_rc, write_rc, sync_rc;
    int64_t free;    // -1 = the real one
    size_t part;     // bytes of a failing write that get out all the same
    int writes_left; // until write_rc comes true; -1 = it is now
    int opens, writes, syncs;
    void (*slow)(void *arg); // called in a write
    void *slow_arg;
};

struct world {
    char dir[64];
    struct tape *tape;
    struct recorder *r;
    struct recorder_config cfg;
    struct bad_disk bad;
    struct recorder_disk disk;
    ns_t now;
    uint64_t ticks, frames, joints; // fed
};

static int world_open(void *arg, int dir, const char *name)
{
    struct bad_disk *b = arg;

    b->opens++;
    return b->open_rc ? b->open_rc : recorder_real_disk.open(NULL, dir, name);
}

static int world_write(void *arg, int fd, const struct iovec *v, int n)
{
    struct bad_disk *b = arg;

    b->writes++;
    if (b->slow)
        b->slow(b->slow_arg);
    if (b->write_rc && (b->writes_left < 0 || b->writes_left-- == 0)) {
        b->writes_left = -1;
        if (b->part > 0 && v[0].iov_len > 0) {
            struct iovec some = {v[0].iov_base,
                                 b->part < v[0].iov_len ? b->part : v[0].iov_len};
            (void)recorder_real_disk.write(NULL, fd, &some, 1);
        }
        return b->write_rc;
    }
    return recorder_real_disk.write(NULL, fd, v, n);
}

static int world_sync(void *arg, int fd)
{
    struct bad_disk *b = arg;

    (void)fd;
    b->syncs++;
    return b->sync_rc;
}

static int64_t world_free(void *arg, int dir)
{
    struct bad_disk *b = arg;

    return b->free >= 0 ? b->free : recorder_real_disk.free_bytes(NULL, dir);
}

static const char *const world_joint[JOINTS] = {"a", "b", "c", "d", "e", "f"};
static const char *const world_camera[] = {"front", "wrist"};

// To be changed by the test before world_start.
static inline void world_new(struct world *w)
{
    *w = (struct world){.now = clock_now_ns()};
    snprintf(w->dir, sizeof w->dir, "/tmp/test_recorder.XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    w->bad = (struct bad_disk){.free = -1};
    w->disk =
        (struct recorder_disk){&w->bad, world_open, world_write, world_sync, world_free};
    w->cfg = (struct recorder_config){
        .mode = RECORDER_ALWAYS,
        .directory = w->dir,
        .compression = MCAP_ZSTD,
        .frames = true,
        .segment_bytes = 512u << 20,
        .segment_ns = 600 * NS_PER_S,
        .before_ns = 10 * NS_PER_S,
        .after_ns = 5 * NS_PER_S,
        .memory_bytes = 64u << 20,
        .facts = {.version = "1.2",
                  .instance = "arm",
                  .config_file = "/etc/actd/arm.yaml",
                  .config_text = "robot: x\n",
                  .kernels = "avx2",
                  .blas_core = "",
                  .precision = "float32",
                  .joint = world_joint,
                  .joints = JOINTS,
                  .camera = world_camera,
                  .cameras = 2,
                  .control_hz = 200,
                  .rows = 50},
        .cpu_not = -1,
        .disk = &w->disk,
    };
}

static inline void world_start(struct world *w, const struct tape_sizes *sizes)
{
    static const struct tape_sizes small = {{[TAPE_FRAMES] = 4u << 20,
                                             [TAPE_EVENTS] = 64u << 10,
                                             [TAPE_CHUNKS] = 1u << 20,
                                             [TAPE_BUS] = 1u << 20,
                                             [TAPE_TICKS] = 4u << 20}};

    assert_int_equal(tape_new(&w->tape, sizes ? sizes : &small), 0);
    assert_int_equal(recorder_new(&w->r, w->tape, &w->cfg), 0);
}

static inline void world_remove(const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    char path[400];

    if (!d)
        return;
    while ((e = readdir(d))) {
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        if (e->d_name[0] != '.')
            (void)unlink(path);
    }
    closedir(d);
    (void)rmdir(dir);
}

static inline void world_end(struct world *w)
{
    recorder_free(w->r);
    tape_free(w->tape);
    world_remove(w->dir);
}

static inline struct tick_record world_tick(uint64_t number, ns_t now)
{
    struct tick_record t;

    memset(&t, 0, sizeof t);
    t.in.tick = number;
    t.in.now_ns = now;
    t.in.room = true;
    t.mode = LADDER_RUNNING;
    t.culprit = -1;
    t.joints = JOINTS;
    t.cameras = 2;
    for (int i = 0; i < JOINTS; i++)
        t.joint[i].measured = (double)number + i;
    return t;
}

static inline void world_feed_tick(struct world *w)
{
    struct tick_record t = world_tick(++w->ticks, w->now);

    (void)tape_tick(w->tape, &t);
}

// Joint state n is eight bytes of n; so is the beginning of frame n.
static inline void world_feed_joints(struct world *w)
{
    struct tape_input in = {.at_ns = w->now, .form = TAPE_JOINTS, .stamp_wall_ns = 7};
    uint64_t n = ++w->joints;

    tape_input(w->tape, &in, &n, sizeof n);
}

static inline void world_feed_frame(struct world *w, int camera, enum tape_form form,
                                    size_t size)
{
    struct tape_input in = {.at_ns = w->now, .stream = 1 + camera, .form = form};
    unsigned char *bytes = calloc(1, size);

    w->frames++;
    in.more = form == TAPE_PARTS && w->frames % 2 == 0; // in pairs
    if (form == TAPE_PARTS)
        in.kind = in.more ? TAPE_SEVERAL_PARTS : TAPE_PART;
    memcpy(bytes, &w->frames, sizeof w->frames);
    tape_input(w->tape, &in, bytes, size);
    free(bytes);
}

// 200 Hz of ticks and joint states, `hz` frames of 20 kB, a turn each 5 ms.
static inline void world_run(struct world *w, double seconds, int hz)
{
    int n = (int)(seconds * 200 + 0.5);

    for (int i = 0; i < n; i++) {
        w->now += 5 * NS_PER_MS;
        world_feed_joints(w);
        world_feed_tick(w);
        if (hz > 0 && i % (200 / hz) == 0)
            world_feed_frame(w, 0, TAPE_COMPRESSED, 20000);
        recorder_turn(w->r, w->now);
    }
}

// ---- what is there -----------------------------------------------------------------------------

struct names {
    int n;
    char name[64][400];
};

static inline int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static inline void world_names(const char *dir, const char *end, struct names *out)
{
    DIR *d = opendir(dir);
    struct dirent *e;

    out->n = 0;
    while (d && (e = readdir(d))) {
        size_t n = strlen(e->d_name), m = strlen(end);

        if (e->d_name[0] != '.' && n >= m && strcmp(e->d_name + n - m, end) == 0 &&
            out->n < 64)
            snprintf(out->name[out->n++], 400, "%s/%s", dir, e->d_name);
    }
    if (d)
        closedir(d);
    qsort(out->name, (size_t)out->n, 400, by_text);
}

static inline int world_count(const char *dir, const char *end)
{
    struct names l;

    world_names(dir, end, &l);
    return l.n;
}

struct found {
    uint64_t ticks, frames, joints, inputs, events, seats, others;
    uint64_t first_tick, last_tick, messages;
    bool gap; // between ticks
    char event[8][512];
};

static inline void world_event(struct found *f, const struct mcap_message *m)
{
    size_t n = m->size < 511 ? m->size : 511;

    if (f->events < 8)
        for (size_t i = 0; i < n; i++) // protobuf; its texts stand in it as they are
            f->event[f->events][i] =
                ((const char *)m->data)[i] ? ((const char *)m->data)[i] : ' ';
    f->events++;
}

static inline void world_message(struct found *f, const char *topic,
                                 const struct mcap_message *m)
{
    struct tick_record t;

    f->messages++;
    if (strcmp(topic, "/tick") == 0) {
        assert_int_equal(record_tick_read(&t, m->data, m->size), 0);
        if (f->ticks > 0 && t.in.tick != f->last_tick + 1)
            f->gap = true;
        if (f->ticks == 0)
            f->first_tick = t.in.tick;
        f->last_tick = t.in.tick;
        f->ticks++;
    } else if (strncmp(topic, "/camera/", 8) == 0)
        f->frames++;
    else if (strcmp(topic, "/joint_states") == 0)
        f->joints++;
    else if (strcmp(topic, "/input") == 0)
        f->inputs++;
    else if (strcmp(topic, "/policy/seat") == 0)
        f->seats++;
    else if (strcmp(topic, "/events") == 0)
        world_event(f, m);
    else
        f->others++;
}

// Adds to *f what the file holds. True = it is whole.
static inline bool world_read(const char *path, struct found *f)
{
    struct mcap_reader *r = NULL;
    struct mcap_cursor *c = NULL;
    struct mcap_error err = {""};
    struct mcap_message m;
    const char *why = "";
    bool whole;
    int rc;

    if (mcap_open(&r, path, NULL, &err) != 0) {
        print_error("%s: %s\n", path, err.text);
        fail();
    }
    whole = mcap_whole(r, &why);
    assert_int_equal(mcap_cursor_new(&c, r, NULL, 0, MCAP_FILE_ORDER, 0, 0), 0);
    while ((rc = mcap_next(c, &m, &err)) == 1)
        world_message(f, mcap_channel_of(r, m.channel)->topic, &m);
    assert_int_equal(rc, 0);
    mcap_cursor_free(c);
    mcap_close(r);
    return whole;
}

// All that end so, in the order of their names. Returns how many; each must be whole.
static inline int world_read_all(struct world *w, struct found *f)
{
    struct names l;

    *f = (struct found){0};
    world_names(w->dir, ".mcap", &l);
    for (int i = 0; i < l.n; i++)
        assert_true(world_read(l.name[i], f));
    return l.n;
}

#endif
