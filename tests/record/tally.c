#include "tests/record/tally.h"

#include <math.h>
#include <stdio.h>

#define SIGMAS 3 // so much is chance

typedef unsigned long long u64;

void rig_tally_measure(struct rig_tally *t, struct rig_robot *r, struct twin *twin,
                       int half, ns_t ns)
{
    struct rig_half *h = &t->half[half];
    uint64_t gaps = r->gaps[half], skipped = r->skipped[half];
    size_t n = r->lateness[half].n;
    struct twin_seen from, to;

    twin_look(twin, &from);
    rig_robot_measure(r, half, ns);
    twin_look(twin, &to);
    twin_add(&h->twin, &from, &to);
    gaps = r->gaps[half] - gaps;
    skipped = r->skipped[half] - skipped;
    for (size_t i = n; i < r->lateness[half].n; i++)
        if (r->lateness[half].v[i] > h->worst_ns)
            h->worst_ns = r->lateness[half].v[i];
    h->ticks += r->lateness[half].n - n + skipped;
    h->gaps += gaps;
    h->skipped += skipped;
    if (h->rounds < RIG_ROUNDS)
        h->of_round[h->rounds++] = (double)gaps;
}

void rig_tally_add(struct rig_tally *sum, const struct rig_tally *t)
{
    static const struct twin_seen none;

    for (int i = 0; i < 2; i++) {
        struct rig_half *to = &sum->half[i];
        const struct rig_half *h = &t->half[i];

        to->ticks += h->ticks;
        to->gaps += h->gaps;
        to->skipped += h->skipped;
        to->worst_ns = h->worst_ns > to->worst_ns ? h->worst_ns : to->worst_ns;
        twin_add(&to->twin, &none, &h->twin);
        for (int k = 0; k < h->rounds && to->rounds < RIG_ROUNDS; k++)
            to->of_round[to->rounds++] = h->of_round[k];
    }
}

static void say_half(const char *what, const struct rig_half *h)
{
    printf("    %-8s %6llu ticks: %llu gaps (%llu ticks skipped), worst %.1f ms; its "
           "twin %llu of %llu (%llu skipped)\n",
           what, (u64)h->ticks, (u64)h->gaps, (u64)h->skipped, (double)h->worst_ns * 1e-6,
           (u64)h->twin.gaps, (u64)h->twin.ticks, (u64)h->twin.skipped);
}

static int rounds(const struct rig_tally *t)
{
    int a = t->half[0].rounds, b = t->half[1].rounds;

    return a < b ? a : b;
}

// What recording costs is the difference between the halves: a loop at 1 kHz with four cameras
// skips more ticks than a thread that does nothing, in both. The twin has the same moments; halves
// without have not, and what the machine does comes and goes: there the spread between rounds
// counts where it is more than that of chance.
static double spread(const struct rig_tally *t)
{
    const double *off = t->half[0].of_round, *on = t->half[1].of_round;
    double mean = 0, sum = 0;
    int n = rounds(t);

    for (int i = 0; i < n; i++)
        mean += (on[i] - off[i]) / n;
    for (int i = 0; i < n; i++)
        sum += (on[i] - off[i] - mean) * (on[i] - off[i] - mean);
    return n > 1 ? sqrt(sum / (n - 1) * n) : 0;
}

int rig_tally_judge(const char *what, const struct rig_tally *t)
{
    const struct rig_half *off = &t->half[0], *on = &t->half[1];
    double s_on, s_twin, s_off,
        twin =
            twin_beyond(on->twin.gaps, on->twin.ticks, on->gaps, on->ticks, &s_on) -
            twin_beyond(off->twin.gaps, off->twin.ticks, off->gaps, off->ticks, &s_twin),
        more = twin_beyond(off->gaps, off->ticks, on->gaps, on->ticks, &s_off);
    bool bad;

    s_twin = fmax(hypot(s_on, s_twin), 1);
    s_off = fmax(fmax(s_off, spread(t)), 1);
    bad = twin > SIGMAS * s_twin || more > SIGMAS * s_off || on->ticks == 0;
    printf("  %s, %d rounds\n", what, rounds(t));
    say_half("without", off);
    say_half("with", on);
    printf(
        "    gaps beyond those without recording: %.1f (standard deviation %.1f); the same, of "
        "those beyond its twin's: %.1f (%.1f)%s\n",
        more, s_off, twin, s_twin, bad ? "  FAILED: recording makes ticks late" : "");
    return bad ? -1 : 0;
}
