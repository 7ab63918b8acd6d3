// run_log: a recording of a run that never was, for tests of who reads recordings: written message
// by message with the writer, so that a test knows what is in it. Included by one file each.
#ifndef ACTD_TESTS_RUN_LOG_H
#define ACTD_TESTS_RUN_LOG_H

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <turbojpeg.h>
#include <unistd.h>

#include "actd/v1/joint_command.pb-c.h"
#include "daemon/codec.h"
#include "daemon/mcap_write.h"
#include "daemon/record_codec.h"
#include "daemon/schema.h"
#include "foxglove/CompressedImage.pb-c.h"
#include "foxglove/JointStates.pb-c.h"
#include "foxglove/RawImage.pb-c.h"

#define RUN_LOG_BASE_NS  INT64_C(1700000000000000000) // log time of CLOCK_MONOTONIC 0
#define RUN_LOG_CHANNELS 24
#define RUN_LOG_CHUNK    (256u << 10)

struct run_log {
    struct mcap_writer *writer;
    struct mcap_build *build;
    int fd, channels;
    char topic[RUN_LOG_CHANNELS][64];
};

static inline int run_log_write(void *arg, const struct iovec *v, int n)
{
    const struct run_log *l = arg;
    for (int i = 0; i < n; i++)
        if (write(l->fd, v[i].iov_base, v[i].iov_len) != (ssize_t)v[i].iov_len)
            return -EIO;
    return 0;
}

// `metadata` is the name of the one metadata record: "actd" of a recording.
static inline void run_log_open(struct run_log *l, const char *path, const char *metadata,
                                const struct mcap_pair *pair, int n)
{
    const struct mcap_writer_options opt = {
        .profile = "", .library = "test", .write = run_log_write, .arg = l};
    const struct mcap_build_options how = {.compression = MCAP_ZSTD};
    memset(l, 0, sizeof *l);
    l->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(l->fd >= 0);
    assert_int_equal(mcap_writer_new(&l->writer, &opt), 0);
    assert_int_equal(mcap_writer_metadata(l->writer, metadata, pair, n), 0);
    assert_int_equal(mcap_build_new(&l->build, &how), 0);
}

static inline void run_log_flush(struct run_log *l)
{
    struct mcap_chunk *c = NULL;
    assert_int_equal(mcap_build_finish(l->build, &c), 0);
    if (c)
        assert_int_equal(mcap_writer_chunk(l->writer, c), 0);
    mcap_chunk_free(c);
}

static inline uint16_t run_log_channel(struct run_log *l, const char *topic,
                                       const char *type)
{
    for (int i = 0; i < l->channels; i++)
        if (strcmp(l->topic[i], topic) == 0)
            return (uint16_t)(i + 1);
    assert_true(l->channels < RUN_LOG_CHANNELS);
    uint16_t id = (uint16_t)(l->channels + 1);
    snprintf(l->topic[l->channels++], sizeof l->topic[0], "%s", topic);
    const struct mcap_schema *known = type ? schema_of(type) : NULL;
    struct mcap_schema schema;
    if (known) {
        schema = *known;
        schema.id = id;
        assert_int_equal(mcap_writer_schema(l->writer, &schema, false), 0);
        assert_int_equal(mcap_build_schema(l->build, &schema), 0);
    }
    const struct mcap_channel c = {
        id, known ? id : 0, topic, known ? "protobuf" : "x", NULL, 0};
    assert_int_equal(mcap_writer_channel(l->writer, &c, false), 0);
    assert_int_equal(mcap_build_channel(l->build, &c), 0);
    return id;
}

static inline void run_log_put(struct run_log *l, const char *topic, const char *type,
                               ns_t at_ns, const void *data, size_t size)
{
    const struct mcap_message m = {.channel = run_log_channel(l, topic, type),
                                   .log_ns = (uint64_t)(at_ns + RUN_LOG_BASE_NS),
                                   .publish_ns = (uint64_t)(at_ns + RUN_LOG_BASE_NS),
                                   .data = data,
                                   .size = size};
    assert_int_equal(mcap_build_message(l->build, &m), 0);
    if (mcap_build_bytes(l->build) > RUN_LOG_CHUNK)
        run_log_flush(l);
}

static inline void run_log_close(struct run_log *l)
{
    run_log_flush(l);
    assert_int_equal(mcap_writer_finish(l->writer), 0);
    mcap_writer_free(l->writer);
    mcap_build_free(l->build);
    close(l->fd);
}

// ---- messages --------------------------------------------------------------------------------

static inline Google__Protobuf__Timestamp run_log_stamp(ns_t at_ns)
{
    Google__Protobuf__Timestamp t = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
    t.seconds = (at_ns + RUN_LOG_BASE_NS) / NS_PER_S;
    t.nanos = (int32_t)((at_ns + RUN_LOG_BASE_NS) % NS_PER_S);
    return t;
}

