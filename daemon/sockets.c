#include "daemon/sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include "daemon/endpoint.h"

#define HANDSHAKE_MS \
    2000 // libzmq's own is 30 s: so long may a silent peer hold a connection
#define PIECES_MARK 4
#define BOUND_MAX   (POLICY_MAX_CAMERAS + 8)

#define OPEN_FILES  65536
#define DESCRIPTORS 24 // of the context's threads and a socket or two, with room to spare

struct bound {
    char path[CONFIG_PATH];
    dev_t device;
    ino_t inode;
};

struct sockets {
    void *context;
    int n_bound;
    struct bound bound[BOUND_MAX];
};

// libzmq aborts the process when its I/O thread may not have the class it was told to
// take, so this thread tries it on first.
static bool fifo_granted(int priority)
{
    struct sched_param old, want = {.sched_priority = priority};
    int policy;

    if (pthread_getschedparam(pthread_self(), &policy, &old) != 0 ||
        pthread_setschedparam(pthread_self(), SCHED_FIFO, &want) != 0)
        return false;
    return pthread_setschedparam(pthread_self(), policy, &old) == 0;
}

// libzmq 4.3.4 also aborts the process when accept() on an ipc socket finds no descriptor left:
// with the usual soft limit of 1024 a client that reconnects and never closes gets there.
static void raise_descriptors(void)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_cur >= OPEN_FILES)
        return;
    r.rlim_cur = r.rlim_max < OPEN_FILES ? r.rlim_max : OPEN_FILES;
    (void)setrlimit(RLIMIT_NOFILE, &r); // the limit as it was may do as well
}

// libzmq aborts the process when one of its threads gets no descriptor.
static bool descriptors_left(void)
{
    int fd[DESCRIPTORS], n = 0;

    while (n < DESCRIPTORS && (fd[n] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        n++;
    for (int i = 0; i < n; i++)
        close(fd[i]);
    return n == DESCRIPTORS;
}

int sockets_new(struct sockets **out, int priority, struct config_error *err)
{
    struct sockets *s = calloc(1, sizeof *s);

    *out = NULL;
    if (!s)
        return endpoint_refuse(err, ENOMEM, "no memory for the sockets: free some");
    raise_descriptors();
    s->context = descriptors_left() ? zmq_ctx_new() : NULL;
    if (!s->context) {
        free(s);
        return endpoint_refuse(err, EMFILE,
                               "ZeroMQ cannot start: raise the limit of open "
                               "files (ulimit -n)");
    }
    zmq_ctx_set(s->context, ZMQ_IO_THREADS, 1);
    zmq_ctx_set(s->context, ZMQ_BLOCKY, 0);
    if (priority > 0 && fifo_granted(priority)) {
        zmq_ctx_set(s->context, ZMQ_THREAD_SCHED_POLICY, SCHED_FIFO);
        zmq_ctx_set(s->context, ZMQ_THREAD_PRIORITY, priority);
    }
    *out = s;
    return 0;
}

static int set(void *socket, int option, int value)
{
    return zmq_setsockopt(socket, option, &value, sizeof value);
}

static int set_options(void *socket, const struct socket_spec *spec)
{
    // What a stream's peers say comes in pieces of 8 KiB.
    int in = spec->type == ZMQ_STREAM ? PIECES_MARK : spec->high_water;

    if (zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &spec->max_message,
                       sizeof spec->max_message) != 0 ||
        set(socket, ZMQ_RCVHWM, in) != 0 ||
        set(socket, ZMQ_SNDHWM, spec->high_water) != 0 ||
        set(socket, ZMQ_LINGER, 0) != 0 || set(socket, ZMQ_IMMEDIATE, 1) != 0 ||
        set(socket, ZMQ_HANDSHAKE_IVL, HANDSHAKE_MS) != 0)
        return -errno;
    if (spec->type == ZMQ_SUB && zmq_setsockopt(socket, ZMQ_SUBSCRIBE, "", 0) != 0)
        return -errno;
    return 0;
}

// Remembers which file it made, so that the end removes that one and no other's.
static void remember(struct sockets *s, const char *endpoint)
{
    const char *path = endpoint_path(endpoint);
    struct stat st;
    struct bound *b;

    if (!path || s->n_bound == BOUND_MAX || lstat(path, &st) != 0)
        return;
    b = &s->bound[s->n_bound++];
    memcpy(b->path, path, strlen(path) + 1); // fits: endpoint_check allows 107 characters
    b->device = st.st_dev;
    b->inode = st.st_ino;
}

static int attach(struct sockets *s, void *socket, const struct socket_spec *spec)
{
    mode_t before;
    int r;

    if (!spec->bind)
        return zmq_connect(socket, spec->endpoint) == 0 ? 0 : -errno;
    before = umask(0117);
    r = zmq_bind(socket, spec->endpoint) == 0 ? 0 : -errno;
    umask(before);
    if (r == 0)
        remember(s, spec->endpoint);
    return r;
}

int sockets_open(struct sockets *s, const struct socket_spec *spec, void **socket,
                 struct config_error *err)
{
    int r = endpoint_check(spec->endpoint, spec->bind, err);

    *socket = NULL;
    if (r != 0)
        return r;
    *socket = zmq_socket(s->context, spec->type);
    r = *socket ? set_options(*socket, spec) : -errno;
    if (r == 0)
        r = attach(s, *socket, spec);
    if (r == 0)
        return 0;
    if (*socket)
        zmq_close(*socket);
    *socket = NULL;
    return endpoint_refuse(err, -r,
                           "endpoint %s cannot be %s: %s; check the address and that "
                           "its directory exists",
                           spec->endpoint, spec->bind ? "bound" : "connected to",
                           zmq_strerror(-r));
}

void *sockets_pair(struct sockets *s, const char *name, bool bind, int high_water,
                   int64_t max_message)
{
    const struct socket_spec spec = {ZMQ_PAIR, name, bind, high_water, max_message};
    void *socket = zmq_socket(s->context, ZMQ_PAIR);
    int r;

    if (!socket)
        return NULL;
    r = set_options(socket, &spec);
    if (r == 0 && (bind ? zmq_bind(socket, name) : zmq_connect(socket, name)) == 0)
        return socket;
    r = r ? -r : errno;
    zmq_close(socket);
    errno = r;
    return NULL;
}

void sockets_free(struct sockets *s)
{
    if (!s)
        return;
    while (zmq_ctx_term(s->context) != 0 && errno == EINTR)
        ;
    // libzmq removes its files itself; after a failed close one may be left.
    for (int i = 0; i < s->n_bound; i++) {
        const struct bound *b = &s->bound[i];
        struct stat st;

        if (lstat(b->path, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_dev == b->device &&
            st.st_ino == b->inode)
            unlink(b->path);
    }
    free(s);
}
