// Files for the tests of what reads them: bytes into a file of a directory of the test's own.
#ifndef TEST_MCAP_FILES_H
#define TEST_MCAP_FILES_H

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/mcap_read.h"
#include "daemon/mcap_write.h"

static char files_dir[64];

static inline const char *files_path(const char *name)
{
    static char path[4][160];
    static int i;

    if (!files_dir[0]) {
        // In memory: some thousand recoveries, each with its fsync, take half a minute on a disk.
        snprintf(files_dir, sizeof files_dir, "/dev/shm/actd-mcap-XXXXXX");
        if (!mkdtemp(files_dir)) {
            snprintf(files_dir, sizeof files_dir, "/tmp/actd-mcap-XXXXXX");
            assert_non_null(mkdtemp(files_dir));
        }
    }
    i = (i + 1) % 4;
    snprintf(path[i], sizeof path[i], "%s/%s", files_dir, name);
    return path[i];
}

static inline int files_remove(void **state)
{
    char command[128];

    (void)state;
    if (!files_dir[0])
        return 0;
    snprintf(command, sizeof command, "rm -rf %s", files_dir);
    return system(command);
}

static inline const char *files_write(const char *name, const void *data, size_t n)
{
    const char *path = files_path(name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, n), n);
    close(fd);
    return path;
}

static inline struct mcap_bytes files_read(const char *path)
{
    struct mcap_bytes b = {0};
    char part[4096];
    int fd = open(path, O_RDONLY);

    assert_true(fd >= 0);
    for (ssize_t n; (n = read(fd, part, sizeof part)) > 0;)
        mcap_put(&b, part, (size_t)n);
    close(fd);
    return b;
}

// ---- a file of random messages -----------------------------------------------------------------
#define FILES_CHANNELS 4

static inline uint32_t files_random(uint32_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    return *seed ^= *seed << 5;
}

struct files_message {
    uint16_t channel;
    uint64_t log_ns;
    uint32_t sequence; // counts them in the order of the file
    size_t size;
    unsigned char byte; // data are so many of it
};

struct files_log {
    struct mcap_bytes bytes;
    struct files_message message[2000];
    int n;
    size_t chunk[64]; // where each ends, with its MessageIndexes
    int chunks;
};

static inline int files_append(void *arg, const struct iovec *v, int n)
{
    for (int i = 0; i < n; i++)
        mcap_put(arg, v[i].iov_base, v[i].iov_len);
    return 0;
}

static inline void files_chunk(struct files_log *f, struct mcap_writer *w,
                               struct mcap_build *b)
{
    struct mcap_chunk *c = NULL;

    assert_int_equal(mcap_build_finish(b, &c), 0);
    if (c)
        assert_int_equal(mcap_writer_chunk(w, c), 0);
    mcap_chunk_free(c);
    f->chunk[f->chunks++] = f->bytes.n;
}

// `chunks` chunks of `each` messages, on four channels, whose times jump back by up to `back`.
static inline void files_log(struct files_log *f, uint32_t seed, int chunks, int each,
                             uint32_t back, enum mcap_compression compression,
                             uint64_t base)
{
    static const char *const topic[FILES_CHANNELS] = {"/tick", "/input", "/camera/a",
                                                      "/x"};
    struct mcap_build_options opt = {.compression = compression, .least = 1};
    struct mcap_writer_options w_opt = {
        .profile = "", .library = "test", .write = files_append, .arg = &f->bytes};
    struct mcap_pair pair[] = {{"run_id", "r1"}, {"base_ns", "-77"}, {"version", "v"}};
    struct mcap_schema s = {1, "a.B", "protobuf", "\12\3abc", 5};
    unsigned char data[256];
    struct mcap_writer *w;
    struct mcap_build *b;

    *f = (struct files_log){0};
    assert_int_equal(mcap_writer_new(&w, &w_opt), 0);
    assert_int_equal(mcap_build_new(&b, &opt), 0);
    assert_int_equal(mcap_writer_metadata(w, "actd", pair, 3), 0);
    assert_int_equal(mcap_writer_schema(w, &s, false), 0);
    assert_int_equal(mcap_build_schema(b, &s), 0);
    for (uint16_t i = 0; i < FILES_CHANNELS; i++) {
        struct mcap_channel c = {(uint16_t)(i + 1), i < 3, topic[i], "protobuf", NULL, 0};
        assert_int_equal(mcap_writer_channel(w, &c, false), 0);
        assert_int_equal(mcap_build_channel(b, &c), 0);
    }
    for (int i = 0; i < chunks * each; i++) {
        struct files_message m = {
            (uint16_t)(1 + files_random(&seed) % FILES_CHANNELS),
            base + 10 * (uint64_t)i + 1000 - files_random(&seed) % (back + 1),
            (uint32_t)i, files_random(&seed) % 200, (unsigned char)files_random(&seed)};
        memset(data, m.byte, m.size);
        struct mcap_message out = {m.channel, m.sequence, m.log_ns,
                                   m.log_ns,  data,       m.size};
        assert_int_equal(mcap_build_message(b, &out), 0);
        f->message[f->n++] = m;
        if ((i + 1) % each == 0)
            files_chunk(f, w, b);
    }
    assert_int_equal(mcap_writer_attachment(w, 5, 6, "note", "text/plain", "hello", 5),
                     0);
    assert_int_equal(mcap_writer_finish(w), 0);
    mcap_build_free(b);
    mcap_writer_free(w);
}

static inline bool files_same(const struct files_message *want,
                              const struct mcap_message *m)
{
    const unsigned char *p = m->data;

    if (m->channel != want->channel || m->log_ns != want->log_ns ||
        m->publish_ns != want->log_ns || m->sequence != want->sequence ||
        m->size != want->size)
        return false;
    for (size_t i = 0; i < m->size; i++)
        if (p[i] != want->byte)
            return false;
    return true;
}

#endif
