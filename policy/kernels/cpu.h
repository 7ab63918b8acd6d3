// cpu: which kernels run here. One binary serves every x86-64 and ARM machine: each kernel that
// is written for an instruction set lives in a file of its own, compiled for that set alone, and
// a table names the one to take. The choice is made once, from what the processor and the
// system say they support, never from a timing: a replay needs the same bits, so it needs the
// same kernels.
#ifndef ACTD_KERNELS_CPU_H
#define ACTD_KERNELS_CPU_H

#include <stdbool.h>

enum cpu_isa {
    CPU_GENERIC, // plain C, vectors of 4 floats: every machine
    CPU_AVX2,    // AVX2 and FMA, 8 floats
    CPU_AVX512,  // AVX-512 F, BW, DQ, VL, 16 floats
    CPU_NEON,    // ARMv8, 4 floats, fused multiply-add
    CPU_ISAS
};

// The best one that this machine can run. Any thread; the same answer always.
enum cpu_isa cpu_best(void);
// Can it run here at all (and is it compiled in)?
bool cpu_runs(enum cpu_isa isa);
// Vectors of 8 floats at all, if only to multiply and to add: what OpenBLAS has kernels for and we
// have not (kernels.h).
bool cpu_has_avx(void);
// What kernels are chosen for from now on: at first the best. For tests, benchmarks and for who
// must replay another machine's log; plain, before the first policy is loaded.
// 0, or -ENOTSUP: this machine can not.
int cpu_choose(enum cpu_isa isa);
enum cpu_isa cpu_chosen(void);
// Dot products of bytes: AVX-VNNI beside AVX2, AVX512-VNNI beside AVX-512. Can they run here; are
// they used (at first where they can); choose as cpu_choose does, for a log from a machine that
// has none.
bool cpu_runs_vnni(enum cpu_isa isa);
bool cpu_uses_vnni(enum cpu_isa isa);
void cpu_use_vnni(bool use);
const char *cpu_isa_name(enum cpu_isa isa); // "generic", "avx2", "avx512", "neon"
// By name; CPU_ISAS = no such.
enum cpu_isa cpu_isa_of(const char *name);

#endif
