#if defined(__aarch64__)
#define LANES 4
#include "policy/kernels/gemm_bf16_body.h"

void gemm_bf16_expand_neon(const uint16_t *from, size_t n, float *to)
{
    expand(from, n, to);
}
#endif
