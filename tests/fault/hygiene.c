// What the loop thread asks of the system in a million ticks with every kind of fault:
// nothing but writes to the board's eventfd. The walks of property.c, but each tick runs
// on a thread of its own under a seccomp filter; allocations are counted by thread, page
// faults read from /proc once the arm has been armed. Linked with --wrap=loop_tick, which
// leads the world's ticks here.
//
//   hygiene [--seed S] [--schedules N] [--ticks T]
//
// Prints TAP. The thread that ticks and the one that turns the world take turns by one
// word and a futex: that is the only call that is let through for the test's own sake, on
// that word alone.
#include <getopt.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/blackbox.h"
#include "daemon/rt.h"
#include "tests/fault/walk.h"
#include "tests/hygiene/watched_thread.h"

#define TICKS      1000000
#define SCHEDULES  200
#define COMMAND_FD 200 // where every board's eventfd is put: the filter knows one number

// ---- handing over ---------------------------------------------------------------------

enum turn { WORLDS, LOOPS, OVER, MISBEHAVE };
static _Atomic uint32_t turn = WORLDS;
static _Atomic pid_t watched;

static struct {
    struct loop *loop;
    uint64_t tick;
    ns_t now_ns, lateness_ns;
    ns_t (*clock)(void);
} job;

static void futex(int op, uint32_t value)
{
    syscall(SYS_futex, &turn, op | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

static uint32_t wait_while(uint32_t not_yet)
{
    uint32_t t;

    while ((t = atomic_load(&turn)) == not_yet)
        futex(FUTEX_WAIT, not_yet);
    return t;
}

static void hand_over(enum turn t)
{
    atomic_store(&turn, t);
    futex(FUTEX_WAKE, 1);
}

// ---- the two threads ------------------------------------------------------------------

void __real_loop_tick(struct loop *l, uint64_t tick, ns_t now_ns, ns_t lateness_ns,
                      ns_t (*clock)(void));
void __wrap_loop_tick(struct loop *l, uint64_t tick, ns_t now_ns, ns_t lateness_ns,
                      ns_t (*clock)(void));

void __wrap_loop_tick(struct loop *l, uint64_t tick, ns_t now_ns, ns_t lateness_ns,
                      ns_t (*clock)(void))
{
    job.loop = l;
    job.tick = tick;
    job.now_ns = now_ns;
    job.lateness_ns = lateness_ns;
    job.clock = clock;
    hand_over(LOOPS);
    (void)wait_while(LOOPS);
}

static volatile unsigned char *fresh_pages;
static void *volatile heap;

static void misbehave(void)
{
    for (int i = 0; i < 3; i++)
        fresh_pages[4096 * i] = 1;
    syscall(SYS_getpid);
    heap = malloc(1);
    free(heap);
    (void)!write(COMMAND_FD, "too short", 4);
    (void)!write(1, "8 bytes!", 8);
}

static void touch_stack(void)
{
    volatile unsigned char
        page[65536]; // more than a tick needs; a thread's stack is its own

    for (size_t i = 0; i < sizeof page; i += 4096)
        page[i] = 1;
}

static void *ticks(void *arg)
{
    uint32_t t = WORLDS;

    (void)arg;
    touch_stack();
    watched = (pid_t)syscall(SYS_gettid);
    if (watch_this_thread(COMMAND_FD, &turn) != 0)
        first_violation = -2;
    counting = true;
    while ((t = wait_while(WORLDS)) != OVER) {
        if (t == LOOPS)
            __real_loop_tick(job.loop, job.tick, job.now_ns, job.lateness_ns, job.clock);
        else
            misbehave();
        hand_over(WORLDS);
    }
    counting = false;
    syscall(SYS_exit,
            0); // the C library's own end of a thread would call the kernel more
    return NULL;
}

// ---- the walks ------------------------------------------------------------------------

struct seen {
    long faults; // after the first armed tick of each walk, in all
    int walks;   // in which there was one
    int first;   // number of the first such walk
};

// Every board's eventfd is the one that the filter lets through.
static bool fix_fd(struct world *w)
{
    int fd = w->board.command_fd;

    if (dup2(fd, COMMAND_FD) != COMMAND_FD)
        return false;
    close(fd);
    w->board.command_fd = COMMAND_FD;
    return true;
}

static bool walk_one(uint64_t seed, int number, uint64_t steps, struct walk_totals *t,
                     struct seen *s)
{
    struct walk k;
    char first[256];
    long before = -1, more;
    bool good = walk_begin(&k, seed, number, false, t) == 0;

    if (!good || !fix_fd(k.world))
        return false;
    for (uint64_t i = 0; i < steps; i++) {
        uint64_t motions = t->motions;

        walk_step(&k);
        if (before < 0 && t->motions != motions)
            before = faults_of(watched);
    }
    more = before < 0 ? 0 : faults_of(watched) - before;
    s->faults += more;
    if (more != 0 && s->walks++ == 0)
        s->first = number;
    walk_end(&k, first, sizeof first);
    return true;
}

static void judge(int number, bool good, const char *what)
{
    printf("%sok %d - %s\n", good ? "" : "not ", number, what);
}

// The detectors themselves.
static bool seen_when_forbidden(int fd)
{
    long before = faults_of(watched), n;

    if (dup2(fd, COMMAND_FD) != COMMAND_FD)
        return false;
    fresh_pages =
        mmap(NULL, 4 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise((void *)(uintptr_t)fresh_pages, 4 * 4096, MADV_NOHUGEPAGE);
    hand_over(MISBEHAVE);
    (void)wait_while(MISBEHAVE);
    n = faults_of(watched) - before;
    printf(
        "# %ld system calls (the first is number %d), %ld allocations, %ld page faults\n",
        (long)violations, first_violation, (long)allocations, n);
    return violations >= 3 && first_violation == SYS_getpid && allocations == 2 &&
           before >= 0 && n >= 3;
}

// True when the walks have been through every state and every reason.
static bool tell(const struct walk_totals *t)
{
    int states = 0, reasons = 0;

    for (int s = LADDER_WAITING; s < LADDER_STATES; s++)
        states += t->in_state[s] > 0;
    for (int r = 1; r < LADDER_REASONS; r++)
        reasons += t->reason[r] > 0;
    printf("# %" PRIu64 " walks, %" PRIu64 " ticks, %" PRIu64 " injections, %" PRIu64
           " motions; %d of %d states, %d of %d reasons\n",
           t->walks, t->ticks, t->injections, t->motions, states,
           LADDER_STATES - LADDER_WAITING, reasons, LADDER_REASONS - 1);
    return states == LADDER_STATES - LADDER_WAITING && reasons == LADDER_REASONS - 1;
}

// whole: long enough that every fault path must have been taken.
static bool verdict(const struct walk_totals *t, const struct seen *s, bool good,
                    bool whole)
{
    bool all = tell(t);

    if (violations > 0)
        printf("# %ld forbidden system calls, the first: number %d\n", (long)violations,
               first_violation);
    if (s->faults != 0)
        printf("# %ld page faults in %d walks, the first: number %d\n", s->faults,
               s->walks, s->first);
    judge(2, good && violations == 0, "no system call but the eventfd's write");
    judge(3, good && allocations == 0, "no allocation");
    judge(4, good && s->faults == 0, "no page fault after arming");
    if (whole)
        judge(5, good && all, "every state and every reason was there");
    return good && violations == 0 && allocations == 0 && s->faults == 0 &&
           (all || !whole);
}

// Both threads on the core that this one is on: handing over is then a switch of 2 us and
// not a wake-up on another core, which waits for whoever computes there (0.8 ms
// under load).
static bool one_core(void)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET((unsigned)sched_getcpu(), &set);
    return sched_setaffinity(0, sizeof set, &set) == 0;
}

static int run(uint64_t seed, int schedules, uint64_t all)
{
    static struct walk_totals t;
    struct seen s = {0};
    pthread_t thread;
    int fd[2];
    bool good =
        pipe(fd) == 0 && one_core() && pthread_create(&thread, NULL, ticks, NULL) == 0;

    while (good && watched == 0)
        usleep(1000);
    judge(1, good && seen_when_forbidden(fd[1]), "what is forbidden is seen");
    violations = allocations = 0;
    if (first_violation != -2)
        first_violation = -1;
    // As the daemon does: pages are locked once they have been touched, and who touches
    // them is to be seen.
    printf("# memory %s\n", rt_lock_memory() == 0 ? "locked" : "not locked");
    for (int i = 0; i < schedules && good; i++)
        good = walk_one(seed, i, all / (uint64_t)schedules, &t, &s);
    good = good && first_violation != -2;
    good = verdict(&t, &s, good, schedules >= SCHEDULES && all >= TICKS);
    hand_over(OVER);
    pthread_join(thread, NULL);
    return good ? 0 : 1;
}

int main(int argc, char **argv)
{
    static const struct option known[] = {{"seed", required_argument, NULL, 's'},
                                          {"schedules", required_argument, NULL, 'n'},
                                          {"ticks", required_argument, NULL, 't'},
                                          {NULL, 0, NULL, 0}};
    uint64_t seed = 1, all = TICKS;
    int schedules = SCHEDULES, c;

    setvbuf(stdout, NULL, _IOLBF, 0);
    while ((c = getopt_long(argc, argv, "", known, NULL)) != -1)
        if (c == 's')
            seed = strtoull(optarg, NULL, 0);
        else if (c == 'n')
            schedules = atoi(optarg);
        else if (c == 't')
            all = strtoull(optarg, NULL, 0);
        else
            return 2;
    if (schedules < 1)
        return 2;
    // Every walk gets fresh pages from the kernel, as a daemon that has just started
    // does; memory of the walk before would have been touched by then.
    mallopt(M_MMAP_THRESHOLD, 4096);
    if (CANNOT_WATCH) {
        puts("ok 1 - hygiene of the loop thread # SKIP a sanitizer owns malloc");
        return 0;
    }
    return run(seed, schedules, all);
}
