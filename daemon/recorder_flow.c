// Where finished chunks go: into a file while one is to be written, into memory until a fault
// makes them worth a file, or nowhere. Files begin, split and end here, between two chunks: every
// chunk can be read alone, so nothing is lost at a split.
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/log.h"
#include "daemon/recorder_impl.h"

#define NAMES_TRIED 100

bool recorder_live(const struct recorder *r)
{
    return atomic_load(&r->by_hand) || r->cfg.mode == RECORDER_ALWAYS ||
           (r->cfg.mode == RECORDER_TRIGGER && (r->now_ns < r->live_until_ns || r->owed));
}

// ---- end ---------------------------------------------------------------------------------------

// rc: what was wrong with it. A file that can not be ended well stays a .part, for the rescue.
static void end_file(struct recorder *r, const char *what, int rc)
{
    const char *step = "";
    uint64_t bytes = r->file.writer != NULL ? mcap_writer_bytes(r->file.writer) : 0;
    int end = recorder_file_end(&r->file, rc, &step);

    if (rc == -ENOENT) { // nobody will find it again
        r->trouble.lost.ticks += r->in_file.ticks;
        r->trouble.lost.frames += r->in_file.frames;
        r->trouble.lost.others += r->in_file.others;
        r->c.lost_messages += r->in_file.ticks + r->in_file.frames + r->in_file.others;
    }
    if (rc != 0)
        recorder_failed(r, what, rc);
    else if (end != 0)
        recorder_failed(r, step, end);
    if (end != 0)
        r->rescue_due = true;
    r->previous_end_ns = r->now_ns;
    r->previous[0] = 0;
    if (end == 0 && !r->file.fault)
        memcpy(r->previous, r->file.name, sizeof r->previous);
    if (end == 0 && r->file.name[0] != 0) {
        snprintf(r->c.file, sizeof r->c.file, "%.700s/%s", r->directory, r->file.name);
        log_line(LOG_INFO, "recorded: %s, %.1f MB", r->c.file, (double)bytes / 1e6);
    }
    r->c.recording = false;
}

// ---- begin -------------------------------------------------------------------------------------

static int make_room(struct recorder *r, int dir, const char **what)
{
    struct recorder_room q = {
        .keep_free = r->cfg.keep_free_bytes,
        .most = r->cfg.most_bytes,
        .written = r->file.writer != NULL ? mcap_writer_bytes(r->file.writer) : 0,
    };
    int rc;

    *what = "make room for new recordings";
    rc = recorder_room_make(&q, r->file.disk, dir, r->own.instance);
    r->room_kept = q.kept;
    r->room_seen_ns = r->now_ns;
    r->c.removed += q.removed;
    if (q.removed > 0)
        log_line(LOG_INFO, "recording: removed the oldest to make room: %llu",
                 (unsigned long long)q.removed);
    return rc;
}

// A name of this second may be taken, by the run before: the next number is not.
static int begin_named(struct recorder *r, const char **what)
{
    char name[RECORDER_NAME];
    int rc = -EEXIST;

    for (int i = 0; i < NAMES_TRIED && rc == -EEXIST; i++) {
        rc = recorder_name(name, r->own.instance, r->now_ns + r->base_ns, ++r->number);
        if (rc == 0)
            rc = recorder_file_begin(&r->file, r->directory, name, &r->own, r->now_ns,
                                     what);
    }
    return rc;
}

static int begin(struct recorder *r, const char **what)
{
    int dir = recorder_directory(r->directory), rc;

    *what = "use the directory";
    if (dir < 0)
        return dir;
    rc = make_room(r, dir, what);
    close(dir);
    return rc ? rc : begin_named(r, what);
}

static void account(struct recorder *r, const struct mcap_chunk *c)
{
    r->c.messages += c->facts.messages;
    r->c.bytes += c->n;
    recorder_losses_add(&r->in_file, &c->facts);
}

static bool put(struct recorder *r, const struct mcap_chunk *c)
{
    int rc = recorder_file_put(&r->file, &r->channels, c);

    if (rc == 0)
        account(r, c);
    else
        end_file(r, "write a file", rc);
    return rc == 0;
}

