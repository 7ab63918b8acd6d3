// publisher: what a PUB socket is for, at a price that the peers cannot raise. libzmq's PUB
// keeps every subscription of every peer in a tree, without end, and adds to it on the thread
// that sends: three connections with 500 000 topics each cost 359 MB and the bus thread, which
// then had no time for commands; XPUB with manual subscriptions keeps the same tree.
//
// So what we bind is a ZMQ_STREAM socket, over which the protocol is spoken by ourselves (zmtp.h):
//   * every subscriber gets every message from the end of its handshake on, whatever it
//     subscribed to; its own library gives its program what its topics match, so a peer with a
//     topic prefix, or with none, sees what it would from any PUB;
//   * what peers say is read past in portions, at most 8 a turn, and nothing is kept of it;
//     one that says more than 16 KiB, and 1 KiB for each second that it is there, is closed;
//   * each has its own high-water mark, at which it misses messages and nobody waits;
//   * PUBLISHER_PEERS at a time; with all taken, the oldest that has not finished its handshake
//     makes room, else the newcomer is closed. A handshake takes 2 s at most.
// Peers need ZMTP 3 (ZeroMQ 4.0, 2013) and reconnect as ever. What we connect instead of bind is
// a plain PUB: who is there is the one that the configuration names.
#ifndef ACTD_PUBLISHER_H
#define ACTD_PUBLISHER_H

#include "daemon/clock.h"
#include "daemon/sockets.h"

#define PUBLISHER_PEERS 64

struct publisher;

// plain. Opens an endpoint; high_water in messages for each peer. 0 or -errno, err filled.
int publisher_open(struct publisher **out, struct sockets *s, const char *endpoint,
                   bool bind, int high_water, struct config_error *err);
// plain. What is still unsent gets linger_ms. NULL is fine.
void publisher_close(struct publisher *p, int linger_ms);

// io, all of them, on one thread at a time.
// To wait on for ZMQ_POLLIN: peers have said something. NULL = need not be waited on.
void *publisher_waits_on(const struct publisher *p);
// Lets peers in and out, and takes what they said.
void publisher_listen(struct publisher *p, ns_t now_ns);
// Gives `size` bytes to every subscriber that is below its mark. 0, or -errno when ZeroMQ
// takes nothing at all. Never waits.
int publisher_send(struct publisher *p, const void *bytes, size_t size, ns_t now_ns);

struct publisher_counts {
    uint64_t missed; // messages times peers at their mark
    uint64_t closed; // peers, by us: no subscribers, too talkative, too many
    int peers, open; // now; open = may be sent messages
};
// Any thread.
struct publisher_counts publisher_counts(const struct publisher *p);

#endif
