// Which policies sat in the seat: remembered, and said in every file, so that each can be replayed
// without the others. The last sixteen: more do not fit into one file's time.
#include <stdlib.h>
#include <string.h>

#include "daemon/record_codec.h"
#include "daemon/recorder_impl.h"

static void forget(struct recorder_remembered *m)
{
    if (m != NULL)
        free(m->sidecar);
    free(m);
}

static struct recorder_remembered *remembered(const struct tape_seat *seat,
                                              const char *text, size_t n)
{
    struct recorder_remembered *m = calloc(1, sizeof *m);

    if (m == NULL)
        return NULL;
    m->seat = *seat;
    m->sidecar = strndup(text, n);
    if (m->sidecar == NULL) {
        free(m);
        return NULL;
    }
    return m;
}

// Behind the others; the oldest goes when all places are taken. One that is there already stays.
static void append(struct recorder *r, struct recorder_remembered *m)
{
    int n = 0;

    for (; n < RECORDER_SEATS && r->seat[n] != NULL; n++)
        if (r->seat[n]->seat.generation == m->seat.generation) {
            forget(m);
            return;
        }
    if (n == RECORDER_SEATS) {
        forget(r->seat[0]);
        for (n = 0; n < RECORDER_SEATS - 1; n++)
            r->seat[n] = r->seat[n + 1];
    }
    r->seat[n] = m;
}

void recorder_remember(struct recorder *r, const struct tape_seat *seat, const char *text,
                       size_t n)
{
    struct recorder_remembered *m = remembered(seat, text, n);

    if (m == NULL)
        return;
    pthread_mutex_lock(&r->lock);
    append(r, m);
    pthread_mutex_unlock(&r->lock);
}

void recorder_seats_free(struct recorder *r)
{
    for (int i = 0; i < RECORDER_SEATS; i++)
        forget(r->seat[i]);
}

// Under the lock. The bytes, in r->scratch; 0 = no memory, or a text that is too long.
static size_t encode(struct recorder *r, const struct recorder_remembered *m)
{
    size_t n = strlen(m->sidecar), most = n + sizeof m->seat + 256;
    unsigned char *out = recorder_scratch(r, most);

    return out != NULL ? record_seat(&m->seat, m->sidecar, n, out, most) : 0;
}

void recorder_seats_new(struct recorder *r)
{
    if (r->file.writer == NULL)
        return;
    pthread_mutex_lock(&r->lock);
    for (int i = 0; i < RECORDER_SEATS && r->seat[i] != NULL; i++) {
        size_t n = r->seat[i]->said ? 0 : encode(r, r->seat[i]);

        // Into the chunk, which may be full and go to the disk: not while others wait for the lock.
        r->seat[i]->said = true;
        if (n == 0)
            continue;
        pthread_mutex_unlock(&r->lock);
        recorder_message(r, KIND_SMALL, TOPIC_SEAT, r->now_ns, 0, r->scratch, n);
        pthread_mutex_lock(&r->lock);
    }
    pthread_mutex_unlock(&r->lock);
}

static int add(struct recorder *r, struct mcap_build *b,
               const struct recorder_remembered *m, ns_t at_ns)
{
    uint64_t log_ns = (uint64_t)(at_ns + r->base_ns);
    size_t n = encode(r, m);
    struct mcap_message message = {.channel = TOPIC_SEAT,
                                   .sequence = ++r->sequence[TOPIC_SEAT],
                                   .log_ns = log_ns,
                                   .publish_ns = log_ns,
                                   .data = r->scratch,
                                   .size = n};

    return n > 0 ? mcap_build_message(b, &message) : 0;
}

struct mcap_chunk *recorder_seats_chunk(struct recorder *r, ns_t at_ns)
{
    const struct mcap_channel *c = &r->channels.channel[TOPIC_SEAT];
    struct mcap_build_options opt = {.compression = r->cfg.compression};
    struct mcap_chunk *out = NULL;
    struct mcap_build *b = NULL;
    int rc = mcap_build_new(&b, &opt);

    rc = rc ? rc : mcap_build_schema(b, &r->channels.schema[c->schema]);
    rc = rc ? rc : mcap_build_channel(b, c);
    pthread_mutex_lock(&r->lock);
    for (int i = 0; rc == 0 && i < RECORDER_SEATS && r->seat[i] != NULL; i++) {
        r->seat[i]->said = true;
        rc = add(r, b, r->seat[i], at_ns);
    }
    pthread_mutex_unlock(&r->lock);
    if (rc == 0 && mcap_build_messages(b) > 0)
        (void)mcap_build_finish(b, &out);
    mcap_build_free(b);
    return out;
}
