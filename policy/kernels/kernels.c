#include "policy/kernels/kernels.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "policy/kernels/gemm_priv.h"

static const char blas_name[] = "openblas";

// How OpenBLAS came in, or why not.
enum blas { BY_MACHINE, ASKED_FOR, NOT_ASKED_FOR };
static atomic_int blas = BY_MACHINE;

// Processor ms of an inference (ACT, one camera of 640x480) on one Zen 5 core, with products in C and
// with OpenBLAS's: 552 and 288 with its kernels for AVX (Sandybridge), 563 and 613 with those for
// less (Nehalem).
static bool blas_is_best(void)
{
    return cpu_best() == CPU_GENERIC && cpu_has_avx();
}

bool kernels_blas(void)
{
    int how = atomic_load(&blas);

    return how == BY_MACHINE ? cpu_chosen() == CPU_GENERIC && blas_is_best()
                             : how == ASKED_FOR;
}

// Here and not in gemm.c, so that its tests need no OpenBLAS: there is none for an emulated machine.
const struct gemm_kernel *gemm_kernel(void)
{
    return kernels_blas() ? &gemm_blas : gemm_kernel_of(cpu_chosen());
}

const char *gemm_kernel_name(const struct gemm_kernel *k)
{
    return k == &gemm_blas ? blas_name : cpu_isa_name(k->isa);
}

const char *kernels_name(enum precision p)
{
    static const char *const vnni[CPU_ISAS] = {
        [CPU_AVX2] = "avx2 vnni", [CPU_AVX512] = "avx512 vnni"};
    enum cpu_isa isa = cpu_chosen();

    if (kernels_blas())
        return blas_name;
    return p == PRECISION_INT8 && vnni[isa] && cpu_uses_vnni(isa) ? vnni[isa]
                                                                  : cpu_isa_name(isa);
}

const char *kernels_why(void)
{
    if (cpu_chosen() != cpu_best() || kernels_blas() != blas_is_best())
        return "asked for, not the best that this processor runs";
    if (cpu_runs_vnni(cpu_best()) && !cpu_uses_vnni(cpu_best()))
        return "asked for, without the products of bytes that this processor has";
    switch (cpu_best()) {
    case CPU_AVX512:
        return "the processor has AVX-512 F, BW, DQ, VL";
    case CPU_AVX2:
        return "the processor has AVX2 and FMA, and not all of AVX-512 F, BW, DQ, VL";
    case CPU_NEON:
        return "every 64-bit ARM has NEON";
    default:
        return blas_is_best() ? "the processor has AVX, but not AVX2 and FMA"
                              : "the processor has neither AVX nor NEON";
    }
}

// The instruction set of "NAME" or "NAME vnni"; CPU_ISAS = no such.
static enum cpu_isa isa_of(const char *name, bool *vnni)
{
    const char *space = strchr(name, ' ');
    char isa[16];

    *vnni = space && strcmp(space, " vnni") == 0;
    if (!*vnni)
        return cpu_isa_of(name);
    snprintf(isa, sizeof isa, "%.*s", (int)(space - name < 15 ? space - name : 15), name);
    return cpu_isa_of(isa);
}

static void choose_best(void)
{
    (void)cpu_choose(cpu_best());
    cpu_use_vnni(true);
    atomic_store(&blas, BY_MACHINE);
}

int kernels_choose(const char *name)
{
    bool vnni = false, own = name && strcmp(name, blas_name) == 0;
    enum cpu_isa isa;

    if (!name || !*name) {
        choose_best();
        return 0;
    }
    isa = own ? CPU_GENERIC : isa_of(name, &vnni);
    if (isa == CPU_ISAS)
        return -EINVAL;
    if (vnni && !cpu_runs_vnni(isa))
        return -ENOTSUP;
    if (cpu_choose(isa) != 0)
        return -ENOTSUP;
    cpu_use_vnni(vnni);
    atomic_store(&blas, own ? ASKED_FOR : NOT_ASKED_FOR);
    return 0;
}
