// doctor on machines that are made up: a good one, and each thing that hurts, alone.
#include "tests/unit/doctor_scene.h"

#include <linux/capability.h>

#define NICE_BIT (UINT64_C(1) << CAP_SYS_NICE)
#define LOCK_BIT (UINT64_C(1) << CAP_IPC_LOCK)

static void a_good_machine_is_good(void **state)
{
    (void)state;
    look(NULL, NULL);
    assert_true(n_found >= 18);
    for (int i = 0; i < n_found; i++) {
        if (found[i].severity != DOCTOR_GOOD || found[i].remedy[0])
            fail_msg("%s: %s -> %s", found[i].what, found[i].text, found[i].remedy);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(found[i].what, found[k].what);
    }
}

// One file of the good machine changed: one finding changes, and no other gets worse.
static const struct spoil {
    const char *path, *text; // text NULL = the file is not there
    const char *what;
    enum doctor_severity severity;
    const char *says, *remedy;
} spoils[] = {
    {CPUS "/cpu1/cpufreq/scaling_governor", "powersave\n", "governor", DOCTOR_HURTS,
     "'powersave' on core 1 (1 of 2", "cpupower frequency-set -g performance"},
    {CPUS "/cpu0/cpufreq/scaling_max_freq", "800000\n", "frequency", DOCTOR_HURTS,
     "0.80 of 3.60 GHz", "frequency-set -u 3600000kHz"},
    {CPUS "/isolated", "\n", "isolated", DOCTOR_NOTE, "no core is kept",
     "isolcpus=domain,managed_irq,1 nohz_full=1 rcu_nocbs=1"},
    {CPUS "/isolated", "0,2-7\n", "isolated", DOCTOR_HURTS, "0,2-7 are isolated",
     "control.cpu"},
    {CPUS "/isolated", "0-3\n", "isolated", DOCTOR_GOOD, "core 1", ""},
    {CPUS "/isolated", NULL, "isolated", DOCTOR_NOTE, DOCTOR_UNKNOWN, ""},
    {CPUS "/nohz_full", "(null)\n", "nohz_full", DOCTOR_NOTE, "interrupts every core",
     "nohz_full=1 rcu_nocbs=1"},
    {CPUS "/nohz_full", "2-3\n", "nohz_full", DOCTOR_NOTE, "the loop's does not",
     "control.cpu to one of 2-3"},
    {CPUS "/nohz_full", NULL, "nohz_full", DOCTOR_NOTE, "built without nohz_full", ""},
    {"/proc/loadavg", "2.10 0.50 0.50 1/234 5678\n", "load", DOCTOR_NOTE,
     "2.1 programs want 2 cores: inference waits", "end them"}, // the loop's is isolated
    {"/proc/loadavg", "2.00 9.50 9.50 1/234 5678\n", "load", DOCTOR_GOOD,
     "2.0 programs want 2 cores", ""},
    {"/proc/loadavg", "2.10", "load", DOCTOR_NOTE, DOCTOR_UNKNOWN, ""},
    {"/proc/loadavg", "nan 1 1\n", "load", DOCTOR_NOTE, DOCTOR_UNKNOWN, ""},
    {"/proc/loadavg", "-1.0 1 1\n", "load", DOCTOR_NOTE, DOCTOR_UNKNOWN, ""},
    {"/proc/loadavg", NULL, "load", DOCTOR_NOTE, DOCTOR_UNKNOWN, ""},
    {CPUS "/smt/active", "1\n", "SMT", DOCTOR_NOTE, "share a core", "smt/control"},
    {CPUS "/smt/active", NULL, "SMT", DOCTOR_NOTE, DOCTOR_UNKNOWN, ""},
    {CPUS "/smt/active", "yes\n", "SMT", DOCTOR_NOTE, DOCTOR_UNKNOWN, ""},
    {"/dev/cpu_dma_latency", NULL, "cpu_dma_latency", DOCTOR_NOTE, DOCTOR_UNKNOWN, ""},
    {"/proc/stat", "cpu  1000 0 1000 7500 0 0 0 500 0 0\n", "steal", DOCTOR_HURTS,
     "5.0 %", "pin"},
    {"/proc/stat", "cpu  1000 0 1000 7950 0 0 0 50 0 0\n", "steal", DOCTOR_NOTE, "0.5 %",
     "pin"},
    {"/proc/stat", "cpu  1000 0 1000\n", "steal", DOCTOR_NOTE, DOCTOR_UNKNOWN, ""},
    {"/proc/stat", NULL, "steal", DOCTOR_NOTE, DOCTOR_UNKNOWN, ""},
    {"/.dockerenv", "", "container", DOCTOR_NOTE, "docker", ""},
    {"/run/.containerenv", "", "container", DOCTOR_NOTE, "podman", ""},
    {"/sys/fs/cgroup/system.slice/actd.slice/cpu.max", "50000 100000\n", "cpu quota",
     DOCTOR_HURTS, "0.50 cores", "CPUQuota="},
    {"/sys/fs/cgroup/system.slice/cpu.max", "150000 100000\n", "cpu quota", DOCTOR_HURTS,
     "1.50 cores", "CPUQuota="},
    {"/sys/fs/cgroup/cpu.max", "20000 100000\n", "cpu quota", DOCTOR_HURTS, "0.20 cores",
     "CPUQuota="},
    {"/proc/self/cgroup", NULL, "cpu quota", DOCTOR_NOTE, DOCTOR_UNKNOWN, ""},
    {"/proc/sys/kernel/sched_rt_runtime_us", "-1\n", "rt throttling", DOCTOR_GOOD, "off",
     ""},
    {"/proc/sys/kernel/sched_rt_runtime_us", "500000\n", "rt throttling", DOCTOR_HURTS,
     "50 % of each 1000 ms", "kernel.sched_rt_runtime_us=950000"},
    {"/proc/sys/kernel/sched_rt_runtime_us", "0\n", "rt throttling", DOCTOR_HURTS, "0 %",
     "sysctl"},
    {"/proc/sys/kernel/sched_rt_runtime_us", NULL, "rt throttling", DOCTOR_NOTE,
     DOCTOR_UNKNOWN, ""},
    {"/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n", "THP",
     DOCTOR_NOTE, "for everybody", "echo madvise"},
    {"/sys/kernel/mm/transparent_hugepage/enabled", NULL, "THP", DOCTOR_NOTE,
     DOCTOR_UNKNOWN, ""},
};

