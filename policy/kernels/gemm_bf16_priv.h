// gemm_bf16_priv: one of these per instruction set.
#ifndef ACTD_KERNELS_GEMM_BF16_PRIV_H
#define ACTD_KERNELS_GEMM_BF16_PRIV_H

#include "policy/kernels/gemm_bf16.h"

gemm_bf16_expand_fn gemm_bf16_expand_generic, gemm_bf16_expand_avx2,
    gemm_bf16_expand_avx512, gemm_bf16_expand_neon;

#endif
