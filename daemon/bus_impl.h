// What the bus is made of: shared by bus.c (its thread) and bus_start.c (plain).
#ifndef ACTD_BUS_IMPL_H
#define ACTD_BUS_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "daemon/bus.h"
#include "daemon/intake.h"
#include "daemon/outbox.h"
#include "daemon/publisher.h"
#include "daemon/sockets.h"
#include "daemon/wall.h"

#define BUS_RELAYS 2

struct stream {
    void *socket;
    struct camera *camera; // NULL = joint states
    bool inside;           // the last part received has another one behind it
    ns_t last_ns;          // receipt of the last message
};

// What another thread publishes: it sends to one end of a pair, the bus passes it on, so that
// somebody listens to the subscribers all the time.
struct relay {
    void *end; // PAIR, ours
    struct publisher *out;
};

struct bus {
    struct board *board;
    struct sockets *sockets;
    struct intake *intake;
    struct outbox outbox;
    struct wall wall;
    _Atomic uint64_t wall_sets;
    int lock_fd;
    struct publisher *commands;
    _Atomic int n_relays; // the bus thread sees so many
    struct relay relay[BUS_RELAYS];
    int n_streams;
    struct stream stream[1 + POLICY_MAX_CAMERAS]; // 0 = joint states
    struct camera *const *camera;                 // (n_streams - 1)
    _Atomic uint64_t sent, send_failed;
    _Atomic bool stop;
    bool running;
    pthread_t thread;
    unsigned char buffer[CODEC_COMMAND_MAX];
};

void *bus_loop(void *bus); // io: the thread

#endif
