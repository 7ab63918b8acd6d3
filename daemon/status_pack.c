// The message, of what was measured. It has at most STATUS_MOST bytes, for a socket that does not
// take more: where names and counters are many, histograms get coarser before anything is left out.
#include "daemon/status_impl.h"

#ifndef ACTD_VERSION
#define ACTD_VERSION "unknown"
#endif

// Bytes around the longest content of an entry: tags and lengths, numbers of 10 and 9 bytes.
#define PER_COUNTER 20
#define PER_STREAM  97
#define PER_JOINT   72
#define PER_SEAM    48
#define PER_FAULT   48
#define PER_POLICY  64
#define PER_RECORD  (1024 + 512 + 6 * 24 + 96) // a path and a sentence are the most of it
// Histograms without buckets, 6 whole and 4 of budgets, 60 bytes each; budgets, 100; and what is
// there once.
#define ELSEWHERE (10 * 60 + 4 * 100 + 64 + CONFIG_NAME + 64 + 128 + 256)

// Without buckets the longest message fits.
_Static_assert(MAX_DROPS *(DROP_NAME + PER_COUNTER) +
                       MAX_LIMITED * (LIMIT_NAME + PER_COUNTER) +
                       MAX_STREAMS * (CONFIG_NAME + PER_STREAM) +
                       ACTD_MAX_JOINTS * (2 * CONFIG_NAME + PER_JOINT + PER_SEAM) +
                       LADDER_REASONS * PER_FAULT + 3 * CONFIG_PATH + 3 * CONFIG_NAME +
                       4 * POLICY_DIGEST_HEX + PER_POLICY + STATUS_EXPLANATION +
                       PER_RECORD + ELSEWHERE <=
                   STATUS_MOST,
               "room for the longest message");

static char *text(const char *s)
{
    return (char *)(uintptr_t)s; // protobuf-c takes char * but only reads it
}

void status_histogram(Actd__V1__Histogram *m, struct histogram_summary h)
{
    actd__v1__histogram__init(m);
    m->count = h.count;
    m->p50_ns = (uint64_t)h.p50_ns;
    m->p99_ns = (uint64_t)h.p99_ns;
    m->max_ns = (uint64_t)h.max_ns;
}

static void fill_numbers(const struct status *s, Actd__V1__Status *m)
{
    m->degraded = s->report.degraded;
    m->control_hz = s->src.cfg->control.rate_hz;
    m->achieved_hz = s->achieved_hz;
    m->ticks = s->report.ticks_run;
    m->skipped_ticks = s->report.skipped;
    m->inference_hz = s->inference_hz;
    m->chunks_used = s->report.verdict[CHUNK_USED];
    m->seam_max_rad = s->report.seam_max_rad;
    m->commands = s->report.commands;
    m->memory_locked = s->src.memory_locked;
    m->stalls = s->report.stalls;
}

static void fill_lists(struct status *s, Actd__V1__Status *m)
{
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
    m->joints = s->joints;
    m->n_joints = (size_t)s->src.cfg->n_joints;
}

static void fill(struct status *s, Actd__V1__Status *m)
{
    m->instance = text(s->src.cfg->instance);
    m->version = text(ACTD_VERSION);
    m->policy = s->policy.directory;
    m->policy_in_use = &s->policy_message;
    m->chunk = &s->chunk;
    m->mode = (Actd__V1__Mode)s->report.mode;
    m->reason = (Actd__V1__Reason)s->report.reason;
    m->explanation = s->explanation;
    m->scheduling = text(s->src.scheduling);
    m->black_box = s->blackbox.last_path;
    m->record = s->src.recorder ? &s->record.message : NULL;
    fill_numbers(s, m);
    fill_lists(s, m);
}

struct seconds {
    Actd__V1__Histogram lateness, inference;
};

static void fill_histograms(struct status *s, Actd__V1__Status *m, struct seconds *h)
{
    status_histogram(&h->lateness, s->lateness_second);
    status_histogram(&h->inference, s->inference_second);
    m->second_lateness = &h->lateness;
    m->second_inference = &h->inference;
    m->lateness = &s->whole[WHOLE_LATENESS].message;
    m->tick_time = &s->whole[WHOLE_TICK].message;
    m->inference = &s->whole[WHOLE_INFERENCE].message;
    m->chunk_latency = &s->whole[WHOLE_LATENCY].message;
    // The other budgets' have theirs in the fields above; nowhere else is this one's.
    s->budget[BOARD_SENSOR].histogram = &s->whole[WHOLE_SENSOR_AGE].message;
}

static size_t drop_buckets(struct status *s, const Actd__V1__Status *m)
{
    for (int i = 0; i < WHOLE_HISTOGRAMS; i++)
        s->whole[i].message.n_buckets = 0;
    return actd__v1__status__get_packed_size(m);
}

size_t status_message(struct status *s, uint8_t *out, size_t size)
{
    Actd__V1__Status m;
    Google__Protobuf__Timestamp stamp;
    struct seconds h;
    ns_t wall = clock_wall_ns();
    size_t need = STATUS_MOST + 1;

    actd__v1__status__init(&m);
    google__protobuf__timestamp__init(&stamp);
    stamp.seconds = wall / NS_PER_S;
    stamp.nanos = (int32_t)(wall % NS_PER_S);
    m.timestamp = &stamp;
    fill(s, &m);
    if (size > STATUS_MOST)
        size = STATUS_MOST;
    for (int i = HIST_MERGE_LEAST; i <= HIST_MERGE_MOST && need > size; i++) {
        status_whole(s, i);
        fill_histograms(s, &m, &h);
        need = actd__v1__status__get_packed_size(&m);
    }
    if (need > size)
        need = drop_buckets(s, &m);
    return need <= size ? actd__v1__status__pack(&m, out) : 0;
}
