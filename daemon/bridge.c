#include "daemon/bridge.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sysexits.h>
#include <unistd.h>
#include <zmq.h>

#include "daemon/clock.h"
#include "daemon/process.h"
#include "daemon/sockets.h"

#define HIGH_WATER  1000    // messages, on either side: a second of commands at 1 kHz
#define MAX_MESSAGE 1048576 // bytes
#define TELL_NS     (10 * NS_PER_S)

enum topic { COMMAND, JOINTS, STATUS, TOPICS };
static const char *const topic_name[TOPICS] = {"/command", "/joint_states", "/status"};

static const char help[] =
    "usage: actd bridge plotjuggler [-c robot.yaml | -i NAME] [--bind ENDPOINT]\n"
    "\n"
    "Subscribes to what a running actd publishes and publishes it once more for PlotJuggler's\n"
    "ZMQ subscriber, [topic][protobuf][seconds since 1970], until Ctrl-C. It is a process of\n"
    "its own, and the daemon does not wait for it.\n"
    "\n"
    "  /command       actd.v1.JointCommand   every command\n"
    "  /status        actd.v1.Status         20 times a second where the control socket is for\n"
    "                                        this user, with the measured joints; else once\n"
    "  /joint_states  foxglove.JointStates   where the driver's socket is one to connect to\n"
    "                                        (joint_state.bind: false)\n"
    "\n"
    "In PlotJuggler: Streaming, ZMQ Subscriber, connect to tcp://127.0.0.1 port 9872, protocol\n"
    "protobuf; add the directory of the .proto files (share/actd/proto), load\n"
    "actd/v1/joint_command.proto and actd/v1/status.proto, and map each topic to its type.\n"
    "plotjuggler-layout.xml (share/doc/actd/examples) has the curves.\n"
    "\n"
    "  -c, --config FILE     the robot's configuration, for endpoints of its own\n"
    "  -i, --instance NAME   or the daemon's name, where those are the defaults (default)\n"
    "      --socket PATH     its control socket, where it is elsewhere\n"
    "      --bind ENDPOINT   where PlotJuggler connects, loopback or ipc:// only (default\n"
    "                        tcp://127.0.0.1:9872)\n"
    "  -h, --help            this text\n"
    "\n"
    "exit status: 0 ended on request, 64 usage, 69 no daemon or the port is taken, 71 the system\n"
    "refused something, 78 the configuration was refused\n";

struct bridge {
    struct bridge_from from;
    const char *bind;
    struct sockets *sockets;
    void *in[TOPICS], *out;
    struct bridge_ask ask;
    int signals;
    uint64_t sent[TOPICS], bytes, missed;
    ns_t ask_ns, tell_ns;
    bool asks; // the status is asked for: what is published of it is not sent on
    struct config_error err;
};

// ---- messages --------------------------------------------------------------------------------

void bridge_seconds(int64_t wall_ns, char out[32])
{
    snprintf(out, 32, "%" PRId64 ".%09" PRId64, wall_ns / NS_PER_S, wall_ns % NS_PER_S);
}

