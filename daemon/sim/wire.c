#include "daemon/sim/wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <zmq.h>

#include "daemon/endpoint.h"

int wire_make_runtime(const char *runtime)
{
    char path[WIRE_PATH_MAX];

    if (snprintf(path, sizeof path, "%s", runtime) >= (int)sizeof path)
        return -ENAMETOOLONG;
    for (char *p = path + 1; *p; p++)
        if (*p == '/') {
            *p = 0;
            if (mkdir(path, 0750) < 0 && errno != EEXIST)
                return -errno;
            *p = '/';
        }
    return mkdir(path, 0750) < 0 && errno != EEXIST ? -errno : 0;
}

static int set_options(void *socket, int hwm)
{
    const int linger_ms = 0, handshake_ms = 2000;
    const int64_t cap = WIRE_COMMAND_MAX;

    if (zmq_setsockopt(socket, ZMQ_LINGER, &linger_ms, sizeof linger_ms) < 0 ||
        zmq_setsockopt(socket, ZMQ_SNDHWM, &hwm, sizeof hwm) < 0 ||
        zmq_setsockopt(socket, ZMQ_RCVHWM, &hwm, sizeof hwm) < 0 ||
        zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &cap, sizeof cap) < 0 ||
        zmq_setsockopt(socket, ZMQ_HANDSHAKE_IVL, &handshake_ms, sizeof handshake_ms) < 0)
        return -1;
    return 0;
}

void *wire_open(void *zmq, int zmq_type, int hwm, enum wire_role role,
                const char *runtime, const char *stream, char *err, size_t err_len)
{
    char endpoint[WIRE_PATH_MAX];
    struct config_error used = {{0}};
    void *socket = zmq_socket(zmq, zmq_type);

    if (snprintf(endpoint, sizeof endpoint, "ipc://%s/%s", runtime, stream) >=
        (int)sizeof endpoint)
        errno = ENAMETOOLONG;
    else if (role == WIRE_BIND && endpoint_check(endpoint, true, &used) == -EADDRINUSE)
        errno = EADDRINUSE; // zmq_bind would take the other one's place without a word
    else if (socket && set_options(socket, hwm) == 0 &&
             (zmq_type != ZMQ_SUB || zmq_setsockopt(socket, ZMQ_SUBSCRIBE, "", 0) == 0) &&
             (role == WIRE_BIND ? zmq_bind(socket, endpoint)
                                : zmq_connect(socket, endpoint)) == 0)
        return socket;
    snprintf(err, err_len, "cannot %s %s (%s): %s with --runtime",
             role == WIRE_BIND ? "bind" : "connect to", endpoint, zmq_strerror(errno),
             errno == EADDRINUSE ? "stop the other simulator or give another directory"
                                 : "give a shorter or writable directory");
    if (socket)
        zmq_close(socket);
    return NULL;
}

void wire_close(void *socket)
{
    if (socket)
        zmq_close(socket);
}

int wire_receive(void *socket, int most, struct plant *p, struct wire_counts *c)
{
    int obeyed = 0;

    for (int i = 0; i < most; i++) {
        zmq_msg_t msg;
        zmq_msg_init(&msg);
        int n = zmq_msg_recv(&msg, socket, ZMQ_DONTWAIT);
        // Only the first part counts, and a message of several parts is not a command.
        if (n >= 0 && !zmq_msg_more(&msg)) {
            if (wire_obey(zmq_msg_data(&msg), zmq_msg_size(&msg), p, c) == 0)
                obeyed++;
        } else if (n >= 0) {
            c->refused++;
        }
        zmq_msg_close(&msg);
        if (n < 0)
            break;
    }
    return obeyed;
}
