// The property test: some hundred random robots, a million random ticks, faults of every kind on
// top of each other, and the checker on every tick. Usage:
//
//   property [--seed S] [--schedules N] [--ticks T] [--only I] [--tell] [--joint J] [--partial]
//            [--replay DIR]
//
// --only walks schedule I alone, --tell says what happens in it, --joint what becomes of one
// joint. --replay: each records itself below DIR, and is replayed. The exit is 0 when nothing was broken and the walk has been everywhere: every state,
// every reason, and a good part of the time in motion; --partial forgives the latter, for a short
// run.
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/fault/walk.h"
#include "tests/replay/replay_check.h"

#define MOVING_PART 0.3 // of all ticks in APPROACH, RUNNING, HOLD

struct options {
    uint64_t seed, ticks;
    int schedules, only, joint;
    bool tell, partial;
    const char *replay;
};

static int usage(void)
{
    fputs("usage: property [--seed S] [--schedules N] [--ticks T] [--only I] [--tell] "
          "[--joint J] [--partial] [--replay DIR]\n",
          stderr);
    return 2;
}

static int parse(int argc, char **argv, struct options *o)
{
    static const struct option known[] = {{"seed", required_argument, NULL, 's'},
                                          {"schedules", required_argument, NULL, 'n'},
                                          {"ticks", required_argument, NULL, 't'},
                                          {"only", required_argument, NULL, 'o'},
                                          {"tell", no_argument, NULL, 'v'},
                                          {"partial", no_argument, NULL, 'p'},
                                          {"replay", required_argument, NULL, 'r'},
                                          {"joint", required_argument, NULL, 'j'},
                                          {NULL, 0, NULL, 0}};
    int c;

    while ((c = getopt_long(argc, argv, "", known, NULL)) != -1)
        switch (c) {
        case 's':
            o->seed = strtoull(optarg, NULL, 0);
            break;
        case 'n':
            o->schedules = atoi(optarg);
            break;
        case 't':
            o->ticks = strtoull(optarg, NULL, 0);
            break;
        case 'o':
            o->only = atoi(optarg);
            break;
        case 'j':
            o->joint = atoi(optarg);
            break;
        case 'p':
            o->partial = true;
            break;
        case 'r':
            o->replay = optarg;
            break;
        case 'v':
            o->tell = true;
            break;
        default:
            return -1;
        }
    return o->schedules < 1 || optind != argc ? -1 : 0;
}

// What it recorded is what a replay of it makes.
static void replay_one(int number, const char *dir, struct walk_totals *t)
{
    static struct replay_checked checked;

    replay_check(dir, &walk_ran, &checked);
    if (checked.problem[0]) {
        printf("schedule %d, replayed: %s\n", number, checked.problem);
        t->broken++;
    }
}

static void walk_one(const struct options *o, int number, struct walk_totals *t)
{
    uint64_t ticks = o->ticks / (uint64_t)o->schedules;
    struct walk k;
    char first[256], dir[512];

    snprintf(dir, sizeof dir, "%.400s/%03d", o->replay ? o->replay : "", number);
    walk_record = o->replay ? dir : NULL;
    if (walk_begin(&k, o->seed, number, true, t) != 0) {
        printf("schedule %d cannot begin\n", number);
        t->broken++;
        return;
    }
    k.tell = o->tell;
    k.joint = o->joint;
    for (uint64_t i = 0; i < ticks; i++)
        walk_step(&k);
    walk_end(&k, first, sizeof first);
    if (first[0] && t->broken <= 20)
        printf("schedule %d: %s\n    again: property --seed %" PRIu64
               " --schedules %d --ticks %" PRIu64 " --only %d --tell\n",
               number, first, o->seed, o->schedules, o->ticks, number);
    if (o->replay)
        replay_one(number, dir, t);
}

static void tell_injections(const struct walk_totals *t)
{
    printf("%" PRIu64 " injections:", t->injections);
    for (int i = 0; i < INJECT_TARGETS; i++)
        for (int v = 0; v < VERBS; v++)
            if (t->injected[i][v])
                printf(" %s-%s %" PRIu64, inject_target_name((enum inject_target)i),
                       inject_verb_name((enum inject_verb)v), t->injected[i][v]);
    puts("");
}

// How often each state and reason was seen; false when one never was.
static bool tell_where(const struct walk_totals *t)
{
    bool all = true;
    uint64_t moving = t->in_state[LADDER_APPROACH] + t->in_state[LADDER_RUNNING] +
                      t->in_state[LADDER_HOLD];

    for (int s = LADDER_WAITING; s < LADDER_STATES; s++) {
        printf("  %-22s %9" PRIu64 " ticks%s\n", ladder_state_name((enum ladder_state)s),
               t->in_state[s], t->in_state[s] ? "" : "  NEVER");
        all = all && t->in_state[s];
    }
    for (int r = 1; r < LADDER_REASONS; r++) {
        printf("  %-22s %9" PRIu64 " times%s\n",
               ladder_reason_name((enum ladder_reason)r), t->reason[r],
               t->reason[r] ? "" : "  NEVER");
        all = all && t->reason[r];
    }
    printf("%.1f %% of the ticks in APPROACH, RUNNING or HOLD, %" PRIu64
           " motions begun\n",
           100.0 * (double)moving / (double)t->ticks, t->motions);
    return all && (double)moving >= MOVING_PART * (double)t->ticks;
}

int main(int argc, char **argv)
{
    struct options o = {
        .seed = 1, .schedules = 250, .ticks = 1000000, .only = -1, .joint = -1};
    static struct walk_totals t;
    clock_t begin = clock();
    bool everywhere;

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (parse(argc, argv, &o) != 0)
        return usage();
    printf("seed %" PRIu64 "\n", o.seed);
    for (int i = 0; i < o.schedules; i++)
        if (o.only < 0 || o.only == i)
            walk_one(&o, i, &t);
    printf("%" PRIu64 " schedules, %" PRIu64 " ticks (%" PRIu64 " more skipped), %" PRIu64
           " commands, %" PRIu64 " requests, %" PRIu64 " swaps\n",
           t.walks, t.ticks, t.skipped, t.commands, t.requests, t.swaps);
    tell_injections(&t);
    everywhere = tell_where(&t) || o.only >= 0 || o.partial || o.replay;
    printf("%.1f s; %" PRIu64 " violations in %" PRIu64 " schedules%s\n",
           (double)(clock() - begin) / CLOCKS_PER_SEC, t.violations, t.broken,
           everywhere ? "" : "; it has not been everywhere");
    return t.broken == 0 && everywhere ? 0 : 1;
}
