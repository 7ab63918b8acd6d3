// metrics_record: what is recorded, and what could not be.
#include "daemon/metrics_impl.h"

static void lost(struct metrics_text *t, const Actd__V1__RecordStatus *r)
{
    metrics_family(t, "actd_record_lost_total", "counter",
                   "Records given up for want of room (frames first), or not written.");
    for (size_t i = 0; i < r->n_lost; i++)
        metrics_value(t, "class", r->lost[i]->name, (double)r->lost[i]->value);
}

void metrics_record(struct metrics_text *t, const Actd__V1__Status *m)
{
    const Actd__V1__RecordStatus *r = m->record;

    if (!r)
        return;
    metrics_one(t, "actd_record_active", "gauge", "Whether a file is being written.",
                r->recording);
    metrics_one(t, "actd_record_healthy", "gauge",
                "Whether the disk took what was given to it last.", r->healthy);
    metrics_one(t, "actd_record_files_total", "counter", "Files written or begun.",
                (double)r->files);
    metrics_one(t, "actd_record_bytes_total", "counter", "Bytes written.",
                (double)r->bytes);
    metrics_one(t, "actd_record_messages_total", "counter", "Messages written.",
                (double)r->messages);
    lost(t, r);
    metrics_one(t, "actd_record_removed_total", "counter",
                "Older files removed to make room.", (double)r->removed);
    metrics_one(t, "actd_record_held_bytes", "gauge",
                "Kept in memory for a fault (mode trigger).", (double)r->held_bytes);
    metrics_one(t, "actd_record_write_slowest_seconds", "gauge",
                "The longest that the disk took for one write.",
                metrics_seconds(r->slowest_write_ns));
    metrics_one(t, "actd_record_cpu_seconds_total", "counter",
                "Processor time of the recorder's thread.", metrics_seconds(r->cpu_ns));
}
