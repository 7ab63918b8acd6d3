// bench_policy: how long one inference takes, and where the time goes: the standard cases with
// random weights, or a checkpoint, with 1 and 2 threads.
#ifndef ACTD_BENCH_POLICY_H
#define ACTD_BENCH_POLICY_H

#include <stdbool.h>

#include "policy/policy.h"
#include "policy/profile_runs.h"

#define BENCH_CELLS 32

struct bench_how {
    int runs;       // of each cell at most; fewer when they take more than `seconds`
    double seconds; // but five at least
    enum precision precision;
    const char *cases;   // letters
    const char *threads; // digits
    const char *peers;   // RESULTS.md of `make bench-peers`, or NULL
};

// Multiply-adds on registers alone, GFLOP/s: of all threads by the wall's clock; of one of them by
// its own processor time, which says what a core can do while it is ours.
struct bench_probe {
    double wall, own;
};

// One case with one number of threads.
struct bench_cell {
    char name[40];
    int threads, runs;
    double median_ms, best_ms;   // the wall's clock
    double cpu_ms;               // of all threads: when the wall's clock says little
    struct bench_probe probe[2]; // before and after
    bool there;                  // the cores: the probe was near its best
    struct profile_stage stage[PROFILE_STAGES + 1];
    int stages;
    double floor_macs; // multiplications that are left after Winograd's saving
    size_t weight_bytes, table_bytes, working_bytes;
    double float32_bytes;
    struct policy_load_ms load, beside;
    double load_cpu_ms, beside_cpu_ms;
};

// Measures one cell. 0, or -errno, said on stderr.
int bench_cell(const char *name, const char *dir, const struct bench_how *how,
               int threads, struct bench_cell *out);
// Of `threads` at once, for some 60 ms.
struct bench_probe bench_probe_threads(int threads);

// Of the file that `make bench-peers` writes, when it is of this processor: the fastest peer of a
// case. false: there is none.
struct bench_peer {
    char name[32];
    double ms;
};
bool bench_peer_of(const char *path, char letter, int threads, struct bench_peer *out);

void bench_print(const struct bench_cell *cell, int n, const struct bench_how *how);

#endif
