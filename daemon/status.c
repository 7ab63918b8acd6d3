// Rates are counted over the time since the last message, not over an assumed second, and a
// percentile of "the last second" is the difference of two copies of a histogram.
#include "daemon/status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "actd/v1/status.pb-c.h"
#include "daemon/log.h"

#ifndef ACTD_VERSION
#define ACTD_VERSION "unknown"
#endif

#define MAX_COUNTERS 64
#define MAX_STREAMS  (POLICY_MAX_CAMERAS + 1)
#define NAME_BYTES   256

struct status {
    struct status_source src;
    struct loop_report report;
    ns_t last_ns;
    uint64_t last_ticks, last_inferences, last_received[MAX_STREAMS];
    uint64_t lateness_before[HIST_BUCKETS], inference_before[HIST_BUCKETS];
    struct histogram_summary lateness_second, inference_second;
    double achieved_hz, inference_hz;
    // The message and what it points to, filled anew each time.
    Actd__V1__Counter counter[MAX_COUNTERS];
    char counter_name[MAX_COUNTERS][NAME_BYTES];
    Actd__V1__Counter *drops[MAX_COUNTERS], *limited[MAX_COUNTERS];
    int n_counters, n_drops, n_limited;
    char said_name[MAX_COUNTERS][NAME_BYTES]; // drops as of the last line
    uint64_t said[MAX_COUNTERS];
    int n_said;
    Actd__V1__Stream stream[MAX_STREAMS];
    Actd__V1__Stream *streams[MAX_STREAMS];
    int n_streams;
    uint8_t buffer[64 * 1024];
};

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

// A longer name than NAME_BYTES is cut.
static Actd__V1__Counter *count(struct status *s, const char *name, uint64_t value)
{
    if (value == 0 || s->n_counters == MAX_COUNTERS)
        return NULL;
    Actd__V1__Counter *c = &s->counter[s->n_counters];
    actd__v1__counter__init(c);
    c->name = s->counter_name[s->n_counters++];
    snprintf(c->name, NAME_BYTES, "%s", name);
    c->value = value;
    return c;
}

static void count_drop(struct status *s, const char *name, uint64_t value)
{
    Actd__V1__Counter *c = count(s, name, value);
    if (c)
        s->drops[s->n_drops++] = c;
}

// With why the last one was, since "refused" alone helps nobody.
static void count_refused(struct status *s, const char *what, uint64_t value,
                          const char *why)
{
    char name[2 * NAME_BYTES];
    snprintf(name, sizeof name, "%s refused (%s)", what, why);
    count_drop(s, name, value);
}

static void count_failed(struct status *s, uint64_t value)
{
    char why[INFER_FAILURE_MAX], name[INFER_FAILURE_MAX + 32];
    infer_last_failure(s->src.infer, why);
    snprintf(name, sizeof name, "inference failed (%s)", why);
    count_drop(s, name, value);
}

static void count_drops(struct status *s)
{
    struct board *b = s->src.board;
    const struct infer_counts *i = infer_counts(s->src.infer);
    char name[NAME_BYTES];
    for (int v = CHUNK_USED + 1; v < CHUNK_VERDICTS; v++) {
        snprintf(name, sizeof name, "chunk %s",
                 chunk_verdict_name((enum chunk_verdict)v));
        count_drop(s, name, s->report.verdict[v]);
    }
    struct bus_counts bus = bus_counts(s->src.bus);
    count_refused(s, "joint states", b->joints_refused, bus.joints_refusal_text);
    count_drop(s, "joint states duplicate", b->joints_duplicate);
    for (int c = 0; c < b->n_cameras; c++) {
        const char *camera = s->src.cfg->camera[c].name;
        char why[CODEC_WHY_MAX];
        snprintf(name, sizeof name, "%s frames", camera);
        camera_last_refusal_text(s->src.cameras[c], why);
        count_refused(s, name, b->camera[c].refused, why);
        snprintf(name, sizeof name, "%s frames corrupt", camera);
        count_drop(s, name, b->camera[c].corrupt);
        snprintf(name, sizeof name, "%s frames duplicate", camera);
        count_drop(s, name, b->camera[c].duplicate);
    }
    count_drop(s, "inference without frame", i->no_frame);
    count_drop(s, "inference cameras too far apart", i->skew);
    count_drop(s, "inference without joint state", i->no_joints);
    count_failed(s, i->failed);
    count_drop(s, "chunk ring full", i->ring_full);
    count_drop(s, "vectors not finite", s->report.refused_vectors);
    count_drop(s, "commands refused by the gate", s->report.gate_refusals);
    count_drop(s, "commands dropped", s->report.commands_dropped);
    count_drop(s, "commands not sent", bus.send_failed);
}

