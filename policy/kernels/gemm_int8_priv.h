// gemm_int8_priv: the kernels of gemm_int8.h, and the arithmetic that all of them share.
#ifndef ACTD_KERNELS_GEMM_INT8_PRIV_H
#define ACTD_KERNELS_GEMM_INT8_PRIV_H

#include <string.h>

#include "policy/kernels/gemm_int8.h"
#include "policy/kernels/gemm_priv.h"

extern const struct gemm_int8_kernel gemm_int8_generic;
#ifdef __x86_64__
extern const struct gemm_int8_kernel gemm_int8_avx2, gemm_int8_vnni_avx2;
extern const struct gemm_int8_kernel gemm_int8_avx512, gemm_int8_vnni_avx512;
#endif
#ifdef __aarch64__
extern const struct gemm_int8_kernel gemm_int8_neon;
#endif

// Rows are reached by pointers to each third: with a stride in a register, x86 reads p, p + s and
// p + 2 s without further arithmetic.
#define POINTERS ((MR + 2) / 3)

// Four bytes of row i.
INLINE int32_t gemm_int8_quad(const uint8_t *const *p, size_t row, const int i,
                              const int depth)
{
    int32_t quad;

    memcpy(&quad, p[i / 3] + (size_t)(i % 3) * row + depth, sizeof quad);
    return quad;
}

#endif
