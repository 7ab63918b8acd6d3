// What a run cost, told and judged.
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/swap/swaps_run.h"

#define SETTLE 20 // swaps before memory counts
#define GROWTH 0.01

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void say_times(const struct swaps_run *r, const char *what, size_t offset)
{
    static double v[SWAPS_MAX];
    int n = r->done < SWAPS_MAX ? r->done : SWAPS_MAX;

    for (int i = 0; i < n; i++)
        v[i] = *(const double *)((const char *)&r->times[i] + offset);
    qsort(v, (size_t)n, sizeof *v, by_value);
    if (n > 0)
        printf("  %-8s median %7.1f ms, 99 %% %7.1f ms, worst %7.1f ms\n", what, v[n / 2],
               v[n * 99 / 100], v[n - 1]);
}

static double per_10000(uint64_t n, const struct swaps_seen *s)
{
    return s->ticks ? 1e4 * (double)n / (double)s->ticks : 0;
}

static void say_turns(const char *what, const struct swaps_seen *s)
{
    printf(
        "  %-10s %8llu ticks: of 10 000 %.2f skipped (in %.2f gaps), %.2f late by a period, "
        "%.1f by 1 ms",
        what, (unsigned long long)s->ticks, per_10000(s->skipped, s),
        per_10000(s->gaps, s), per_10000(s->late_period, s), per_10000(s->late_ms, s));
    if (s->commands > 0)
        printf("; RUNNING %.0f %%, %.0f rad",
               100.0 * (double)s->in_mode[ACTD__V1__MODE__MODE_RUNNING] /
                   (double)s->commands,
               s->moved_rad);
    printf("\n");
}

static void say_twin(const char *what, const struct twin_seen *t)
{
    struct swaps_seen s = {.ticks = t->ticks,
                           .skipped = t->skipped,
                           .gaps = t->gaps,
                           .late_ms = t->late_ms,
                           .late_period = t->late_period};

    say_turns(what, &s);
}

// Swaps are work, and this machine may lose deadlines of any thread when there is work: so the
// loop is held against its twin, which had the same core at the same time. More than by chance
// (three standard deviations) is a cost of swaps.
static void judge_turns(struct swaps_run *r, const struct swaps_seen *without,
                        const struct swaps_seen *with)
{
    const struct twin_seen *twin = &r->twin_with;
    double sigma, more = twin_beyond(without->gaps, without->ticks, with->gaps,
                                     with->ticks, &sigma);

    printf("ticks\n");
    say_turns("without", without);
    say_turns("with", with);
    say_twin("twin, w/o", &r->twin_without);
    say_twin("twin, with", twin);
    printf("  gaps beyond those without swaps: %.1f (standard deviation %.1f)", more,
           sigma);
    more = twin_beyond(twin->gaps, twin->ticks, with->gaps, with->ticks, &sigma);
    printf("; beyond its twin's: %.1f (%.1f); ticks missed around %d commits: %d\n", more,
           sigma, r->done, r->missed_at_commit);
    if (more > 3 * fmax(sigma, 1))
        swaps_fail(r, "swaps make the loop skip: %.1f gaps more than its twin", more);
}

static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static int middle(const int *of, int n)
{
    static int v[SWAPS_MAX];

    memcpy(v, of, (size_t)n * sizeof *v);
    qsort(v, (size_t)n, sizeof *v, by_number);
    return v[n / 2];
}

// Medians: in a single look there may be one that is on its way (a file of the kernel's, a client
// that the daemon has closed).
static void judge_descriptors(struct swaps_run *r, int n)
{
    int part = (n - SETTLE) / 5, most = 0;
    int first = middle(r->fds + SETTLE, part), last = middle(r->fds + n - part, part);

    for (int i = SETTLE; i < n; i++)
        most = r->fds[i] > most ? r->fds[i] : most;
    printf("descriptors %d at first, %d at last, at most %d\n", first, last, most);
    if (first != last || most > first + 2)
        swaps_fail(r, "descriptors are not constant: %d, %d, %d", first, last, most);
}

static void judge_memory(struct swaps_run *r)
{
    int n = r->n_samples < SWAPS_MAX ? r->n_samples : SWAPS_MAX, part;
    double first = 0, last = 0, growth;

    if (n < SETTLE + 10) {
        printf("memory and descriptors are not judged by so few swaps\n");
        return;
    }
    judge_descriptors(r, n);
    part = (n - SETTLE) / 10 > 3 ? (n - SETTLE) / 10 : 3;
    for (int i = 0; i < part; i++) {
        first += (double)r->rss_kib[SETTLE + i] / part;
        last += (double)r->rss_kib[n - 1 - i] / part;
    }
    growth = last / first - 1;
    printf("memory %.1f MiB at first, %.1f after %d swaps, %.1f at last: %+.2f %%\n",
           (double)r->rss_kib[0] / 1024, first / 1024, SETTLE, last / 1024, 100 * growth);
    if (growth > GROWTH)
        swaps_fail(r, "it grows by %.2f %%", 100 * growth);
}

static void judge_counts(struct swaps_run *r, const uint64_t before[3])
{
    static const char *const name[3] = {"actd-loop", "actd-infer", "actd-pool"};

    if (!r->world.counted) {
        printf("allocations are not counted in this build\n");
        return;
    }
    printf("allocations, frees and mappings:");
    for (int i = 0; i < 3; i++) {
        uint64_t n = swaps_world_counted(&r->world, name[i]) - before[i];

        printf(" %s %llu", name[i], (unsigned long long)n);
        if (n > 0)
            swaps_fail(r, "%s asked for memory %llu times", name[i],
                       (unsigned long long)n);
    }
    printf("; actd-swap %llu\n",
           (unsigned long long)swaps_world_counted(&r->world, "actd-swap"));
}

void swaps_judge_limits(struct swaps_run *r)
{
    struct swaps_seen s;

    swaps_eye_look(r->eye, &s);
    printf(
        "commands: %llu, %llu not seen; at most %.4f of a velocity, %.4f of an acceleration "
        "limit; beyond: %llu %s\n",
        (unsigned long long)s.commands, (unsigned long long)s.lost, s.worst_v, s.worst_a,
        (unsigned long long)s.broken, s.first_broken);
    if (s.broken > 0)
        swaps_fail(r, "a command beyond a limit: %s", s.first_broken);
    if (s.moved_rad < 1)
        swaps_fail(r, "the arm did not move");
}

static void say_steps(const struct swaps_run *r)
{
    printf(
        "%d swaps done (%d back, %d forced, largest difference %.4f rad), %d refused; during "
        "a swap: %d of %d second ones busy, %d disarms, %d e-stops (%d given up), %d clients "
        "gone; armed again %d times, %d asked again for want of time, %d waited up to %.0f ms "
        "for the last one to be put away\n",
        r->done, r->back, r->forced, r->worst_difference, r->refused, r->busy,
        (r->next_trouble + 3) / 4, r->disarmed, r->estopped, r->abandoned, r->left,
        r->rearmed, r->no_time, r->waited, r->waited_ms);
    say_times(r, "total", offsetof(struct swaps_times, total));
    say_times(r, "load", offsetof(struct swaps_times, load));
    say_times(r, "trials", offsetof(struct swaps_times, trial));
    say_times(r, "commit", offsetof(struct swaps_times, commit));
}

void swaps_judge(struct swaps_run *r, const struct swaps_seen *without,
                 const struct swaps_seen *with, const uint64_t counted[3])
{
    say_steps(r);
    judge_turns(r, without, with);
    swaps_judge_limits(r);
    judge_memory(r);
    judge_counts(r, counted);
}
