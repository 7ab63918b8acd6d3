// The streams: one cursor per topic, one socket per stream of the configuration. The next message
// is the oldest that any cursor has, and it leaves at its time: waiting is until an absolute
// moment, so that no delay adds up.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "daemon/codec.h"
#include "daemon/record_codec.h"
#include "daemon/replay_publish_impl.h"
#include "daemon/sockets.h"

#define GAP_NS      (10 * NS_PER_S) // without a message: it is said
#define FAR_NS      1e17            // three years: a log with times that lie
#define TOPICS      (3 + 4 * POLICY_MAX_CAMERAS)
#define HIGH_WATER  1000
#define NAP_NS      (50 * NS_PER_MS) // between looks at whether it shall end
#define LOOP_GAP_NS (50 * NS_PER_MS) // from the last message to the first again

struct topic {
    char name[CONFIG_NAME + 24];
    int stream; // 0 = joint states
    bool parts; // of messages of several
    struct logbook_cursor *cursor;
    struct mcap_message m;
    bool there;
};

struct publisher {
    struct logbook *book;
    const struct publish_options *opt;
    struct publish_result *result;
    struct sockets *sockets;
    void *socket[1 + POLICY_MAX_CAMERAS];
    bool heard[1 + POLICY_MAX_CAMERAS]; // somebody listens
    bool
        inside[1 +
               POLICY_MAX_CAMERAS]; // a message of several parts, of which more must come
    int streams, topics;
    struct topic topic[TOPICS];
    ns_t start_ns;         // when the first message of this turn is due
    int64_t wall_ns;       // the wall clock then
    uint64_t first_log_ns; // of the log
    ns_t last_due_ns;
    void *stamped;
    size_t capacity;
};

static bool ended(const struct publisher *p)
{
    return p->opt->ended && *p->opt->ended;
}

// ---- topics ----------------------------------------------------------------------------------

static void advance(struct publisher *p, struct topic *t)
{
    struct mcap_error err;
    int rc = logbook_next(t->cursor, &t->m, &err);
    for (int tries = 0; rc < 0 && tries < 100000; tries++) { // damage is passed over
        p->result->damaged++;
        rc = logbook_next(t->cursor, &t->m, &err);
    }
    t->there = rc == 1;
}

static int open_topic(struct publisher *p, struct topic *t)
{
    int rc = logbook_cursor_new(&t->cursor, p->book, t->name, 0, 0);
    t->there = false;
    if (rc == 0)
        advance(p, t);
    return rc == -ENOENT ? 0 : rc;
}

static void close_topics(struct publisher *p)
{
    for (int i = 0; i < p->topics; i++) {
        logbook_cursor_free(p->topic[i].cursor);
        p->topic[i].cursor = NULL;
        p->topic[i].there = false;
    }
}

static int open_topics(struct publisher *p)
{
    int rc = 0;
    for (int i = 0; i < p->topics && rc == 0; i++)
        rc = open_topic(p, &p->topic[i]);
    return rc;
}

static struct topic *name_topic(struct publisher *p, int stream, const char *before,
                                const char *name, const char *after)
{
    struct topic *t = &p->topic[p->topics++];
    t->stream = stream;
    snprintf(t->name, sizeof t->name, "%s%.*s%s", before, CONFIG_NAME - 1, name, after);
    return t;
}

// Messages that no daemon could decode were sent as well, and those of several parts.
static void name_topics(struct publisher *p, const struct config *cfg)
{
    name_topic(p, 0, "/joint_states", "", "");
    name_topic(p, 0, "/undecodable/", "joint_states", "");
    name_topic(p, 0, "/parts/", "joint_states", "")->parts = true;
    for (int i = 0; i < cfg->n_cameras; i++) {
        name_topic(p, i + 1, "/camera/", cfg->camera[i].name, "");
        name_topic(p, i + 1, "/camera/", cfg->camera[i].name, "/raw");
        name_topic(p, i + 1, "/undecodable/", cfg->camera[i].name, "");
        name_topic(p, i + 1, "/parts/", cfg->camera[i].name, "")->parts = true;
    }
}

static struct topic *oldest(struct publisher *p)
{
    struct topic *best = NULL;
    for (int i = 0; i < p->topics; i++)
        if (p->topic[i].there && (!best || p->topic[i].m.log_ns < best->m.log_ns))
            best = &p->topic[i];
    return best;
}

// ---- sockets ---------------------------------------------------------------------------------

// XPUB: it hears who subscribes, so that the first message is not sent to nobody. The daemon binds
// where its configuration says `bind`; then the sender connects, as a driver does.
static int open_sockets(struct publisher *p, const struct config *cfg,
                        struct config_error *err)
{
    int rc = sockets_new(&p->sockets, 0, err);
    p->streams = 1 + cfg->n_cameras;
    for (int i = 0; i < p->streams && rc == 0; i++) {
        const struct socket_spec spec = {
            .type = ZMQ_XPUB,
            .endpoint = i == 0 ? cfg->joint_state.endpoint : cfg->camera[i - 1].endpoint,
            .bind = i == 0 ? !cfg->joint_state.bind : !cfg->camera[i - 1].bind,
            .high_water = HIGH_WATER,
            .max_message = CODEC_FRAME_MAX,
        };
        rc = sockets_open(p->sockets, &spec, &p->socket[i], err);
    }
    return rc;
}

static void close_sockets(struct publisher *p)
{
    for (int i = 0; i < p->streams; i++)
        if (p->socket[i])
            zmq_close(p->socket[i]);
    sockets_free(p->sockets);
}

static void listen_to(struct publisher *p, int i)
{
    uint8_t word[64];
    int n;
    while ((n = zmq_recv(p->socket[i], word, sizeof word, ZMQ_DONTWAIT)) >= 0)
        if (n > 0)
            p->heard[i] = word[0] == 1;
}

