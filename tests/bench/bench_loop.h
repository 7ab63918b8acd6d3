// What the parts of bench_loop share: samples and their quantiles, the load, one round each of
// what is compared. Everything here is plain; the threads it starts say their class.
#ifndef BENCH_LOOP_H
#define BENCH_LOOP_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/clock.h"

// ---- samples ---------------------------------------------------------------------------------
struct samples {
    ns_t *v;
    size_t n, room;
};
bool samples_make(struct samples *s, size_t room); // false: no memory
void samples_free(struct samples *s);
void samples_add(struct samples *s, ns_t v); // rt; beyond the room it is dropped
void samples_join(struct samples *to, const struct samples *from);
void samples_sort(struct samples *s);
ns_t samples_at(const struct samples *s, double part); // sorted; 0 when there are none
double bench_us(ns_t v);
double bench_median(double *v, int n); // sorts v

// ---- load ------------------------------------------------------------------------------------
enum bench_load { LOAD_IDLE, LOAD_INFERENCE, LOAD_HOGS };
#define LOADS 3
extern const char *const load_name[LOADS];

// What the load is made of: writes the full-size policy, or takes a small one that ships.
// 0 or -errno, said on stderr.
int load_prepare(bool small);
int load_start(enum bench_load l); // one SCHED_OTHER thread per core
void load_stop(void);              // inferences made, and where: load_inferences
double load_inference_ms(void);    // mean of the last load; 0 without one
void load_forget(void);

// ---- what is compared ------------------------------------------------------------------------
struct bench_place { // of both sides
    int cpu, priority;
    bool asleep; // cores may sleep: as a system that nobody tuned
};

// Wake-up lateness of cyclictest. 0, -ENOENT without it, or -errno.
int late_cyclictest(const struct bench_place *at, double hz, double seconds,
                    struct samples *out);
// Wake-up lateness of the real loop thread. granted (64) is what the kernel gave it.
int late_loop(const struct bench_place *at, double hz, double seconds,
              struct samples *out, char granted[64]);

// Processor time of ticks, 14 joints and 4 live chunks, in every blend mode: measures and prints.
int tick_table(const struct bench_place *at, int ticks);

// A joint message in, the first command that used it out, and a bare libzmq pair one way.
int wire_rounds(const struct bench_place *at, double hz, int messages,
                struct samples *through, struct samples *bare);

#endif
