// Rates are counted over the time since the last message, not over an assumed second, and a
// percentile of "the last second" is the difference of two copies of a histogram.
#include "daemon/status.h"

#include <errno.h>
#include <stdlib.h>
#include <zmq.h>

#include "daemon/status_impl.h"

#ifndef ACTD_VERSION
#define ACTD_VERSION "unknown"
#endif

// The longest message: each counter and stream with the longest name and 32 bytes around it.
_Static_assert(MAX_DROPS *(DROP_NAME + 32) + MAX_LIMITED * (LIMIT_NAME + 32) +
                       MAX_STREAMS * (CONFIG_NAME + 64) + CONFIG_PATH + 4096 <=
                   sizeof((struct status *)NULL)->buffer,
               "room for the longest message");

int status_new(struct status **out, const struct status_source *src)
{
    struct status *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    s->src = *src;
    s->last_ns = clock_now_ns();
    *out = s;
    return 0;
}

void status_free(struct status *s)
{
    free(s);
}

static void add_stream(struct status *s, const char *name, double asked_hz,
                       ns_t captured_ns, uint64_t received, bool slow, ns_t now,
                       double seconds)
{
    int i = s->n_streams++;
    Actd__V1__Stream *m = &s->stream[i];
    actd__v1__stream__init(m);
    m->name = (char *)(uintptr_t)name; // protobuf-c does not write to it
    m->asked_hz = asked_hz;
    m->achieved_hz = (double)(received - s->last_received[i]) / seconds;
    m->age_ns = captured_ns && now > captured_ns ? (uint64_t)(now - captured_ns) : 0;
    m->received = received;
    m->fresh = captured_ns && now - captured_ns < 3 * clock_period_ns(asked_hz);
    m->slow = slow;
    s->last_received[i] = received;
    s->streams[i] = m;
}

static void add_streams(struct status *s, ns_t now, double seconds)
{
    struct board *b = s->src.board;
    struct joint_sample j = {0};
    s->n_streams = 0;
    if (!slot_read(&b->joints, &j))
        j.capture_ns = 0;
    add_stream(s, "joints", s->src.cfg->joint_state.rate_hz, j.capture_ns,
               b->joint_mark.received, b->joint_mark.slow, now, seconds);
    for (int c = 0; c < b->n_cameras; c++)
        add_stream(s, s->src.cfg->camera[c].name, s->src.cfg->camera[c].rate_hz,
                   b->camera[c].capture_ns, b->camera[c].received, b->camera[c].slow, now,
                   seconds);
}

// Brings every number up to date.
static void measure(struct status *s)
{
    ns_t now = clock_now_ns();
    double seconds = (double)(now - s->last_ns) / (double)NS_PER_S;
    uint64_t inferences = infer_counts(s->src.infer)->done;
    struct loop_report report;
    seconds = seconds > 1e-3 ? seconds : 1e-3;
    if (slot_read(&s->src.board->report, &report))
        s->report = report; // else the one before it
    s->achieved_hz = (double)(s->report.commands - s->last_commands) / seconds;
    s->inference_hz = (double)(inferences - s->last_inferences) / seconds;
    s->lateness_second = hist_summary_since(&s->src.board->lateness, s->lateness_before);
    s->inference_second =
        hist_summary_since(&s->src.board->inference, s->inference_before);
    s->last_ns = now;
    s->last_commands = s->report.commands;
    s->last_inferences = inferences;
    if (s->src.blackbox)
        blackbox_writer_counts(s->src.blackbox, &s->blackbox);
    status_count(s);
    status_judge(s);
    add_streams(s, now, seconds);
}

void status_histogram(Actd__V1__Histogram *m, struct histogram_summary h)
{
    actd__v1__histogram__init(m);
    m->count = h.count;
    m->p50_ns = (uint64_t)h.p50_ns;
    m->p99_ns = (uint64_t)h.p99_ns;
    m->max_ns = (uint64_t)h.max_ns;
}

struct histograms {
    Actd__V1__Histogram lateness, tick, inference, latency, lateness_second,
        inference_second;
};

static void fill_histograms(struct status *s, Actd__V1__Status *m, struct histograms *h)
{
    status_histogram(&h->lateness, hist_summary(&s->src.board->lateness));
    status_histogram(&h->tick, hist_summary(&s->src.board->tick_time));
    status_histogram(&h->inference, hist_summary(&s->src.board->inference));
    status_histogram(&h->latency, hist_summary(&s->src.board->chunk_latency));
    status_histogram(&h->lateness_second, s->lateness_second);
    status_histogram(&h->inference_second, s->inference_second);
    m->lateness = &h->lateness;
    m->tick_time = &h->tick;
    m->inference = &h->inference;
    m->chunk_latency = &h->latency;
    m->second_lateness = &h->lateness_second;
    m->second_inference = &h->inference_second;
}

static char *text(const char *s)
{
    return (char *)(uintptr_t)s; // protobuf-c takes char * but only reads it
}

static void fill(struct status *s, Actd__V1__Status *m)
{
    m->instance = text(s->src.cfg->instance);
    m->version = text(ACTD_VERSION);
    m->policy = text(s->src.cfg->policy.directory);
    m->mode = (Actd__V1__Mode)s->report.mode;
    m->reason = (Actd__V1__Reason)s->report.reason;
    m->degraded = s->report.degraded;
    m->control_hz = s->src.cfg->control.rate_hz;
    m->achieved_hz = s->achieved_hz;
    m->ticks = s->report.ticks_run;
    m->skipped_ticks = s->report.skipped;
    m->inference_hz = s->inference_hz;
    m->chunks_used = s->report.verdict[CHUNK_USED];
    m->seam_max_rad = s->report.seam_max_rad;
    m->commands = s->report.commands;
    m->scheduling = text(s->src.scheduling);
    m->memory_locked = s->src.memory_locked;
    m->drops = s->drops;
    m->n_drops = (size_t)s->n_drops;
    m->limited = s->limited;
    m->n_limited = (size_t)s->n_limited;
    m->streams = s->streams;
    m->n_streams = (size_t)s->n_streams;
    m->faults = s->faults;
    m->n_faults = (size_t)s->n_faults;
    m->budgets = s->budgets;
    m->n_budgets = BOARD_BUDGETS;
    m->seams = s->seams;
    m->n_seams = (size_t)s->src.cfg->n_joints;
    m->stalls = s->report.stalls;
    m->black_box = s->blackbox.last_path;
}

static void send(struct status *s)
{
    Actd__V1__Status m;
    Google__Protobuf__Timestamp stamp;
    struct histograms h;
    ns_t wall = clock_wall_ns();
    actd__v1__status__init(&m);
    google__protobuf__timestamp__init(&stamp);
    stamp.seconds = wall / NS_PER_S;
    stamp.nanos = (int32_t)(wall % NS_PER_S);
    m.timestamp = &stamp;
    fill(s, &m);
    fill_histograms(s, &m, &h);
    if (!s->src.publisher || actd__v1__status__get_packed_size(&m) > sizeof s->buffer)
        return;
    size_t size = actd__v1__status__pack(&m, s->buffer);
    zmq_send(s->src.publisher, s->buffer, size, ZMQ_DONTWAIT);
}

void status_publish(struct status *s)
{
    measure(s);
    send(s);
    status_say(s);
}

void status_received_hz(const struct status *s, double hz[POLICY_MAX_CAMERAS + 1])
{
    for (int i = 0; i < s->n_streams; i++)
        hz[i] = s->stream[i].achieved_hz;
}

void status_summary(struct status *s)
{
    measure(s);
    status_say_summary(s);
}