static void await_listeners(struct publisher *p)
{
    ns_t until = clock_now_ns() + (ns_t)(p->opt->wait_s * 1e9);
    for (;;) {
        p->result->listening = 0;
        for (int i = 0; i < p->streams; i++) {
            listen_to(p, i);
            p->result->listening += p->heard[i];
        }
        if (p->result->listening == p->streams || clock_now_ns() >= until || ended(p))
            return;
        clock_sleep_until(clock_now_ns() + 5 * NS_PER_MS);
    }
}

// ---- sending ---------------------------------------------------------------------------------

// Between the files of two faults may lie hours.
static bool sleep_until(const struct publisher *p, ns_t due)
{
    bool said = false;

    for (;;) {
        ns_t now = clock_now_ns();
        if (ended(p))
            return false;
        if (now >= due)
            return true;
        if (!said && due - now > GAP_NS)
            fprintf(stderr,
                    "replay publish: nothing was recorded in the next %.0f s: waiting\n",
                    (double)(due - now) * 1e-9);
        said = true;
        clock_sleep_until(due - now > NAP_NS ? now + NAP_NS : due);
    }
}

// The last part of a message is not in the log: ends it, so that nothing else becomes its end.
static void end_message(struct publisher *p, int stream)
{
    if (p->inside[stream])
        (void)zmq_send(p->socket[stream], "", 0, ZMQ_DONTWAIT);
    p->inside[stream] = false;
}

// What is sent, and that it is a part. False: the parts before it are not in the log, and alone
// it would be another message.
static bool unpack(struct publisher *p, const struct topic *t, struct codec_part *part)
{
    *part = (struct codec_part){t->m.data, t->m.size, true, false};
    if (t->parts && record_part_read(part, t->m.data, t->m.size) != 0)
        return false;
    if (part->first)
        end_message(p, t->stream);
    return part->first || p->inside[t->stream];
}

static int send_message(struct publisher *p, struct topic *t, ns_t due)
{
    struct codec_part part;
    if (!unpack(p, t, &part))
        return 0;
    const void *data = part.data;
    size_t size = part.size;
    // Its age on receipt stays what it was.
    int64_t shift = (int64_t)((uint64_t)(p->wall_ns + (due - p->start_ns)) - t->m.log_ns);
    if (!p->opt->keep_stamps && !t->parts) {
        size = publish_restamp(data, size, shift, &p->stamped, &p->capacity);
        data = p->stamped;
        if (size == 0 && t->m.size > 0)
            return -ENOMEM;
    }
    listen_to(p, t->stream);
    if (!sleep_until(p, due))
        return -EINTR;
    ns_t late = clock_now_ns() - due;
    if (zmq_send(p->socket[t->stream], data, size,
                 part.more ? ZMQ_DONTWAIT | ZMQ_SNDMORE : ZMQ_DONTWAIT) < 0)
        p->result->refused++;
    p->inside[t->stream] = part.more;
    hist_add(&p->result->lateness, late > 0 ? late : 0);
    p->result->late += late > PUBLISH_LATE_NS;
    p->result->bytes += size;
    *(t->stream == 0 ? &p->result->joints : &p->result->frames) += 1;
    return 0;
}

static int send_all(struct publisher *p)
{
    struct topic *t;
    int rc = 0;
    while (rc == 0 && (t = oldest(p)) != NULL) {
        double after = (double)(t->m.log_ns - p->first_log_ns) / p->opt->speed;
        p->last_due_ns = p->start_ns + (ns_t)(after < FAR_NS ? after : FAR_NS);
        rc = send_message(p, t, p->last_due_ns);
        advance(p, t);
    }
    for (int i = 0; i < p->streams; i++)
        end_message(p, i);
    return rc;
}

static int one_turn(struct publisher *p, struct config_error *err)
{
    int rc = open_topics(p);
    struct topic *first = rc ? NULL : oldest(p);
    if (rc == 0 && !first) {
        snprintf(
            err->text, sizeof err->text,
            "%.400s: neither joint states nor frames of these cameras are in it: is it a "
            "recording of this robot?",
            logbook_path(p->book, 0));
        rc = -ENODATA;
    } else if (rc == 0) {
        p->first_log_ns = first->m.log_ns;
        rc = send_all(p);
    } else {
        snprintf(err->text, sizeof err->text, "%.400s: %s", logbook_path(p->book, 0),
                 strerror(-rc));
    }
    close_topics(p);
    return rc;
}

int publish_run(struct logbook *book, const struct config *cfg,
                const struct publish_options *opt, struct publish_result *out,
                struct config_error *err)
{
    struct publisher *p = calloc(1, sizeof *p);
    memset(out, 0, sizeof *out);
    if (!p) {
        snprintf(err->text, sizeof err->text, "out of memory");
        return -ENOMEM;
    }
    *p = (struct publisher){.book = book, .opt = opt, .result = out};
    name_topics(p, cfg);
    int rc = open_sockets(p, cfg, err);
    out->streams = p->streams;
    if (rc == 0)
        await_listeners(p);
    p->start_ns = clock_now_ns();
    p->wall_ns = clock_wall_ns();
    while (rc == 0 && !ended(p)) {
        rc = one_turn(p, err);
        out->loops += rc == 0;
        if (!opt->loop)
            break;
        p->wall_ns += p->last_due_ns + LOOP_GAP_NS - p->start_ns;
        p->start_ns = p->last_due_ns + LOOP_GAP_NS;
    }
    if (rc == -EINTR)
        rc = 0;
    close_sockets(p);
    free(p->stamped);
    free(p);
    return rc;
}
