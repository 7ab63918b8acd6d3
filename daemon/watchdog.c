#include "daemon/watchdog.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

// A path, or "@name" of the abstract kind, whose first byte is 0 and which has no end but its
// size. 0 where it is neither, or too long.
static socklen_t address(struct sockaddr_un *a, const char *name)
{
    const size_t n = name ? strlen(name) : 0;

    if (n < 2 || n >= sizeof a->sun_path || (name[0] != '/' && name[0] != '@'))
        return 0;
    *a = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(a->sun_path, name, n);
    if (name[0] == '@')
        a->sun_path[0] = '\0';
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + (name[0] == '/'));
}

void watchdog_init(struct watchdog *w)
{
    uint64_t period_us = 0;

    *w = (struct watchdog){.fd = -1};
    w->to_size = address(&w->to, getenv("NOTIFY_SOCKET"));
    if (w->to_size > 0)
        w->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (sd_watchdog_enabled(0, &period_us) > 0 && period_us < INT64_MAX / 1000)
        w->every_ns = (ns_t)period_us * NS_PER_US / 4;
}

void watchdog_end(struct watchdog *w)
{
    if (w->fd >= 0)
        close(w->fd);
    w->fd = -1;
}

bool watchdog_say(const struct watchdog *w, const char *state)
{
    const size_t n = strlen(state);

    return w->fd >= 0 &&
           sendto(w->fd, state, n, MSG_DONTWAIT | MSG_NOSIGNAL,
                  (const struct sockaddr *)&w->to, w->to_size) == (ssize_t)n;
}

bool watchdog_ping(struct watchdog *w, ns_t now, bool fine)
{
    const bool due = w->pinged_ns == 0 || now - w->pinged_ns >= w->every_ns;

    if (!fine || w->every_ns == 0 || !due || !watchdog_say(w, "WATCHDOG=1"))
        return false;
    w->pinged_ns = now;
    return true;
}
