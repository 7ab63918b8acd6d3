// soak: hours of the real daemon with a robot that misbehaves, and what is left of its memory.
// One daemon is driven, armed, through mild faults (it goes on or holds) for nine tenths of the
// time; the rest is harsh: faults that stop the arm. After a while in a latched stop it is reset
// and armed again over the control socket; only when it refuses that for a minute, it gets SIGTERM
// and a new one takes its place. Judged: resident memory within 1 % after the warm-up, no descriptor more,
// no end that was not asked for, exit status 0 whenever it was.
//
//   soak --build DIR [--seconds N] [--seed S] [--output DIR]
//
// Samples go to OUTPUT/soak.csv, the daemon's words to OUTPUT/actd.log.
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "actd/v1/control.pb-c.h"
#include "daemon/ladder.h"
#include "tests/soak/soak.h"

#define STEP_NS    (2 * NS_PER_MS)
#define CALM_NS    (NS_PER_S)         // before a sample
#define LATCHED_NS (3 * NS_PER_S)     // in a stop, with faults going on, before a reset
#define SILENCE_NS (1900 * NS_PER_MS) // of joint states: a stop after 1250
#define AGAIN_NS   (NS_PER_S)         // between two requests
#define REFUSED_NS (60 * NS_PER_S)    // in a stop, before a new daemon
#define WARM_S     20                 // at least, or a twentieth of all
#define HARSH_PART 0.1
#define GROWTH     0.01
#define SHARE      0.5 // of the time that one daemon must have lived through

struct sample {
    ns_t at_ns;
    long rss_kib;
    int descriptors;
};

struct judged { // the longest life of one daemon
    double seconds;
    long first_kib, last_kib;
    int first_fds, last_fds, most_fds;
};

struct soak {
    struct soak_daemon daemon;
    struct soak_control control;
    struct soak_robot *robot;
    FILE *csv;
    char output[PATH_MAX];
    double seconds;
    uint64_t seed;
    ns_t start_ns, warm_ns, sample_ns, mild_end_ns, end_ns;
    ns_t born_ns, next_sample_ns, stopped_ns;
    struct sample *life; // of this daemon
    size_t n, room;
    struct judged best;
    ns_t next_ask_ns;
    bool to_arm;                                   // it was reset
    enum { NOT_YET, STOPPED, PRACTISED } practice; // of a stop, by this daemon
    int mild_resets, harsh_resets, refused_resets, restarts, bad_ends;
};

static volatile sig_atomic_t interrupted;

static void on_signal(int s)
{
    interrupted = s;
}

// ---- judgement -------------------------------------------------------------------------------

static int by_value(const void *a, const void *b)
{
    long x = *(const long *)a, y = *(const long *)b;

    return (x > y) - (x < y);
}

// Median of up to 400 samples.
static long median(const struct sample *s, size_t n, bool fds)
{
    long v[400] = {0};

    n = n < 400 ? n : 400;
    for (size_t i = 0; i < n; i++)
        v[i] = fds ? s[i].descriptors : s[i].rss_kib;
    qsort(v, n, sizeof *v, by_value);
    return n ? v[n / 2] : 0;
}

// A life counts from its warm-up on; the first and the last tenth of what is left are compared.
static void judge_life(struct soak *s)
{
    size_t from = 0, tenth;
    struct judged j;

    while (from < s->n && s->life[from].at_ns - s->born_ns < s->warm_ns)
        from++;
    if (s->n - from < 6)
        return;
    tenth = (s->n - from) / 10 > 3 ? (s->n - from) / 10 : 3;
    j.seconds = 1e-9 * (double)(s->life[s->n - 1].at_ns - s->born_ns);
    j.first_kib = median(s->life + from, tenth, false);
    j.last_kib = median(s->life + s->n - tenth, tenth, false);
    j.first_fds = (int)median(s->life + from, tenth, true);
    j.last_fds = (int)median(s->life + s->n - tenth, tenth, true);
    j.most_fds = 0;
    for (size_t i = from; i < s->n; i++)
        j.most_fds =
            s->life[i].descriptors > j.most_fds ? s->life[i].descriptors : j.most_fds;
    if (j.seconds > s->best.seconds)
        s->best = j;
}

