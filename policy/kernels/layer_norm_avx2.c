#if defined(__AVX2__)
#define SIMD_AVX2
#include "policy/kernels/layer_norm_body.h"

const struct layer_norm_kernel layer_norm_avx2 = {CPU_AVX2, norm_rows};
#endif
