// metrics_parts: lists of the status: faults, budgets, streams, what was dropped or limited. The
// text format wants all samples of a family together, so that each list is gone through once per
// number of its entries.
#include <stdio.h>
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
        {"actd_fault_active", "gauge", "The fault is there now."},
        {"actd_fault_latched", "gauge", "The fault holds the arm until it is reset."},
        {"actd_fault_episodes_total", "counter", "Times that the fault came up."},
        {"actd_fault_ticks_total", "counter", "Ticks in which the fault was there."},
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
        {"actd_budget_samples_total", "counter", "Durations held against the bound."},
        {"actd_budget_missed_total", "counter", "Those that were longer."},
        {"actd_budget_missed_window", "gauge", "Those of the last 500 ms, or 10 chunks."},
        {"actd_budget_missed_consecutive_max", "gauge", "The most in a row."},
        {"actd_budget_worst_seconds", "gauge", "The longest since the start."},
        {"actd_budget_over", "gauge", "More than 10 % of the window missed."},
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

void metrics_streams(struct metrics_text *t, const Actd__V1__Status *m)
{
    static const char *const family[][3] = {
        {"actd_stream_asked_hertz", "gauge", "Rate of a stream, as configured."},
        {"actd_stream_hertz", "gauge", "Messages of the last second."},
        {"actd_stream_age_seconds", "gauge",
         "Since the newest message was captured; absent before the first."},
        {"actd_stream_received_total", "counter", "Messages received."},
        {"actd_stream_fresh", "gauge", "The newest is younger than three periods."},
        {"actd_stream_slow", "gauge", "Below 90 % of the rate over 100 messages."},
    };

    if (m->n_streams == 0)
        return;
    for (int k = 0; k < 6; k++) {
        metrics_family(t, family[k][0], family[k][1], family[k][2]);
        for (size_t i = 0; i < m->n_streams; i++)
            if (k != 2 || m->streams[i]->received > 0)
                metrics_value(t, "stream", m->streams[i]->name,
                              stream_number(m->streams[i], k));
    }
}

// Bytes of a cause without the " (why the last one was)" behind it.
static int stem(const char *name)
{
    const char *why = strstr(name, " (");

    return (int)(why ? (size_t)(why - name) : strlen(name));
}

static bool same_stem(const char *a, const char *b)
{
    return stem(a) == stem(b) && strncmp(a, b, (size_t)stem(a)) == 0;
}

static void drops(struct metrics_text *t, const Actd__V1__Status *m)
{
    metrics_family(t, "actd_drops_total", "counter",
                   "What was not used, by cause; the log says more.");
    for (size_t i = 0; i < m->n_drops; i++) {
        const char *name = m->drops[i]->name;
        char cause[256];
        double sum = 0;
        bool said = false;

        for (size_t k = 0; k < m->n_drops; k++) {
            if (!same_stem(name, m->drops[k]->name))
                continue;
            said = said || k < i;
            sum += (double)m->drops[k]->value;
        }
        if (said)
            continue;
        snprintf(cause, sizeof cause, "%.*s", stem(name), name);
        metrics_value(t, "cause", cause, sum);
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

    drops(t, m);
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
