// What went wrong, said once per cause, with the remedy; and what was lost by it, said when it is
// over: in the log, and as an event in the recording itself.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/log.h"
#include "daemon/recorder_impl.h"

#define QUIET_NS NS_PER_S        // without a loss: it is over
#define SAY_NS   (10 * NS_PER_S) // it goes on: say it all the same

static const char *remedy(int rc)
{
    switch (-rc) {
    case ENOSPC:
    case EDQUOT:
        return "free some space there, lower record.keep_free_mb, or name another place in "
               "record.directory";
    case EFBIG:
        return "raise the limit on file sizes (ulimit -f, LimitFSIZE=)";
    case EROFS:
        return "mount it writable or name another place in record.directory";
    case EACCES:
    case EPERM:
        return "give it to the user that actd runs as or name another place in "
               "record.directory";
    case ENOTDIR:
    case EEXIST:
    case EISDIR:
        return "move away what lies there or name another place in record.directory";
    case ENOENT:
        return "it was removed while it was written; leave it to actd, which begins a new one";
    case ENOMEM:
        return "free some memory";
    case EIO:
        return "the disk fails: see `dmesg`, and name another one in record.directory";
    default:
        return "name a place in record.directory that actd can write to";
    }
}

void recorder_failed(struct recorder *r, const char *what, int rc)
{
    struct recorder_trouble *t = &r->trouble;
    bool again = t->failing && t->rc == rc && t->what == what;

    if (!t->failing) {
        t->since_ns = r->now_ns;
        t->backoff_ns = RECORDER_RETRY_NS;
    } else {
        t->backoff_ns = 2 * t->backoff_ns < RECORDER_RETRY_MOST ? 2 * t->backoff_ns
                                                                : RECORDER_RETRY_MOST;
    }
    t->failing = true;
    t->retry_at_ns = r->now_ns + t->backoff_ns;
    t->rc = rc;
    t->what = what;
    r->c.healthy = false;
    snprintf(r->c.last_error, sizeof r->c.last_error, "%.*s: cannot %s: %s; %s", 200,
             r->directory, what, strerror(-rc), remedy(rc));
    if (!again)
        log_line(LOG_WARN, "recording: %s", r->c.last_error);
}

static void say(struct recorder *r, enum tape_level level, const char *text)
{
    log_line(level == TAPE_LEVEL_INFO ? LOG_INFO : LOG_WARN, "recording: %s", text);
    recorder_event(r, r->now_ns, level, "record", text);
}

void recorder_went_well(struct recorder *r)
{
    struct recorder_trouble *t = &r->trouble;
    char text[400];

    if (!t->failing)
        return;
    t->failing = false;
    r->c.healthy = true;
    r->c.last_error[0] = 0;
    snprintf(text, sizeof text,
             "again, after %.1f s: lost %" PRIu64 " tick records, %" PRIu64
             " frames and %" PRIu64 " other messages because actd could not %s: %s",
             (double)(r->now_ns - t->since_ns) * 1e-9, t->lost.ticks, t->lost.frames,
             t->lost.others, t->what, strerror(-t->rc));
    t->lost = (struct recorder_losses){0};
    say(r, TAPE_LEVEL_WARNING, text);
}

void recorder_losses_add(struct recorder_losses *to, const struct mcap_chunk_facts *f)
{
    for (int i = 0; i < f->n_channels; i++) {
        uint16_t id = f->channel[i].id;

        *(id == TOPIC_TICK      ? &to->ticks
          : id >= TOPIC_CAMERAS ? &to->frames
                                : &to->others) += f->channel[i].messages;
    }
}

void recorder_lost_chunk(struct recorder *r, const struct mcap_chunk_facts *f)
{
    r->c.lost_messages += f->messages;
    recorder_losses_add(&r->trouble.lost, f);
}

// ---- what found no room on the tape --------------------------------------------------------------

static void say_tape(struct recorder *r)
{
    struct recorder_trouble *t = &r->trouble;
    uint64_t n[TAPE_CLASSES];
    char text[300];

    for (int c = 0; c < TAPE_CLASSES; c++) {
        n[c] = t->tape_seen[c] - t->tape_lost[c];
        t->tape_lost[c] = t->tape_seen[c];
    }
    t->tape_lost_ns = t->tape_since_ns = 0;
    snprintf(text, sizeof text,
             "could not keep up: lost %" PRIu64 " tick records, %" PRIu64
             " frames, %" PRIu64 " joint states, inputs and commands, %" PRIu64
             " chunks, %" PRIu64
             " events; see how fast the disk is, or record less (record.frames)",
             n[TAPE_TICKS], n[TAPE_FRAMES], n[TAPE_BUS], n[TAPE_CHUNKS], n[TAPE_EVENTS]);
    say(r, TAPE_LEVEL_WARNING, text);
}

void recorder_watch_tape(struct recorder *r, bool last)
{
    struct recorder_trouble *t = &r->trouble;

    for (int c = 0; c < TAPE_CLASSES; c++) {
        uint64_t lost = tape_lost(r->tape, (enum tape_class)c);

        r->c.lost[c] = lost;
        if (lost == t->tape_seen[c])
            continue;
        t->tape_seen[c] = lost;
        t->tape_lost_ns = r->now_ns;
        if (t->tape_since_ns == 0)
            t->tape_since_ns = r->now_ns;
    }
    if (t->tape_lost_ns != 0 && (last || r->now_ns - t->tape_lost_ns >= QUIET_NS ||
                                 r->now_ns - t->tape_since_ns >= SAY_NS))
        say_tape(r);
}
