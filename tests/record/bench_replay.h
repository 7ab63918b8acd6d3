// How fast `actd replay verify --no-policy` goes through what was recorded.
#ifndef ACTD_TEST_RECORD_BENCH_REPLAY_H
#define ACTD_TEST_RECORD_BENCH_REPLAY_H

#include <stdint.h>

struct bench_replay {
    double covered_s;     // of the run
    double wall_s, cpu_s; // that it took; all of the process
    double times;         // real time: of cpu_s where others had the cores meanwhile
    uint64_t ticks;       // compared
};
// 0, or -1: it does not run, or finds a difference; said.
int bench_replay(const char *build, const char *log, struct bench_replay *out);

#endif
