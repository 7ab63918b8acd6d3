#include "policy/kernels/cpu.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

static const char *const names[CPU_ISAS] = {
    [CPU_GENERIC] = "generic",
    [CPU_AVX2] = "avx2",
    [CPU_AVX512] = "avx512",
    [CPU_NEON] = "neon",
};

#ifdef __x86_64__
#include <cpuid.h>

// Registers that the system saves when it switches threads (XCR0): a processor may know AVX-512
// under a system, or a virtual machine, that does not keep its state.
#define STATE_AVX    0x06u // xmm, ymm
#define STATE_AVX512 0xe6u // and masks, zmm

struct leaf {
    unsigned a, b, c, d;
};

static struct leaf leaf_of(unsigned number, unsigned part)
{
    struct leaf l = {0, 0, 0, 0};

    if (!__get_cpuid_count(number, part, &l.a, &l.b, &l.c, &l.d))
        return (struct leaf){0, 0, 0, 0};
    return l;
}

static struct leaf leaf(unsigned number)
{
    return leaf_of(number, 0);
}

static bool has(unsigned word, unsigned bits)
{
    return (word & bits) == bits;
}

static unsigned saved_state(void)
{
    unsigned low, high;

    if (!has(leaf(1).c, bit_OSXSAVE))
        return 0;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

bool cpu_runs(enum cpu_isa isa)
{
    const unsigned avx512 = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
    bool avx2 = has(leaf(1).c, bit_AVX | bit_FMA) && has(leaf(7).b, bit_AVX2) &&
                has(saved_state(), STATE_AVX);

    switch (isa) {
    case CPU_GENERIC:
        return true;
    case CPU_AVX2:
        return avx2;
    case CPU_AVX512:
        return avx2 && has(leaf(7).b, avx512) && has(saved_state(), STATE_AVX512);
    default:
        return false;
    }
}

bool cpu_has_avx(void)
{
    return has(leaf(1).c, bit_AVX) && has(saved_state(), STATE_AVX);
}

bool cpu_runs_vnni(enum cpu_isa isa)
{
    if (!cpu_runs(isa))
        return false;
    if (isa == CPU_AVX512)
        return has(leaf(7).c, bit_AVX512VNNI);
    return isa == CPU_AVX2 && leaf(7).a >= 1 && has(leaf_of(7, 1).a, bit_AVXVNNI);
}

enum cpu_isa cpu_best(void)
{
    return cpu_runs(CPU_AVX512) ? CPU_AVX512
           : cpu_runs(CPU_AVX2) ? CPU_AVX2
                                : CPU_GENERIC;
}
#else
// Every 64-bit ARM processor has NEON.
#ifdef __aarch64__
#define BEST CPU_NEON
#else
#define BEST CPU_GENERIC
#endif

bool cpu_runs(enum cpu_isa isa)
{
    return isa == CPU_GENERIC || isa == BEST;
}

bool cpu_has_avx(void)
{
    return false;
}

bool cpu_runs_vnni(enum cpu_isa isa)
{
    (void)isa;
    return false;
}

enum cpu_isa cpu_best(void)
{
    return BEST;
}
#endif

static atomic_int chosen = CPU_ISAS; // nobody has chosen
static atomic_bool without_vnni;

int cpu_choose(enum cpu_isa isa)
{
    if (!cpu_runs(isa))
        return -ENOTSUP;
    atomic_store(&chosen, isa);
    return 0;
}

// cpuid traps in a virtual machine and takes microseconds there: the answer is kept.
enum cpu_isa cpu_chosen(void)
{
    int none = CPU_ISAS;

    if (atomic_load(&chosen) == CPU_ISAS)
        atomic_compare_exchange_strong(&chosen, &none, (int)cpu_best());
    return (enum cpu_isa)atomic_load(&chosen);
}

bool cpu_uses_vnni(enum cpu_isa isa)
{
    return !atomic_load(&without_vnni) && cpu_runs_vnni(isa);
}

void cpu_use_vnni(bool use)
{
    atomic_store(&without_vnni, !use);
}

const char *cpu_isa_name(enum cpu_isa isa)
{
    return (unsigned)isa < CPU_ISAS ? names[isa] : "none";
}

enum cpu_isa cpu_isa_of(const char *name)
{
    int i = 0;

    while (i < CPU_ISAS && strcmp(name, names[i]) != 0)
        i++;
    return (enum cpu_isa)i;
}
