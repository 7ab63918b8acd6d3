#include "daemon/rt.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PLAIN_NICE 5

struct start {
    const struct rt_thread_spec *spec;
    void *(*run)(void *);
    void *arg;
    char *granted;
    int rc;
    sem_t ready;
};

static const char *class_name(int policy)
{
    switch (policy) {
    case SCHED_FIFO:
        return "SCHED_FIFO";
    case SCHED_RR:
        return "SCHED_RR";
    case SCHED_BATCH:
        return "SCHED_BATCH";
    case SCHED_IDLE:
        return "SCHED_IDLE";
    default:
        return "SCHED_OTHER";
    }
}

// From the kernel, by thread id: pthread_getschedparam answers from glibc's own memory.
static void read_back(int asked, int refused, char *granted)
{
    pid_t tid = (pid_t)syscall(SYS_gettid);
    int policy = sched_getscheduler(tid);
    struct sched_param p = {0};
    char got[24];

    if (policy < 0 || sched_getparam(tid, &p) != 0) {
        snprintf(granted, RT_GRANTED, "unknown");
        return;
    }
    policy &= ~SCHED_RESET_ON_FORK;
    if (p.sched_priority > 0)
        snprintf(got, sizeof got, "%s %d", class_name(policy), p.sched_priority);
    else
        snprintf(got, sizeof got, "%s", class_name(policy));
    if (asked > 0 && refused != 0)
        snprintf(granted, RT_GRANTED, "%s (SCHED_FIFO %d refused: error %d)", got, asked,
                 refused);
    else
        snprintf(granted, RT_GRANTED, "%s", got);
}

int rt_set_priority(int priority, char *granted)
{
    struct sched_param p = {.sched_priority = priority};
    // Returns the error, a positive number, and leaves errno alone.
    int rc = pthread_setschedparam(pthread_self(),
                                   priority > 0 ? SCHED_FIFO : SCHED_OTHER, &p);

    if (granted != NULL)
        read_back(priority, rc, granted);
    return -rc;
}