static double growth(const struct judged *j)
{
    return j->first_kib ? (double)(j->last_kib - j->first_kib) / (double)j->first_kib : 1;
}

static const char *verdict(const struct soak *s)
{
    double all = 1e-9 * (double)(clock_now_ns() - s->start_ns);

    if (s->bad_ends > 0)
        return "FAILED: the daemon ended badly";
    if (s->best.seconds < SHARE * all)
        return "FAILED: no daemon lived long enough to be judged";
    if (growth(&s->best) > GROWTH)
        return "FAILED: it grows";
    if (s->best.last_fds != s->best.first_fds)
        return "FAILED: descriptors are not constant";
    return "ok";
}

static void summarize(const struct soak *s)
{
    const struct soak_counts *c = soak_robot_counts(s->robot);
    const struct judged *j = &s->best;
    uint64_t all = c->commands ? c->commands : 1;
    double looked = 0;

    for (int m = 0; m < SOAK_STATES; m++)
        looked += (double)c->in_mode[m];
    printf(
        "soak: %.0f s, seed %llu: RSS %.1f -> %.1f MiB (%+.2f %%) and descriptors %d -> "
        "%d (most %d) over %.0f s of one daemon; %llu joint states (%llu bad, %llu "
        "dropped, %llu twice, %llu late), %llu frames (%llu bad), %llu silences, %llu "
        "reconnects, %llu driver restarts, %llu harsh; %llu commands, RUNNING %.0f %% HOLD "
        "%.1f %%; stops that were reset: %d in mild weather, %d in harsh, %d resets refused "
        "before; new daemons: %d: %s\n",
        1e-9 * (double)(clock_now_ns() - s->start_ns), (unsigned long long)s->seed,
        (double)j->first_kib / 1024, (double)j->last_kib / 1024, 100 * growth(j),
        j->first_fds, j->last_fds, j->most_fds, j->seconds, (unsigned long long)c->states,
        (unsigned long long)c->bad, (unsigned long long)c->dropped,
        (unsigned long long)c->duplicate, (unsigned long long)c->reordered,
        (unsigned long long)c->frames, (unsigned long long)c->bad_frames,
        (unsigned long long)c->silences, (unsigned long long)c->reconnects,
        (unsigned long long)c->restarts, (unsigned long long)c->harsh,
        (unsigned long long)all,
        looked > 0 ? 100 * (double)c->in_mode[LADDER_RUNNING] / looked : 0,
        looked > 0 ? 100 * (double)c->in_mode[LADDER_HOLD] / looked : 0, s->mild_resets,
        s->harsh_resets, s->refused_resets, s->restarts, verdict(s));
}

// ---- the run ---------------------------------------------------------------------------------

static bool harsh(const struct soak *s, ns_t now)
{
    return now >= s->mild_end_ns;
}

static int take_sample(struct soak *s, ns_t now)
{
    struct sample *one = &s->life[s->n < s->room ? s->n : s->room - 1];
    const struct soak_counts *c = soak_robot_counts(s->robot);

    one->at_ns = now;
    if (soak_daemon_sample(&s->daemon, &one->rss_kib, &one->descriptors) != 0)
        return -ESRCH;
    s->n += s->n < s->room;
    fprintf(s->csv, "%.1f,%d,%s,%s,%s,%ld,%d\n", 1e-9 * (double)(now - s->start_ns),
            1 + s->restarts, harsh(s, now) ? "harsh" : "mild",
            ladder_state_name((enum ladder_state)c->mode),
            ladder_reason_name((enum ladder_reason)c->reason), one->rss_kib,
            one->descriptors);
    fflush(s->csv);
    return 0;
}