// Policies, then what is in memory. A chunk leaves the memory when it is in the file.
static void put_beginning(struct recorder *r)
{
    const struct mcap_chunk *held = recorder_hold_first(&r->hold);
    ns_t from_ns = held != NULL && held->facts.start_ns > 0
                       ? (ns_t)held->facts.start_ns - r->base_ns
                       : r->now_ns;
    struct mcap_chunk *seats = recorder_seats_chunk(r, from_ns);

    if (seats != NULL && put(r, seats))
        r->file.repeated = seats->facts.messages;
    mcap_chunk_free(seats);
    while (r->file.writer != NULL && (held = recorder_hold_first(&r->hold)) != NULL)
        if (put(r, held))
            recorder_hold_drop(&r->hold);
}

static bool have_file(struct recorder *r)
{
    const char *what = "";
    int rc;

    if (r->file.writer != NULL)
        return true;
    if (r->trouble.failing && r->now_ns < r->trouble.retry_at_ns)
        return false;
    rc = begin(r, &what);
    if (rc != 0) {
        recorder_failed(r, what, rc);
        return false;
    }
    r->in_file = (struct recorder_losses){0};
    r->c.recording = true;
    if (r->fault_pending ||
        (r->last_fault_ns != 0 && r->now_ns - r->last_fault_ns < r->cfg.after_ns))
        recorder_file_fault(&r->file);
    r->fault_pending = false;
    snprintf(r->c.file, sizeof r->c.file, "%.700s/%s" RECORDER_PART, r->directory,
             r->file.name);
    put_beginning(r);
    if (r->file.writer == NULL)
        return false;
    r->owed = false;
    r->c.files++;
    tape_ask_states(r->tape);
    r->state_asked_ns = r->now_ns;
    return true;
}

// ---- chunks ------------------------------------------------------------------------------------

static void split_if_due(struct recorder *r)
{
    if (mcap_writer_bytes(r->file.writer) < r->cfg.segment_bytes &&
        r->now_ns - r->file.begun_ns < r->cfg.segment_ns)
        return;
    if (r->trouble.failing)
        recorder_went_well(r);
    end_file(r, "", 0);
}

// What waits for a file is lost when it goes, and counted; what nobody asked for yet is not.
static void keep(struct recorder *r, struct mcap_chunk *c, bool live)
{
    const struct mcap_chunk *oldest;

    while (live && !recorder_hold_fits(&r->hold, c, r->cfg.memory_bytes) &&
           (oldest = recorder_hold_first(&r->hold)) != NULL) {
        recorder_lost_chunk(r, &oldest->facts);
        recorder_hold_drop(&r->hold);
    }
    if (live && !recorder_hold_fits(&r->hold, c, r->cfg.memory_bytes))
        recorder_lost_chunk(r, &c->facts);
    recorder_hold_put(&r->hold, c, r->now_ns, live ? INT64_MAX / 2 : r->cfg.before_ns,
                      r->cfg.memory_bytes);
}

void recorder_chunk_out(struct recorder *r, struct mcap_chunk *c)
{
    bool live = r->file.writer != NULL || recorder_live(r);

    if (live && have_file(r) && put(r, c)) {
        mcap_chunk_free(c);
        split_if_due(r);
        return;
    }
    // Past after_s, and no disk yet for what led to the fault: that is not to make room for more.
    if (r->owed && r->now_ns >= r->live_until_ns + RECORDER_CHUNK_NS &&
        !atomic_load(&r->by_hand)) {
        mcap_chunk_free(c);
        return;
    }
    if (r->cfg.mode == RECORDER_TRIGGER) {
        keep(r, c, live);
        r->owed |= live;
        return;
    }
    if (live)
        recorder_lost_chunk(r, &c->facts);
    mcap_chunk_free(c);
}

// ---- triggers ----------------------------------------------------------------------------------

