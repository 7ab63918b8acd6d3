// control_endpoint: the control socket's name in the file system: who may reach it, what
// may be in its place, and that what is removed at the end is ours. All functions are
// plain.
#ifndef ACTD_CONTROL_ENDPOINT_H
#define ACTD_CONTROL_ENDPOINT_H

#include <stdbool.h>
#include <sys/types.h>

#include "daemon/config.h"

// Those that have nobody in common with the daemon but its socket.
#define CONTROL_GROUP "actd-clients"

// Those who wait to be let in. All of them are, in one turn (control_admit.c), so that whoever
// is among a flood waits 20 ms and not for all that was there before.
#define CONTROL_BACKLOG 512

struct control_endpoint {
    int fd; // listening, non-blocking
    char path[108];
    dev_t device; // of the socket's name
    ino_t inode;
};

// Binds and listens. A socket that somebody answers is not taken, one that is not ours or
// anything that is no socket not removed; the directory must be ours or root's, and not
// writable for others. `everybody`: any user may connect (and is asked who he is); else
// those of CONTROL_GROUP, where this user may give the socket away, and ourselves. 0, or
// -errno with a sentence in err.
int control_endpoint_open(struct control_endpoint *out, const char *path, bool everybody,
                          struct config_error *err);
// Closes, and removes the name if it is still this socket's.
void control_endpoint_close(struct control_endpoint *e);

#endif