static int begin_life(struct soak *s)
{
    soak_robot_forget(s->robot);
    s->n = 0;
    s->stopped_ns = 0;
    s->to_arm = false;
    s->practice = NOT_YET;
    s->born_ns = clock_now_ns();
    s->next_sample_ns = s->born_ns + s->sample_ns;
    return soak_daemon_start(&s->daemon);
}

static void end_life(struct soak *s)
{
    judge_life(s);
    s->bad_ends += soak_daemon_stop(&s->daemon) != 0;
}

static void ask(struct soak *s, int verb, ns_t now)
{
    if (now < s->next_ask_ns)
        return;
    s->next_ask_ns = now + AGAIN_NS;
    (void)soak_control_ask(&s->control, s->daemon.runtime, verb, now);
}

static void take_answer(struct soak *s, ns_t now)
{
    enum soak_answer answer = soak_control_look(&s->control, now);

    if (answer == SOAK_SILENT || s->to_arm)
        return;
    s->refused_resets += answer == SOAK_REFUSED;
    if (answer == SOAK_REFUSED)
        return;
    s->to_arm = true;
    if (s->practice == STOPPED) {
        s->practice = PRACTISED;
        return;
    }
    *(harsh(s, now) ? &s->harsh_resets : &s->mild_resets) += 1;
    if (!harsh(s, now))
        fprintf(stderr, "soak: after %.0f s a stop in mild weather was reset\n",
                1e-9 * (double)(now - s->born_ns));
}

// One stop within the warm-up: what the first one of a daemon's life makes it keep (a black box
// written, a session served: 1.5 MiB) is not growth. Begun right after a sample, since nothing is
// silent before one.
static void practise(struct soak *s, ns_t now)
{
    const ns_t sampled_ns = s->next_sample_ns - s->sample_ns;
    int mode = soak_robot_counts(s->robot)->mode;

    if (s->practice != NOT_YET)
        return;
    if (mode == LADDER_STOPPED)
        s->practice = STOPPED;
    else if (mode == LADDER_RUNNING && now - s->born_ns > s->warm_ns / 3 &&
             now - sampled_ns < 100 * NS_PER_MS)
        soak_robot_hush(s->robot, now + SILENCE_NS);
}

// A latched stop: faults go on for a while, then it is reset, and armed once it is ready.
static int mind_stops(struct soak *s, ns_t now)
{
    const struct soak_counts *c = soak_robot_counts(s->robot);
    bool latched = c->mode == LADDER_STOPPED || c->mode == LADDER_ESTOP;

    take_answer(s, now);
    if (c->mode == LADDER_RUNNING)
        s->to_arm = false;
    if (!latched) {
        s->stopped_ns = 0;
    } else if (s->stopped_ns == 0) {
        s->stopped_ns = now;
        s->to_arm = false;
    }
    if (s->to_arm && c->mode == LADDER_READY)
        ask(s, ACTD__V1__VERB__VERB_ARM, now);
    if (!latched || now - s->stopped_ns < LATCHED_NS)
        return 0;
    if (now - s->stopped_ns < REFUSED_NS) {
        ask(s, ACTD__V1__VERB__VERB_RESET, now);
        return 0;
    }
    fprintf(stderr, "soak: stopped by %s, reset is refused: %s\n",
            ladder_reason_name((enum ladder_reason)c->reason), s->control.text);
    s->restarts++;
    end_life(s);
    return begin_life(s);
}

// The arm must come to RUNNING in peace, and a sample wants all connections there.
static enum soak_mood mood(const struct soak *s, ns_t now)
{
    int mode = soak_robot_counts(s->robot)->mode;

    if (now >= s->next_sample_ns - CALM_NS || mode == 0 || mode <= LADDER_APPROACH)
        return SOAK_CALM;
    return harsh(s, now) ? SOAK_HARSH : SOAK_MILD;
}