static void each_file_that_hurts_is_found(void **state)
{
    for (size_t i = 0; i < sizeof spoils / sizeof *spoils; i++) {
        const struct spoil *s = &spoils[i];

        put_file(s->path, s->text);
        look(NULL, NULL);
        says(s->what, s->severity, s->says, s->remedy);
        for (int k = 0; k < n_found; k++)
            if (found[k].severity != DOCTOR_GOOD && strcmp(found[k].what, s->what) != 0)
                fail_msg("%s: also %s: %s", s->path, found[k].what, found[k].text);
        scene_free(state);
        scene_new(state);
    }
}

// The least of the cgroup's own and those above it counts.
static void the_least_quota_counts(void **state)
{
    (void)state;
    put_file("/sys/fs/cgroup/system.slice/actd.slice/cpu.max", "50000 100000\n");
    put_file("/sys/fs/cgroup/system.slice/cpu.max", "150000 100000\n");
    look(NULL, NULL);
    says("cpu quota", DOCTOR_HURTS, "0.50 cores", "CPUQuota=");
    put_file("/sys/fs/cgroup/cpu.max", "20000 100000\n");
    look(NULL, NULL);
    says("cpu quota", DOCTOR_HURTS, "0.20 cores", "CPUQuota=");
}

static void the_quota_of_version_1_is_found(void **state)
{
    static const char *const line[] = {"4:cpu,cpuacct:/robot\n", "4:cpu:/robot\n",
                                       "9:name=systemd:/\n1:cpu:/robot\n0::/\n"};

    (void)state;
    put_file("/sys/fs/cgroup/cpu/robot/cpu.cfs_quota_us", "80000\n");
    put_file("/sys/fs/cgroup/cpu/robot/cpu.cfs_period_us", "100000\n");
    for (int i = 0; i < 3; i++) {
        put_file("/proc/self/cgroup", line[i]);
        look(NULL, NULL);
        says("cpu quota", DOCTOR_HURTS, "0.80 cores", "CPUQuota=");
    }
    put_file("/sys/fs/cgroup/cpu/robot/cpu.cfs_quota_us", "-1\n");
    look(NULL, NULL);
    says("cpu quota", DOCTOR_GOOD, "no bound", "");
    put_file("/proc/self/cgroup", "5:cpuset:/robot\n"); // another controller
    put_file("/sys/fs/cgroup/cpu/robot/cpu.cfs_quota_us", "80000\n");
    look(NULL, NULL);
    says("cpu quota", DOCTOR_GOOD, "no bound", "");
}

