// watchdog: what the service manager is told, and when it is told nothing. systemd ends a process
// with WatchdogSec=1 that has not said WATCHDOG=1 for a second; it says so only while the loop
// ticks, as the monitor sees it, which is also who says it (monitor_ping): its thread is real-time,
// so that a machine full of work does not look like a daemon that hangs; and while the thread that
// watches, logs and answers has come by within the last seconds.
//
// An inference that hangs is not a reason to be silent. By then the arm is coming to rest (no
// chunk: HOLD, then STOPPING), the loop holds it there and status says why: more than a killed
// process could do. So the inference's age (board->inferring_since_ns) is the ladder's business
// alone.
//
// Nothing here blocks, unlike sd_notify, which waits while the manager's queue is full: a message
// that can not be sent at once is not sent, and the next call tries again. Begin and end are plain,
// to say and to ping is io.
#ifndef ACTD_WATCHDOG_H
#define ACTD_WATCHDOG_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "daemon/clock.h"

struct watchdog {
    int fd; // -1: nobody to tell
    struct sockaddr_un to;
    socklen_t to_size;
    ns_t every_ns;  // between pings, 0 = no watchdog
    ns_t pinged_ns; // 0 = never
};

// From NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID. Without them, or where they make no sense,
// the other functions do nothing.
void watchdog_init(struct watchdog *w);
void watchdog_end(struct watchdog *w);

// To be called at least every 50 ms, by one thread. Pings when `fine` and a quarter of the
// period has passed since the last ping: with WatchdogSec=1 every 300 ms at the latest. True when
// it did.
bool watchdog_ping(struct watchdog *w, ns_t now, bool fine);

// Says "READY=1", "STOPPING=1", …; true when it could.
bool watchdog_say(const struct watchdog *w, const char *state);

#endif
