// sockets: ZeroMQ as this house uses it. One context; every socket gets its caps before
// bind or connect (libzmq ignores most options after it); ipc files get mode 0660 and are
// removed at the end, if they are still ours. All functions are plain, in start-up and
// shutdown only: the umask they change around a bind is the whole process's.
#ifndef ACTD_SOCKETS_H
#define ACTD_SOCKETS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/config.h"

struct sockets;

struct socket_spec {
    int type; // ZMQ_PUB, ZMQ_SUB, ZMQ_STREAM
    const char *endpoint;
    bool bind;
    int high_water;      // messages
    int64_t max_message; // bytes
};

// A context with one I/O thread, at SCHED_FIFO `priority` if that is granted (0 = do not
// ask).
int sockets_new(struct sockets **out, int priority, struct config_error *err);

// Checks the endpoint (endpoint.h) and opens it. *socket is the caller's to zmq_close,
// before sockets_free. 0 or -errno with err filled.
int sockets_open(struct sockets *s, const struct socket_spec *spec, void **socket,
                 struct config_error *err);

// One end of a pair inside this process (inproc://NAME; bind first, then connect). The
// caller's to zmq_close; NULL with errno set.
void *sockets_pair(struct sockets *s, const char *name, bool bind, int high_water,
                   int64_t max_message);

// Ends the context; waits for sockets that are still open. NULL is fine.
void sockets_free(struct sockets *s);

#endif
