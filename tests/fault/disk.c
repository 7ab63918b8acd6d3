// The black box and its disk. The loop writes its ring, a fault is injected, and the writer looks
// every 10 ms of virtual time, as its thread does; what it writes with is the test's.
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/blackbox_impl.h"
#include "tests/fault/matrix.h"

#define LOOK_TICKS 2 // 10 ms

static struct {
    char dir[WORLD_PATH];
    struct blackbox *ring;
    struct blackbox_writer *writer;
    ns_t busy_until; // the writer's thread is in a write
} box;

static ssize_t seam(int fd, const void *data, size_t n)
{
    const struct world *w = world_current;
    const struct injection *one =
        injector_find(&w->injector, INJECT_DISK, 0, world_ordinal(w, w->now));

    if (one && (one->verb == VERB_OFF || one->verb == VERB_GARBAGE)) {
        errno = one->verb == VERB_OFF ? ENOSPC : EIO;
        return -1;
    }
    if (one && one->verb == VERB_SLOW) {
        ns_t from = box.busy_until > w->now ? box.busy_until : w->now;

        box.busy_until = from + (ns_t)(one->magnitude * (double)NS_PER_MS);
    }
    return write(fd, data, n);
}

static void record(struct world_config *c)
{
    if (world_scratch(box.dir, "box") &&
        blackbox_new(&box.ring, c->loop.joints, c->loop.n_cameras, c->loop.control_hz) ==
            0)
        c->loop.blackbox = box.ring;
}

static void record_nowhere(struct world_config *c)
{
    record(c);
    rmdir(box.dir);
    FILE *f = fopen(box.dir, "w"); // a file where the directory was
    if (f)
        fclose(f);
}

static void start_writer(struct world *w)
{
    static const char *const joint[] = {"joint0", "joint1", "joint2"};
    static const char *const camera[] = {"front", "wrist"};
    const struct blackbox_writer_config c = {.directory = box.dir,
                                             .instance = "fault",
                                             .joint = joint,
                                             .camera = camera,
                                             .write = seam};

    (void)w;
    (void)blackbox_writer_make(&box.writer, box.ring, &c);
}

static void look(struct world *w, uint64_t since)
{
    if (since == 0)
        start_writer(w);
    if (box.writer && since % LOOK_TICKS == 0 && w->now >= box.busy_until)
        (void)blackbox_writer_poll(box.writer, w->now, false);
}

static void disk(struct world *w, uint64_t since, enum inject_verb verb, double magnitude)
{
    if (since == 0)
        world_inject(w, (struct injection){.target = INJECT_DISK,
                                           .verb = verb,
                                           .ticks = 200,
                                           .magnitude = magnitude});
    look(w, since);
}

static void look_full(struct world *w, uint64_t since)
{
    disk(w, since, VERB_OFF, 0);
}

static void look_broken(struct world *w, uint64_t since)
{
    disk(w, since, VERB_GARBAGE, 0);
}

// A second fault while the writer is still busy with the first.
static void look_slow(struct world *w, uint64_t since)
{
    disk(w, since, VERB_SLOW, 300);
    if (since == 60)
        blackbox_trigger(box.ring, REASON_INTERNAL);
}

static struct blackbox_counts counts(void)
{
    struct blackbox_counts c = {0};

    if (box.writer)
        blackbox_writer_counts(box.writer, &c);
    return c;
}

static bool dumped(struct probe *p)
{
    return counts().dumped > 0 && p->w->now >= box.busy_until;
}

static bool failed(struct probe *p)
{
    (void)p;
    return counts().failed > 0;
}

static bool stopping(struct probe *p)
{
    return p->entered[LADDER_STOPPING] > 0;
}

// Lines of the file, 0 when it can not be read; names: does it say the reason?
static int lines(const char *path, const char *reason, bool *named)
{
    FILE *f = fopen(path, "r");
    static char text[64 * 1024];
    int n = 0;

    *named = false;
    while (f && fgets(text, sizeof text, f)) {
        n++;
        *named = *named || strstr(text, reason);
    }
    if (f)
        fclose(f);
    return n;
}

