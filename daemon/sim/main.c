// actd-sim: a simulated arm behind actd's wire, and the recorder of demonstrations.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/sim/options.h"
#include "daemon/sim/record.h"
#include "daemon/sim/run.h"

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
    (void)number;
    stop = 1;
}

static void catch_signals(void)
{
    struct sigaction a;
    memset(&a, 0, sizeof a);
    a.sa_handler = on_signal;
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
}

static int record(const struct options *o)
{
    const char *why;
    struct record_options ro = {.dir = o->record,
                                .episodes = o->episodes,
                                .seed = o->seed,
                                .noise_rad = o->noise_rad};
    if (record_run(&ro, &why) == 0)
        return 0;
    fprintf(stderr, "actd-sim: %s\n", why);
    return 1;
}

static void summary(const struct run *r)
{
    const struct task *t = &r->plant.task;
    fprintf(stderr,
            "actd-sim: %u of %u episodes succeeded; %llu commands, %llu refused, "
            "%llu stops since a command's time to live ran out\n",
            t->succeeded, t->episode, (unsigned long long)r->counts.commands,
            (unsigned long long)r->counts.refused,
            (unsigned long long)r->plant.servo.ttl_stops);
}

static int simulate(const struct options *o)
{
    static struct run r; // 40 kB of episode results
    char err[1024];

    catch_signals();
    if (run_open(&r, o, &stop, err, sizeof err) < 0) {
        fprintf(stderr, "actd-sim: %s\n", err);
        return 1;
    }
    if (o->lockstep)
        run_lockstep(&r);
    else
        run_live(&r);
    summary(&r);
    if (run_close(&r, err, sizeof err) < 0) {
        fprintf(stderr, "actd-sim: %s\n", err);
        return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct options o;
    char err[256];

    if (options_parse(&o, argc, argv, err, sizeof err) < 0) {
        fprintf(stderr, "actd-sim: %s\n", err);
        return 64;
    }
    if (o.help) {
        fputs(options_help, stdout);
        return 0;
    }
    if (o.version) {
        puts("actd-sim " ACTD_VERSION);
        return 0;
    }
    // Mesa's software renderer would start a thread per core. Drawing in the calling thread is as
    // fast for small pictures and leaves the other cores to the policy.
    setenv("LP_NUM_THREADS", "0", 0);
    return o.record ? record(&o) : simulate(&o);
}
