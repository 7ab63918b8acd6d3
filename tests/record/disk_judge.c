// Does the log tell the truth about what was lost?
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/record/disk_scene.h"

#define SLACK  100 // ticks: half a second between an order and what comes of it
#define END_NS (500 * NS_PER_MS)

typedef unsigned long long u64;

struct losses {
    uint64_t ticks, frames;
    char line[600];
};

static void add(void *arg, const char *line)
{
    uint64_t ticks, frames;
    struct losses *l = arg;

    if (sscanf(line, "lost %" SCNu64 " tick records, %" SCNu64 " frames", &ticks,
               &frames) == 2) {
        l->ticks += ticks;
        l->frames += frames;
    }
}

static void keep(void *arg, const char *line)
{
    struct losses *l = arg;

    snprintf(l->line, sizeof l->line, "%.*s", (int)strcspn(line, "\n"), line);
}

int disk_judge_log(const struct disk_scene *s)
{
    struct losses said = {0};
    struct rig_log log;
    uint64_t all;
    int again = rig_log_lines(&s->daemon, "recording: again", keep, &said),
        rc = rig_read(&log, s->daemon.record, ".mcap");
    ns_t end = s->stopped_ns - log.last_tick_ns;
    bool back = end < END_NS && (again > 0 || s->trouble == SLOW), complete;

    (void)rig_log_lines(&s->daemon, "lost ", add, &said);
    all = log.ticks + said.ticks;
    complete = all + SLACK >= s->least && all <= s->most + SLACK;
    printf(
        "    %llu files: %llu ticks, %llu frames; said to be lost: %llu, %llu; the robot "
        "saw %llu to %llu ticks\n",
        (u64)log.files, (u64)log.ticks, (u64)log.frames, (u64)said.ticks,
        (u64)said.frames, (u64)s->least, (u64)s->most);
    if (again > 0)
        printf("    %s\n", said.line);
    printf(
        "    %.2f s from the first to the last tick of these files, %llu of their ticks "
        "missing\n",
        (double)(log.last_tick_ns - log.first_tick_ns) * 1e-9, (u64)log.skipped);
    // Only a slow disk need not lose anything.
    if (rc == 0 && back && complete && log.frames > 0 &&
        (said.ticks > 0 || s->trouble == SLOW))
        return 0;
    printf("    FAILED: %s\n", rc != 0 ? "a recording cannot be read"
                               : !back ? "it does not go on by itself"
                                       : "the log does not say what it lost");
    return -1;
}
