// The face of the recorder and its thread. The thread owns everything but what stands under the
// lock; it holds the lock for copies only, never while it asks the disk for something.
#include "daemon/recorder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/recorder_impl.h"
#include "daemon/rt.h"

#define TURN_BYTES    (64u << 20) // taken off the tape in one turn, at most
#define LEAST_SEGMENT (1u << 20)

// ---- begin and end -----------------------------------------------------------------------------

static void configure(struct recorder *r, const struct recorder_config *cfg)
{
    r->cfg = *cfg;
    if (r->cfg.keyframe_ns == 0)
        r->cfg.keyframe_ns = NS_PER_S;
    if (r->cfg.segment_bytes == 0)
        r->cfg.segment_bytes = UINT64_MAX;
    if (r->cfg.segment_ns == 0)
        r->cfg.segment_ns = INT64_MAX;
    // With a bound for all of them there must be some that can go.
    if (r->cfg.most_bytes > 0 && r->cfg.segment_bytes > r->cfg.most_bytes / 4)
        r->cfg.segment_bytes = r->cfg.most_bytes / 4;
    if (r->cfg.segment_bytes < LEAST_SEGMENT)
        r->cfg.segment_bytes = LEAST_SEGMENT;
    r->c.mode = cfg->mode;
    r->c.healthy = true;
    r->file.fd = r->file.dir = -1;
    r->file.disk = cfg->disk != NULL ? cfg->disk : &recorder_real_disk;
    r->file.busy_since_ns = &r->busy_since_ns;
}

int recorder_new(struct recorder **out, struct tape *tape,
                 const struct recorder_config *cfg)
{
    struct recorder *r = calloc(1, sizeof *r);
    int rc;

    *out = NULL;
    if (r == NULL)
        return -ENOMEM;
    pthread_mutex_init(&r->lock, NULL);
    configure(r, cfg);
    r->tape = tape;
    r->base_ns = clock_wall_ns() - clock_now_ns();
    for (int c = 0; c < TAPE_CLASSES; c++)
        r->trouble.tape_lost[c] = r->trouble.tape_seen[c] =
            tape_lost(tape, (enum tape_class)c);
    r->directory = strdup(cfg->directory);
    rc = r->directory != NULL ? 0 : -ENOMEM;
    rc = rc ? rc : recorder_own_init(&r->own, &cfg->facts, r->base_ns);
    rc = rc ? rc : recorder_channels_init(&r->channels, &cfg->facts);
    rc = rc ? rc : recorder_chunk_init(r);
    if (rc != 0) {
        recorder_free(r);
        return rc;
    }
    r->shown = r->c;
    tape_turn(tape, cfg->mode != RECORDER_OFF);
    *out = r;
    return 0;
}

void recorder_free(struct recorder *r)
{
    const char *what;

    if (r == NULL)
        return;
    (void)recorder_file_end(&r->file, 0, &what);
    recorder_hold_free(&r->hold);
    recorder_chunk_free(r);
    recorder_seats_free(r);
    recorder_channels_free(&r->channels);
    recorder_own_free(&r->own);
    free(r->directory);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

// ---- one turn ----------------------------------------------------------------------------------

static void show(struct recorder *r)
{
    struct timespec cpu;

    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu) == 0)
        r->c.cpu_ns = (uint64_t)cpu.tv_sec * NS_PER_S + (uint64_t)cpu.tv_nsec;
    r->c.held_bytes = r->hold.bytes;
    pthread_mutex_lock(&r->lock);
    r->shown = r->c;
    pthread_mutex_unlock(&r->lock);
}

static void ask_states(struct recorder *r)
{
    if (!tape_on(r->tape) || r->now_ns - r->state_asked_ns < r->cfg.keyframe_ns)
        return;
    r->state_asked_ns = r->now_ns;
    tape_ask_states(r->tape);
}

// True = there is more on the tape.
static bool turn(struct recorder *r, ns_t now_ns)
{
    bool more, on = r->cfg.mode != RECORDER_OFF || atomic_load(&r->by_hand);

    r->now_ns = now_ns;
    tape_turn(r->tape, on);
    ask_states(r);
    // Turned off it runs empty, and all of it belongs into the file that ends now.
    more = recorder_drain(r, on ? TURN_BYTES : UINT64_MAX);
    recorder_triggers(r);
    recorder_watch_tape(r, false);
    recorder_flow(r);
    show(r);
    return more;
}

void recorder_turn(struct recorder *r, ns_t now_ns)
{
    (void)turn(r, now_ns);
}

void recorder_finish(struct recorder *r, ns_t now_ns)
{
    r->now_ns = now_ns;
    r->trouble.retry_at_ns = now_ns; // the last chance
    recorder_triggers(r);
    if (recorder_live(r) || r->file.writer != NULL) {
        recorder_flow(r);
        tape_turn(r->tape, false);
        while (recorder_drain(r, UINT64_MAX))
            ;
        recorder_watch_tape(r, true);
        recorder_flow_end(r);
    }
    tape_turn(r->tape, false);
    show(r);
}

// ---- thread ------------------------------------------------------------------------------------

