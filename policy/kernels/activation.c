#include "policy/kernels/activation.h"

#include <stddef.h>

const struct activation_kernel *activation_kernel_of(enum cpu_isa isa)
{
    switch (isa) {
    case CPU_GENERIC:
        return &activation_generic;
#if defined(__x86_64__)
    case CPU_AVX2:
        return &activation_avx2;
    case CPU_AVX512:
        return &activation_avx512;
#elif defined(__aarch64__)
    case CPU_NEON:
        return &activation_neon;
#endif
    default:
        return NULL;
    }
}

void activation_apply(enum activation f, float *x, int rows, int cols, int stride)
{
    const struct activation_kernel *k = activation_kernel_of(cpu_chosen());

    if (f == ACTIVATION_NONE)
        return;
    for (int r = 0; r < rows; r++, x += stride)
        (f == ACTIVATION_RELU ? k->relu : k->gelu)(x, cols);
}
