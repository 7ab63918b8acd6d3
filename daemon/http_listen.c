// http_listen: from "127.0.0.1:9464" to a socket that listens there.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/http_impl.h"

// Connections that wait to be accepted. In a full queue a scraper would lose a second or more, since
// its kernel asks again only then; a thousand that wait are a thousand times 10 us.
#define BACKLOG 1024

struct address {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } at;
    socklen_t size;
};

static bool parse_port(const char *s, uint16_t *port)
{
    char *end;
    unsigned long n;

    if (*s < '0' || *s > '9')
        return false;
    errno = 0;
    n = strtoul(s, &end, 10);
    *port = (uint16_t)n;
    return *end == '\0' && errno == 0 && n <= UINT16_MAX;
}

// Only addresses that no other machine can reach.
static bool parse(const char *listen, struct address *a)
{
    const char *colon = strrchr(listen, ':');
    char host[INET6_ADDRSTRLEN + 2];
    size_t n = colon ? (size_t)(colon - listen) : sizeof host;
    uint16_t port;

    memset(a, 0, sizeof *a);
    if (n >= sizeof host || !parse_port(colon + 1, &port))
        return false;
    memcpy(host, listen, n);
    host[n] = '\0';
    if (strcmp(host, "[::1]") == 0) {
        a->at.v6.sin6_family = AF_INET6;
        a->at.v6.sin6_addr = in6addr_loopback;
        a->at.v6.sin6_port = htons(port);
        a->size = sizeof a->at.v6;
        return true;
    }
    a->at.v4.sin_family = AF_INET;
    a->at.v4.sin_port = htons(port);
    a->size = sizeof a->at.v4;
    return inet_pton(AF_INET, host, &a->at.v4.sin_addr) == 1 &&
           ntohl(a->at.v4.sin_addr.s_addr) >> 24 == 127;
}

#define NO_TCP                                                                     \
    "TCP is not allowed here; as a service install tcp.conf "                      \
    "(/usr/share/doc/actd/examples) with systemctl edit or as a drop-in, or take " \
    "metrics.listen out and use `actctl metrics`"

static const char *remedy(int rc, const struct address *a)
{
    // The port lies at the same place in both.
    unsigned port = ntohs(a->at.v4.sin_port);

    switch (rc) {
    case -EADDRINUSE:
        return "another program listens there; `ss -tlnp` shows which; choose another port";
    case -EACCES:
        if (port > 0 && port < IPPORT_RESERVED)
            return "ports below 1024 are root's; choose a higher one";
        return NO_TCP;
    case -EAFNOSUPPORT: // the sandbox's RestrictAddressFamilies=, or a machine without IPv6
    case -EPERM:
        return NO_TCP;
    case -EADDRNOTAVAIL:
        return "this machine has no such address; use 127.0.0.1";
    default:
        return "choose another address";
    }
}

static int open_socket(const struct address *a, int *port)
{
    struct address got = {.size = sizeof got.at};
    const int on = 1;
    int rc,
        fd = socket(a->at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -errno;
    // Connections of the one before us that are still fading away are no reason to fail; a
    // listener that lives is, REUSEADDR or not.
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(fd, &a->at.any, a->size) != 0 || listen(fd, BACKLOG) != 0 ||
        getsockname(fd, &got.at.any, &got.size) != 0) {
        rc = -errno;
        close(fd);
        return rc;
    }
    *port = ntohs(got.at.any.sa_family == AF_INET6 ? got.at.v6.sin6_port
                                                   : got.at.v4.sin_port);
    return fd;
}

int http_listen(const char *listen, int *port, struct config_error *err)
{
    struct address a;
    int fd;

    if (!parse(listen, &a)) {
        snprintf(err->text, sizeof err->text,
                 "metrics.listen: '%s' is not a loopback address with a port; write "
                 "127.0.0.1:9464 or \"[::1]:9464\"",
                 listen);
        return -EINVAL;
    }
    fd = open_socket(&a, port);
    if (fd < 0)
        snprintf(err->text, sizeof err->text,
                 "metrics.listen: %s can not be listened on (%s): %s", listen,
                 strerror(-fd), remedy(fd, &a));
    return fd;
}