// After the first turn, so that it delays nothing; and after a file could not be ended.
static void rescue(struct recorder *r)
{
    if (!r->rescue_due || r->trouble.failing || !recorder_rescue_done(r->rescue))
        return;
    recorder_rescue_stop(r->rescue, 0);
    r->rescue = recorder_rescue_start(r->directory, r->own.instance);
    r->rescue_due = false;
}

static void *run(void *arg)
{
    struct recorder *r = arg;
    int runs = RECORDER_RUNS;

    rt_keep_off(pthread_self(), r->cfg.cpu_not);
    r->rescue_due = true;
    while (!atomic_load(&r->stop)) {
        bool more = turn(r, clock_now_ns());

        rescue(r);
        if (!more)
            clock_sleep_until(clock_now_ns() + RECORDER_POLL_NS);
    }
    recorder_finish(r, clock_now_ns());
    if (atomic_compare_exchange_strong(&r->phase, &runs, RECORDER_DONE))
        return NULL;
    recorder_rescue_stop(r->rescue, 0); // nobody waits any more
    recorder_free(r);
    return NULL;
}

int recorder_start(struct recorder **out, struct tape *tape,
                   const struct recorder_config *cfg)
{
    int rc = recorder_new(out, tape, cfg);

    if (rc != 0)
        return rc;
    rc = rt_thread_create(&(*out)->thread, "actd-recorder", RT_CLASS_PLAIN, 0, run, *out);
    if (rc != 0) {
        recorder_free(*out);
        *out = NULL;
    }
    return rc;
}

bool recorder_stop(struct recorder *r)
{
    ns_t until_ns = clock_now_ns() + RECORDER_STOP_NS;
    int runs = RECORDER_RUNS;
    pthread_t thread;

    if (r == NULL)
        return true;
    thread = r->thread;
    atomic_store(&r->stop, true);
    while (atomic_load(&r->phase) != RECORDER_DONE && clock_now_ns() < until_ns)
        clock_sleep_until(clock_now_ns() + RECORDER_POLL_NS);
    if (atomic_compare_exchange_strong(&r->phase, &runs, RECORDER_LEFT)) {
        pthread_detach(thread);
        return false;
    }
    pthread_join(thread, NULL);
    recorder_rescue_stop(r->rescue, until_ns);
    recorder_free(r);
    return true;
}

// ---- by hand -----------------------------------------------------------------------------------

int recorder_begin(struct recorder *r, char text[256])
{
    if (r->cfg.mode == RECORDER_ALWAYS || atomic_exchange(&r->by_hand, true)) {
        snprintf(text, 256, "it is being recorded already, in %.180s", r->directory);
        return -EALREADY;
    }
    snprintf(text, 256, "recording, in %.200s", r->directory);
    return 0;
}

int recorder_end(struct recorder *r, char text[256])
{
    if (!atomic_exchange(&r->by_hand, false)) {
        snprintf(
            text, 256, "%s",
            r->cfg.mode == RECORDER_ALWAYS
                ? "record.mode is always: set it to off or trigger to have it in hand"
                : "no recording was started by hand: `actctl record start` does");
        return -EALREADY;
    }
    snprintf(text, 256, "the recording ends, in %.200s", r->directory);
    return 0;
}

int recorder_mark(struct recorder *r, const char *what, char text[256])
{
    ns_t now = clock_now_ns();

    if (!tape_on(r->tape)) {
        snprintf(text, 256, "nothing is recorded: `actctl record start` first");
        return -EALREADY;
    }
    if (!tape_event(r->tape, now, TAPE_LEVEL_INFO, "mark", what)) {
        snprintf(text, 256, "no room for it: the disk does not keep up; try again");
        return -EAGAIN;
    }
    atomic_store(&r->mark_ns, now);
    snprintf(text, 256, "marked: %.200s", what);
    return 0;
}

void recorder_fault(struct recorder *r, enum ladder_reason reason, ns_t at_ns)
{
    if (r == NULL)
        return;
    atomic_store(&r->fault_reason, (int)reason);
    atomic_store(&r->fault_ns, at_ns != 0 ? at_ns : 1);
}

void recorder_seat(struct recorder *r, const struct tape_seat *seat, const char *sidecar)
{
    recorder_remember(r, seat, sidecar != NULL ? sidecar : "",
                      sidecar != NULL ? strlen(sidecar) : 0);
}

void recorder_counts(struct recorder *r, struct recorder_counts *out)
{
    ns_t busy = atomic_load_explicit(&r->busy_since_ns, memory_order_relaxed);
    ns_t hung = busy != 0 ? clock_now_ns() - busy : 0;

    pthread_mutex_lock(&r->lock);
    *out = r->shown;
    pthread_mutex_unlock(&r->lock);
    for (int c = 0; c < TAPE_CLASSES; c++)
        out->lost[c] = tape_lost(r->tape, (enum tape_class)c);
    if (hung < RECORDER_HUNG_NS)
        return;
    out->healthy = false;
    snprintf(
        out->last_error, sizeof out->last_error,
        "%.*s: the disk has not answered for %d s; see `dmesg`, or name another one in "
        "record.directory",
        200, r->directory, (int)(hung / NS_PER_S));
}
