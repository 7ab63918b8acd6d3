// The inside of doctor: the machine as facts (doctor_ask.c asks the kernel, doctor_read.c reads
// files), and one file per kind of judgement. A test makes up both: the answers, and a tree with
// /proc and /sys under a root of its own.
#ifndef ACTD_DOCTOR_IMPL_H
#define ACTD_DOCTOR_IMPL_H

#include <stdint.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include "daemon/doctor.h"
#include "daemon/rt.h"

#define DOCTOR_FILE \
    4096 // bytes read of a file; all of ours are shorter, or a line of them does

// What only system calls tell.
struct doctor_machine {
    const char *root; // before every path: "" = this machine's
    char *const *environ;
    int priority; // that the loop would ask for
    char
        granted[RT_GRANTED]; // class that a thread got which asked for it, "" = not tried
    int policy, nice;        // of the process: SCHED_*; -1 = unknown
    bool root_user;
    uint64_t capabilities; // effective, bit per CAP_*
    struct rlimit rtprio, memlock;
    char kernel[256];        // version of the kernel, as uname -v has it
    int cores;               // this process may use
    int last_core;           // of them, where the loop runs by preset; -1 = only one
    bool x86, avx2, avx512;  // AVX2 with FMA
    bool hypervisor;         // x86 only
    bool time_known, synced; // adjtimex
    double time_error_s;     // largest, as the kernel knows it
    int (*disk)(const char *path, struct statvfs *out); // 0 or -1, as statvfs
};

struct doctor {
    const struct doctor_machine *m;
    const struct config *cfg;       // may be NULL
    const struct doctor_self *self; // may be NULL
    bool daemon;                    // self has a loop
    int loop_cpu;                   // where the loop runs or would, -1 = any
    struct doctor_finding *out;
    int n, max;
};

// doctor.c, plain. doctor_look with a machine of the caller's.
int doctor_judge(const struct doctor_machine *m, const struct config *cfg,
                 const struct doctor_self *self, struct doctor_finding *out, int max);
// plain. A finding; text and remedy are formatted by the caller's two calls.
struct doctor_finding *doctor_say(struct doctor *d, const char *what,
                                  enum doctor_severity severity, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void doctor_mend(struct doctor_finding *f, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void doctor_unknown(struct doctor *d, const char *what, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// doctor_ask.c, plain. try_class: whether to try what class is granted.
void doctor_ask(struct doctor_machine *m, int priority, bool try_class);

// doctor_read.c, plain. Text of a file under the root without the white space at its end; bytes,
// or -errno. out holds DOCTOR_FILE.
int doctor_read(const struct doctor *d, char *out, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool doctor_is_there(const struct doctor *d, const char *path);
// A whole number in a file; false = not to be had.
bool doctor_number(const struct doctor *d, const char *path, long long *out);
// Is core `cpu` in a list like "2-3,6"?
bool doctor_listed(const char *list, int cpu);

// The judgements, each a few findings.
void doctor_process(struct doctor *d); // doctor_process.c: class, limits, niceness
void doctor_environ(
    struct doctor *d); // doctor_environ.c: environment, kernels, instructions
void doctor_cores(struct doctor *d);   // doctor_cores.c: governor, isolated, SMT, latency
void doctor_load(struct doctor *d);    // doctor_load.c: what else wants to run
void doctor_kernel(struct doctor *d);  // doctor_kernel.c: preemption, throttling, THP
void doctor_housing(struct doctor *d); // doctor_housing.c: VM, container, cgroup quota
void doctor_keeping(struct doctor *d); // doctor_keeping.c: time, disk

#endif
