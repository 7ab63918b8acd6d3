// What the recorder says of itself, as a message.
#include "daemon/status_impl.h"

// As in the configuration's words for what gives way, in the order in which it does.
static const char *const class_name[TAPE_CLASSES] = {"frames", "events", "chunks", "bus",
                                                     "ticks"};

static void count_lost(struct status_record *r, const char *name, uint64_t value)
{
    Actd__V1__Counter *c = &r->lost[r->n_lost];

    actd__v1__counter__init(c);
    c->name = (char *)(uintptr_t)name; // protobuf-c only reads it
    c->value = value;
    r->losts[r->n_lost++] = c;
}

void status_record(struct status *s)
{
    struct status_record *r = &s->record;
    Actd__V1__RecordStatus *m = &r->message;

    if (!s->src.recorder)
        return;
    recorder_counts(s->src.recorder, &r->counts);
    actd__v1__record_status__init(m);
    m->mode = (Actd__V1__RecordStatus__Mode)r->counts.mode;
    m->recording = r->counts.recording;
    m->healthy = r->counts.healthy;
    m->file = r->counts.file;
    m->files = r->counts.files;
    m->bytes = r->counts.bytes;
    m->messages = r->counts.messages;
    r->n_lost = 0;
    for (int i = 0; i < TAPE_CLASSES; i++)
        count_lost(r, class_name[i], r->counts.lost[i]);
    count_lost(r, "unwritten", r->counts.lost_messages);
    m->lost = r->losts;
    m->n_lost = (size_t)r->n_lost;
    m->last_error = r->counts.last_error;
    m->held_bytes = r->counts.held_bytes;
    m->removed = r->counts.removed;
    m->slowest_write_ns = (uint64_t)r->counts.slowest_write_ns;
    m->cpu_ns = r->counts.cpu_ns;
}