static void trigger(struct recorder *r, ns_t at_ns)
{
    if (r->cfg.mode != RECORDER_TRIGGER)
        return;
    // Seen late, or with an after_s of 0, it is to be written all the same.
    r->owed |= r->file.writer == NULL;
    if (at_ns + r->cfg.after_ns > r->live_until_ns)
        r->live_until_ns = at_ns + r->cfg.after_ns;
}

// What led to the fault may be in the segment that ended just before it.
static void keep_previous(struct recorder *r, ns_t fault_ns)
{
    char name[RECORDER_NAME], from[PATH_MAX], to[PATH_MAX];

    if (r->previous[0] == 0 || r->cfg.mode == RECORDER_TRIGGER ||
        fault_ns - r->previous_end_ns >= r->cfg.before_ns)
        return;
    recorder_name_fault(name, r->previous);
    snprintf(from, sizeof from, "%.3000s/%s", r->directory, r->previous);
    snprintf(to, sizeof to, "%.3000s/%s", r->directory, name);
    (void)!rename(from, to); // it may have gone to make room
    r->previous[0] = 0;
}

void recorder_triggers(struct recorder *r)
{
    ns_t fault = atomic_exchange(&r->fault_ns, 0), mark = atomic_exchange(&r->mark_ns, 0);
    char text[80];

    if (mark != 0)
        trigger(r, mark);
    if (fault == 0 || !tape_on(r->tape))
        return;
    snprintf(text, sizeof text, "%s",
             ladder_reason_name((enum ladder_reason)atomic_load(&r->fault_reason)));
    recorder_event(r, fault, TAPE_LEVEL_ERROR, "fault", text);
    trigger(r, fault);
    keep_previous(r, fault);
    r->last_fault_ns = fault;
    if (r->file.writer != NULL)
        recorder_file_fault(&r->file);
    else
        r->fault_pending = recorder_live(r);
}

// ---- every turn --------------------------------------------------------------------------------

// Space may go because of others, too: looked at every second.
static int room_left(struct recorder *r, const char **what)
{
    int64_t there = r->file.disk->free_bytes(r->file.disk->arg, r->file.dir);
    uint64_t ours = r->room_kept + mcap_writer_bytes(r->file.writer);

    if ((there < 0 || (uint64_t)there >= r->cfg.keep_free_bytes) &&
        (r->cfg.most_bytes == 0 || ours <= r->cfg.most_bytes))
        return 0;
    return make_room(r, r->file.dir, what);
}

static void look_after(struct recorder *r)
{
    const char *what = "";
    int rc;

    if (r->now_ns - r->file.synced_ns < RECORDER_SYNC_NS)
        return;
    // Whoever is killed during a sync that takes its time shall have lost nothing from before it.
    recorder_chunk_close_due(r, true);
    if (r->file.writer == NULL)
        return;
    rc = recorder_file_look(&r->file, r->now_ns, &what);
    rc = rc ? rc : room_left(r, &what);
    if (rc != 0)
        end_file(r, what, rc);
    else if (r->trouble.failing)
        recorder_went_well(r);
}

static void close_file(struct recorder *r)
{
    if (r->trouble.failing && r->file.writer != NULL)
        recorder_went_well(r);
    recorder_chunk_close_due(r, true);
    if (r->file.writer != NULL)
        end_file(r, "", 0);
}

void recorder_flow(struct recorder *r)
{
    if (recorder_live(r))
        (void)have_file(r);
    recorder_seats_new(r);
    recorder_chunk_close_due(r, false);
    if (r->file.writer != NULL && recorder_live(r))
        look_after(r);
    else if (r->file.writer != NULL)
        close_file(r);
    if (r->file.slowest_ns > r->c.slowest_write_ns)
        r->c.slowest_write_ns = r->file.slowest_ns;
}

void recorder_flow_end(struct recorder *r)
{
    if (r->file.writer == NULL && !recorder_live(r))
        return;
    close_file(r);
    for (const struct mcap_chunk *c; (c = recorder_hold_first(&r->hold)) != NULL;) {
        recorder_lost_chunk(r, &c->facts); // there was no disk for it to the end
        recorder_hold_drop(&r->hold);
    }
}
