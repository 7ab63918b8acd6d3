#define STEM_NAME stem_kernel_generic
#define STEM_ISA  CPU_GENERIC
#define TILES     6
#include "policy/kernels/stem_body.h"

const struct stem_kernel *stem_kernel_of(enum cpu_isa isa)
{
    switch (isa) {
    case CPU_GENERIC:
        return &stem_kernel_generic;
#ifdef __x86_64__
    case CPU_AVX2:
        return &stem_kernel_avx2;
    case CPU_AVX512:
        return &stem_kernel_avx512;
#endif
#ifdef __aarch64__
    case CPU_NEON:
        return &stem_kernel_neon;
#endif
    default:
        return NULL;
    }
}

const struct stem_kernel *stem_kernel(void)
{
    return stem_kernel_of(cpu_chosen());
}
