// What came out of a replay, as a log of its own: what came in copied, what was made anew as it was
// made. It has the topics of the source, so it can be looked at and replayed as any other.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/keyframe.h"
#include "daemon/mcap_write.h"
#include "daemon/out_path.h"
#include "daemon/replay_impl.h"

#ifndef ACTD_VERSION
#define ACTD_VERSION "unknown"
#endif

#define CHUNK_BYTES (1u << 20)
#define CHANNELS    (16 + 4 * POLICY_MAX_CAMERAS)
#define SCHEMAS     16

enum { SMALL, FRAMES, BUILDS };

struct channel {
    char topic[160];
    struct mcap_channel c; // strings are the source's
    int build;
    bool said; // in the chunk builder
    uint32_t sequence;
};

struct replay_output {
    struct logbook *book;
    char *path, *part; // where it goes, and until it is whole
    int fd;
    struct mcap_writer *writer;
    struct mcap_build *build[BUILDS];
    int n;
    struct channel channel[CHANNELS];
    int n_schemas;
    struct mcap_schema schema[SCHEMAS];
    bool schema_said[BUILDS][SCHEMAS];
    int rc; // of the first failure
};

// ---- file ------------------------------------------------------------------------------------

static int write_all(void *arg, const struct iovec *v, int n)
{
    const struct replay_output *o = arg;

    for (int i = 0; i < n; i++) {
        const char *p = v[i].iov_base;
        size_t left = v[i].iov_len;

        while (left > 0) {
            ssize_t got = write(o->fd, p, left);

            if (got < 0 && errno == EINTR)
                continue;
            if (got <= 0)
                return got < 0 ? -errno : -EIO;
            p += got;
            left -= (size_t)got;
        }
    }
    return 0;
}

static void keep(struct replay_output *o, int rc)
{
    if (o->rc == 0)
        o->rc = rc;
}

static void flush(struct replay_output *o, int build)
{
    struct mcap_chunk *chunk = NULL;

    keep(o, mcap_build_finish(o->build[build], &chunk));
    if (chunk)
        keep(o, mcap_writer_chunk(o->writer, chunk));
    mcap_chunk_free(chunk);
}

// ---- channels --------------------------------------------------------------------------------

static const struct mcap_schema *source_schema(const struct replay_output *o, int file,
                                               uint16_t id)
{
    return id ? mcap_schema_of(logbook_reader(o->book, file), id) : NULL;
}

// Our id of a schema of the source, 0 = none.
static uint16_t schema_of(struct replay_output *o, const struct mcap_schema *s)
{
    if (!s)
        return 0;
    for (int i = 0; i < o->n_schemas; i++)
        if (strcmp(o->schema[i].name, s->name) == 0)
            return o->schema[i].id;
    if (o->n_schemas == SCHEMAS)
        return 0;
    o->schema[o->n_schemas] = *s;
    o->schema[o->n_schemas].id = (uint16_t)(o->n_schemas + 1);
    keep(o, mcap_writer_schema(o->writer, &o->schema[o->n_schemas], false));
    return (uint16_t)++o->n_schemas;
}

static bool is_frames(const char *topic)
{
    return strncmp(topic, "/camera/", 8) == 0;
}

static struct channel *add(struct replay_output *o, const char *topic)
{
    struct channel *c = &o->channel[o->n];

    for (int i = 0; i < logbook_files(o->book) && o->n < CHANNELS; i++) {
        const struct mcap_channel *from =
            mcap_channel_named(logbook_reader(o->book, i), topic);

        if (!from)
            continue;
        snprintf(c->topic, sizeof c->topic, "%s", topic);
        c->c = *from;
        c->c.topic = c->topic;
        c->c.id = (uint16_t)(o->n + 1);
        c->c.schema = schema_of(o, source_schema(o, i, from->schema));
        c->build = is_frames(topic) ? FRAMES : SMALL;
        keep(o, mcap_writer_channel(o->writer, &c->c, false));
        o->n++;
        return c;
    }
    return NULL;
}

static struct channel *find(struct replay_output *o, const char *topic)
{
    for (int i = 0; i < o->n; i++)
        if (strcmp(o->channel[i].topic, topic) == 0)
            return &o->channel[i];
    return add(o, topic);
}

// Each chunk builder says what it needs before it uses it.
static void say(struct replay_output *o, struct channel *c)
{
    int s = c->c.schema - 1;

    if (c->said)
        return;
    c->said = true;
    if (s >= 0 && !o->schema_said[c->build][s]) {
        o->schema_said[c->build][s] = true;
        keep(o, mcap_build_schema(o->build[c->build], &o->schema[s]));
    }
    keep(o, mcap_build_channel(o->build[c->build], &c->c));
}

void replay_output_put(struct replay_output *o, const char *topic, uint64_t log_ns,
                       uint64_t publish_ns, const void *data, size_t size)
{
    struct channel *c = o && o->rc == 0 ? find(o, topic) : NULL;

    if (!c)
        return;
    say(o, c);
    const struct mcap_message m = {.channel = c->c.id,
                                   .sequence = c->sequence++,
                                   .log_ns = log_ns,
                                   .publish_ns = publish_ns,
                                   .data = data,
                                   .size = size};

    keep(o, mcap_build_message(o->build[c->build], &m));
    if (mcap_build_bytes(o->build[c->build]) >= CHUNK_BYTES)
        flush(o, c->build);
}

