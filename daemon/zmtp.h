// zmtp: our half of a conversation with one subscriber, in the protocol that every ZeroMQ
// since 4.0 speaks (ZMTP 3.0, mechanism NULL), over whatever carries bytes. We say who we are,
// the other side says SUB or XSUB, and from then on it is given every message in a frame.
// What it says after that is read past: topics are matched by the subscriber's own library,
// which holds for any PUB, so nothing has to be kept about them here and a peer with a million
// subscriptions costs what one with none does. Only a PING is answered. Pure: no sockets, no
// clock, no allocation; any thread class.
#ifndef ACTD_ZMTP_H
#define ACTD_ZMTP_H

#include <stddef.h>
#include <stdint.h>

#define ZMTP_HELD    288  // bytes: a READY with its metadata is 27 from libzmq
#define ZMTP_FRAME   4096 // bytes: a longer one is nothing that a subscriber has to say
#define ZMTP_HEADER  9    // bytes before a message, at most
#define ZMTP_PING    16   // bytes of a PING that come back in the PONG
#define ZMTP_COMMAND 32   // room for a PONG

enum zmtp_stage {
    ZMTP_GREETING, // 64 bytes to come
    ZMTP_READY,    // its READY is to come
    ZMTP_OPEN,     // may be sent messages
};

// One peer. All zero is a new one.
struct zmtp {
    enum zmtp_stage stage;
    uint8_t held[ZMTP_HELD]; // of the frame that is being read
    size_t n;
    uint64_t skip; // bytes of a frame that nobody wants
    uint64_t said; // bytes, in all
    int pings;     // unanswered; only the newest one's bytes are kept
    uint8_t ping[ZMTP_PING];
    size_t ping_size;
};

// Greeting and READY of a PUB: the first thing to send.
#define ZMTP_HELLO 91
extern const uint8_t zmtp_hello[ZMTP_HELLO];

// Takes n bytes that the peer said. -EPROTO: it is no subscriber, or speaks something else;
// nothing more is to be expected of it.
int zmtp_hear(struct zmtp *z, const uint8_t *bytes, size_t n);

// Header of a message of `size` bytes; returns its length.
size_t zmtp_header(uint8_t out[ZMTP_HEADER], size_t size);

// Writes the answer to the newest PING and forgets it; 0 when there is none.
size_t zmtp_pong(struct zmtp *z, uint8_t out[ZMTP_COMMAND]);

#endif