// Returns the bytes in out.
static inline size_t run_log_joints(const char *const *name, const double *pos, int n,
                                    ns_t at_ns, uint8_t *out)
{
    Foxglove__JointState j[ACTD_MAX_JOINTS], *all[ACTD_MAX_JOINTS];
    Foxglove__JointStates m;
    Google__Protobuf__Timestamp t = run_log_stamp(at_ns);
    for (int i = 0; i < n; i++) {
        foxglove__joint_state__init(&j[i]);
        size_t size = strlen(name[i]) + 1;
        j[i].name = memcpy(malloc(size), name[i], size);
        j[i].position = pos[i];
        all[i] = &j[i];
    }
    foxglove__joint_states__init(&m);
    m.timestamp = &t;
    m.n_joints = (size_t)n;
    m.joints = all;
    size_t size = foxglove__joint_states__pack(&m, out);
    for (int i = 0; i < n; i++)
        free(j[i].name);
    return size;
}

static inline size_t run_log_command(const char *const *name, const double *pos, int n,
                                     ns_t at_ns, enum ladder_state mode, uint8_t *out)
{
    Actd__V1__Joint j[ACTD_MAX_JOINTS], *all[ACTD_MAX_JOINTS];
    Actd__V1__JointCommand m;
    Google__Protobuf__Timestamp t = run_log_stamp(at_ns);
    for (int i = 0; i < n; i++) {
        actd__v1__joint__init(&j[i]);
        size_t size = strlen(name[i]) + 1;
        j[i].name = memcpy(malloc(size), name[i], size);
        j[i].position = pos[i];
        all[i] = &j[i];
    }
    actd__v1__joint_command__init(&m);
    m.timestamp = &t;
    m.n_joints = (size_t)n;
    m.joints = all;
    m.mode = (Actd__V1__Mode)mode;
    size_t size = actd__v1__joint_command__pack(&m, out);
    for (int i = 0; i < n; i++)
        free(j[i].name);
    return size;
}

// A frame of a gradient that moves with `phase`. *out is malloc'd.
static inline size_t run_log_frame(int width, int height, int phase, bool raw, ns_t at_ns,
                                   uint8_t **out)
{
    size_t bytes = (size_t)width * (size_t)height * 3, size;
    uint8_t *rgb = malloc(bytes);
    Google__Protobuf__Timestamp t = run_log_stamp(at_ns);
    char encoding[] = "rgb8", format[] = "jpeg";
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            uint8_t *p = rgb + ((size_t)y * (size_t)width + (size_t)x) * 3;
            p[0] = (uint8_t)(x * 255 / width);
            p[1] = (uint8_t)((y + phase) * 3);
            p[2] = (uint8_t)(phase * 5 + (x / 8 + y / 8) % 2 * 60);
        }
    if (raw) {
        Foxglove__RawImage m;
        foxglove__raw_image__init(&m);
        m.timestamp = &t;
        m.width = (uint32_t)width;
        m.height = (uint32_t)height;
        m.step = (uint32_t)width * 3;
        m.encoding = encoding;
        m.data = (ProtobufCBinaryData){bytes, rgb};
        *out = malloc(foxglove__raw_image__get_packed_size(&m));
        size = foxglove__raw_image__pack(&m, *out);
    } else {
        Foxglove__CompressedImage m;
        unsigned char *jpeg = NULL;
        unsigned long n = 0;
        tjhandle tj = tjInitCompress();
        assert_int_equal(tjCompress2(tj, rgb, width, 0, height, TJPF_RGB, &jpeg, &n,
                                     TJSAMP_444, 90, 0),
                         0);
        foxglove__compressed_image__init(&m);
        m.timestamp = &t;
        m.format = format;
        m.data = (ProtobufCBinaryData){n, jpeg};
        *out = malloc(foxglove__compressed_image__get_packed_size(&m));
        size = foxglove__compressed_image__pack(&m, *out);
        tjFree(jpeg);
        tjDestroy(tj);
    }
    free(rgb);
    return size;
}

static inline void run_log_event(struct run_log *l, ns_t at_ns, enum tape_level level,
                                 const char *name, const char *text)
{
    struct tape_event e = {.level = level};
    uint8_t out[4096];
    snprintf(e.name, sizeof e.name, "%s", name);
    size_t n =
        record_event(&e, at_ns + RUN_LOG_BASE_NS, text, strlen(text), out, sizeof out);
    assert_true(n > 0);
    run_log_put(l, "/events", "foxglove.Log", at_ns, out, n);
}

// ---- files -----------------------------------------------------------------------------------

// The whole of a file, malloc'd, with a 0 after it.
static inline char *run_log_slurp(const char *path, size_t *n)
{
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    char *text = malloc(*n + 1);
    assert_int_equal(fread(text, 1, *n, f), *n);
    text[*n] = '\0';
    fclose(f);
    return text;
}

#endif