// ProcSubset=pid, PrivateDevices, no /sys: nothing is guessed.
static void what_is_hidden_is_unknown(void **state)
{
    static const char *const what[] = {
        "governor", "isolated",  "nohz_full",       "SMT", "steal", "rt throttling",
        "THP",      "cpu quota", "cpu_dma_latency", "load"};

    (void)state;
    remove_tree("/proc");
    remove_tree("/sys");
    remove_tree("/dev");
    snprintf(machine.kernel, sizeof machine.kernel, "#1 SMP PREEMPT_DYNAMIC Debian");
    machine.time_known = false;
    machine.policy = -1;
    machine.granted[0] = '\0';
    look(NULL, NULL);
    for (size_t i = 0; i < sizeof what / sizeof *what; i++)
        says(what[i], DOCTOR_NOTE, DOCTOR_UNKNOWN, "");
    says("time", DOCTOR_NOTE, DOCTOR_UNKNOWN, "");
    says("niceness", DOCTOR_NOTE, DOCTOR_UNKNOWN, "");
    says("scheduling", DOCTOR_NOTE, DOCTOR_UNKNOWN, "");
    says("preemption", DOCTOR_NOTE, DOCTOR_UNKNOWN, "");
    for (int i = 0; i < n_found; i++)
        assert_int_not_equal(found[i].severity, DOCTOR_HURTS);
}

static void preemption_models(void **state)
{
    static const struct {
        const char *realtime, *kernel, *cmdline;
        enum doctor_severity severity;
        const char *says;
    } model[] = {
        {"1\n", "#1 SMP", "quiet\n", DOCTOR_GOOD, "PREEMPT_RT"},
        {"0\n", "#1 SMP PREEMPT_RT", "quiet\n", DOCTOR_GOOD, "PREEMPT_RT"},
        {NULL, "#1 SMP PREEMPT RT", "quiet\n", DOCTOR_GOOD, "PREEMPT_RT"},
        {NULL, "#1 SMP PREEMPT Debian", "quiet\n", DOCTOR_GOOD, "preemptible kernel;"},
        {NULL, "#1 SMP Debian", "quiet\n", DOCTOR_HURTS, "not preemptible"},
        {NULL, "#1 SMP PREEMPT_DYNAMIC", "quiet\n", DOCTOR_NOTE, "no preempt= was given"},
        {NULL, "#1 SMP PREEMPT_DYNAMIC", "preempt=full quiet\n", DOCTOR_GOOD,
         "preempt=full"},
        {NULL, "#1 SMP PREEMPT_DYNAMIC", "a preempt=none b\n", DOCTOR_HURTS,
         "preempt=none"},
        {NULL, "#1 SMP PREEMPT_DYNAMIC", "preempt=none preempt=full\n", DOCTOR_GOOD,
         "preempt=full"},
        {NULL, "#1 SMP PREEMPT_DYNAMIC", "rcu.nopreempt=full\n", DOCTOR_NOTE,
         "no preempt="},
        {NULL, "", "quiet\n", DOCTOR_NOTE, DOCTOR_UNKNOWN},
    };

    (void)state;
    for (size_t i = 0; i < sizeof model / sizeof *model; i++) {
        put_file("/sys/kernel/realtime", model[i].realtime);
        put_file("/proc/cmdline", model[i].cmdline);
        snprintf(machine.kernel, sizeof machine.kernel, "%s", model[i].kernel);
        look(NULL, NULL);
        const struct doctor_finding *f = finding("preemption");
        if (f->severity != model[i].severity || !strstr(f->text, model[i].says))
            fail_msg("%zu: %s: %s", i, doctor_word(f->severity), f->text);
        if (f->severity == DOCTOR_HURTS)
            assert_non_null(strstr(f->remedy, "apt"));
    }
}

