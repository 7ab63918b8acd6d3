// bench_loop: is the loop as punctual as the machine allows? Three answers in one run:
//
//   1. wake-up lateness of our loop thread beside cyclictest's (Debian's rt-tests), same core,
//      same priority, short rounds of the two in turn; idle, with every core computing a
//      policy, with every core spinning
//   2. processor time of a tick: 14 joints, 4 live chunks, every blend mode
//   3. joint message in, command that used it out, beside a bare libzmq pair
//
// The machine's noise comes and goes in minutes, so what is judged of 1 is the median over
// rounds of (our p99 / cyclictest's p99 of the same round). Both hold /dev/cpu_dma_latency at 0,
// which is what cyclictest does: otherwise it would measure a machine that is awake and we one
// that sleeps. Exit status 0 unless something cannot run: a busy machine is not a failure.
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/rt.h"
#include "tests/bench/bench_loop.h"

#define ROUNDS_MOST 99
#define GOAL_RATIO  1.2
#define PARTS       "ltw"
#define ALL_LOADS   "idle,inference,hogs"

struct options {
    int rounds, ticks, messages;
    double seconds; // of a round at 1 kHz; at 200 Hz twice as long
    bool quick;
    const char *parts, *loads;
    struct bench_place at;
};

static const char help[] =
    "usage: bench_loop [options]\n"
    "  -r, --rounds N     rounds of each side              (21)\n"
    "  -s, --seconds S    of a round at 1 kHz, twice that at 200 Hz (1)\n"
    "  -t, --ticks N      ticks for the processor time     (4000)\n"
    "  -m, --messages N   joint messages per load          (1500)\n"
    "  -c, --cpu N        the core of the loop             (as actd chooses)\n"
    "  -p, --priority N   SCHED_FIFO                       (50)\n"
    "      --parts LIST   l lateness, t ticks, w wire      (ltw)\n"
    "      --loads LIST   idle,inference,hogs              (all three)\n"
    "      --asleep       let cores sleep between ticks, on both sides\n"
    "      --quick        does it run at all? under 20 s\n";

static void print_quantiles(const char *name, const struct samples *s)
{
    printf("  %-12s %8zu %9.1f %9.1f %9.1f %9.1f", name, s->n,
           bench_us(samples_at(s, 0.5)), bench_us(samples_at(s, 0.99)),
           bench_us(samples_at(s, 0.999)), bench_us(samples_at(s, 1)));
}

// ---- 1: lateness -----------------------------------------------------------------------------

struct match {
    struct samples theirs, ours;      // of all rounds
    double ratio[3][ROUNDS_MOST + 1]; // p50, p99, p99.9
    int rounds;
    char granted[64];
};

static int one_round(const struct options *o, struct match *m, double hz, int number)
{
    double seconds = hz > 500 ? o->seconds : 2 * o->seconds;
    static const double part[] = {0.5, 0.99, 0.999};
    struct samples a, b;
    int rc = 0;

    if (!samples_make(&a, (size_t)(hz * seconds) + 1) ||
        !samples_make(&b, (size_t)(hz * seconds) + 1))
        return -ENOMEM;
    if (number % 2)
        rc = late_loop(&o->at, hz, seconds, &b, m->granted);
    if (rc == 0)
        rc = late_cyclictest(&o->at, hz, seconds, &a);
    if (rc == 0 && number % 2 == 0)
        rc = late_loop(&o->at, hz, seconds, &b, m->granted);
    samples_sort(&a);
    samples_sort(&b);
    for (int i = 0; i < 3 && a.n > 0 && b.n > 0; i++)
        m->ratio[i][m->rounds] =
            (double)samples_at(&b, part[i]) / (double)samples_at(&a, part[i]);
    m->rounds += a.n > 0 && b.n > 0;
    samples_join(&m->theirs, &a);
    samples_join(&m->ours, &b);
    samples_free(&a);
    samples_free(&b);
    return rc;
}

