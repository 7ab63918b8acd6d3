// What the parts of mcap that write share: how a record is put together.
#ifndef ACTD_MCAP_IMPL_H
#define ACTD_MCAP_IMPL_H

#include "daemon/mcap.h"

// Room for n bytes more, so that putting them can not fail. False: out of memory, and nothing has
// changed (failed is not set).
bool mcap_reserve(struct mcap_bytes *b, size_t n);
// The head of a record whose length is not known yet; mcap_end fills it in. Returns where it begins.
size_t mcap_begin(struct mcap_bytes *b, enum mcap_op op);
void mcap_end(struct mcap_bytes *b, size_t begin, bool pad);
// So many bytes of the record are elsewhere. Of one that is ended and has not failed.
void mcap_add_length(struct mcap_bytes *b, size_t begin, uint64_t n);
// An array or a map: its length in bytes, filled in by mcap_end_list.
size_t mcap_begin_list(struct mcap_bytes *b);
void mcap_end_list(struct mcap_bytes *b, size_t begin);
void mcap_put_pairs(struct mcap_bytes *b, const struct mcap_pair *pairs, int n);

#define MCAP_IDS           65536 // of schemas, of channels
#define MCAP_MESSAGE_FIXED 22    // bytes of a Message before its data

#endif