// One when it begins to stop and one when it is at rest. In the second there is the whole of the
// run so far: a line for each tick, and a heading.
static const char *whole_story(struct probe *p)
{
    struct blackbox_counts c = counts();
    bool named;
    int n = lines(c.last_path, "JOINTS_STALE", &named);

    if (c.dumped != 2 || c.failed != 0)
        return "not exactly two dumps";
    if (n < (int)p->entered[LADDER_STOPPED] || !named)
        return "the dump does not tell all of it";
    return NULL;
}

// Nothing is left half written, it is said, and the loop has not noticed.
static const char *said_and_survived(struct probe *p)
{
    struct blackbox_counts c = counts();
    const struct loop_report *r = world_report(p->w);

    if (c.failed < 1 || c.dumped != 0)
        return "the failure is not counted";
    if (!strstr(c.last_error, box.dir) && c.last_error[0] == 0)
        return "the failure is not told";
    if (r->skipped != p->before.skipped)
        return "the loop noticed";
    return NULL;
}

// With the disk back the next fault is written.
static const char *and_resumes(struct probe *p)
{
    const char *why = said_and_survived(p);

    if (why)
        return why;
    blackbox_trigger(box.ring, REASON_LOOP_STALLED);
    (void)blackbox_writer_poll(box.writer, p->w->now, false);
    return counts().dumped == 1 ? NULL : "it does not resume";
}

// Both faults are written, and nobody has waited for it.
static const char *both_in_the_end(struct probe *p)
{
    struct blackbox_counts c = counts();

    if (c.dumped != 2 || c.failed != 0)
        return "not two dumps";
    if (world_report(p->w)->skipped != p->before.skipped)
        return "the loop noticed";
    return NULL;
}

#define STALL                                                   \
    {                                                           \
        .target = INJECT_JOINTS, .verb = VERB_OFF, .ticks = 200 \
    }

static const struct scenario of[] = {
    {.name = "black box of a stop",
     .bound = "a file within 100 ms",
     .detector = BLIND_BLACKBOX,
     .configure = record,
     .inject = STALL,
     .act = look,
     .begins = stopping,
     .seen = dumped,
     .least = 1,
     .most = 1,
     .reason = REASON_JOINTS_STALE,
     .path = "HOLD STOPPING STOPPED",
     .stop_after = -1,
     .recovery = STAYS,
     .check = whole_story},
    {.name = "black box, disk full",
     .bound = "counted, told; the loop goes on",
     .detector = BLIND_DISK,
     .configure = record,
     .inject = STALL,
     .act = look_full,
     .begins = stopping,
     .seen = failed,
     .least = 1,
     .most = 1,
     .reason = REASON_JOINTS_STALE,
     .path = "HOLD STOPPING STOPPED",
     .stop_after = -1,
     .recovery = STAYS,
     .check = and_resumes},
    {.name = "black box, disk broken (EIO)",
     .bound = "counted, told; the loop goes on",
     .detector = BLIND_DISK,
     .configure = record,
     .inject = STALL,
     .act = look_broken,
     .begins = stopping,
     .seen = failed,
     .least = 1,
     .most = 1,
     .reason = REASON_JOINTS_STALE,
     .path = "HOLD STOPPING STOPPED",
     .stop_after = -1,
     .recovery = STAYS,
     .check = and_resumes},
    {.name = "black box, disk slow, 300 ms a write",
     .bound = "whole, late; the loop goes on",
     .detector = BLIND_BLACKBOX,
     .configure = record,
     .inject = STALL,
     .act = look_slow,
     .begins = stopping,
     .seen = dumped,
     .least = 60,
     .most = 60,
     .reason = REASON_JOINTS_STALE,
     .path = "HOLD STOPPING STOPPED",
     .stop_after = -1,
     .settle = 1000,
     .recovery = STAYS,
     .check = both_in_the_end},
    {.name = "black box, its directory is none",
     .bound = "counted, told; the loop goes on",
     .detector = BLIND_DISK,
     .configure = record_nowhere,
     .inject = STALL,
     .act = look,
     .seen = failed,
     .least = 0,
     .most = 0,
     .reason = REASON_JOINTS_STALE,
     .path = "HOLD STOPPING STOPPED",
     .stop_after = -1,
     .recovery = STAYS,
     .check = said_and_survived},
};

const struct scenario_group group_disk = {"black box", of, sizeof of / sizeof *of};
