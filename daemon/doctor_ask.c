// doctor_ask: what the kernel answers this process.
#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <unistd.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

#include "daemon/doctor_impl.h"

extern char **environ;

// As the kernel has it; glibc of Debian 12 knows neither the call nor the struct.
struct sched_attribute {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

static void ask_class(struct doctor_machine *m)
{
    struct sched_attribute a = {.size = sizeof a};

    m->policy = -1;
    // Of the main thread: the one that asks may have been made nice on purpose.
    if (syscall(SYS_sched_getattr, getpid(), &a, sizeof a, 0) != 0)
        return;
    m->policy = (int)a.policy;
    m->nice = a.nice;
}

static void ask_rights(struct doctor_machine *m)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{0}};

    m->root_user = geteuid() == 0;
    if (syscall(SYS_capget, &head, data) == 0)
        m->capabilities = (uint64_t)data[1].effective << 32 | data[0].effective;
    if (getrlimit(RLIMIT_RTPRIO, &m->rtprio) != 0)
        m->rtprio = (struct rlimit){0, 0};
    if (getrlimit(RLIMIT_MEMLOCK, &m->memlock) != 0)
        m->memlock = (struct rlimit){0, 0};
}

static void ask_processor(struct doctor_machine *m)
{
    m->cores = rt_cpu_count();
    m->last_core = rt_choose_cpu();
#ifdef __x86_64__
    unsigned a, b, c, e;

    m->x86 = true;
    m->avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    m->avx512 = __builtin_cpu_supports("avx512f");
    m->hypervisor = __get_cpuid(1, &a, &b, &c, &e) && (c >> 31 & 1);
#endif
}

static void ask_clock(struct doctor_machine *m)
{
    struct timex t = {.modes = 0}; // reads only
    int state = adjtimex(&t);

    m->time_known = state >= 0;
    m->synced = state >= 0 && state != TIME_ERROR && !(t.status & STA_UNSYNC);
    m->time_error_s = (double)t.maxerror / 1e6;
}

static void *nothing(void *arg)
{
    return arg;
}

// Capabilities, the limit and the cgroup all have a say: only trying tells.
static void ask_grant(struct doctor_machine *m)
{
    const struct rt_thread_spec spec = {
        .name = "probe", .cls = RT_CLASS_RT, .priority = m->priority, .cpu = -1};
    pthread_t t;

    if (rt_thread_start(&t, &spec, nothing, NULL, m->granted) == 0)
        pthread_join(t, NULL);
    else
        m->granted[0] = '\0';
}

void doctor_ask(struct doctor_machine *m, int priority, bool try_class)
{
    struct utsname name;

    memset(m, 0, sizeof *m);
    m->root = "";
    m->environ = environ;
    m->priority = priority;
    m->disk = statvfs;
    if (uname(&name) == 0)
        snprintf(m->kernel, sizeof m->kernel, "%s", name.version);
    ask_class(m);
    ask_rights(m);
    ask_processor(m);
    ask_clock(m);
    if (try_class)
        ask_grant(m);
}