// ---- states ----------------------------------------------------------------------------------

static void put_states(struct replay *r, enum tape_class class, enum tape_kind kind)
{
    const struct tape_entry *e = tape_peek(r->tape, class);

    if (!e || e->kind != kind)
        return;
    replay_output_put(r->output, "/keyframe", replay_log_time(r, e->at_ns),
                      replay_log_time(r, e->at_ns), e + 1, e->size);
    tape_release(r->tape, class);
}

void replay_output_states(struct replay *r)
{
    put_states(r, TAPE_TICKS, TAPE_LOOP_STATE);
    put_states(r, TAPE_BUS, TAPE_BUS_STATE);
}

// The state with this number, if it is the next of its kind.
static bool state_is_next(struct replay *r, struct replay_feed *f, uint32_t kind,
                          uint64_t number)
{
    struct keyframe_head h;

    for (; replay_peek(r, f); replay_drop(f)) {
        if (f->m.size < sizeof h)
            continue;
        memcpy(&h, f->m.data, sizeof h);
        if (h.kind == kind && h.number >= number)
            return h.number == number;
    }
    return false;
}

void replay_output_ask_loop(struct replay *r, uint64_t tick)
{
    if (r->output && state_is_next(r, &r->loop_states, KEYFRAME_LOOP, tick))
        r->tape->loop_state_given = atomic_load(&r->tape->loop_state_asked) - 1;
}

void replay_output_bus(struct replay *r, uint64_t input)
{
    if (!r->output || !state_is_next(r, &r->bus_states, KEYFRAME_BUS, input))
        return;
    atomic_store(&r->tape->bus_state_given, atomic_load(&r->tape->bus_state_asked) - 1);
    keyframe_bus(r->intake, r->camera, r->robot->cameras, r->tape,
                 replay_at(r, &r->bus_states.m));
    replay_output_states(r);
}

// ---- open and close --------------------------------------------------------------------------

// What was said, not made.
static int copy(struct replay *r, const char *topic)
{
    struct replay_feed f = {0};
    int rc = replay_feed_open(r, &f, topic);

    for (; rc == 0 && replay_peek(r, &f); replay_drop(&f))
        replay_output_put(r->output, topic, f.m.log_ns, f.m.publish_ns, f.m.data,
                          f.m.size);
    logbook_cursor_free(f.cursor);
    return rc;
}

static int copy_metadata(struct replay_output *o)
{
    struct mcap_reader *reader = logbook_reader(o->book, 0);
    int n = mcap_metadata(reader);

    for (int i = 0; i < n; i++) {
        const struct mcap_pair *pairs;
        struct mcap_error e;
        const char *name;
        int n_pairs;
        int rc = mcap_metadata_at(reader, i, &name, &pairs, &n_pairs, &e);

        if (rc == 0)
            rc = mcap_writer_metadata(o->writer, name, pairs, n_pairs);
        if (rc)
            return rc;
    }
    return 0;
}

static int begin(struct replay_output *o)
{
    const struct mcap_writer_options w = {
        .profile = "", .library = "actd " ACTD_VERSION, .write = write_all, .arg = o};
    const struct mcap_build_options small = {.compression = MCAP_ZSTD};
    const struct mcap_build_options frames = {.compression = MCAP_NONE};
    int rc;

    o->fd = out_path_temporary(o->path, 0640, &o->part);
    if (o->fd < 0)
        return o->fd;
    rc = mcap_writer_new(&o->writer, &w);
    if (rc == 0)
        rc = mcap_build_new(&o->build[SMALL], &small);
    if (rc == 0)
        rc = mcap_build_new(&o->build[FRAMES], &frames);
    return rc ? rc : copy_metadata(o);
}

static int failed(struct replay *r, const char *path, int rc)
{
    snprintf(r->err->text, sizeof r->err->text, "%.1400s: cannot be written: %s", path,
             strerror(-rc));
    return rc;
}

int replay_output_open(struct replay *r, const char *path)
{
    struct replay_output *o = calloc(1, sizeof *o);
    int rc;

    if (!o)
        return failed(r, path, -ENOMEM);
    o->book = r->book;
    o->fd = -1;
    r->output = o;
    rc = out_path_real(path, &o->path);
    if (rc == 0)
        rc = begin(o);
    if (rc == 0)
        rc = copy(r, "/policy/seat");
    if (rc == 0)
        rc = copy(r, "/events");
    if (rc == 0)
        return 0;
    (void)replay_output_close(r, false);
    return failed(r, path, rc);
}

int replay_output_close(struct replay *r, bool good)
{
    struct replay_output *o = r->output;

    for (int b = 0; b < BUILDS && o->writer && good; b++)
        flush(o, b);
    if (o->writer && good && o->rc == 0)
        keep(o, mcap_writer_finish(o->writer));
    mcap_writer_free(o->writer);
    for (int b = 0; b < BUILDS; b++)
        mcap_build_free(o->build[b]);
    if (o->fd >= 0 && close(o->fd) != 0)
        keep(o, -errno);
    if (good && o->rc == 0 && rename(o->part, o->path) != 0)
        keep(o, -errno);
    if (!good || o->rc)
        (void)(o->part && unlink(o->part));
    if (o->rc)
        (void)failed(r, o->path, o->rc);
    int rc = o->rc;

    free(o->part);
    free(o->path);
    free(o);
    r->output = NULL;
    return rc;
}
