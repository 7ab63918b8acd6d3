// The mutex is ours alone: rt and infer write to the board and never come here.
//
// Rates are counted over the time since the last message, not over an assumed second, and a
// percentile of "the last second" is the difference of two copies of a histogram.
#include "daemon/status.h"

#include <errno.h>
#include <stdlib.h>
#include <zmq.h>

#include "daemon/status_impl.h"

int status_new(struct status **out, const struct status_source *src)
{
    struct status *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    int r = pthread_mutex_init(&s->mutex, NULL);
    if (r) {
        free(s);
        return -r;
    }
    s->src = *src;
    s->last_ns = clock_now_ns();
    *out = s;
    return 0;
}

void status_free(struct status *s)
{
    if (!s)
        return;
    pthread_mutex_destroy(&s->mutex);
    free(s);
}

static Actd__V1__Stream *add_stream(struct status *s, const char *name, double asked_hz,
                                    ns_t captured_ns, uint64_t received, bool slow,
                                    ns_t now)
{
    int i = s->n_streams++;
    Actd__V1__Stream *m = &s->stream[i];
    actd__v1__stream__init(m);
    m->name = (char *)(uintptr_t)name; // protobuf-c does not write to it
    m->asked_hz = asked_hz;
    m->achieved_hz = s->received_hz[i];
    m->age_ns = captured_ns && now > captured_ns ? (uint64_t)(now - captured_ns) : 0;
    m->received = received;
    m->fresh = captured_ns && now - captured_ns < 3 * clock_period_ns(asked_hz);
    m->slow = slow;
    s->streams[i] = m;
    return m;
}

static void add_seen(Actd__V1__Stream *m, const struct infer_seen *seen)
{
    m->seen_early = seen->early;
    m->seen_kept = seen->kept;
    m->seen_computed = seen->computed;
}

static void add_streams(struct status *s, ns_t now)
{
    struct board *b = s->src.board;
    struct joint_sample j = {0};
    s->n_streams = 0;
    if (!slot_read(&b->joints, &j))
        j.capture_ns = 0;
    add_stream(s, "joints", s->src.cfg->joint_state.rate_hz, j.capture_ns,
               b->joint_mark.received, b->joint_mark.slow, now);
    for (int c = 0; c < b->n_cameras; c++)
        add_seen(add_stream(s, s->src.cfg->camera[c].name, s->src.cfg->camera[c].rate_hz,
                            b->camera[c].capture_ns, b->camera[c].received,
                            b->camera[c].slow, now),
                 &infer_counts(s->src.infer)->seen[c]);
}

static void read_report(struct status *s)
{
    struct loop_report report;
    if (slot_read(&s->src.board->report, &report))
        s->report = report; // else the one before it
}

// Everything but rates as it is now.
static void look(struct status *s, ns_t now)
{
    read_report(s);
    if (s->src.blackbox)
        blackbox_writer_counts(s->src.blackbox, &s->blackbox);
    status_count(s);
    status_judge(s);
    add_streams(s, now);
    status_live(s, now);
    status_record(s);
}

// A rate is judged where messages came in the second before as well: else the stream may have
// begun anywhere within this one.
static void count_received(struct status *s, int i, uint64_t received, double seconds)
{
    bool whole = s->received_hz[i] > 0;

    s->received_hz[i] = (double)(received - s->last_received[i]) / seconds;
    s->judged_hz[i] = whole ? s->received_hz[i] : 0;
    s->last_received[i] = received;
}

// Rates, over the time since they were counted last.
static void count_rates(struct status *s, ns_t now)
{
    struct board *b = s->src.board;
    double seconds = (double)(now - s->last_ns) / (double)NS_PER_S;
    uint64_t inferences = infer_counts(s->src.infer)->done;

    seconds = seconds > 1e-3 ? seconds : 1e-3;
    s->achieved_hz = (double)(s->report.commands - s->last_commands) / seconds;
    s->inference_hz = (double)(inferences - s->last_inferences) / seconds;
    s->lateness_second = hist_summary_since(&b->lateness, s->lateness_before);
    s->inference_second = hist_summary_since(&b->inference, s->inference_before);
    count_received(s, 0, b->joint_mark.received, seconds);
    for (int c = 0; c < b->n_cameras; c++)
        count_received(s, c + 1, b->camera[c].received, seconds);
    s->last_ns = now;
    s->last_commands = s->report.commands;
    s->last_inferences = inferences;
}

// Brings every number up to date.
static void measure(struct status *s)
{
    ns_t now = clock_now_ns();

    read_report(s);
    count_rates(s, now);
    look(s, now);
}

size_t status_pack(struct status *s, uint8_t *out, size_t size)
{
    size_t n;

    pthread_mutex_lock(&s->mutex);
    look(s, clock_now_ns());
    n = status_message(s, out, size);
    pthread_mutex_unlock(&s->mutex);
    return n;
}

static void send(struct status *s)
{
    size_t n = s->src.publisher ? status_message(s, s->buffer, sizeof s->buffer) : 0;

    if (n > 0)
        zmq_send(s->src.publisher, s->buffer, n, ZMQ_DONTWAIT);
}

void status_publish(struct status *s)
{
    pthread_mutex_lock(&s->mutex);
    measure(s);
    send(s);
    status_say(s);
    pthread_mutex_unlock(&s->mutex);
}

void status_received_hz(struct status *s, double hz[POLICY_MAX_CAMERAS + 1])
{
    pthread_mutex_lock(&s->mutex);
    for (int i = 0; i < s->n_streams; i++)
        hz[i] = s->judged_hz[i];
    pthread_mutex_unlock(&s->mutex);
}

void status_summary(struct status *s)
{
    pthread_mutex_lock(&s->mutex);
    measure(s);
    status_say_summary(s);
    pthread_mutex_unlock(&s->mutex);
}