static void limits_of_a_login(void **state)
{
    (void)state;
    machine.rtprio = (struct rlimit){0, 0};
    machine.memlock = (struct rlimit){8u << 20, 8u << 20};
    snprintf(machine.granted, sizeof machine.granted,
             "SCHED_OTHER (SCHED_FIFO 50 refused: error 1)");
    look(NULL, NULL);
    says("scheduling", DOCTOR_HURTS, "would get SCHED_OTHER", "limits.d/actd.conf");
    says("rtprio", DOCTOR_HURTS, "is 0 (hard 0)", "$USER - rtprio 80");
    says("memlock", DOCTOR_HURTS, "8 MiB", "$USER - memlock unlimited");

    put_file("/etc/security/limits.conf", "# @x - rtprio 5\nrtprio\n"); // no such line
    look(NULL, NULL);
    says("rtprio", DOCTOR_HURTS, "is 0", "tee -a");
    put_file("/etc/security/limits.d/robot.conf",
             "@robot - memlock 99\n@robot\t-\trtprio\t80\n");
    look(NULL, NULL);
    says("rtprio", DOCTOR_HURTS, "is 0", "log out and in again");
    says("memlock", DOCTOR_HURTS, "8 MiB", "log out and in again");

    machine.rtprio = (struct rlimit){80, 80}; // suffices, and refused all the same
    look(NULL, NULL);
    says("scheduling", DOCTOR_HURTS, "would get SCHED_OTHER", "cgroup");
    machine.rtprio = (struct rlimit){49, 80};
    look(NULL, NULL);
    says("scheduling", DOCTOR_HURTS, "would get SCHED_OTHER", "rtprio");
    says("rtprio", DOCTOR_HURTS, "49 (hard 80), and the loop asks for priority 50",
         "rtprio");
    machine.capabilities = NICE_BIT | LOCK_BIT;
    look(NULL, NULL);
    says("rtprio", DOCTOR_GOOD, "CAP_SYS_NICE", "");
    says("memlock", DOCTOR_GOOD, "without limit", "");
}

static void the_daemon_of_a_service(void **state)
{
    static struct config cfg;
    struct doctor_self self = {.scheduling =
                                   "SCHED_OTHER (SCHED_FIFO 50 refused: error 1)",
                               .loop_cpu = 0,
                               .kernels = "avx2"};

    (void)state;
    memset(&cfg, 0, sizeof cfg);
    snprintf(cfg.instance, sizeof cfg.instance, "left");
    snprintf(cfg.file, sizeof cfg.file, "/etc/actd/left.yaml");
    cfg.control.lock_memory = true;
    machine.rtprio = (struct rlimit){0, 0};
    machine.memlock = (struct rlimit){65536, 65536};
    look(&cfg, &self);
    says("scheduling", DOCTOR_HURTS, "the loop's thread has SCHED_OTHER",
         "systemctl edit actd@left");
    says("rtprio", DOCTOR_HURTS, "is 0", "LimitRTPRIO=80");
    says("memlock", DOCTOR_HURTS, "not locked", "LimitMEMLOCK=infinity");
    says("isolated", DOCTOR_HURTS, "the loop is not on one of them", "control.cpu");
    says("kernels", DOCTOR_GOOD, "its avx2 kernels", "");
    cfg.control.lock_memory = false;
    look(&cfg, &self);
    says("memlock", DOCTOR_HURTS, "control.lock_memory is false", "/etc/actd/left.yaml");

    self.memory_locked = true;
    self.scheduling = "SCHED_FIFO 50";
    self.loop_cpu = 1;
    self.kernels = "generic";
    look(&cfg, &self);
    says("memlock", DOCTOR_GOOD, "is locked", "");
    says("scheduling", DOCTOR_GOOD, "the loop's thread has SCHED_FIFO 50", "");
    says("isolated", DOCTOR_GOOD, "core 1", "");
    says("kernels", DOCTOR_NOTE, "plain C", "");
}

