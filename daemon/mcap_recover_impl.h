// What recovery shares with the reader's scan, and with `actd log cut`: a new file made of messages
// of others, under another name until it is good.
#ifndef ACTD_MCAP_RECOVER_IMPL_H
#define ACTD_MCAP_RECOVER_IMPL_H

#include <signal.h>

#include "daemon/mcap_read_impl.h"
#include "daemon/mcap_recover.h"
#include "daemon/mcap_write.h"

// Something at `bad` is damaged: moves the scan to the next place that can be believed, and adds
// what lies between to the reader's losses. back <= bad: from where on a chunk is looked for, as it
// may be the record before whose length is wrong. 0; 1: there is none; -errno.
int mcap_resync(struct mcap_reader *r, struct mcap_scan *s, uint64_t bad, uint64_t back,
                struct mcap_error *err);
// As another reader knows it; nothing is done when the id is taken.
int mcap_learn_again_schema(struct mcap_reader *r, const struct mcap_schema *s);
int mcap_learn_again_channel(struct mcap_reader *r, const struct mcap_channel *c);

// ---- a new file --------------------------------------------------------------------------------
struct mcap_out {
    char *to, *temporary;
    int fd;
    struct mcap_writer *writer;
    struct mcap_build *build[3]; // by compression
    // Declared already: as they are here, and where they come from.
    struct mcap_schema *schema;
    struct mcap_channel *channel;
    size_t n_schemas, n_channels;
    const struct mcap_reader *source; // of `map`
    int32_t *map;                     // its channel id -> place in channel + 1, 0 not yet
    struct mcap_ids schema_ids, channel_ids;
    uint64_t messages; // put in
};
// Set by whoever catches a signal: what is being written then fails with -EINTR and leaves nothing.
// mcap_out_active: there is something to be left.
extern volatile sig_atomic_t mcap_out_stop, mcap_out_active;

// Beside `to`, under a name of its own, with the permissions of fd `like`. 0 or -errno.
int mcap_out_open(struct mcap_out *o, const char *to, int like, const char *profile,
                  const char *library, struct mcap_error *err);
// Into the chunk with this compression, which ends when mcap_out_flush says so. Schemas, channels
// are declared where they are first used; ids that two sources use differently get new ones. The
// source must outlive it. 0, -ENODATA (its channel is declared nowhere), -errno.
int mcap_out_message(struct mcap_out *o, const struct mcap_reader *from,
                     const struct mcap_message *m, enum mcap_compression c);
size_t mcap_out_bytes(const struct mcap_out *o, enum mcap_compression c); // unflushed
int mcap_out_flush(struct mcap_out *o, enum mcap_compression c);
// Finishes it, reads all of it back, gives it its name. 0 or -errno, with nothing left.
int mcap_out_close(struct mcap_out *o, const struct mcap_limits *l, uint64_t *bytes,
                   struct mcap_error *err);
void mcap_out_drop(
    struct mcap_out *o); // gives it up; also after a close, and of a zeroed one

// The messages of one chunk, in their order. visit: 0 to go on.
int mcap_chunk_each(struct mcap_reader *r, const struct mcap_chunk_place *p,
                    int (*visit)(void *arg, const struct mcap_message *m), void *arg,
                    struct mcap_error *err);
int mcap_loose_get(struct mcap_reader *r, const struct mcap_loose *l,
                   struct mcap_message *m, struct mcap_error *err);
int mcap_copy_metadata(struct mcap_out *o, struct mcap_reader *r, int i,
                       struct mcap_error *err);
int mcap_copy_attachment(struct mcap_out *o, struct mcap_reader *r, int i,
                         struct mcap_error *err);

#endif
