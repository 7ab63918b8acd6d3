// doctor_scene: a made-up machine for the tests of doctor: its answers, and a tree with /proc,
// /sys, /etc and /dev below a temporary directory. A good one to begin with; a test spoils it.
#ifndef ACTD_TESTS_DOCTOR_SCENE_H
#define ACTD_TESTS_DOCTOR_SCENE_H

#include <errno.h>
#include <ftw.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "daemon/doctor_impl.h"

#define CPUS "/sys/devices/system/cpu"

static char root[64];
static struct doctor_machine machine;
static struct statvfs disk;
static int disk_error; // errno of every path but "/" of the tree
static struct doctor_finding found[DOCTOR_MOST];
static int n_found;

static inline int fake_disk(const char *path, struct statvfs *out)
{
    if (disk_error && strcmp(path + strlen(root), "/") != 0) {
        errno = disk_error;
        return -1;
    }
    *out = disk;
    return 0;
}

// text NULL takes the file (or empty directory) away.
static inline void put_file(const char *path, const char *text)
{
    char whole[512];
    FILE *f;

    snprintf(whole, sizeof whole, "%s%s", root, path);
    if (!text) {
        assert_true(remove(whole) == 0 || errno == ENOENT);
        return;
    }
    for (char *p = whole + strlen(root) + 1; (p = strchr(p, '/')) != NULL; *p++ = '/') {
        *p = '\0';
        assert_true(mkdir(whole, 0755) == 0 || errno == EEXIST);
    }
    f = fopen(whole, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static inline int remove_one(const char *path, const struct stat *s, int type,
                             struct FTW *where)
{
    (void)s;
    (void)type;
    (void)where;
    return remove(path);
}

static inline void remove_tree(const char *path)
{
    char whole[512];

    snprintf(whole, sizeof whole, "%s%s", root, path);
    (void)nftw(whole, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static inline void good_tree(void)
{
    static const char *const file[][2] = {
        {CPUS "/cpu0/uevent", ""},
        {CPUS "/cpu1/uevent", ""},
        {CPUS "/cpu0/cpufreq/scaling_governor", "performance\n"},
        {CPUS "/cpu1/cpufreq/scaling_governor", "performance\n"},
        {CPUS "/cpu0/cpufreq/cpuinfo_max_freq", "3600000\n"},
        {CPUS "/cpu0/cpufreq/scaling_max_freq", "3600000\n"},
        {CPUS "/online", "0-1\n"},
        {CPUS "/isolated", "1\n"},
        {CPUS "/nohz_full", "1\n"},
        {CPUS "/smt/active", "0\n"},
        {"/dev/cpu_dma_latency", ""},
        {"/sys/kernel/realtime", "1\n"},
        {"/proc/cmdline", "quiet isolcpus=1 nohz_full=1\n"},
        {"/proc/stat", "cpu  1000 0 1000 8000 0 0 0 0 0 0\ncpu0 1 2 3\n"},
        {"/proc/loadavg", "1.90 2.50 3.50 1/234 5678\n"},
        {"/proc/self/cgroup", "0::/system.slice/actd.slice\n"},
        {"/sys/fs/cgroup/system.slice/actd.slice/cpu.max", "max 100000\n"},
        {"/proc/sys/kernel/sched_rt_runtime_us", "950000\n"},
        {"/proc/sys/kernel/sched_rt_period_us", "1000000\n"},
        {"/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"},
    };

    for (size_t i = 0; i < sizeof file / sizeof *file; i++)
        put_file(file[i][0], file[i][1]);
}

static inline int scene_new(void **state)
{
    static char *const none[] = {NULL};

    (void)state;
    snprintf(root, sizeof root, "/tmp/actd-doctor-XXXXXX");
    assert_non_null(mkdtemp(root));
    good_tree();
    machine = (struct doctor_machine){
        .root = root,
        .environ = none,
        .priority = 50,
        .granted = "SCHED_FIFO 50",
        .policy = SCHED_OTHER,
        .rtprio = {80, 80},
        .memlock = {RLIM_INFINITY, RLIM_INFINITY},
        .kernel = "#1 SMP PREEMPT_RT Debian 6.1.99-1",
        .cores = 2,
        .last_core = 1,
        .x86 = true,
        .avx2 = true,
        .time_known = true,
        .synced = true,
        .time_error_s = 0.002,
        .disk = fake_disk,
    };
    disk = (struct statvfs){.f_frsize = 4096,
                            .f_blocks = 25000000,
                            .f_bavail = 12500000,
                            .f_files = 100,
                            .f_favail = 50};
    disk_error = 0;
    return 0;
}

static inline int scene_free(void **state)
{
    (void)state;
    remove_tree("");
    return 0;
}

static inline void look(const struct config *cfg, const struct doctor_self *self)
{
    n_found = doctor_judge(&machine, cfg, self, found, DOCTOR_MOST);
}

static inline const struct doctor_finding *finding(const char *what)
{
    for (int i = 0; i < n_found; i++)
        if (strcmp(found[i].what, what) == 0)
            return &found[i];
    fail_msg("no finding '%s'", what);
    return NULL;
}

// The finding has this severity, and words in its text and remedy ("" = no remedy).
static inline void says(const char *what, enum doctor_severity severity, const char *text,
                        const char *remedy)
{
    const struct doctor_finding *f = finding(what);

    if (f->severity != severity || !strstr(f->text, text) ||
        (remedy[0] ? !strstr(f->remedy, remedy) : f->remedy[0] != '\0'))
        fail_msg("%s: %s: '%s' -> '%s', not %s: '%s' -> '%s'", what,
                 doctor_word(f->severity), f->text, f->remedy, doctor_word(severity),
                 text, remedy);
}

#endif
