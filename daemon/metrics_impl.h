// The inside of metrics: how a line is written (metrics_line.c), and which there are (the others).
#ifndef ACTD_METRICS_IMPL_H
#define ACTD_METRICS_IMPL_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/metrics.h"

struct metrics_text {
    char *out;
    size_t size, n;
    bool full; // something did not fit
    const char *instance;
    const char *family; // whose samples follow
};

#define METRICS_LABELS 7
struct metrics_label {
    const char *name, *value; // name NULL ends the list; value NULL counts as ""
};

// plain. Begins a family: HELP and TYPE ("counter", "gauge", "histogram").
void metrics_family(struct metrics_text *t, const char *name, const char *type,
                    const char *help);
// plain. A sample of the family begun last, with an ending to its name ("" = none) and up to
// METRICS_LABELS labels besides instance (NULL = none).
void metrics_sample(struct metrics_text *t, const char *ending,
                    const struct metrics_label *labels, double value);
// plain. As metrics_sample with ending "", and one label or none (label NULL).
void metrics_value(struct metrics_text *t, const char *label, const char *of,
                   double value);
// plain. A family of one sample.
void metrics_one(struct metrics_text *t, const char *name, const char *type,
                 const char *help, double value);

// plain. "RUNNING" of MODE_RUNNING.
const char *metrics_word(const ProtobufCEnumDescriptor *d, int value);
double metrics_seconds(uint64_t ns);

// metrics_histogram.c. NULL = without samples.
void metrics_histograms(struct metrics_text *t, const Actd__V1__Status *m);
// metrics_parts.c
void metrics_faults(struct metrics_text *t, const Actd__V1__Status *m);
void metrics_budgets(struct metrics_text *t, const Actd__V1__Status *m);
void metrics_streams(struct metrics_text *t, const Actd__V1__Status *m);
void metrics_seen(struct metrics_text *t, const Actd__V1__Status *m);
// plain. The label of stream i: "joints" or a camera's name, each once.
const char *metrics_stream(const Actd__V1__Status *m, int i);
void metrics_counters(struct metrics_text *t, const Actd__V1__Status *m);
// metrics_drops.c
void metrics_drops(struct metrics_text *t, const Actd__V1__Status *m);
// metrics_motion.c
void metrics_joints(struct metrics_text *t, const Actd__V1__Status *m);
void metrics_chunk(struct metrics_text *t, const Actd__V1__Status *m);
void metrics_policy(struct metrics_text *t, const Actd__V1__Status *m);
// metrics_record.c. Nothing where nothing can be recorded.
void metrics_record(struct metrics_text *t, const Actd__V1__Status *m);

#endif
