// bridge: the bridge is a part of actd, which knows ZeroMQ; this program stays small.
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/actctl/ctl.h"

// The actd that was built with us, not whichever is first in PATH; that one only where there is
// none beside us.
static void find_actd(char *out, size_t size)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    const char *slash;

    snprintf(out, size, "actd");
    if (n <= 0)
        return;
    self[n] = '\0';
    slash = strrchr(self, '/');
    if (slash && (size_t)(slash - self) + sizeof "/actd" <= size)
        snprintf(out, size, "%.*s/actd", (int)(slash - self), self);
    if (access(out, X_OK) != 0)
        snprintf(out, size, "actd");
}

int bridge_main(struct ctl *c)
{
    char actd[PATH_MAX], why[PATH_MAX + 128], verb[] = "bridge";
    char instance[] = "--instance", config[] = "--config", bind[] = "--bind";
    char socket[] = "--socket";
    char *argv[14] = {actd, verb, c->args[0]};
    int n = 3;
    const struct {
        char *option;
        const char *value;
    } given[] = {{instance, c->instance},
                 {config, c->config},
                 {bind, c->bind},
                 {socket, c->socket}};

    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        if (given[i].value) {
            argv[n++] = given[i].option;
            argv[n++] = (char *)(uintptr_t)given[i].value; // execvp does not write to it
        }
    find_actd(actd, sizeof actd);
    fflush(stdout);
    execvp(actd, argv);
    snprintf(why, sizeof why,
             "%s cannot be started: %s; install actd beside actctl, or in PATH", actd,
             strerror(errno));
    return ctl_fail(c, CTL_NO_DAEMON, why);
}