static void print_match(struct match *m, double hz, enum bench_load l)
{
    double ratio;

    samples_sort(&m->theirs);
    samples_sort(&m->ours);
    printf("%4.0f Hz, %s", hz, load_name[l]);
    if (l == LOAD_INFERENCE)
        printf(" (%.1f ms each)", load_inference_ms());
    printf("\n");
    print_quantiles("cyclictest", &m->theirs);
    printf("\n");
    print_quantiles("actd's loop", &m->ours);
    ratio = bench_median(m->ratio[1], m->rounds);
    printf("   p50 %.2f, p99 %.2f, p99.9 %.2f  %s\n",
           bench_median(m->ratio[0], m->rounds), ratio,
           bench_median(m->ratio[2], m->rounds), ratio <= GOAL_RATIO ? "ok" : "MISSED");
}

static int compare_at(const struct options *o, double hz, enum bench_load l)
{
    static struct match m;
    size_t most = (size_t)(2 * hz * o->seconds + 1) * (size_t)o->rounds;
    int rc;

    memset(&m, 0, sizeof m);
    if (!samples_make(&m.theirs, most) || !samples_make(&m.ours, most))
        return -ENOMEM;
    rc = load_start(l);
    for (int i = 0; i < o->rounds && rc == 0; i++)
        rc = one_round(o, &m, hz, i);
    load_stop();
    if (rc == 0)
        print_match(&m, hz, l);
    if (rc == 0 && strncmp(m.granted, "SCHED_FIFO", 10) != 0)
        printf("  the loop ran as %s: not comparable\n", m.granted);
    if (rc == -ENOENT)
        fprintf(stderr, "bench_loop: cyclictest is not there: apt-get install rt-tests "
                        "(make deps-bench)\n");
    samples_free(&m.theirs);
    samples_free(&m.ours);
    fflush(stdout);
    return rc;
}

static int lateness(const struct options *o)
{
    int rc = 0;

    printf("wake-up lateness, us, %d rounds of each in turn, core %d, SCHED_FIFO %d%s\n",
           o->rounds, o->at.cpu, o->at.priority,
           o->at.asleep ? ", cores may sleep" : ", cores kept awake");
    printf("  %-12s %8s %9s %9s %9s %9s   ours / cyclictest, median of rounds; goal p99 "
           "<= %.1f\n",
           "", "wake-ups", "p50", "p99", "p99.9", "max", GOAL_RATIO);
    for (int l = 0; l < LOADS && rc == 0; l++) {
        if (!strstr(o->loads, load_name[l]))
            continue;
        rc = compare_at(o, 200, (enum bench_load)l);
        if (rc == 0)
            rc = compare_at(o, 1000, (enum bench_load)l);
    }
    return rc;
}

// ---- 3: wire ---------------------------------------------------------------------------------

static int one_wire(const struct options *o, enum bench_load l)
{
    const double hz = 200;
    struct samples through, bare;
    double bound, p99;
    int rc;

    if (!samples_make(&through, (size_t)o->messages) ||
        !samples_make(&bare, (size_t)o->messages))
        return -ENOMEM;
    rc = load_start(l);
    if (rc == 0)
        rc = wire_rounds(&o->at, hz, o->messages, &through, &bare);
    load_stop();
    samples_sort(&through);
    samples_sort(&bare);
    if (rc == 0) {
        bound = 1e6 / hz + 2 * bench_us(samples_at(&bare, 0.99));
        p99 = bench_us(samples_at(&through, 0.99));
        printf("%4.0f Hz, %s\n", hz, load_name[l]);
        print_quantiles("bare pair", &bare);
        printf("\n");
        print_quantiles("through actd", &through);
        printf("   bound for p99: %.0f  %s\n", bound, p99 <= bound ? "ok" : "MISSED");
    }
    samples_free(&through);
    samples_free(&bare);
    fflush(stdout);
    return rc;
}

