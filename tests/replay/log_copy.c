#include "tests/replay/log_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "daemon/mcap_write.h"

#define CHUNK_BYTES (1u << 20)

struct copy {
    struct mcap_reader *from;
    int fd;
    struct mcap_writer *to;
    struct mcap_build *build;
    const struct log_flip *flip; // NULL = none
    uint64_t from_log_ns;
    uint16_t channel; // of the message to change
    uint16_t chunks;  // of those that are never left out
    bool flipped;
};

static int write_all(void *arg, const struct iovec *v, int n)
{
    const struct copy *c = arg;

    for (int i = 0; i < n; i++)
        if (write(c->fd, v[i].iov_base, v[i].iov_len) != (ssize_t)v[i].iov_len)
            return -EIO;
    return 0;
}

static int flush(struct copy *c)
{
    struct mcap_chunk *chunk = NULL;
    int rc = mcap_build_finish(c->build, &chunk);

    if (rc == 0 && chunk)
        rc = mcap_writer_chunk(c->to, chunk);
    mcap_chunk_free(chunk);
    return rc;
}

// What the messages are of, in the first chunk.
static int introduce(struct copy *c)
{
    int rc = 0;

    for (int i = 0; i < mcap_schemas(c->from) && rc == 0; i++) {
        rc = mcap_writer_schema(c->to, mcap_schema_at(c->from, i), false);
        if (rc == 0)
            rc = mcap_build_schema(c->build, mcap_schema_at(c->from, i));
    }
    for (int i = 0; i < mcap_channels(c->from) && rc == 0; i++) {
        const struct mcap_channel *ch = mcap_channel_at(c->from, i);

        if (c->flip && strcmp(ch->topic, c->flip->topic) == 0)
            c->channel = ch->id;
        if (strcmp(ch->topic, "/policy/chunk") == 0)
            c->chunks = ch->id;
        rc = mcap_writer_channel(c->to, ch, false);
        if (rc == 0)
            rc = mcap_build_channel(c->build, ch);
    }
    return rc;
}

static int copy_metadata(struct copy *c)
{
    int rc = 0;

    for (int i = 0; i < mcap_metadata(c->from) && rc == 0; i++) {
        const struct mcap_pair *pairs;
        struct mcap_error e;
        const char *name;
        int n;

        rc = mcap_metadata_at(c->from, i, &name, &pairs, &n, &e);
        if (rc == 0)
            rc = mcap_writer_metadata(c->to, name, pairs, n);
    }
    return rc;
}

static int put(struct copy *c, const struct mcap_message *m)
{
    const struct log_flip *f = c->flip;
    struct mcap_message other = *m;
    unsigned char *bytes = NULL;
    int rc;

    if (m->log_ns < c->from_log_ns && m->channel != c->chunks)
        return 0;
    if (f && m->channel == c->channel && m->log_ns == f->log_ns && f->offset < m->size) {
        bytes = malloc(m->size);
        if (!bytes)
            return -ENOMEM;
        memcpy(bytes, m->data, m->size);
        bytes[f->offset] ^= f->with;
        other.data = bytes;
        c->flipped = true;
    }
    rc = mcap_build_message(c->build, &other);
    free(bytes);
    if (rc == 0 && mcap_build_bytes(c->build) >= CHUNK_BYTES)
        rc = flush(c);
    return rc;
}

static int copy_messages(struct copy *c)
{
    struct mcap_cursor *cursor;
    struct mcap_message m;
    struct mcap_error e;
    int rc = mcap_cursor_new(&cursor, c->from, NULL, 0, MCAP_FILE_ORDER, 0, 0);

    if (rc != 0)
        return rc;
    while ((rc = mcap_next(cursor, &m, &e)) == 1 && (rc = put(c, &m)) == 0)
        ;
    mcap_cursor_free(cursor);
    return rc == 0 ? flush(c) : rc;
}

static int copy(struct copy *c)
{
    const struct mcap_writer_options w = {
        .profile = "", .library = "copy", .write = write_all, .arg = c};
    const struct mcap_build_options b = {.compression = MCAP_ZSTD};
    int rc = mcap_writer_new(&c->to, &w);

    if (rc == 0)
        rc = mcap_build_new(&c->build, &b);
    if (rc == 0)
        rc = copy_metadata(c);
    if (rc == 0)
        rc = introduce(c);
    if (rc == 0)
        rc = copy_messages(c);
    if (rc == 0)
        rc = mcap_writer_finish(c->to);
    return rc ? rc : c->flipped || !c->flip ? 0 : -ENOENT;
}

int log_copy(const char *from, const char *to, const struct log_flip *flip,
             uint64_t from_log_ns)
{
    struct copy c = {.flip = flip, .from_log_ns = from_log_ns, .fd = -1};
    struct mcap_error e;
    int rc = mcap_open(&c.from, from, NULL, &e);

    if (rc != 0)
        return rc;
    c.fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
    rc = c.fd < 0 ? -errno : copy(&c);
    mcap_writer_free(c.to);
    mcap_build_free(c.build);
    mcap_close(c.from);
    if (c.fd >= 0)
        close(c.fd);
    return rc;
}

// ---- the same? -------------------------------------------------------------------------------

static bool topic_same(struct logbook *a, struct logbook *b, const char *topic,
                       char what[200])
{
    struct logbook_cursor *c = NULL, *d = NULL;
    struct mcap_message m, n;
    struct mcap_error e;
    int in_a = logbook_cursor_new(&c, a, topic, 0, 0),
        in_b = logbook_cursor_new(&d, b, topic, 0, 0), x = 0, y = 0;
    uint64_t count = 0;
    bool same = in_a == in_b;

    while (in_a == 0 && in_b == 0 && same) {
        x = logbook_next(c, &m, &e);
        y = logbook_next(d, &n, &e);
        if (x != 1 || y != 1) {
            same = x == 0 && y == 0;
            break;
        }
        count++;
        same = m.log_ns == n.log_ns && m.publish_ns == n.publish_ns && m.size == n.size &&
               (m.size == 0 || memcmp(m.data, n.data, m.size) == 0);
    }
    if (!same)
        snprintf(what, 200, "%s: message %lu of the two logs (%d, %d; %d, %d)", topic,
                 (unsigned long)count, in_a, in_b, x, y);
    logbook_cursor_free(c);
    logbook_cursor_free(d);
    return same;
}

bool log_same(struct logbook *a, struct logbook *b, const char *const *topic, int n,
              char what[200])
{
    for (int i = 0; i < n; i++)
        if (!topic_same(a, b, topic[i], what))
            return false;
    return true;
}