static int run(struct soak *s)
{
    ns_t next = clock_now_ns();
    int rc = begin_life(s);

    while (rc == 0 && !interrupted && clock_now_ns() < s->end_ns) {
        ns_t now = clock_now_ns();

        soak_robot_step(s->robot, mood(s, now), now);
        if (now >= s->next_sample_ns) {
            s->next_sample_ns = now + s->sample_ns;
            rc = rc ? rc : take_sample(s, now);
        }
        if (!soak_daemon_lives(&s->daemon)) {
            s->bad_ends++;
            rc = -ECHILD;
        }
        practise(s, now);
        rc = rc ? rc : mind_stops(s, now);
        next = next + STEP_NS > now ? next + STEP_NS : now;
        clock_sleep_until(next);
    }
    end_life(s);
    return rc;
}

// ---- start -----------------------------------------------------------------------------------

static int parse(struct soak *s, int argc, char **argv)
{
    static const struct option longs[] = {{"build", 1, NULL, 'b'},
                                          {"seconds", 1, NULL, 's'},
                                          {"seed", 1, NULL, 'r'},
                                          {"output", 1, NULL, 'o'},
                                          {0}};

    s->daemon.build = "build";
    s->seconds = 120;
    s->seed = 1;
    snprintf(s->output, sizeof s->output, "build/soak");
    for (int c; (c = getopt_long(argc, argv, "b:s:r:o:", longs, NULL)) != -1;)
        if (c == 'b')
            s->daemon.build = optarg;
        else if (c == 's')
            s->seconds = atof(optarg);
        else if (c == 'r')
            s->seed = strtoull(optarg, NULL, 10);
        else if (c == 'o')
            snprintf(s->output, sizeof s->output, "%s", optarg);
        else
            return -EINVAL;
    return optind == argc && s->seconds >= 60 ? 0 : -EINVAL;
}

static int prepare(struct soak *s)
{
    double warm = s->seconds / 20 > WARM_S ? s->seconds / 20 : WARM_S;
    char path[PATH_MAX + 16];
    int rc;

    (void)mkdir(s->output, 0755);
    snprintf(path, sizeof path, "%s/soak.csv", s->output);
    s->csv = fopen(path, "w");
    s->room = (size_t)s->seconds + 16;
    s->life = calloc(s->room, sizeof *s->life);
    if (s->csv == NULL || s->life == NULL) {
        fprintf(stderr, "soak: %s: %s\n", path, strerror(errno));
        return -EIO;
    }
    fprintf(s->csv, "seconds,daemon,weather,mode,reason,rss_kib,descriptors\n");
    rc = soak_daemon_prepare(&s->daemon, s->output);
    if (rc == 0)
        rc = soak_robot_new(&s->robot, s->daemon.build, s->daemon.runtime, s->seed);
    s->start_ns = clock_now_ns();
    s->warm_ns = (ns_t)(warm * (double)NS_PER_S);
    s->sample_ns = (s->seconds < 300 ? 3 : 5) * NS_PER_S;
    s->end_ns = s->start_ns + (ns_t)(s->seconds * (double)NS_PER_S);
    s->mild_end_ns = s->end_ns - (ns_t)(HARSH_PART * s->seconds * (double)NS_PER_S);
    return rc;
}

int main(int argc, char **argv)
{
    static struct soak s;
    int rc;

    if (parse(&s, argc, argv) != 0) {
        fprintf(stderr, "usage: soak [--build DIR] [--seconds N (60 or more)] [--seed S] "
                        "[--output DIR]\n");
        return 2;
    }
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    signal(SIGPIPE, SIG_IGN);
    rc = prepare(&s);
    if (rc == 0)
        rc = run(&s);
    if (s.robot)
        summarize(&s);
    soak_robot_free(s.robot);
    soak_daemon_clean(&s.daemon);
    free(s.life);
    if (s.csv)
        fclose(s.csv);
    return rc == 0 && strcmp(verdict(&s), "ok") == 0 ? 0 : 1;
}