static const char *const limit_word[GUARD_LIMITS] = {"none", "position", "velocity",
                                                     "acceleration", "jerk"};

static uint64_t count_limited(struct status *s)
{
    uint64_t total = 0;
    for (int j = 0; j < s->src.cfg->n_joints; j++) {
        for (int l = GUARD_POSITION; l < GUARD_LIMITS; l++) {
            char name[NAME_BYTES];
            snprintf(name, sizeof name, "%s:%s", s->src.cfg->joint[j].name,
                     limit_word[l]);
            Actd__V1__Counter *c = count(s, name, s->report.limited[j][l]);
            if (c)
                s->limited[s->n_limited++] = c;
            total += s->report.limited[j][l];
        }
    }
    return total;
}

static void add_stream(struct status *s, const char *name, double asked_hz,
                       ns_t captured_ns, uint64_t received, ns_t now, double seconds)
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
    s->last_received[i] = received;
    s->streams[i] = m;
}

static void add_streams(struct status *s, ns_t now, double seconds)
{
    struct board *b = s->src.board;
    struct joint_sample j = {0};
    if (!slot_read(&b->joints, &j))
        j.capture_ns = 0;
    add_stream(s, "joints", s->src.cfg->joint_state.rate_hz, j.capture_ns,
               b->joints_received, now, seconds);
    for (int c = 0; c < b->n_cameras; c++)
        add_stream(s, s->src.cfg->camera[c].name, s->src.cfg->camera[c].rate_hz,
                   b->camera[c].capture_ns, b->camera[c].received, now, seconds);
}

// Brings every number up to date.
static void measure(struct status *s)
{
    ns_t now = clock_now_ns();
    double seconds = (double)(now - s->last_ns) / (double)NS_PER_S;
    uint64_t inferences = infer_counts(s->src.infer)->done;
    seconds = seconds > 1e-3 ? seconds : 1e-3;
    s->n_counters = s->n_drops = s->n_limited = s->n_streams = 0;
    if (!slot_read(&s->src.board->report, &s->report))
        memset(&s->report, 0, sizeof s->report);
    s->achieved_hz = (double)(s->report.ticks_run - s->last_ticks) / seconds;
    s->inference_hz = (double)(inferences - s->last_inferences) / seconds;
    s->lateness_second = hist_summary_since(&s->src.board->lateness, s->lateness_before);
    s->inference_second =
        hist_summary_since(&s->src.board->inference, s->inference_before);
    s->last_ns = now;
    s->last_ticks = s->report.ticks_run;
    s->last_inferences = inferences;
    count_drops(s);
    add_streams(s, now, seconds);
}

static void fill_histogram(Actd__V1__Histogram *m, struct histogram_summary h)
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
    fill_histogram(&h->lateness, hist_summary(&s->src.board->lateness));
    fill_histogram(&h->tick, hist_summary(&s->src.board->tick_time));
    fill_histogram(&h->inference, hist_summary(&s->src.board->inference));
    fill_histogram(&h->latency, hist_summary(&s->src.board->chunk_latency));
    fill_histogram(&h->lateness_second, s->lateness_second);
    fill_histogram(&h->inference_second, s->inference_second);
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

