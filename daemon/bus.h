// bus: the one thread that owns the robot's ZeroMQ sockets. It sleeps in zmq_poll on
// joint states, cameras and the loop's eventfd; drains each socket to its newest message;
// gives joint states to the intake, parks the newest good frame of each camera, encodes
// and sends what the outbox lets out: the newest command, never an old one. Every socket:
// size cap, high-water mark, LINGER 0, handshake 2 s, set before bind/connect; no
// CONFLATE, no multipart. Subscribers cost what publisher.h says, whatever they do. The one
// exception: at stop the command socket gets LINGER 50
// ms, since what it still holds is the end of the ramp to rest, and a driver that is
// there takes that at once. SCHED_FIFO below the loop when granted (class io).
#ifndef ACTD_BUS_H
#define ACTD_BUS_H

#include "daemon/board.h"
#include "daemon/camera.h"
#include "daemon/config.h"

struct bus;

// plain. lock_fd is that of the runtime directory (endpoint_lock) and the bus's to close from now on,
// also when this fails. Checks that no endpoint is in use (a second bind over ipc would steal
// it), binds or connects everything and starts the thread at FIFO `priority` (0 = do not ask). cameras
// (cfg->n_cameras), cfg and board stay the caller's and must outlive the bus. 0 or -errno
// with err filled: names the endpoint and the remedy. Speed limits, max_jump and the
// declared rates are taken from cfg. All messages in, and commands out, are put on board->tape,
// which is looked at here and never again.
int bus_start(struct bus **out, const struct config *cfg, struct board *board,
              struct camera *const *cameras, int priority, int lock_fd,
              struct config_error *err);
// plain. Sends the newest command that is left, joins, closes, removes its ipc files.
// Every bus_publisher must have been closed: it waits for them. NULL is fine.
void bus_stop(struct bus *b);

// A publisher for another thread (status): a socket that takes single messages of up to 64
// KiB and never waits (zmq_send with ZMQ_DONTWAIT); the bus passes the newest on to the
// subscribers of `endpoint`, which are looked after as those of commands are. plain, at
// start-up, on the thread that will call bus_stop; at most 2. NULL + err.
void *bus_publisher(struct bus *b, const char *endpoint, bool bind,
                    struct config_error *err);
void bus_close(void *socket); // plain; NULL is fine

// What the bus has done with commands and why it refused a joint state. Any thread class.
struct bus_counts {
    uint64_t sent;                     // commands given to ZeroMQ
    uint64_t send_failed;              // not encoded, or refused by ZeroMQ
    uint64_t superseded, expired, cut; // never sent, see outbox.h
    uint64_t wall_sets;                // times the local wall clock was set
    uint64_t missed;       // commands times subscribers at their mark; bound sockets only
    uint64_t peers_closed; // who asked for commands: see publisher.h
    int subscribers;       // now; 0 for an endpoint that we connect
    enum codec_verdict joints_refusal; // of the last one refused, CODEC_OK when none was
    char joints_refusal_text[CODEC_WHY_MAX]; // the same as a sentence, "" when none was
};
struct bus_counts bus_counts(const struct bus *b);

#endif