// Time as the sender gave it, so that curves of different topics lie right to each other.
static void send_on(struct bridge *b, enum topic t, const void *data, size_t size)
{
    const char *name = topic_name[t];
    char seconds[32];
    int64_t wall;

    if (!bridge_stamp(data, size, &wall))
        wall = clock_wall_ns();
    bridge_seconds(wall, seconds);
    // A PUB without subscribers, or with slow ones, drops; it takes all parts or none.
    if (zmq_send(b->out, name, strlen(name), ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0 ||
        zmq_send(b->out, data, size, ZMQ_SNDMORE) < 0 ||
        zmq_send(b->out, seconds, strlen(seconds), 0) < 0) {
        b->missed++;
        return;
    }
    b->sent[t]++;
    b->bytes += size;
}

static void take(struct bridge *b, enum topic t)
{
    zmq_msg_t m;

    if (!b->in[t])
        return;
    zmq_msg_init(&m);
    for (int i = 0; i < HIGH_WATER && zmq_msg_recv(&m, b->in[t], ZMQ_DONTWAIT) >= 0; i++)
        if (!zmq_msg_more(&m) && !(t == STATUS && b->asks))
            send_on(b, t, zmq_msg_data(&m), zmq_msg_size(&m));
    zmq_msg_close(&m);
}

static void take_answer(struct bridge *b)
{
    size_t size = 0;
    const void *status = bridge_answer(&b->ask, &size);

    if (!status)
        return;
    b->asks = true;
    send_on(b, STATUS, status, size);
}

// ---- what it says ----------------------------------------------------------------------------

static void tell(const struct bridge *b, const char *when)
{
    printf("%s", when);
    for (int t = 0; t < TOPICS; t++)
        if (b->sent[t] || b->in[t])
            printf("  %s %" PRIu64, topic_name[t], b->sent[t]);
    printf("  (%.1f MB)\n", (double)b->bytes / 1e6);
    fflush(stdout);
}

static void introduce(const struct bridge *b)
{
    const char *const from[TOPICS] = {b->from.command, b->from.joints, b->from.status};

    printf("publishing for PlotJuggler on %s: [topic][protobuf][seconds]\n", b->bind);
    for (int t = 0; t < TOPICS; t++)
        if (*from[t])
            printf("  %-14s from %s\n", topic_name[t], from[t]);
    if (!*b->from.joints)
        printf(
            "  joint states have one receiver, actd: what it measured is in /status, %d "
            "times a second\n",
            BRIDGE_STATUS_HZ);
    printf("Ctrl-C ends it.\n");
    fflush(stdout);
}

// ---- loop ------------------------------------------------------------------------------------

static bool ended(struct bridge *b)
{
    struct signalfd_siginfo info;

    return read(b->signals, &info, sizeof info) == sizeof info &&
           info.ssi_signo != SIGHUP;
}

static void turn(struct bridge *b)
{
    zmq_pollitem_t item[TOPICS + 2];
    ns_t now = clock_now_ns();
    int n = 0;

    if (now >= b->ask_ns) {
        bridge_ask(&b->ask, b->from.control);
        b->ask_ns = now + NS_PER_S / (b->ask.fd >= 0 ? BRIDGE_STATUS_HZ : 1);
        b->asks = b->asks && b->ask.fd >= 0;
    }
    item[n++] = (zmq_pollitem_t){.fd = b->signals, .events = ZMQ_POLLIN};
    if (b->ask.fd >= 0)
        item[n++] = (zmq_pollitem_t){.fd = b->ask.fd, .events = ZMQ_POLLIN};
    for (int t = 0; t < TOPICS; t++)
        if (b->in[t])
            item[n++] = (zmq_pollitem_t){.socket = b->in[t], .events = ZMQ_POLLIN};
    zmq_poll(item, n, (long)((b->ask_ns - now) / NS_PER_MS) + 1);
    take_answer(b);
    for (int t = 0; t < TOPICS; t++)
        take(b, (enum topic)t);
    if (now >= b->tell_ns) {
        if (b->tell_ns > 0)
            tell(b, "so far");
        b->tell_ns = now + TELL_NS;
    }
}

// ---- begin and end ---------------------------------------------------------------------------

static int open_all(struct bridge *b)
{
    const char *const from[TOPICS] = {b->from.command, b->from.joints, b->from.status};
    struct socket_spec out = {.type = ZMQ_PUB,
                              .endpoint = b->bind,
                              .bind = true,
                              .high_water = HIGH_WATER,
                              .max_message = MAX_MESSAGE};
    int rc = sockets_new(&b->sockets, 0, &b->err);

    if (rc == 0)
        rc = sockets_open(b->sockets, &out, &b->out, &b->err);
    for (int t = 0; t < TOPICS && rc == 0; t++) {
        struct socket_spec in = {.type = ZMQ_SUB,
                                 .endpoint = from[t],
                                 .high_water = HIGH_WATER,
                                 .max_message = MAX_MESSAGE};
        if (*from[t])
            rc = sockets_open(b->sockets, &in, &b->in[t], &b->err);
    }
    return rc;
}

static void close_all(struct bridge *b)
{
    for (int t = 0; t < TOPICS; t++)
        if (b->in[t])
            zmq_close(b->in[t]);
    if (b->out)
        zmq_close(b->out);
    sockets_free(b->sockets);
    if (b->ask.fd >= 0)
        close(b->ask.fd);
    if (b->signals >= 0)
        close(b->signals);
}

static int carry(struct bridge *b)
{
    int rc = process_begin(&b->signals);

    if (rc) {
        fprintf(stderr, "actd bridge: cannot take signals: %s\n", strerror(-rc));
        return EX_OSERR;
    }
    rc = open_all(b);
    if (rc) {
        fprintf(stderr, "actd bridge: %s\n", b->err.text);
        return EX_UNAVAILABLE;
    }
    introduce(b);
    while (!ended(b))
        turn(b);
    tell(b, "sent on");
    return 0;
}

// ---- command line ----------------------------------------------------------------------------

struct options {
    const char *config, *instance, *socket, *bind;
};

// -1 = go on; else the exit status.
static int parse(struct options *o, int argc, char **argv)
{
    static const struct option longs[] = {
        {"config", 1, NULL, 'c'}, {"instance", 1, NULL, 'i'}, {"bind", 1, NULL, 'b'},
        {"socket", 1, NULL, 's'}, {"help", 0, NULL, 'h'},     {0}};

    for (int c; (c = getopt_long(argc, argv, "c:i:h", longs, NULL)) != -1;)
        if (c == 'h') {
            fputs(help, stdout);
            return 0;
        } else if (c == 'c') {
            o->config = optarg;
        } else if (c == 'i') {
            o->instance = optarg;
        } else if (c == 'b') {
            o->bind = optarg;
        } else if (c == 's') {
            o->socket = optarg;
        } else {
            return EX_USAGE;
        }
    if (optind + 1 == argc && strcmp(argv[optind], "plotjuggler") == 0 &&
        !(o->config && o->instance))
        return -1;
    fputs(help, stderr);
    return EX_USAGE;
}

int bridge_main(int argc, char **argv)
{
    struct options o = {.bind = BRIDGE_BIND};
    int status = parse(&o, argc, argv);
    struct bridge *b = status < 0 ? calloc(1, sizeof *b) : NULL;

    if (status >= 0)
        return status;
    if (!b)
        return EX_OSERR;
    b->bind = o.bind;
    b->ask.fd = b->signals = -1;
    int rc = bridge_find(&b->from, o.config, o.instance, &b->err);
    if (rc) {
        fprintf(stderr, "actd bridge: %s\n", b->err.text);
        status = o.config ? EX_CONFIG : EX_UNAVAILABLE;
    } else {
        if (o.socket)
            snprintf(b->from.control, sizeof b->from.control, "%s", o.socket);
        status = carry(b);
    }
    close_all(b);
    free(b);
    return status;
}
