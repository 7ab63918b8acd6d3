// rt: what a thread needs from the kernel to be on time: a scheduling class that was really
// granted, cores, locked memory, a stack that is already there. All functions are plain.
//
// Threads are made here and nowhere else, each with its class spelled out: a thread made with
// pthread's default attributes inherits its maker's, and a helper that inherits SCHED_FIFO can
// starve the loop it was meant to help.
#ifndef ACTD_RT_H
#define ACTD_RT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RT_GRANTED 64 // bytes of a "what the kernel gave" string
#if defined( \
    __SANITIZE_THREAD__) // ThreadSanitizer keeps its own state of a thread up there
#define RT_STACK (4096 * 1024)
#else
#define RT_STACK (256 * 1024) // bytes of an RT thread's stack
#endif
#define RT_PREFAULT (128 * 1024) // of them; the loop's deepest path uses less than 16 KiB

enum rt_class { RT_CLASS_RT, RT_CLASS_IO, RT_CLASS_INFER, RT_CLASS_PLAIN };

// Starts a thread of exactly this class, all signals blocked. RT and IO ask for SCHED_FIFO at
// `priority` (0 = do not ask) and go on as SCHED_OTHER when it is refused; RT has its stack
// touched. INFER and PLAIN are SCHED_OTHER whatever their maker is, PLAIN with nice 5 so that
// a decode or a log line gives way to inference. At most 15 bytes of the name are kept.
// 0 or -errno; the caller joins.
int rt_thread_create(pthread_t *out, const char *name, enum rt_class cls, int priority,
                     void *(*run)(void *), void *arg);

// The same with more to choose, and an answer.
struct rt_thread_spec {
    const char *name;
    enum rt_class cls;
    int priority;    // SCHED_FIFO, 0 = do not ask
    int cpu;         // the one core it may use, -1 = any
    bool require_rt; // refuse with -EPERM when the priority is not granted
};
// Waits until the thread has set itself up. granted (RT_GRANTED bytes, may be NULL) says what
// the kernel gave, read back from it: "SCHED_FIFO 50", or
// "SCHED_OTHER (SCHED_FIFO 50 refused: error 1)". 0 or -errno; the caller joins.
int rt_thread_start(pthread_t *out, const struct rt_thread_spec *spec,
                    void *(*run)(void *), void *arg, char *granted);

// Sets and reads back the calling thread's class, for threads made elsewhere (libzmq's). 0 or
// -errno; granted as above.
int rt_set_priority(int priority, char *granted);

// Keeps a thread off one core where it has another; -1 = nothing to do. 0 or -errno.
int rt_keep_off(pthread_t thread, int cpu);

// Locks all memory, present and future, as it is touched (MCL_ONFAULT: where it computes, OpenBLAS
// maps 128 MiB per caller and uses little of it). 0 or -errno: -EPERM or -ENOMEM where the limit is
// lower.
int rt_lock_memory(void);

// Asks the kernel for cores that wake at once (/dev/cpu_dma_latency, as cyclictest does): a core
// in a deep sleep takes longer to come back than a tick takes to run (on a 2-core virtual machine
// the median wake-up of an idle 200 Hz loop falls from 41 to 18 us). Holds as long as the
// descriptor that it returns is open. -errno: -ENOENT, -EACCES where it is not ours to ask.
int rt_stay_awake(void);

// Touches the next `bytes` of the calling thread's stack, so that no later call faults there.
void rt_prefault_stack(size_t bytes);

// Cores this process may use: bit per core (the first 64), how many, and the one for the loop:
// the last, since interrupts and other programs favour the first. -1 when there is only one.
uint64_t rt_cpus(void);
int rt_cpu_count(void);
// Cores for `threads` compute threads that are to keep off `cpu`, bit per core: as many as threads,
// so that each gets its own (pool.h). Two hardware threads of one core share its multipliers, so
// cores with none chosen yet come first, and the other half of the loop's last. 0 = any, when
// threads are as many as the cores or more, or cpu is -1 or beyond the mask's 64 cores: then the
// kernel moves them about, and one may run on the loop's core whenever the loop sleeps.
uint64_t rt_mask_without(int cpu, int threads);
// The same for the cores of `usable`, of which number i is a part of core core_of[i] (0 to 63).
uint64_t rt_mask_among(uint64_t usable, const uint8_t core_of[64], int cpu, int threads);
// Puts a thread on the lowest core of mask; 0 = nothing to do. 0 or -errno.
int rt_keep_on_first(pthread_t thread, uint64_t mask);
int rt_choose_cpu(void);
// Does this machine have the core, and may this process use it?
bool rt_may_run_on(int cpu);
// What to say if not; takes the core.
#define RT_NO_CPU                                                                      \
    "control.cpu: core %d is not there or this process may not use it; name one that " \
    "`taskset -p $$` shows, or -1"

#endif
