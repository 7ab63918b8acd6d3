// The open chunks: JPEGs, which do not compress, raw pictures, which do, and all else. Each chunk
// says anew which schemas and channels it uses: a few kilobytes, and any chunk can be read without
// the ones before it, be they torn, or long gone from memory.
#include <stdlib.h>
#include <string.h>

#include "daemon/record_codec.h"
#include "daemon/recorder_impl.h"

#define EVENT_MAX 2048

// ---- begin and end -----------------------------------------------------------------------------

int recorder_chunk_init(struct recorder *r)
{
    int rc = 0;

    for (int k = 0; rc == 0 && k < RECORDER_KINDS; k++) {
        struct mcap_build_options opt = {
            .compression = k == KIND_JPEG ? MCAP_NONE : r->cfg.compression};

        rc = mcap_build_new(&r->open[k].build, &opt);
    }
    return rc;
}

void recorder_chunk_free(struct recorder *r)
{
    for (int k = 0; k < RECORDER_KINDS; k++)
        mcap_build_free(r->open[k].build);
    free(r->scratch);
}

unsigned char *recorder_scratch(struct recorder *r, size_t size)
{
    if (size > r->scratch_size) {
        unsigned char *grown = realloc(r->scratch, size);

        if (grown == NULL)
            return NULL;
        r->scratch = grown;
        r->scratch_size = size;
    }
    return r->scratch;
}

static struct mcap_chunk *finish(struct recorder *r, struct recorder_open *o)
{
    struct mcap_chunk *c = NULL;
    uint64_t messages = mcap_build_messages(o->build);

    memset(o->said, 0, sizeof o->said);
    memset(o->said_schema, 0, sizeof o->said_schema);
    if (mcap_build_finish(o->build, &c) != 0) {
        r->c.lost_messages += messages;
        r->trouble.lost.others += messages;
    }
    return c;
}

static void close_chunk(struct recorder *r, struct recorder_open *o)
{
    struct mcap_chunk *c = finish(r, o);

    if (c != NULL)
        recorder_chunk_out(r, c);
}

void recorder_chunk_close_due(struct recorder *r, bool all)
{
    for (int k = 0; k < RECORDER_KINDS; k++) {
        struct recorder_open *o = &r->open[k];

        if (mcap_build_messages(o->build) > 0 &&
            (all || r->now_ns - o->oldest_ns >= RECORDER_CHUNK_NS))
            close_chunk(r, o);
    }
}

// ---- messages ----------------------------------------------------------------------------------

static int declare(struct recorder *r, struct recorder_open *o, int topic)
{
    const struct mcap_channel *c = &r->channels.channel[topic];
    int rc = 0;

    if (o->said[topic])
        return 0;
    if (c->schema != 0 && !o->said_schema[c->schema])
        rc = mcap_build_schema(o->build, &r->channels.schema[c->schema]);
    if (rc != 0)
        return rc;
    o->said_schema[c->schema] = true;
    rc = mcap_build_channel(o->build, c);
    o->said[topic] = rc == 0;
    return rc;
}

static int put(struct recorder *r, struct recorder_open *o, int topic, ns_t at_ns,
               int64_t publish_wall_ns, const void *data, size_t size)
{
    uint64_t log_ns = (uint64_t)(at_ns + r->base_ns);
    struct mcap_message m = {
        .channel = (uint16_t)topic,
        .sequence = r->sequence[topic] + 1,
        .log_ns = log_ns,
        .publish_ns = publish_wall_ns > 0 ? (uint64_t)publish_wall_ns : log_ns,
        .data = data,
        .size = size,
    };
    int rc = declare(r, o, topic);

    rc = rc ? rc : mcap_build_message(o->build, &m);
    if (rc == 0)
        r->sequence[topic]++;
    return rc;
}

void recorder_message(struct recorder *r, enum recorder_kind kind, int topic, ns_t at_ns,
                      int64_t publish_wall_ns, const void *data, size_t size)
{
    struct recorder_open *o = &r->open[kind];

    if (mcap_build_messages(o->build) == 0 || at_ns < o->oldest_ns)
        o->oldest_ns = at_ns;
    if (put(r, o, topic, at_ns, publish_wall_ns, data, size) != 0) {
        r->c.lost_messages++;
        r->trouble.lost.others++;
    }
    if (mcap_build_bytes(o->build) >= RECORDER_CHUNK_BYTES)
        close_chunk(r, o);
}

void recorder_event(struct recorder *r, ns_t at_ns, enum tape_level level,
                    const char *name, const char *text)
{
    unsigned char out[EVENT_MAX];
    struct tape_event e = {.level = level};
    size_t n;

    strncpy(e.name, name, sizeof e.name - 1);
    n = record_event(&e, at_ns + r->base_ns, text, strlen(text), out, sizeof out);
    if (n > 0)
        recorder_message(r, KIND_SMALL, TOPIC_EVENT, at_ns, 0, out, n);
}
