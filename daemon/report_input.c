// report_input: what came in, what the policy made of it, and which policies there were.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/report_impl.h"

static void judged(struct report *r, struct report_stream *s, const struct tape_input *in)
{
    if ((int)in->outcome >= 0 && in->outcome <= TAPE_NONE)
        s->outcome[in->outcome]++;
    if (in->verdict > 0 && in->verdict < CODEC_VERDICTS)
        s->verdict[in->verdict]++;
    if (in->outcome != TAPE_ACCEPTED)
        return;
    s->first_ns = s->first_ns ? s->first_ns : in->at_ns;
    s->last_ns = in->at_ns;
    if (in->joint_sample > 0) {
        r->recent[in->joint_sample % REPORT_RECENT].number = in->joint_sample;
        r->recent[in->joint_sample % REPORT_RECENT].capture_ns = in->capture_ns;
    }
}

void report_scan_input(struct report *r, const struct mcap_message *m)
{
    struct tape_input in;
    if (record_input_read(&in, m->data, m->size)) {
        r->damaged++;
        return;
    }
    if (r->inputs > 0 && in.number > r->last_input + 1)
        r->inputs_missing += in.number - r->last_input - 1;
    r->last_input = in.number;
    r->inputs++;
    if (in.kind == TAPE_WALL_SET) {
        r->wall_sets++;
        r->wall_set_ns += in.by_ns;
        return;
    }
    if (in.stream < 0 || in.stream >= r->streams)
        return;
    struct report_stream *s = &r->stream[in.stream];
    s->messages += in.kind != TAPE_PART;
    s->not_kept += !in.kept && in.kind == TAPE_MESSAGE;
    s->superseded += in.kind == TAPE_SUPERSEDED;
    s->several_parts += in.kind == TAPE_SEVERAL_PARTS;
    if (in.kind == TAPE_MESSAGE)
        judged(r, s, &in);
}

void report_scan_chunk(struct report *r, const struct tape_chunk *c, uint64_t seen_log_ns,
                       ns_t seen_ns)
{
    int col = report_column(r, seen_log_ns);
    r->chunks++;
    r->chunk_seen[col] = 1;
    if (c->began_ns > 0 && c->ready_ns >= c->began_ns)
        hist_add(&r->inference, c->ready_ns - c->began_ns);
    if (seen_ns >= c->anchor_ns) {
        hist_add(&r->latency, seen_ns - c->anchor_ns);
        svg_add(&r->latency_ms, col, (double)(seen_ns - c->anchor_ns) / 1e6);
    }
}

static void scan_seat(struct report *r, const struct tape_seat *s, uint64_t log_ns)
{
    struct report_seat *out = &r->seat[r->seats];
    if (r->seats == REPORT_SEATS)
        return;
    for (int i = 0; i < r->seats; i++) // each file says again who is there
        if (r->seat[i].generation == s->generation)
            return;
    out->generation = s->generation;
    out->since_s = report_at_s(r, log_ns);
    memcpy(out->name, s->name, sizeof out->name);
    memcpy(out->digest, s->digest, sizeof out->digest);
    memcpy(out->directory, s->directory, sizeof out->directory - 1);
    out->directory[sizeof out->directory - 1] = '\0';
    if (r->seats > 0)
        r->seat_seen[report_column(r, log_ns)] = 1;
    r->seats++;
}

int report_scan_seats(struct report *r, struct mcap_error *err)
{
    struct report_cursor c;
    struct tape_seat *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    int rc = report_cursor_open(&c, r, "/policy/seat", err);
    for (; c.there; report_cursor_next(&c, r)) {
        char *sidecar = NULL;
        if (record_seat_read(s, &sidecar, c.m.data, c.m.size))
            r->damaged++;
        else
            scan_seat(r, s, c.m.log_ns);
        free(sidecar);
    }
    report_cursor_close(&c);
    free(s);
    return rc;
}
