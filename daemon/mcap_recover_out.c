// mcap_recover_out: a new file, under another name until it was read back.
#include "daemon/mcap_recover_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/out_path.h"

volatile sig_atomic_t mcap_out_stop, mcap_out_active;

// All of v, of which the kernel may take a part at a time.
static int write_all(void *arg, const struct iovec *v, int n)
{
    const struct mcap_out *o = arg;

    for (int i = 0; i < n; i++) {
        const char *p = v[i].iov_base;
        for (size_t left = v[i].iov_len; left > 0;) {
            if (mcap_out_stop)
                return -EINTR;
            ssize_t done = write(o->fd, p, left);
            if (done < 0 && errno != EINTR)
                return -errno;
            p += done > 0 ? done : 0;
            left -= done > 0 ? (size_t)done : 0;
        }
    }
    return 0;
}

static int make(struct mcap_out *o, const char *to, int like, struct mcap_error *err)
{
    struct stat st;
    int rc;

    rc = out_path_real(to, &o->to);
    if (rc == -EINVAL)
        return mcap_fail(err, rc, "%s is no regular file: name another for the output",
                         to);
    o->fd = rc ? rc : out_path_temporary(o->to, 0600, &o->temporary);
    if (o->fd < 0)
        return mcap_fail(err, o->fd, "%s cannot be written: %s", to, strerror(-o->fd));
    mcap_out_active = 1;
    if (fstat(like, &st) == 0)
        (void)fchmod(o->fd, st.st_mode & 0666);
    return 0;
}

int mcap_out_open(struct mcap_out *o, const char *to, int like, const char *profile,
                  const char *library, struct mcap_error *err)
{
    struct mcap_writer_options opt = {
        .profile = profile, .library = library, .write = write_all, .arg = o};
    int rc;

    *o = (struct mcap_out){.fd = -1};
    o->map = calloc(65536, sizeof *o->map);
    if (!o->map)
        return mcap_fail(err, -ENOMEM, "%s: no memory", to);
    rc = make(o, to, like, err);
    for (int c = MCAP_NONE; rc == 0 && c <= MCAP_ZSTD; c++) {
        struct mcap_build_options b = {.compression = (enum mcap_compression)c};
        rc = mcap_build_new(&o->build[c], &b);
    }
    if (rc == 0)
        rc = mcap_writer_new(&o->writer, &opt);
    if (rc == 0)
        return 0;
    if (o->temporary)
        mcap_fail(err, rc, "%s cannot be written: %s", to, strerror(-rc));
    mcap_out_drop(o);
    return rc;
}

void mcap_out_drop(struct mcap_out *o)
{
    if (o->temporary) {
        unlink(o->temporary);
        close(o->fd);
    }
    mcap_out_active = 0;
    mcap_writer_free(o->writer);
    for (int c = MCAP_NONE; c <= MCAP_ZSTD; c++)
        mcap_build_free(o->build[c]);
    free(o->schema);
    free(o->channel);
    free(o->map);
    free(o->temporary);
    free(o->to);
    *o = (struct mcap_out){.fd = -1};
}

// ---- declarations -----------------------------------------------------------------------------

static bool same_schema(const struct mcap_schema *a, const struct mcap_schema *b)
{
    return strcmp(a->name, b->name) == 0 && strcmp(a->encoding, b->encoding) == 0 &&
           a->size == b->size && memcmp(a->data, b->data, a->size) == 0;
}

static bool same_channel(const struct mcap_channel *a, const struct mcap_channel *b)
{
    if (strcmp(a->topic, b->topic) != 0 || strcmp(a->encoding, b->encoding) != 0 ||
        a->schema != b->schema || a->n_metadata != b->n_metadata)
        return false;
    for (int i = 0; i < a->n_metadata; i++)
        if (strcmp(a->metadata[i].key, b->metadata[i].key) != 0 ||
            strcmp(a->metadata[i].value, b->metadata[i].value) != 0)
            return false;
    return true;
}

// The id itself when nobody has it, else the next one that is free; -1: none.
static int32_t free_id(const struct mcap_ids *taken, uint16_t want, uint16_t least)
{
    uint16_t id = want;

    do {
        if (id >= least && !mcap_ids_has(taken, id))
            return id;
    } while (++id != want);
    return -1;
}

static int grow(void *array, size_t n, size_t size)
{
    void *p, *q;

    memcpy(&p, array, sizeof p);
    if (n % 16 != 0)
        return 0;
    q = realloc(p, (n + 16) * size);
    if (!q)
        return -ENOMEM;
    memcpy(array, &q, sizeof q);
    // cppcheck-suppress memleak ; it is in *array
    return 0;
}

// *id: what it is called here.
static int declare_schema(struct mcap_out *o, const struct mcap_schema *s,
                          struct mcap_build *b, uint16_t *id)
{
    struct mcap_schema mine = *s;
    int32_t fresh;
    int rc;

    for (size_t i = 0; i < o->n_schemas; i++)
        if (same_schema(&o->schema[i], s)) {
            *id = o->schema[i].id;
            return 0;
        }
    fresh = free_id(&o->schema_ids, s->id, 1);
    if (fresh < 0)
        return -EOVERFLOW;
    mine.id = *id = (uint16_t)fresh;
    rc = grow(&o->schema, o->n_schemas, sizeof *o->schema);
    if (rc == 0)
        rc = mcap_build_schema(b, &mine);
    if (rc == 0)
        rc = mcap_writer_schema(o->writer, &mine, false);
    if (rc != 0)
        return rc;
    mcap_ids_add(&o->schema_ids, mine.id);
    o->schema[o->n_schemas++] = mine;
    return 0;
}