// What is configured is looked at: the core, the directories.
static void the_configuration_is_asked(void **state)
{
    static struct config cfg;

    (void)state;
    memset(&cfg, 0, sizeof cfg);
    cfg.control.cpu = 0;
    snprintf(cfg.black_box.directory, sizeof cfg.black_box.directory, "/data/box");
    snprintf(cfg.swap.directory, sizeof cfg.swap.directory, "/data/policies");
    look(&cfg, NULL);
    says("isolated", DOCTOR_HURTS, "not on one of them", "control.cpu");
    says("log disk", DOCTOR_GOOD, "/data/box", "");
    says("policy disk", DOCTOR_GOOD, "51 GB free (50 %) for /data/policies", "");
}

static void one_core_is_not_enough(void **state)
{
    (void)state;
    machine.cores = 1;
    machine.last_core = -1;
    put_file(CPUS "/isolated", "\n");
    look(NULL, NULL);
    says("isolated", DOCTOR_HURTS, "one core only", "");
    put_file(CPUS "/nohz_full", "\n");
    look(NULL, NULL);
    says("nohz_full", DOCTOR_NOTE, "would need a second core", "");
}

static void variables(void **state)
{
    static char *const loader[] = {"HOME=/x", "LD_PRELOAD=/x.so", "MALLOC_ARENA_MAX=1",
                                   NULL};
    static char *const blas[] = {"OPENBLAS_CORETYPE=Nehalem", "OMP_NUM_THREADS=4",
                                 "GOTO_X=1", NULL};
    static char *const empty[] = {"LD_PRELOAD=", "OMP_X=", "XLD_PRELOAD=1", NULL};
    static char *const ours[] = {"OPENBLAS_CORETYPE=Haswell", "OPENBLAS_NUM_THREADS=1",
                                 NULL};
    static char *const hostile[] = {"LD_PRELOAD=a", "MALLOC_\n\x1b[31m=b", NULL};
    const struct doctor_self self = {.loop_cpu = -1};
    const struct doctor_self daemon = {.scheduling = "SCHED_FIFO 50", .loop_cpu = 1};

    (void)state;
    machine.environ = loader;
    look(NULL, NULL);
    says("environment", DOCTOR_HURTS, "LD_PRELOAD MALLOC_ARENA_MAX is set",
         "unset LD_PRELOAD MALLOC_ARENA_MAX");
    look(NULL, &daemon);
    says("environment", DOCTOR_HURTS, "LD_PRELOAD",
         "UnsetEnvironment=LD_PRELOAD MALLOC_ARENA_MAX");
    machine.environ = blas;
    look(NULL, NULL);
    says("environment", DOCTOR_NOTE, "OPENBLAS_CORETYPE OMP_NUM_THREADS GOTO_X is set",
         "unset");
    machine.environ = empty;
    look(NULL, NULL);
    says("environment", DOCTOR_GOOD, "no variable", "");
    machine.environ = ours;
    look(NULL, &self);
    says("environment", DOCTOR_GOOD, "no variable", "");
    machine.environ = hostile;
    look(NULL, NULL);
    says("environment", DOCTOR_HURTS, "MALLOC_??[31m", "unset");
}

static void processors(void **state)
{
    const struct doctor_self self = {
        .loop_cpu = -1, .kernels = "openblas", .blas_core = "Sandybridge"};

    (void)state;
    machine.avx2 = false;
    look(NULL, &self);
    says("instructions", DOCTOR_HURTS, "no AVX2", "use a PC with AVX2");
    says("kernels", DOCTOR_NOTE, "OpenBLAS's, with its Sandybridge kernels", "");
    machine.hypervisor = true;
    look(NULL, NULL);
    says("instructions", DOCTOR_HURTS, "no AVX2", "-cpu host");
    says("hypervisor", DOCTOR_NOTE, "virtual machine", "the machine itself");
    machine.avx2 = machine.avx512 = true;
    look(NULL, NULL);
    says("instructions", DOCTOR_GOOD, "AVX-512", "");
    put_file(CPUS "/cpu0/cpufreq/scaling_governor", NULL);
    put_file(CPUS "/cpu1/cpufreq/scaling_governor", NULL);
    look(NULL, NULL);
    says("governor", DOCTOR_NOTE, "not seen from a virtual machine", "");
    machine.hypervisor = false;
    look(NULL, NULL);
    says("governor", DOCTOR_GOOD, "no frequency scaling", "");
    machine.x86 = machine.avx2 = machine.avx512 = false;
    look(NULL, NULL);
    says("instructions", DOCTOR_NOTE, "not an x86-64", "");
    says("hypervisor", DOCTOR_NOTE, DOCTOR_UNKNOWN, "");
}

