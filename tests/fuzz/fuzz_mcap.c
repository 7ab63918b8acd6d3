// fuzz_mcap: a file of any bytes: walked, opened, read in both orders, decoded, recovered. What must be true:
// both orders deliver the same messages; what a walk finds good is opened; what was recovered is
// whole, has the messages that recovery says, no more than there were, and nothing is lost of it when
// it is recovered once more. Limits are small, so that memory beyond them shows.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/log_tool_impl.h"
#include "daemon/logbook.h"
#include "daemon/mcap_recover.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct mcap_limits limits = {
    .chunk_bytes = 1 << 20, .record_bytes = 1 << 20, .index_bytes = 4 << 20};

static void must(int promise)
{
    if (!promise)
        abort();
}

struct sum {
    uint64_t messages, bytes, mix; // mix: of contents, whatever their order
    bool damaged;
};

static void add(struct sum *s, const struct mcap_message *m)
{
    uint32_t crc = mcap_crc(m->channel, m->data, m->size); // every byte is looked at

    s->messages++;
    s->bytes += m->size;
    s->mix += (crc ^ m->log_ns) * UINT64_C(0x9e3779b97f4a7c15);
}

static int visit(void *arg, const struct mcap_record *r)
{
    uint64_t *messages = arg;

    must(r->content || r->length == 0);
    *messages += r->op == MCAP_MESSAGE;
    return 0;
}

static struct sum read_in(struct mcap_reader *r, enum mcap_order order)
{
    struct sum s = {0};
    struct mcap_cursor *c;
    struct mcap_message m;
    struct mcap_error err;
    int rc;

    must(mcap_cursor_new(&c, r, NULL, 0, order, 0, 0) == 0);
    while ((rc = mcap_next(c, &m, &err)) != 0) {
        if (rc == 1)
            add(&s, &m);
        else
            must(strnlen(err.text, sizeof err.text) > 0);
        s.damaged |= rc < 0;
    }
    mcap_cursor_free(c);
    return s;
}

static void ask(struct mcap_reader *r)
{
    struct mcap_attachment a;
    const struct mcap_pair *pair;
    const char *name;
    int n;
    void *own;

    for (int i = 0; i < mcap_metadata(r); i++)
        if (mcap_metadata_at(r, i, &name, &pair, &n, NULL) == 0)
            for (int k = 0; k < n; k++)
                must(strlen(pair[k].key) + strlen(pair[k].value) < 1 << 20);
    for (int i = 0; i < mcap_attachments(r); i++) {
        if (mcap_attachment_at(r, i, &a, &own, NULL) == 0)
            must(strlen(a.name) + a.size < 1 << 20);
        free(own);
    }
    for (int i = 0; i < mcap_channels(r); i++) {
        const struct mcap_channel *c = mcap_channel_at(r, i);
        must(mcap_channel_of(r, c->id) == c && mcap_channel_named(r, c->topic));
        must(!c->schema || !mcap_schema_of(r, c->schema) ||
             mcap_schema_of(r, c->schema)->id == c->schema);
    }
    for (int i = 0; i < mcap_chunks(r); i++)
        must(mcap_chunk_at(r, i)->offset < mcap_file_bytes(r));
}

// As `actd log cat` does.
static void decode(struct mcap_reader *r)
{
    static FILE *nowhere;
    struct mcap_cursor *c;
    struct mcap_message m;
    int rc;

    if (!nowhere)
        nowhere = fopen("/dev/null", "w");
    must(nowhere != NULL);
    for (int i = 0; i < mcap_schemas(r); i++) {
        struct log_types *t = log_types_new(mcap_schema_at(r, i));
        if (!t)
            continue;
        must(mcap_cursor_new(&c, r, NULL, 0, MCAP_FILE_ORDER, 0, 0) == 0);
        while ((rc = mcap_next(c, &m, NULL)) != 0)
            if (rc == 1)
                log_types_print(t, m.data, m.size, nowhere);
        mcap_cursor_free(c);
        log_types_free(t);
    }
}

static void one_book(const char *path, const char *topic)
{
    struct logbook *b;
    struct logbook_cursor *c;
    struct mcap_message m;
    struct mcap_error err;

    if (logbook_open(&b, &path, 1, &err) != 0)
        return;
    must(logbook_cursor_new(&c, b, topic, 0, 0) == 0);
    while (logbook_next(c, &m, &err) != 0)
        ;
    logbook_cursor_free(c);
    (void)logbook_base_ns(b);
    logbook_close(b);
}

static bool opened(const char *path, uint64_t walked, bool good)
{
    struct mcap_reader *r;
    struct mcap_error err;
    struct sum file, log;

    if (mcap_open(&r, path, &limits, &err) != 0) {
        must(strnlen(err.text, sizeof err.text) > 0);
        return false;
    }
    file = read_in(r, MCAP_FILE_ORDER);
    log = read_in(r, MCAP_LOG_ORDER);
    if (!file.damaged && !log.damaged) {
        must(file.messages == log.messages && file.bytes == log.bytes &&
             file.mix == log.mix);
        must(!good || file.messages <= walked);
    }
    ask(r);
    decode(r);
    if (mcap_channels(r) > 0)
        one_book(path, mcap_channel_at(r, 0)->topic);
    mcap_close(r);
    return true;
}

static void recovered(const char *path, const char *to)
{
    struct mcap_recovery first, second;
    struct mcap_error err;
    struct mcap_reader *r;
    uint64_t n = 0;
    int rc = mcap_recover(path, to, &limits, &first, &err);

    if (rc < 0) {
        must(access(to, F_OK) != 0 && strnlen(err.text, sizeof err.text) > 0);
        return;
    }
    must(mcap_walk(to, &limits, visit, &n, &err) == 0 && n == first.messages);
    must(mcap_open(&r, to, &limits, &err) == 0 && mcap_whole(r, NULL));
    must(mcap_message_count(r) == n);
    mcap_close(r);
    must(mcap_recover(to, to, &limits, &second, &err) == 0);
    must(second.was_whole && second.messages == n && second.bytes_lost == 0);
    unlink(to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char path[64], to[64];
    static int fd = -1;
    uint64_t walked = 0;
    struct mcap_error err;

    if (fd < 0) {
        fd = memfd_create("mcap", MFD_CLOEXEC);
        must(fd >= 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        snprintf(to, sizeof to, "/dev/shm/fuzz-mcap-%d", (int)getpid());
    }
    must(ftruncate(fd, 0) == 0);
    must(size == 0 || pwrite(fd, data, size, 0) == (ssize_t)size);
    bool good = mcap_walk(path, &limits, visit, &walked, &err) == 0;
    opened(path, walked, good);
    recovered(path, to);
    return 0;
}