static int declare_channel(struct mcap_out *o, const struct mcap_reader *from,
                           const struct mcap_channel *c, struct mcap_build *b)
{
    const struct mcap_schema *s = mcap_schema_of(from, c->schema);
    struct mcap_channel mine = *c;
    int32_t fresh;
    int rc = 0;

    mine.schema = 0; // lost with its place in the file: better no schema than a wrong one
    if (c->schema && s)
        rc = declare_schema(o, s, b, &mine.schema);
    for (size_t i = 0; rc == 0 && i < o->n_channels; i++)
        if (same_channel(&o->channel[i], &mine)) {
            o->map[c->id] = (int32_t)i + 1;
            return 0;
        }
    fresh = free_id(&o->channel_ids, c->id, 0);
    if (rc == 0 && fresh < 0)
        rc = -EOVERFLOW;
    mine.id = (uint16_t)fresh;
    if (rc == 0)
        rc = grow(&o->channel, o->n_channels, sizeof *o->channel);
    if (rc == 0)
        rc = mcap_build_channel(b, &mine);
    if (rc == 0)
        rc = mcap_writer_channel(o->writer, &mine, false);
    if (rc != 0)
        return rc;
    mcap_ids_add(&o->channel_ids, mine.id);
    o->channel[o->n_channels++] = mine;
    o->map[c->id] = (int32_t)o->n_channels;
    return 0;
}

// ---- messages -----------------------------------------------------------------------------------

int mcap_out_message(struct mcap_out *o, const struct mcap_reader *from,
                     const struct mcap_message *m, enum mcap_compression c)
{
    const struct mcap_channel *channel = mcap_channel_of(from, m->channel);
    struct mcap_message mine = *m;
    int rc = 0;

    if (!channel)
        return -ENODATA;
    if (o->source && o->source != from)
        memset(o->map, 0, 65536 * sizeof *o->map);
    o->source = from;
    if (o->map[m->channel] == 0)
        rc = declare_channel(o, from, channel, o->build[c]);
    if (rc != 0)
        return rc;
    mine.channel = o->channel[o->map[m->channel] - 1].id;
    rc = mcap_build_message(o->build[c], &mine);
    o->messages += rc == 0;
    return rc;
}

size_t mcap_out_bytes(const struct mcap_out *o, enum mcap_compression c)
{
    return mcap_build_bytes(o->build[c]);
}

int mcap_out_flush(struct mcap_out *o, enum mcap_compression c)
{
    struct mcap_chunk *chunk = NULL;
    int rc = mcap_build_finish(o->build[c], &chunk);

    if (rc == 0 && chunk)
        rc = mcap_writer_chunk(o->writer, chunk);
    mcap_chunk_free(chunk);
    return rc;
}

// ---- the end --------------------------------------------------------------------------------------

static int count(void *arg, const struct mcap_record *r)
{
    uint64_t *n = arg;

    *n += r->op == MCAP_MESSAGE;
    return mcap_out_stop ? -EINTR : 0;
}

// Both ways: record after record with every CRC, and by the summary.
static int read_back(const struct mcap_out *o, const struct mcap_limits *l,
                     struct mcap_error *err)
{
    struct mcap_reader *r = NULL;
    uint64_t n = 0;
    int rc = mcap_walk(o->temporary, l, count, &n, err);

    if (rc == 0)
        rc = mcap_open(&r, o->temporary, l, err);
    if (rc == 0 && (!mcap_whole(r, NULL) || !r->by_summary || n != o->messages ||
                    mcap_message_count(r) != n))
        rc = mcap_fail(
            err, -EIO,
            "what was written for %.150s does not read back as it was written; is "
            "the disk well?",
            o->to);
    mcap_close(r);
    return rc;
}

static int sync_directory(const char *path)
{
    char *copy = strdup(path);
    int fd = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    int rc = fd >= 0 && fsync(fd) == 0 ? 0 : -errno;

    if (fd >= 0)
        close(fd);
    free(copy);
    return rc;
}

int mcap_out_close(struct mcap_out *o, const struct mcap_limits *l, uint64_t *bytes,
                   struct mcap_error *err)
{
    int rc = 0;

    for (int c = MCAP_NONE; rc == 0 && c <= MCAP_ZSTD; c++)
        rc = mcap_out_flush(o, (enum mcap_compression)c);
    if (rc == 0)
        rc = mcap_writer_finish(o->writer);
    if (rc == 0 && fsync(o->fd) != 0)
        rc = -errno;
    *bytes = mcap_writer_bytes(o->writer);
    if (rc != 0)
        mcap_fail(err, rc, "%s cannot be written: %s", o->to, strerror(-rc));
    else
        rc = read_back(o, l, err);
    if (rc == 0 && rename(o->temporary, o->to) != 0) {
        rc = -errno;
        mcap_fail(err, rc, "%s cannot be replaced: %s", o->to, strerror(-rc));
    }
    if (rc == 0) { // it has its name: nothing is to be removed
        (void)sync_directory(o->to);
        close(o->fd);
        free(o->temporary);
        o->temporary = NULL;
    }
    mcap_out_drop(o);
    return rc;
}
