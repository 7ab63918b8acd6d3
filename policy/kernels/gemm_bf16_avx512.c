#if defined(__AVX512F__)
#define LANES 16
#include "policy/kernels/gemm_bf16_body.h"

void gemm_bf16_expand_avx512(const uint16_t *from, size_t n, float *to)
{
    expand(from, n, to);
}
#endif