static void say(struct status *s, uint64_t limited)
{
    char ages[512] = "";
    uint64_t drops = 0;
    for (int i = 0; i < s->n_streams; i++) {
        size_t n = strlen(ages);
        if (s->stream[i].received == 0)
            snprintf(ages + n, sizeof ages - n, " %s -", s->stream[i].name);
        else
            snprintf(ages + n, sizeof ages - n, " %s %.0f", s->stream[i].name,
                     (double)s->stream[i].age_ns / 1e6);
    }
    for (int i = 0; i < s->n_drops; i++)
        drops += s->drops[i]->value;
    log_line(
        LOG_INFO,
        "%s%s%s%s%s | %.1f of %.0f Hz, late p50 %.0f p99 %.0f max %.0f us, skipped %llu "
        "| "
        "chunks %.1f/s, inference p50 %.1f p99 %.1f ms | age ms%s | limited %llu, "
        "dropped %llu | %s",
        ladder_state_name(s->report.mode), s->report.reason ? " (" : "",
        s->report.reason ? ladder_reason_name(s->report.reason) : "",
        s->report.reason ? ")" : "", s->report.degraded ? " degraded" : "",
        s->achieved_hz, s->src.cfg->control.rate_hz,
        (double)s->lateness_second.p50_ns / 1e3, (double)s->lateness_second.p99_ns / 1e3,
        (double)s->lateness_second.max_ns / 1e3, (unsigned long long)s->report.skipped,
        s->inference_hz, (double)s->inference_second.p50_ns / 1e6,
        (double)s->inference_second.p99_ns / 1e6, ages, (unsigned long long)limited,
        (unsigned long long)drops, s->src.scheduling);
}

static uint64_t said_before(const struct status *s, const char *name)
{
    for (int i = 0; i < s->n_said; i++)
        if (strcmp(s->said_name[i], name) == 0)
            return s->said[i];
    return 0;
}

// What was lost since the last line, and why: at most one line a second.
static void say_drops(struct status *s)
{
    char line[768] = "";
    for (int i = 0; i < s->n_drops; i++) {
        uint64_t more = s->drops[i]->value - said_before(s, s->drops[i]->name);
        size_t n = strlen(line);
        if (more > 0)
            snprintf(line + n, sizeof line - n, "%s%s +%llu", n ? ", " : "",
                     s->drops[i]->name, (unsigned long long)more);
    }
    if (line[0])
        log_line(LOG_WARN, "dropped: %s", line);
    for (s->n_said = 0; s->n_said < s->n_drops; s->n_said++) {
        snprintf(s->said_name[s->n_said], NAME_BYTES, "%s", s->drops[s->n_said]->name);
        s->said[s->n_said] = s->drops[s->n_said]->value;
    }
}

void status_publish(struct status *s)
{
    measure(s);
    uint64_t limited = count_limited(s);
    send(s);
    say(s, limited);
    say_drops(s);
}

void status_received_hz(const struct status *s, double hz[POLICY_MAX_CAMERAS + 1])
{
    for (int i = 0; i < s->n_streams; i++)
        hz[i] = s->stream[i].achieved_hz;
}

void status_summary(struct status *s)
{
    measure(s);
    uint64_t limited = count_limited(s);
    struct histogram_summary late = hist_summary(&s->src.board->lateness);
    struct histogram_summary inference = hist_summary(&s->src.board->inference);
    log_line(
        LOG_INFO,
        "ran %llu ticks, skipped %llu; lateness p50 %.0f p99 %.0f max %.0f us; "
        "inferences "
        "%llu, p50 %.1f p99 %.1f ms; chunks used %llu; largest seam %.4f rad; limits "
        "acted %llu times",
        (unsigned long long)s->report.ticks_run, (unsigned long long)s->report.skipped,
        (double)late.p50_ns / 1e3, (double)late.p99_ns / 1e3, (double)late.max_ns / 1e3,
        (unsigned long long)inference.count, (double)inference.p50_ns / 1e6,
        (double)inference.p99_ns / 1e6, (unsigned long long)s->report.verdict[CHUNK_USED],
        s->report.seam_max_rad, (unsigned long long)limited);
    for (int i = 0; i < s->n_limited; i++)
        log_line(LOG_INFO, "  limited %s: %llu ticks", s->limited[i]->name,
                 (unsigned long long)s->limited[i]->value);
    for (int i = 0; i < s->n_drops; i++)
        log_line(LOG_INFO, "  dropped %s: %llu", s->drops[i]->name,
                 (unsigned long long)s->drops[i]->value);
}
