// metrics_parts: lists of the status: faults, budgets, streams, what was limited. The
// text format wants all samples of a family together, so that each list is gone through once per
// number of its entries.
#include <string.h>

#include "daemon/metrics_impl.h"

static const Actd__V1__Fault *fault_of(const Actd__V1__Status *m, int reason)
{
    for (size_t i = 0; i < m->n_faults; i++)
        if ((int)m->faults[i]->reason == reason)
            return m->faults[i];
    return NULL;
}

static double fault_number(const Actd__V1__Fault *f, int which)
{
    if (!f)
        return 0;
    switch (which) {
    case 0:
        return f->active;
    case 1:
        return f->latched;
    case 2:
        return (double)f->episodes;
    default:
        return (double)f->ticks;
    }
}

void metrics_faults(struct metrics_text *t, const Actd__V1__Status *m)
{
    static const char *const family[][3] = {
        {"actd_fault_active", "gauge", "Whether the fault is there now."},
        {"actd_fault_latched", "gauge",
         "Whether the fault holds the arm until it is reset."},
        {"actd_fault_episodes_total", "counter", "How often the fault has come up."},
        {"actd_fault_ticks_total", "counter", "Ticks during which the fault was there."},
    };
    const ProtobufCEnumDescriptor *d = &actd__v1__reason__descriptor;

    for (int k = 0; k < 4; k++) {
        metrics_family(t, family[k][0], family[k][1], family[k][2]);
        for (unsigned i = 0; i < d->n_values; i++) {
            int reason = d->values[i].value;

            if (reason != ACTD__V1__REASON__REASON_NONE)
                metrics_value(t, "reason", metrics_word(d, reason),
                              fault_number(fault_of(m, reason), k));
        }
    }
}

static double budget_number(const Actd__V1__Budget *b, int which)
{
    const double number[] = {metrics_seconds(b->limit_ns),
                             (double)b->samples,
                             (double)b->missed,
                             (double)b->missed_in_window,
                             (double)b->consecutive_max,
                             metrics_seconds(b->worst_ns),
                             (double)b->over};

    return number[which];
}

void metrics_budgets(struct metrics_text *t, const Actd__V1__Status *m)
{
    static const char *const family[][3] = {
        {"actd_budget_limit_seconds", "gauge", "The bound of a deadline, as configured."},
        {"actd_budget_samples_total", "counter", "Durations compared with the bound."},
        {"actd_budget_missed_total", "counter", "Durations that exceeded the bound."},
        {"actd_budget_missed_window", "gauge",
         "Misses in the last 500 ms, or of the last 10 chunks."},
        {"actd_budget_missed_consecutive_max", "gauge",
         "The most misses in a row since the start."},
        {"actd_budget_worst_seconds", "gauge", "The longest duration since the start."},
        {"actd_budget_over", "gauge", "Whether more than 10 % of that window missed."},
    };

    if (m->n_budgets == 0)
        return;
    for (int k = 0; k < 7; k++) {
        metrics_family(t, family[k][0], family[k][1], family[k][2]);
        for (size_t i = 0; i < m->n_budgets; i++)
            metrics_value(t, "budget", m->budgets[i]->name,
                          budget_number(m->budgets[i], k));
    }
}

static double stream_number(const Actd__V1__Stream *s, int which)
{
    const double number[] = {
        s->asked_hz,         s->achieved_hz,   metrics_seconds(s->age_ns),
        (double)s->received, (double)s->fresh, (double)s->slow};

    return number[which];
}

// A camera may be called as the joint states are; two series of one name are none.
const char *metrics_stream(const Actd__V1__Status *m, int i)
{
    const char *name = m->streams[i]->name;

    return i > 0 && strcmp(name, m->streams[0]->name) == 0 ? "joints (camera)" : name;
}

void metrics_streams(struct metrics_text *t, const Actd__V1__Status *m)
{
    static const char *const family[][3] = {
        {"actd_stream_asked_hertz", "gauge",
         "Messages per second of a stream, as configured."},
        {"actd_stream_hertz", "gauge", "Messages received in the last second."},
        {"actd_stream_age_seconds", "gauge",
         "Time since the newest message was captured; absent before the first."},
        {"actd_stream_received_total", "counter", "Messages received."},
        {"actd_stream_fresh", "gauge",
         "Whether the newest message is younger than three periods."},
        {"actd_stream_slow", "gauge",
         "Whether the rate over 100 messages is below 90 % of the configured one."},
    };

    if (m->n_streams == 0)
        return;
    for (int k = 0; k < 6; k++) {
        metrics_family(t, family[k][0], family[k][1], family[k][2]);
        for (size_t i = 0; i < m->n_streams; i++)
            if (k != 2 || m->streams[i]->received > 0)
                metrics_value(t, "stream", metrics_stream(m, (int)i),
                              stream_number(m->streams[i], k));
    }
}

// The first stream is the joint states.
void metrics_seen(struct metrics_text *t, const Actd__V1__Status *m)
{
    static const char *const how[] = {"early", "kept", "computed"};

    if (m->n_streams < 2)
        return;
    metrics_family(
        t, "actd_frames_seen_total", "counter",
        "A camera's part in the inferences that were made, by when it was done.");
    for (size_t i = 1; i < m->n_streams; i++)
        for (int k = 0; k < 3; k++) {
            const Actd__V1__Stream *s = m->streams[i];
            const uint64_t n[] = {s->seen_early, s->seen_kept, s->seen_computed};
            const struct metrics_label labels[] = {
                {"stream", metrics_stream(m, (int)i)}, {"how", how[k]}, {NULL, NULL}};

            metrics_sample(t, "", labels, (double)n[k]);
        }
}

static uint64_t limited_of(const Actd__V1__Status *m, const char *joint,
                           const char *limit)
{
    size_t n = strlen(joint);

    for (size_t i = 0; i < m->n_limited; i++) {
        const char *name = m->limited[i]->name;

        if (strncmp(name, joint, n) == 0 && name[n] == ':' &&
            strcmp(name + n + 1, limit) == 0)
            return m->limited[i]->value;
    }
    return 0;
}

void metrics_counters(struct metrics_text *t, const Actd__V1__Status *m)
{
    static const char *const limit[] = {"position", "velocity", "acceleration", "jerk"};

    metrics_drops(t, m);
    metrics_family(t, "actd_limited_total", "counter",
                   "Commands of a joint that a limit changed.");
    for (size_t j = 0; j < m->n_joints; j++)
        for (int l = 0; l < 4; l++) {
            const char *joint = m->joints[j]->name;
            const struct metrics_label labels[] = {
                {"joint", joint}, {"limit", limit[l]}, {NULL, NULL}};

            metrics_sample(t, "", labels, (double)limited_of(m, joint, limit[l]));
        }
}