static int set_cpu(int cpu)
{
    cpu_set_t set;

    if (cpu < 0)
        return 0;
    if (cpu >= CPU_SETSIZE)
        return -EINVAL;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    return -pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

int rt_keep_off(pthread_t thread, int cpu)
{
    cpu_set_t set;
    int rc = pthread_getaffinity_np(thread, sizeof set, &set);

    if (rc != 0 || cpu < 0 || cpu >= CPU_SETSIZE)
        return -rc;
    CPU_CLR((size_t)cpu, &set);
    if (CPU_COUNT(&set) == 0)
        return 0;
    return -pthread_setaffinity_np(thread, sizeof set, &set);
}

int rt_keep_on_first(pthread_t thread, uint64_t mask)
{
    cpu_set_t set;

    if (mask == 0)
        return 0;
    CPU_ZERO(&set);
    CPU_SET((size_t)__builtin_ctzll(mask), &set);
    return -pthread_setaffinity_np(thread, sizeof set, &set);
}

static void set_name(const char *name)
{
    char kept[16];

    snprintf(kept, sizeof kept, "%s", name);
    (void)pthread_setname_np(pthread_self(), kept); // only a label
}

// Never less nice than the process was started.
static void be_nice(void)
{
    id_t self = (id_t)syscall(SYS_gettid);

    if (getpriority(PRIO_PROCESS, self) < PLAIN_NICE)
        (void)setpriority(PRIO_PROCESS, self, PLAIN_NICE);
}

// What this class may ask for.
static int priority_of(const struct rt_thread_spec *spec)
{
    return spec->cls == RT_CLASS_RT || spec->cls == RT_CLASS_IO ? spec->priority : 0;
}

static int set_up(struct start *s)
{
    const struct rt_thread_spec *spec = s->spec;
    char granted[RT_GRANTED];
    int rc;

    set_name(spec->name);
    rc = set_cpu(spec->cpu);
    if (rc != 0)
        return rc;
    if (spec->cls == RT_CLASS_PLAIN)
        be_nice();
    rc = rt_set_priority(priority_of(spec), s->granted != NULL ? s->granted : granted);
    if (rc != 0 && spec->require_rt)
        return rc;
    if (spec->cls == RT_CLASS_RT)
        rt_prefault_stack(RT_PREFAULT);
    return 0;
}

static void *trampoline(void *arg)
{
    struct start *s = arg;
    void *(*run)(void *) = s->run;
    void *run_arg = s->arg;
    int rc = set_up(s);

    s->rc = rc;
    sem_post(&s->ready); // s is the starter's stack: gone after this
    return rc == 0 ? run(run_arg) : NULL;
}

// Class and stack of a thread to come: SCHED_OTHER always, it then asks for more itself, so
// that a refusal is an answer and not a thread that does not start.
static int make_attr(pthread_attr_t *attr, const struct rt_thread_spec *spec)
{
    struct sched_param other = {0};
    int rc = pthread_attr_init(attr);

    if (rc != 0)
        return -rc;
    rc = pthread_attr_setinheritsched(attr, PTHREAD_EXPLICIT_SCHED);
    if (rc == 0)
        rc = pthread_attr_setschedpolicy(attr, SCHED_OTHER);
    if (rc == 0)
        rc = pthread_attr_setschedparam(attr, &other);
    if (rc == 0 && spec->cls == RT_CLASS_RT)
        rc = pthread_attr_setstacksize(attr, RT_STACK);
    if (rc != 0)
        pthread_attr_destroy(attr);
    return -rc;
}

static int create_blocked(pthread_t *out, const pthread_attr_t *attr, struct start *s)
{
    sigset_t all, old;
    int rc;

    sigfillset(&all);
    rc = pthread_sigmask(SIG_SETMASK, &all, &old);
    if (rc != 0)
        return -rc;
    rc = pthread_create(out, attr, trampoline, s);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    return -rc;
}

int rt_thread_start(pthread_t *out, const struct rt_thread_spec *spec,
                    void *(*run)(void *), void *arg, char *granted)
{
    struct start s = {.spec = spec, .run = run, .arg = arg, .granted = granted};
    pthread_attr_t attr;
    int rc = make_attr(&attr, spec);

    if (rc != 0)
        return rc;
    if (sem_init(&s.ready, 0, 0) != 0) {
        rc = -errno;
        goto out_attr;
    }
    rc = create_blocked(out, &attr, &s);
    if (rc != 0)
        goto out_sem;
    while (sem_wait(&s.ready) != 0 && errno == EINTR)
        ;
    rc = s.rc;
    if (rc != 0)
        (void)pthread_join(*out, NULL);
out_sem:
    sem_destroy(&s.ready);
out_attr:
    pthread_attr_destroy(&attr);
    return rc;
}

int rt_thread_create(pthread_t *out, const char *name, enum rt_class cls, int priority,
                     void *(*run)(void *), void *arg)
{
    struct rt_thread_spec spec = {
        .name = name, .cls = cls, .priority = priority, .cpu = -1};

    return rt_thread_start(out, &spec, run, arg, NULL);
}

int rt_lock_memory(void)
{
    return mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0 ? 0 : -errno;
}

int rt_stay_awake(void)
{
    const int32_t none_us = 0;
    int fd = open("/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC), rc;

    if (fd < 0)
        return -errno;
    if (write(fd, &none_us, sizeof none_us) == sizeof none_us)
        return fd;
    rc = errno ? -errno : -EIO;
    close(fd);
    return rc;
}

// Page by page, deeper and deeper: the pages lie below this frame and stay mapped. Not inlined,
// or they would lie in the caller's frame for good.
__attribute__((noinline)) void rt_prefault_stack(size_t bytes)
{
    volatile unsigned char page[4096];

    for (size_t i = 0; i < sizeof page; i += 512)
        page[i] = 0;
    if (bytes > sizeof page)
        rt_prefault_stack(bytes - sizeof page);
    page[0] = 1; // after the call, so that it can not become a loop
}

uint64_t rt_cpus(void)
{
    cpu_set_t set;
    uint64_t mask = 0;

    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    for (int i = 0; i < 64; i++)
        if (CPU_ISSET((size_t)i, &set))
            mask |= UINT64_C(1) << i;
    return mask;
}

bool rt_may_run_on(int cpu)
{
    cpu_set_t set;

    return cpu >= 0 && cpu < CPU_SETSIZE && sched_getaffinity(0, sizeof set, &set) == 0 &&
           CPU_ISSET((size_t)cpu, &set);
}

int rt_cpu_count(void)
{
    return __builtin_popcountll(rt_cpus());
}

static uint64_t bit(int cpu)
{
    return UINT64_C(1) << cpu;
}

// The first hardware thread of the core that this one is a part of; itself when nobody says.
static int whole_core(int cpu)
{
    char path[96];
    int first = cpu;

    snprintf(path, sizeof path,
             "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    FILE *f = fopen(path, "re");
    if (!f)
        return cpu;
    if (fscanf(f, "%d", &first) != 1 || first < 0 || first > 63)
        first = cpu;
    fclose(f);
    return first;
}

uint64_t rt_mask_among(uint64_t usable, const uint8_t core_of[64], int cpu, int threads)
{
    enum { IDLE_CORES, NOT_THE_LOOPS, ANY, PASSES };
    int left = threads < 1 ? 1 : threads;
    uint64_t mask = 0, busy;

    if (cpu < 0 || cpu > 63 || threads >= __builtin_popcountll(usable))
        return 0;
    busy = bit(core_of[cpu]);
    for (int pass = 0; pass < PASSES; pass++)
        for (int i = 0; i < 64 && left > 0; i++) {
            bool taken = !(usable & ~mask & bit(i)) || i == cpu;

            if (taken || (pass == IDLE_CORES && busy & bit(core_of[i])) ||
                (pass == NOT_THE_LOOPS && core_of[i] == core_of[cpu]))
                continue;
            busy |= bit(core_of[i]);
            mask |= bit(i);
            left--;
        }
    return mask;
}

uint64_t rt_mask_without(int cpu, int threads)
{
    const uint64_t usable = rt_cpus();
    uint8_t core_of[64];

    for (int i = 0; i < 64; i++)
        core_of[i] = (uint8_t)(usable >> i & 1 || i == cpu ? whole_core(i) : i);
    return rt_mask_among(usable, core_of, cpu, threads);
}

int rt_choose_cpu(void)
{
    uint64_t mask = rt_cpus();

    return rt_cpu_count() > 1 ? 63 - __builtin_clzll(mask) : -1;
}
