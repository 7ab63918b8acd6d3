#if defined(__AVX2__)
#define LANES 8
#include "policy/kernels/gemm_bf16_body.h"

void gemm_bf16_expand_avx2(const uint16_t *from, size_t n, float *to)
{
    expand(from, n, to);
}
#endif
