// metrics: see the header. The daemon as a whole, and the order of things.
#include "daemon/metrics.h"

#include <string.h>

#include "daemon/metrics_impl.h"

// One series per state, 1 for the one that it is: what a scraper can alert on without knowing
// our numbers. The first value of each enum is not a state.
static void states(struct metrics_text *t, const char *name, const char *label,
                   const char *help, const ProtobufCEnumDescriptor *d, int is)
{
    metrics_family(t, name, "gauge", help);
    for (unsigned i = 0; i < d->n_values; i++) {
        int value = d->values[i].value;

        if (d == &actd__v1__mode__descriptor && value == 0)
            continue;
        metrics_value(t, label, metrics_word(d, value), value == is);
    }
}

static void identity(struct metrics_text *t, const Actd__V1__Status *m)
{
    const struct metrics_label version[] = {{"version", m->version}, {NULL, NULL}};
    bool fifo = strncmp(m->scheduling, "SCHED_FIFO", strlen("SCHED_FIFO")) == 0;

    metrics_one(t, "actd_up", "gauge", "1 while the daemon answers.", 1);
    metrics_family(t, "actd_build_info", "gauge", "Version of the daemon.");
    metrics_sample(t, "", version, 1);
    if (m->timestamp)
        metrics_one(t, "actd_status_timestamp_seconds", "gauge",
                    "When these numbers were taken, in seconds since 1970.",
                    (double)m->timestamp->seconds + (double)m->timestamp->nanos / 1e9);
    metrics_family(t, "actd_loop_realtime", "gauge",
                   "Whether the kernel granted SCHED_FIFO to the loop.");
    metrics_value(t, "granted", m->scheduling, fifo);
    metrics_one(t, "actd_memory_locked", "gauge", "Whether all memory is locked.",
                m->memory_locked);
}

static void state(struct metrics_text *t, const Actd__V1__Status *m)
{
    states(t, "actd_mode", "mode", "State of the daemon: 1 for the one that it is in.",
           &actd__v1__mode__descriptor, (int)m->mode);
    states(t, "actd_reason", "reason", "Why it is in that state: 1 for the reason.",
           &actd__v1__reason__descriptor, (int)m->reason);
    metrics_one(t, "actd_degraded", "gauge", "Whether joint states or a camera are late.",
                m->degraded);
}

static void rates(struct metrics_text *t, const Actd__V1__Status *m)
{
    metrics_one(t, "actd_control_asked_hertz", "gauge",
                "Commands per second, as configured.", m->control_hz);
    metrics_one(t, "actd_control_hertz", "gauge",
                "Commands published in the last second.", m->achieved_hz);
    metrics_one(t, "actd_inference_hertz", "gauge", "Inferences in the last second.",
                m->inference_hz);
    metrics_one(t, "actd_ticks_total", "counter", "Ticks that the loop ran.",
                (double)m->ticks);
    metrics_one(t, "actd_ticks_skipped_total", "counter",
                "Ticks left out because they were over before the loop woke.",
                (double)m->skipped_ticks);
    metrics_one(t, "actd_commands_total", "counter", "Joint commands published.",
                (double)m->commands);
    metrics_one(t, "actd_chunks_used_total", "counter",
                "Chunks of the policy that were used.", (double)m->chunks_used);
    metrics_one(t, "actd_stalls_total", "counter",
                "How often the output was cut because the loop was stuck.",
                (double)m->stalls);
}

size_t metrics_write(const Actd__V1__Status *m, char *out, size_t size)
{
    struct metrics_text t = {.out = out, .size = size, .instance = m->instance};

    if (size == 0)
        return 0;
    identity(&t, m);
    state(&t, m);
    rates(&t, m);
    metrics_histograms(&t, m);
    metrics_faults(&t, m);
    metrics_budgets(&t, m);
    metrics_streams(&t, m);
    metrics_seen(&t, m);
    metrics_counters(&t, m);
    metrics_joints(&t, m);
    metrics_chunk(&t, m);
    metrics_policy(&t, m);
    metrics_record(&t, m);
    if (t.full)
        t.n = 0;
    out[t.n] = '\0';
    return t.n;
}

size_t metrics_write_packed(const unsigned char *packed, size_t n, char *out, size_t size)
{
    Actd__V1__Status *m = actd__v1__status__unpack(NULL, n, packed);
    size_t written;

    if (!m)
        return 0;
    written = metrics_write(m, out, size);
    actd__v1__status__free_unpacked(m, NULL);
    return written;
}
