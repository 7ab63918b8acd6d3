// What the senders of joint states and of frames share. Nobody else includes this.
#ifndef ACTD_FAULT_SENDER_IMPL_H
#define ACTD_FAULT_SENDER_IMPL_H

#include "google/protobuf/timestamp.pb-c.h"
#include "tests/fault/world_impl.h"

extern uint8_t sender_buffer[WORLD_BYTES]; // of the message that is being made

ns_t sender_ms(double v);
void sender_set_stamp(Google__Protobuf__Timestamp *t, int64_t wall_ns);
// The sender's wall clock.
int64_t sender_stamp(const struct world *w, const struct sender *s);
// n random bytes in the buffer; n.
size_t sender_random(struct world *w, size_t n);
// What concerns any stream: false when nothing of this message is sent.
bool sender_comes(struct world *w, struct sender *s, const struct injection *one);
// A pair of messages arrives the wrong way round.
void sender_reordered(struct world *w, int to, struct sender *s, ns_t at, size_t n);

#endif
