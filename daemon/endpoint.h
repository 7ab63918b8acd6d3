// endpoint: who may use an address, decided before libzmq sees it. libzmq 4.3.4 itself
// binds over a living ipc socket (its owner then hears nothing more, silently) and over a
// regular file (which it deletes). All functions are plain and return 0 or -errno with
// err filled: a sentence that names the path and the remedy.
#ifndef ACTD_ENDPOINT_H
#define ACTD_ENDPOINT_H

#include <stdbool.h>

#include "daemon/config.h"

// Creates the runtime directory where it is missing (0750), refuses one that is another
// user's or writable for everybody, and takes its lock file: one daemon per directory.
// *lock_fd is the caller's to close, which gives the lock back; the file stays, since
// removing a lock file lets two owners in. -EBUSY when another process has it.
int endpoint_lock(const char *runtime, int *lock_fd, struct config_error *err);

// Checks ipc://PATH (absolute, fits a socket address) or tcp://127.x.x.x:PORT. With bind,
// an ipc path must be free, or a socket that nobody answers, which is removed; anything
// else there is left as it is. -EINVAL, -EADDRINUSE, -EEXIST and others.
int endpoint_check(const char *endpoint, bool bind, struct config_error *err);

// The path of an ipc endpoint, or NULL for another kind.
const char *endpoint_path(const char *endpoint);

// Fills err and returns -code.
int endpoint_refuse(struct config_error *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
