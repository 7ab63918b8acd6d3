// http: see the header. The thread, and who may stay how long.
//
// libmicrohttpd's own time-out counts from the last byte, so that a client that drips one byte
// a second stays for ever, and at its connection limit it stops to accept. So ages are kept here,
// and whoever has to go is shut down: libmicrohttpd then finds the connection ended and forgets it.
// A descriptor in the table is open as long as it is there: it enters and leaves in
// libmicrohttpd's notices, which come while the socket exists.
#include "daemon/http.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/http_impl.h"
#include "daemon/rt.h"

#define SPARE   16  // places kept free, for those who come in one round
#define LOOK_MS 200 // ages are looked at this often
#define IDLE_S  10  // libmicrohttpd's own time-out, a second line

static void come(struct http *h, struct MHD_Connection *c, int fd)
{
    for (int i = 0; i < HTTP_CONNECTIONS; i++)
        if (!h->guest[i].connection) {
            h->guest[i] = (struct http_guest){c, fd, clock_now_ns(), false};
            return;
        }
}

static void go(struct http *h, const struct MHD_Connection *c)
{
    for (int i = 0; i < HTTP_CONNECTIONS; i++)
        if (h->guest[i].connection == c)
            h->guest[i].connection = NULL;
}

static void notice(void *cls, struct MHD_Connection *c, void **socket_context,
                   enum MHD_ConnectionNotificationCode code)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);

    (void)socket_context;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED)
        go(cls, c);
    else if (info)
        come(cls, c, info->connect_fd);
}

static void cut(struct http_guest *g)
{
    (void)shutdown(g->fd, SHUT_RDWR); // it may have gone by itself
    g->cut = true;
}

// The oldest of those who may stay, NULL = none; n: how many there are.
static struct http_guest *oldest(struct http *h, int *n)
{
    struct http_guest *found = NULL;

    *n = 0;
    for (int i = 0; i < HTTP_CONNECTIONS; i++) {
        struct http_guest *g = &h->guest[i];

        if (!g->connection || g->cut)
            continue;
        ++*n;
        if (!found || g->since_ns < found->since_ns)
            found = g;
    }
    return found;
}

static void make_room(struct http *h)
{
    ns_t now = clock_now_ns();
    struct http_guest *g;
    int n;

    while ((g = oldest(h, &n)) != NULL &&
           (n > HTTP_CONNECTIONS - SPARE || now - g->since_ns > HTTP_LIFE_NS))
        cut(g);
}

static int patience_ms(struct http *h)
{
    MHD_UNSIGNED_LONG_LONG ms;

    if (MHD_get_timeout(h->mhd, &ms) == MHD_YES && ms < LOOK_MS)
        return (int)ms;
    return LOOK_MS;
}

static void *serve(void *arg)
{
    struct http *h = arg;
    struct pollfd fds[2] = {{.fd = h->epoll_fd, .events = POLLIN},
                            {.fd = h->wake_fd, .events = POLLIN}};

    while (!atomic_load(&h->stop)) {
        (void)poll(fds, 2, patience_ms(h)); // whatever woke it: look
        make_room(h);
        (void)MHD_run(h->mhd);
    }
    return NULL;
}

static int start_mhd(struct http *h)
{
    const union MHD_DaemonInfo *info;

    h->mhd = MHD_start_daemon(
        MHD_USE_EPOLL, 0, NULL, NULL, http_answer, h, MHD_OPTION_LISTEN_SOCKET,
        h->listen_fd, MHD_OPTION_CONNECTION_LIMIT, (unsigned)HTTP_CONNECTIONS,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_REQUEST,
        MHD_OPTION_NOTIFY_CONNECTION, notice, h, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_END);
    if (!h->mhd)
        return -ENOMEM;
    h->listen_fd = -1; // libmicrohttpd's now: it closes it
    info = MHD_get_daemon_info(h->mhd, MHD_DAEMON_INFO_EPOLL_FD);
    if (!info)
        return -ENOSYS;
    h->epoll_fd = info->epoll_fd;
    return 0;
}

static void release(struct http *h)
{
    if (h->mhd)
        MHD_stop_daemon(h->mhd);
    if (h->listen_fd >= 0)
        close(h->listen_fd);
    if (h->wake_fd >= 0)
        close(h->wake_fd);
    free(h);
}

// Everything but the socket.
static int start_rest(struct http *h)
{
    int rc;

    h->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (h->wake_fd < 0)
        return -errno;
    rc = start_mhd(h);
    if (rc)
        return rc;
    return rt_thread_create(&h->thread, "metrics", RT_CLASS_PLAIN, 0, serve, h);
}

int http_start_source(struct http **out, const char *listen,
                      const struct http_source *src, struct config_error *err)
{
    struct http *h = calloc(1, sizeof *h);
    int rc;

    *out = NULL;
    if (!h) {
        snprintf(err->text, sizeof err->text, "metrics.listen: out of memory");
        return -ENOMEM;
    }
    h->src = *src;
    h->wake_fd = -1;
    h->listen_fd = rc = http_listen(listen, &h->port, err);
    if (rc >= 0) {
        rc = start_rest(h);
        if (rc)
            snprintf(
                err->text, sizeof err->text,
                "metrics.listen: the server does not start (%s); take the key out and "
                "use `actctl metrics`",
                strerror(-rc));
    }
    if (rc) {
        release(h);
        return rc;
    }
    *out = h;
    return 0;
}

int http_port(const struct http *h)
{
    return h->port;
}

void http_stop(struct http *h)
{
    const uint64_t one = 1;

    if (!h)
        return;
    atomic_store(&h->stop, true);
    (void)!write(h->wake_fd, &one, sizeof one); // else it looks by itself within LOOK_MS
    (void)pthread_join(h->thread, NULL);
    release(h);
}