static void manners_of_the_start(void **state)
{
    (void)state;
    machine.nice = 10;
    look(NULL, NULL);
    says("niceness", DOCTOR_HURTS, "nice 10", "renice");
    machine.policy = SCHED_IDLE;
    look(NULL, NULL);
    says("niceness", DOCTOR_HURTS, "SCHED_IDLE", "chrt");
    machine.synced = false;
    look(NULL, NULL);
    says("time", DOCTOR_NOTE, "not synchronised", "chrony");
}

static void disks(void **state)
{
    (void)state;
    disk_error = ENOENT; // not made yet: the disk that it will be made on counts
    look(NULL, NULL);
    says("log disk", DOCTOR_GOOD, "51 GB free (50 %) for /var/log/actd", "");
    disk_error = EACCES;
    look(NULL, NULL);
    says("log disk", DOCTOR_NOTE, DOCTOR_UNKNOWN, "");
    disk_error = 0;
    disk.f_bavail = 1000000; // 4 GB, 4 %
    look(NULL, NULL);
    says("log disk", DOCTOR_HURTS, "4.10 GB free (4 %)", "du -xh");
    disk.f_blocks = 300000;
    disk.f_bavail = 200000; // 0.8 GB, 67 %
    look(NULL, NULL);
    says("state disk", DOCTOR_NOTE, "0.82 GB free (67 %)", "/var/lib/actd");
    disk.f_blocks = disk.f_bavail = 25000000;
    disk.f_favail = 0;
    look(NULL, NULL);
    says("log disk", DOCTOR_HURTS, "no inode", "du");
    disk.f_files = 0; // btrfs counts none
    look(NULL, NULL);
    says("log disk", DOCTOR_GOOD, "free", "");
    disk.f_files = 100;
    disk.f_favail = 50;
    disk.f_flag = ST_RDONLY;
    look(NULL, NULL);
    says("log disk", DOCTOR_HURTS, "read-only", "remount,rw");
    says("state disk", DOCTOR_GOOD, "102 GB free",
         ""); // a sandbox shows it so, on purpose
}

// Whatever a file holds.
static void strange_files_do_no_harm(void **state)
{
    static char large[3 * DOCTOR_FILE];

    (void)state;
    memset(large, '7', sizeof large - 1);
    for (size_t i = 0; i < sizeof spoils / sizeof *spoils; i++)
        put_file(spoils[i].path, i % 3 == 0   ? large
                                 : i % 3 == 1 ? "-\n"
                                              : "\x80\n\n:::\n/");
    look(NULL, NULL);
    assert_true(n_found >= 18);
    for (int max = 0; max < n_found; max++)
        assert_int_equal(doctor_judge(&machine, NULL, NULL, found, max), max);
}

static void lists_of_cores(void **state)
{
    (void)state;
    assert_true(doctor_listed("1", 1));
    assert_true(doctor_listed("0,2-7", 7));
    assert_true(doctor_listed("2-3,6", 6));
    assert_false(doctor_listed("2-3,6", 4));
    assert_false(doctor_listed("12", 1));
    assert_false(doctor_listed("", 0));
    assert_false(doctor_listed("(null)", 0));
}

static struct doctor_finding make(const char *what, enum doctor_severity s,
                                  const char *text)
{
    struct doctor_finding f = {.severity = s};

    snprintf(f.what, sizeof f.what, "%s", what);
    snprintf(f.text, sizeof f.text, "%s", text);
    return f;
}

