// gemm_bf16_body: halves into floats, LANES at a time. For whoever defines LANES.
#include <string.h>

#include "policy/kernels/gemm_bf16.h"
#include "policy/kernels/gemm_bf16_priv.h"

typedef uint16_t halves __attribute__((vector_size(2 * LANES)));
typedef uint32_t words __attribute__((vector_size(4 * LANES)));

static void expand(const uint16_t *from, size_t n, float *to)
{
    size_t i = 0;

    for (; i + LANES <= n; i += LANES) {
        halves h;
        memcpy(&h, from + i, sizeof h);
        words w = __builtin_convertvector(h, words) << 16;
        memcpy(to + i, &w, sizeof w);
    }
    for (; i < n; i++) {
        uint32_t w = (uint32_t)from[i] << 16;
        memcpy(to + i, &w, sizeof w);
    }
}
