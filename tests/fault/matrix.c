// The whole matrix, one line per fault. Each scenario runs in a process of its own: what a blind
// one does to its memory, or for how long, is its own business.
//
//   matrix [--tap] [--only PART] [--trace] [--blind] [--record DIR | --replay DIR]
//
// --record leaves a recording of each run in a directory of its own below DIR. --replay does that,
// too, and replays each (tests/replay/replay_check.h): status 0 is then that every replay was what
// it must be.
//
// Exit status 0 when every fault was detected, answered and recovered from as it must be; with
// --blind (only where it was built in) when every scenario failed without its detector. What goes
// wrong before the fault is injected is no such failure, and neither is a crash.
#include "tests/fault/matrix.h"
#include "tests/replay/replay_check.h"

#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIMIT_S        30  // a scenario takes milliseconds
#define LIMIT_REPLAY_S 120 // and is replayed four times

struct outcome {
    struct probe probe; // the child's
    struct replay_checked checked;
    char died[64]; // without a verdict
    bool done;
};

struct tally {
    bool tap, blind, replay;
    const char *only;
    const char *record; // directory, NULL = nothing is recorded
    int n, good, flips;
    uint64_t ticks, commands;
};

static struct outcome *shared; // with the child

// What is not a letter or a digit is a hyphen.
static void directory_of(const struct tally *t, const struct scenario *s, char out[512])
{
    int n = snprintf(out, 400, "%.300s/%03d-", t->record, t->n + 1);

    for (const char *c = s->name; *c && n < 500; c++)
        out[n++] = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                           (*c >= '0' && *c <= '9')
                       ? *c
                       : '-';
    out[n] = '\0';
}

static void in_child(const struct tally *t, const struct scenario *s)
{
    char dir[512];

    alarm(t->replay ? LIMIT_REPLAY_S : LIMIT_S);
    if (t->record) {
        directory_of(t, s, dir);
        scenario_record = dir;
    }
    scenario_run(&shared->probe, s);
    if (t->replay && !s->alone)
        replay_check(dir, &scenario_ran, &shared->checked);
    shared->done = true;
    _exit(0);
}

static void run_apart(const struct tally *t, const struct scenario *s)
{
    int status = 0;
    pid_t child;

    memset(shared, 0, sizeof *shared);
    fflush(stdout);
    child = fork();
    if (child == 0)
        in_child(t, s);
    if (child < 0 || waitpid(child, &status, 0) != child)
        snprintf(shared->died, sizeof shared->died, "no process for it");
    else if (WIFSIGNALED(status))
        snprintf(shared->died, sizeof shared->died, "died of signal %d",
                 WTERMSIG(status));
    else if (!shared->done)
        snprintf(shared->died, sizeof shared->died, "ended with status %d",
                 WEXITSTATUS(status));
}

static const char *problem(void)
{
    return shared->died[0]            ? shared->died
           : shared->probe.problem[0] ? shared->probe.problem
                                      : shared->checked.problem;
}

// Does a blind run prove that the scenario can fail? Only what went wrong from its beginning on
// counts, and only a verdict does: whatever crashes has not been looked at.
static bool proof(const struct scenario *s)
{
    return shared->probe.begun &&
           (shared->died[0] ? s->crashes : shared->probe.problem[0] != 0);
}

static void bound_of(const struct scenario *s, char *out, size_t size)
{
    if (s->alone)
        snprintf(out, size, "-");
    else if (s->least == s->most)
        snprintf(out, size, "= %d", s->most);
    else
        snprintf(out, size, "%d..%d", s->least, s->most);
}

static const char *how_it_ends(const struct scenario *s)
{
    static const char *const word[] = {"goes on", "returns", "latched", ""};

    return s->alone ? "" : word[s->recovery];
}

static void line(const struct scenario *s, bool good)
{
    char bound[32], detected[48] = "-", action[128];
    const struct probe *p = &shared->probe;

    bound_of(s, bound, sizeof bound);
    if (p->detected > 0)
        snprintf(detected, sizeof detected, "%lu (+%ld)", (unsigned long)p->detected,
                 (long)(p->detected - p->began));
    snprintf(action, sizeof action, "%s%s%s",
             p->action[0] ? p->action : (s->recovery == RUNS_ON ? "-" : ""),
             how_it_ends(s)[0] ? ", " : "", how_it_ends(s));
    printf("%-44s %5lu %13s %8s %-36s %-20s %-34s %s\n", s->name, (unsigned long)p->from,
           detected, bound, action, s->reason ? ladder_reason_name(s->reason) : "-",
           s->bound, good ? "ok" : "FAILED");
    if (!good)
        printf("    %s\n", problem());
}