static int wire(const struct options *o)
{
    int rc = 0;

    printf("\njoint message in, first command made from it out, us, over ipc; bare pair: "
           "PUB to SUB one way;\nbound: one control period + 2 x p99 of the bare pair\n"
           "  %-12s %8s %9s %9s %9s %9s\n",
           "", "messages", "p50", "p99", "p99.9", "max");
    for (int l = 0; l < LOADS && rc == 0; l++)
        if (strstr(o->loads, load_name[l]))
            rc = one_wire(o, (enum bench_load)l);
    return rc;
}

// ---- main ------------------------------------------------------------------------------------

static int parse(struct options *o, int argc, char **argv)
{
    static const struct option longs[] = {{"rounds", 1, NULL, 'r'},
                                          {"seconds", 1, NULL, 's'},
                                          {"ticks", 1, NULL, 't'},
                                          {"messages", 1, NULL, 'm'},
                                          {"cpu", 1, NULL, 'c'},
                                          {"priority", 1, NULL, 'p'},
                                          {"parts", 1, NULL, 'P'},
                                          {"loads", 1, NULL, 'L'},
                                          {"asleep", 0, NULL, 'a'},
                                          {"quick", 0, NULL, 'q'},
                                          {0}};
    struct options quick = {.rounds = 1,
                            .ticks = 100,
                            .messages = 60,
                            .seconds = 0.4,
                            .quick = true,
                            .parts = PARTS,
                            .loads = ALL_LOADS,
                            .at = {rt_choose_cpu(), 50, false}};

    *o = (struct options){.rounds = 21,
                          .ticks = 4000,
                          .messages = 1500,
                          .seconds = 1,
                          .parts = PARTS,
                          .loads = ALL_LOADS,
                          .at = {rt_choose_cpu(), 50, false}};
    for (int c; (c = getopt_long(argc, argv, "r:s:t:m:c:p:", longs, NULL)) != -1;) {
        switch (c) {
        case 'r':
            o->rounds = atoi(optarg);
            break;
        case 's':
            o->seconds = atof(optarg);
            break;
        case 't':
            o->ticks = atoi(optarg);
            break;
        case 'm':
            o->messages = atoi(optarg);
            break;
        case 'c':
            o->at.cpu = atoi(optarg);
            break;
        case 'p':
            o->at.priority = atoi(optarg);
            break;
        case 'P':
            o->parts = optarg;
            break;
        case 'L':
            o->loads = optarg;
            break;
        case 'a':
            o->at.asleep = true;
            break;
        case 'q':
            *o = quick;
            break;
        default:
            return -EINVAL;
        }
    }
    if (o->at.cpu < 0)
        o->at.cpu = 0; // one core only
    return optind == argc && o->rounds >= 1 && o->rounds <= ROUNDS_MOST &&
                   o->seconds > 0 && o->ticks >= 1 && o->messages >= 1 &&
                   o->at.priority >= 2 && o->at.priority <= 98
               ? 0
               : -EINVAL;
}

int main(int argc, char **argv)
{
    struct options o;
    int rc = 0, awake = 0;

    if (parse(&o, argc, argv) != 0) {
        fputs(help, stderr);
        return 2;
    }
    if (!o.at.asleep)
        awake = rt_stay_awake(); // held until the end
    if (awake < 0)
        printf("/dev/cpu_dma_latency: %s; cyclictest cannot hold it either\n",
               strerror(-awake));
    if (rt_lock_memory() != 0)
        printf("memory is not locked: raise `ulimit -l`\n");
    rc = load_prepare(o.quick);
    if (rc == 0 && strchr(o.parts, 'l'))
        rc = lateness(&o);
    if (rc == 0 && strchr(o.parts, 't'))
        rc = tick_table(&o.at, o.ticks);
    if (rc == 0 && strchr(o.parts, 'w'))
        rc = wire(&o);
    load_forget();
    if (rc)
        fprintf(stderr, "bench_loop: %s\n", strerror(-rc));
    return rc ? 1 : 0;
}
