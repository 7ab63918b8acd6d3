// watch: stands over the running daemon until it ends. Publishes status once a second, says
// every step of the ladder with its cause, arms once if it was told to, and at the end brings
// the arm to rest. Class plain: looks at the board every 50 ms and makes nobody wait.
#ifndef ACTD_WATCH_H
#define ACTD_WATCH_H

#include <stdbool.h>

#include "daemon/board.h"
#include "daemon/config.h"
#include "daemon/infer.h"
#include "daemon/status.h"

struct blackbox;
struct bus;
struct camera;
struct monitor;
struct recorder;
struct watchdog;
struct swap;

struct watch_source {
    const struct config *cfg;
    const struct guard_limits *limits;
    struct swap
        *swap; // whose policy is asked before arming; it is cancelled when the arm stops
    struct board *board;
    const struct infer *infer;
    struct status *status;
    const struct bus *bus;
    struct camera *const *cameras;
    const struct monitor *monitor; // pings dog; NULL: this does
    struct watchdog *dog;
    _Atomic int64_t *alive_ns; // written at every look, for the monitor
    struct blackbox *blackbox;
    struct recorder *recorder; // told of every fault that stops the arm; NULL = none
    int signals;               // signalfd
    bool arm;                  // once, as soon as READY
    bool home;                 // go to the rest pose once, as soon as READY, then end
    double seconds;            // end after so long, 0 = until a signal
};

// plain. Until a signal, the time limit; then disarms and waits for rest. The exit status: 0,
// or 75 when the arm was not at rest in time.
int watch_run(const struct watch_source *src);

// plain. True when a service manager started this very process, and not merely the desktop or
// the shell it was started from.
bool watch_under_manager(void);

#endif