static void two_views_are_merged(void **state)
{
    const struct doctor_finding daemon[] = {
        make("scheduling", DOCTOR_HURTS, "daemon's"),
        make("kernels", DOCTOR_GOOD, "daemon's"),
        make("steal", DOCTOR_NOTE, DOCTOR_UNKNOWN "hidden"),
        make("THP", DOCTOR_NOTE, "daemon's"),
        make("niceness", DOCTOR_NOTE, DOCTOR_UNKNOWN "of the daemon")};
    const struct doctor_finding ours[] = {
        make("scheduling", DOCTOR_GOOD, "ours"), make("steal", DOCTOR_HURTS, "ours"),
        make("THP", DOCTOR_GOOD, "ours"), make("niceness", DOCTOR_GOOD, "ours"),
        make("frequency", DOCTOR_GOOD, "ours")};
    struct doctor_finding out[8];

    (void)state;
    assert_int_equal(doctor_merge(daemon, 5, ours, 5, out, 8), 6);
    assert_string_equal(out[0].text, "daemon's");
    assert_string_equal(out[2].text, "ours"); // the daemon did not see it
    assert_int_equal(out[2].severity, DOCTOR_HURTS);
    assert_string_equal(out[3].text, "daemon's");
    assert_string_equal(out[4].text,
                        DOCTOR_UNKNOWN "of the daemon"); // ours says nothing of it
    assert_string_equal(out[5].what, "frequency");
    assert_int_equal(doctor_merge(daemon, 5, ours, 5, out, 2), 2);
    assert_int_equal(doctor_merge(NULL, 0, ours, 5, out, 8), 5);
}

static void print_is_worst_first(void **state)
{
    struct doctor_finding f[] = {make("a", DOCTOR_GOOD, "fine"),
                                 make("b", DOCTOR_HURTS, "bad"),
                                 make("c", DOCTOR_NOTE, "hm")};
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);

    (void)state;
    snprintf(f[1].remedy, sizeof f[1].remedy, "mend it");
    assert_int_equal(doctor_print(f, 3, out), DOCTOR_HURTS);
    assert_int_equal(doctor_print(f, 1, out), DOCTOR_GOOD);
    f[1].severity = DOCTOR_NOTE;
    assert_int_equal(doctor_print(f, 3, out), DOCTOR_NOTE);
    fclose(out);
    assert_true(strstr(text, "hurts  b") < strstr(text, "-> mend it"));
    assert_true(strstr(text, "-> mend it") < strstr(text, "note   c"));
    assert_true(strstr(text, "note   c") < strstr(text, "good   a"));
    assert_non_null(strstr(text, "\n1 problem, 1 note, 1 good\n"));
    assert_non_null(strstr(text, "\n0 problems, 0 notes, 1 good\n"));
    assert_non_null(strstr(text, "\n0 problems, 2 notes, 1 good\n"));
    free(text);
}

// The machine that the test runs on: whatever it is, every question is answered.
static void this_machine_answers(void **state)
{
    struct doctor_finding f[DOCTOR_MOST];
    int n = doctor_look(NULL, NULL, f, DOCTOR_MOST);

    (void)state;
    assert_true(n >= 18);
    assert_true(n < DOCTOR_MOST);
    for (int i = 0; i < n; i++) {
        assert_true(f[i].what[0] && f[i].text[0]);
        assert_true(strlen(f[i].text) < DOCTOR_TEXT - 1); // nothing was cut
        assert_true(strlen(f[i].remedy) < DOCTOR_REMEDY - 1);
        if (f[i].severity == DOCTOR_HURTS && strcmp(f[i].what, "isolated") != 0)
            assert_true(f[i].remedy[0]);
    }
}

#define WITH(f) cmocka_unit_test_setup_teardown(f, scene_new, scene_free)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(a_good_machine_is_good),
        WITH(each_file_that_hurts_is_found),
        WITH(the_least_quota_counts),
        WITH(the_quota_of_version_1_is_found),
        WITH(what_is_hidden_is_unknown),
        WITH(preemption_models),
        WITH(limits_of_a_login),
        WITH(the_daemon_of_a_service),
        WITH(the_configuration_is_asked),
        WITH(one_core_is_not_enough),
        WITH(variables),
        WITH(processors),
        WITH(manners_of_the_start),
        WITH(disks),
        WITH(strange_files_do_no_harm),
        cmocka_unit_test(lists_of_cores),
        cmocka_unit_test(two_views_are_merged),
        cmocka_unit_test(print_is_worst_first),
        cmocka_unit_test(this_machine_answers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