static void blind_line(const struct scenario *s, bool good)
{
    char without[32] = "the fault";

    if (!s->harmless)
        snprintf(without, sizeof without, "detector %d", (int)s->detector);
    printf("%-44s without %-12s %-25s %.70s\n", s->name, without,
           good            ? "fails as it must"
           : !problem()[0] ? "STILL PASSES"
                           : "PROVES NOTHING",
           problem());
}

static void replay_line(const struct scenario *s, bool good)
{
    const struct replay_result *r = &shared->checked.result;

    printf("%-44s %6lu ticks %5lu inputs %3lu chunks %6lu commands  %s\n", s->name,
           (unsigned long)r->ticks, (unsigned long)r->inputs,
           (unsigned long)(r->chunks + r->chunks_taken), (unsigned long)r->commands,
           !good           ? "FAILED"
           : s->hits       ? "differs where memory was hit"
           : r->chunks > 0 ? "the same, its policy too"
                           : "the same");
    if (!good)
        printf("    %s\n", problem());
}

// A scenario that is no run has nothing to replay.
static bool asked_for(const struct tally *t, const struct scenario *s)
{
    return (!t->only || strstr(s->name, t->only)) && !(t->replay && s->alone);
}

static void one(struct tally *t, const struct scenario *s)
{
    bool good;

    if (!asked_for(t, s))
        return;
    run_apart(t, s);
    good = t->blind ? proof(s) : !problem()[0];
    t->n++;
    t->good += good;
    t->flips += shared->checked.flips;
    t->ticks += shared->checked.result.ticks;
    t->commands += shared->checked.result.commands;
    if (t->tap)
        printf("%sok %d - %s%s%s%s\n", good ? "" : "not ", t->n,
               t->blind ? "blind fails: " : "", s->name, good ? "" : " # ",
               good ? "" : problem());
    else if (t->blind)
        blind_line(s, good);
    else if (t->replay)
        replay_line(s, good);
    else
        line(s, good);
}

static void heading(const struct tally *t, const struct scenario_group *g)
{
    bool any = false;

    for (int i = 0; i < g->n; i++)
        any = any || asked_for(t, &g->of[i]);
    if (t->tap || !any)
        return;
    printf("\n%s (a tick is 5 ms)\n", g->name);
    if (!t->blind && !t->replay)
        printf("%-44s %5s %13s %8s %-36s %-20s %-34s %s\n", "fault", "tick", "detected",
               "bound", "action", "reason", "bound in words", "verdict");
}

// ---- a place for what scenarios write, which those that crash leave behind --------------------

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static bool make_scratch(char dir[WORLD_PATH])
{
    return world_scratch(dir, "matrix") && setenv("TMPDIR", dir, 1) == 0;
}

static void remove_scratch(const char *dir)
{
    (void)nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static bool options(struct tally *t, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--tap") == 0)
            t->tap = true;
        else if (strcmp(argv[i], "--trace") == 0)
            scenario_trace = true;
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            t->only = argv[++i];
        else if (strcmp(argv[i], "--record") == 0 && i + 1 < argc)
            t->record = argv[++i];
        else if (strcmp(argv[i], "--replay") == 0 && i + 1 < argc) {
            t->record = argv[++i];
            t->replay = true;
        }
#ifdef ACTD_BLIND
        else if (strcmp(argv[i], "--blind") == 0)
            t->blind = scenario_blind = true;
#endif
        else
            return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    static const struct scenario_group *const groups[] = {
        &group_joints, &group_clocks,  &group_cameras,  &group_pictures,
        &group_policy, &group_timing,  &group_requests, &group_idle,
        &group_output, &group_weights, &group_configs,  &group_disk};
    struct tally t = {0};
    char scratch[WORLD_PATH];

    if (!options(&t, argc, argv)) {
        fprintf(stderr, "matrix [--tap] [--only PART] [--trace] [--blind] "
                        "[--record DIR | --replay DIR]\n");
        return 2;
    }
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || !make_scratch(scratch))
        return 2;
    if (t.record && mkdir(t.record, 0750) != 0 && errno != EEXIST) {
        fprintf(stderr, "%s: %s\n", t.record, strerror(errno));
        return 2;
    }
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
        heading(&t, groups[g]);
        for (int i = 0; i < groups[g]->n; i++)
            one(&t, &groups[g]->of[i]);
    }
    remove_scratch(scratch);
    if (t.tap)
        printf("1..%d\n", t.n);
    else if (t.replay)
        printf(
            "\n%d runs: %d replayed as they must be (%lu ticks, %lu commands; %d times one "
            "byte of the input was another)\n",
            t.n, t.good, (unsigned long)t.ticks, (unsigned long)t.commands, t.flips);
    else
        printf("\n%d faults: %d %s\n", t.n, t.good,
               t.blind ? "fail without their detector" : "detected in time");
    return t.n > 0 && t.good == t.n ? 0 : 1;
}
